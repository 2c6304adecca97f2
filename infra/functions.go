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
	"github.com/aws/jsii-runtime-go"

	"github.com/slipway-cdk/slipway/pkg/controlplane"
)

// function is a Lambda function and its role.
type function struct {
	awslambda.CfnFunction
	role awsiam.CfnRole
}

type functions struct{ planner, provisioner, publisher, janitor function }

// all are the functions in the order of the dashboard.
func (f functions) all() []function {
	return []function{f.planner, f.provisioner, f.publisher, f.janitor}
}

// archives are the files of the functions' code, by the function's name.
type archives map[string]string

var functionNames = []string{"planner", "provisioner", "publisher", "janitor"}

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

// longest is the longest that Lambda lets an invocation run, in seconds. An invocation returns when its time is
// up at the latest: the planner gives each wave a slice that is well below.
const longest = 900

func newFunctions(s settings, kept stores, found archives) functions {
	recovery := []statement{
		s.stateObjects("State", readWriteDelete, recordObjects, ownObjects), s.stateBucketListing(),
		journal(kept, keepJournal), vault(kept, "kms:GenerateDataKey", "kms:Decrypt"), s.describeRuns(),
		// Who settles a dead run goes on with what its provisioners have begun. The planner does so when it meets a
		// dead run's lock, the janitor when it is told.
		cloudControl(),
	}
	return functions{
		// 1,769 MB is one whole processor (https://docs.aws.amazon.com/lambda/latest/dg/configuration-memory.html).
		planner: newFunction(s, kept, found, "planner", "Opens runs, decides their waves and closes them", 1769,
			append(recovery[:len(recovery):len(recovery)], planFacts()...)...),
		provisioner: newFunction(s, kept, found, "provisioner", "Carries out one operation on one resource", 512,
			// What is too large for the journal's table is an object of the run.
			s.stateObjects("Run", readWriteDelete, runObjects), s.stateBucketListing(),
			journal(kept, writeJournal), vault(kept, "kms:Decrypt"), cloudControl()),
		publisher: newFunction(s, kept, found, "publisher", "Publishes one asset", 1024,
			append([]statement{
				s.stateObjects("Run", readWriteDelete, runObjects), s.stateBucketListing(), journal(kept, writeJournal),
			}, assetBuckets()...)...),
		janitor: newFunction(s, kept, found, "janitor", "Settles runs whose execution has died", 1769,
			append(recovery[:len(recovery):len(recovery)], listRuns(kept)...)...),
	}
}

// newFunction is a function with its role and its log. No concurrency is reserved: it would be taken from the
// account's, which may be small, and a wave's own width bounds what runs at once.
func newFunction(s settings, kept stores, found archives, name, description string, memory float64, may ...statement) function {
	id := map[string]string{"planner": "Planner", "provisioner": "Provisioner", "publisher": "Publisher", "janitor": "Janitor"}[name]
	log := newLogGroup(s, id+"Log", "/aws/lambda/"+*s.name(name))
	may = append([]statement{
		// The log group is there; a function that is deleted last must not make it again.
		{Sid: "Log", Action: []string{"logs:CreateLogStream", "logs:PutLogEvents"}, Resource: []any{log.AttrArn()}},
		tracing(),
	}, may...)
	role := newRole(s, id+"Role", lambdaService, "Slipway: "+description, may...)
	code := awss3assets.NewAsset(s.stack, jsii.String(id+"Code"), &awss3assets.AssetProps{Path: jsii.String(found[name])})
	fn := awslambda.NewCfnFunction(s.stack, jsii.String(id), &awslambda.CfnFunctionProps{
		FunctionName: s.name(name), Description: jsii.String(description),
		Runtime: jsii.String("provided.al2023"), Architectures: jsii.Strings("arm64"), Handler: jsii.String("bootstrap"),
		Code: &awslambda.CfnFunction_CodeProperty{S3Bucket: code.S3BucketName(), S3Key: code.S3ObjectKey()},
		Role: role.AttrArn(), MemorySize: jsii.Number(memory), Timeout: jsii.Number(longest),
		Environment: &awslambda.CfnFunction_EnvironmentProperty{Variables: map[string]any{
			controlplane.StateBucketVariable:       s.stateBucket,
			controlplane.StateBucketRegionVariable: s.stateBucketRegion,
			controlplane.TableNameVariable:         kept.table.Ref(),
			controlplane.RunStateMachineVariable:   s.runMachineARN(),
			controlplane.JournalDaysVariable:       s.journalDays,
			controlplane.VaultKeyVariable:          kept.vault.AttrArn(),
		}},
		LoggingConfig: &awslambda.CfnFunction_LoggingConfigProperty{LogGroup: log.Ref(), LogFormat: jsii.String("JSON")},
		TracingConfig: &awslambda.CfnFunction_TracingConfigProperty{Mode: jsii.String("Active")},
	})
	code.AddResourceMetadata(fn, jsii.String("Code"))
	return function{CfnFunction: fn, role: role}
}

// newLogGroup is a log that goes with the stack and forgets after the chosen time.
func newLogGroup(s settings, id, name string) awslogs.CfnLogGroup {
	return awslogs.NewCfnLogGroup(s.stack, jsii.String(id), &awslogs.CfnLogGroupProps{
		LogGroupName: jsii.String(name), RetentionInDays: s.logRetention,
	})
}
