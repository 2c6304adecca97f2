package run_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-cdk/slipway/pkg/run"
	"github.com/slipway-cdk/slipway/pkg/runlog"
)

func waits(seconds int) func(*run.Options) {
	return func(o *run.Options) { o.WaitForLock = seconds }
}

// queued are the runs that have a ticket for the stack, in order.
func (w *world) queued() []string {
	w.Helper()
	infos, err := w.objects.List(w.Context(), w.states.QueuePrefix("App", region))
	if err != nil {
		w.Fatal(err)
	}
	var ids []string
	for _, i := range infos {
		id := i.Key[strings.LastIndex(i.Key, "~")+1:]
		ids = append(ids, strings.TrimSuffix(id, ".json"))
	}
	return ids
}

// busy is a run that has the lock and is in the middle of its work.
func (w *world) busy() *machine {
	w.Helper()
	m := w.submitDeploy(line())
	m.until(m.atItem("B"))
	return m
}

// waitIn makes a run ask for the lock once.
func (m *machine) waitIn() *machine {
	m.w.Helper()
	m.step()
	if last := m.steps[len(m.steps)-1]; last.Kind != run.StepWait || last.Seconds < 1 || last.Seconds > 10 {
		m.w.Fatalf("run %s does not wait: %+v: %s", m.runID, last, m.w.story(m.runID))
	}
	return m
}

func TestRunsThatWaitAreServedInTheOrderInWhichTheyCame(t *testing.T) {
	w := newWorld(t)
	first := w.busy()
	var line []*machine
	for range 5 {
		line = append(line, w.submitDeploy(resources(object{"A": topic(object{})}), waits(600)).waitIn())
	}
	line[2].change(600, 5) // too short: its time is over before its turn comes
	line[1].stop()         // dead
	var want []string
	for _, m := range line {
		want = append(want, m.runID)
	}
	if d := cmp.Diff(want, w.queued()); d != "" {
		t.Fatalf("the line (-want +got):\n%s", d)
	}
	newcomer := w.finishOnly(w.submitDeploy(resources(object{"A": topic(object{})})))
	if newcomer.Result != runlog.ResultFailed || !strings.Contains(newcomer.Failure.Detail, "runs are waiting for its lock") {
		t.Errorf("a newcomer that does not wait: %s %+v", newcomer.Result, newcomer.Failure)
	}
	w.clk.Advance(10 * time.Second)
	late := w.finishOnly(line[2])
	if late.Result != runlog.ResultFailed || !strings.Contains(late.Failure.Summary, "the time to wait is over") || !strings.Contains(late.Failure.Detail, first.runID) {
		t.Errorf("a run whose time is over: %s %+v", late.Result, late.Failure)
	}
	w.told(late.RunID)
	w.finish(first)
	var order []string
	for _, m := range []*machine{first, line[0], line[3], line[4]} {
		h := w.header(m.runID)
		if h.Result != runlog.ResultSucceeded {
			t.Errorf("run %s: %s %s", m.runID, h.Result, w.story(m.runID))
		}
		order = append(order, h.StartedAt.Format(time.RFC3339Nano))
	}
	if !slices.IsSorted(order) {
		t.Errorf("begun at %v", order)
	}
	if left := w.queued(); len(left) > 0 {
		t.Errorf("tickets are left: %v", left)
	}
	w.accounted("App")
}

// change gives a waiting run another deadline, as if it had come with it.
func (m *machine) change(from, to int) {
	m.w.Helper()
	for _, key := range []string{"slipway/runs/" + m.runID + "/queue.json", m.ticket()} {
		o, err := m.w.objects.Get(m.w.Context(), key)
		if err != nil {
			m.w.Fatal(err)
		}
		var a struct {
			RunID string    `json:"runId,omitempty"`
			At    time.Time `json:"at"`
			Until time.Time `json:"until"`
		}
		if err := json.Unmarshal(o.Body, &a); err != nil {
			m.w.Fatal(err)
		}
		if got := int(a.Until.Sub(a.At).Seconds()); got != from {
			m.w.Fatalf("it waits for %d s, want %d", got, from)
		}
		a.Until = a.At.Add(time.Duration(to) * time.Second)
		m.w.put(key, a)
	}
}

