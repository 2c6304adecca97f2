package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/slipway-cdk/slipway/cli/views"
	"github.com/slipway-cdk/slipway/pkg/diag"
)

// simulation is what the sandbox commands need of the simulated AWS.
type simulation interface {
	// List returns every resource that lives there.
	List(ctx context.Context) ([]views.SandboxEntry, error)
	// Reset empties it and returns how many resources there were.
	Reset(ctx context.Context) (int, error)
}

// simulated is a Plane whose AWS is simulated.
type simulated interface{ Simulation() simulation }

func newSandbox(env *environment, global *globalFlags) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "sandbox",
		Short: "Look into the simulated AWS of --local",
		Long:  "Sandbox looks into the simulated AWS that --local deploys to: what lives there, as AWS would show it.",
		Example: `  slipway sandbox list
  slipway sandbox show AWS::SQS::Queue my-queue
  slipway sandbox reset --yes`,
	}
	subcommandsOnly(cmd)
	cmd.AddCommand(newSandboxList(env, global), newSandboxShow(env, global), newSandboxReset(env, global))
	return cmd
}

// withSimulation opens the simulated AWS. There is only one, so --local goes without saying.
func (env *environment) withSimulation(ctx context.Context, global *globalFlags, f func(Plane, simulation) error) error {
	g := *global
	g.Local = true
	if err := g.check(env.getenv); err != nil {
		return err
	}
	return env.withPlane(ctx, &g, func(plane Plane) error {
		s, ok := plane.(simulated)
		if !ok {
			return diag.Errorf("the simulated AWS can't be looked into", "what was opened is not simulated")
		}
		return f(plane, s.Simulation())
	})
}
