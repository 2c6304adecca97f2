package run

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/slipway-cdk/slipway/pkg/plan"
	"github.com/slipway-cdk/slipway/pkg/provider"
	"github.com/slipway-cdk/slipway/pkg/runlog"
	"github.com/slipway-cdk/slipway/pkg/state"
)

func TestWhatAnOperationTurnsOutToBe(t *testing.T) {
	const topicType = "AWS::SNS::Topic"
	before := &state.Resource{ResourceType: topicType, PhysicalID: "a", Properties: object{"DisplayName": "one"}}
	same, other, fifo := object{"DisplayName": "one"}, object{"DisplayName": "two"}, object{"DisplayName": "one", "FifoTopic": true}
	update := plan.Operation{ID: "A", LogicalID: "A", Type: topicType, Action: plan.ActionUpdate}
	replace := plan.Operation{ID: "A", LogicalID: "A", Type: topicType, Action: plan.ActionReplace, DeleteFirst: true}
	with := func(op plan.Operation, fn func(*plan.Operation)) plan.Operation { fn(&op); return op }
	speculative := with(replace, func(op *plan.Operation) { op.Speculative = true })
	undo := with(update, func(op *plan.Operation) { op.ID = "A" + plan.UndoSuffix })
	for _, c := range []struct {
		name        string
		planned     plan.Operation
		before      *state.Resource
		properties  object
		action      plan.Action
		deleteFirst bool
	}{
		{"an update of what has changed", update, before, other, plan.ActionUpdate, false},
		{"an update of what has not", update, before, same, plan.ActionRecord, false},
		{"an update of what can't be changed in place", update, before, fifo, plan.ActionReplace, false},
		{"an update of what is not recorded", update, nil, same, plan.ActionUpdate, false},
		{"a replacement without doubt", replace, before, same, plan.ActionReplace, true},
		{"a replacement that was only possible, of what has not changed", speculative, before, same, plan.ActionRecord, false},
		{"a replacement that was only possible, of what can be changed", speculative, before, other, plan.ActionUpdate, false},
		{"a replacement that was only possible, and is needed", speculative, before, fifo, plan.ActionReplace, true},
		{"a resource of another type", with(speculative, func(op *plan.Operation) { op.Type = "AWS::SQS::Queue" }), before, same, plan.ActionReplace, true},
		{"a creation", with(update, func(op *plan.Operation) { op.Action = plan.ActionCreate }), before, same, plan.ActionCreate, false},
		{"a deletion", with(update, func(op *plan.Operation) { op.Action = plan.ActionDelete }), before, same, plan.ActionDelete, false},
		{"an undo of what is as it was", undo, before, same, plan.ActionRecord, false},
		{"an undo of what is not", undo, before, other, plan.ActionUpdate, false},
		{"an undo of what would be a replacement", undo, before, fifo, plan.ActionUpdate, false},
		{"an undo by a replacement", with(undo, func(op *plan.Operation) { op.Action = plan.ActionReplace }), before, same, plan.ActionReplace, false},
	} {
		if got := turned(c.planned, c.before, c.properties); got.Action != c.action || got.DeleteFirst != c.deleteFirst {
			t.Errorf("%s: %s, delete first: %v", c.name, got.Action, got.DeleteFirst)
		}
	}
}

func TestAnEntryOfTheJournalIsAboutTheResourceThatStands(t *testing.T) {
	a, b := &state.Resource{PhysicalID: "a"}, &state.Resource{PhysicalID: "b"}
	for _, c := range []struct {
		before, after *state.Resource
		id            string
	}{{a, b, "b"}, {a, nil, "a"}, {nil, b, "b"}, {nil, nil, ""}} {
		var op runlog.Op
		if err := setRecords(&op, c.before, c.after); err != nil || op.PhysicalID != c.id || (len(op.Before) > 0) != (c.before != nil) || (len(op.After) > 0) != (c.after != nil) {
			t.Errorf("%+v, %v", op, err)
		}
	}
}

func TestAHandlerMayChooseAnotherResource(t *testing.T) {
	custom := plan.Operation{ID: "C", LogicalID: "C", Type: "Custom::Thing", Action: plan.ActionUpdate}
	created, topic := custom, custom
	created.Action, topic.Type = plan.ActionCreate, "AWS::SNS::Topic"
	rec := &state.Record{Resources: map[string]*state.Resource{"C": {PhysicalID: "c"}}}
	ids := func(rec *state.Record, ops ...plan.Operation) []string {
		var out []string
		for _, op := range handlersChoice(plan.Plan{Operations: ops}, rec) {
			if op.Action != plan.ActionDelete || op.Phase != plan.PhaseCleanup || !op.Speculative || op.PhysicalID != "c" {
				t.Errorf("%+v", op)
			}
			out = append(out, op.ID)
		}
		return out
	}
	for _, c := range []struct {
		name string
		got  []string
		want []string
	}{
		{"an update", ids(rec, custom), []string{"C" + plan.OldSuffix}},
		{"beside a leftover", ids(rec, custom, plan.Operation{ID: "C" + plan.OldSuffix, Action: plan.ActionDelete}), []string{"C.0" + plan.OldSuffix}},
		{"a creation", ids(rec, created), nil},
		{"no custom resource", ids(rec, topic), nil},
		{"no record", ids(nil, custom), nil},
	} {
		if d := cmp.Diff(c.want, c.got); d != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, d)
		}
	}
}

func TestAnUpdateKeepsWhatItsAnswerLeavesOut(t *testing.T) {
	before := &state.Resource{
		PhysicalID: "a", ResourceType: "AWS::SNS::Topic", Properties: object{"P": "old"}, Attributes: object{"Arn": "old"}, Metadata: object{"m": "1"},
	}
	for _, c := range []struct {
		name       string
		action     plan.Action
		answer     provider.Progress
		id         string
		attributes object
		properties object
	}{
		{"nothing is answered", plan.ActionUpdate, provider.Progress{Done: true}, "a", object{"Arn": "old"}, object{"P": "new"}},
		{"attributes are", plan.ActionUpdate, provider.Progress{Done: true, Attributes: object{"Arn": "new"}}, "a", object{"Arn": "new"}, object{"P": "new"}},
		{"what it really has is", plan.ActionUpdate, provider.Progress{Done: true, Effective: object{"P": "other"}}, "a", object{"Arn": "old"}, object{"P": "other"}},
		{"a creation keeps nothing", plan.ActionCreate, provider.Progress{Done: true}, "", nil, object{"P": "new"}},
	} {
		in := operationInput{Operation: plan.Operation{Action: c.action}, Properties: object{"P": "new"}}
		op, err := succeeded(runlog.Op{Type: "AWS::SNS::Topic"}, in, provider.RouteSDK, before, c.answer)
		if err != nil || op.Status != runlog.OpSucceeded || op.PhysicalID != c.id {
			t.Fatalf("%s: %+v, %v", c.name, op, err)
		}
		var after struct{ Attributes, Properties, Metadata object }
		if err := unmarshal(op.After, &after); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(c.attributes, after.Attributes, cmpopts.EquateEmpty()); d != "" || cmp.Diff(c.properties, after.Properties) != "" || (len(after.Metadata) > 0) != (c.action == plan.ActionUpdate) {
			t.Errorf("%s: %s", c.name, op.After)
		}
	}
}
