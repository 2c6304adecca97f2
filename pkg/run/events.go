package run

import (
	"context"

	"github.com/slipway-cdk/slipway/pkg/runlog"
)

// tell writes the event of one operation. Events are best effort: the journal, not the story, is what the
// engine relies on, so a failure to tell is logged and the work goes on.
func (e *Engine) tell(ctx context.Context, runID string, in operationInput, op runlog.Op, t runlog.EventType) {
	ev := runlog.Event{
		ID:        runlog.EventID(op.Wave, op.OpID, t, op.Attempt),
		Type:      t,
		RunID:     runID,
		Root:      in.Root,
		Command:   in.Command,
		Stack:     in.Stack,
		Region:    in.Region,
		LogicalID: op.LogicalID, ResourceType: op.Type, Action: op.Action,
		Wave: op.Wave, Attempt: op.Attempt,
		PhysicalID: op.PhysicalID, Error: op.Error, Message: op.Reason, ChildRun: op.ChildRun,
	}
	if op.Status.Ended() {
		ev.DurationMs = op.FinishedAt.Sub(op.StartedAt).Milliseconds()
	}
	e.append(ctx, ev)
}

// append writes events of one run.
func (e *Engine) append(ctx context.Context, events ...runlog.Event) {
	now := e.Clock.Now().UTC()
	for i := range events {
		events[i].Version = runlog.EventVersion
		if events[i].Time.IsZero() {
			events[i].Time = now
		}
	}
	if err := e.Log.Append(ctx, events...); err != nil {
		e.logger().WarnContext(ctx, "an event could not be written", "run", events[0].RunID, "error", err)
	}
}

// runEvent starts an event about a whole run.
func runEvent(h runlog.Header, wave int, t runlog.EventType) runlog.Event {
	return runlog.Event{
		ID: runlog.EventID(wave, "run", t, 0), Type: t,
		RunID: h.RunID, Root: h.Root, Stack: h.Stack.Name, Region: h.Stack.Region, Command: h.Command,
	}
}
