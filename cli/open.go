package main

import (
	"context"

	"github.com/slipway-cdk/slipway/pkg/diag"
	"github.com/slipway-cdk/slipway/pkg/local"
)

// openPlane opens the place where runs happen.
func openPlane(ctx context.Context, g globalFlags) (Plane, error) {
	if !g.Local {
		return nil, noControlPlane()
	}
	p, err := local.Open(ctx, local.Options{Dir: g.LocalDir, Region: g.Region, Speed: g.SandboxSpeed, Carrier: carrier(g)})
	if err != nil {
		return nil, err
	}
	return p, nil
}

// noControlPlane is the answer to a command that was not told where to run.
func noControlPlane() error {
	return diag.Diagnostics{{
		Severity: diag.Error,
		Summary:  "no control plane is recorded here",
		Detail:   "a deploy runs in a control plane in your AWS account, with --direct against your account from this machine, or with --local against a simulated AWS; the first two are not available in this version",
		Next:     "Add --local (or set SLIPWAY_LOCAL=1) to use the simulated AWS: it needs no account.",
	}}
}
