package remote

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/slipway-cdk/slipway/pkg/diag"
	"github.com/slipway-cdk/slipway/pkg/objectstore"
	"github.com/slipway-cdk/slipway/pkg/runlog"
)

// followed is the run log as a caller may read it: headers and events. The operation journal holds the records of
// resources, so what is shown of operations is put together from the events; nothing is written.
type followed struct{ runlog.Store }

// Ops implements runlog.Store from the events of a run.
func (f followed) Ops(ctx context.Context, runID string) ([]runlog.Op, error) {
	events, err := f.Events(ctx, runID, "")
	if err != nil {
		return nil, err
	}
	ops := map[string]*runlog.Op{}
	for _, e := range events {
		status, ok := statusOf(e.Type)
		if !ok {
			continue
		}
		id := operationOf(e)
		op := ops[id]
		if op == nil {
			op = &runlog.Op{OpID: id, LogicalID: e.LogicalID, Type: e.ResourceType, Action: e.Action, StartedAt: e.Time}
			ops[id] = op
		}
		if e.Attempt < op.Attempt || op.Status.Ended() && e.Attempt == op.Attempt {
			continue
		}
		op.Attempt, op.Wave, op.Status = e.Attempt, e.Wave, status
		op.PhysicalID = cmp.Or(e.PhysicalID, op.PhysicalID)
		op.ChildRun = cmp.Or(e.ChildRun, op.ChildRun)
		op.Error, op.Reason = e.Error, e.Message
		if status.Ended() {
			op.FinishedAt = e.Time
		}
	}
	out := make([]runlog.Op, 0, len(ops))
	for _, op := range ops {
		out = append(out, *op)
	}
	slices.SortFunc(out, func(a, b runlog.Op) int { return strings.Compare(a.OpID, b.OpID) })
	return out, nil
}

// Op implements runlog.Store.
func (f followed) Op(ctx context.Context, runID, opID string) (runlog.Op, error) {
	ops, err := f.Ops(ctx, runID)
	if err != nil {
		return runlog.Op{}, err
	}
	if i := slices.IndexFunc(ops, func(op runlog.Op) bool { return op.OpID == opID }); i >= 0 {
		return ops[i], nil
	}
	return runlog.Op{}, fmt.Errorf("operation %s of run %s: %w", opID, runID, runlog.ErrNotFound)
}

// statusOf is what an event says of its operation; ok is false for the events of runs.
func statusOf(t runlog.EventType) (s runlog.OpStatus, ok bool) {
	switch t {
	case runlog.OpStarted, runlog.AssetStarted, runlog.StackStarted:
		return runlog.OpIntent, true
	case runlog.OpProgress, runlog.OpRetry:
		return runlog.OpRunning, true
	case runlog.OpDone, runlog.OpRetain, runlog.AssetPublished, runlog.AssetSkipped, runlog.StackFinished:
		return runlog.OpSucceeded, true
	case runlog.OpFail, runlog.AssetFailed:
		return runlog.OpFailed, true
	case runlog.OpSkip:
		return runlog.OpSkipped, true
	}
	return "", false
}

// operationOf takes the operation out of an event's id, see runlog.EventID: its ends have no dots.
func operationOf(e runlog.Event) string {
	_, rest, _ := strings.Cut(e.ID, ".")
	if i := strings.LastIndexByte(rest, '.'); i >= 0 {
		rest = rest[:i]
	}
	return strings.TrimSuffix(rest, "."+string(e.Type))
}

// unreachable is the state bucket: callers of a control plane have no access to it.
type unreachable struct{}

var _ objectstore.Store = unreachable{}

// ErrUnreachable is what every use of the state bucket is refused with.
func ErrUnreachable() diag.Diagnostics {
	return diag.Diagnostics{{
		Severity: diag.Error, Summary: "this needs the records of the stacks, and callers of a control plane can't read them",
		Detail: "they are in the control plane's state bucket",
		Next:   "Whoever has permissions for the state bucket can add --direct.",
	}}
}

func (unreachable) Get(context.Context, string) (objectstore.Object, error) {
	return objectstore.Object{}, ErrUnreachable()
}

func (unreachable) Head(context.Context, string) (objectstore.Info, error) {
	return objectstore.Info{}, ErrUnreachable()
}

func (unreachable) Put(context.Context, string, []byte, objectstore.Condition) (string, error) {
	return "", ErrUnreachable()
}

func (unreachable) Delete(context.Context, string, objectstore.Condition) error {
	return ErrUnreachable()
}

func (unreachable) List(context.Context, string) ([]objectstore.Info, error) {
	return nil, ErrUnreachable()
}
