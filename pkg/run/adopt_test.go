package run_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-cdk/slipway/pkg/diff"
	"github.com/slipway-cdk/slipway/pkg/plan"
	"github.com/slipway-cdk/slipway/pkg/provider"
	"github.com/slipway-cdk/slipway/pkg/run"
	"github.com/slipway-cdk/slipway/pkg/runlog"
)

// data is a resource that is retained.
func data(properties object) object {
	return with(topic(properties), object{"DeletionPolicy": "Retain"})
}

// orphaned is a world in which a rollback has left the retained resource Data of a first deploy in AWS.
func orphaned(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	w.cloud.script("create Bad", script{fails: fails(provider.KindInvalid)})
	w.deploy(resources(object{"Data": data(object{"DisplayName": "one"}), "Bad": with(topic(object{}), object{"DependsOn": "Data"})}))
	if rec := w.record("App"); rec == nil || len(rec.Orphans) != 1 || len(w.cloud.exists()) != 1 {
		t.Fatalf("there is no orphan: %+v", rec)
	}
	w.cloud.forget()
	return w
}

// planned is what a plan run shows of the stack.
func (w *world) planned(template object) plan.StackView {
	w.Helper()
	m := w.submit(order{stack: "App", command: runlog.CommandPlan, template: template, change: func(r *run.Request) { r.Of = runlog.CommandDeploy }})
	h := w.header(m.runID)
	h.Kind = runlog.KindDeployment
	if _, err := w.log.UpdateHeader(w.Context(), h); err != nil {
		w.Fatal(err)
	}
	w.finish(m)
	views, err := w.engine.PlanViews(w.Context(), m.runID)
	if err != nil || len(views) != 1 {
		w.Fatalf("%d plans, %v: %s", len(views), err, w.story(m.runID))
	}
	return views[0]
}

func TestTheNextDeployAdoptsAnOrphan(t *testing.T) {
	for _, c := range []struct {
		name  string
		now   object
		shown diff.Action
		steps []string
	}{
		{"as it is", object{"DisplayName": "one"}, diff.ActionNone, []string{"create Reader"}},
		{"with a change", object{"DisplayName": "two"}, diff.ActionUpdate, []string{"update Data", "create Reader"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := orphaned(t)
			id := w.record("App").Orphans[0].Resource.PhysicalID
			template := resources(object{"Data": data(c.now), "Reader": queue(object{"KmsMasterKeyId": ref("Data")})})
			view := w.planned(template)
			if ch := view.Changes; len(ch) != 2 || ch[0].LogicalID != "Data" && ch[1].LogicalID != "Data" {
				t.Fatalf("the plan shows %+v", ch)
			}
			for _, ch := range view.Changes {
				if ch.LogicalID == "Data" && (ch.Action != c.shown || !ch.Adopted) {
					t.Errorf("the plan shows %+v", ch)
				}
			}
			h := w.deploy(template)
			rec := w.record("App")
			if h.Result != runlog.ResultSucceeded || len(rec.Orphans) != 0 || rec.Resources["Data"].PhysicalID != id || rec.Resources["Reader"].Properties["KmsMasterKeyId"] != id {
				t.Fatalf("%+v: %s", rec, w.story(h.RunID))
			}
			if d := cmp.Diff(c.steps, stepsOf(w)); d != "" {
				t.Errorf("steps (-want +got):\n%s", d)
			}
			w.accounted("App")
			if again := w.deploy(template); again.Counts.Unchanged != 2 {
				t.Errorf("the next deploy has %+v", again.Counts)
			}
		})
	}
}

func TestAnOrphanThatIsGoneIsMadeAnew(t *testing.T) {
	w := orphaned(t)
	delete(w.cloud.live, w.record("App").Orphans[0].Resource.PhysicalID)
	h := w.deploy(one("Data", data(object{"DisplayName": "one"})))
	rec := w.record("App")
	if h.Result != runlog.ResultSucceeded || !warned(h, "Data") || len(rec.Orphans) != 0 || rec.Resources["Data"] == nil {
		t.Errorf("%+v: %s", rec, w.story(h.RunID))
	}
	w.accounted("App")
}

