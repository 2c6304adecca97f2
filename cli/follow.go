package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/slipway-cdk/slipway/cli/views"
	"github.com/slipway-cdk/slipway/pkg/assembly"
	"github.com/slipway-cdk/slipway/pkg/diag"
	"github.com/slipway-cdk/slipway/pkg/runlog"
)

// progressView is a renderer that remembers what has failed.
type progressView interface {
	views.Renderer
	Failures() []runlog.Event
}

// follow shows a run until it has ended and reports how.
func (env *environment) follow(ctx context.Context, plane Plane, stacks []*assembly.Stack, runID string, p planned, f changeFlags, c change, events *eventFile) error {
	going, _, _ := c.words()
	follower, view := env.follower(plane, going+" "+subject(stacks), expectation(p.views))
	if events.view != nil {
		follower.Renderers = append(follower.Renderers, events.view)
	}
	root, interrupted, err := env.watchOrCancel(ctx, plane, follower, runID)
	ctx = context.WithoutCancel(ctx)
	if err != nil {
		if errors.Is(err, errInterrupted) {
			env.streams.Notice("Interrupted: no longer waiting for run %s.", runID)
			if _, ok := plane.(reportingPlane); ok {
				env.streams.Notice("The control plane goes on with it. `slipway runs watch %s` follows it.", runID)
				return err
			}
			env.streams.Notice("What is in flight ends by itself. The next %s of the stack settles what this run has left, then goes on.", c.command)
		}
		return err
	}
	err = env.report(ctx, plane, stacks, root, follower, view, f.JSON)
	if closing := events.close(); closing != nil {
		env.streams.Diagnostics(diag.From(closing))
		err = exitError{exitFailed}
	}
	if interrupted {
		return exitError{exitInterrupted}
	}
	return err
}

// follower makes what follows a run, and the view that shows it on standard error.
func (env *environment) follower(plane Plane, title string, expect views.Expectation) (*views.Follower, progressView) {
	var view progressView = views.NewPlain(env.streams.Err, title, expect)
	if env.streams.Live {
		view = views.NewLive(env.streams.Err, title, expect)
	}
	f := &views.Follower{Log: plane.Log(), Clock: env.clock, Renderers: []views.Renderer{view}}
	// Where every look is a request it is not taken as often as where it costs nothing.
	if p, ok := plane.(interface{ FollowEvery() time.Duration }); ok {
		f.Every = p.FollowEvery()
	}
	return f, view
}

// report says how a run that was followed has ended, and returns that as an exitError.
func (env *environment) report(ctx context.Context, plane Plane, stacks []*assembly.Stack, root runlog.Header, follower *views.Follower, view progressView, json bool) error {
	outcomes, err := env.outcomes(ctx, plane, stacks, root, follower.Runs())
	if err != nil {
		return err
	}
	env.streams.Failures(view.Failures())
	told := map[string]bool{}
	for _, e := range view.Failures() {
		told[e.RunID+" "+e.LogicalID] = true
	}
	untold := untoldFailures(root, outcomes, told)
	env.streams.Diagnostics(untold)

	if json {
		doc := views.ResultDocument{Result: root.Result, Runs: []views.RunDocument{}}
		explained := false
		for _, o := range outcomes {
			d := views.NewRunDocument(o)
			explained = explained || d.Error != nil
			doc.Runs = append(doc.Runs, d)
		}
		if root.Result != runlog.ResultSucceeded && !explained {
			doc.Error = views.NewRunDocument(views.Outcome{Header: root}).Error
			doc.Diagnostics = root.Diagnostics
		}
		if err := views.WriteJSON(env.streams.Out, doc); err != nil {
			return err
		}
	} else {
		env.streams.Result(root, outcomes)
	}
	return exitOf(root.Result)
}

