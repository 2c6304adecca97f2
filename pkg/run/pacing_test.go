package run_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/slipway-cdk/slipway/pkg/clock"
	"github.com/slipway-cdk/slipway/pkg/provider"
	"github.com/slipway-cdk/slipway/pkg/provider/pace"
	"github.com/slipway-cdk/slipway/pkg/run"
	"github.com/slipway-cdk/slipway/pkg/runlog"
)

// strictService takes a few calls at once and two per second after that, and counts those that it has refused.
type strictService struct {
	clk clock.Clock
	// busy: it does not take a call that it refuses, and so remembers nothing of it.
	busy    bool
	tokens  float64
	at      time.Time
	refused int
}

const strictBurst = 10

func (s *strictService) fails(int) *provider.Error {
	if !s.take(s.clk.Now()) {
		return &provider.Error{Kind: provider.KindThrottled, Code: "ThrottlingException", Undecided: s.busy}
	}
	return nil
}

func (s *strictService) take(now time.Time) bool {
	if s.at.IsZero() {
		s.tokens, s.at = strictBurst, now
	}
	s.tokens, s.at = min(s.tokens+2*now.Sub(s.at).Seconds(), strictBurst), now
	if s.tokens < 1 {
		s.refused++
		return false
	}
	s.tokens--
	return true
}

// wide is a template of n topics that depend on nothing, and its service.
func (w *world) wide(n int) (object, *strictService) {
	s := &strictService{clk: w.clk}
	all := object{}
	for i := range n {
		id := fmt.Sprintf("T%02d", i)
		all[id] = topic(object{})
		w.cloud.script("create "+id, script{fails: s.fails})
	}
	return resources(all), s
}

// unpaced counts the refusals that n creations meet which only know their own failures.
func unpaced(n int) int {
	clk := clock.NewFake(time.Date(2026, 11, 29, 21, 0, 0, 0, time.UTC))
	s := &strictService{clk: clk}
	due := map[string]time.Time{}
	tries := map[string]int{}
	for i := range n {
		due[fmt.Sprintf("T%02d", i)] = clk.Now()
	}
	for len(due) > 0 {
		for _, id := range slices.Sorted(maps.Keys(due)) {
			if due[id].After(clk.Now()) {
				continue
			}
			tries[id]++
			if s.fails(tries[id]) == nil {
				delete(due, id)
			} else {
				due[id] = clk.Now().Add(run.ThrottlePause("unpaced", id, tries[id]))
			}
		}
		clk.Advance(100 * time.Millisecond)
	}
	return s.refused
}

// pacedProviders puts buckets in front of the cloud, as a process does.
type pacedProviders struct {
	*cloud
	buckets *pace.Buckets
}

func (p pacedProviders) For(typeName string, recorded provider.Route, properties []string) (provider.Provider, provider.Route, error) {
	next, route, err := p.cloud.For(typeName, recorded, properties)
	return p.buckets.Wrap(next), route, err
}

func TestAThrottledWaveIsPacedByThePlanner(t *testing.T) {
	for name, busy := range map[string]bool{"the request has failed": false, "the call was not taken": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			template, service := w.wide(40)
			service.busy = busy
			m := w.submitDeploy(template)
			h := w.finish(m)
			if h.Result != runlog.ResultSucceeded || h.Counts.Created != 40 {
				t.Fatalf("%s %+v: %s", h.Result, h.Counts, w.story(m.runID))
			}
			w.sound(m.runID)
			// The first wave knows nothing: 30 of it are refused. It is about those that come after.
			alone := unpaced(40) - (40 - strictBurst)
			later := service.refused - (40 - strictBurst)
			t.Logf("refused after the first wave: %d, without pacing %d", later, alone)
			if later > alone/2 {
				t.Errorf("%d calls are refused after the first wave, of those that know only themselves %d", later, alone)
			}
		})
	}
}

func TestAThrottledWaveIsPacedInOneProcess(t *testing.T) {
	w := newWorld(t)
	w.engine.Providers = pacedProviders{w.cloud, &pace.Buckets{Clock: w.clk}}
	template, service := w.wide(40)
	m := w.submitDeploy(template)
	h := w.finish(m)
	if h.Result != runlog.ResultSucceeded || h.Counts.Created != 40 {
		t.Fatalf("%s %+v: %s", h.Result, h.Counts, w.story(m.runID))
	}
	alone := unpaced(40)
	t.Logf("refused: %d, without pacing %d", service.refused, alone)
	if service.refused > alone/4 {
		t.Errorf("%d calls are refused, without pacing %d", service.refused, alone)
	}
}

func TestAnotherServiceIsNotHeldBack(t *testing.T) {
	w := newWorld(t)
	template, _ := w.wide(40)
	all := template["Resources"].(object)
	for i := range 30 {
		all[fmt.Sprintf("Q%02d", i)] = queue(object{"VisibilityTimeout": 30 + i})
		if i > 0 {
			all[fmt.Sprintf("Q%02d", i)].(object)["DependsOn"] = fmt.Sprintf("Q%02d", i-1)
		}
	}
	m := w.submitDeploy(template)
	perWave := map[int]bool{}
	m.onItem = func(it run.Item) bool {
		if it.LogicalID[0] == 'Q' {
			perWave[m.wave.Wave] = true
		}
		return false
	}
	if h := w.finish(m); h.Result != runlog.ResultSucceeded {
		t.Fatal(w.story(m.runID))
	}
	if len(perWave) != 30 {
		t.Errorf("a chain of 30 queues took %d waves", len(perWave))
	}
}

