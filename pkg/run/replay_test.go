package run_test

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-cdk/slipway/pkg/provider"
	"github.com/slipway-cdk/slipway/pkg/run"
	"github.com/slipway-cdk/slipway/pkg/runlog"
	"github.com/slipway-cdk/slipway/pkg/state"
)

// rollback runs a rollback of the stack "App" to its end.
func (w *world) rollback(options ...func(*run.Options)) runlog.Header {
	w.Helper()
	o := order{stack: "App", command: runlog.CommandRollback}
	for _, fn := range options {
		fn(&o.options)
	}
	h := w.finish(w.submit(o))
	w.sound(h.RunID)
	return h
}

func revertFailed(o *run.Options) { o.RevertFailed = true }
func force(o *run.Options)        { o.Force = true }

func orphan(ids ...string) func(*run.Options) {
	return func(o *run.Options) { o.Orphans = ids }
}

// mixed is a template, and one that changes everything about it before it fails.
func mixed() (old, next object) {
	old = resources(object{
		"Updated": topic(object{"DisplayName": "one"}), "Replaced": topic(object{}), "Policy": topic(object{}), "Gone": topic(object{}),
		"Reader": queue(object{"KmsMasterKeyId": ref("Replaced")}),
		"Kept":   with(topic(object{}), object{"UpdateReplacePolicy": "Retain"}),
	})
	next = resources(object{
		"Updated": topic(object{"DisplayName": "two"}), "Replaced": topic(object{"FifoTopic": true}),
		"Policy":  with(topic(object{}), object{"DeletionPolicy": "Retain"}),
		"Reader":  queue(object{"KmsMasterKeyId": ref("Replaced")}),
		"Kept":    with(topic(object{"FifoTopic": true}), object{"UpdateReplacePolicy": "Retain"}),
		"Created": topic(object{}), "User": queue(object{"KmsMasterKeyId": ref("Created")}),
		"Bad": with(topic(object{}), object{"DependsOn": []any{"Updated", "Replaced", "Policy", "Kept", "User", "Reader"}}),
	})
	return old, next
}

// asBefore compares the stack with what it was.
func (w *world) asBefore(was *state.Record, live []string) {
	w.Helper()
	if d := cmp.Diff(live, w.cloud.exists()); d != "" {
		w.Errorf("what exists (-before +after):\n%s", d)
	}
	is := w.record("App")
	if is != nil {
		is.LastModified = was.LastModified
	}
	if d := cmp.Diff(was, is); d != "" {
		w.Errorf("the record (-before +after):\n%s", d)
	}
}

func TestARollbackReplaysWhatADeployWithoutRollbackHasLeft(t *testing.T) {
	w := newWorld(t)
	old, next := mixed()
	w.deploy(old)
	was, live := w.record("App"), w.cloud.exists()
	w.cloud.script("create Bad", script{fails: fails(provider.KindInvalid)})
	if h := w.deploy(next, noRollback); h.Result != runlog.ResultFailed {
		t.Fatal(w.story(h.RunID))
	}
	w.cloud.forget()
	h := w.rollback()
	if h.Result != runlog.ResultSucceeded || len(h.Diagnostics) != 0 {
		t.Fatalf("%s: %s", h.Result, w.story(h.RunID))
	}
	w.asBefore(was, live)
	if w.journal("App") != nil {
		t.Errorf("the journal still has %+v", w.journal("App"))
	}
	steps := stepsOf(w)
	if slices.Index(steps, "delete User") > slices.Index(steps, "delete Created") || slices.Index(steps, "update Reader") > slices.Index(steps, "delete Replaced") {
		t.Errorf("dependents come late: %v", steps)
	}
	w.accounted("App")
	if again := w.deploy(old); again.Counts.Unchanged != 6 || again.Result != runlog.ResultSucceeded {
		t.Errorf("the old version is not unchanged: %+v", again.Counts)
	}
}

func TestARollbackOfAFirstDeployLeavesNothing(t *testing.T) {
	w := newWorld(t)
	w.cloud.script("create Bad", script{fails: fails(provider.KindInvalid)})
	template := resources(object{"A": topic(object{}), "Bad": with(topic(object{}), object{"DependsOn": "A"})})
	w.deploy(template, noRollback)
	w.deploy(template, noRollback) // a second segment, which has only failed
	h := w.rollback()
	if h.Result != runlog.ResultSucceeded || w.record("App") != nil || w.journal("App") != nil || len(w.cloud.exists()) != 0 {
		t.Errorf("%s, record %+v, journal %+v, %v: %s", h.Result, w.record("App"), w.journal("App"), w.cloud.exists(), w.story(h.RunID))
	}
}

