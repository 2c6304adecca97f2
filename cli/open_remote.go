package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"

	"github.com/slipway-cdk/slipway/pkg/controlplane"
	"github.com/slipway-cdk/slipway/pkg/diag"
	"github.com/slipway-cdk/slipway/pkg/remote"
)

// openRemote connects to the control plane that g names, in the account and region of the AWS configuration here.
func openRemote(ctx context.Context, g globalFlags) (Plane, error) {
	cfg, err := awsConfig(ctx, g)
	if err != nil {
		return nil, err
	}
	if err := reachable(ctx, cfg); err != nil {
		return nil, err
	}
	p, err := remote.Open(ctx, cfg, g.Plane)
	switch {
	case errors.Is(err, controlplane.ErrNoPlane):
		return nil, noControlPlane("there is no control plane " + g.Plane + " in this account in " + cfg.Region)
	case err != nil:
		return nil, fmt.Errorf("looking for the control plane %s: %w", g.Plane, err)
	}
	return p, nil
}

// awsConfig is the caller's configuration of AWS: environment, profile, instance, as every tool for AWS finds it.
func awsConfig(ctx context.Context, g globalFlags) (aws.Config, error) {
	var opts []func(*config.LoadOptions) error
	if g.Region != "" {
		opts = append(opts, config.WithRegion(g.Region))
	}
	if g.Profile != "" {
		opts = append(opts, config.WithSharedConfigProfile(g.Profile))
	}
	cfg, err := config.LoadDefaultConfig(ctx, opts...)
	if err != nil {
		return aws.Config{}, fmt.Errorf("reading the AWS configuration: %w", err)
	}
	return cfg, nil
}

// reachable tells whether there is an account to look for a control plane in.
func reachable(ctx context.Context, cfg aws.Config) error {
	if cfg.Region == "" {
		return noControlPlane("no AWS region is configured here, so there is nowhere to look for one")
	}
	if cfg.Credentials == nil {
		return noControlPlane("no AWS credentials are configured here, so there is nowhere to look for one")
	}
	if _, err := cfg.Credentials.Retrieve(ctx); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return noControlPlane("no AWS credentials can be had here, so there is nowhere to look for one")
	}
	return nil
}

// noControlPlane is the answer to a command that was not told where to run.
func noControlPlane(why string) error {
	return diag.Diagnostics{{
		Severity: diag.Error,
		Summary:  "no control plane is recorded here",
		Detail:   why + "; a deploy runs in a control plane in your AWS account, with --direct against your account from this machine, or with --local against a simulated AWS",
		Next:     "`slipway bootstrap` makes a control plane. Add --direct to deploy to AWS with your own credentials, or --local (or set SLIPWAY_LOCAL=1) to use the simulated AWS: it needs no account.",
	}}
}
