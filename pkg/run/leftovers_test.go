package run_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-cdk/slipway/pkg/provider"
	"github.com/slipway-cdk/slipway/pkg/runlog"
)

func TestLeftoversOfOneNameAreToldApartByTheirType(t *testing.T) {
	w := newWorld(t)
	w.cloud.script("create A", script{id: "one-name"})
	w.deploy(one("A", topic(object{})))
	w.cloud.script("delete A", script{fails: fails(provider.KindFailed)})
	// The queue has the name of the topic that can't be removed, and can't be removed either.
	for i, r := range []object{queue(object{}), topic(object{"DisplayName": "x"}), queue(object{"DelaySeconds": 1})} {
		w.cloud.script("create A", script{id: []string{"one-name", "other", "third"}[i]})
		if h := w.deploy(one("A", r)); h.Result != runlog.ResultPartial {
			t.Fatalf("deploy %d is %s: %s", i, h.Result, w.story(h.RunID))
		}
	}
	types := map[string]int{}
	sidecar, _, err := w.states.LoadSidecar(t.Context(), "App", region)
	if err != nil {
		t.Fatal(err)
	}
	for _, old := range sidecar.Cleanup {
		if old.Resource.PhysicalID == "one-name" {
			types[old.Resource.ResourceType]++
		}
	}
	if types["AWS::SNS::Topic"] != 1 || types["AWS::SQS::Queue"] != 1 {
		t.Fatalf("of the name are to be removed: %v", types)
	}
	w.cloud.script("delete A", script{})
	w.cloud.forget()
	if h := w.deploy(one("A", queue(object{"DelaySeconds": 1}))); h.Result != runlog.ResultSucceeded {
		t.Fatal(w.story(h.RunID))
	}
	if n := len(w.cloud.steps("delete A")); n != 3 {
		t.Errorf("%d leftovers were removed, want 3", n)
	}
	if left := w.pending("App"); len(left) != 0 {
		t.Errorf("%v is still to be removed", left)
	}
}

// TestAnOldHalfGoesBeforeItsNameIsTakenBack: a rename whose cleanup was cancelled is taken back. The name is still that of
// the old half, which has to go first.
func TestAnOldHalfGoesBeforeItsNameIsTakenBack(t *testing.T) {
	named := func(name string) object { return one("A", topic(object{"TopicName": name})) }
	for name, want := range map[string][]string{
		"first": {"delete A", "create A", "delete A"}, // its old half, then what is recorded now
		"third": {"create A", "delete A", "delete A"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.deploy(named("first"))
			m := w.submitDeploy(named("second"))
			m.until(func() bool { return len(w.cloud.steps("create A")) == 2 && m.atNext() })
			w.cancel(m.runID)
			w.cut(w.finish(m))
			if left := w.pending("App"); len(left) != 1 {
				t.Fatalf("waiting for their cleanup: %v", left)
			}
			w.cloud.forget()
			if h := w.deploy(named(name)); h.Result != runlog.ResultSucceeded {
				t.Fatal(w.story(h.RunID))
			}
			if d := cmp.Diff(want, stepsOf(w)); d != "" {
				t.Errorf("calls (-want +got):\n%s", d)
			}
			w.accounted("App")
		})
	}
}
