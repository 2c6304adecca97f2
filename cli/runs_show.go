package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/slipway-cdk/slipway/cli/views"
	"github.com/slipway-cdk/slipway/pkg/runlog"
)

func newRunsShow(env *environment, global *globalFlags) *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use:   "show RUN",
		Short: "Show one run: its stacks, its operations, how it ended",
		Long: `Show tells how far a run has come or how it has ended: every stack with its operations, their failures, and how
to go on. RUN is the id of a run, its beginning or end, or the name of a stack for its latest run.`,
		Example: `  slipway runs show guestbook-web --local
  slipway runs show 20261129T213124236Z-9d519276 --json --local`,
		Args:              oneArgument("a RUN"),
		ValidArgsFunction: completeRuns(env, global),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			return env.withPlane(ctx, global, func(plane Plane) error {
				h, err := resolveRun(ctx, plane.Log(), args[0])
				if err != nil {
					return err
				}
				doc, err := describeRun(ctx, plane.Log(), h)
				if err != nil {
					return err
				}
				if asJSON {
					return views.WriteJSON(env.streams.Out, doc)
				}
				env.streams.RunDetail(doc)
				return nil
			})
		},
	}
	jsonFlag(cmd, &asJSON, "print the run as one JSON document")
	return cmd
}

// describeRun reads a run, the runs of its stacks and all their operations.
func describeRun(ctx context.Context, log runlog.Store, h runlog.Header) (views.RunDetailDocument, error) {
	stacks := []runlog.Header{h}
	if h.Kind == runlog.KindDeployment {
		list, err := log.ListRuns(ctx, runlog.Filter{Root: h.RunID})
		if err != nil {
			return views.RunDetailDocument{}, fmt.Errorf("listing the runs of %s: %w", h.RunID, err)
		}
		stacks = slices.DeleteFunc(list, func(c runlog.Header) bool { return c.RunID == h.RunID })
	}
	doc := views.RunDetailDocument{RunEntry: runEntry(h, stacks), Runs: []views.StackRunDocument{}, Next: nextStep(h)}
	for _, s := range stacks {
		// A list may lag, a header does not.
		s, err := log.Header(ctx, s.RunID)
		if err != nil {
			return doc, fmt.Errorf("reading the header of run %s: %w", s.RunID, err)
		}
		ops, err := log.Ops(ctx, s.RunID)
		if err != nil {
			return doc, fmt.Errorf("reading the journal of run %s: %w", s.RunID, err)
		}
		doc.Runs = append(doc.Runs, views.NewStackRunDocument(s, ops))
	}
	return doc, nil
}

// nextStep says how to go on from where a run stands.
func nextStep(h runlog.Header) string {
	command := string(h.Command)
	switch {
	case h.Status != runlog.StatusClosed:
		return "`slipway runs watch " + h.RunID + "` follows it, `slipway cancel " + h.RunID + "` ends it."
	case h.Command == runlog.CommandPlan || h.Result == runlog.ResultSucceeded:
		return ""
	case h.Result == runlog.ResultPartial:
		return "Run `slipway " + command + "` again: it takes up what was left behind."
	}
	return "Run `slipway " + command + "` again when the cause is gone: it goes on from what is recorded, and does nothing twice."
}
