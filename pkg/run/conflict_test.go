package run_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-cdk/slipway/pkg/runlog"
	"github.com/slipway-cdk/slipway/pkg/state"
)

// edit changes the record as another tool does, which does not ask for the lock of a run.
func (w *world) edit(fn func(rec *state.Record)) {
	w.Helper()
	rec, etag, err := w.states.Load(context.Background(), "App", region)
	if err != nil {
		w.Fatal(err)
	}
	fn(rec)
	if _, err := w.states.Save(context.Background(), rec, etag); err != nil {
		w.Fatal(err)
	}
}

// during runs a change of before() to after(), and fn after the provisioner of op has done its work.
func during(t *testing.T, op string, fn func(w *world)) (*world, runlog.Header) {
	t.Helper()
	w := newWorld(t)
	w.deploy(before())
	m := w.submitDeploy(after())
	m.until(m.atItem(op))
	m.step()
	fn(w)
	h := w.finish(m)
	w.sound(m.runID)
	return w, h
}

func warned(h runlog.Header, logicalID string) bool {
	for _, d := range h.Diagnostics {
		if d.LogicalID == logicalID {
			return true
		}
	}
	return false
}

func TestWhatAnotherToolAddsStays(t *testing.T) {
	w, h := during(t, "Changed", func(w *world) {
		w.cloud.live["theirs"] = thing{Type: "AWS::SNS::Topic"}
		w.edit(func(rec *state.Record) {
			rec.Resources["Theirs"] = &state.Resource{PhysicalID: "theirs", ResourceType: "AWS::SNS::Topic", Properties: map[string]any{}}
		})
	})
	if h.Result != runlog.ResultSucceeded || w.record("App").Resources["Theirs"] == nil {
		t.Errorf("%s, the record has %v", h.Result, sortedKeys(w.record("App")))
	}
	w.accounted("App")
}

func TestAnUpdateWinsOverAnEditOfTheSameResource(t *testing.T) {
	w, h := during(t, "Changed", func(w *world) {
		w.edit(func(rec *state.Record) {
			rec.Resources["Changed"].ObservedProperties = map[string]any{"DisplayName": "drifted"}
		})
	})
	if h.Result != runlog.ResultSucceeded || !warned(h, "Changed") {
		t.Errorf("%s, %v", h.Result, h.Diagnostics)
	}
	if got := w.record("App").Resources["Changed"].Properties["DisplayName"]; got != "two" {
		t.Errorf("the record says %v, which is not what was sent", got)
	}
	w.accounted("App")
}

func TestAnEditDoesNotStopAReplacement(t *testing.T) {
	w, h := during(t, "Replaced", func(w *world) {
		w.edit(func(rec *state.Record) {
			rec.Resources["Replaced"].ObservedProperties = map[string]any{"DisplayName": "drifted"}
		})
	})
	if h.Result != runlog.ResultSucceeded || !warned(h, "Replaced") || len(w.pending("App")) != 0 {
		t.Errorf("%s, %v, pending %v", h.Result, h.Diagnostics, w.pending("App"))
	}
	w.accounted("App")
}

// TestAnEditBeforeTheEndIsWarnedOf: after the last decision, whether the run closes itself or is settled.
func TestAnEditBeforeTheEndIsWarnedOf(t *testing.T) {
	for _, dies := range []bool{false, true} {
		w := newWorld(t)
		w.deploy(before())
		m := w.submitDeploy(after())
		m.until(m.atClose)
		w.edit(func(rec *state.Record) {
			rec.Resources["Changed"].ObservedProperties = map[string]any{"DisplayName": "drifted"}
		})
		if dies {
			m.stop()
			w.settle(w.process("janitor"), m.runID)
		}
		h := w.finish(m)
		if !warned(h, "Changed") || h.Result != runlog.ResultSucceeded {
			t.Errorf("dead %v: %s, %v", dies, h.Result, h.Diagnostics)
		}
		w.sound(m.runID)
		w.accounted("App")
	}
}

