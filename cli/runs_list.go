package main

import (
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/slipway-cdk/slipway/cli/views"
	"github.com/slipway-cdk/slipway/pkg/runlog"
)

// runsListFlags are the flags of runs list.
type runsListFlags struct {
	Stack string
	All   bool
	Limit int
	JSON  bool
}

func newRunsList(env *environment, global *globalFlags) *cobra.Command {
	f := &runsListFlags{}
	cmd := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List the runs, newest first",
		Long: `List shows the deploys and destroys, newest first, with the stacks that each is about. With --stack it shows
what was done to one stack, and with --all every run: those of single stacks and those that only plan or cancel, too.`,
		Example: `  slipway runs list --local
  slipway runs list --stack guestbook-web --limit 5 --json --local`,
		Args:              noArguments,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			if f.Limit < 1 {
				return usage("--limit must be at least 1", "")
			}
			return env.withPlane(ctx, global, func(plane Plane) error {
				filter := runlog.Filter{Stack: runlog.StackRef{Name: f.Stack}, Limit: max(listedRuns, f.Limit)}
				all, err := plane.Log().ListRuns(ctx, filter)
				if err != nil {
					return fmt.Errorf("listing the runs: %w", err)
				}
				newestFirst(all)
				children := map[string][]runlog.Header{}
				for _, h := range all {
					if h.Kind == runlog.KindStack {
						children[h.Root] = append(children[h.Root], h)
					}
				}
				entries := []views.RunEntry{}
				for _, h := range all {
					if !f.All && (changesNothing(h) || f.Stack == "" && h.Root != h.RunID) {
						continue
					}
					if len(entries) == f.Limit {
						break
					}
					of := children[h.RunID]
					if h.Kind == runlog.KindStack {
						of = []runlog.Header{h}
					}
					entries = append(entries, runEntry(h, of))
				}
				if f.JSON {
					return views.WriteJSON(env.streams.Out, entries)
				}
				env.streams.RunTable(entries)
				return nil
			})
		},
	}
	grouped(cmd.Flags(), groupSelection, func(fs *pflag.FlagSet) {
		fs.StringVar(&f.Stack, "stack", "", "only the runs of the stack with this `NAME`")
		fs.BoolVar(&f.All, "all", false, "the runs of single stacks and those that only plan, too")
		fs.IntVar(&f.Limit, "limit", 20, "at most `N` runs")
	})
	jsonFlag(cmd, &f.JSON, "print the runs as one JSON document")
	return cmd
}
