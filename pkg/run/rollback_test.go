package run_test

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-cdk/slipway/pkg/diag"
	"github.com/slipway-cdk/slipway/pkg/provider"
	"github.com/slipway-cdk/slipway/pkg/runlog"
	"github.com/slipway-cdk/slipway/pkg/state"
)

// with adds members to a resource.
func with(r object, members object) object {
	maps.Copy(r, members)
	return r
}

func TestARollbackPutsEverythingBack(t *testing.T) {
	w := newWorld(t)
	old := resources(object{
		"Updated": topic(object{"DisplayName": "one"}), "Replaced": topic(object{}), "Policy": topic(object{}), "Gone": topic(object{}),
		"Kept": with(topic(object{}), object{"UpdateReplacePolicy": "Retain"}),
	})
	next := resources(object{
		"Updated": topic(object{"DisplayName": "two"}), "Replaced": topic(object{"FifoTopic": true}),
		"Policy":  with(topic(object{}), object{"DeletionPolicy": "Retain"}),
		"Kept":    with(topic(object{"FifoTopic": true}), object{"UpdateReplacePolicy": "Retain"}),
		"Created": topic(object{}), "Bad": with(topic(object{}), object{"DependsOn": []any{"Updated", "Replaced", "Policy", "Kept", "Created"}}),
	})
	w.deploy(old)
	was, live := w.record("App"), w.cloud.exists()
	w.cloud.forget()
	w.cloud.script("create Bad", script{fails: fails(provider.KindInvalid)})
	m := w.submitDeploy(next)
	h := w.finish(m)
	if h.Result != runlog.ResultFailed || h.Failure.LogicalID != "Bad" || len(w.events(m.runID, runlog.RollbackStarted)) != 1 {
		t.Fatalf("%s %+v: %s", h.Result, h.Failure, w.story(m.runID))
	}
	if d := cmp.Diff(live, w.cloud.exists()); d != "" {
		t.Errorf("what exists (-before +after):\n%s", d)
	}
	is := w.record("App")
	is.LastModified = was.LastModified
	if d := cmp.Diff(was, is); d != "" {
		t.Errorf("the record (-before +after):\n%s", d)
	}
	if got := w.cloud.live[was.Resources["Updated"].PhysicalID].Properties["DisplayName"]; got != "one" {
		t.Errorf("Updated has %v", got)
	}
	w.sound(m.runID)
	w.accounted("App")
	if again := w.deploy(old); again.Counts.Unchanged != 5 {
		t.Errorf("the old version is not unchanged: %+v", again.Counts)
	}
}

// TestACreationThatIsUndoneDoesNotTakeUpARemnant: what an earlier failure has left under the same name was removed before.
func TestACreationThatIsUndoneDoesNotTakeUpARemnant(t *testing.T) {
	w := newWorld(t)
	w.cloud.script("create A", script{fails: fails(provider.KindFailed), remnant: true})
	w.cloud.script("delete A", script{fails: fails(provider.KindAccessDenied)})
	w.deploy(one("A", topic(object{})), noRollback)
	remnant := w.pending("App")
	w.cloud.script("create A", script{})
	w.cloud.script("create Bad", script{fails: fails(provider.KindInvalid)})
	w.cloud.script("delete A", script{})
	bad := with(topic(object{}), object{"DependsOn": "A"})
	h := w.deploy(resources(object{"A": topic(object{}), "Bad": bad}))
	if got := sortedKeys(w.record("App")); h.Result != runlog.ResultFailed || len(got) != 0 {
		t.Errorf("%s, the record has %v", h.Result, got)
	}
	if left := w.pending("App"); len(remnant) != 1 || len(left) != 0 || len(w.cloud.exists()) != 0 {
		t.Errorf("%v waited for its cleanup, and now %v does; there is %v", remnant, left, w.cloud.exists())
	}
	w.accounted("App")
}

