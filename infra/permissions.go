package main

import (
	"strconv"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssqs"
	"github.com/aws/jsii-runtime-go"

	"github.com/slipway-cdk/slipway/pkg/controlplane"
	"github.com/slipway-cdk/slipway/pkg/runlog/dynamo"
)

// statement is one statement of a policy. Effect is Allow when empty.
type statement struct {
	Sid       string
	Effect    string
	Principal any
	Action    []string
	Resource  []any
	Condition map[string]any
}

// policy is a policy document.
func policy(statements ...statement) map[string]any {
	var out []any
	for _, s := range statements {
		m := map[string]any{"Sid": s.Sid, "Effect": "Allow", "Action": s.Action}
		if s.Effect != "" {
			m["Effect"] = s.Effect
		}
		if s.Principal != nil {
			m["Principal"] = s.Principal
		}
		if s.Resource != nil {
			m["Resource"] = s.Resource
		}
		if s.Condition != nil {
			m["Condition"] = s.Condition
		}
		out = append(out, m)
	}
	return map[string]any{"Version": "2012-10-17", "Statement": out}
}

// condition are statements that a role has in some installations only, in a policy of their own.
type condition struct {
	when       awscdk.CfnCondition
	name       string
	statements []statement
}

// newRole is a role that one service may assume. Its policy is inline: the role and what it may do come and go
// together.
func newRole(s settings, id, service, description string, statements ...statement) awsiam.CfnRole {
	assume := statement{Sid: "Assume", Principal: map[string]any{"Service": service}, Action: []string{"sts:AssumeRole"}}
	if service != lambdaService {
		// For the resources of this account only. Lambda tells nothing of the function for which it assumes a role.
		assume.Condition = map[string]any{"StringEquals": map[string]any{"aws:SourceAccount": awscdk.Aws_ACCOUNT_ID()}}
	}
	return awsiam.NewCfnRole(s.stack, jsii.String(id), &awsiam.CfnRoleProps{
		Description: jsii.String(description), AssumeRolePolicyDocument: policy(assume),
		PermissionsBoundary: awscdk.Token_AsString(when(s.hasBoundary, s.boundary), nil),
		Policies:            []any{&awsiam.CfnRole_PolicyProperty{PolicyName: jsii.String("own"), PolicyDocument: policy(statements...)}},
	})
}

// add gives a role what it needs in some installations only. It is an override, because cdk-nag reads no policies in
// the midst of which one is chosen.
func add(role awsiam.CfnRole, under ...condition) {
	for i, c := range under {
		role.AddPropertyOverride(jsii.String("Policies."+strconv.Itoa(i+1)), when(c.when, map[string]any{
			"PolicyName": c.name, "PolicyDocument": policy(c.statements...),
		}))
	}
}

const lambdaService = "lambda.amazonaws.com"

// The prefixes of the state bucket: cdkd's, which hold the stacks' records, and Slipway's own.
const (
	recordObjects = "cdkd/*"
	ownObjects    = "slipway/*"
	runObjects    = "slipway/runs/*"
)

// stateObjects lets objects of the state bucket be read or written.
func (s settings) stateObjects(sid string, actions []string, prefixes ...string) statement {
	var resources []any
	for _, p := range prefixes {
		resources = append(resources, bucketARN(*s.stateBucket+"/"+p))
	}
	return statement{Sid: sid, Action: actions, Resource: resources}
}

var (
	readWriteDelete = []string{"s3:GetObject", "s3:PutObject", "s3:DeleteObject"}
	// A transaction needs the permission for each of its parts.
	writeJournal = []string{"dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:ConditionCheckItem"}
	keepJournal  = append([]string{"dynamodb:Query", "dynamodb:UpdateItem"}, writeJournal...)
)

// stateBucketListing lets S3 say that an object or the bucket is absent. Without it S3 answers 403 for both, and
// an absent record could not be told from one that must not be read
// (https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetObject.html).
func (s settings) stateBucketListing() statement {
	return statement{Sid: "TellAbsent", Action: []string{"s3:ListBucket"}, Resource: []any{bucketARN(*s.stateBucket)}}
}

