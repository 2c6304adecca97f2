package run_test

import (
	"strings"
	"testing"
	"time"

	"github.com/slipway-cdk/slipway/pkg/provider"
	"github.com/slipway-cdk/slipway/pkg/run"
	"github.com/slipway-cdk/slipway/pkg/runlog"
)

func one(id string, r object) object { return resources(object{id: r}) }

func TestWhatMayPassIsTriedAgainWithAnotherToken(t *testing.T) {
	for _, kind := range []provider.Kind{provider.KindThrottled, provider.KindUnavailable, provider.KindConflict, provider.KindRecentlyDeleted} {
		t.Run(string(kind), func(t *testing.T) {
			w := newWorld(t)
			w.cloud.script("create A", script{fails: failsUntil(4, kind)})
			began := w.clk.Now()
			m := w.submitDeploy(one("A", topic(object{})))
			h := w.finish(m)
			if h.Result != runlog.ResultSucceeded || h.Counts.Created != 1 {
				t.Fatalf("%s %+v: %s", h.Result, h.Counts, w.story(m.runID))
			}
			calls := w.cloud.steps("create A")
			tokens := map[string]bool{}
			for i, c := range calls {
				tokens[c.token] = true
				if c.attempt != i+1 {
					t.Errorf("call %d is attempt %d", i+1, c.attempt)
				}
			}
			if len(calls) != 4 || len(tokens) != 4 {
				t.Errorf("%d calls under %d tokens, want 4 of each", len(calls), len(tokens))
			}
			if took := w.clk.Now().Sub(began); took < 3*time.Second || took > 40*time.Second {
				t.Errorf("three pauses took %s", took)
			}
			if n := len(w.events(m.runID, runlog.OpRetry)); n != 3 {
				t.Errorf("%d events tell of another attempt, want 3", n)
			}
			w.sound(m.runID)
		})
	}
}

func TestWhatWillNotPassIsTriedOnce(t *testing.T) {
	for _, kind := range []provider.Kind{
		provider.KindFailed, provider.KindInvalid, provider.KindAccessDenied, provider.KindAlreadyExists, provider.KindNotFound,
		provider.KindImmutable, provider.KindUnsupported, provider.KindTimeout, provider.KindTokenConflict, provider.KindDependencyViolation,
	} {
		w := newWorld(t)
		w.cloud.script("create A", script{fails: fails(kind)})
		m := w.submitDeploy(one("A", topic(object{})))
		h := w.finish(m)
		if h.Result != runlog.ResultFailed || h.Failure == nil || h.Failure.LogicalID != "A" || len(w.cloud.steps("create A")) != 1 {
			t.Errorf("%s: %s, %+v after %d calls", kind, h.Result, h.Failure, len(w.cloud.steps("create A")))
		}
		w.sound(m.runID)
	}
}

func TestAttemptsComeToAnEnd(t *testing.T) {
	for kind, want := range map[provider.Kind]int{
		provider.KindThrottled: 12, provider.KindUnavailable: 5, provider.KindConflict: 5, provider.KindRecentlyDeleted: 12, provider.KindPropagation: 1,
	} {
		w := newWorld(t)
		w.cloud.script("create A", script{fails: fails(kind)})
		m := w.submitDeploy(one("A", topic(object{})))
		if h := w.finish(m); h.Result != runlog.ResultFailed || len(w.cloud.steps("create A")) != want {
			t.Errorf("%s: %s after %d calls, want FAILED after %d", kind, h.Result, len(w.cloud.steps("create A")), want)
		}
		w.sound(m.runID)
	}
}

func TestTheServiceSaysHowLongToWait(t *testing.T) {
	w := newWorld(t)
	w.cloud.script("create A", script{fails: func(attempt int) *provider.Error {
		if attempt > 1 {
			return nil
		}
		return &provider.Error{Kind: provider.KindThrottled, RetryAfter: time.Minute}
	}})
	began := w.clk.Now()
	w.deploy(one("A", topic(object{})))
	if took := w.clk.Now().Sub(began); took < time.Minute {
		t.Errorf("it was tried again after %s, the service asked for a minute", took)
	}
}

