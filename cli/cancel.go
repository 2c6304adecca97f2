package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/slipway-cdk/slipway/cli/views"
	"github.com/slipway-cdk/slipway/pkg/diag"
	"github.com/slipway-cdk/slipway/pkg/run"
)

// newCancel is `slipway cancel` and `slipway runs cancel`.
func newCancel(env *environment, global *globalFlags, name string) *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use:   "cancel RUN",
		Short: "End a run: finish what is in flight, begin nothing new",
		Long: `Cancel asks a run to end. What is in flight is brought to its end and saved, nothing new is begun, and nothing is
undone: the next deploy goes on from there. It returns at once; "slipway runs watch" shows the end.

RUN is the id of a run, its beginning or end, or the name of a stack for what is on it now. A deployment is
cancelled with all its stacks.`,
		Example: `  slipway ` + name + ` 20261129T213124236Z-9d519276 --local

  # What is on this stack now
  slipway ` + name + ` guestbook-web --local`,
		Args:              oneArgument("a RUN"),
		ValidArgsFunction: completeRuns(env, global),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			return env.withPlane(ctx, global, func(plane Plane) error {
				h, err := resolveRun(ctx, plane.Log(), args[0])
				if err != nil {
					return err
				}
				by := caller(env.getenv)
				switch err := plane.Cancel(ctx, h.RunID, by); {
				case errors.Is(err, run.ErrEnded):
					return diag.Diagnostics{{
						Severity: diag.Error, Summary: "run " + h.RunID + " can't be cancelled any more", Detail: err.Error(),
						Next: "`slipway runs show " + h.RunID + "` tells how it has ended.",
					}}
				case err != nil:
					return err
				}
				if asJSON {
					return views.WriteJSON(env.streams.Out, views.CancelDocument{RunID: h.RunID, CancelledBy: by})
				}
				env.streams.Text("Run %s is being cancelled: nothing new begins, and what is in flight is brought to its end.", h.RunID)
				env.streams.Notice("`slipway runs watch %s` shows the end.", h.RunID)
				return nil
			})
		},
	}
	jsonFlag(cmd, &asJSON, "print one JSON document")
	return cmd
}
