package plan

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// ops reads "a b<a c<a,b x!<a": an operation per word, after what follows "<"; "!" puts it into the cleanup.
func ops(text string) Plan {
	p := Plan{Version: Version}
	for _, word := range strings.Fields(text) {
		id, after, _ := strings.Cut(word, "<")
		op := Operation{ID: id, LogicalID: id, Kind: KindResource, Action: ActionCreate, Phase: PhaseForward}
		if name, cleanup := strings.CutSuffix(id, "!"); cleanup {
			op.ID, op.LogicalID, op.Phase, op.Action = name, name, PhaseCleanup, ActionDelete
		}
		if after != "" {
			op.DependsOn = strings.Split(after, ",")
		}
		p.Operations = append(p.Operations, op)
	}
	return p
}

var start = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

// states reads "a=s b=f c=r d=r+5 e=k": succeeded, failed, running (due, or in seconds), skipped.
func states(text string) map[string]OpState {
	out := map[string]OpState{}
	for _, word := range strings.Fields(text) {
		id, state, _ := strings.Cut(word, "=")
		var s OpState
		switch state[0] {
		case 's':
			s.Status = StatusSucceeded
		case 'f':
			s.Status = StatusFailed
		case 'k':
			s.Status = StatusSkipped
		case 'r':
			s.Status = StatusRunning
			var seconds int
			if _, err := fmt.Sscanf(state, "r+%d", &seconds); err == nil {
				s.NotBefore = start.Add(time.Duration(seconds) * time.Second)
			}
		}
		out[id] = s
	}
	return out
}

func render(w Wave) string {
	var parts []string
	add := func(name string, ids []string) {
		if len(ids) > 0 {
			parts = append(parts, name+" "+strings.Join(ids, ","))
		}
	}
	add("start", w.Start)
	add("poll", w.Poll)
	add("skip", w.Skip)
	if w.Wait > 0 {
		parts = append(parts, "wait "+w.Wait.String())
	}
	if w.Failed {
		parts = append(parts, "failed")
	}
	if w.Done {
		parts = append(parts, "done")
	}
	return strings.Join(parts, "; ")
}

