package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/slipway-cdk/slipway/cli/views"
	"github.com/slipway-cdk/slipway/pkg/diag"
	"github.com/slipway-cdk/slipway/pkg/runlog"
)

func newRuns(env *environment, global *globalFlags) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "runs",
		Short: "List, show, follow and cancel runs",
		Long: `Runs is about the deploys and destroys that are going on and that have ended. One deploy is a run, and so is
what it does to each of its stacks.`,
		Example: `  slipway runs list --local
  slipway runs watch guestbook-web --local`,
	}
	subcommandsOnly(cmd)
	cmd.AddCommand(newRunsList(env, global), newRunsShow(env, global), newRunsWatch(env, global), newCancel(env, global, "runs cancel"), newRunsCarry(env, global))
	return cmd
}

// listedRuns is how many runs are read to find one by a part of its id, or the stacks of those that are listed.
const listedRuns = 500

// resolveRun finds the run that a word means: its id, the beginning or the end of it, or the name of a stack for the
// run that is on it now or was the last.
func resolveRun(ctx context.Context, log runlog.Store, word string) (runlog.Header, error) {
	h, err := log.Header(ctx, word)
	if err == nil || !errors.Is(err, runlog.ErrNotFound) {
		return h, err
	}
	of, err := log.ListRuns(ctx, runlog.Filter{Stack: runlog.StackRef{Name: word}, Limit: listedRuns})
	if err != nil {
		return h, fmt.Errorf("listing the runs of stack %s: %w", word, err)
	}
	if of = changes(of); len(of) > 0 {
		for _, h := range of {
			if h.Status != runlog.StatusClosed && h.Status != runlog.StatusNew {
				return h, nil
			}
		}
		return of[0], nil
	}
	all, err := log.ListRuns(ctx, runlog.Filter{Limit: listedRuns})
	if err != nil {
		return h, fmt.Errorf("listing the runs: %w", err)
	}
	var found []runlog.Header
	for _, h := range changes(all) {
		if strings.HasPrefix(h.RunID, word) || strings.HasSuffix(h.RunID, word) {
			found = append(found, h)
		}
	}
	// The runs of a deployment's stacks begin like its own.
	if roots := slices.DeleteFunc(slices.Clone(found), func(h runlog.Header) bool { return h.Kind != runlog.KindDeployment }); len(roots) == 1 {
		if !slices.ContainsFunc(found, func(h runlog.Header) bool { return h.Root != roots[0].RunID }) {
			found = roots
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return runlog.Header{}, diag.Diagnostics{{
			Severity: diag.Error, Summary: fmt.Sprintf("no run %q", word),
			Detail: "there is no run with that id, and no run of a stack with that name",
			Next:   "`slipway runs list` shows the runs.",
		}}
	}
	var ids []string
	for _, h := range found[:min(len(found), 5)] {
		ids = append(ids, h.RunID)
	}
	return runlog.Header{}, diag.Diagnostics{{
		Severity: diag.Error, Summary: fmt.Sprintf("%q means several runs", word), Detail: strings.Join(ids, ", "),
		Next: "Give more of the id.",
	}}
}

// changes leaves out the runs that change no stack themselves.
func changes(list []runlog.Header) []runlog.Header {
	return slices.DeleteFunc(slices.Clone(list), changesNothing)
}

// changesNothing: a run that only plans, or only cancels another one.
func changesNothing(h runlog.Header) bool {
	return h.Command == runlog.CommandPlan || h.Command == runlog.CommandCancel
}

// newestFirst sorts runs by when they were asked for.
func newestFirst(list []runlog.Header) {
	slices.SortStableFunc(list, func(a, b runlog.Header) int {
		return cmp.Or(b.CreatedAt.Compare(a.CreatedAt), strings.Compare(b.RunID, a.RunID))
	})
}

// firstBegunFirst sorts the runs of a deployment's stacks; those that have not begun come last.
func firstBegunFirst(list []runlog.Header) {
	slices.SortStableFunc(list, func(a, b runlog.Header) int {
		if a.StartedAt.IsZero() != b.StartedAt.IsZero() {
			return b.StartedAt.Compare(a.StartedAt)
		}
		return cmp.Or(a.StartedAt.Compare(b.StartedAt), strings.Compare(a.Stack.Name, b.Stack.Name))
	})
}

// runEntry describes a run in a list. children are the runs of its stacks.
func runEntry(h runlog.Header, children []runlog.Header) views.RunEntry {
	e := views.NewRunEntry(h)
	firstBegunFirst(children)
	for _, c := range children {
		e.Stacks = append(e.Stacks, c.Stack.Name)
	}
	if h.Status != runlog.StatusClosed {
		e.Counts = runlog.Counts{}
		for _, c := range children {
			e.Counts = views.AddCounts(e.Counts, c.Counts)
		}
	}
	return e
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// completeRuns completes the ids of the newest runs, and the names of the stacks that they are on.
func completeRuns(env *environment, global *globalFlags) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
		var list []cobra.Completion
		if len(args) > 0 || global.check(env.getenv) != nil || global.Local && !exists(global.LocalDir) {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		err := env.withPlane(cmd.Context(), global, func(plane Plane) error {
			runs, err := plane.Log().ListRuns(cmd.Context(), runlog.Filter{Limit: 50})
			for _, h := range changes(runs) {
				if strings.HasPrefix(h.RunID, word) {
					list = append(list, cobra.CompletionWithDesc(h.RunID, views.RunSummary(h)))
				}
			}
			return err
		})
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		return list, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
	}
}
