package controlplane

import (
	"context"
	"fmt"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	cc "github.com/aws/aws-sdk-go-v2/service/cloudcontrol"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/ssm"

	"github.com/slipway-cdk/slipway/pkg/provider/cloudcontrol"
	"github.com/slipway-cdk/slipway/pkg/provider/custom"
	"github.com/slipway-cdk/slipway/pkg/secret"
)

// accounts makes the clients that work on a stack's account and region, and keeps them: their connections and
// credentials are shared by the invocations of a function.
type accounts struct {
	base aws.Config
	own  string // the account whose credentials base has

	mu      sync.Mutex
	clients map[place]*cc.Client
}

type place struct{ account, region string }

// config is the base configuration for one account and region. Without a role to assume there are no
// credentials for another account: its clients fail, naming both.
func (a *accounts) config(account, region string) aws.Config {
	cfg := a.base.Copy()
	cfg.Region = region
	if account != a.own {
		cfg.Credentials = aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{}, fmt.Errorf("this control plane has no role in account %s: it works in account %s", account, a.own)
		})
	}
	return cfg
}

// cloudControl is the Client of cloudcontrol.Provider.
func (a *accounts) cloudControl(account, region string) cloudcontrol.API {
	a.mu.Lock()
	defer a.mu.Unlock()
	at := place{account, region}
	client, ok := a.clients[at]
	if !ok {
		if a.clients == nil {
			a.clients = map[place]*cc.Client{}
		}
		client = cc.NewFromConfig(a.config(account, region))
		a.clients[at] = client
	}
	return client
}

// functions and topics are how custom.Provider reaches handlers.
func (a *accounts) functions(account, region string) custom.Functions {
	return lambda.NewFromConfig(a.config(account, region))
}

func (a *accounts) topics(account, region string) custom.Topics {
	return sns.NewFromConfig(a.config(account, region))
}

func (a *accounts) ec2(account, region string) *ec2.Client {
	return ec2.NewFromConfig(a.config(account, region))
}

func (a *accounts) ssm(account, region string) *ssm.Client {
	return ssm.NewFromConfig(a.config(account, region))
}

// ssmAPI and secretsManager are the clients of secret.AWS.
func (a *accounts) ssmAPI(_ context.Context, in secret.Where) (secret.SSMAPI, error) {
	return a.ssm(in.Account, in.Region), nil
}

func (a *accounts) secretsManager(_ context.Context, in secret.Where) (secret.SecretsManagerAPI, error) {
	return secretsmanager.NewFromConfig(a.config(in.Account, in.Region)), nil
}