func role(properties object) object {
	return object{"Type": "AWS::IAM::Role", "Properties": properties}
}

func function(id string) object {
	return object{"Type": "AWS::Lambda::Function", "Properties": object{
		"Role": att(id, "Arn"), "Code": object{"ZipFile": "x"}, "Handler": "index.handler", "Runtime": "nodejs22.x",
	}}
}

func assumed(service string) object {
	return object{"AssumeRolePolicyDocument": object{"Version": "2012-10-17", "Statement": []any{
		object{"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": object{"Service": service}},
	}}}
}

func TestANewRoleIsWaitedForDenselyAndLong(t *testing.T) {
	w := newWorld(t)
	ready := w.clk.Now().Add(100 * time.Second)
	w.cloud.script("create F", script{fails: func(attempt int) *provider.Error {
		switch {
		case attempt == 20:
			return &provider.Error{Kind: provider.KindUnavailable}
		case w.clk.Now().Before(ready):
			return &provider.Error{Kind: provider.KindPropagation}
		}
		return nil
	}})
	m := w.submitDeploy(resources(object{"R": role(assumed("lambda.amazonaws.com")), "F": function("R")}))
	h := w.finish(m)
	if h.Result != runlog.ResultSucceeded {
		t.Fatal(w.story(m.runID))
	}
	if late := w.clk.Now().Sub(ready); late > 5*time.Second {
		t.Errorf("the function came %s after the role was in effect", late)
	}
	if n := len(w.cloud.steps("create F")); n < 30 {
		t.Errorf("it was tried %d times in 100 seconds", n)
	}
	w.sound(m.runID)
}

func TestARoleThatHasBeenThereForLongIsNotWaitedFor(t *testing.T) {
	w := newWorld(t)
	w.deploy(resources(object{"R": role(assumed("lambda.amazonaws.com"))}))
	w.cloud.script("create F", script{fails: fails(provider.KindPropagation)})
	m := w.submitDeploy(resources(object{"R": role(assumed("lambda.amazonaws.com")), "F": function("R")}))
	h := w.finish(m)
	if h.Result != runlog.ResultFailed || len(w.cloud.steps("create F")) != 1 {
		t.Errorf("%s after %d calls", h.Result, len(w.cloud.steps("create F")))
	}
	for _, ev := range w.events(m.runID, runlog.OpFail) {
		if ev.Error == nil || ev.Error.Code != "TestPropagation" {
			t.Errorf("the failure is told as %+v", ev.Error)
		}
	}
}

func TestANewPolicyOfAnOldRoleIsWaitedFor(t *testing.T) {
	w := newWorld(t)
	old := object{"R": role(assumed("lambda.amazonaws.com"))}
	w.deploy(resources(old))
	w.cloud.script("create F", script{fails: failsUntil(9, provider.KindPropagation)})
	m := w.submitDeploy(resources(object{
		"R": old["R"],
		"P": object{"Type": "AWS::IAM::Policy", "Properties": object{
			"PolicyName": "p", "Roles": []any{ref("R")}, "PolicyDocument": object{"Version": "2012-10-17", "Statement": []any{}},
		}},
		"F": func() object { f := function("R"); f["DependsOn"] = "P"; return f }(),
	}))
	if h := w.finish(m); h.Result != runlog.ResultSucceeded {
		t.Error(w.story(m.runID))
	}
}

func TestADeletionGoesAheadOnceAnotherHasEnded(t *testing.T) {
	w := newWorld(t)
	w.deploy(resources(object{"A": topic(object{}), "Slow": topic(object{})}))
	gone := false
	// What uses A is deleted for two minutes; the plan knows nothing of it.
	w.cloud.script("delete Slow", script{takes: 2 * time.Minute})
	w.cloud.script("delete A", script{fails: func(int) *provider.Error {
		if gone {
			return nil
		}
		return &provider.Error{Kind: provider.KindDependencyViolation}
	}})
	m := w.submit(order{stack: "App", command: runlog.CommandDestroy})
	var freedAt time.Time
	for !m.ended {
		m.step()
		if op, err := w.log.Op(t.Context(), m.runID, "Slow"); err == nil && op.Status == runlog.OpSucceeded && !gone {
			gone, freedAt = true, w.clk.Now()
		}
	}
	h := w.header(m.runID)
	if h.Result != runlog.ResultSucceeded {
		t.Fatal(w.story(m.runID))
	}
	op, err := w.log.Op(t.Context(), m.runID, "A")
	if err != nil {
		t.Fatal(err)
	}
	if late := op.FinishedAt.Sub(freedAt); late > time.Second {
		t.Errorf("A was deleted %s after what used it", late)
	}
	w.sound(m.runID)
}