func TestARetainedCreationIsRememberedAsAnOrphan(t *testing.T) {
	w := newWorld(t)
	w.cloud.script("create Bad", script{fails: fails(provider.KindInvalid)})
	h := w.deploy(resources(object{
		"Data": with(topic(object{}), object{"DeletionPolicy": "Retain"}),
		"Soft": with(topic(object{}), object{"DeletionPolicy": "RetainExceptOnCreate"}),
		"Bad":  with(topic(object{}), object{"DependsOn": []any{"Data", "Soft"}}),
	}))
	rec := w.record("App")
	if h.Result != runlog.ResultFailed || rec == nil || len(rec.Resources) != 0 || len(rec.Orphans) != 1 || rec.Orphans[0].LogicalID != "Data" {
		t.Fatalf("%s, record %+v", h.Result, rec)
	}
	if got := w.cloud.exists(); len(got) != 1 || got[0] != rec.Orphans[0].Resource.PhysicalID || rec.Orphans[0].OrphanedAt == 0 {
		t.Errorf("%v exists, the orphan is %+v", got, rec.Orphans[0])
	}
	w.accounted("App")
	w.sound(h.RunID)
}

func TestEveryRetainedCreationIsRememberedOnce(t *testing.T) {
	w := newWorld(t)
	w.cloud.script("create Bad", script{fails: fails(provider.KindInvalid)})
	retained := resources(object{
		"One": data(object{"DisplayName": "one"}), "Two": data(object{"DisplayName": "two"}),
		"Bad": with(topic(object{}), object{"DependsOn": []any{"One", "Two"}}),
	})
	for range 2 { // the second deploy takes them back, and fails as well
		w.deploy(retained)
		var names []string
		for _, o := range w.record("App").Orphans {
			names = append(names, o.LogicalID)
		}
		for id := range w.record("App").Resources {
			names = append(names, id)
		}
		if d := cmp.Diff([]string{"One", "Two"}, sorted(names)); d != "" {
			t.Errorf("remembered (-want +got):\n%s", d)
		}
		w.accounted("App")
	}
}

func TestAFirstDeployThatIsUndoneLeavesNothing(t *testing.T) {
	w := newWorld(t)
	w.cloud.script("create Bad", script{fails: fails(provider.KindInvalid)})
	h := w.deploy(resources(object{"A": topic(object{}), "Bad": with(topic(object{}), object{"DependsOn": "A"})}))
	if h.Result != runlog.ResultFailed || w.record("App") != nil || w.journal("App") != nil || len(w.cloud.exists()) != 0 {
		t.Errorf("%s: %+v, %+v, %v", h.Result, w.record("App"), w.journal("App"), w.cloud.exists())
	}
	w.sound(h.RunID)
}

func TestARollbackThatFailsKeepsItsJournal(t *testing.T) {
	w := newWorld(t)
	w.deploy(one("A", topic(object{"DisplayName": "one"})))
	calls := 0
	w.cloud.script("update A", script{fails: func(attempt int) *provider.Error {
		if calls++; calls > 1 {
			return fails(provider.KindAccessDenied)(attempt)
		}
		return nil
	}})
	w.cloud.script("create Bad", script{fails: fails(provider.KindInvalid)})
	h := w.deploy(resources(object{
		"A": topic(object{"DisplayName": "two"}), "B": topic(object{}), "Bad": with(topic(object{}), object{"DependsOn": []any{"A", "B"}}),
	}))
	j := w.journal("App")
	if h.Result != runlog.ResultFailed || j == nil || len(j.Segments) != 1 || j.Segments[0].Reason != state.ReasonRollingBack {
		t.Fatalf("%s, journal %+v", h.Result, j)
	}
	if !slices.ContainsFunc(h.Diagnostics.InStack("App"), func(d diag.Diagnostic) bool {
		return d.LogicalID == "A" && strings.Contains(d.Summary, "could not undo")
	}) {
		t.Errorf("nobody says that A could not be undone: %s", w.story(h.RunID))
	}
	// What could be undone has been.
	if d := cmp.Diff([]string{"A"}, sortedKeys(w.record("App"))); d != "" {
		t.Errorf("the record (-want +got):\n%s", d)
	}
	w.accounted("App")
	w.sound(h.RunID)
	w.cloud.script("create Bad", script{})
	if h = w.deploy(one("A", topic(object{"DisplayName": "two"}))); h.Result != runlog.ResultSucceeded || w.journal("App") != nil {
		t.Errorf("%s, journal %+v", h.Result, w.journal("App"))
	}
}

