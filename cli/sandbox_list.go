package main

import (
	"github.com/spf13/cobra"

	"github.com/slipway-cdk/slipway/cli/views"
)

func newSandboxList(env *environment, global *globalFlags) *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List the resources that live in the simulated AWS",
		Example: `  slipway sandbox list
  slipway sandbox list --json`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			return env.withSimulation(ctx, global, func(_ Plane, sim simulation) error {
				list, err := sim.List(ctx)
				if err != nil {
					return err
				}
				if asJSON {
					if list == nil {
						list = []views.SandboxEntry{}
					}
					return views.WriteJSON(env.streams.Out, list)
				}
				env.streams.SandboxTable(list)
				return nil
			})
		},
	}
	jsonFlag(cmd, &asJSON, "print the resources with their properties as one JSON document")
	return cmd
}
