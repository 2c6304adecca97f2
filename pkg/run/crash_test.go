package run_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-cdk/slipway/pkg/runlog"
)

// A crash can come at any call of a store, before it takes effect or after. The tests of this file go through all
// of them: they run a stage once to count the calls, and then once for each.

// how a call breaks.
type breakage struct {
	name        string
	after, dies bool
}

func breakages() []breakage {
	return []breakage{
		{name: "refused"},
		{name: "answer lost", after: true},
		{name: "process dead before", dies: true},
		{name: "process dead after", after: true, dies: true},
	}
}

// calls counts the store calls of a stage without faults.
func (s stage) calls(t *testing.T) []string {
	t.Helper()
	w, m := s.world(t)
	w.finish(m)
	return w.faults.names
}

// each runs fn for every stage, breakage and store call; a read has no effect to lose.
func each(t *testing.T, fn func(t *testing.T, s stage, b breakage, k int, name string)) {
	for _, s := range stages() {
		calls := s.calls(t)
		for _, b := range breakages() {
			t.Run(s.name+", "+b.name, func(t *testing.T) {
				t.Parallel()
				for k, name := range calls {
					if b.after && !writes(name) || testing.Short() && k%sampled != 0 {
						continue
					}
					fn(t, s, b, k+1, fmt.Sprintf("call %d, %s", k+1, name))
					if t.Failed() {
						t.Fatalf("with %q broken", fmt.Sprintf("call %d of %d, %s", k+1, len(calls), name))
					}
				}
			})
		}
	}
}

func writes(name string) bool {
	for _, verb := range []string{"put ", "delete ", "create ", "update ", "set ", "append "} {
		if strings.HasPrefix(name, verb) {
			return true
		}
	}
	return false
}

// TestABrokenCallIsMadeAgainAndTheRunEndsWell: the state machine repeats the call that a fault has ended.
func TestABrokenCallIsMadeAgainAndTheRunEndsWell(t *testing.T) {
	want := map[string]map[string]string{}
	for _, s := range stages() {
		w, m := s.world(t)
		w.finish(m)
		want[s.name] = w.end()
	}
	each(t, func(t *testing.T, s stage, b breakage, k int, name string) {
		w, m := s.world(t)
		w.faults.breaks, w.faults.after, w.faults.dies = k, b.after, b.dies
		w.finish(m)
		s.check(w, m)
		if m.failed != nil {
			t.Errorf("the execution has failed: %v", m.failed)
		}
		if d := cmp.Diff(want[s.name], w.end()); d != "" {
			t.Errorf("what is left (-without a fault +with):\n%s", d)
		}
	})
}

// TestADeadExecutionIsSettled: the execution ends with the call that breaks, and the janitor comes.
func TestADeadExecutionIsSettled(t *testing.T) {
	each(t, func(t *testing.T, s stage, b breakage, k int, name string) {
		if !b.dies {
			return
		}
		w, m := s.world(t)
		w.faults.breaks, w.faults.after, w.faults.dies = k, b.after, b.dies
		w.die(m)
		w.deadHolders["process-1"] = true
		w.settle(w.process("janitor"), m.runID)
		w.sound(m.runID)
		w.accounted("App")
		w.recovers(t, s, m)
	})
}

// TestTheNextRunSettlesADeadOne: nobody comes, until the next run finds the lock.
func TestTheNextRunSettlesADeadOne(t *testing.T) {
	each(t, func(t *testing.T, s stage, b breakage, k int, name string) {
		if !b.dies || k%3 != 0 {
			return // the ways in which it dies are those of the test above
		}
		w, m := s.world(t)
		w.faults.breaks, w.faults.after, w.faults.dies = k, b.after, b.dies
		w.die(m)
		w.deadHolders["process-1"] = true
		w.engine = w.process("process-2")
		w.recovers(t, s, m)
		if h := w.header(m.runID); h.Status == runlog.StatusNew {
			return // it has never had the lock
		}
		w.sound(m.runID)
	})
}

// TestSettleThatBreaksIsMadeAgain: the run dies in the middle, and then every call of the janitor breaks in turn.
func TestSettleThatBreaksIsMadeAgain(t *testing.T) {
	s := stages()[1]
	dead := func(t *testing.T) (*world, *machine) {
		w, m := s.world(t)
		m.until(m.atItem("Reader"))
		m.stop()
		w.deadHolders["process-1"] = true
		*w.faults = faults{}
		return w, m
	}
	w, m := dead(t)
	w.settle(w.process("janitor"), m.runID)
	want, calls := w.end(), w.faults.names
	for _, b := range breakages() {
		t.Run(b.name, func(t *testing.T) {
			for k, name := range calls {
				if b.after && !writes(name) {
					continue
				}
				w, m := dead(t)
				w.faults.breaks, w.faults.after, w.faults.dies = k+1, b.after, b.dies
				w.settle(w.process("janitor"), m.runID)
				w.sound(m.runID)
				w.accounted("App")
				if d := cmp.Diff(want, w.end()); d != "" {
					t.Errorf("what is left (-without a fault +with):\n%s", d)
				}
				if t.Failed() {
					t.Fatalf("with call %d broken: %s", k+1, name)
				}
			}
		})
	}
}

// die runs the execution until the fault strikes, and stops it there.
func (w *world) die(m *machine) {
	w.Helper()
	for range 2000 {
		m.step()
		if w.faults.struck || m.ended {
			break
		}
	}
	if !w.faults.struck {
		w.Fatal("the fault has not struck")
	}
	m.stop()
	w.faults.revive()
	w.faults.breaks = 0
	w.clk.Advance(time.Second)
}

// recovers runs the command again, after a stage that was interrupted, and checks that it leads to where the
// stage would have led.
func (w *world) recovers(t *testing.T, s stage, m *machine) {
	t.Helper()
	w.cloud.scripts = map[string]script{}
	var again *machine
	switch s.name {
	case "create", "roll back":
		again = w.submitDeploy(before())
	case "change":
		again = w.submitDeploy(after())
	case "destroy":
		again = w.submit(order{stack: "App", command: runlog.CommandDestroy})
	}
	if h := w.finish(again); h.Result != runlog.ResultSucceeded {
		t.Errorf("the next run is %s: %s\nafter %s", h.Result, w.story(again.runID), w.story(m.runID))
	}
	w.sound(again.runID)
	w.accounted("App")
	if left := w.pending("App"); len(left) > 0 {
		t.Errorf("the next run has left %v", left)
	}
	if s.name == "destroy" {
		if left := w.cloud.exists(); len(left) > 0 || w.record("App") != nil {
			t.Errorf("the next destroy has left %v", left)
		}
		return
	}
	want := []string{"Changed", "Gone", "Reader", "Replaced", "Same"}
	if s.name == "change" {
		want = []string{"Changed", "New", "Reader", "Replaced", "Same"}
	}
	if got := sortedKeys(w.record("App")); cmp.Diff(want, got) != "" || len(w.cloud.exists()) != len(want) {
		t.Errorf("the next run leads to %v with %v, want %v", got, w.cloud.exists(), want)
	}
	if w.journal("App") != nil {
		t.Error("the next run has left the rollback journal")
	}
	if h := w.finish(w.submitDeploy(map[bool]object{true: after(), false: before()}[s.name == "change"])); h.Counts.Unchanged != len(want) {
		t.Errorf("a third run finds changes: %+v", h.Counts)
	}
}