func TestAHalfMadeUpdateIsTakenBackFromWhatWasAttempted(t *testing.T) {
	w := newWorld(t)
	w.deploy(one("A", topic(object{"DisplayName": "one"})))
	w.cloud.forget()
	w.cloud.script("update A", script{fails: failsFirst()})
	h := w.deploy(one("A", topic(object{"DisplayName": "two"})))
	updates := w.cloud.steps("update A")
	if h.Result != runlog.ResultFailed || len(updates) != 2 {
		t.Fatalf("%s after %d updates: %s", h.Result, len(updates), w.story(h.RunID))
	}
	if back := updates[1]; back.previous["DisplayName"] != "two" || back.properties["DisplayName"] != "one" {
		t.Errorf("it is taken back from %v to %v", back.previous, back.properties)
	}
	if len(h.Diagnostics) > 0 {
		t.Errorf("a clean rollback says %v", h.Diagnostics)
	}
	w.accounted("App")
}

func TestAnUpdateThatWasPlannedAsAReplacementIsNotUndoneByADeletion(t *testing.T) {
	w := newWorld(t)
	// Sub has to be replaced if Place gets another id, which it does not: it only reads the new Dead.
	template := func(subnet string, fifo bool, extra object) object {
		r := object{
			"Place": association(subnet), "Dead": topic(object{"FifoTopic": fifo}),
			"Sub": object{"Type": "AWS::SNS::Subscription", "Properties": object{
				"TopicArn": ref("Place"), "Protocol": "sqs", "Endpoint": "arn:aws:sqs:eu-west-1:1:q",
				"RedrivePolicy": object{"deadLetterTargetArn": att("Dead", "TopicArn")},
			}},
		}
		maps.Copy(r, extra)
		return resources(r)
	}
	w.cloud.script("create Place", script{id: "the-place"})
	w.deploy(template("subnet-1", false, nil))
	live := w.cloud.exists()
	w.cloud.script("create Bad", script{fails: fails(provider.KindInvalid)})
	h := w.deploy(template("subnet-2", true, object{"Bad": with(topic(object{}), object{"DependsOn": "Sub"})}))
	var planned struct {
		Plan struct {
			Operations []struct{ ID, Action string }
		}
	}
	if o, err := w.objects.Get(t.Context(), "slipway/runs/"+h.RunID+"/plan.json"); err != nil || json.Unmarshal(o.Body, &planned) != nil {
		t.Fatal(err)
	}
	replaces := false
	for _, op := range planned.Plan.Operations {
		replaces = replaces || op.ID == "Sub" && op.Action == "replace"
	}
	if !replaces || h.Result != runlog.ResultFailed || len(w.cloud.steps("update Sub")) != 2 {
		t.Fatalf("planned as a replacement: %v, %v: %s", replaces, stepsOf(w), w.story(h.RunID))
	}
	if d := cmp.Diff(live, w.cloud.exists()); d != "" {
		t.Errorf("what exists (-before +after):\n%s\n%s", d, w.story(h.RunID))
	}
	w.accounted("App")
}

func TestWithoutRollbackTheNextDeployGoesOn(t *testing.T) {
	w := newWorld(t)
	w.cloud.script("create Bad", script{fails: fails(provider.KindInvalid)})
	template := resources(object{"A": topic(object{}), "Bad": with(topic(object{"DisplayName": "x"}), object{"DependsOn": "A"}), "Last": queue(object{"KmsMasterKeyId": ref("Bad")})})
	h := w.deploy(template, noRollback)
	if h.Result != runlog.ResultFailed || h.Counts.Created != 1 || h.Counts.Failed != 1 || h.Counts.Skipped != 1 {
		t.Fatalf("%s %+v", h.Result, h.Counts)
	}
	w.cloud.script("create Bad", script{})
	h = w.deploy(template)
	if h.Result != runlog.ResultSucceeded || h.Counts.Created != 2 || h.Counts.Unchanged != 1 || w.journal("App") != nil {
		t.Errorf("%s %+v, journal %+v", h.Result, h.Counts, w.journal("App"))
	}
}

