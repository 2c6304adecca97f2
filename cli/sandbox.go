package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/slipway-cdk/slipway/cli/views"
	"github.com/slipway-cdk/slipway/pkg/diag"
	"github.com/slipway-cdk/slipway/pkg/sandbox"
)

// simulation is what the sandbox commands need of the simulated AWS.
type simulation interface {
	List(ctx context.Context, f sandbox.Filter) ([]sandbox.Resource, error)
	Reset(ctx context.Context) error
}

var _ simulation = (*sandbox.Sandbox)(nil)

// simulationOf returns what a plane deploys to, if that is simulated.
func simulationOf(p Plane) (simulation, bool) {
	s, ok := p.(interface{ Sandbox() *sandbox.Sandbox })
	if !ok {
		return nil, false
	}
	return s.Sandbox(), true
}

// sandboxEntries are resources as they are printed.
func sandboxEntries(list []sandbox.Resource) []views.SandboxEntry {
	entries := []views.SandboxEntry{}
	for _, r := range list {
		e := views.SandboxEntry{Identifier: r.Identifier, Type: r.Type, Account: r.Account, Region: r.Region, Properties: r.Properties}
		if e.Properties == nil {
			e.Properties = map[string]any{}
		}
		entries = append(entries, e)
	}
	return entries
}

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
func (env *environment) withSimulation(ctx context.Context, global *globalFlags, f func(simulation) error) error {
	g := *global
	g.Local = true
	if err := g.check(env.getenv); err != nil {
		return err
	}
	return env.withPlane(ctx, &g, func(plane Plane) error {
		s, ok := env.simulation(plane)
		if !ok {
			return diag.Errorf("the simulated AWS can't be looked into", "what was opened is not simulated")
		}
		return f(s)
	})
}
