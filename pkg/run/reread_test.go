package run_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-cdk/slipway/pkg/objectstore"
	"github.com/slipway-cdk/slipway/pkg/provider"
	"github.com/slipway-cdk/slipway/pkg/run"
	"github.com/slipway-cdk/slipway/pkg/runlog"
	"github.com/slipway-cdk/slipway/pkg/state"
)

// named lists the physical ids that record, orphans and cleanup list of the stack name.
func (w *world) named() []string {
	w.Helper()
	out := w.pending("App")
	if rec := w.record("App"); rec != nil {
		for _, r := range rec.Resources {
			out = append(out, r.PhysicalID)
		}
		for _, o := range rec.Orphans {
			out = append(out, o.Resource.PhysicalID)
		}
	}
	return out
}

// rewrite writes the record over as a tool does that has read it a while ago and asks for no condition.
func (w *world) rewrite(rec *state.Record) {
	w.Helper()
	body, err := rec.Encode()
	if err != nil {
		w.Fatal(err)
	}
	w.putRaw(w.states.StateKey("App", region), string(body))
}

func (w *world) deleteRecord() {
	w.Helper()
	if err := w.objects.Delete(context.Background(), w.states.StateKey("App", region), objectstore.Condition{}); err != nil {
		w.Fatal(err)
	}
}

// intruders are what another tool may do to the record in the middle of a run; was is the record from before it.
var intruders = map[string]func(w *world, was *state.Record){
	"an old copy": func(w *world, was *state.Record) { w.rewrite(was) },
	"an old copy with an edit": func(w *world, was *state.Record) {
		edited := *was
		edited.Resources = map[string]*state.Resource{}
		for id, r := range was.Resources {
			same := *r
			same.ObservedProperties = map[string]any{"DisplayName": "seen"}
			edited.Resources[id] = &same
		}
		w.rewrite(&edited)
	},
	"no record":       func(w *world, _ *state.Record) { w.deleteRecord() },
	"an empty record": func(w *world, was *state.Record) { empty := *was; empty.Resources = nil; w.rewrite(&empty) },
}

// TestWhatARunHasMadeKeepsItsNameWhateverIsWritten lets another tool write at every point of a run, of its rollback
// and of its settling.
func TestWhatARunHasMadeKeepsItsNameWhateverIsWritten(t *testing.T) {
	for name, intrude := range intruders {
		for _, course := range []string{"success", "rollback", "dead"} {
			t.Run(name+"/"+course, func(t *testing.T) {
				for at := 0; ; at += stride() {
					if !intrudeAt(t, at, course, intrude) {
						if at < 8 {
							t.Errorf("the run has only %d points", at)
						}
						return
					}
					if t.Failed() {
						t.Fatalf("at point %d", at)
					}
				}
			})
		}
	}
}

// intrudeAt runs a change during which another tool writes after at calls. It reports whether the run was that long.
func intrudeAt(t *testing.T, at int, course string, intrude func(*world, *state.Record)) bool {
	t.Helper()
	w := newWorld(t)
	w.deploy(before())
	was, old := w.record("App"), w.cloud.exists()
	template := after()
	if course == "rollback" {
		w.cloud.script("create Bad", script{fails: fails(provider.KindInvalid)})
		template["Resources"].(object)["Bad"] = with(topic(object{}), object{"DependsOn": []any{"New", "Replaced", "Changed", "Reader"}})
	}
	m := w.submitDeploy(template)
	for range at {
		if m.ended {
			return false
		}
		m.step()
	}
	if m.ended {
		return false
	}
	intrude(w, was)
	if course == "dead" {
		m.stop()
		w.settle(w.process("janitor"), m.runID)
	} else {
		w.finish(m)
	}
	w.sound(m.runID)
	names := w.named()
	for _, id := range w.cloud.exists() {
		if !slices.Contains(old, id) && !slices.Contains(names, id) {
			t.Errorf("%s was made by the run and nothing names it: %s", id, w.story(m.runID))
		}
	}
	for _, r := range w.recorded() {
		if _, live := w.cloud.live[r]; !live && !slices.Contains(old, r) {
			t.Errorf("%s is recorded and does not exist: %s", r, w.story(m.runID))
		}
	}
	return true
}

// recorded lists the physical ids of the record.
func (w *world) recorded() []string {
	var out []string
	if rec := w.record("App"); rec != nil {
		for _, r := range rec.Resources {
			out = append(out, r.PhysicalID)
		}
	}
	return out
}

// TestAnOldCopyOfTheRecordChangesNothingInTheEnd: an unconditional write of what stood before the run.
func TestAnOldCopyOfTheRecordChangesNothingInTheEnd(t *testing.T) {
	for at := 0; ; at++ {
		w := newWorld(t)
		w.deploy(before())
		was := w.record("App")
		m := w.submitDeploy(after())
		for range at {
			if !m.ended {
				m.step()
			}
		}
		if m.ended {
			if at < 8 {
				t.Errorf("the run has only %d points", at)
			}
			return
		}
		opened := w.header(m.runID).Status != runlog.StatusNew
		w.rewrite(was)
		h := w.finish(m)
		if h.Result != runlog.ResultSucceeded {
			t.Fatalf("point %d: %s", at, w.story(m.runID))
		}
		w.accounted("App")
		if again := w.deploy(after()); opened && (again.Result != runlog.ResultSucceeded || again.Counts.Unchanged != 5) {
			t.Errorf("point %d: the next deploy has %+v: %s", at, again.Counts, w.story(again.RunID))
		}
	}
}

