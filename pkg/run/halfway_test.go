package run_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-cdk/slipway/pkg/provider"
	"github.com/slipway-cdk/slipway/pkg/runlog"
)

// halfUpdated is a stack whose update fails after the service has taken over a part of it.
func halfUpdated(t *testing.T) (w *world, old, next object) {
	w = newWorld(t)
	old = one("A", topic(object{"DisplayName": "one", "SignatureVersion": "1"}))
	next = one("A", topic(object{"DisplayName": "two", "SignatureVersion": "2"}))
	w.deploy(old)
	w.cloud.script("update A", script{fails: fails(provider.KindInvalid), leaves: object{"DisplayName": "two", "SignatureVersion": "1"}})
	return w, old, next
}

func TestAnUpdateThatFailsHalfwayIsRecordedAsFarAsItHasCome(t *testing.T) {
	w, old, next := halfUpdated(t)
	if h := w.deploy(next, noRollback); h.Result != runlog.ResultFailed {
		t.Fatal(w.story(h.RunID))
	}
	if d := cmp.Diff(map[string]any{"DisplayName": "two", "SignatureVersion": "1"}, w.record("App").Resources["A"].Properties); d != "" {
		t.Errorf("the record (-want +got):\n%s", d)
	}
	w.cloud.script("update A", script{})
	if h := w.deploy(old); h.Result != runlog.ResultSucceeded || h.Counts.Updated != 1 {
		t.Errorf("back to the old version: %s %+v", h.Result, h.Counts)
	}
	id := w.record("App").Resources["A"].PhysicalID
	if d := cmp.Diff(object{"DisplayName": "one", "SignatureVersion": "1"}, w.cloud.live[id].Properties); d != "" {
		t.Errorf("what is live (-want +got):\n%s", d)
	}
}

func TestAnUpdateThatFailsHalfwayIsRolledBack(t *testing.T) {
	w, _, next := halfUpdated(t)
	was, live := w.record("App"), w.cloud.exists()
	id := was.Resources["A"].PhysicalID
	// The rollback's own update goes through.
	w.cloud.script("update A", script{leaves: object{"DisplayName": "two", "SignatureVersion": "1"}, fails: once(provider.KindInvalid)})
	h := w.deploy(next)
	if h.Result != runlog.ResultFailed {
		t.Fatal(w.story(h.RunID))
	}
	w.asBefore(was, live)
	if d := cmp.Diff(object{"DisplayName": "one", "SignatureVersion": "1"}, w.cloud.live[id].Properties); d != "" {
		t.Errorf("what is live (-want +got):\n%s", d)
	}
}

// once fails the first call of a step, whatever its attempt.
func once(kind provider.Kind) func(int) *provider.Error {
	called := false
	return func(int) *provider.Error {
		if called {
			return nil
		}
		called = true
		return &provider.Error{Kind: kind, Message: "it does not like it"}
	}
}

// TestADeletionThatIsFoldedLateDoesNotTakeOutALaterResource: somebody frees the lock of a destroy in the middle of it,
// destroys the stack and deploys it again; then the first destroy is settled. What has its old name now is another one.
func TestADeletionThatIsFoldedLateDoesNotTakeOutALaterResource(t *testing.T) {
	w := newWorld(t)
	w.cloud.script("create A", script{id: "named"})
	w.deploy(one("A", topic(object{})))
	m := w.submit(order{stack: "App", command: runlog.CommandDestroy})
	m.until(m.atItem("A"))
	m.step()
	m.stop()
	if _, live := w.cloud.live["named"]; live {
		t.Fatal("the destroy has deleted nothing")
	}
	if _, err := w.states.ForceUnlock(t.Context(), "App", region); err != nil {
		t.Fatal(err)
	}
	other := w.submit(order{stack: "App", command: runlog.CommandDestroy})
	w.deadHolders["process-1"] = false
	w.finish(other)
	if h := w.deploy(one("A", topic(object{}))); h.Result != runlog.ResultSucceeded {
		t.Fatal(w.story(h.RunID))
	}
	w.settle(w.process("janitor"), m.runID)
	w.accounted("App")
	if rec := w.record("App"); rec == nil || rec.Resources["A"] == nil {
		t.Errorf("the record is %+v", rec)
	}
}
