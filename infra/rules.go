package main

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsevents"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssqs"
	"github.com/aws/jsii-runtime-go"
)

// newRules are the rules of EventBridge and the queue for what they cannot deliver. An execution of the run state
// machine that has failed, timed out or been stopped is settled. A run that has failed in good order is settled
// already, and settling it again changes nothing. Such notices are best effort
// (https://docs.aws.amazon.com/step-functions/latest/dg/eventbridge-integration.html): every five minutes the janitor
// looks for what was not told.
func newRules(s settings, fns functions, m machines) (undelivered awssqs.CfnQueue) {
	undelivered = awssqs.NewCfnQueue(s.stack, jsii.String("Undelivered"), &awssqs.CfnQueueProps{
		MessageRetentionPeriod: jsii.Number(14 * 24 * 60 * 60), // the longest, in seconds
		SqsManagedSseEnabled:   true,
	})
	role := newRole(s, "RuleRole", "events.amazonaws.com", "Slipway: the rule that has dead runs settled",
		statement{Sid: "Start", Action: []string{"states:StartExecution"}, Resource: []any{m.died.AttrArn()}})
	rule := awsevents.NewCfnRule(s.stack, jsii.String("RunDied"), &awsevents.CfnRuleProps{
		Description: jsii.String("Slipway: settles runs whose execution has died"),
		EventPattern: map[string]any{
			"source":      []any{"aws.states"},
			"detail-type": []any{"Step Functions Execution Status Change"},
			"detail": map[string]any{
				"stateMachineArn": []any{m.run.AttrArn()},
				"status":          []any{"FAILED", "TIMED_OUT", "ABORTED"},
			},
		},
		Targets: []any{&awsevents.CfnRule_TargetProperty{
			Id: jsii.String("settle"), Arn: m.died.AttrArn(), RoleArn: role.AttrArn(), InputPath: jsii.String("$.detail"),
			DeadLetterConfig: &awsevents.CfnRule_DeadLetterConfigProperty{Arn: undelivered.AttrArn()},
			// A lock is waiting to be freed: after four hours somebody should look.
			RetryPolicy: &awsevents.CfnRule_RetryPolicyProperty{MaximumEventAgeInSeconds: jsii.Number(4 * 60 * 60), MaximumRetryAttempts: jsii.Number(30)},
		}},
	})
	sweep := awsevents.NewCfnRule(s.stack, jsii.String("Sweep"), &awsevents.CfnRuleProps{
		Description:        jsii.String("Slipway: settles what nobody has told of"),
		ScheduleExpression: jsii.String("rate(5 minutes)"),
		Targets: []any{&awsevents.CfnRule_TargetProperty{
			Id: jsii.String("sweep"), Arn: fns.janitor.AttrArn(), Input: jsii.String(`{"action":"sweep"}`),
			DeadLetterConfig: &awsevents.CfnRule_DeadLetterConfigProperty{Arn: undelivered.AttrArn()},
			// The next sweep does what this one could not.
			RetryPolicy: &awsevents.CfnRule_RetryPolicyProperty{MaximumEventAgeInSeconds: jsii.Number(5 * 60), MaximumRetryAttempts: jsii.Number(3)},
		}},
	})
	awslambda.NewCfnPermission(s.stack, jsii.String("SweepPermission"), &awslambda.CfnPermissionProps{
		Action: jsii.String("lambda:InvokeFunction"), FunctionName: fns.janitor.Ref(),
		Principal: jsii.String("events.amazonaws.com"), SourceArn: sweep.AttrArn(), SourceAccount: awscdk.Aws_ACCOUNT_ID(),
	})
	// An inline policy, because Cloud Control can provision it and not AWS::SQS::QueuePolicy.
	awssqs.NewCfnQueueInlinePolicy(s.stack, jsii.String("UndeliveredPolicy"), &awssqs.CfnQueueInlinePolicyProps{
		Queue: undelivered.Ref(),
		PolicyDocument: policy(
			statement{
				Sid: "Undelivered", Principal: map[string]any{"Service": "events.amazonaws.com"}, Action: []string{"sqs:SendMessage"},
				Resource:  []any{undelivered.AttrArn()},
				Condition: map[string]any{"ArnEquals": map[string]any{"aws:SourceArn": []any{rule.AttrArn(), sweep.AttrArn()}}},
			},
			statement{
				Sid: "OnlyTLS", Effect: "Deny", Principal: "*", Action: []string{"sqs:*"}, Resource: []any{undelivered.AttrArn()},
				Condition: map[string]any{"Bool": map[string]any{"aws:SecureTransport": "false"}},
			}),
	})
	return undelivered
}
