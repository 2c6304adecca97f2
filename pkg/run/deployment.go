package run

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/slipway-cdk/slipway/pkg/plan"
	"github.com/slipway-cdk/slipway/pkg/provider"
	"github.com/slipway-cdk/slipway/pkg/runlog"
	"github.com/slipway-cdk/slipway/pkg/state"
)

// decideDeployment chooses the next wave of a deployment's assets and stacks. A stack's run is followed by
// reading its header, like any slow operation.
func (t *turn) decideDeployment(ctx context.Context) (Step, error) {
	byID := index(t.current())
	if err := t.strike(ctx, byID); err != nil {
		return Step{}, err
	}
	again, err := t.followStacks(ctx)
	if err != nil {
		return Step{}, err
	}
	var wave plan.Wave
	for {
		wave = plan.Next(t.current(), t.states(), plan.Options{Concurrency: t.req.Options.Concurrency, Now: t.now(), Stop: t.stop != nil})
		if len(wave.Skip) == 0 {
			break
		}
		if err := t.skip(ctx, wave, byID); err != nil {
			return Step{}, err
		}
	}
	if wave.Done {
		if t.held(false) {
			t.rec.Cancelled = t.stop
		}
		return Step{Kind: StepDone}, nil
	}
	var items []Item
	inputs := map[string]operationInput{}
	for _, id := range slices.Concat(wave.Start, wave.Poll) {
		planned := byID[id]
		it := item(planned)
		switch {
		case planned.Kind != plan.KindStack:
			env, in := t.environmentOf(planned), t.about()
			in.Role = env.Role
			in.Operation, in.Attempt = planned, t.attempt(id)
			in.Account, in.Region, in.Stack = env.Account, env.Region, env.Name
			inputs[id] = in
		case slices.Contains(wave.Poll, id) && !again[id]:
			continue
		default:
			if err := t.startStack(ctx, planned, &it); err != nil {
				return Step{}, err
			}
		}
		items = append(items, it)
	}
	if len(items) > 0 {
		if items, err = t.writeWave(ctx, inputs, items); err != nil {
			return Step{}, err
		}
	}
	switch {
	case len(items) > 0:
		return Step{Kind: StepWave, Wave: t.n, Slice: int(longSlice.Seconds()), Items: items}, nil
	case t.followed > 0:
		step := t.waitForStacks()
		if t.prev.Idle > 40 && t.e.wall(time.Second) < 100*time.Millisecond {
			// A stack's run waits for another process, and an instant clock does not.
			return step, t.e.linger(ctx, 250*time.Millisecond)
		}
		return step, nil
	}
	return t.waitFor(wave.Wait), nil
}

// startStack records that a stack's run is being started, and names its execution. The start itself is the
// state machine's, by name: a repeat is the same execution.
func (t *turn) startStack(ctx context.Context, planned plan.Operation, it *Item) error {
	child, err := t.header(ctx, planned.ChildRun)
	if err != nil {
		return err
	}
	it.ChildRun, it.Execution = child.RunID, executionOf(child)
	if _, known := t.ops[planned.ID]; known {
		return nil
	}
	op := t.ended(planned, runlog.OpRunning, "")
	op.FinishedAt, op.ChildRun = time.Time{}, child.RunID
	if err := t.put(ctx, op); err != nil {
		return err
	}
	about := t.about()
	about.Stack, about.Region = child.Stack.Name, child.Stack.Region
	t.e.tell(ctx, t.h.RunID, about, t.ops[planned.ID], runlog.StackStarted)
	return nil
}