func TestThereIsNothingToRollBackWithoutAJournal(t *testing.T) {
	w := newWorld(t)
	w.deploy(before())
	was, live := w.record("App"), w.cloud.exists()
	if h := w.rollback(); h.Result != runlog.ResultSucceeded {
		t.Error(w.story(h.RunID))
	}
	w.asBefore(was, live)
}

func TestSeveralFailedRunsAreUndoneFromTheNewestOn(t *testing.T) {
	w := newWorld(t)
	w.deploy(one("A", topic(object{"DisplayName": "one"})))
	was, live := w.record("App"), w.cloud.exists()
	w.cloud.script("create Bad", script{fails: fails(provider.KindInvalid)})
	bad := with(topic(object{}), object{"DependsOn": "A"})
	w.deploy(resources(object{"A": topic(object{"DisplayName": "two"}), "Bad": bad}), noRollback)
	w.deploy(resources(object{"A": topic(object{"DisplayName": "three", "FifoTopic": true}), "Bad": bad}), noRollback)
	w.cloud.forget()
	h := w.rollback()
	if h.Result != runlog.ResultSucceeded {
		t.Fatal(w.story(h.RunID))
	}
	w.asBefore(was, live)
	if d := cmp.Diff([]string{"delete A", "update A"}, stepsOf(w)); d != "" {
		t.Errorf("steps (-want +got):\n%s", d)
	}
	w.accounted("App")
}

func TestARollbackThatStopsHalfwayIsRepeated(t *testing.T) {
	w := newWorld(t)
	old, next := mixed()
	w.deploy(old)
	was, live := w.record("App"), w.cloud.exists()
	w.cloud.script("create Bad", script{fails: fails(provider.KindInvalid)})
	w.deploy(next, noRollback)
	w.cloud.script("delete User", script{fails: fails(provider.KindAccessDenied)})
	h := w.rollback()
	if h.Result != runlog.ResultPartial || len(w.journal("App").Segments) != 1 {
		t.Fatalf("%s, journal %+v: %s", h.Result, w.journal("App"), w.story(h.RunID))
	}
	w.accounted("App")
	// What User uses stays with it, and nothing else does.
	if rec := w.record("App"); rec.Resources["Created"] == nil || rec.Resources["User"] == nil || len(rec.Resources) != 8 {
		t.Errorf("the record has %v", sortedKeys(rec))
	}
	w.cloud.script("delete User", script{})
	w.cloud.forget()
	if h = w.rollback(); h.Result != runlog.ResultSucceeded {
		t.Fatal(w.story(h.RunID))
	}
	if d := cmp.Diff([]string{"delete User", "delete Created"}, stepsOf(w)); d != "" {
		t.Errorf("the second try (-want +got):\n%s", d)
	}
	w.asBefore(was, live)
}

func TestADeadRollbackIsSettledAndRepeated(t *testing.T) {
	old, next := mixed()
	for _, at := range []string{"User.undo", "Created.undo", "Replaced.undo", "Updated.undo"} {
		t.Run(at, func(t *testing.T) {
			w := newWorld(t)
			w.deploy(old)
			was, live := w.record("App"), w.cloud.exists()
			w.cloud.script("create Bad", script{fails: fails(provider.KindInvalid)})
			w.deploy(next, noRollback)
			m := w.submit(order{stack: "App", command: runlog.CommandRollback})
			m.until(m.atItem(at))
			m.step()
			m.stop()
			w.settle(w.process("janitor"), m.runID)
			w.sound(m.runID)
			if h := w.rollback(); h.Result != runlog.ResultSucceeded {
				t.Fatal(w.story(h.RunID))
			}
			w.asBefore(was, live)
			w.accounted("App")
			if w.journal("App") != nil {
				t.Errorf("journal %+v", w.journal("App"))
			}
		})
	}
}