// meanwhile runs a deploy of after() up to its second wave, where New has been made and folded.
func meanwhile(t *testing.T) (*world, *machine) {
	t.Helper()
	w := newWorld(t)
	w.deploy(before())
	m := w.submitDeploy(after())
	m.until(m.atItem("Gone"))
	return w, m
}

func TestWhatAnotherToolHasDestroyedLeavesTheRecord(t *testing.T) {
	w, m := meanwhile(t)
	w.edit(func(rec *state.Record) {
		delete(w.cloud.live, rec.Resources["New"].PhysicalID)
		delete(rec.Resources, "New")
	})
	h := w.finish(m)
	if w.record("App").Resources["New"] != nil {
		t.Errorf("New is still recorded: %s", w.story(h.RunID))
	}
	w.accounted("App")
}

func TestOfTwoLivingResourcesTheirsIsRecordedAndOursIsCleanedUp(t *testing.T) {
	for _, theirsLives := range []bool{true, false} {
		t.Run(fmt.Sprint(theirsLives), func(t *testing.T) {
			w, m := meanwhile(t)
			ours := w.record("App").Resources["New"].PhysicalID
			if theirsLives {
				w.cloud.live["theirs"] = thing{Type: "AWS::SQS::Queue"}
			}
			w.edit(func(rec *state.Record) {
				rec.Resources["New"] = &state.Resource{PhysicalID: "theirs", ResourceType: "AWS::SQS::Queue", Properties: map[string]any{}}
			})
			h := w.finish(m)
			if !warned(h, "New") {
				t.Error("nobody is told")
			}
			want, pending := ours, []string(nil)
			if theirsLives {
				want, pending = "theirs", []string{ours}
			}
			if got := w.record("App").Resources["New"].PhysicalID; got != want {
				t.Errorf("%s is recorded", got)
			}
			if d := cmp.Diff(pending, w.pending("App")); d != "" {
				t.Errorf("what waits for its cleanup (-want +got):\n%s", d)
			}
			w.accounted("App")
		})
	}
}

func TestALaterUpdateByAnotherToolIsBelievedWhereTheServiceConfirmsIt(t *testing.T) {
	for _, live := range []string{"theirs", "two"} {
		t.Run(live, func(t *testing.T) {
			w, m := meanwhile(t)
			w.edit(func(rec *state.Record) {
				r := rec.Resources["Changed"]
				r.Properties = map[string]any{"DisplayName": "theirs"}
				w.cloud.live[r.PhysicalID] = thing{Type: r.ResourceType, LogicalID: "Changed", Properties: object{"DisplayName": live}}
			})
			w.finish(m)
			if got := w.record("App").Resources["Changed"].Properties["DisplayName"]; got != live {
				t.Errorf("the record says %v", got)
			}
			w.accounted("App")
		})
	}
}

// unreadable is a cloud whose reads fail for a while.
type unreadable struct {
	*cloud
	left *int
}

func (u unreadable) For(_ string, recorded provider.Route, _ []string) (provider.Provider, provider.Route, error) {
	if recorded == "" {
		recorded = provider.RouteSDK
	}
	return u, recorded, nil
}

func (u unreadable) Read(ctx context.Context, req provider.Request) (provider.Snapshot, error) {
	if *u.left > 0 {
		*u.left--
		return provider.Snapshot{}, &provider.Error{Kind: provider.KindThrottled, Message: "slow down"}
	}
	return u.cloud.Read(ctx, req)
}

func TestAReadThatFailsIsRepeatedAndNothingIsGuessed(t *testing.T) {
	w, m := meanwhile(t)
	left := 2
	w.engine.Providers = unreadable{w.cloud, &left}
	w.edit(func(rec *state.Record) {
		delete(w.cloud.live, rec.Resources["New"].PhysicalID)
		delete(rec.Resources, "New")
	})
	w.finish(m)
	if left != 0 || w.record("App").Resources["New"] != nil {
		t.Errorf("%d reads are left, the record has %v", left, sortedKeys(w.record("App")))
	}
	w.accounted("App")
}

func TestADeadRunWhoseWorkWasDoneEndsWithItsTrueResult(t *testing.T) {
	w := newWorld(t)
	w.deploy(before())
	m := w.submitDeploy(after())
	for m.next.Action != run.ActionClose {
		m.step()
	}
	m.stop()
	janitor := w.process("janitor")
	w.settle(janitor, m.runID)
	w.settle(janitor, m.runID)
	h := w.header(m.runID)
	if h.Result != runlog.ResultSucceeded || h.Failure != nil || w.journal("App") != nil {
		t.Errorf("%s %+v: %s", h.Result, h.Failure, w.story(m.runID))
	}
	if got := fmt.Sprint(w.record("App").Outputs["Id"]); !strings.HasPrefix(got, "Replaced") {
		t.Errorf("the outputs have %v", w.record("App").Outputs)
	}
	w.sound(m.runID)
	w.accounted("App")
}
