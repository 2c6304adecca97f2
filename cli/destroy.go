package main

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/slipway-cdk/slipway/pkg/assembly"
	"github.com/slipway-cdk/slipway/pkg/run"
	"github.com/slipway-cdk/slipway/pkg/runlog"
)

// destroyFlags are the flags of destroy.
type destroyFlags struct {
	app       appFlags
	selection selectionFlags
	change    changeFlags

	RemoveProtection bool
	DeleteRetained   bool
}

func newDestroy(env *environment, global *globalFlags) *cobra.Command {
	f := &destroyFlags{}
	cmd := &cobra.Command{
		Use:   "destroy [STACK…]",
		Short: "Delete the resources of stacks, and their records",
		Long: `Destroy synthesizes the app to know its stacks, shows what would be deleted, asks, and deletes it:
dependents first. Stacks that depend on a named stack are destroyed with it.

What a template says to retain (DeletionPolicy: Retain) leaves the stack and stays in AWS. In the simulated AWS
there is nobody to keep it for, so --local deletes it too and marks it in the plan; --delete-retained=false
keeps it there as well.`,
		Example: `  # Destroy everything that the app has deployed
  slipway destroy --all --local

  # Destroy one stack without asking
  slipway destroy Dev/Web --yes --local`,
		Annotations:       map[string]string{jsonShape: jsonResult},
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			return env.withPlane(ctx, global, func(plane Plane) error {
				asm, err := env.synthesize(ctx, plane, f.app, *global)
				if err != nil {
					return err
				}
				if err := env.ready(ctx, plane); err != nil {
					return err
				}
				// Annotations are about what would be deployed: they don't concern a destroy.
				opts := assembly.SelectOptions{All: f.selection.All, Exclusively: f.selection.Exclusively, Dependents: true}
				stacks, err := env.chooseStacks(asm, args, opts)
				if err != nil {
					return err
				}
				return env.change(ctx, plane, asm, stacks, f.change, change{
					command: runlog.CommandDestroy,
					options: run.Options{
						SkipFinalSnapshot: f.change.SkipFinalSnapshot,
						Concurrency:       f.change.Concurrency, RemoveProtection: f.RemoveProtection,
						DeleteRetained: global.Local && f.DeleteRetained,
					},
				})
			})
		},
	}
	f.selection.register(cmd.Flags(), "what depends on them")
	f.change.register(cmd, "destroy")
	grouped(cmd.Flags(), groupRun, func(fs *pflag.FlagSet) {
		fs.BoolVar(&f.DeleteRetained, "delete-retained", true, "with --local: delete what the templates say to retain, too")
		fs.BoolVar(&f.RemoveProtection, "remove-protection", false, "destroy stacks that have termination protection")
	})
	f.app.register(cmd.Flags())
	return cmd
}
