package run

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-cdk/slipway/pkg/clock"
	"github.com/slipway-cdk/slipway/pkg/diag"
	"github.com/slipway-cdk/slipway/pkg/diff"
	"github.com/slipway-cdk/slipway/pkg/plan"
	"github.com/slipway-cdk/slipway/pkg/provider"
	"github.com/slipway-cdk/slipway/pkg/runlog"
	"github.com/slipway-cdk/slipway/pkg/state"
	"github.com/slipway-cdk/slipway/pkg/template"
)

func TestEveryErrorOfARefusalHasANextStep(t *testing.T) {
	const general = "Nothing was changed: correct this and run the command again."
	diags := diag.Diagnostics{
		{Severity: diag.Error, Summary: "a"}, {Severity: diag.Error, Summary: "b", Next: "do this"}, {Severity: diag.Warning, Summary: "c"},
	}
	var got []string
	for _, d := range withNext(diags) {
		got = append(got, d.Next)
	}
	if d := cmp.Diff([]string{general, "do this", ""}, got); d != "" || diags[0].Next != "" {
		t.Errorf("next steps (-want +got):\n%s", d)
	}
}

func TestTheFailureOfARefusalIsItsFirstError(t *testing.T) {
	warning := diag.Diagnostic{Severity: diag.Warning, Summary: "w"}
	for _, c := range []struct {
		diags diag.Diagnostics
		want  *runlog.Failure
	}{
		{diag.Diagnostics{warning}, nil},
		{diag.Diagnostics{warning, {Severity: diag.Error, Summary: "a", Detail: "d", LogicalID: "A"}, {Severity: diag.Error, Summary: "b"}}, &runlog.Failure{Summary: "a", Detail: "d", LogicalID: "A"}},
		{diag.Diagnostics{{Severity: diag.Error, Summary: "a", Detail: "d", Path: "Properties.P"}}, &runlog.Failure{Summary: "a", Detail: "Properties.P: d"}},
	} {
		if d := cmp.Diff(c.want, firstFailure(c.diags)); d != "" {
			t.Errorf("(-want +got):\n%s", d)
		}
	}
}

func turnAt(n int, ops map[string]runlog.Op) *stackTurn {
	return &stackTurn{
		turn: &turn{e: &Engine{Clock: clock.NewFake(failedAt)}, n: n, ops: ops},
		byID: map[string]plan.Operation{"A": {ID: "A", Type: "AWS::SNS::Topic"}, "B": {ID: "B", Type: "AWS::SQS::Queue"}},
	}
}

func TestWhichResultsSlowAServiceDown(t *testing.T) {
	began := failedAt.Add(-time.Minute)
	op := func(fn func(*runlog.Op)) runlog.Op {
		o := runlog.Op{OpID: "A", Kind: string(plan.KindResource), Status: runlog.OpIntent, Doubts: 1, Doubt: provider.KindThrottled, Wave: 4, Attempt: 1, StartedAt: began}
		fn(&o)
		return o
	}
	for _, c := range []struct {
		name  string
		op    runlog.Op
		slows bool
	}{
		{"too busy to answer in the last wave", op(func(*runlog.Op) {}), true},
		{"too busy in an earlier wave", op(func(o *runlog.Op) { o.Wave = 3 }), false},
		{"it did not answer for another reason", op(func(o *runlog.Op) { o.Doubt = provider.KindUnavailable }), false},
		{"it has answered since", op(func(o *runlog.Op) { o.Doubts = 0 }), false},
		{"it has refused", op(func(o *runlog.Op) {
			o.Status, o.Doubts, o.Error = runlog.OpFailed, 0, &runlog.OpError{Kind: provider.KindThrottled}
		}), true},
		{"it has refused for another reason", op(func(o *runlog.Op) {
			o.Status, o.Doubts, o.Error = runlog.OpFailed, 0, &runlog.OpError{Kind: provider.KindInvalid}
		}), false},
		{"it has taken it", op(func(o *runlog.Op) { o.Status, o.Doubts = runlog.OpSucceeded, 0 }), false},
		{"an asset", op(func(o *runlog.Op) { o.Kind = string(plan.KindAsset) }), false},
	} {
		paces := turnAt(5, map[string]runlog.Op{"A": c.op}).learn()
		if _, slowed := paces["SNS"]; slowed != c.slows || len(paces) > 1 {
			t.Errorf("%s: %+v", c.name, paces)
		}
	}
	folded := turnAt(5, map[string]runlog.Op{"A": op(func(o *runlog.Op) {
		o.Status, o.Doubts, o.Error = runlog.OpFailed, 0, &runlog.OpError{Kind: provider.KindThrottled}
	})})
	if folded.prev.Folded = []string{"A#1"}; len(folded.learn()) != 0 {
		t.Error("a refusal slows its service down twice")
	}
}