func TestAnOrphanOfAnotherKindStaysOne(t *testing.T) {
	for name, now := range map[string]object{
		"another type":             queue(object{}),
		"a replacement of it":      data(object{"DisplayName": "one", "FifoTopic": true}),
		"nothing in its place":     nil,
		"what is conditioned away": with(data(object{}), object{"Condition": "Never"}),
	} {
		t.Run(name, func(t *testing.T) {
			w := orphaned(t)
			was := w.record("App").Orphans
			r := object{"Other": topic(object{})}
			if now != nil {
				r["Data"] = now
			}
			template := resources(r)
			template["Conditions"] = object{"Never": object{"Fn::Equals": []any{"a", "b"}}}
			h := w.deploy(template)
			if h.Result != runlog.ResultSucceeded || !warned(h, "Data") {
				t.Errorf("%s: %s", h.Result, w.story(h.RunID))
			}
			if d := cmp.Diff(was, w.record("App").Orphans); d != "" {
				t.Errorf("orphans (-before +after):\n%s", d)
			}
			w.accounted("App")
		})
	}
}

func TestAnAdoptionThatFailsLosesNothing(t *testing.T) {
	w := orphaned(t)
	id := w.record("App").Orphans[0].Resource.PhysicalID
	h := w.deploy(resources(object{"Data": data(object{"DisplayName": "two"}), "Bad": with(topic(object{}), object{"DependsOn": "Data"})}))
	rec := w.record("App")
	if h.Result != runlog.ResultFailed || rec.Resources["Data"] == nil || rec.Resources["Data"].PhysicalID != id || rec.Resources["Data"].Properties["DisplayName"] != "one" {
		t.Errorf("%+v: %s", rec, w.story(h.RunID))
	}
	w.accounted("App")
}

func TestADestroyKeepsOrphansAndNamesThem(t *testing.T) {
	w := orphaned(t)
	w.cloud.script("create Bad", script{})
	w.deploy(one("Other", topic(object{})))
	h := w.destroy()
	rec := w.record("App")
	if h.Result != runlog.ResultSucceeded || !warned(h, "Data") || rec == nil || len(rec.Orphans) != 1 || len(rec.Resources) != 0 {
		t.Fatalf("%+v: %s", rec, w.story(h.RunID))
	}
	w.accounted("App")
	w.sound(h.RunID)
	h = w.finish(w.submit(order{stack: "App", command: runlog.CommandDestroy, options: run.Options{DeleteRetained: true}}))
	if h.Result != runlog.ResultSucceeded || w.record("App") != nil || len(w.cloud.exists()) != 0 {
		t.Errorf("%+v, %v: %s", w.record("App"), w.cloud.exists(), w.story(h.RunID))
	}
	w.sound(h.RunID)
}

// TestADeadAdoptionIsGoneOnWith at every point.
func TestADeadAdoptionIsGoneOnWith(t *testing.T) {
	template := resources(object{"Data": data(object{"DisplayName": "two"}), "Reader": queue(object{"KmsMasterKeyId": ref("Data")})})
	for at := 0; ; at++ {
		w := orphaned(t)
		m := w.submitDeploy(template)
		for range at {
			if !m.ended {
				m.step()
			}
		}
		if m.ended {
			return
		}
		m.stop()
		w.settle(w.process("janitor"), m.runID)
		w.accounted("App")
		if h := w.deploy(template); h.Result != runlog.ResultSucceeded {
			t.Fatalf("point %d: %s", at, w.story(h.RunID))
		}
		rec := w.record("App")
		if len(rec.Orphans) != 0 || len(rec.Resources) != 2 || len(w.cloud.steps("create Data")) != 0 {
			body, _ := json.Marshal(rec)
			t.Errorf("point %d: %s", at, body)
		}
		w.accounted("App")
	}
}
