package run

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-cdk/slipway/pkg/diff"
	"github.com/slipway-cdk/slipway/pkg/plan"
	"github.com/slipway-cdk/slipway/pkg/provider"
	"github.com/slipway-cdk/slipway/pkg/runlog"
	"github.com/slipway-cdk/slipway/pkg/state"
)

func TestAnEntryOfTheJournalSaysWhoProvisions(t *testing.T) {
	before := &state.Resource{PhysicalID: "a", ProvisionedBy: "before"}
	after := []byte(`{"physicalId":"a","resourceType":"AWS::SNS::Topic","properties":{"P":"p"},"provisionedBy":"after"}`)
	for _, c := range []struct {
		name       string
		before     *state.Resource
		after      []byte
		by         string
		properties object
	}{
		{"an update", before, after, "after", object{"P": "p"}}, {"a creation", nil, after, "after", object{"P": "p"}},
		{"a deletion", before, nil, "before", nil}, {"a deletion of what was never made", nil, nil, "", nil},
	} {
		got, err := completed(runlog.Op{After: c.after}, c.before)
		if d := cmp.Diff(c.properties, got.Properties); err != nil || got.ProvisionedBy != c.by || d != "" {
			t.Errorf("%s: %+v, %v", c.name, got, err)
		}
	}
	if _, err := completed(runlog.Op{After: []byte(`"damaged"`)}, before); err == nil {
		t.Error("a damaged record becomes an entry")
	}
}

func TestAnEntryOfTheJournalSaysWhatWasAttempted(t *testing.T) {
	inputs := func(properties string) map[string][]byte {
		return map[string][]byte{waveKey("r", 2): []byte(`{"wave":2,"operations":{"A":{` + properties + `}}}`)}
	}
	for _, c := range []struct {
		name   string
		bodies map[string][]byte
		op     runlog.Op
		want   object
		fails  bool
	}{
		{"what was sent", inputs(`"properties":{"P":"p"}`), runlog.Op{OpID: "A", Wave: 2, Action: string(plan.ActionUpdate), Error: &runlog.OpError{Kind: provider.KindInvalid}}, object{"P": "p"}, false},
		{"a creation without properties", inputs(``), runlog.Op{OpID: "A", Wave: 2, Action: string(plan.ActionCreate)}, object{}, false},
		{"a deletion", inputs(``), runlog.Op{OpID: "A", Wave: 2, Action: string(plan.ActionDelete)}, nil, false},
		{"what could not be resolved", inputs(`"properties":{"P":"p"}`), runlog.Op{OpID: "A", Wave: 2, Action: string(plan.ActionUpdate), Error: &runlog.OpError{Code: codeUnresolvable}}, nil, false},
		{"what was not among its wave", inputs(``), runlog.Op{OpID: "B", Wave: 2, Action: string(plan.ActionUpdate)}, nil, false},
		{"what was in no wave", nil, runlog.Op{OpID: "A", Wave: 2, Action: string(plan.ActionUpdate)}, nil, false},
		{"what can't be read", map[string][]byte{waveKey("r", 2): []byte("damaged")}, runlog.Op{OpID: "A", Wave: 2}, nil, true},
	} {
		e := &Engine{Objects: mapObjects{bodies: c.bodies}}
		got, err := e.lost(t.Context(), runlog.Header{RunID: "r"}, c.op, &state.Resource{PhysicalID: "a", ProvisionedBy: "sdk"})
		if d := cmp.Diff(c.want, got.AttemptedProperties); d != "" || (err != nil) != c.fails || got.PhysicalID != "a" || got.ProvisionedBy != "sdk" {
			t.Errorf("%s: %+v, %v", c.name, got, err)
		}
	}
}

func TestWhyARunCannotHaveTheLock(t *testing.T) {
	h := runlog.Header{Stack: runlog.StackRef{Name: "App"}}
	held := &state.LockedError{Holder: state.LockInfo{Owner: "them"}, Stack: "App"}
	for _, c := range []struct {
		name                  string
		held                  *state.LockedError
		ahead                 int
		waited                bool
		summary, detail, next string
	}{
		{"somebody has it", held, 0, false, "stack App is locked", "is locked by", "let it wait"},
		{"somebody waits for it", nil, 1, false, "it is not this run's turn on stack App", "1 run is waiting for its lock", "takes its place in the line"},
		{"both", held, 2, false, "stack App is locked", "is locked by", "takes its place in the line"},
		{"it has waited", held, 0, true, "stack App is locked, and the time to wait is over", "is locked by", "give it more time"},
	} {
		d := inTheWay(h, c.held, c.ahead, c.waited)
		if d.Summary != c.summary || !strings.Contains(d.Detail, c.detail) || !strings.Contains(d.Next, c.next) || strings.Contains(d.Detail, "waiting for its lock") != (c.ahead > 0) {
			t.Errorf("%s: %+v", c.name, d)
		}
	}
}

