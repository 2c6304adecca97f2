package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/slipway-cdk/slipway/cli/views"
	"github.com/slipway-cdk/slipway/pkg/diag"
	"github.com/slipway-cdk/slipway/pkg/sandbox"
)

func newSandboxShow(env *environment, global *globalFlags) *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use:   "show TYPE IDENTIFIER",
		Short: "Show one resource of the simulated AWS",
		Long:  "Show prints one resource as the simulated AWS would return it: a JSON document.",
		Example: `  slipway sandbox show AWS::SQS::Queue https://sqs.us-east-1.amazonaws.com/111111111111/orders
  slipway sandbox show AWS::S3::Bucket my-bucket`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 2 {
				return usage(cmd.CommandPath()+" needs a TYPE and an IDENTIFIER", "`slipway sandbox list` shows both.")
			}
			return nil
		},
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			return env.withSimulation(ctx, global, func(sim simulation) error {
				region := ""
				if cmd.Flags().Changed("region") {
					region = global.Region
				}
				list, err := sim.List(ctx, sandbox.Filter{Region: region, Type: args[0], Identifier: args[1]})
				if err != nil {
					return err
				}
				switch len(list) {
				case 1:
					return views.WriteJSON(env.streams.Out, sandboxEntries(list)[0])
				case 0:
					return diag.Diagnostics{{
						Severity: diag.Error,
						Summary:  fmt.Sprintf("no %s %q in the simulated AWS", args[0], args[1]),
						Next:     "`slipway sandbox list` shows what is there.",
					}}
				default:
					return diag.Diagnostics{{
						Severity: diag.Error,
						Summary:  fmt.Sprintf("%d resources are called %q in the simulated AWS", len(list), args[1]),
						Detail:   "an identifier is unique in one account and region only",
						Next:     "Say which region with --region; `slipway sandbox list --json` shows all.",
					}}
				}
			})
		},
	}
	jsonFlag(cmd, &asJSON, "print a JSON document (what it does anyway)")
	return cmd
}
