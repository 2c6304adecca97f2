package main

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/jsii-runtime-go"

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
