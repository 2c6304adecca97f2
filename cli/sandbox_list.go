package main

import (
	"github.com/spf13/cobra"

	"github.com/slipway-cdk/slipway/cli/views"
	"github.com/slipway-cdk/slipway/pkg/sandbox"
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
			return env.withSimulation(ctx, global, func(sim simulation) error {
				list, err := sim.List(ctx, sandbox.Filter{})
				if err != nil {
					return err
				}
				if asJSON {
					return views.WriteJSON(env.streams.Out, sandboxEntries(list))
				}
				env.streams.SandboxTable(sandboxEntries(list))
				return nil
			})
		},
	}
	jsonFlag(cmd, &asJSON, "print the resources with their properties as one JSON document")
	return cmd
}