// followStacks reads the headers of the stack runs in flight and records the ones that have ended. It returns
// the operations whose execution has to be started again: the start was lost.
func (t *turn) followStacks(ctx context.Context) (again map[string]bool, err error) {
	again = map[string]bool{}
	for _, planned := range t.current().Operations {
		op, ok := t.ops[planned.ID]
		if !ok || planned.Kind != plan.KindStack || op.Status.Ended() {
			continue
		}
		child, err := t.header(ctx, planned.ChildRun)
		if err != nil {
			return nil, err
		}
		if child.Status != runlog.StatusClosed {
			lost, err := t.nurse(ctx, planned.ID, child)
			if err != nil {
				return nil, err
			}
			if lost {
				again[planned.ID] = true
				continue
			}
			if child, err = t.header(ctx, planned.ChildRun); err != nil {
				return nil, err
			}
		}
		if child.Status == runlog.StatusClosed {
			// It closes its header before it frees its lock: a deployment is not over while a lock of it stands.
			running, err := t.e.Executions.Running(ctx, executionOf(child))
			if err != nil {
				return nil, fmt.Errorf("asking for the execution of run %s: %w", child.RunID, err)
			}
			if !running {
				if err := t.endStack(ctx, op, child); err != nil {
					return nil, err
				}
				continue
			}
		}
		t.followed++
		op.NotBefore = t.now().Add(time.Hour) // it is polled here, not by an item
		t.ops[planned.ID] = op
	}
	return again, nil
}

func (t *turn) header(ctx context.Context, runID string) (runlog.Header, error) {
	h, err := t.e.Log.Header(ctx, runID)
	if err != nil {
		return h, fmt.Errorf("reading the header of run %s: %w", runID, err)
	}
	return h, nil
}

// startGrace is how long a started execution may be unknown: what Step Functions says of executions is eventually
// consistent (https://docs.aws.amazon.com/step-functions/latest/apireference/API_DescribeExecution.html).
const startGrace = time.Minute

// nurse looks after a stack's run that has not closed. It reports whether its execution must be started
// again; a run whose execution has died, or cannot be started, is settled.
func (t *turn) nurse(ctx context.Context, opID string, child runlog.Header) (lost bool, err error) {
	running, err := t.e.Executions.Running(ctx, executionOf(child))
	if err != nil {
		return false, fmt.Errorf("asking for the execution of run %s: %w", child.RunID, err)
	}
	if running {
		return false, nil
	}
	// The execution may have closed the run between the two looks.
	now, err := t.header(ctx, child.RunID)
	if err != nil || now.Status == runlog.StatusClosed {
		return false, err
	}
	if now.Status == runlog.StatusNew {
		n := t.prev.Strikes[opID] + 1
		t.rec.Strikes[opID] = n
		if n < maxStrikes {
			return true, nil
		}
		if t.e.Clock.Now().Sub(t.ops[opID].StartedAt) < startGrace {
			return false, nil
		}
		return false, t.e.neverStarted(ctx, now, t.ops[opID].Error)
	}
	_, err = t.e.Settle(ctx, child.RunID)
	return false, err
}

// endStack records the end of a stack's run.
func (t *turn) endStack(ctx context.Context, op runlog.Op, child runlog.Header) error {
	op.FinishedAt = t.e.Clock.Now()
	op.Status, op.Error = runlog.OpSucceeded, nil // a start that was refused at first
	switch child.Result {
	case runlog.ResultFailed:
		op.Status = runlog.OpFailed
		op.Error = &runlog.OpError{Kind: provider.KindFailed, Code: "StackFailed", Message: failureText(child.Failure)}
	case runlog.ResultPartial:
		op.Reason = failureText(child.Failure)
	}
	if err := t.put(ctx, op); err != nil {
		return err
	}
	ev := runlog.Event{
		ID:   runlog.EventID(t.n, op.OpID, runlog.StackFinished, 0),
		Type: runlog.StackFinished, RunID: t.h.RunID, Root: t.h.Root, Command: t.h.Command, Wave: t.n,
		Stack: child.Stack.Name, Region: child.Stack.Region, LogicalID: op.LogicalID,
		ResourceType: "stack", Action: op.Action, ChildRun: child.RunID,
		Result: child.Result, Counts: &child.Counts, Failure: child.Failure,
		DurationMs: op.FinishedAt.Sub(op.StartedAt).Milliseconds(),
	}
	t.e.append(ctx, ev)
	return nil
}