func TestAStackThatDependsOnAnotherReliesOnWhatThatMayHaveMade(t *testing.T) {
	stack := func(dependsOn ...string) []StackRequest { return []StackRequest{{DependsOn: dependsOn}} }
	for _, c := range []struct {
		name   string
		header runlog.Header
		stacks []StackRequest
		want   bool
	}{
		{"it depends on another stack of its deployment", runlog.Header{RunID: "r", Root: "d"}, stack("Other"), true},
		{"it depends on none", runlog.Header{RunID: "r", Root: "d"}, stack(), false},
		{"it is deployed alone", runlog.Header{RunID: "r", Root: "r"}, stack("Other"), false},
	} {
		s := turnAt(1, nil)
		s.h, s.req.Stacks = c.header, c.stacks
		if got := s.newAccess(s.byID["A"]); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

func TestWhatFollowsAReplacementIsMoreThanPossible(t *testing.T) {
	change := diff.Change{LogicalID: "Reader", Changes: []diff.PropertyChange{{Path: "P", Cause: "A"}, {Path: "Q"}}}
	for _, c := range []struct {
		name string
		all  []diff.Change
		want bool
	}{
		{"what it reads is replaced", []diff.Change{{LogicalID: "B", Action: diff.ActionUpdate}, {LogicalID: "A", Action: diff.ActionReplace}}, true},
		{"what it reads is updated", []diff.Change{{LogicalID: "A", Action: diff.ActionUpdate}}, false},
		{"something else is replaced", []diff.Change{{LogicalID: "A", Action: diff.ActionUpdate}, {LogicalID: "B", Action: diff.ActionReplace}}, false},
	} {
		if got := followsReplacement(change, c.all); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

func TestTheAttributesThatATemplateReads(t *testing.T) {
	parsed, err := template.Parse([]byte(`{"Resources": {"A": {"Type": "AWS::SNS::Topic"}}, "Outputs": {"O": {"Value": {"Fn::GetAtt": ["A", "TopicName"]}}, "R": {"Value": {"Ref": "A"}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	refs := []template.Reference{{Target: "A", Attribute: "TopicArn"}, {Target: "A"}, {Target: "B"}, {Target: "A", Attribute: "TopicName"}}
	got := wantedAttributes(parsed, map[string][]template.Reference{"X": refs, "Y": refs[:1]})
	if d := cmp.Diff(map[string][]string{"A": {"TopicArn", "TopicName"}}, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestWhatBecameOfAnOperationAsFarAsUndoingItGoes(t *testing.T) {
	op := func(status runlog.OpStatus, action plan.Action, stage string) runlog.Op {
		return runlog.Op{Status: status, Action: string(action), Stage: stage, Error: &runlog.OpError{Kind: provider.KindFailed}}
	}
	unchanged := op(runlog.OpSucceeded, plan.ActionUpdate, "")
	unchanged.Reason = reasonUnchanged
	stateful := op(runlog.OpSucceeded, plan.ActionReplace, "")
	stateful.Before = []byte(`{"physicalId":"b","resourceType":"AWS::S3::Bucket","properties":{}}`)
	for _, c := range []struct {
		name string
		op   runlog.Op
		want plan.Outcome
	}{
		{"a replacement whose old half has gone first", op(runlog.OpFailed, plan.ActionReplace, stageDeleted), plan.Outcome{Gone: true}},
		{"one whose old half stands", op(runlog.OpFailed, plan.ActionReplace, ""), plan.Outcome{}},
		{"one that was made", op(runlog.OpSucceeded, plan.ActionReplace, stageDeleted), plan.Outcome{Succeeded: true}},
		{"one of what holds data", stateful, plan.Outcome{Succeeded: true, Stateful: true}},
		{"an update that has failed", op(runlog.OpFailed, plan.ActionUpdate, stageDeleted), plan.Outcome{Touched: true}},
		{"an update", op(runlog.OpSucceeded, plan.ActionUpdate, ""), plan.Outcome{Succeeded: true}},
		{"an update that changed nothing", unchanged, plan.Outcome{}},
		{"a creation that has failed", op(runlog.OpFailed, plan.ActionCreate, ""), plan.Outcome{}},
	} {
		if got, err := outcomeOf(c.op); err != nil || got != c.want {
			t.Errorf("%s: %+v, %v", c.name, got, err)
		}
	}
}

func TestAFailureTellsWhatTheServiceHasSaid(t *testing.T) {
	for _, c := range []struct {
		err  provider.Error
		want string
	}{
		{provider.Error{Message: "said", Err: errors.New("wrapped")}, "said"}, {provider.Error{Err: errors.New("wrapped")}, "wrapped"}, {provider.Error{}, ""},
	} {
		if got := failed(runlog.Op{}, &c.err); got.Status != runlog.OpFailed || got.Error.Message != c.want {
			t.Errorf("%+v", got)
		}
	}
}

func TestADeletionTakesTheSnapshotThatItsPolicyAsksFor(t *testing.T) {
	before := &state.Resource{PhysicalID: "volume-1", ResourceType: "AWS::EC2::Volume"}
	op := func(action plan.Action, policy string, first bool) plan.Operation {
		return plan.Operation{Action: action, Policy: policy, DeleteFirst: first}
	}
	for _, c := range []struct {
		name    string
		op      plan.Operation
		before  *state.Resource
		replace string
		skip    bool
		want    bool
	}{
		{"a deletion", op(plan.ActionDelete, policySnapshot, false), before, "", false, true},
		{"a deletion without a policy", op(plan.ActionDelete, "Delete", false), before, policySnapshot, false, false},
		{"a replacement that deletes first", op(plan.ActionReplace, "", true), before, policySnapshot, false, true},
		{"one whose template asks for none", op(plan.ActionReplace, policySnapshot, true), before, "", false, false},
		{"one that leaves the old half for now", op(plan.ActionReplace, "", false), before, policySnapshot, false, false},
		{"an update", op(plan.ActionUpdate, policySnapshot, true), before, policySnapshot, false, false},
		{"nothing to delete", op(plan.ActionDelete, policySnapshot, false), nil, "", false, false},
		{"a run that skips them", op(plan.ActionDelete, policySnapshot, false), before, "", true, false},
	} {
		s := turnAt(1, nil)
		s.req.Options.SkipFinalSnapshot = c.skip
		if got := s.finalSnapshot(c.op, c.before, c.replace); (got != "") != c.want {
			t.Errorf("%s: %q", c.name, got)
		}
	}
}