func TestADeletionWaitsUntilNothingUsesTheResource(t *testing.T) {
	w := newWorld(t)
	w.deploy(one("A", topic(object{})))
	w.cloud.script("delete A", script{fails: failsUntil(7, provider.KindDependencyViolation)})
	began := w.clk.Now()
	if h := w.destroy(); h.Result != runlog.ResultSucceeded || len(w.cloud.exists()) > 0 {
		t.Errorf("%s, %v is left: %s", h.Result, w.cloud.exists(), w.story(h.RunID))
	}
	if took := w.clk.Now().Sub(began); took < 2*time.Minute {
		t.Errorf("six refusals took %s only", took)
	}
}

func TestSlowWorkIsFollowedAcrossWaves(t *testing.T) {
	w := newWorld(t)
	w.cloud.script("create Slow", script{takes: 42 * time.Minute})
	m := w.submitDeploy(one("Slow", topic(object{})))
	h := w.finish(m)
	if h.Result != runlog.ResultSucceeded {
		t.Fatal(w.story(m.runID))
	}
	if n := len(w.cloud.steps("create Slow")); n != 1 {
		t.Errorf("it was begun %d times", n)
	}
	if h.Waves < 8 || h.Waves > 12 {
		t.Errorf("42 minutes took %d waves of five minutes", h.Waves)
	}
	for _, step := range m.steps {
		if step.Kind == run.StepWave && step.Slice != 300 {
			t.Errorf("nothing but this can be done, and a wave lasts %d seconds", step.Slice)
		}
	}
	w.sound(m.runID)
}

func TestSlowWorkHoldsUpNothingElse(t *testing.T) {
	w := newWorld(t)
	w.cloud.script("create Slow", script{takes: 10 * time.Minute})
	ended := map[string]time.Time{}
	for _, id := range []string{"B", "C", "D"} {
		w.cloud.script("create "+id, script{takes: 20 * time.Second, before: func() { ended[id] = w.clk.Now() }})
	}
	began := w.clk.Now()
	m := w.submitDeploy(resources(object{
		"Slow": topic(object{}), "A": topic(object{}),
		"B": queue(object{"KmsMasterKeyId": ref("A")}), "C": queue(object{"KmsMasterKeyId": ref("B")}), "D": queue(object{"KmsMasterKeyId": ref("C")}),
		"Last": queue(object{"KmsMasterKeyId": ref("Slow")}),
	}))
	h := w.finish(m)
	if h.Result != runlog.ResultSucceeded {
		t.Fatal(w.story(m.runID))
	}
	// Slow and B are in one wave: each look at one of them takes the machine of this test the time of both.
	if at := ended["D"].Sub(began); at > 2*time.Minute {
		t.Errorf("the last of a chain of three began after %s", at)
	}
	if took := w.clk.Now().Sub(began); took > 12*time.Minute {
		t.Errorf("10 minutes of work took %s", took)
	}
	if h.Waves > 80 {
		t.Errorf("it took %d waves", h.Waves)
	}
}

func TestAFullWaveEndsLongBeforeTheLock(t *testing.T) {
	w := newWorld(t)
	all := object{}
	for i := range 200 {
		all["T"+strings.Repeat("x", i%10)+string(rune('a'+i/10))] = topic(object{})
	}
	m := w.submitDeploy(resources(all))
	m.until(func() bool { return len(m.items) > 0 })
	if turns := 5; len(m.items) != 200 || m.wave.Slice*turns > 600 {
		t.Errorf("%d items, 40 at a time, for %d seconds each", len(m.items), m.wave.Slice)
	}
}

