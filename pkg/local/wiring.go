package local

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/cloudcontrol"

	"github.com/slipway-cdk/slipway/pkg/clock"
	"github.com/slipway-cdk/slipway/pkg/provider"
	cc "github.com/slipway-cdk/slipway/pkg/provider/cloudcontrol"
	"github.com/slipway-cdk/slipway/pkg/provider/coverage"
	"github.com/slipway-cdk/slipway/pkg/provider/pace"
	"github.com/slipway-cdk/slipway/pkg/provider/simulated"
	"github.com/slipway-cdk/slipway/pkg/sandbox"
	"github.com/slipway-cdk/slipway/pkg/schema"
	"github.com/slipway-cdk/slipway/pkg/secret"
)

// providers connects the sandbox's Cloud Control, direct API and custom resource handler. The routes are those of AWS: what has a
// direct provider there goes through the direct API, and with a property that this can't set through Cloud Control. The direct API
// also takes what neither can provision.
func providers(endpoint string, clk clock.Clock, wrap func(provider.Provider) provider.Provider) *provider.Registry {
	if wrap == nil {
		wrap = func(p provider.Provider) provider.Provider { return p }
	}
	buckets := &pace.Buckets{Clock: clk}
	shared := sandbox.NewHTTPClient()
	client := func(account, region string) *sandbox.Client {
		return &sandbox.Client{Endpoint: endpoint, Account: account, Region: region, HTTP: shared}
	}
	snapshots := func(p provider.Provider) provider.Provider { return &simulated.Snapshots{Provider: p, Client: client} }
	services := wrap(buckets.Wrap(provider.Named{Provider: snapshots(&simulated.Direct{Client: client, Clock: clk})}))
	covered := coverage.Load()
	direct := map[string]provider.Provider{}
	for _, typeName := range covered.Types() {
		direct[typeName] = services
	}
	return &provider.Registry{
		Custom:    wrap(&simulated.Custom{Client: client}),
		Direct:    direct,
		Unhandled: covered.Unhandled,
		Fallback:  services,
		CloudControl: wrap(buckets.Wrap(provider.Named{Provider: snapshots(&cc.Provider{
			Clock: clk, Client: cc.Cached(cloudControl(endpoint, shared)),
		})})),
		Provisionable: func(typeName string) bool {
			t, ok := schema.Lookup(typeName)
			return ok && t.Provisionable
		},
	}
}

// cloudControl makes the real Cloud Control client for an account and region of the sandbox.
func cloudControl(endpoint string, shared *http.Client) func(account, region string) cc.API {
	return func(account, region string) cc.API {
		return cloudcontrol.New(cloudcontrol.Options{
			Region: region, BaseEndpoint: aws.String(endpoint), HTTPClient: shared,
			// The sandbox takes an access key id that is an account id for that account.
			Credentials: credentials.NewStaticCredentialsProvider(account, "sandbox", ""),
		})
	}
}

// facts answers from the sandbox.
type facts struct{ sandbox *sandbox.Sandbox }

// Zones implements run.Facts: every simulated region has three zones.
func (facts) Zones(_ context.Context, _, region string) ([]string, error) {
	return []string{region + "a", region + "b", region + "c"}, nil
}

// SSMParameter implements run.Facts.
func (f facts) SSMParameter(ctx context.Context, account, region, name string) (string, error) {
	r, err := f.sandbox.Show(ctx, sandbox.Caller{Account: account, Region: region}, "AWS::SSM::Parameter", name)
	if err != nil {
		return "", fmt.Errorf("the simulated account has no such parameter: %w", err)
	}
	value, ok := r.Properties["Value"].(string)
	if !ok {
		return "", errors.New("the simulated parameter has no value")
	}
	return value, nil
}

// Parameter implements secret.Source. Simulated parameters have one version, and none is a SecureString:
// CloudFormation can't make those.
func (f facts) Parameter(ctx context.Context, in secret.Where, name, _ string) (secret.Parameter, error) {
	value, err := f.SSMParameter(ctx, in.Account, in.Region, name)
	return secret.Parameter{Value: value}, missing(err)
}

// SecretString implements secret.Source. A simulated secret has one version, AWSCURRENT.
func (f facts) SecretString(ctx context.Context, in secret.Where, id, stage, version string) (string, error) {
	if version != "" || stage != "" && stage != "AWSCURRENT" {
		return "", fmt.Errorf("the simulated secret has no such version: %w", secret.ErrNotFound)
	}
	text, err := f.sandbox.SecretString(ctx, sandbox.Caller{Account: in.Account, Region: in.Region}, id)
	return text, missing(err)
}

// missing gives a refusal of the sandbox its kind.
func missing(err error) error {
	var refusal *sandbox.Refusal
	if errors.As(err, &refusal) {
		return fmt.Errorf("%w in the simulated account", secret.ErrNotFound)
	}
	return err
}