func failureText(f *runlog.Failure) string {
	if f == nil {
		return ""
	}
	return f.Summary
}

// environmentOf is the stack that an asset is published for, the first of several: where it goes, and under which role.
func (t *turn) environmentOf(planned plan.Operation) StackRequest {
	for _, s := range t.req.Stacks {
		for _, id := range s.Assets {
			if "asset."+id == planned.ID {
				return s
			}
		}
	}
	return StackRequest{}
}

// openDeployment plans a deployment: it checks every stack before anything is touched, and writes the request
// and header of each stack's own run.
func (e *Engine) openDeployment(ctx context.Context, h runlog.Header, req Request) (Step, error) {
	if h.Command == runlog.CommandPlan {
		return e.openPlan(ctx, h, req)
	}
	order := req
	// Every stack is looked at before any of them is touched: also a destroy meets damaged records first.
	plans, diags, err := e.planAll(ctx, req)
	if err != nil {
		return Step{}, err
	}
	if diags.HasErrors() {
		return e.refuse(ctx, h, diags)
	}
	if h.Command == runlog.CommandDeploy {
		if order.Stacks, diags, err = e.freedFirst(ctx, req.Stacks, plans); err != nil {
			return Step{}, err
		}
		if diags.HasErrors() {
			return e.refuse(ctx, h, diags)
		}
	}
	if h.Command == runlog.CommandDestroy || h.Command == runlog.CommandRollback {
		diags, err := e.checkDestroy(ctx, req)
		if err != nil {
			return Step{}, err
		}
		if diags.HasErrors() {
			return e.refuse(ctx, h, diags)
		}
		if order.Stacks, err = e.importersFirst(ctx, req.Stacks); err != nil {
			return Step{}, err
		}
	}
	children := map[string]string{}
	for _, s := range req.Stacks {
		id := childRunID(h.RunID, s.Name, s.StackRef)
		children[stackKey(s.StackRef)] = id
		child := req
		child.RunID, child.Root, child.Stacks, child.Assets = id, h.Root, []StackRequest{s}, nil
		if err := putOnce(ctx, e.Objects, requestKey(id), &child); err != nil {
			return Step{}, err
		}
		ch := runlog.Header{
			RunID: id, Kind: runlog.KindStack, Command: h.Command, Stack: s.StackRef,
			Root: h.RunID, Parent: h.RunID, Owner: state.Owner(req.Caller, id),
			Status: runlog.StatusNew, CreatedAt: e.Clock.Now().UTC(),
		}
		ch.Execution = executionOf(ch)
		if _, err := e.Log.CreateRun(ctx, ch); err != nil && !errors.Is(err, runlog.ErrExists) {
			return Step{}, fmt.Errorf("creating the run of stack %s: %w", s.Name, err)
		}
	}
	file := planFile{Version: planVersion, Plan: deploymentPlan(order, h.Command, children)}
	if err := putOnce(ctx, e.Objects, planKey(h.RunID), &file); err != nil {
		return Step{}, err
	}
	return e.opened(ctx, h, file)
}

// deploymentPlan builds the operations of a deployment.
func deploymentPlan(req Request, command runlog.Command, children map[string]string) plan.Plan {
	in := plan.DeploymentInput{Destroy: command == runlog.CommandDestroy, Rollback: command == runlog.CommandRollback}
	for _, a := range req.Assets {
		in.Assets = append(in.Assets, plan.DeploymentAsset{ID: a.ID, Name: a.Asset.DisplayName})
	}
	for _, s := range req.Stacks {
		in.Stacks = append(in.Stacks, plan.DeploymentStack{
			Name: s.Name, ChildRun: children[stackKey(s.StackRef)], DependsOn: s.DependsOn, Assets: s.Assets,
		})
	}
	return plan.BuildDeployment(in)
}

func stackKey(r runlog.StackRef) string { return r.Account + "/" + r.Region + "/" + r.Name }
