package run

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/slipway-cdk/slipway/pkg/plan"
	"github.com/slipway-cdk/slipway/pkg/runlog"
	"github.com/slipway-cdk/slipway/pkg/state"
)

// exportStory writes a closed stack run's events beside the stack's record in cdkd's format (reference §3), so
// that both tools show the same history. Like the events themselves it is best effort.
func (e *Engine) exportStory(ctx context.Context, h runlog.Header) {
	if h.Kind != runlog.KindStack {
		return
	}
	events, err := e.Log.Events(ctx, h.RunID, "")
	if err == nil {
		err = e.States.WriteDeployment(ctx, h.Stack.Name, h.Stack.Region, story(h, events), state.DeploymentRun{
			RunID: h.RunID, Command: string(h.Command), Result: cdkdResult(h.Result),
			StartedAt: state.DeploymentTime(h.StartedAt), FinishedAt: state.DeploymentTime(h.FinishedAt),
		})
	}
	if err != nil {
		e.logger().WarnContext(ctx, "the run's events could not be written beside the record", "run", h.RunID, "error", err)
	}
}

// cdkdResult: cdkd knows no PARTIAL; a run that left something behind is FAILED to it.
func cdkdResult(r runlog.Result) string {
	if r == runlog.ResultSucceeded {
		return string(runlog.ResultSucceeded)
	}
	return string(runlog.ResultFailed)
}

// story translates events. Those that cdkd has no word for are left out.
func story(h runlog.Header, events []runlog.Event) []state.DeploymentEvent {
	slices.SortStableFunc(events, func(a, b runlog.Event) int {
		return cmp.Or(a.Time.Compare(b.Time), cmp.Compare(a.ID, b.ID))
	})
	var out []state.DeploymentEvent
	for _, ev := range events {
		d := state.DeploymentEvent{
			Timestamp: state.DeploymentTime(ev.Time), EventType: string(ev.Type), StackName: h.Stack.Name,
			LogicalID: ev.LogicalID, ResourceType: ev.ResourceType, PhysicalID: ev.PhysicalID,
		}
		undo := strings.Contains(ev.ID, plan.UndoSuffix+".")
		switch ev.Type {
		case runlog.RunStarted:
			d.Command, d.Region = string(h.Command), h.Stack.Region
		case runlog.RunFinished:
			d.Result = cdkdResult(ev.Result)
			d.DurationMs = &ev.DurationMs
			if c := ev.Counts; c != nil {
				d.Counts = &state.DeploymentCounts{
					Created: c.Created, Updated: c.Updated + c.Replaced, Deleted: c.Deleted, Failed: c.Failed, Skipped: c.Skipped,
				}
			}
			if f := ev.Failure; f != nil {
				d.Error = &state.DeploymentError{Name: "DeploymentError", Message: f.Summary}
			}
		case runlog.RollbackStarted:
		case runlog.OpStarted, runlog.OpDone, runlog.OpFail, runlog.OpSkip, runlog.OpRetain:
			if undo && (ev.Type == runlog.OpStarted || ev.Type == runlog.OpSkip) {
				continue
			}
			if undo {
				d.EventType, d.PhysicalID = "ROLLBACK_"+d.EventType, "" // reference §0.3
			}
			d.Operation = changeType(plan.Action(ev.Action))
			d.Reason = ev.Message
			if ev.Type == runlog.OpDone {
				d.DurationMs = &ev.DurationMs
			}
			if ev.Error != nil {
				d.Error = &state.DeploymentError{
					Name: string(ev.Error.Kind), Message: ev.Error.Message, AWSErrorCode: ev.Error.Code, RequestID: ev.Error.RequestID,
				}
			}
		default:
			continue
		}
		out = append(out, d)
	}
	return out
}