func TestNext(t *testing.T) {
	for _, tt := range []struct {
		name, plan, states string
		opts               Options
		want               string
	}{
		{"nothing to do", "", "", Options{}, "done"},
		{"what depends on nothing starts", "a b c<a", "", Options{}, "start a,b"},
		{"what is free starts while others run", "a b<a c", "a=s c=r+5", Options{}, "start b"},
		{"every dependency counts", "a b c<a,b", "a=s b=r+5", Options{}, "wait 5s"},
		{"the soonest poll decides the wait", "a b", "a=r+9 b=r+3", Options{}, "wait 3s"},
		{"a due poll is not waited for", "a b", "a=r+9 b=r", Options{}, "poll b"},
		{"the most dependents go first", "a b c<b d<c e<a", "", Options{}, "start b,a"},
		{"plan order breaks ties", "z y x", "", Options{}, "start z,y,x"},
		{"cleanup waits for everything", "a b x!", "a=s b=r+5", Options{}, "wait 5s"},
		{"cleanup follows", "a b x! y!<x", "a=s b=s", Options{}, "start x"},
		{"cleanup in its order", "a x! y!<x", "a=s x=s", Options{}, "start y"},
		{"a destroy has cleanup only", "x! y!<x", "", Options{}, "start x"},
		{"all done", "a x!", "a=s x=s", Options{}, "done"},
		{"after a failure nothing starts, what runs is polled", "a b c d<a", "a=f b=r", Options{}, "poll b; skip d; failed"},
		{"after a failure the wait goes on", "a b c", "a=f b=r+4", Options{}, "wait 4s; failed"},
		{"dependents of dependents are skipped at once", "a b<a c<b d x!", "a=f d=r", Options{}, "poll d; skip b,c; failed"},
		{"at the end the rest is skipped", "a b c<b x!", "a=f", Options{}, "skip b,c,x; failed; done"},
		{"a failure with everything recorded", "a b<a", "a=f b=k", Options{}, "failed; done"},
		{"keep going starts what is independent", "a b<a c", "a=f", Options{KeepGoing: true}, "start c; skip b; failed"},
		{"keep going never cleans up after a failure", "a c x!", "a=f c=s", Options{KeepGoing: true}, "skip x; failed; done"},
		{"a failed cleanup leaves the others going", "a x! y! z!<x", "a=s x=f", Options{}, "start y; skip z; failed"},
		{"concurrency limits what is in flight", "a b c d", "a=r+5", Options{Concurrency: 2}, "start b"},
		{"a full house waits", "a b c", "a=r+5 b=r+7", Options{Concurrency: 2}, "wait 5s"},
		{"polls are not limited by it", "a b c", "a=r b=r", Options{Concurrency: 2}, "poll a,b"},
		{"a dependency on nothing is never met", "a<ghost b", "b=s", Options{}, "skip a; failed; done"},
		{"a circle is never met", "a<b b<a", "", Options{}, "skip a,b; failed; done"},
		{"what runs although a dependency was skipped is polled", "a b<a", "a=k b=r", Options{}, "poll b"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.opts.Now = start
			w := Next(ops(tt.plan), states(tt.states), tt.opts)
			if got := render(w); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestNextNamesTheFailureBehindASkip(t *testing.T) {
	w := Next(ops("a b<a c<b d"), states("a=f"), Options{Now: start})
	if fmt.Sprint(w.Because) != "map[b:a c:a d:a]" {
		t.Errorf("because %v", w.Because)
	}
}

func TestAWaveHasAtMost200Items(t *testing.T) {
	var b strings.Builder
	for i := range 500 {
		fmt.Fprintf(&b, "op%d ", i)
	}
	p := ops(b.String())
	w := Next(p, nil, Options{Now: start})
	if len(w.Start) != MaxItems || w.Waiting != 300 {
		t.Errorf("%d started, %d waiting", len(w.Start), w.Waiting)
	}
	st := map[string]OpState{}
	for _, op := range p.Operations[:150] {
		st[op.ID] = OpState{Status: StatusRunning}
	}
	w = Next(p, st, Options{Now: start})
	if len(w.Start)+len(w.Poll) != MaxItems || len(w.Poll) != 150 {
		t.Errorf("%d started, %d polled", len(w.Start), len(w.Poll))
	}
	if w = Next(p, nil, Options{Now: start, Concurrency: 100}); len(w.Start) != MaxItems {
		t.Errorf("a concurrency above the map's width starts %d", len(w.Start))
	}
	if w = Next(p, nil, Options{Now: start, Concurrency: 39}); len(w.Start) != 39 {
		t.Errorf("a concurrency of 39 starts %d", len(w.Start))
	}
}

// drawPlan draws a valid plan: dependencies lead to earlier operations of the same phase.
func drawPlan(t *rapid.T) Plan {
	n := rapid.IntRange(0, 25).Draw(t, "operations")
	p := Plan{Version: Version}
	for i := range n {
		op := Operation{ID: fmt.Sprint(i), LogicalID: fmt.Sprint(i), Kind: KindResource, Action: ActionCreate, Phase: PhaseForward}
		if rapid.IntRange(0, 3).Draw(t, "phase") == 0 {
			op.Phase, op.Action = PhaseCleanup, ActionDelete
		}
		for range rapid.IntRange(0, 3).Draw(t, "dependencies") {
			if i == 0 {
				break
			}
			d := p.Operations[rapid.IntRange(0, i-1).Draw(t, "dependency")]
			if d.Phase == op.Phase && !slices.Contains(op.DependsOn, d.ID) {
				op.DependsOn = append(op.DependsOn, d.ID)
			}
		}
		p.Operations = append(p.Operations, op)
	}
	if err := p.Validate(); err != nil {
		t.Fatal(err)
	}
	return p
}

func TestEveryOperationRunsOnceInOrderOrIsSkippedForAReason(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPlan(t)
		byID := map[string]Operation{}
		forward := 0
		for _, op := range p.Operations {
			byID[op.ID] = op
			if op.Phase == PhaseForward {
				forward++
			}
		}
		opts := Options{Now: start, Concurrency: rapid.IntRange(0, 5).Draw(t, "concurrency"), KeepGoing: rapid.Bool().Draw(t, "keep going")}
		failures := rapid.IntRange(0, 1).Draw(t, "failures") == 1
		st := map[string]OpState{}
		started := map[string]int{}
		forwardDone, forwardFailed := 0, false
		end := func(id string) {
			s := OpState{Status: StatusSucceeded}
			switch rapid.IntRange(0, 9).Draw(t, "outcome of "+id) {
			case 0:
				if failures {
					s.Status = StatusFailed
					forwardFailed = forwardFailed || byID[id].Phase == PhaseForward
				}
			case 1, 2, 3:
				s = OpState{Status: StatusRunning, NotBefore: opts.Now.Add(time.Duration(rapid.IntRange(0, 5).Draw(t, "delay")) * time.Second)}
			}
			if s.Status == StatusSucceeded && byID[id].Phase == PhaseForward {
				forwardDone++
			}
			st[id] = s
		}
		for step := 0; ; step++ {
			if step > 2000 {
				t.Fatal("never comes to an end")
			}
			w := Next(p, st, opts)
			if again := Next(p, st, opts); render(again) != render(w) {
				t.Fatalf("not deterministic: %s, then %s", render(w), render(again))
			}
			running := 0
			for _, s := range st {
				if s.Status == StatusRunning {
					running++
				}
			}
			if opts.Concurrency > 0 && len(w.Start) > 0 && running+len(w.Start) > opts.Concurrency {
				t.Fatalf("%d in flight with a concurrency of %d", running+len(w.Start), opts.Concurrency)
			}
			for _, id := range w.Skip {
				if st[id].Status != StatusWaiting {
					t.Fatalf("%s is skipped and was %q", id, st[id].Status)
				}
				if !w.Failed {
					t.Fatalf("%s is skipped without a failure", id)
				}
			}
			for _, id := range w.Start {
				started[id]++
				if forwardFailed && !opts.KeepGoing {
					t.Fatalf("%s starts after a failure", id)
				}
				if byID[id].Phase == PhaseCleanup && forwardDone < forward {
					t.Fatalf("%s is cleaned up before the forward phase is done", id)
				}
				for _, d := range byID[id].DependsOn {
					if st[d].Status != StatusSucceeded {
						t.Fatalf("%s starts before %s has succeeded", id, d)
					}
				}
			}
			for _, id := range w.Skip {
				st[id] = OpState{Status: StatusSkipped}
			}
			if w.Done {
				break
			}
			for _, id := range slices.Concat(w.Start, w.Poll) {
				end(id)
			}
			if len(w.Start)+len(w.Poll) == 0 {
				if w.Wait <= 0 && len(w.Skip) == 0 {
					t.Fatalf("neither works nor waits nor ends: %+v", w)
				}
				opts.Now = opts.Now.Add(w.Wait)
			}
		}
		for _, op := range p.Operations {
			switch s := st[op.ID].Status; {
			case !s.Ended():
				t.Fatalf("%s ends as %q", op.ID, s)
			case s == StatusSkipped && started[op.ID] != 0, s != StatusSkipped && started[op.ID] != 1:
				t.Fatalf("%s is %s and was started %d times", op.ID, s, started[op.ID])
			case !failures && s != StatusSucceeded:
				t.Fatalf("%s is %s although nothing failed", op.ID, s)
			}
		}
	})
}

// layeredPlan has three dependencies per operation, in the manner of a large stack.
func layeredPlan(n int) Plan {
	p := Plan{Version: Version}
	for i := range n {
		op := Operation{ID: fmt.Sprint(i), LogicalID: fmt.Sprint(i), Phase: PhaseForward}
		for _, back := range []int{1, 7, 50} {
			if i >= back && i%10 != 0 {
				op.DependsOn = append(op.DependsOn, fmt.Sprint(i-back))
			}
		}
		p.Operations = append(p.Operations, op)
	}
	return p
}

func BenchmarkNext(b *testing.B) {
	for _, n := range []int{500, 10_000} {
		p := layeredPlan(n)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				if len(Next(p, nil, Options{Now: start}).Start) == 0 {
					b.Fatal("nothing starts")
				}
			}
		})
	}
}

func TestAStoppedRunBeginsNothing(t *testing.T) {
	for _, tt := range []struct{ name, plan, states, want string }{
		{"before anything has begun", "a b<a x!<a", "", "skip a,b,x; done"},
		{"with work in flight", "a b<a c", "a=r", "poll a"},
		{"with work that is not due", "a b<a c", "a=r+7", "wait 7s"},
		{"after what was in flight", "a b<a c", "a=s", "skip b,c; done"},
		{"in the cleanup", "a x!<a y!<x", "a=s x=s", "skip y; done"},
		{"with a failure", "a b<a c", "a=f", "skip b,c; failed; done"},
		{"when all is done", "a b<a", "a=s b=s", "done"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := Next(ops(tt.plan), states(tt.states), Options{Now: start, Stop: true, KeepGoing: true})
			if got := render(w); got != tt.want || w.Waiting != 0 {
				t.Errorf("got %q, %d waiting; want %q", got, w.Waiting, tt.want)
			}
		})
	}
}
