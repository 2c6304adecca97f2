// Hello is the smallest function: what the others' start is compared with.
package main

import "github.com/aws/aws-lambda-go/lambda"

func main() { lambda.Start(func() (string, error) { return "hello", nil }) }
