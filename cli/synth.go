package main

import (
	"github.com/spf13/cobra"

	"github.com/slipway-cdk/slipway/cli/views"
	"github.com/slipway-cdk/slipway/pkg/assembly"
)

// synthFlags are the flags of synth.
type synthFlags struct {
	app  appFlags
	JSON bool
}

func newSynth(env *environment, global *globalFlags) *cobra.Command {
	f := &synthFlags{}
	cmd := &cobra.Command{
		Use:   "synth [STACK]",
		Short: "Run the app and write its cloud assembly",
		Long: `Synth runs the app, answers what it asks about the account, and writes the cloud assembly. With a
STACK it prints that stack's template.`,
		Example: `  # Write cdk.out and list its stacks
  slipway synth

  # Print one template
  slipway synth Prod/Web --app "go run ."`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return oneArgument("a STACK")(cmd, args)
			}
			return nil
		},
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			return env.withOptionalPlane(ctx, global, func(plane Plane) error {
				asm, err := env.synthesize(ctx, plane, f.app, *global)
				if err != nil {
					return err
				}
				opts := assembly.SelectOptions{All: len(args) == 0, Exclusively: true}
				stacks, err := env.chooseStacks(asm, args, opts)
				if err != nil {
					return err
				}
				if err := env.annotations(stacks, f.app); err != nil {
					return err
				}
				switch {
				case f.JSON:
					return views.WriteJSON(env.streams.Out, map[string]any{"directory": asm.Dir, "stacks": stackEntries(stacks)})
				case len(args) == 1 && len(stacks) == 1:
					return views.WriteStored(env.streams.Out, stacks[0].Template)
				}
				env.streams.StackTable(stackEntries(stacks))
				env.streams.Notice("The cloud assembly is in %s.", asm.Dir)
				return nil
			})
		},
	}
	jsonFlag(cmd, &f.JSON, "print directory and stacks as one JSON document")
	f.app.register(cmd.Flags())
	return cmd
}
