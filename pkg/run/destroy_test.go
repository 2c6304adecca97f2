package run_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-cdk/slipway/pkg/objectstore"
	"github.com/slipway-cdk/slipway/pkg/plan"
	"github.com/slipway-cdk/slipway/pkg/provider"
	"github.com/slipway-cdk/slipway/pkg/run"
	"github.com/slipway-cdk/slipway/pkg/runlog"
	"github.com/slipway-cdk/slipway/pkg/state"
)

func TestADestroyedStackLeavesNoFile(t *testing.T) {
	w := newWorld(t)
	w.deploy(after())
	w.putJournal(segmentOf(""))
	if h := w.destroy(); h.Result != runlog.ResultSucceeded {
		t.Fatal(w.story(h.RunID))
	}
	for key := range w.objects.objs {
		if strings.HasPrefix(key, "slipway/stacks/App/") || key == w.states.StateKey("App", region) || key == w.states.JournalKey("App", region) {
			t.Errorf("%s is left", key)
		}
	}
}

// plannedDestroy is what a plan run shows of a destroy of the stack.
func (w *world) plannedDestroy(options run.Options) plan.StackView {
	w.Helper()
	h := w.finish(w.submitApp(app{command: runlog.CommandPlan, of: runlog.CommandDestroy, stacks: []appStack{{name: "App"}}, options: options}))
	views, err := w.engine.PlanViews(w.Context(), h.RunID)
	if err != nil || len(views) != 1 {
		w.Fatalf("%d plans, %v: %s", len(views), err, w.story(h.RunID))
	}
	return views[0]
}

func TestADestroyLeavesWhatIsRetainedUnlessItIsToldOtherwise(t *testing.T) {
	for _, deleteRetained := range []bool{false, true} {
		w := newWorld(t)
		w.deploy(resources(object{"Data": data(object{}), "Other": topic(object{})}))
		options := run.Options{DeleteRetained: deleteRetained}
		shown := map[string]bool{}
		for _, c := range w.plannedDestroy(options).Changes {
			shown[c.LogicalID] = c.Retain
		}
		if d := cmp.Diff(map[string]bool{"Data": !deleteRetained, "Other": false}, shown); d != "" {
			t.Errorf("retained according to the plan (-want +got):\n%s", d)
		}
		h := w.finish(w.submit(order{stack: "App", command: runlog.CommandDestroy, options: options}))
		want, retained := []string{"delete Data", "delete Other"}, 0
		if !deleteRetained {
			want, retained = want[1:], 1
		}
		var deleted []string
		for _, c := range w.cloud.steps("delete") {
			deleted = append(deleted, c.step)
		}
		if d := cmp.Diff(want, sorted(deleted)); d != "" || h.Result != runlog.ResultSucceeded {
			t.Errorf("%s, calls (-want +got):\n%s", h.Result, d)
		}
		if told := w.events(h.RunID, runlog.OpRetain); len(told) != retained {
			t.Errorf("%d events tell of what is retained, want %d", len(told), retained)
		}
		if w.record("App") != nil {
			t.Error("the record is left")
		}
		w.sound(h.RunID)
	}
}

// TestADestroyThatLeavesOrphansForgetsEverythingElse: of the record only they are left, and what the sidecar knows of the
// parameters stays for the deploy that takes them back.
func TestADestroyThatLeavesOrphansForgetsEverythingElse(t *testing.T) {
	for name, put := range map[string]func(*state.Record){
		"outputs": func(rec *state.Record) { rec.Outputs = map[string]any{"O": "o"} },
		"imports": func(rec *state.Record) {
			rec.Outputs, rec.Imports = map[string]any{}, []state.Import{{SourceStack: "P", SourceRegion: region, ExportName: "e"}}
		},
		"what it reads of other stacks": func(rec *state.Record) {
			rec.Outputs, rec.OutputReads = map[string]any{}, []state.OutputRead{{SourceStack: "P", SourceRegion: region, OutputName: "o"}}
		},
		"a rollback journal": func(rec *state.Record) { rec.Outputs = map[string]any{} },
	} {
		t.Run(name, func(t *testing.T) {
			w := orphaned(t)
			w.cloud.script("create Bad", script{})
			template := one("Other", topic(object{"DisplayName": ref("Name")}))
			template["Parameters"] = object{"Name": object{"Type": "String"}}
			w.finish(w.submit(order{stack: "App", command: runlog.CommandDeploy, template: template, change: func(r *run.Request) {
				r.Stacks[0].Parameters = map[string]string{"Name": "given"}
			}}))
			w.editUnderSidecar(put)
			w.putJournal(segmentOf(""))
			h := w.destroy()
			rec := w.record("App")
			if h.Result != runlog.ResultSucceeded || rec == nil || len(rec.Orphans) != 1 {
				t.Fatalf("%+v: %s", rec, w.story(h.RunID))
			}
			if len(rec.Outputs)+len(rec.Imports)+len(rec.OutputReads) != 0 || w.journal("App") != nil {
				t.Errorf("left: %+v, journal %+v", rec, w.journal("App"))
			}
			sidecar, _, err := w.states.LoadSidecar(t.Context(), "App", region)
			if err != nil {
				t.Fatal(err)
			}
			digest, err := state.Digest(rec)
			if gen := sidecar.For(digest); err != nil || gen == nil || gen.Parameters["Name"] != "given" {
				t.Errorf("the sidecar knows %+v of the record, %v", gen, err)
			}
			w.sound(h.RunID)
		})
	}
}

