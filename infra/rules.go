package main

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsevents"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssqs"
	"github.com/aws/jsii-runtime-go"

	"github.com/slipway-cdk/slipway/pkg/controlplane"
)

// newUndelivered is the queue for what rules, or the functions that they invoke, could not deliver.
func newUndelivered(s settings) awssqs.CfnQueue {
	return awssqs.NewCfnQueue(s.stack, jsii.String("Undelivered"), &awssqs.CfnQueueProps{
		MessageRetentionPeriod: jsii.Number(14 * 24 * 60 * 60), // the longest, in seconds
		SqsManagedSseEnabled:   true,
	})
}

// newRules are the rules of EventBridge.
func newRules(s settings, kept stores, fns functions, m machines, undelivered awssqs.CfnQueue) {
	queue := undelivered.AttrArn()
	rules := []awsevents.CfnRule{newDeathRule(s, m, queue), newSweepRule(s, fns.janitor, queue), newInboxRule(s, kept, fns.trigger, queue)}
	// The functions' own retries come after EventBridge's: it has delivered once Lambda has taken the event.
	newFailureTarget(s, fns.trigger, queue, 6*60*60)
	newFailureTarget(s, fns.janitor, queue, 5*60)
	var sources []any
	for _, r := range rules {
		sources = append(sources, r.AttrArn())
	}
	// An inline policy, because Cloud Control can provision it and not AWS::SQS::QueuePolicy.
	awssqs.NewCfnQueueInlinePolicy(s.stack, jsii.String("UndeliveredPolicy"), &awssqs.CfnQueueInlinePolicyProps{
		Queue: undelivered.Ref(),
		PolicyDocument: policy(
			statement{
				Sid: "Undelivered", Principal: map[string]any{"Service": eventsService}, Action: []string{"sqs:SendMessage"},
				Resource:  []any{queue},
				Condition: map[string]any{"ArnEquals": map[string]any{"aws:SourceArn": sources}},
			},
			statement{
				Sid: "OnlyTLS", Effect: "Deny", Principal: "*", Action: []string{"sqs:*"}, Resource: []any{queue},
				Condition: map[string]any{"Bool": map[string]any{"aws:SecureTransport": "false"}},
			}),
	})
}

const eventsService = "events.amazonaws.com"

func deadLetters(queue *string) *awsevents.CfnRule_DeadLetterConfigProperty {
	return &awsevents.CfnRule_DeadLetterConfigProperty{Arn: queue}
}

// retries says how long EventBridge tries to deliver, in seconds, and how often.
func retries(age, attempts float64) *awsevents.CfnRule_RetryPolicyProperty {
	return &awsevents.CfnRule_RetryPolicyProperty{MaximumEventAgeInSeconds: jsii.Number(age), MaximumRetryAttempts: jsii.Number(attempts)}
}

// newDeathRule has an execution of the run state machine settled that has failed, timed out or been stopped. A run
// that has failed in good order is settled already, and settling it again changes nothing.
func newDeathRule(s settings, m machines, queue *string) awsevents.CfnRule {
	role := newRole(s, "RuleRole", eventsService, "Slipway: the rule that has dead runs settled",
		statement{Sid: "Start", Action: []string{"states:StartExecution"}, Resource: []any{m.died.AttrArn()}})
	return awsevents.NewCfnRule(s.stack, jsii.String("RunDied"), &awsevents.CfnRuleProps{
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
			DeadLetterConfig: deadLetters(queue),
			// A lock is waiting to be freed: after four hours somebody should look.
			RetryPolicy: retries(4*60*60, 30),
		}},
	})
}

// newSweepRule has the janitor look for what was not told: notices of dead executions are best effort
// (https://docs.aws.amazon.com/step-functions/latest/dg/eventbridge-integration.html).
func newSweepRule(s settings, janitor function, queue *string) awsevents.CfnRule {
	rule := awsevents.NewCfnRule(s.stack, jsii.String("Sweep"), &awsevents.CfnRuleProps{
		Description:        jsii.String("Slipway: settles what nobody has told of"),
		ScheduleExpression: jsii.String("rate(5 minutes)"),
		Targets: []any{&awsevents.CfnRule_TargetProperty{
			Id: jsii.String("sweep"), Arn: janitor.AttrArn(), Input: jsii.String(`{"action":"sweep"}`),
			DeadLetterConfig: deadLetters(queue),
			// The next sweep does what this one could not.
			RetryPolicy: retries(5*60, 3),
		}},
	})
	mayInvoke(s, "SweepPermission", janitor, rule)
	return rule
}

// newInboxRule has a deployment started for each object that is put into the inbox of the uploads bucket, by whatever
// kind of upload. S3 tells at least once, and in no order
// (https://docs.aws.amazon.com/AmazonS3/latest/userguide/EventBridge.html): the trigger starts each version once.
func newInboxRule(s settings, kept stores, trigger function, queue *string) awsevents.CfnRule {
	rule := awsevents.NewCfnRule(s.stack, jsii.String("InboxObject"), &awsevents.CfnRuleProps{
		Description: jsii.String("Slipway: deploys what is put into an inbox"),
		EventPattern: map[string]any{
			"source":      []any{"aws.s3"},
			"detail-type": []any{"Object Created"},
			"detail": map[string]any{
				"bucket": map[string]any{"name": []any{kept.uploads.Ref()}},
				"object": map[string]any{"key": []any{map[string]any{"prefix": controlplane.InboxPrefix}}},
			},
		},
		Targets: []any{&awsevents.CfnRule_TargetProperty{
			Id: jsii.String("deploy"), Arn: trigger.AttrArn(), DeadLetterConfig: deadLetters(queue),
			// Somebody waits for that deployment: a day later nobody expects it any more.
			RetryPolicy: retries(24*60*60, 100),
		}},
	})
	mayInvoke(s, "InboxPermission", trigger, rule)
	return rule
}

// mayInvoke lets a rule invoke a function.
func mayInvoke(s settings, id string, fn function, rule awsevents.CfnRule) {
	awslambda.NewCfnPermission(s.stack, jsii.String(id), &awslambda.CfnPermissionProps{
		Action: jsii.String("lambda:InvokeFunction"), FunctionName: fn.Ref(),
		Principal: jsii.String(eventsService), SourceArn: rule.AttrArn(), SourceAccount: awscdk.Aws_ACCOUNT_ID(),
	})
}