// untoldFailures are the causes that no failed operation has told: refusals, failures of the engine.
func untoldFailures(root runlog.Header, outcomes []views.Outcome, told map[string]bool) diag.Diagnostics {
	var list diag.Diagnostics
	for _, o := range outcomes {
		h := o.Header
		if h.Failure != nil && told[h.RunID+" "+h.Failure.LogicalID] {
			h.Failure = nil
		}
		h.Diagnostics = onlyErrors(h.Diagnostics) // its warnings were events
		list = append(list, headerDiagnostics(h)...)
	}
	if len(list) == 0 && len(told) == 0 && root.Result != runlog.ResultSucceeded {
		list = headerDiagnostics(root)
		if !list.HasErrors() && root.Result != runlog.ResultPartial {
			list = append(list, diag.Diagnostic{Severity: diag.Error, Summary: fmt.Sprintf("run %s ended as %s", root.RunID, root.Result)})
		}
	}
	return list
}

func onlyErrors(list diag.Diagnostics) diag.Diagnostics {
	var errs diag.Diagnostics
	for _, d := range list {
		if d.Severity == diag.Error {
			errs = append(errs, d)
		}
	}
	return errs
}

// watch follows a run's events while the plane waits for its end. The plane knows what the run log does not
// say: that nothing carries the run any more.
func watch(ctx context.Context, plane Plane, follower *views.Follower, runID string) (runlog.Header, error) {
	watching, stop := context.WithCancelCause(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if _, err := plane.Wait(watching, runID); err != nil {
			stop(err)
		}
	}()
	header, err := follower.Follow(watching, runID)
	if err != nil && ctx.Err() == nil {
		if cause := context.Cause(watching); cause != nil {
			err = cause
		}
	}
	stop(nil)
	<-ended // the plane is closed next
	return header, err
}

// outcomes reads how every stack's run has ended, in stack order.
func (env *environment) outcomes(ctx context.Context, plane Plane, stacks []*assembly.Stack, root runlog.Header, runs []string) ([]views.Outcome, error) {
	listed, err := plane.Log().ListRuns(ctx, runlog.Filter{Root: root.RunID})
	if err != nil {
		return nil, fmt.Errorf("listing the runs of %s: %w", root.RunID, err)
	}
	for i := len(listed) - 1; i >= 0; i-- {
		if !slices.Contains(runs, listed[i].RunID) {
			runs = append(runs, listed[i].RunID)
		}
	}
	var list []views.Outcome
	for _, id := range runs {
		h, err := plane.Log().Header(ctx, id)
		if err != nil {
			return nil, fmt.Errorf("reading the header of run %s: %w", id, err)
		}
		if h.Kind != runlog.KindStack {
			continue
		}
		o := views.Outcome{Header: h}
		if h.Command == runlog.CommandDeploy && h.Result != runlog.ResultFailed {
			if o.Outputs, err = outputsOf(ctx, plane, h, templateOf(stacks, h.Stack)); err != nil {
				return nil, err
			}
		}
		list = append(list, o)
	}
	slices.SortStableFunc(list, func(a, b views.Outcome) int {
		return position(stacks, a.Header.Stack) - position(stacks, b.Header.Stack)
	})
	return list, nil
}

// outputsOf are the outputs that a stack's run has left.
func outputsOf(ctx context.Context, plane Plane, h runlog.Header, template []byte) (map[string]any, error) {
	if p, ok := plane.(reportingPlane); ok {
		return p.Outputs(ctx, h.RunID)
	}
	return stackOutputs(ctx, plane.States(), h.Stack, template)
}

// position is a stack's place in the order of the submission.
func position(stacks []*assembly.Stack, ref runlog.StackRef) int {
	if i := slices.IndexFunc(stacks, func(s *assembly.Stack) bool { return isStack(s, ref) }); i >= 0 {
		return i
	}
	return len(stacks)
}

func templateOf(stacks []*assembly.Stack, ref runlog.StackRef) []byte {
	if i := position(stacks, ref); i < len(stacks) {
		return stacks[i].Template
	}
	return nil
}

// isStack: an environment-agnostic stack goes wherever the plane sends it.
func isStack(s *assembly.Stack, ref runlog.StackRef) bool {
	return s.Name == ref.Name && (s.Region == "" || s.Region == ref.Region) && (s.Account == "" || s.Account == ref.Account)
}

func subject(stacks []*assembly.Stack) string {
	if len(stacks) == 1 {
		return stacks[0].DisplayName
	}
	return fmt.Sprintf("%d stacks", len(stacks))
}
