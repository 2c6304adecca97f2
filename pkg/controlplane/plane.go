package controlplane

import (
	"crypto/rand"
	"encoding/hex"
	"log/slog"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/sfn"

	"github.com/slipway-cdk/slipway/pkg/asset"
	"github.com/slipway-cdk/slipway/pkg/clock"
	"github.com/slipway-cdk/slipway/pkg/macro"
	"github.com/slipway-cdk/slipway/pkg/objectstore/s3"
	"github.com/slipway-cdk/slipway/pkg/provider"
	"github.com/slipway-cdk/slipway/pkg/provider/cloudcontrol"
	"github.com/slipway-cdk/slipway/pkg/provider/custom"
	"github.com/slipway-cdk/slipway/pkg/provider/direct"
	"github.com/slipway-cdk/slipway/pkg/provider/pace"
	"github.com/slipway-cdk/slipway/pkg/provider/services"
	"github.com/slipway-cdk/slipway/pkg/run"
	"github.com/slipway-cdk/slipway/pkg/runlog/dynamo"
	"github.com/slipway-cdk/slipway/pkg/schema"
	"github.com/slipway-cdk/slipway/pkg/secret"
	"github.com/slipway-cdk/slipway/pkg/state"
)

// Plane is the engine on AWS. It is safe for concurrent use; a function builds it once and keeps it.
type Plane struct {
	Engine *run.Engine

	env   Environment
	log   *dynamo.Store
	clock clock.Clock
}

// New connects the engine. It calls nothing: clients connect when they are first used. cfg must have the
// function's own region and credentials.
func New(cfg aws.Config, env Environment, logger *slog.Logger) *Plane {
	clk := clock.Real{}
	bucket := s3.NewClient(cfg, env.StateBucketRegion)
	objects := &s3.Store{
		Client: bucket, Bucket: env.StateBucket, Owner: env.Account(), Clock: clk,
	}
	log := &dynamo.Store{Client: dynamodb.NewFromConfig(cfg), Table: env.TableName, Objects: objects, Clock: clk}
	aws := &Accounts{Base: cfg, Own: env.Account(), Clock: clk}
	var vault *secret.Vault
	if env.VaultKey != "" {
		vault = &secret.Vault{Objects: objects, Sealer: &secret.KMS{Client: kms.NewFromConfig(cfg), KeyID: env.VaultKey, Objects: objects}}
	}
	p := &Plane{
		env: env, log: log, clock: clk,
		Engine: &run.Engine{
			Objects: objects, Log: log, Clock: clk, Holder: holder(env), Logger: logger,
			States:     &state.Store{Objects: objects, Clock: clk},
			Providers:  aws.Providers(clk, &custom.Bucket{Client: bucket, Name: env.StateBucket, Owner: env.Account()}),
			Assets:     &asset.Publisher{Bucket: aws.AssetBuckets()},
			Facts:      aws.Facts(),
			Roles:      aws,
			Macros:     aws.Macros(macro.Bucket{Client: bucket, Name: env.StateBucket}, clk, ownRoleMacros),
			Vault:      vault,
			Secrets:    aws.Secrets(),
			Executions: executions{client: sfn.NewFromConfig(cfg), env: env},
		},
	}
	p.admitUploads(cfg, aws)
	return p
}

// Providers are the direct ones, and Cloud Control for every other type that it can provision. There is no fallback: a
// type that neither can provision is refused before anything is touched.
func (a *Accounts) Providers(clk clock.Clock, responses custom.Responses) *provider.Registry {
	buckets := &pace.Buckets{Clock: clk}
	own := services.Providers(direct.Env{Config: a.Config, Clock: clk})
	for typeName, p := range own {
		own[typeName] = buckets.Wrap(p)
	}
	return &provider.Registry{
		Custom:       &custom.Provider{Functions: a.functions, Topics: a.topics, Responses: responses, Clock: clk},
		Direct:       own,
		Unhandled:    services.Unhandled(),
		CloudControl: buckets.Wrap(provider.Named{Provider: &cloudcontrol.Provider{Client: a.cloudControl, Clock: clk}}),
		Provisionable: func(typeName string) bool {
			t, ok := schema.Lookup(typeName)
			// Cloud Control would hand a nested stack to CloudFormation.
			return ok && t.Provisionable && typeName != "AWS::CloudFormation::Stack"
		},
	}
}

// holder names this execution environment in leases: Lambda gives each one a log stream of its own.
func holder(env Environment) string {
	if env.LogStream != "" {
		return env.FunctionName + "/" + env.LogStream
	}
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return "process/" + hex.EncodeToString(b[:])
}
