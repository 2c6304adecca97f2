package main

import (
	"context"
	"os"
	"path/filepath"

	"github.com/slipway-cdk/slipway/pkg/direct"
	"github.com/slipway-cdk/slipway/pkg/local"
	"github.com/slipway-cdk/slipway/pkg/statebucket"
	"github.com/slipway-cdk/slipway/pkg/synth"
)

// openPlane opens the place where runs happen.
func openPlane(ctx context.Context, g globalFlags) (Plane, error) {
	switch {
	case g.Local:
		p, err := local.Open(ctx, local.Options{Dir: g.LocalDir, Region: g.Region, Speed: g.SandboxSpeed, Carrier: carrier(g)})
		if err != nil {
			return nil, err
		}
		return p, nil
	case g.Direct:
		p, err := openDirect(ctx, g)
		if err != nil {
			return nil, err
		}
		return p, nil
	}
	return openRemote(ctx, g)
}

func openDirect(ctx context.Context, g globalFlags) (*direct.Plane, error) {
	cfg, err := awsConfig(ctx, g)
	if err != nil {
		return nil, err
	}
	choice, err := stateBucketChoice(g)
	if err != nil {
		return nil, err
	}
	return direct.Open(ctx, direct.Options{Config: cfg, Bucket: choice, Dir: processDir(), ControlPlane: g.Plane, Carrier: carrier(g)})
}

// stateBucketChoice is what names the state bucket here: the command line, the environment, the app's cdk.json.
func stateBucketChoice(g globalFlags) (statebucket.Choice, error) {
	home, _ := os.UserHomeDir() // without one there is no .cdk.json of the user's
	appContext, err := synth.ProjectContext("", home)
	if err != nil {
		return statebucket.Choice{}, err
	}
	choice := statebucket.Choose(g.StateBucket, os.Getenv, appContext)
	choice.Prefix = g.StatePrefix
	return choice, nil
}

// processDir is where the processes of this user know of each other, and where detached ones leave their logs.
func processDir() string {
	cache, err := os.UserCacheDir()
	if err != nil {
		return ".slipway"
	}
	return filepath.Join(cache, "slipway")
}
