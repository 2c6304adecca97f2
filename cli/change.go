package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/slipway-cdk/slipway/cli/views"
	"github.com/slipway-cdk/slipway/pkg/assembly"
	"github.com/slipway-cdk/slipway/pkg/diag"
	"github.com/slipway-cdk/slipway/pkg/diff"
	"github.com/slipway-cdk/slipway/pkg/plan"
	"github.com/slipway-cdk/slipway/pkg/run"
	"github.com/slipway-cdk/slipway/pkg/runlog"
)

// defaultConcurrency is how many operations are in one wave unless told otherwise.
const defaultConcurrency = 40

// changeFlags are the flags that deploy, destroy and rollback share.
type changeFlags struct {
	Yes    bool
	DryRun bool
	// SkipFinalSnapshot deletes what a policy says to take a snapshot of without one.
	SkipFinalSnapshot bool
	Concurrency       int
	WaitForLock       time.Duration
	Detach            bool
	JSON              bool
	JSONInto          string
}

func (f *changeFlags) register(cmd *cobra.Command, verb string) {
	grouped(cmd.Flags(), groupRun, func(fs *pflag.FlagSet) {
		fs.BoolVarP(&f.Yes, "yes", "y", false, "don't ask")
		fs.BoolVar(&f.DryRun, "dry-run", false, "stop after the plan is shown")
		fs.BoolVar(&f.SkipFinalSnapshot, "skip-final-snapshot", false, "delete without the final snapshots that policies ask for")
		fs.IntVar(&f.Concurrency, "concurrency", defaultConcurrency, "at most `N` operations of a stack at once")
	})
	grouped(cmd.Flags(), groupRun, func(fs *pflag.FlagSet) {
		fs.DurationVar(&f.WaitForLock, "wait-for-lock", 0, "wait for up to `TIME` (10m) while somebody else works on a stack, in the order of arrival")
		fs.BoolVar(&f.Detach, "detach", false, "return when the run is started; slipway runs watch follows it")
	})
	jsonFlag(cmd, &f.JSON, "print one JSON document when the "+verb+" has ended")
	grouped(cmd.Flags(), groupOutput, func(fs *pflag.FlagSet) {
		fs.StringVar(&f.JSONInto, "json-into", "", "write every event as a line of JSON into `FILE`")
	})
}

// change is one deploy, destroy or rollback to carry out.
type change struct {
	command    runlog.Command
	options    run.Options
	parameters map[string]map[string]string // by Stack.ID
}

// words are how a command is spoken of.
func (c change) words() (going, done, question string) {
	switch c.command {
	case runlog.CommandDestroy:
		return "Destroying", "destroyed", "Destroy this?"
	case runlog.CommandRollback:
		return "Rolling back", "rolled back", "Undo this?"
	}
	return "Deploying", "deployed", "Deploy these changes?"
}

