package main

import (
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/slipway-cdk/slipway/cli/views"
)

func newStateShow(env *environment, global *globalFlags) *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use:   "show STACK",
		Short: "Show the record of a stack",
		Long: `Show lists the resources and outputs in the record of a stack. With --json it prints the record as
it is stored, property values included. STACK is the stack's name.`,
		Example: `  slipway state show guestbook-web --local
  slipway state show guestbook-web --json --local > record.json`,
		Args:              oneArgument("the name of a STACK"),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			region := ""
			if cmd.Flags().Changed("region") {
				region = global.Region
			}
			return env.withPlane(ctx, global, func(plane Plane) error {
				ref, err := findRecord(ctx, plane.States(), args[0], region)
				if err != nil {
					return err
				}
				if asJSON {
					body, err := storedRecord(ctx, plane.States(), ref)
					if err != nil {
						return err
					}
					return views.WriteStored(env.streams.Out, body)
				}
				rec, _, warnings, err := plane.States().LoadLenient(ctx, ref.Stack, ref.Region)
				if err != nil {
					return err
				}
				env.streams.Diagnostics(warnings)
				var list []views.RecordResource
				for _, id := range slices.Sorted(maps.Keys(rec.Resources)) {
					r := rec.Resources[id]
					list = append(list, views.RecordResource{LogicalID: id, Type: r.ResourceType, PhysicalID: r.PhysicalID, ProvisionedBy: r.ProvisionedBy})
				}
				entry := views.StateEntry{Stack: ref.Stack, Region: ref.Region, LastModified: time.UnixMilli(rec.LastModified).UTC()}
				env.streams.Record(entry, list, rec.Outputs)
				return nil
			})
		},
	}
	jsonFlag(cmd, &asJSON, "print the record as it is stored")
	return cmd
}