func (m *machine) ticket() string {
	m.w.Helper()
	infos, err := m.w.objects.List(m.w.Context(), m.w.states.QueuePrefix("App", region))
	if err != nil {
		m.w.Fatal(err)
	}
	for _, i := range infos {
		if strings.Contains(i.Key, m.runID) {
			return i.Key
		}
	}
	m.w.Fatalf("run %s has no ticket", m.runID)
	return ""
}

// finishOnly runs one execution to its end and no other.
func (w *world) finishOnly(m *machine) runlog.Header {
	w.Helper()
	for range 2000 {
		if m.ended {
			return w.header(m.runID)
		}
		m.step()
	}
	w.Fatalf("run %s does not come to an end", m.runID)
	return runlog.Header{}
}

func TestARunDoesNotOvertakeThoseWhoWait(t *testing.T) {
	w := newWorld(t)
	first := w.busy()
	second := w.submitDeploy(line(), waits(600)).waitIn()
	w.finishOnly(first)
	// The lock is free, and the second has not looked again.
	refused := w.finishOnly(w.submitDeploy(line()))
	if refused.Result != runlog.ResultFailed || !strings.Contains(refused.Failure.Detail, "1 run is waiting for its lock") {
		t.Errorf("%s %+v", refused.Result, refused.Failure)
	}
	third := w.submitDeploy(line(), waits(600)).waitIn()
	if got := w.events(third.runID, runlog.WaitingForLock); len(got) != 1 || got[0].Message != "place 2 in the line" {
		t.Errorf("told: %+v", got)
	}
	if h := w.finish(third); h.Result != runlog.ResultSucceeded || w.header(second.runID).Result != runlog.ResultSucceeded {
		t.Errorf("%s, %s", w.header(second.runID).Result, h.Result)
	}
	w.sound(third.runID)
}

func TestAForeignHolderIsWaitedForToo(t *testing.T) {
	w := newWorld(t)
	w.lock("App", fmt.Sprintf(`{"owner": "cdkd@host:1", "timestamp": %d, "expiresAt": %d, "operation": "deploy"}`, w.clk.Now().UnixMilli(), w.clk.Now().Add(time.Hour).UnixMilli()))
	m := w.submitDeploy(line(), waits(600)).waitIn()
	if got := w.events(m.runID, runlog.WaitingForLock); len(got) != 1 || got[0].Message != "the lock is held by cdkd@host:1 for deploy; place 1 in the line" {
		t.Errorf("told: %+v", got)
	}
	m.step()
	if _, err := w.states.ForceUnlock(t.Context(), "App", region); err != nil {
		t.Fatal(err)
	}
	if h := w.finish(m); h.Result != runlog.ResultSucceeded {
		t.Errorf("%s", h.Result)
	}
	if n := len(w.events(m.runID, runlog.WaitingForLock)); n != 1 {
		t.Errorf("told %d times", n)
	}
	w.sound(m.runID)
}

func TestTheTimeToWaitEnds(t *testing.T) {
	w := newWorld(t)
	first := w.busy()
	begun := w.clk.Now()
	m := w.submitDeploy(line(), waits(60))
	h := w.finishOnly(m)
	if h.Result != runlog.ResultFailed || !strings.Contains(h.Failure.Detail, "is locked by "+caller+" (run "+first.runID+")") {
		t.Errorf("%s %+v", h.Result, h.Failure)
	}
	if took := w.clk.Now().Sub(begun); took < 60*time.Second || took > 75*time.Second {
		t.Errorf("it has waited for %s", took)
	}
	var seconds []int
	for _, s := range m.steps {
		if s.Kind == run.StepWait {
			seconds = append(seconds, s.Seconds)
		}
	}
	if d := cmp.Diff([]int{1, 1, 2, 3, 5, 5, 5}, seconds[:7]); d != "" || slices.Max(seconds) != 10 {
		t.Errorf("waits %v", seconds)
	}
	if left := w.queued(); len(left) > 0 {
		t.Errorf("tickets are left: %v", left)
	}
	w.told(m.runID)
	w.finish(first)
	w.sound(first.runID)
}

