package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslogs"
	"github.com/aws/aws-cdk-go/awscdk/v2/awss3assets"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssqs"
	"github.com/aws/jsii-runtime-go"

	"github.com/slipway-cdk/slipway/pkg/controlplane"
)

// function is a Lambda function and its role.
type function struct {
	awslambda.CfnFunction
	id   string
	role awsiam.CfnRole
}

type functions struct{ planner, provisioner, publisher, janitor, trigger function }

// all are the functions in the order of the dashboard.
func (f functions) all() []function {
	return []function{f.planner, f.provisioner, f.publisher, f.janitor, f.trigger}
}

// archives are the files of the functions' code, by the function's name.
type archives map[string]string

var functionNames = []string{"planner", "provisioner", "publisher", "janitor", "trigger"}

// findArchives finds the archives of all functions in a directory.
func findArchives(dir string) (archives, error) {
	found := archives{}
	for _, name := range functionNames {
		file := filepath.Join(dir, name+".zip")
		_, err := os.Stat(file)
		if errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("the functions are not built, %s is missing: run `make lambdas` first", file)
		}
		if err != nil {
			return nil, fmt.Errorf("looking for the archive of function %s: %w", name, err)
		}
		found[name] = file
	}
	return found, nil
}

// size is what a function is given.
type size struct {
	id, name, description string
	memory                float64 // MB; 1,769 is one whole processor (https://docs.aws.amazon.com/lambda/latest/dg/configuration-memory.html)
	timeout               float64 // seconds; 900 is the longest that Lambda has
}

func newFunctions(s settings, kept stores, undelivered awssqs.CfnQueue, found archives) functions {
	recovery := []statement{
		s.stateObjects("State", readWriteDelete, recordObjects, ownObjects), s.stateBucketListing(),
		journal(kept, keepJournal), vault(kept, "kms:GenerateDataKey", "kms:Decrypt"), s.describeRuns(),
		// Who settles a dead run goes on with what its provisioners have begun. The planner does so when it meets a
		// dead run's lock, the janitor when it is told.
		cloudControl(), s.executionRolesMay(),
	}
	withAll := func(more ...statement) []statement { return append(recovery[:len(recovery):len(recovery)], more...) }
	return functions{
		planner: newFunction(s, kept, found, size{
			"Planner", "planner", "Admits uploads, opens runs, decides their waves and closes them", 1769,
			// It may plan a deployment of thousands of resources, or settle a dead run for four minutes.
			600,
		}, []condition{s.stateKeyUse(), s.tableKeyUse(), s.uploadsKeyUse("kms:Decrypt", "kms:GenerateDataKey")},
			// A caller's archive and submission are named by their keys alone; an inbox's object by its version.
			withAll(append(planFacts(), readUploads(kept, controlplane.UploadsPrefix, controlplane.InboxPrefix), readNewest(kept), findUploads(kept), writeReports(kept))...)...),
		provisioner: newFunction(s, kept, found, size{
			"Provisioner", "provisioner", "Carries out one operation on one resource", 512,
			// A wave's slice is five minutes at most, and no call outlives it by more than half a minute.
			360,
		}, []condition{s.stateKeyUse(), s.tableKeyUse()},
			// What is too large for the journal's table is an object of the run.
			s.stateObjects("Run", readWriteDelete, runObjects), s.stateBucketListing(),
			journal(kept, writeJournal), vault(kept, "kms:Decrypt"), cloudControl(), s.executionRolesMay()),
		publisher: newFunction(s, kept, found, size{
			"Publisher", "publisher", "Publishes one asset", 1024,
			// An asset may have gigabytes.
			longest,
		}, []condition{s.stateKeyUse(), s.tableKeyUse(), s.uploadsKeyUse("kms:Decrypt")},
			append([]statement{
				s.stateObjects("Run", []string{"s3:GetObject"}, runObjects), journal(kept, writeJournal),
				readUploads(kept, controlplane.UploadsPrefix, controlplane.InboxPrefix), findUploads(kept), s.executionRolesMay(),
			}, assetBuckets()...)...),
		janitor: newFunction(s, kept, found, size{
			"Janitor", "janitor", "Settles runs whose execution has died", 1769,
			// Twenty operations at a time, each for four minutes.
			longest,
		}, []condition{s.stateKeyUse(), s.tableKeyUse()}, withAll(append(listRuns(kept), tellFailure(undelivered))...)...),
		trigger: newFunction(s, kept, found, size{
			"Trigger", "trigger", "Starts a deployment for each assembly that is put into an inbox", 256,
			// It makes two calls, and is told again.
			60,
		}, []condition{s.uploadsKeyUse("kms:Decrypt")}, readUploads(kept, controlplane.InboxPrefix), findUploads(kept), s.startRuns(), tellFailure(undelivered)),
	}
}

// longest is the longest that Lambda lets an invocation run, in seconds.
const longest = 900