// editUnderSidecar changes the record as this product would have written it, with the sidecar bound to it.
func (w *world) editUnderSidecar(fn func(rec *state.Record)) {
	w.Helper()
	sidecar, etag, err := w.states.LoadSidecar(w.Context(), "App", region)
	if err != nil {
		w.Fatal(err)
	}
	w.edit(fn)
	if sidecar.Next.StateDigest, err = state.Digest(w.record("App")); err != nil {
		w.Fatal(err)
	}
	if _, err := w.states.SaveSidecar(w.Context(), sidecar, etag); err != nil {
		w.Fatal(err)
	}
}

func TestARecordWithoutASidecarIsDestroyedDownToItsOrphans(t *testing.T) {
	w := orphaned(t)
	w.cloud.script("create Bad", script{})
	w.deploy(one("Other", topic(object{})))
	for key := range w.objects.objs {
		if strings.HasPrefix(key, "slipway/stacks/App/") {
			if err := w.objects.Delete(t.Context(), key, objectstore.Condition{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	h := w.destroy()
	if rec := w.record("App"); h.Result != runlog.ResultSucceeded || rec == nil || len(rec.Orphans) != 1 || len(rec.Resources) != 0 {
		t.Errorf("%+v: %s", rec, w.story(h.RunID))
	}
	w.sound(h.RunID)
}

// unreadable puts the record of another stack whose imports can't be read.
func (w *world) unreadable() {
	w.Helper()
	w.putRaw(w.states.StateKey("Broken", region), `{"version":8,"stackName":"Broken","region":"`+region+`","resources":"none","imports":"none"}`)
}

func TestADestroyThatCannotKnowWhoImportsIsRefused(t *testing.T) {
	w := newWorld(t)
	w.deploy(producer(true))
	w.unreadable()
	h := w.destroy()
	if h.Result != runlog.ResultFailed || !says(h, "Broken") || len(w.cloud.exists()) != 1 {
		t.Errorf("%s %v, %v exists", h.Result, h.Diagnostics, w.cloud.exists())
	}
	w.sound(h.RunID)
	// A store that does not answer is asked again.
	w = newWorld(t)
	w.deploy(producer(true))
	m := w.submit(order{stack: "App", command: runlog.CommandDestroy})
	w.faults.killAt("list cdkd/", false)
	w.faults.dies = false
	if h = w.finish(m); h.Result != runlog.ResultSucceeded || !w.faults.struck {
		t.Errorf("struck %v: %s", w.faults.struck, w.story(h.RunID))
	}
}

func TestAnImportThatCannotBeLookedUpIsRefused(t *testing.T) {
	w := newWorld(t)
	w.unreadable()
	h := w.deployStack("Consumer", consumer())
	if h.Result != runlog.ResultFailed || !says(h, "Broken") || says(h, "no stack exports") {
		t.Errorf("%s %v", h.Result, h.Diagnostics)
	}
}

func TestARemnantGoesBeforeTheNextReplacement(t *testing.T) {
	w := newWorld(t)
	w.deploy(one("A", topic(object{})))
	// Both attempts leave the same resource, and it can't be removed.
	w.cloud.script("create A", script{id: "remnant", remnant: true, fails: failsUntil(9, provider.KindUnavailable)})
	w.cloud.script("delete A", script{fails: fails(provider.KindFailed)})
	next := one("A", topic(object{"FifoTopic": true}))
	h := w.deploy(next, noRollback)
	if d := cmp.Diff([]string{"remnant"}, w.pending("App")); d != "" || h.Result != runlog.ResultFailed {
		t.Fatalf("%s, what awaits its cleanup (-want +got):\n%s", h.Result, d)
	}
	w.cloud.script("create A", script{})
	w.cloud.script("delete A", script{})
	w.cloud.forget()
	if h = w.deploy(next); h.Result != runlog.ResultSucceeded {
		t.Fatal(w.story(h.RunID))
	}
	if d := cmp.Diff([]string{"delete A", "create A", "delete A"}, stepsOf(w)); d != "" {
		t.Errorf("calls (-want +got):\n%s", d)
	}
	w.accounted("App")
}

func sorted(list []string) []string { return slices.Sorted(slices.Values(list)) }
