package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/slipway-cdk/slipway/cli/views"
)

func newRunsWatch(env *environment, global *globalFlags) *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use:   "watch RUN",
		Short: "Follow a run to its end",
		Long: `Watch follows a run as the deploy that began it does, and tells how it has ended. Of a run that has ended it
tells the story. Ctrl-C stops watching; the run goes on.

RUN is the id of a run, its beginning or end, or the name of a stack for what is on it now.`,
		Example: `  slipway runs watch guestbook-web --local

  # Wait for the end of a deploy that was begun with --detach
  slipway runs watch 20261129T213124236Z-9d519276 --json --local`,
		Annotations:       map[string]string{jsonShape: jsonResult},
		Args:              oneArgument("a RUN"),
		ValidArgsFunction: completeRuns(env, global),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			return env.withPlane(ctx, global, func(plane Plane) error {
				h, err := resolveRun(ctx, plane.Log(), args[0])
				if err != nil {
					return err
				}
				follower, view := env.follower(plane, "Run "+h.RunID, views.Expectation{})
				root, err := watch(ctx, plane, follower, h.RunID)
				if err != nil {
					if errors.Is(context.Cause(ctx), errInterrupted) {
						env.streams.Notice("No longer watching run %s, which goes on.", h.RunID)
					}
					return err
				}
				return env.report(ctx, plane, nil, root, follower, view, asJSON)
			})
		},
	}
	jsonFlag(cmd, &asJSON, "print one JSON document when the run has ended")
	return cmd
}
