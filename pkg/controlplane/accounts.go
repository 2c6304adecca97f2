package controlplane

import (
	"context"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	cc "github.com/aws/aws-sdk-go-v2/service/cloudcontrol"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/ssm"

	"github.com/slipway-cdk/slipway/pkg/asset"
	"github.com/slipway-cdk/slipway/pkg/clock"
	"github.com/slipway-cdk/slipway/pkg/provider/cloudcontrol"
	"github.com/slipway-cdk/slipway/pkg/provider/custom"
	"github.com/slipway-cdk/slipway/pkg/run"
	"github.com/slipway-cdk/slipway/pkg/secret"
)

// Accounts makes the clients that work on a stack's account and region, and keeps them: their connections are shared
// by the invocations of a function. Whose credentials a call has is decided when it is made, by run.Acting in its
// context: the role that the stack was given, or the process's own in its own account. A stack of another account
// without a role is refused. It is safe for concurrent use.
type Accounts struct {
	Base aws.Config
	Own  string // the account whose credentials Base has
	// Clock waits for roles that were made a moment ago; clock.Real without it.
	Clock clock.Clock

	mu      sync.Mutex
	clients map[place]*cc.Client

	once  sync.Once
	roles *sessions
}

var _ run.Roles = (*Accounts)(nil)

type place struct{ account, region string }

// Config is the configuration for clients of one account and region.
func (a *Accounts) Config(account, region string) aws.Config {
	cfg := a.Base.Copy()
	cfg.Region = region
	// It is asked for every call, and keeps nothing itself: one client serves many roles.
	cfg.Credentials = aws.CredentialsProviderFunc(func(ctx context.Context) (aws.Credentials, error) {
		return a.credentials(ctx, account)
	})
	return cfg
}

// Facts reads from AWS what a plan needs to know.
func (a *Accounts) Facts() run.Facts { return facts{aws: a} }

// Secrets resolves dynamic references.
func (a *Accounts) Secrets() secret.Source {
	return &secret.AWS{SSM: a.ssmAPI, SecretsManager: a.secretsManager}
}

// AssetBuckets stores assets in the buckets of the stacks' accounts.
func (a *Accounts) AssetBuckets() asset.Bucket { return &assetBuckets{aws: a} }

// cloudControl is the Client of cloudcontrol.Provider.
func (a *Accounts) cloudControl(account, region string) cloudcontrol.API {
	a.mu.Lock()
	defer a.mu.Unlock()
	at := place{account, region}
	client, ok := a.clients[at]
	if !ok {
		if a.clients == nil {
			a.clients = map[place]*cc.Client{}
		}
		client = cc.NewFromConfig(a.Config(account, region))
		a.clients[at] = client
	}
	return client
}

// functions and topics are how custom.Provider reaches handlers.
func (a *Accounts) functions(account, region string) custom.Functions {
	return lambda.NewFromConfig(a.Config(account, region))
}

func (a *Accounts) topics(account, region string) custom.Topics {
	return sns.NewFromConfig(a.Config(account, region))
}

func (a *Accounts) ec2(account, region string) *ec2.Client {
	return ec2.NewFromConfig(a.Config(account, region))
}

func (a *Accounts) ssm(account, region string) *ssm.Client {
	return ssm.NewFromConfig(a.Config(account, region))
}

// ssmAPI and secretsManager are the clients of secret.AWS.
func (a *Accounts) ssmAPI(_ context.Context, in secret.Where) (secret.SSMAPI, error) {
	return a.ssm(in.Account, in.Region), nil
}

func (a *Accounts) secretsManager(_ context.Context, in secret.Where) (secret.SecretsManagerAPI, error) {
	return secretsmanager.NewFromConfig(a.Config(in.Account, in.Region)), nil
}