func journal(kept stores, actions []string) statement {
	return statement{Sid: "Journal", Action: actions, Resource: []any{kept.table.AttrArn()}}
}

// listRuns lets the sweep find the runs that are not closed, and the newest: the indexes tell which there are, the
// headers are in the table.
func listRuns(kept stores) []statement {
	index := *kept.table.AttrArn() + "/index/"
	return []statement{
		{Sid: "ListRuns", Action: []string{"dynamodb:Query"}, Resource: []any{index + dynamo.OpenIndex, index + dynamo.RunsIndex}},
		{Sid: "ReadRuns", Action: []string{"dynamodb:BatchGetItem"}, Resource: []any{kept.table.AttrArn()}},
	}
}

func vault(kept stores, actions ...string) statement {
	return statement{Sid: "Vault", Action: actions, Resource: []any{kept.vault.AttrArn()}}
}

// describeRuns lets a function ask whether the execution of a run is still going on.
func (s settings) describeRuns() statement {
	return statement{Sid: "DescribeRuns", Action: []string{"states:DescribeExecution"}, Resource: []any{s.runExecutionsARN()}}
}

// cloudControl lets a function call Cloud Control. The resources are all because none of these actions supports
// anything narrower (https://docs.aws.amazon.com/service-authorization/latest/reference/list_awscloudformation.html:
// their "Resource types" are empty). Alone it changes nothing: Cloud Control works with its caller's permissions, and
// these roles have none for the resources of a stack.
func cloudControl() statement {
	return statement{Sid: "CloudControl", Resource: []any{"*"}, Action: []string{
		"cloudformation:CreateResource", "cloudformation:UpdateResource", "cloudformation:DeleteResource",
		"cloudformation:GetResource", "cloudformation:GetResourceRequestStatus",
	}}
}

// executionRolesMay lets a function work on a stack under the role that the server's policy has chosen for it, in any
// account, with the tags that tell of stack and run. Which role that is the policy says; here is only how it may be
// called. The role's own trust policy must agree.
func (s settings) executionRolesMay() statement {
	return statement{Sid: "ExecutionRoles", Action: []string{"sts:AssumeRole", "sts:TagSession"}, Resource: []any{
		"arn:" + *awscdk.Aws_PARTITION() + ":iam::*:role/" + *s.executionRoles,
	}}
}

// readUploads lets a function read assemblies and what comes with them, the very version that was announced.
func readUploads(kept stores, prefixes ...string) statement {
	s := statement{Sid: "Uploads", Action: []string{"s3:GetObjectVersion"}}
	for _, p := range prefixes {
		s.Resource = append(s.Resource, *kept.uploads.AttrArn()+"/"+p+"*")
	}
	return s
}

// readNewest lets the planner find the version of what a caller has put under a key.
func readNewest(kept stores) statement {
	return statement{Sid: "NewestUploads", Action: []string{"s3:GetObject"}, Resource: []any{*kept.uploads.AttrArn() + "/" + controlplane.UploadsPrefix + "*"}}
}

// findUploads lets S3 say that an upload is absent.
func findUploads(kept stores) statement {
	return statement{Sid: "TellAbsentUpload", Action: []string{"s3:ListBucket"}, Resource: []any{kept.uploads.AttrArn()}}
}

// writeReports lets the planner tell callers of their runs, each in its own prefix.
func writeReports(kept stores) statement {
	return statement{Sid: "Reports", Action: []string{"s3:PutObject"}, Resource: []any{
		*kept.uploads.AttrArn() + "/" + controlplane.UploadsPrefix + "*/reports/*",
	}}
}

// startRuns lets the trigger start executions.
func (s settings) startRuns() statement {
	return statement{Sid: "StartRuns", Action: []string{"states:StartExecution"}, Resource: []any{s.runMachineARN()}}
}

// tellFailure lets Lambda put into the queue what a function was told and could not do.
func tellFailure(undelivered awssqs.CfnQueue) statement {
	return statement{Sid: "TellFailure", Action: []string{"sqs:SendMessage"}, Resource: []any{undelivered.AttrArn()}}
}