func TestALongRunGoesOnInSuccessors(t *testing.T) {
	w := newWorld(t)
	w.engine.History = 100
	all := object{name(0): topic(object{})}
	for i := 1; i < 15; i++ {
		all[name(i)] = queue(object{"KmsMasterKeyId": ref(name(i - 1))})
	}
	m := w.submitDeploy(resources(all))
	m.twice = true
	h := w.finish(m)
	w.sound(m.runID)
	continued := map[string]bool{}
	for _, step := range m.steps {
		if step.Kind == run.StepContinue {
			continued[step.Successor] = true
			if len(step.Successor) > 80 || step.Decision == 0 {
				t.Errorf("it goes on in %q at decision %d", step.Successor, step.Decision)
			}
		}
	}
	if h.Result != runlog.ResultSucceeded || h.Counts.Created != 15 || len(continued) < 3 {
		t.Errorf("%s %+v over %d successors", h.Result, h.Counts, len(continued))
	}
	for step, n := range w.cloud.effects() {
		if n != 1 {
			t.Errorf("%s was carried out %d times", step, n)
		}
	}
}

func TestAWaveThatIsTooMuchForTheBudgetIsDoneAllTheSame(t *testing.T) {
	w := newWorld(t)
	w.engine.History = 30
	all := object{}
	for i := range 6 {
		all[name(i)] = topic(object{})
	}
	m := w.submitDeploy(resources(all))
	if h := w.finish(m); h.Result != runlog.ResultSucceeded || len(m.steps) > 10 {
		t.Errorf("%s after %d steps", h.Result, len(m.steps))
	}
}

func name(i int) string { return "R" + string(rune('0'+i/10)) + string(rune('0'+i%10)) }

func TestAnOperationWhoseFunctionNeverRunsIsGivenUp(t *testing.T) {
	w := newWorld(t)
	m := w.submitDeploy(resources(object{"A": topic(object{}), "B": topic(object{})}))
	sent := 0
	m.onItem = func(it run.Item) bool {
		if it.Op == "B" {
			sent++
		}
		return it.Op == "B"
	}
	h := w.finish(m)
	if h.Result != runlog.ResultFailed || h.Failure == nil || h.Failure.LogicalID != "B" || !strings.Contains(h.Failure.Detail, "NotInvoked") || sent != 5 {
		t.Errorf("%s, %+v after it was sent %d times", h.Result, h.Failure, sent)
	}
	w.sound(m.runID)
	w.accounted("App")
}

func TestAnOperationWhoseFunctionDiesEveryTimeIsGivenUp(t *testing.T) {
	w := newWorld(t)
	m := w.submitDeploy(resources(object{"A": topic(object{}), "B": topic(object{})}))
	died := 0
	m.onItem = func(it run.Item) bool {
		if it.Op == "B" {
			died++
			// It records its intent, and its process dies before the result.
			w.faults.killAt("put op B SUCCEEDED", false)
			if _, err := m.provision(w.process("doomed"), "B"); err == nil {
				t.Error("the process has not died")
			}
			w.faults.revive()
			return true
		}
		return false
	}
	h := w.finish(m)
	if h.Result != runlog.ResultFailed || h.Failure == nil || h.Failure.LogicalID != "B" || !strings.Contains(h.Failure.Detail, "Abandoned") || died != 5 {
		t.Errorf("%s, %+v after %d deaths: %s", h.Result, h.Failure, died, w.story(m.runID))
	}
	if n := w.cloud.effects()["create B"]; n != 1 {
		t.Errorf("B was created under %d tokens", n)
	}
	w.sound(m.runID)
}

func TestAFunctionThatDiesOnceIsFollowedByAnother(t *testing.T) {
	w := newWorld(t)
	w.cloud.script("create B", script{takes: time.Minute})
	m := w.submitDeploy(resources(object{"B": topic(object{})}))
	died := false
	m.onItem = func(it run.Item) bool {
		if died {
			return false
		}
		died = true
		w.faults.killAt("put op B RUNNING", true)
		_, _ = m.provision(w.process("doomed"), "B")
		w.faults.revive()
		return true
	}
	h := w.finish(m)
	if h.Result != runlog.ResultSucceeded || w.cloud.effects()["create B"] != 1 || len(w.cloud.steps("create B")) != 1 {
		t.Errorf("%s after %v: %s", h.Result, w.cloud.effects(), w.story(m.runID))
	}
	w.sound(m.runID)
}
