package main

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"
)

// settings are the stack and what was chosen for this installation.
type settings struct {
	stack awscdk.Stack
	parameters
}

// parameters are the template's.
type parameters struct {
	stateBucket, stateBucketRegion *string
	prefix                         *string
	logRetention                   *float64
	journalDays                    *string
	uploadDays                     *float64

	boundary                       *string
	hasBoundary                    awscdk.CfnCondition
	alarmTopic                     *string
	hasAlarmTopic, tableProtection awscdk.CfnCondition

	// executionRoles is the pattern of the names of roles that the functions may assume, paths included.
	executionRoles *string
	// Keys of the team's own, where there are some.
	stateKey, tableKey, uploadsKey          *string
	hasStateKey, hasTableKey, hasUploadsKey awscdk.CfnCondition
	subnets, securityGroups                 *[]*string
	inVPC                                   awscdk.CfnCondition
}

// logRetentions are the periods that CloudWatch Logs knows, in days
// (https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_PutRetentionPolicy.html).
var logRetentions = []string{"1", "3", "5", "7", "14", "30", "60", "90", "120", "150", "180", "365", "400", "545", "731", "1096", "1827", "2192", "2557", "2922", "3288", "3653"}

func newParameters(scope constructs.Construct) parameters {
	text := func(id, description, pattern string, byDefault any) *string {
		p := awscdk.NewCfnParameter(scope, jsii.String(id), &awscdk.CfnParameterProps{
			Type: jsii.String("String"), Description: jsii.String(description), AllowedPattern: jsii.String(pattern), Default: byDefault,
		})
		return p.ValueAsString()
	}
	number := func(id, description string, byDefault, least, most float64) awscdk.CfnParameter {
		return awscdk.NewCfnParameter(scope, jsii.String(id), &awscdk.CfnParameterProps{
			Type: jsii.String("Number"), Description: jsii.String(description), Default: byDefault,
			MinValue: jsii.Number(least), MaxValue: jsii.Number(most),
		})
	}
	var p parameters
	p.stateBucket = text("StateBucketName", "The bucket that holds the state of your stacks. It must exist: this stack only refers to it.",
		"^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$", nil)
	p.stateBucketRegion = text("StateBucketRegion", "The state bucket's region, if it is not this stack's.", "^[a-z0-9-]*$", "")
	// The longest name that is made of it is an alarm's; a state machine's may have 80 characters.
	p.prefix = text("NamePrefix", "What the names of functions, state machines and log groups begin with; one for each control plane in a region.",
		"^[a-z][a-z0-9-]{0,30}$", "slipway")
	p.boundary = text("PermissionsBoundaryArn", "The permissions boundary of every role, if there is one.",
		"^(arn:[a-z-]+:iam::[0-9a-z]+:policy/.+)?$", "")
	p.executionRoles = text("ExecutionRoleNames", "The names of the roles that stacks may be deployed under, in any account: a pattern, with the path if there is one.",
		`^[\w+=,.@/*?-]{4,512}$`, "slipway-execution-*")
	const key = "^(arn:[a-z-]+:kms:[a-z0-9-]+:[0-9]{12}:key/.+)?$"
	p.stateKey = text("StateBucketKeyArn", "The KMS key that the state bucket is encrypted with, if it is one of yours.", key, "")
	p.tableKey = text("TableKeyArn", "A KMS key of yours to encrypt the run log with.", key, "")
	p.uploadsKey = text("UploadsKeyArn", "A KMS key of yours to encrypt the uploads with.", key, "")
	list := func(id, description string) *[]*string {
		return awscdk.NewCfnParameter(scope, jsii.String(id), &awscdk.CfnParameterProps{
			Type: jsii.String("CommaDelimitedList"), Description: jsii.String(description), Default: "",
		}).ValueAsList()
	}
	p.subnets = list("SubnetIds", "The subnets of a VPC that the functions run in, if they are to. They need a way to AWS's services.")
	p.securityGroups = list("SecurityGroupIds", "The security groups of the functions in a VPC.")
	p.alarmTopic = text("AlarmTopicArn", "The SNS topic that alarms are sent to, if there is one.", "^(arn:[a-z-]+:sns:.+)?$", "")
	p.journalDays = number("JournalDays", "For how many days after its end a run's events are kept; 0 is for ever.", 90, 0, 36500).ValueAsString()
	p.uploadDays = number("UploadDays", "For how many days uploads are kept.", 30, 1, 3650).ValueAsNumber()
	p.logRetention = awscdk.NewCfnParameter(scope, jsii.String("LogRetentionDays"), &awscdk.CfnParameterProps{
		Type: jsii.String("Number"), Description: jsii.String("For how many days logs are kept."), Default: "90", AllowedValues: jsii.Strings(logRetentions...),
	}).ValueAsNumber()
	protection := awscdk.NewCfnParameter(scope, jsii.String("TableDeletionProtection"), &awscdk.CfnParameterProps{
		Type: jsii.String("String"), Description: jsii.String("Whether DynamoDB refuses to delete the run log."), Default: "true",
		AllowedValues: jsii.Strings("true", "false"),
	})
	condition := func(id string, expression awscdk.ICfnConditionExpression) awscdk.CfnCondition {
		return awscdk.NewCfnCondition(scope, jsii.String(id), &awscdk.CfnConditionProps{Expression: expression})
	}
	given := func(v *string) awscdk.ICfnConditionExpression {
		return awscdk.Fn_ConditionNot(awscdk.Fn_ConditionEquals(v, jsii.String("")))
	}
	p.hasBoundary = condition("HasPermissionsBoundary", given(p.boundary))
	p.hasAlarmTopic = condition("HasAlarmTopic", given(p.alarmTopic))
	p.hasStateKey = condition("HasStateBucketKey", given(p.stateKey))
	p.hasTableKey = condition("HasTableKey", given(p.tableKey))
	p.hasUploadsKey = condition("HasUploadsKey", given(p.uploadsKey))
	p.inVPC = condition("InVpc", given(awscdk.Fn_Join(jsii.String(""), p.subnets)))
	p.tableProtection = condition("ProtectsTable", awscdk.Fn_ConditionEquals(protection.ValueAsString(), jsii.String("true")))
	return p
}

// name is a name under the installation's prefix.
func (p parameters) name(suffix string) *string { return jsii.String(*p.prefix + "-" + suffix) }

// arn is the ARN of a resource of this account and region.
func arn(service, resource string) string {
	return "arn:" + *awscdk.Aws_PARTITION() + ":" + service + ":" + *awscdk.Aws_REGION() + ":" + *awscdk.Aws_ACCOUNT_ID() + ":" + resource
}

// bucketARN is the ARN of a bucket, or of objects: "bucket/prefix/*".
func bucketARN(path string) string { return "arn:" + *awscdk.Aws_PARTITION() + ":s3:::" + path }

// runMachineARN is the ARN of the run state machine by its name. Its functions and its own role need it before
// it exists.
func (p parameters) runMachineARN() string { return arn("states", "stateMachine:"+*p.name("run")) }

// runExecutionsARN is all executions of the run state machine.
func (p parameters) runExecutionsARN() string { return arn("states", "execution:"+*p.name("run")+":*") }

// when is a value under a condition, and no property without it.
func when(c awscdk.CfnCondition, value any) awscdk.IResolvable {
	return awscdk.Fn_ConditionIf(c.LogicalId(), value, awscdk.Aws_NO_VALUE())
}