func TestARunThatWaitsIsCancelled(t *testing.T) {
	w := newWorld(t)
	first := w.busy()
	m := w.submitDeploy(line(), waits(600)).waitIn()
	w.cancel(m.runID)
	if h := w.finishOnly(m); h.Failure == nil || h.Failure.Summary != cancelledByYou || len(w.queued()) > 0 {
		t.Errorf("%+v, tickets %v", h.Failure, w.queued())
	}
	w.finish(first)
}

func TestARunThatDiesInTheLineIsSettled(t *testing.T) {
	w := newWorld(t)
	first := w.busy()
	m := w.submitDeploy(line(), waits(600)).waitIn()
	m.stop()
	w.settle(w.process("janitor"), m.runID)
	if left := w.queued(); len(left) > 0 {
		t.Errorf("tickets are left: %v", left)
	}
	w.told(m.runID)
	if h := w.finish(first); h.Result != runlog.ResultSucceeded {
		t.Errorf("%s", h.Result)
	}
}

func TestStacksOfADeploymentWaitForTheirLocks(t *testing.T) {
	w := newWorld(t)
	w.lock("Two", fmt.Sprintf(`{"owner": "cdkd@host:1", "timestamp": %d, "expiresAt": %d}`, w.clk.Now().UnixMilli(), w.clk.Now().Add(time.Hour).UnixMilli()))
	a := chain()
	a.options.WaitForLock = 600
	m := w.submitApp(a)
	waited := func() bool {
		c, ok := w.children(m.runID)["Two"]
		return ok && len(w.events(c.RunID, runlog.WaitingForLock)) > 0
	}
	for i := 0; !waited(); i++ {
		for _, name := range sortedNames(w.machines) {
			if !w.machines[name].ended {
				w.machines[name].step()
			}
		}
		if i > 500 {
			t.Fatalf("it does not wait: %s", w.story(m.runID))
		}
	}
	if _, err := w.states.ForceUnlock(t.Context(), "Two", region); err != nil {
		t.Fatal(err)
	}
	if h := w.finish(m); h.Result != runlog.ResultSucceeded {
		t.Errorf("%s: %s", h.Result, w.story(m.runID))
	}
}

// answered: the planner has answered for the first time.
func (m *machine) answered() bool { return len(m.steps) > 0 }

// TestABrokenCallInTheLine breaks every store call of two runs that wait, one after the other, in turn: both always get
// the lock, one after the other, and nothing is left.
func TestABrokenCallInTheLine(t *testing.T) {
	serve := func(t *testing.T, b breakage, k int) (w *world, second, third *machine) {
		w = newWorld(t)
		first := w.busy()
		*w.faults = faults{breaks: k, after: b.after, dies: b.dies}
		second = w.submitDeploy(line(), waits(600))
		second.until(second.answered)
		w.finishOnly(first)
		third = w.submitDeploy(line(), waits(600))
		third.until(third.answered)
		w.finish(second)
		return w, second, third
	}
	w, _, _ := serve(t, breakage{}, 0)
	calls := w.faults.names
	for _, b := range breakages() {
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			for k, name := range calls {
				if b.after && !writes(name) || testing.Short() && k%sampled != 0 {
					continue
				}
				w, second, third := serve(t, b, k+1)
				for _, m := range []*machine{second, third} {
					if h := w.header(m.runID); h.Result != runlog.ResultSucceeded {
						t.Errorf("run %s: %s %s", m.runID, h.Result, w.story(m.runID))
					}
					w.sound(m.runID)
				}
				if w.header(third.runID).StartedAt.Before(w.header(second.runID).FinishedAt) {
					t.Error("the third has overtaken the second")
				}
				if left := w.queued(); len(left) > 0 {
					t.Errorf("tickets are left: %v", left)
				}
				w.accounted("App")
				if t.Failed() {
					t.Fatalf("with call %d of %d broken: %s", k+1, len(calls), name)
				}
			}
		})
	}
}