func TestAValueIsLookedForInMessagesFromSixCharactersOn(t *testing.T) {
	got := withoutValues(&provider.Error{Message: "neither sixsix nor fives"}, "My::Own::Type", map[string]any{"A": "sixsix", "B": "fives"})
	if got.Message != "neither *** nor fives" {
		t.Errorf("it becomes %q", got.Message)
	}
}

func TestAReplayIsShownByWhatBecomesOfTheResources(t *testing.T) {
	bucket := &state.Resource{PhysicalID: "b", ResourceType: "AWS::S3::Bucket", Properties: object{}}
	topic := &state.Resource{PhysicalID: "t", ResourceType: "AWS::SNS::Topic", Properties: object{"DisplayName": "now"}}
	was := &state.Resource{PhysicalID: "t", ResourceType: "AWS::SNS::Topic", Properties: object{"DisplayName": "was"}}
	rec := &state.Record{Resources: map[string]*state.Resource{"R": topic, "T": topic, "U": topic, "D": bucket, "F": bucket, "P": topic, "X": bucket}}
	op := func(id, suffix string, action plan.Action, undoes string) plan.Operation {
		return plan.Operation{ID: id + suffix, LogicalID: id, Action: action, Undoes: undoes}
	}
	const undo, old = plan.UndoSuffix, plan.UndoSuffix + plan.OldSuffix
	changes := replayChanges(plan.Replay{
		Plan: plan.Plan{Operations: []plan.Operation{
			op("R", undo, plan.ActionReplace, "r"), op("R", old, plan.ActionDelete, ""), // its second half is not shown
			op("X", undo, plan.ActionReplace, "x"),
			op("O", old, plan.ActionDelete, ""), op("V", old, plan.ActionDelete, "v"), op("V", undo, plan.ActionCreate, "w"),
			op("U", undo, plan.ActionUpdate, "u"), op("D", undo, plan.ActionDelete, "d"), op("F", undo, plan.ActionForget, "f"),
			op("T", undo, plan.ActionDelete, "t"), op("P", undo, plan.ActionRecord, "p"), op("C", undo, plan.ActionCreate, "c"),
		}},
		Undone: map[string]plan.Undone{
			"r": {Action: plan.ActionReplace, Before: was}, "x": {Action: plan.ActionReplace, Before: was}, "u": {Action: plan.ActionUpdate, Before: was},
		},
	}, rec)
	type shown struct {
		ID, OldType     string
		Action          diff.Action
		Stateful, Alone bool
		Changes         int
	}
	var got []shown
	for _, c := range changes {
		got = append(got, shown{c.LogicalID, c.OldType, c.Action, c.Stateful, c.RecordOnly, len(c.Changes)})
	}
	want := []shown{
		{ID: "R", Action: diff.ActionReplace, Changes: 1}, {ID: "X", Action: diff.ActionReplace, OldType: "AWS::S3::Bucket"},
		{ID: "O", Action: diff.ActionDelete}, {ID: "V", Action: diff.ActionDelete}, {ID: "V", Action: diff.ActionCreate},
		{ID: "U", Action: diff.ActionUpdate, Changes: 1}, {ID: "D", Action: diff.ActionDelete, Stateful: true}, {ID: "F", Action: diff.ActionDelete},
		{ID: "T", Action: diff.ActionDelete}, {ID: "P", Alone: true}, {ID: "C", Action: diff.ActionCreate},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("shown (-want +got):\n%s", d)
	}
}

func TestWhichOperationsOfAReplayNeedWhatAResourceWas(t *testing.T) {
	for action, want := range map[plan.Action]bool{
		plan.ActionCreate: true, plan.ActionUpdate: true, plan.ActionReplace: true, plan.ActionDelete: false, plan.ActionForget: false, plan.ActionRecord: false,
	} {
		p := plan.Plan{Operations: []plan.Operation{{ID: "o", Undoes: "other", Action: plan.ActionCreate}, {ID: "u", Undoes: "entry", Action: action}}}
		if got := sends(p, "entry"); got != want {
			t.Errorf("%s: %v", action, got)
		}
		if sends(p, "none") {
			t.Error("an entry that nothing takes back needs something")
		}
	}
}

func TestAReplayWarnsOfSecretsThatItWouldHaveToSend(t *testing.T) {
	masked := &state.Resource{Properties: object{"P": "***"}}
	replay := plan.Replay{
		Plan: plan.Plan{Operations: []plan.Operation{{ID: "a", Undoes: "a", Action: plan.ActionUpdate}, {ID: "b", Undoes: "b", Action: plan.ActionUpdate}, {ID: "d", Undoes: "d", Action: plan.ActionDelete}}},
		Undone: map[string]plan.Undone{
			"a": {LogicalID: "A", Before: masked}, "b": {LogicalID: "B", Before: &state.Resource{Properties: object{"P": "p"}}}, "c": {LogicalID: "C", Before: masked},
			"d": {LogicalID: "D", Before: masked}, "e": {LogicalID: "E"},
		},
	}
	diags := replayWarnings(replay)
	if len(diags) != 1 || diags[0].LogicalID != "A" || diags[0].Path != "Properties.P" {
		t.Errorf("%v", diags)
	}
}
