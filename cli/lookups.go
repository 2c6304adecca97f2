package main

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/slipway-cdk/slipway/pkg/lookup"
	"github.com/slipway-cdk/slipway/pkg/lookup/cloud"
	"github.com/slipway-cdk/slipway/pkg/synth"
)

// How long a command without a plane looks for the account that the app is synthesized for. Outside of EC2 nobody may
// answer for an instance's role, and then the app should not be kept waiting.
const (
	identityPatience = 10 * time.Second
	instancePatience = time.Second
)

// lookups says who answers the app's questions about its account: the simulated AWS with --local, else AWS itself, with the
// caller's own credentials, also where the deploy will run in a control plane. AWS is not asked before the app asks,
// except for the account of the credentials where no plane has told it.
func (env *environment) lookups(opts *synth.Options, plane Plane, g globalFlags) {
	if g.Local {
		opts.Lookup = lookup.Local()
		return
	}
	config := func(ctx context.Context) (aws.Config, error) { return awsConfig(ctx, g) }
	from := cloud.New(cloud.Options{
		Config: config,
		Notice: func(text string) { env.streams.Notice("%s", text) },
	})
	opts.Lookup = from
	if plane == nil {
		opts.Identify = func(ctx context.Context) (account, region string) { return identity(ctx, config, from) }
	}
}

// identity is the account of the credentials here and the configured region, as far as they are known. Without them
// an app can be synthesized all the same; if it asks for an account, the lookup says what is wrong with the credentials.
func identity(ctx context.Context, config func(context.Context) (aws.Config, error), from *cloud.Lookups) (account, region string) {
	cfg, err := config(ctx)
	if err != nil {
		return "", ""
	}
	patience := identityPatience
	if cloud.OfInstance(cfg.Credentials) {
		patience = instancePatience
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if account, _, err = from.Identity(ctx); err != nil {
		return "", cfg.Region
	}
	return account, cfg.Region
}
