package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/slipway-cdk/slipway/cli/views"
	"github.com/slipway-cdk/slipway/pkg/assembly"
	"github.com/slipway-cdk/slipway/pkg/diag"
	"github.com/slipway-cdk/slipway/pkg/run"
	"github.com/slipway-cdk/slipway/pkg/runlog"
	"github.com/slipway-cdk/slipway/pkg/state"
)

// rollbackFlags are the flags of rollback.
type rollbackFlags struct {
	change changeFlags

	RevertFailed bool
	Force        bool
	Orphans      []string
}

func newRollback(env *environment, global *globalFlags) *cobra.Command {
	f := &rollbackFlags{}
	cmd := &cobra.Command{
		Use:   "rollback [STACK…]",
		Short: "Undo what failed deploys have done to stacks",
		Long: `Rollback undoes what deploys that failed or were interrupted have left, newest first: created resources
are deleted, updated ones are updated back, of replaced ones the old half is taken up again. It goes by the
stack's rollback journal, which Slipway and cdkd share, and needs no app. It may be repeated: what has been undone
already is left alone. A deletion can't be undone, and says so.

STACK is the stack's name; without one the only stack that has a journal is meant. What is left behind makes
the result PARTIAL, and what could not be undone stays in the journal for another try.`,
		Example: `  # Undo the last failed deploy of a stack
  slipway rollback guestbook-web --local

  # See what would be undone
  slipway rollback guestbook-web --dry-run --local

  # Also take back what the failed operations may have changed, but leave one resource as it is
  slipway rollback guestbook-web --revert-failed --orphan TableCD117FA1 --yes --local`,
		Annotations:       map[string]string{jsonShape: jsonResult},
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			region := ""
			if cmd.Flags().Changed("region") {
				region = global.Region
			}
			return env.withPlane(ctx, global, func(plane Plane) error {
				stacks, err := journaled(ctx, plane, args, region)
				if err != nil {
					return err
				}
				if len(stacks) == 0 {
					return env.nothingToRollBack(args, f.change.JSON)
				}
				return env.change(ctx, plane, nil, stacks, f.change, change{
					command: runlog.CommandRollback,
					options: run.Options{
						SkipFinalSnapshot: f.change.SkipFinalSnapshot,
						Concurrency:       f.change.Concurrency, RevertFailed: f.RevertFailed, Force: f.Force, Orphans: f.Orphans,
					},
				})
			})
		},
	}
	f.change.register(cmd, "rollback")
	grouped(cmd.Flags(), groupRun, func(fs *pflag.FlagSet) {
		fs.BoolVar(&f.RevertFailed, "revert-failed", false, "also take back what failed operations may have changed")
		fs.StringArrayVar(&f.Orphans, "orphan", nil, "leave the resource with this `LOGICALID` as it is; may be repeated")
		fs.BoolVar(&f.Force, "force", false, "give up what can't be undone because a secret is not kept: it stays as it is")
	})
	return cmd
}

// journaled finds the stacks to roll back: the named ones that have a rollback journal, or the only one that has.
func journaled(ctx context.Context, plane Plane, names []string, region string) ([]*assembly.Stack, error) {
	account, _, err := plane.Identity(ctx)
	if err != nil {
		return nil, err
	}
	if _, ok := plane.(reportingPlane); ok {
		return named(ctx, plane, names, region)
	}
	refs, err := plane.States().ListJournals(ctx)
	if err != nil {
		return nil, err
	}
	byName := map[string][]state.Ref{}
	for _, r := range refs {
		if region == "" || state.Region(region) == r.Region {
			byName[r.Stack] = append(byName[r.Stack], r)
		}
	}
	if len(names) == 0 {
		if len(byName) > 1 {
			return nil, severalJournals(refs)
		}
		for name := range byName {
			names = append(names, name)
		}
	}
	var stacks []*assembly.Stack
	for _, name := range names {
		found := byName[name]
		switch len(found) {
		case 0:
			if _, err := findRecord(ctx, plane.States(), name, region); err != nil {
				return nil, err
			}
			continue // it stands as its last deploy has left it
		case 1:
		default:
			return nil, severalRegions(name, regionsOf(found))
		}
		stacks = append(stacks, &assembly.Stack{
			ID: name, Name: name, DisplayName: name, Account: account, Region: found[0].Region,
		})
	}
	return stacks, nil
}

// named are the stacks with these names, for a plane whose journals can't be looked at from here: the run looks.
func named(ctx context.Context, plane Plane, names []string, region string) ([]*assembly.Stack, error) {
	account, home, err := plane.Identity(ctx)
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		return nil, diag.Diagnostics{{
			Severity: diag.Error, Summary: "no stack was named", Detail: "which stacks can be rolled back is in their records, which callers of a control plane can't read",
			Next: "Name the stacks.",
		}}
	}
	if region == "" {
		region = home
	}
	var stacks []*assembly.Stack
	for _, name := range names {
		stacks = append(stacks, &assembly.Stack{ID: name, Name: name, DisplayName: name, Account: account, Region: region})
	}
	return stacks, nil
}

func severalJournals(refs []state.Ref) error {
	var names []string
	for _, r := range refs {
		names = append(names, fmt.Sprintf("%s (%s)", r.Stack, r.Region))
	}
	return diag.Diagnostics{{
		Severity: diag.Error, Summary: "several stacks can be rolled back", Detail: strings.Join(names, ", "),
		Next: "Name the ones that you mean.",
	}}
}

// nothingToRollBack says so: that is no failure.
func (env *environment) nothingToRollBack(names []string, asJSON bool) error {
	if asJSON {
		return views.WriteJSON(env.streams.Out, views.ResultDocument{Result: runlog.ResultSucceeded, Runs: []views.RunDocument{}})
	}
	if len(names) == 0 {
		env.streams.Text("There is nothing to roll back: no deploy here has failed without being undone.")
		return nil
	}
	env.streams.Text("There is nothing to roll back in %s: its last deploy has succeeded, or was undone.", strings.Join(names, ", "))
	return nil
}
