package run

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-cdk/slipway/pkg/plan"
	"github.com/slipway-cdk/slipway/pkg/provider"
	"github.com/slipway-cdk/slipway/pkg/runlog"
)

func TestTheStoryOfARunInCdkdsWords(t *testing.T) {
	var events []runlog.Event
	tell := func(op string, what runlog.EventType, fn func(*runlog.Event)) {
		ev := runlog.Event{
			ID: runlog.EventID(len(events), op, what, 1), Type: what, LogicalID: op, PhysicalID: "id", Time: failedAt.Add(time.Duration(len(events)) * time.Second),
			Action: string(plan.ActionCreate), DurationMs: 7,
		}
		if fn != nil {
			fn(&ev)
		}
		events = append(events, ev)
	}
	tell("run", runlog.RunStarted, nil)
	tell("run", runlog.WaveStarted, nil) // it has no word for it
	tell("A", runlog.OpStarted, nil)
	tell("A", runlog.OpDone, nil)
	tell("B", runlog.OpFail, func(ev *runlog.Event) {
		ev.Error = &runlog.OpError{Kind: provider.KindInvalid, Code: "Code", Message: "bad", RequestID: "r"}
	})
	tell("C", runlog.OpSkip, func(ev *runlog.Event) { ev.Message = "why" })
	tell("run", runlog.RollbackStarted, nil)
	tell("A"+plan.UndoSuffix, runlog.OpStarted, nil) // nor for these
	tell("A"+plan.UndoSuffix, runlog.OpSkip, nil)
	tell("A"+plan.UndoSuffix, runlog.OpDone, func(ev *runlog.Event) { ev.Action = string(plan.ActionDelete) })
	tell("run", runlog.RunFinished, func(ev *runlog.Event) {
		ev.Result, ev.Failure = runlog.ResultPartial, &runlog.Failure{Summary: "failed"}
		ev.Counts = &runlog.Counts{Created: 1, Updated: 2, Replaced: 3, Deleted: 4, Failed: 5, Skipped: 6}
	})
	tell("run", runlog.RunFinished, func(ev *runlog.Event) { ev.Result = runlog.ResultSucceeded })
	// In whatever order they are read.
	events[0], events[3] = events[3], events[0]

	type word struct {
		Type, Operation, Physical, Reason, Result, Error string
		Took                                             bool
		Counts                                           string
	}
	var got []word
	for _, d := range story(runlog.Header{Command: runlog.CommandDeploy, Stack: runlog.StackRef{Name: "App", Region: "eu-west-1"}}, events) {
		w := word{Type: d.EventType, Operation: d.Operation, Physical: d.PhysicalID, Reason: d.Reason, Result: d.Result, Took: d.DurationMs != nil}
		if d.Error != nil {
			w.Error = d.Error.Name + " " + d.Error.AWSErrorCode + " " + d.Error.Message
		}
		if c := d.Counts; c != nil {
			body, err := marshal(c)
			if err != nil {
				t.Fatal(err)
			}
			w.Counts = string(body)
		}
		if d.StackName != "App" || (d.Region != "") != (d.Command != "") {
			t.Errorf("%+v", d)
		}
		got = append(got, w)
	}
	want := []word{
		{Type: "RUN_STARTED", Physical: "id"},
		{Type: "RESOURCE_STARTED", Operation: "CREATE", Physical: "id"},
		{Type: "RESOURCE_SUCCEEDED", Operation: "CREATE", Physical: "id", Took: true},
		{Type: "RESOURCE_FAILED", Operation: "CREATE", Physical: "id", Error: "Invalid Code bad"},
		{Type: "RESOURCE_SKIPPED", Operation: "CREATE", Physical: "id", Reason: "why"},
		{Type: "ROLLBACK_STARTED", Physical: "id"},
		{Type: "ROLLBACK_RESOURCE_SUCCEEDED", Operation: "DELETE", Took: true},
		{Type: "RUN_FINISHED", Physical: "id", Result: "FAILED", Error: "DeploymentError  failed", Took: true, Counts: `{"created":1,"updated":5,"deleted":4,"failed":5,"skipped":6}`},
		{Type: "RUN_FINISHED", Physical: "id", Result: "SUCCEEDED", Took: true},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("told (-want +got):\n%s", d)
	}
}
