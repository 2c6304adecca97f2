package main

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/slipway-cdk/slipway/cli/views"
	"github.com/slipway-cdk/slipway/pkg/diag"
	"github.com/slipway-cdk/slipway/pkg/sandbox"
)

func newSandboxReset(env *environment, global *globalFlags) *cobra.Command {
	var yes, asJSON bool
	cmd := &cobra.Command{
		Use:   "reset",
		Short: "Empty the simulated AWS",
		Long: `Reset removes every resource of the simulated AWS, as if an account had been closed. The records of the
stacks stay as they are.`,
		Example: `  slipway sandbox reset --yes`,
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			return env.withSimulation(ctx, global, func(sim simulation) error {
				if !yes {
					if !env.streams.InTerminal {
						return diag.Diagnostics{{
							Severity: diag.Error,
							Summary:  "approval is needed, and nobody can be asked",
							Detail:   "standard input is not a terminal, and every resource of the simulated AWS would go",
							Next:     "Repeat the command with --yes.",
						}}
					}
					ok, err := env.streams.Ask(ctx, "Remove every resource of the simulated AWS?")
					if err != nil {
						return err
					}
					if !ok {
						return diag.Errorf("nothing was removed", "the reset was not approved")
					}
				}
				list, err := sim.List(ctx, sandbox.Filter{})
				if err != nil {
					return err
				}
				if err := sim.Reset(ctx); err != nil {
					return err
				}
				if asJSON {
					return views.WriteJSON(env.streams.Out, map[string]int{"removed": len(list)})
				}
				env.streams.Text("The simulated AWS is empty. Resources removed: %d.", len(list))
				return nil
			})
		},
	}
	grouped(cmd.Flags(), groupRun, func(fs *pflag.FlagSet) {
		fs.BoolVarP(&yes, "yes", "y", false, "don't ask")
	})
	jsonFlag(cmd, &asJSON, "print what was removed as one JSON document")
	return cmd
}
