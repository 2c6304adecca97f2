package asl_test

const settleARN = "arn:aws:states:eu-west-1:111122223333:stateMachine:settle"
