package main

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/slipway-cdk/slipway/cli/views"
	"github.com/slipway-cdk/slipway/pkg/run"
	"github.com/slipway-cdk/slipway/pkg/runlog"
)

// diffFlags are the flags of diff.
type diffFlags struct {
	app       appFlags
	selection selectionFlags
	values    parameterFlags

	Fail      bool
	Recursive bool
	JSON      bool
}

func newDiff(env *environment, global *globalFlags) *cobra.Command {
	f := &diffFlags{}
	cmd := &cobra.Command{
		Use:   "diff [STACK…]",
		Short: "Show how the app differs from what is deployed",
		Long: `Diff synthesizes the app and compares it with what is deployed, property by property. It changes
nothing, and works on a damaged record with a warning, which a deploy refuses.`,
		Example: `  # What would a deploy of everything change?
  slipway diff --all --local

  # What would it change inside of the nested stacks?
  slipway diff Shop --recursive --local

  # In a pipeline: exit code 1 when there is any difference
  slipway diff --all --fail --json --local`,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			return env.withPlane(ctx, global, func(plane Plane) error {
				d, err := env.desired(ctx, plane, args, *global, f.app, f.selection, f.values)
				if err != nil {
					return err
				}
				p, err := env.plan(ctx, plane, d.asm, d.stacks, change{command: runlog.CommandDeploy, options: run.Options{Lenient: true, Recursive: f.Recursive}, parameters: d.parameters})
				if err != nil {
					return err
				}
				counts := views.CountPlan(p.views)
				if f.JSON {
					doc := views.DiffDocument{Differences: counts.Any(), Stacks: p.views, Diagnostics: p.warnings}
					if err := views.WriteJSON(env.streams.Out, doc); err != nil {
						return err
					}
				} else {
					env.streams.Plan(env.streams.Out, p.views, views.Detail)
				}
				if f.Fail && counts.Any() {
					return exitError{exitFailed}
				}
				return nil
			})
		},
	}
	f.selection.register(cmd.Flags(), "what they depend on")
	grouped(cmd.Flags(), groupRun, func(fs *pflag.FlagSet) {
		fs.BoolVar(&f.Fail, "fail", false, "exit with 1 when there are differences")
		fs.BoolVar(&f.Recursive, "recursive", false, "look into nested stacks as well")
	})
	jsonFlag(cmd, &f.JSON, "print the differences as one JSON document")
	f.values.register(cmd.Flags())
	f.app.register(cmd.Flags())
	return cmd
}