// TestACancelledRollbackIsGoneOnWith cancels a rollback at every one of its calls; the next one finishes it.
func TestACancelledRollbackIsGoneOnWith(t *testing.T) {
	old, next := mixed()
	cancelled := 0
	for k := 0; ; k += stride() {
		w := newWorld(t)
		w.deploy(old)
		was, live := w.record("App"), w.cloud.exists()
		w.cloud.script("create Bad", script{fails: fails(provider.KindInvalid)})
		w.deploy(next, noRollback)
		m := w.submit(order{stack: "App", command: runlog.CommandRollback})
		reached, first := false, w.faults.n
		w.faults.onCall = func(n int) {
			if n != first+k+1 {
				return
			}
			reached = true
			if err := w.canceller().Cancel(t.Context(), m.runID, "you@desk"); err != nil && !errors.Is(err, run.ErrEnded) {
				t.Error(err)
			}
		}
		h := w.finish(m)
		w.faults.onCall = nil
		w.sound(h.RunID)
		if !reached {
			break
		}
		if h.Failure != nil && h.Failure.Summary == cancelledByYou {
			cancelled++
			if j := w.journal("App"); j == nil || len(j.Segments) != 1 {
				t.Fatalf("ahead of call %d: the journal is %+v", k+1, j)
			}
			if h := w.rollback(); h.Result != runlog.ResultSucceeded {
				t.Fatalf("ahead of call %d: %s", k+1, w.story(h.RunID))
			}
		}
		w.asBefore(was, live)
		w.accounted("App")
		if w.journal("App") != nil || t.Failed() {
			t.Fatalf("ahead of call %d: journal %+v", k+1, w.journal("App"))
		}
	}
	if cancelled < 10 {
		t.Errorf("%d rollbacks were cancelled", cancelled)
	}
}

func TestAnOldHalfThatIsGoneIsMadeAgain(t *testing.T) {
	for _, c := range []struct {
		name      string
		old, next object
		template  func(r object) object
		steps     []string
	}{
		{
			"side by side", topic(object{"TopicName": "one"}), topic(object{"TopicName": "two"}),
			func(r object) object {
				return resources(object{"A": r, "B": queue(object{"KmsMasterKeyId": ref("A")})})
			},
			[]string{"create A", "update B", "delete A"},
		},
		{
			"one after the other", association("subnet-1"), association("subnet-2"),
			func(r object) object { return one("A", r) },
			[]string{"delete A", "create A"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			w.deploy(c.template(c.old))
			props := w.record("App").Resources["A"].Properties
			with := func(r object) object {
				t := c.template(r)
				maps.Copy(t["Resources"].(object), object{"Bad": object{"Type": "AWS::SNS::Topic", "DependsOn": "A"}})
				return t
			}
			w.cloud.script("create Bad", script{fails: fails(provider.KindInvalid)})
			w.deploy(with(c.next), noRollback)
			// As cdkd does: the old half has been deleted at once.
			for _, id := range w.pending("App") {
				delete(w.cloud.live, id)
			}
			w.cloud.forget()
			h := w.rollback()
			if h.Result != runlog.ResultSucceeded {
				t.Fatal(w.story(h.RunID))
			}
			if d := cmp.Diff(c.steps, stepsOf(w)); d != "" {
				t.Errorf("steps (-want +got):\n%s", d)
			}
			if d := cmp.Diff(props, w.record("App").Resources["A"].Properties); d != "" {
				t.Errorf("A (-before +after):\n%s", d)
			}
		})
	}
}

func TestWhatHasFailedIsUndoneOnDemand(t *testing.T) {
	w := newWorld(t)
	w.deploy(one("A", topic(object{"DisplayName": "one"})))
	w.cloud.script("update A", script{fails: failsFirst()})
	w.cloud.script("create B", script{fails: fails(provider.KindInvalid), remnant: true})
	w.cloud.script("delete B", script{fails: failsFirst()})
	w.deploy(resources(object{"A": topic(object{"DisplayName": "two"}), "B": topic(object{})}), noRollback)
	if len(w.pending("App")) != 1 {
		t.Fatalf("pending %v", w.pending("App"))
	}
	w.cloud.forget()
	h := w.rollback(revertFailed)
	if h.Result != runlog.ResultSucceeded || w.journal("App") != nil || len(w.pending("App")) != 0 {
		t.Fatalf("%s, pending %v: %s", h.Result, w.pending("App"), w.story(h.RunID))
	}
	updates := w.cloud.steps("update A")
	if len(updates) != 1 || updates[0].previous["DisplayName"] != "two" || updates[0].properties["DisplayName"] != "one" {
		t.Errorf("A is taken back by %+v", updates)
	}
	w.accounted("App")
}

func TestWhatHasFailedIsLeftAloneOtherwise(t *testing.T) {
	w := newWorld(t)
	w.deploy(one("A", topic(object{"DisplayName": "one"})))
	w.cloud.script("update A", script{fails: failsFirst()})
	w.deploy(one("A", topic(object{"DisplayName": "two"})), noRollback)
	w.cloud.forget()
	if h := w.rollback(); h.Result != runlog.ResultSucceeded || len(w.cloud.calls) != 0 || w.journal("App") != nil {
		t.Errorf("%v: %s", stepsOf(w), w.story(h.RunID))
	}
}