// change plans, shows the plan, asks, carries it out under the reader's eyes and reports. It returns nil, an
// exitError when everything has been said, or what refused the command.
func (env *environment) change(ctx context.Context, plane Plane, asm *assembly.Assembly, stacks []*assembly.Stack, f changeFlags, c change) error {
	if f.Concurrency < 1 {
		return usage("--concurrency must be at least 1", "")
	}
	if f.WaitForLock < 0 || f.WaitForLock > run.MaxWaitForLock*time.Second {
		return usage("--wait-for-lock must be between 0 and 2h", "")
	}
	if f.Detach && f.JSONInto != "" {
		return usage("--json-into needs the command to stay until the run has ended", "Leave out --detach.")
	}
	c.options.WaitForLock = int((f.WaitForLock + time.Second - 1) / time.Second)
	events, err := openEvents(f.JSONInto)
	if err != nil {
		return err
	}
	defer events.close() //nolint:errcheck // follow closes it and tells; a command that ends before has written nothing

	p, err := env.plan(ctx, plane, asm, stacks, c)
	if err != nil {
		return err
	}
	counts := views.CountPlan(p.views)
	if !f.JSON {
		env.streams.Plan(env.streams.Out, p.views, views.Summary)
	}
	if f.DryRun {
		if f.JSON {
			return views.WriteJSON(env.streams.Out, views.ResultDocument{Result: runlog.ResultSucceeded, Runs: []views.RunDocument{}, Plan: p.views})
		}
		return nil
	}
	// A plan without changes is carried out too, without asking: outputs are resolved again, and nothing else
	// can come of it because the run is bound to this plan.
	if counts.Any() && !f.Yes {
		if err := env.approve(ctx, p, f, c); err != nil {
			return err
		}
	}
	sub := run.Submission{Command: c.command, Options: c.options, Parameters: c.parameters, PlanRun: p.runID, Detach: f.Detach, Caller: caller(env.getenv)}
	if f.Yes && f.WaitForLock > 0 {
		// The run that it waits for will change the record, and nobody has approved this very plan.
		sub.PlanRun = ""
	}
	runID, err := plane.Submit(ctx, asm, stacks, sub)
	if err != nil {
		return err
	}
	if p, ok := plane.(reportingPlane); ok {
		if link := p.Link(runID, c.command); link != "" {
			env.streams.Notice("Run %s: %s", runID, link)
		}
	}
	if f.Detach {
		var names []string
		for _, s := range stacks {
			names = append(names, s.Name)
		}
		return env.detached(runID, c, f, names)
	}
	return env.follow(ctx, plane, stacks, runID, p, f, c, events)
}

// approve asks. Where nobody can answer it says what would have needed approval.
func (env *environment) approve(ctx context.Context, p planned, f changeFlags, c change) error {
	_, done, question := c.words()
	counts := views.CountPlan(p.views)
	if f.JSON {
		env.streams.Plan(env.streams.Err, p.views, views.Summary)
	}
	if !env.streams.InTerminal {
		d := diag.Diagnostic{
			Severity: diag.Error,
			Summary:  "approval is needed, and nobody can be asked",
			Detail:   fmt.Sprintf("standard input is not a terminal, and the plan is not empty: %s", counts),
			Next:     "Read the plan above, then repeat the command with --yes.",
		}
		if !f.JSON {
			return diag.Diagnostics{d}
		}
		list := diag.Diagnostics{d}
		env.streams.Diagnostics(list)
		doc := views.ResultDocument{Result: runlog.ResultFailed, Runs: []views.RunDocument{}, Plan: p.views, Error: views.FirstError(list), Diagnostics: list}
		if err := views.WriteJSON(env.streams.Out, doc); err != nil {
			return err
		}
		return exitError{exitFailed}
	}
	yes, err := env.streams.Ask(ctx, question)
	if err != nil {
		return err
	}
	if !yes {
		return diag.Errorf("nothing was "+done, "the plan was not approved")
	}
	return nil
}

// planned is a plan run and what it has found.
type planned struct {
	runID    string
	views    []plan.StackView
	warnings diag.Diagnostics
}

// plan computes the plan of a command and prints its warnings. What refuses the command is returned.
func (env *environment) plan(ctx context.Context, plane Plane, asm *assembly.Assembly, stacks []*assembly.Stack, c change) (planned, error) {
	env.streams.Working("Planning " + subject(stacks))
	runID, err := plane.Submit(ctx, asm, stacks, run.Submission{Command: runlog.CommandPlan, Of: c.command, Options: c.options, Parameters: c.parameters, Caller: caller(env.getenv)})
	if err != nil {
		return planned{}, err
	}
	header, err := plane.Wait(ctx, runID)
	if err != nil {
		return planned{}, err
	}
	found, err := runDiagnostics(ctx, plane, header)
	if err != nil {
		return planned{}, err
	}
	if header.Result != runlog.ResultSucceeded {
		if !found.HasErrors() {
			found = append(found, diag.Diagnostic{Severity: diag.Error, Summary: "the plan could not be computed", Detail: "run " + runID + " ended as " + string(header.Result)})
		}
		return planned{}, found
	}
	env.streams.Diagnostics(found)
	list, err := plane.PlanViews(ctx, runID)
	if err != nil {
		return planned{}, fmt.Errorf("reading the plan of run %s: %w", runID, err)
	}
	if list == nil {
		list = []plan.StackView{}
	}
	return planned{runID: runID, views: list, warnings: found}, nil
}

