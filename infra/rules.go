package main

import (
	"github.com/aws/aws-cdk-go/awscdk/v2/awsevents"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssqs"
	"github.com/aws/jsii-runtime-go"
)

// newRules are the rules of EventBridge and the queue for what they cannot deliver. There is one: an execution
// of the run state machine that has failed, timed out or been stopped is settled. A run that has failed in good
// order is settled already, and settling it again changes nothing.
func newRules(s settings, m machines) (undelivered awssqs.CfnQueue) {
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
	// An inline policy, because Cloud Control can provision it and not AWS::SQS::QueuePolicy.
	awssqs.NewCfnQueueInlinePolicy(s.stack, jsii.String("UndeliveredPolicy"), &awssqs.CfnQueueInlinePolicyProps{
		Queue: undelivered.Ref(),
		PolicyDocument: policy(
			statement{
				Sid: "Undelivered", Principal: map[string]any{"Service": "events.amazonaws.com"}, Action: []string{"sqs:SendMessage"},
				Resource:  []any{undelivered.AttrArn()},
				Condition: map[string]any{"ArnEquals": map[string]any{"aws:SourceArn": rule.AttrArn()}},
			},
			statement{
				Sid: "OnlyTLS", Effect: "Deny", Principal: "*", Action: []string{"sqs:*"}, Resource: []any{undelivered.AttrArn()},
				Condition: map[string]any{"Bool": map[string]any{"aws:SecureTransport": "false"}},
			}),
	})
	return undelivered
}