func TestAnOrphanIsLeftInAWS(t *testing.T) {
	w := newWorld(t)
	w.cloud.script("create Bad", script{fails: fails(provider.KindInvalid)})
	w.deploy(one("U", topic(object{"DisplayName": "one"})))
	w.deploy(resources(object{
		"A": topic(object{}), "U": topic(object{"DisplayName": "two"}), "Bad": with(topic(object{}), object{"DependsOn": []any{"A", "U"}}),
	}), noRollback)
	if h := w.rollback(orphan("Nobody")); h.Result != runlog.ResultFailed || w.journal("App") == nil {
		t.Errorf("an unknown name: %s", w.story(h.RunID))
	}
	h := w.rollback(orphan("A", "U"))
	rec := w.record("App")
	if h.Result != runlog.ResultSucceeded || w.journal("App") != nil || rec.Resources["A"] != nil || len(rec.Orphans) != 1 || rec.Orphans[0].LogicalID != "A" {
		t.Fatalf("%+v: %s", rec, w.story(h.RunID))
	}
	if rec.Resources["U"].Properties["DisplayName"] != "two" {
		t.Error("U was undone")
	}
	w.accounted("App")
}

// putJournal puts a journal as another tool has written it.
func (w *world) putJournal(segments string) {
	w.Helper()
	w.putRaw(w.states.JournalKey("App", region), `{"journalVersion":1,"stackName":"App","region":"`+region+`","segments":[`+segments+`]}`)
}

func segmentOf(operations string) string {
	return `{"runId":"r","timestamp":1,"reason":"no-rollback-failure","initialDeploy":false,"operations":[` + operations + `]}`
}

func TestADeletionIsNotUndone(t *testing.T) {
	w := newWorld(t)
	w.deploy(one("A", topic(object{})))
	w.putJournal(segmentOf(`{"logicalId":"D","changeType":"DELETE","resourceType":"AWS::SNS::Topic","physicalId":"d"}`))
	h := w.rollback()
	if h.Result != runlog.ResultPartial || !warned(h, "D") || w.journal("App") != nil {
		t.Errorf("journal %+v: %s", w.journal("App"), w.story(h.RunID))
	}
}

func TestAnotherResourceUnderTheNameIsLeftAlone(t *testing.T) {
	w := newWorld(t)
	w.deploy(resources(object{"A": topic(object{}), "B": topic(object{})}))
	was, live := w.record("App"), w.cloud.exists()
	w.putJournal(segmentOf(`{"logicalId":"A","changeType":"CREATE","resourceType":"AWS::SNS::Topic","physicalId":"another"},` +
		`{"logicalId":"B","changeType":"UPDATE","resourceType":"AWS::SNS::Topic","physicalId":"another","previousState":{"physicalId":"another","resourceType":"AWS::SNS::Topic","properties":{"DisplayName":"x"}}}`))
	h := w.rollback()
	if h.Result != runlog.ResultPartial || !warned(h, "A") || !warned(h, "B") {
		t.Error(w.story(h.RunID))
	}
	w.asBefore(was, live)
}

func TestAValueThatIsNotKeptIsNotSent(t *testing.T) {
	entry := func(w *world) string {
		id := w.record("App").Resources["A"].PhysicalID
		return segmentOf(`{"logicalId":"A","changeType":"UPDATE","resourceType":"AWS::SNS::Topic","physicalId":"` + id +
			`","previousState":{"physicalId":"` + id + `","resourceType":"AWS::SNS::Topic","properties":{"DisplayName":"***"}}}`)
	}
	w := newWorld(t)
	w.deploy(one("A", topic(object{"DisplayName": "one"})))
	w.putJournal(entry(w))
	w.cloud.forget()
	h := w.rollback()
	fail := w.events(h.RunID, runlog.OpFail)
	if h.Result != runlog.ResultPartial || len(w.cloud.calls) != 0 || w.journal("App") == nil || len(fail) != 1 || !strings.Contains(fail[0].Error.Message, "Properties.DisplayName") {
		t.Fatalf("%s: %s", h.Result, w.story(h.RunID))
	}
	if h = w.rollback(force); h.Result != runlog.ResultPartial || len(w.cloud.calls) != 0 || w.journal("App") != nil {
		t.Errorf("with --force: %s", w.story(h.RunID))
	}
}

func TestAJournalOfANewerFormatIsRefused(t *testing.T) {
	w := newWorld(t)
	w.deploy(one("A", topic(object{})))
	w.putRaw(w.states.JournalKey("App", region), `{"journalVersion":2,"stackName":"App","region":"`+region+`","segments":[]}`)
	h := w.rollback()
	if h.Result != runlog.ResultFailed || !h.Diagnostics.HasErrors() {
		t.Error(w.story(h.RunID))
	}
	if _, err := w.objects.Get(t.Context(), w.states.JournalKey("App", region)); err != nil {
		t.Error(err)
	}
}