// runDiagnostics collects what a run and the runs below it have to say, each thing once. A failure that no
// diagnostic tells becomes one.
func runDiagnostics(ctx context.Context, plane Plane, root runlog.Header) (diag.Diagnostics, error) {
	children, err := plane.Log().ListRuns(ctx, runlog.Filter{Root: root.RunID})
	if err != nil {
		return nil, fmt.Errorf("listing the runs of %s: %w", root.RunID, err)
	}
	var list diag.Diagnostics
	seen := map[diag.Diagnostic]bool{}
	add := func(more diag.Diagnostics) {
		for _, d := range more {
			if !seen[d] {
				seen[d] = true
				list = append(list, d)
			}
		}
	}
	// Children are listed newest first.
	for i := len(children) - 1; i >= 0; i-- {
		if h := children[i]; h.RunID != root.RunID {
			add(headerDiagnostics(h))
		}
	}
	if own := headerDiagnostics(root); !list.HasErrors() || !onlyFailure(root) {
		add(own)
	}
	return list, nil
}

// headerDiagnostics is what one header says.
func headerDiagnostics(h runlog.Header) diag.Diagnostics {
	list := h.Diagnostics.InStack(h.Stack.Name)
	if !list.HasErrors() && h.Failure != nil && h.Failure.Summary != "" {
		d := diag.Diagnostic{Severity: diag.Error, Summary: h.Failure.Summary, Detail: h.Failure.Detail, LogicalID: h.Failure.LogicalID, Stack: h.Stack.Name}
		if h.Result == runlog.ResultPartial {
			d.Severity = diag.Warning // the work was finished
		}
		list = append(list, d)
	}
	return list
}

// onlyFailure: the header knows no more than that a run below it has failed.
func onlyFailure(h runlog.Header) bool { return !h.Diagnostics.HasErrors() }

// expectation counts the operations that each stack's plan announces.
func expectation(list []plan.StackView) views.Expectation {
	e := views.Expectation{}
	for _, v := range list {
		for _, c := range v.Changes {
			if c.Action != diff.ActionNone || c.RecordOnly {
				e[v.Stack]++
			}
		}
	}
	return e
}

// caller is who asks, for the lock and the log: "user@host".
func caller(getenv func(string) string) string {
	name := getenv("USER")
	if u, err := user.Current(); err == nil && u.Username != "" {
		name = u.Username
	}
	if name == "" {
		name = "unknown"
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return name + "@" + host
}

// eventFile is where --json-into writes.
type eventFile struct {
	file *os.File
	view *views.NDJSON
}

func openEvents(path string) (*eventFile, error) {
	if path == "" {
		return &eventFile{}, nil
	}
	file, err := os.Create(path)
	if err != nil {
		return nil, diag.Diagnostics{{Severity: diag.Error, Summary: "the event file can't be written", Detail: err.Error(), Next: "Give --json-into a path that can be written."}}
	}
	return &eventFile{file: file, view: views.NewNDJSON(file)}, nil
}

// close closes the file and returns the first write that failed.
func (e *eventFile) close() error {
	if e.file == nil {
		return nil
	}
	err := errors.Join(e.view.Err(), e.file.Close())
	e.file = nil
	if err != nil {
		return fmt.Errorf("writing the event file: %w", err)
	}
	return nil
}
