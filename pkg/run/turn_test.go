package run

import (
	"fmt"
	"testing"
	"time"

	"github.com/slipway-cdk/slipway/pkg/clock"
	"github.com/slipway-cdk/slipway/pkg/runlog"
)

func TestHowLongProvisionersMayStay(t *testing.T) {
	ended := func(ago time.Duration) runlog.Op { return runlog.Op{FinishedAt: failedAt.Add(-ago)} }
	for _, c := range []struct {
		name                     string
		items, inFlight, waiting int
		ended                    []runlog.Op
		want                     time.Duration
	}{
		{"nothing waits for them", 40, 40, 0, nil, 5 * time.Minute},
		{"nothing else can unblock what waits", 1, 1, 9, nil, 5 * time.Minute},
		{"another one is in flight", 1, 2, 9, nil, 30 * time.Second},
		{"two items", 2, 1, 9, nil, 30 * time.Second},
		{"something has ended a while ago", 2, 2, 9, []runlog.Op{ended(5 * time.Minute), ended(200 * time.Second), ended(4 * time.Minute)}, 10 * time.Second},
		{"something has ended a moment ago", 2, 2, 1, []runlog.Op{ended(time.Second)}, 5 * time.Second},
		{"two turns of the map", 41, 41, 0, nil, 150 * time.Second},
		{"as many as go in one turn", 40, 40, 0, nil, 5 * time.Minute},
		{"five turns", 200, 200, 0, nil, time.Minute},
		{"more turns than there is time for", 4000, 4000, 0, nil, 5 * time.Second},
		{"no items", 0, 0, 0, nil, 5 * time.Minute},
	} {
		tr := &turn{e: &Engine{Clock: clock.NewFake(failedAt)}, h: runlog.Header{StartedAt: failedAt.Add(-10 * time.Minute)}, ops: map[string]runlog.Op{}}
		for i, op := range c.ended {
			tr.ops[fmt.Sprint(i)] = op
		}
		if got := tr.slice(c.items, c.inFlight, c.waiting); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

func TestAWaitIsWholeSecondsAndNeverLong(t *testing.T) {
	for d, want := range map[time.Duration]int{
		-time.Second: 1, 0: 1, time.Millisecond: 1, time.Second: 1, time.Second + 1: 2, 29500 * time.Millisecond: 30, 30 * time.Second: 30, time.Hour: 30,
	} {
		tr := &turn{e: &Engine{Clock: clock.NewFake(failedAt)}}
		step := tr.waitFor(d)
		if step.Kind != StepWait || step.Seconds != want || !tr.rec.Until.Equal(failedAt.Add(time.Duration(want)*time.Second)) {
			t.Errorf("for %s: %+v until %s", d, step, tr.rec.Until)
		}
	}
	// A clock that is behind the end of the last wait is not believed.
	tr := &turn{e: &Engine{Clock: clock.NewFake(failedAt)}, prev: decisionRecord{Until: failedAt.Add(time.Minute)}}
	if got := tr.now(); !got.Equal(failedAt.Add(time.Minute)) {
		t.Errorf("it is %s", got)
	}
	tr.prev.Until = failedAt.Add(-time.Minute)
	if got := tr.now(); !got.Equal(failedAt) {
		t.Errorf("it is %s", got)
	}
}

func TestStacksAreLookedAtLessAndLessOften(t *testing.T) {
	tr := &turn{}
	for i, want := range []int{1, 1, 2, 3, 5, 5, 5} {
		step := tr.waitForStacks()
		if step.Seconds != want || tr.rec.Idle != i+1 {
			t.Errorf("wait %d: %+v, idle %d", i+1, step, tr.rec.Idle)
		}
		tr.prev.Idle = tr.rec.Idle
	}
}

func TestTheHistoryThatAStepCosts(t *testing.T) {
	for _, c := range []struct {
		step Step
		want int
	}{
		{Step{Kind: StepWait}, 12}, {Step{Kind: StepDone}, 12},
		{Step{Kind: StepWave, Items: make([]Item, 1)}, 32}, {Step{Kind: StepWave, Items: make([]Item, 200)}, 2818},
	} {
		if got := historyOf(c.step); got != c.want {
			t.Errorf("%s with %d items: %d events, want %d", c.step.Kind, len(c.step.Items), got, c.want)
		}
	}
}

func TestAProcessKeepsTheWavesThatItHasReadLast(t *testing.T) {
	var c waveCache
	put := func(n int) { c.put(fmt.Sprint(n), waveInput{Wave: n}) }
	for n := range 6 {
		put(n)
	}
	put(3)
	put(6)
	for n, kept := range []bool{false, false, false, true, true, true, true} {
		if w, ok := c.get(fmt.Sprint(n)); ok != kept || ok && w.Wave != n {
			t.Errorf("wave %d: %+v, %v", n, w, ok)
		}
	}
	if len(c.last) != cachedWaves {
		t.Errorf("%d waves are kept", len(c.last))
	}
}

func TestWhichOperationsTheLastWaveHasLeftAlone(t *testing.T) {
	tr := &turn{n: 5}
	held := runlog.Lease{Holder: "process"}
	for _, c := range []struct {
		name string
		op   runlog.Op
		want bool
	}{
		{"in the hands of its provider", runlog.Op{Status: runlog.OpRunning, Wave: 4}, false},
		{"its function has not come back", runlog.Op{Status: runlog.OpRunning, Wave: 4, Lease: held}, true},
		{"its function was not invoked again", runlog.Op{Status: runlog.OpRunning, Wave: 3}, true},
		{"it has ended", runlog.Op{Status: runlog.OpSucceeded, Wave: 3, Lease: held}, false},
	} {
		if got := tr.struck(c.op); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}
