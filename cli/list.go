package main

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/slipway-cdk/slipway/cli/views"
	"github.com/slipway-cdk/slipway/pkg/assembly"
)

// listFlags are the flags of list.
type listFlags struct {
	app  appFlags
	Long bool
	JSON bool
}

func newList(env *environment, global *globalFlags) *cobra.Command {
	f := &listFlags{}
	cmd := &cobra.Command{
		Use:     "list [STACK…]",
		Aliases: []string{"ls"},
		Short:   "List the app's stacks",
		Long: `List synthesizes the app and lists its stacks, dependencies first. It shows what the app defines;
"slipway state list" shows what is deployed.`,
		Example: `  slipway list
  slipway list --long "Prod/*"`,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			return env.withOptionalPlane(ctx, global, func(plane Plane) error {
				asm, err := env.synthesize(ctx, plane, f.app, *global)
				if err != nil {
					return err
				}
				stacks := asm.Stacks
				if len(args) > 0 {
					if stacks, _, err = assembly.Select(asm, args, assembly.SelectOptions{Exclusively: true}); err != nil {
						return err
					}
				}
				switch entries := stackEntries(stacks); {
				case f.JSON:
					return views.WriteJSON(env.streams.Out, entries)
				case f.Long:
					env.streams.StackTable(entries)
				default:
					env.streams.StackNames(entries)
				}
				return nil
			})
		},
	}
	grouped(cmd.Flags(), groupOutput, func(fs *pflag.FlagSet) {
		fs.BoolVarP(&f.Long, "long", "l", false, "with names, environments and dependencies")
	})
	jsonFlag(cmd, &f.JSON, "print the stacks as one JSON document")
	f.app.register(cmd.Flags())
	return cmd
}
