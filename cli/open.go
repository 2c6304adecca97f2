package main

import (
	"context"

	"github.com/slipway-cdk/slipway/pkg/local"
)

// openPlane opens the place where runs happen.
func openPlane(ctx context.Context, g globalFlags) (Plane, error) {
	if !g.Local {
		return openRemote(ctx, g)
	}
	p, err := local.Open(ctx, local.Options{Dir: g.LocalDir, Region: g.Region, Speed: g.SandboxSpeed, Carrier: carrier(g)})
	if err != nil {
		return nil, err
	}
	return p, nil
}