// keyUse lets a role use a key of the team's own, by way of one service only.
func keyUse(when awscdk.CfnCondition, name string, key *string, service string, actions ...string) condition {
	return condition{when: when, name: name, statements: []statement{{
		Sid: "Key", Action: actions, Resource: []any{key},
		Condition: map[string]any{"StringLike": map[string]any{"kms:ViaService": service + ".*.amazonaws.com*"}},
	}}}
}

// stateKeyUse lets a role read and write a state bucket under a key of the team's own.
func (s settings) stateKeyUse() condition {
	return keyUse(s.hasStateKey, "state-key", s.stateKey, "s3", "kms:Decrypt", "kms:GenerateDataKey")
}

// tableKeyUse lets a role use a table under a key of the team's own: DynamoDB asks for these on behalf of whoever uses
// it (https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/encryption.usagenotes.html).
func (s settings) tableKeyUse() condition {
	return keyUse(s.hasTableKey, "table-key", s.tableKey, "dynamodb",
		"kms:Decrypt", "kms:DescribeKey", "kms:Encrypt", "kms:GenerateDataKey", "kms:ReEncryptFrom", "kms:ReEncryptTo")
}

func (s settings) uploadsKeyUse(actions ...string) condition {
	return keyUse(s.hasUploadsKey, "uploads-key", s.uploadsKey, "s3", actions...)
}

// planFacts lets the planner read what templates ask for: availability zones, which support no narrower resource, and
// the public parameters of AWS and of CDK's bootstrap stack. Other parameters are the stack's own.
func planFacts() []statement {
	public := "arn:" + *awscdk.Aws_PARTITION() + ":ssm:*::parameter/aws/service/*"
	bootstrap := "arn:" + *awscdk.Aws_PARTITION() + ":ssm:*:" + *awscdk.Aws_ACCOUNT_ID() + ":parameter/cdk-bootstrap/*"
	return []statement{
		{Sid: "Zones", Action: []string{"ec2:DescribeAvailabilityZones"}, Resource: []any{"*"}},
		{Sid: "PublicParameters", Action: []string{"ssm:GetParameter"}, Resource: []any{public, bootstrap}},
	}
}

// assetBuckets lets the publisher write to the asset buckets of CDK's bootstrap in this account, whatever their
// qualifier and region.
func assetBuckets() []statement {
	bucket := bucketARN("cdk-*-assets-" + *awscdk.Aws_ACCOUNT_ID() + "-*")
	own := map[string]any{"StringEquals": map[string]any{"aws:ResourceAccount": awscdk.Aws_ACCOUNT_ID()}}
	return []statement{
		{Sid: "FindAssetBuckets", Action: []string{"s3:ListBucket"}, Resource: []any{bucket}, Condition: own},
		{Sid: "PublishAssets", Action: []string{"s3:GetObject", "s3:PutObject"}, Resource: []any{bucket + "/*"}, Condition: own},
	}
}

// tracing lets a function write its traces. X-Ray supports no narrower resource.
func tracing() statement {
	return statement{Sid: "Tracing", Action: []string{"xray:PutTraceSegments", "xray:PutTelemetryRecords"}, Resource: []any{"*"}}
}

// machineObservation lets a state machine write its traces and set up the delivery of its log, as Step Functions
// asks for; neither service supports a narrower resource
// (https://docs.aws.amazon.com/step-functions/latest/dg/cw-logs.html, .../xray-iam.html).
func machineObservation() []statement {
	return []statement{
		{Sid: "Tracing", Resource: []any{"*"}, Action: []string{
			"xray:PutTraceSegments", "xray:PutTelemetryRecords", "xray:GetSamplingRules", "xray:GetSamplingTargets",
		}},
		{Sid: "LogDelivery", Resource: []any{"*"}, Action: []string{
			"logs:CreateLogDelivery", "logs:GetLogDelivery", "logs:UpdateLogDelivery", "logs:DeleteLogDelivery", "logs:ListLogDeliveries",
			"logs:PutResourcePolicy", "logs:DescribeResourcePolicies", "logs:DescribeLogGroups",
		}},
	}
}