func TestANewResourceBesideAForeignOneIsNotLost(t *testing.T) {
	w, h := during(t, "New", func(w *world) {
		w.cloud.live["theirs"] = thing{Type: "AWS::SQS::Queue"}
		w.edit(func(rec *state.Record) {
			rec.Resources["New"] = &state.Resource{PhysicalID: "theirs", ResourceType: "AWS::SQS::Queue", Properties: map[string]any{}}
		})
	})
	if !warned(h, "New") || w.record("App").Resources["New"].PhysicalID != "theirs" || len(w.pending("App")) != 1 {
		t.Errorf("%s, %v, %+v, pending %v", h.Result, h.Diagnostics, w.record("App").Resources["New"], w.pending("App"))
	}
	w.accounted("App")
	w.deploy(after())
	w.accounted("App")
	if len(w.pending("App")) != 0 {
		t.Errorf("pending %v", w.pending("App"))
	}
}

func TestAResourceThatAnotherToolHasTakenOutOfTheRecordComesBack(t *testing.T) {
	w, h := during(t, "Changed", func(w *world) {
		w.edit(func(rec *state.Record) { delete(rec.Resources, "Changed") })
	})
	if h.Result != runlog.ResultSucceeded || w.record("App").Resources["Changed"] == nil || !warned(h, "Changed") {
		t.Errorf("%s, the record has %v", h.Result, sortedKeys(w.record("App")))
	}
	w.accounted("App")
}

func TestADeletionLeavesAForeignResourceInTheRecord(t *testing.T) {
	w, h := during(t, "Gone", func(w *world) {
		w.cloud.live["theirs"] = thing{Type: "AWS::SQS::Queue"}
		w.edit(func(rec *state.Record) { rec.Resources["Gone"].PhysicalID = "theirs" })
	})
	if got := w.record("App").Resources["Gone"]; got == nil || got.PhysicalID != "theirs" {
		t.Errorf("%s, %+v", h.Result, got)
	}
	w.accounted("App")
}

// TestAWriteBetweenLoadAndSaveIsNotOverwritten: at every save of the record by the planner.
func TestAWriteBetweenLoadAndSaveIsNotOverwritten(t *testing.T) {
	for _, at := range []int{1, 2, 3} {
		w := newWorld(t)
		w.deploy(before())
		m := w.submitDeploy(after())
		seen := 0
		var arm func()
		arm = func() {
			w.faults.meanwhile("put "+w.states.StateKey("App", region), func() {
				if seen++; seen < at {
					arm()
					return
				}
				w.edit(func(rec *state.Record) { rec.Resources["Same"].Metadata = map[string]any{"mark": "theirs"} })
			})
		}
		arm()
		h := w.finish(m)
		if seen < at {
			break
		}
		if h.Result != runlog.ResultSucceeded || w.record("App").Resources["Same"].Metadata["mark"] != "theirs" {
			t.Errorf("save %d: %s, %+v", at, h.Result, w.record("App").Resources["Same"])
		}
		w.sound(m.runID)
		w.accounted("App")
	}
}

func TestUnknownMembersOfARecordSurvive(t *testing.T) {
	w := newWorld(t)
	rec := `{"version":8,"stackName":"App","region":"` + region + `","outputs":{},"lastModified":1,"future":{"a":[1]},"resources":{"P":{"physicalId":"P-0",` +
		`"resourceType":"AWS::SNS::Topic","properties":{"DisplayName":"one"},"attributes":{},"provisionedBy":"sdk","metadata":{"m":1},"future":"b"}}}`
	w.putRaw(w.states.StateKey("App", region), rec)
	w.cloud.live["P-0"] = thing{Type: "AWS::SNS::Topic", LogicalID: "P"}
	if h := w.deploy(one("P", topic(object{"DisplayName": "two"}))); h.Result != runlog.ResultSucceeded {
		t.Fatal(w.story(h.RunID))
	}
	got := w.record("App")
	if string(got.Extra["future"]) == "" || string(got.Resources["P"].Extra["future"]) != `"b"` || got.Resources["P"].Metadata == nil {
		t.Errorf("%+v %+v", got.Extra, got.Resources["P"])
	}
	if d := cmp.Diff("two", got.Resources["P"].Properties["DisplayName"]); d != "" {
		t.Error(d)
	}
}