// shape replaces every value of a JSON document by its kind, and lists by their first item's shape.
func shape(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for k, x := range v {
			switch k {
			case "properties", "attemptedProperties", "attributes", "observedProperties", "previousState":
				out[k] = "object"
			default:
				out[k] = shape(x)
			}
		}
		return out
	case []any:
		out := []any{}
		for _, x := range v {
			out = append(out, shape(x))
		}
		return out
	case string:
		return "string"
	case bool:
		return "bool"
	case float64:
		return "number"
	}
	return nil
}

// TestTheJournalHasTheShapeOfCdkds compares the segment of a failed deploy with one that cdkd has written after the
// same course of events: two updates and two creates that succeed, and one create that fails.
func TestTheJournalHasTheShapeOfCdkds(t *testing.T) {
	const sample = "../../../shared/reference/cdkd-samples/06-failures/03-update-fails-no-rollback/s3/cdkd/Fail/us-east-1/rollback-journal.json"
	body, err := os.ReadFile(filepath.FromSlash(sample))
	if err != nil {
		t.Skip("the files that cdkd has written are not here: " + sample)
	}
	var theirs struct{ Segments []map[string]any }
	if err := json.Unmarshal(body, &theirs); err != nil {
		t.Fatal(err)
	}
	w := newWorld(t)
	template := func(v string, more object) object {
		r := object{"T": topic(object{"DisplayName": v}), "A": topic(object{"DisplayName": v})}
		maps.Copy(r, more)
		return resources(r)
	}
	w.deploy(template("d1", nil))
	w.cloud.script("create Bad", script{fails: fails(provider.KindInvalid)})
	more := object{
		"B": queue(object{}), "C": queue(object{"KmsMasterKeyId": ref("B")}),
		"Bad": with(topic(object{}), object{"DependsOn": []any{"T", "A", "C"}}),
	}
	w.deploy(template("d2", more))
	w.deploy(template("d2", more), noRollback)
	o, err := w.objects.Get(t.Context(), w.states.JournalKey("App", region))
	if err != nil {
		t.Fatal(err)
	}
	var ours struct{ Segments []map[string]any }
	if err := json.Unmarshal(o.Body, &ours); err != nil {
		t.Fatal(err)
	}
	for _, segments := range [][]map[string]any{theirs.Segments, ours.Segments} {
		for _, seg := range segments {
			delete(seg, "cdkdVersion")
			// The order is that in which the operations have ended.
			slices.SortStableFunc(seg["operations"].([]any), func(a, b any) int {
				return strings.Compare(b.(map[string]any)["changeType"].(string), a.(map[string]any)["changeType"].(string))
			})
		}
	}
	// One of the rolled back deploy, of which only the failure is kept, and one of the deploy without rollback.
	if d := cmp.Diff(shape(list(theirs.Segments)), shape(list(ours.Segments))); d != "" {
		t.Errorf("the journal (-cdkd's +ours):\n%s", d)
	}
	for i, seg := range ours.Segments {
		if seg["reason"] != theirs.Segments[i]["reason"] {
			t.Errorf("segment %d has the reason %v, cdkd's %v", i, seg["reason"], theirs.Segments[i]["reason"])
		}
	}
	changes := func(segments []map[string]any) (out []string) {
		for _, seg := range segments {
			for _, op := range seg["operations"].([]any) {
				out = append(out, op.(map[string]any)["changeType"].(string))
			}
			for _, op := range seg["failedOperations"].([]any) {
				out = append(out, "failed "+op.(map[string]any)["changeType"].(string))
			}
		}
		return out
	}
	if d := cmp.Diff(changes(theirs.Segments), changes(ours.Segments)); d != "" {
		t.Errorf("changes (-cdkd's +ours):\n%s", d)
	}
}

func list(segments []map[string]any) []any {
	var out []any
	for _, seg := range segments {
		out = append(out, seg)
	}
	return out
}

func TestAnOldHalfIsNoChangeToTheJournal(t *testing.T) {
	w := newWorld(t)
	w.deploy(before())
	m := w.submitDeploy(after())
	m.until(m.atItem("Replaced.old"))
	m.step()
	m.stop()
	w.settle(w.engine, m.runID)
	j := w.journal("App")
	if j == nil {
		t.Fatal("there is no journal")
	}
	for _, op := range j.Segments[0].Operations {
		if op.LogicalID == "Replaced" && op.ChangeType == state.ChangeDelete {
			t.Errorf("%+v", op)
		}
	}
	w.accounted("App")
}
