package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/slipway-cdk/slipway/cli/views"
	"github.com/slipway-cdk/slipway/pkg/diag"
	"github.com/slipway-cdk/slipway/pkg/runlog"
	"github.com/slipway-cdk/slipway/pkg/state"
)

// eventsFlags are the flags of events.
type eventsFlags struct {
	Run  string
	JSON bool
}

func newEvents(env *environment, global *globalFlags) *cobra.Command {
	f := &eventsFlags{}
	cmd := &cobra.Command{
		Use:   "events STACK",
		Short: "Show what a run has done to a stack",
		Long: `Events shows the story of a stack's latest deploy or destroy, or of the run that --run names.
STACK is the stack's name.`,
		Example: `  slipway events guestbook-web --local
  slipway events guestbook-web --run 20261129T213124236Z-9d519276 --json --local`,
		Args:              oneArgument("the name of a STACK"),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			// Only a region that was asked for narrows the search: the stack may name its own.
			region := ""
			if cmd.Flags().Changed("region") {
				region = global.Region
			}
			return env.withPlane(ctx, global, func(plane Plane) error {
				header, earlier, err := findRun(ctx, plane.Log(), args[0], region, f.Run)
				if err != nil {
					return err
				}
				list, err := plane.Log().Events(ctx, header.RunID, "")
				if err != nil {
					return fmt.Errorf("reading the events of run %s: %w", header.RunID, err)
				}
				views.SortEvents(list)
				if f.JSON {
					entries := []views.EventEntry{}
					for _, e := range list {
						entries = append(entries, views.EventEntry{Event: e, LogicalID: e.LogicalID})
					}
					return views.WriteJSON(env.streams.Out, entries)
				}
				env.streams.RunHeading(header)
				env.streams.EventTable(list)
				for i, h := range earlier {
					if i == 0 {
						env.streams.Notice("Other runs of this stack, for --run:")
					}
					env.streams.Notice("  %s  %s  %s", h.RunID, h.Command, h.Result)
				}
				return nil
			})
		},
	}
	grouped(cmd.Flags(), groupSelection, func(fs *pflag.FlagSet) {
		fs.StringVar(&f.Run, "run", "", "show the run with this `ID`")
	})
	jsonFlag(cmd, &f.JSON, "print the events as one JSON document")
	return cmd
}

// maxOtherRuns is how many other runs of a stack are named.
const maxOtherRuns = 5

// findRun returns the run that is asked for, and the next other ones of the stack, newest first.
func findRun(ctx context.Context, log runlog.Store, stack, region, runID string) (runlog.Header, []runlog.Header, error) {
	runs, err := log.ListRuns(ctx, runlog.Filter{Stack: runlog.StackRef{Name: stack, Region: state.Region(region)}})
	if err != nil {
		return runlog.Header{}, nil, fmt.Errorf("listing the runs of stack %s: %w", stack, err)
	}
	var changes []runlog.Header
	regions := map[string]bool{}
	for _, h := range runs {
		if h.Command != runlog.CommandPlan {
			changes = append(changes, h)
			regions[h.Stack.Region] = true
		}
	}
	if runID != "" {
		h, err := log.Header(ctx, runID)
		if errors.Is(err, runlog.ErrNotFound) || err == nil && h.Stack.Name != stack {
			return h, nil, diag.Diagnostics{{
				Severity: diag.Error, Stack: stack,
				Summary: fmt.Sprintf("stack %q has no run %q", stack, runID),
				Next:    "`slipway events " + stack + "` shows the latest run and names the others.",
			}}
		}
		return h, nil, err
	}
	if len(changes) == 0 {
		return runlog.Header{}, nil, diag.Diagnostics{{
			Severity: diag.Error,
			Summary:  fmt.Sprintf("no run of stack %q", stack),
			Detail:   "it has not been deployed here" + inRegion(region),
			Next:     "`slipway state list` shows the stacks that have been deployed.",
		}}
	}
	if len(regions) > 1 {
		var names []string
		for _, h := range changes {
			if regions[h.Stack.Region] {
				names = append(names, h.Stack.Region)
				delete(regions, h.Stack.Region)
			}
		}
		return runlog.Header{}, nil, severalRegions(stack, names)
	}
	return changes[0], changes[1:min(len(changes), maxOtherRuns+1)], nil
}
