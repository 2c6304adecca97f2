package provider

import (
	"slices"
	"strings"
	"time"
)

// Refine makes the kind of a failure more precise where a service has no code of its own for what it says: a role
// that can't be assumed yet is an InvalidRequest to one handler and a GeneralServiceException to another. A phrase
// counts only under the kinds that services report it with, and each is a sentence of the service, longer than the
// name of any resource that the message may quote (reference §8.4, §12).
func Refine(kind Kind, code, message string) Kind {
	for _, r := range refinements {
		if r.matches(kind, code, message) {
			return r.to
		}
	}
	return kind
}

// Refined refines a failure in place and fills in the wait that the service documents, or what somebody has to do first.
func Refined(e *Error) *Error {
	kind := Refine(e.Kind, e.Code, e.Message)
	if kind == KindProtected && e.Kind != kind {
		e.Message = strings.TrimRight(e.Message, ". ") + ": turn the protection off in the template and deploy that, or by hand, then repeat the command"
	}
	e.Kind = kind
	if e.Kind == KindRecentlyDeleted && e.RetryAfter == 0 && strings.Contains(e.Message, "60 seconds") {
		e.RetryAfter = queueCoolDown
	}
	return e
}

// queueCoolDown is how long the name of a deleted queue is taken.
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_CreateQueue.html#API_CreateQueue_Errors
const queueCoolDown = 60 * time.Second

// refinement is one rule: a failure of one of the kinds with one of the codes, or with one of the phrases, is `to`.
type refinement struct {
	to      Kind
	from    []Kind
	codes   []string
	phrases []string
}

func (r refinement) matches(kind Kind, code, message string) bool {
	if !slices.Contains(r.from, kind) {
		return false
	}
	if slices.Contains(r.codes, code) {
		return true
	}
	return slices.ContainsFunc(r.phrases, func(p string) bool { return strings.Contains(message, p) })
}

// vague are the kinds under which handlers report what they have no code for.
var vague = []Kind{KindFailed, KindInvalid, KindUnavailable, KindTimeout}

var refinements = []refinement{
	{
		to: KindRecentlyDeleted, from: slices.Concat(vague, []Kind{KindAlreadyExists, KindConflict, KindDependencyViolation}),
		codes: []string{
			"QueueDeletedRecently", "AWS.SimpleQueueService.QueueDeletedRecently",
			// https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html
			"OperationAborted",
		},
		phrases: []string{
			"You must wait 60 seconds after deleting a queue",
			"A conflicting conditional operation is currently in progress against this resource",
		},
	},
	{
		to: KindProtected, from: slices.Concat(vague, []Kind{KindConflict, KindDependencyViolation, KindAccessDenied}),
		phrases: []string{
			"is currently protected against deletion",                    // DynamoDB
			"Cannot delete protected DB Instance, please disable",        // RDS
			"Cannot delete protected Cluster, please disable",            // RDS, Neptune, DocumentDB
			"may not be terminated. Modify its 'disableApiTermination'",  // EC2
			"cannot be deleted because deletion protection is enabled",   // Elastic Load Balancing
			"cannot be deleted because deletion protection is activated", // Cognito
		},
	},
	{
		// The handlers of some types report their service's throttling as a general failure.
		to: KindThrottled, from: vague,
		phrases: []string{"Rate exceeded (Service:", "Too Many Requests (Service:"},
	},
	{
		// https://docs.aws.amazon.com/IAM/latest/UserGuide/troubleshoot.html#troubleshoot_general_eventual-consistency
		to: KindPropagation, from: slices.Concat(vague, []Kind{KindAccessDenied, KindNotFound}),
		phrases: []string{
			"is not authorized to perform: sts:AssumeRole",
			"cannot be assumed by", // Lambda and others: "The role defined for the function cannot be assumed by Lambda."
			"is unable to assume",  // Firehose, Glue: "… is unable to assume role"
			"state machine IAM Role is not authorized to access the Log Destination", // Step Functions, on the log group
			"is authorized to assume the provided role",                              // Step Functions: "Neither the global service principal …, nor the regional one …"
			"you provide must allow AWS EventBridge Scheduler to assume",             // EventBridge Scheduler
			"The provided execution role does not have permissions",                  // Lambda, on networks and event sources
			"Please ensure the role can perform",                                     // Lambda, on streams
			"Invalid principal in policy",                                            // S3, SQS, SNS, ECR
			"Policy contains a statement with one or more invalid principals",        // KMS, Secrets Manager
			"KMS key is invalid for CreateGrant",                                     // Lambda, on the key of the environment
			"Invalid IAM Instance Profile",                                           // EC2, Auto Scaling
			"Unable to validate the following destination configurations",            // S3, on the receivers of notifications
			"Policy Error: PrincipalNotFound",                                        // SNS, on the policy of a topic
			"is not a valid role to allow SNS to write to Cloudwatch Logs",           // SNS, on the delivery logs of a topic
		},
	},
}