// newFunction is a function with its role and its log. No concurrency is reserved: it would be taken from the
// account's, which may be small, and a wave's own width bounds what runs at once.
func newFunction(s settings, kept stores, found archives, of size, under []condition, may ...statement) function {
	log := newLogGroup(s, of.id+"Log", "/aws/lambda/"+*s.name(of.name))
	may = append([]statement{
		// The log group is there; a function that is deleted last must not make it again.
		{Sid: "Log", Action: []string{"logs:CreateLogStream", "logs:PutLogEvents"}, Resource: []any{log.AttrArn()}},
		tracing(),
	}, may...)
	role := newRole(s, of.id+"Role", lambdaService, "Slipway: "+of.description, may...)
	add(role, append(under, s.networkUse(of.name))...)
	code := awss3assets.NewAsset(s.stack, jsii.String(of.id+"Code"), &awss3assets.AssetProps{Path: jsii.String(found[of.name])})
	fn := awslambda.NewCfnFunction(s.stack, jsii.String(of.id), &awslambda.CfnFunctionProps{
		FunctionName: s.name(of.name), Description: jsii.String(of.description),
		Runtime: jsii.String("provided.al2023"), Architectures: jsii.Strings("arm64"), Handler: jsii.String("bootstrap"),
		Code: &awslambda.CfnFunction_CodeProperty{S3Bucket: code.S3BucketName(), S3Key: code.S3ObjectKey()},
		Role: role.AttrArn(), MemorySize: jsii.Number(of.memory), Timeout: jsii.Number(of.timeout),
		Environment: &awslambda.CfnFunction_EnvironmentProperty{Variables: map[string]any{
			controlplane.PlaneNameVariable:         s.prefix,
			controlplane.StateBucketVariable:       s.stateBucket,
			controlplane.StateBucketRegionVariable: s.stateBucketRegion,
			controlplane.UploadsBucketVariable:     kept.uploads.Ref(),
			controlplane.TableNameVariable:         kept.table.Ref(),
			controlplane.RunStateMachineVariable:   s.runMachineARN(),
			controlplane.JournalDaysVariable:       s.journalDays,
			controlplane.VaultKeyVariable:          kept.vault.AttrArn(),
		}},
		LoggingConfig: &awslambda.CfnFunction_LoggingConfigProperty{LogGroup: log.Ref(), LogFormat: jsii.String("JSON")},
		TracingConfig: &awslambda.CfnFunction_TracingConfigProperty{Mode: jsii.String("Active")},
	})
	fn.AddPropertyOverride(jsii.String("VpcConfig"), when(s.inVPC, map[string]any{
		"SubnetIds": s.subnets, "SecurityGroupIds": s.securityGroups,
	}))
	code.AddResourceMetadata(fn, jsii.String("Code"))
	return function{CfnFunction: fn, id: of.id, role: role}
}

// newFailureTarget sends what a function was told asynchronously, and has not come through after all retries, to the
// queue of what could not be delivered.
func newFailureTarget(s settings, fn function, queue *string, age float64) {
	awslambda.NewCfnEventInvokeConfig(s.stack, jsii.String(fn.id+"Invocations"), &awslambda.CfnEventInvokeConfigProps{
		FunctionName: fn.Ref(), Qualifier: jsii.String("$LATEST"),
		MaximumEventAgeInSeconds: jsii.Number(age), MaximumRetryAttempts: jsii.Number(2),
		DestinationConfig: &awslambda.CfnEventInvokeConfig_DestinationConfigProperty{
			OnFailure: &awslambda.CfnEventInvokeConfig_OnFailureProperty{Destination: queue},
		},
	})
}

// newLogGroup is a log that goes with the stack and forgets after the chosen time.
func newLogGroup(s settings, id, name string) awslogs.CfnLogGroup {
	return awslogs.NewCfnLogGroup(s.stack, jsii.String(id), &awslogs.CfnLogGroupProps{
		LogGroupName: jsii.String(name), RetentionInDays: s.logRetention,
	})
}

// networkUse lets Lambda make the network interfaces of a function in a VPC. Lambda asks for these actions on all
// resources (https://docs.aws.amazon.com/lambda/latest/dg/configuration-vpc.html#configuration-vpc-permissions); the
// function's own code is denied them, as that page advises.
func (s settings) networkUse(name string) condition {
	actions := []string{
		"ec2:CreateNetworkInterface", "ec2:DeleteNetworkInterface", "ec2:DescribeNetworkInterfaces", "ec2:DescribeSubnets",
		"ec2:AssignPrivateIpAddresses", "ec2:UnassignPrivateIpAddresses",
	}
	return condition{when: s.inVPC, name: "network", statements: []statement{
		{Sid: "Interfaces", Action: actions, Resource: []any{"*"}},
		{
			Sid: "NotByItsCode", Effect: "Deny", Action: actions, Resource: []any{"*"},
			Condition: map[string]any{"ArnEquals": map[string]any{"lambda:SourceFunctionArn": arn("lambda", "function:"+*s.name(name))}},
		},
	}}
}
