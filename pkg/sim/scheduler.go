package sim

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing/synctest"
	"time"
)

// scheduler decides who goes on. Everything below mu is shared with the goroutines of the play, of which only the
// ones that the last step has released run at any time.
type scheduler struct {
	mu  sync.Mutex
	now time.Time
	// followed is where the clock of the bubble is.
	followed time.Time
	// choose picks who goes on and how much time passes.
	choose   *rand.Rand
	faults   *faults
	parked   []*gate
	sleepers []*sleeper
	// phase grows as the history comes to its settled points; late calls may wait for one.
	phase int
	steps []step
	// met are the situations that the history has come to.
	met map[string]bool
	// ending: the history is over, and whoever comes to a gate ends.
	ending   bool
	coverage *Coverage
	// between is run before every step, while everything stands still.
	between func()
	// punctual: the sweep comes round whenever the run of a stack has closed and goes on to free its lock; sweepDue says
	// that it has to now.
	punctual, sweepDue bool
}

// maxSteps ends a history that does not come to an end.
const maxSteps = 60000

// slowCall is how long a call takes at most to which nothing has happened.
const slowCall = 5 * time.Second

// gate is one goroutine that waits to be released.
type gate struct {
	p      *process
	method string
	detail string
	kind   callKind
	// idle gates are released when nothing else can happen.
	idle bool
	// until holds a late call back: to a time, or to a phase.
	until time.Time
	phase int
	// late: it has been held back once.
	late    bool
	site    int
	verdict chan verdict
}

// verdict is what a released goroutine is told.
type verdict struct {
	fault Fault
	step  int
	dead  bool
}

// sleeper is one goroutine that waits for a time.
type sleeper struct {
	p    *process
	due  time.Time
	wake chan struct{}
}

// step is one line of a history.
type step struct {
	at             time.Time
	who            string
	method, detail string
	fault          Fault
	outcome        string
}

// play runs until end is true while everything stands still, or nothing can happen any more.
func (s *scheduler) play(ended func() bool) error {
	for {
		synctest.Wait()
		if ended() {
			return nil
		}
		if len(s.steps) > maxSteps {
			return fmt.Errorf("the history has not come to an end after %d steps", maxSteps)
		}
		if s.between != nil {
			s.between()
			synctest.Wait() // it may have woken somebody
		}
		if !s.step() {
			return fmt.Errorf("nothing can happen any more and the history has not ended")
		}
		s.follow()
	}
}

// follow moves the clock of the bubble on to the scheduler's: contexts end by it.
func (s *scheduler) follow() {
	s.mu.Lock()
	behind := s.now.Sub(s.followed)
	s.followed = s.now
	s.mu.Unlock()
	time.Sleep(behind)
}

// step releases one goroutine, or lets time pass. It reports whether there was anything to do.
func (s *scheduler) step() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.buryDead() {
		return true
	}
	ready := s.ready()
	soonest := s.soonest()
	if leap := s.choose.IntN(100) == 0; leap && len(ready) > 0 && soonest != nil && soonest.due.Sub(s.now) < slowCall {
		// Whoever is ready takes longer than who sleeps.
		s.wakeAt(soonest.due)
		return true
	}
	s.now = s.now.Add(time.Duration(1+s.choose.IntN(20)) * time.Millisecond)
	if soonest != nil && !soonest.due.After(s.now) {
		s.wakeAt(soonest.due)
		return true
	}
	if len(ready) > 0 {
		s.release(ready[s.choose.IntN(len(ready))])
		return true
	}
	if late := s.soonestLate(); late != nil && (soonest == nil || late.until.Before(soonest.due)) {
		s.now = later(s.now, late.until)
		return true
	}
	if soonest != nil {
		s.wakeAt(soonest.due)
		return true
	}
	for _, g := range s.parked {
		if g.idle {
			s.release(g)
			return true
		}
	}
	return false
}

// buryDead ends the goroutines of processes that have died.
func (s *scheduler) buryDead() bool {
	buried := false
	s.parked = slices.DeleteFunc(s.parked, func(g *gate) bool {
		if g.p.dead {
			g.verdict <- verdict{dead: true}
			buried = true
		}
		return g.p.dead
	})
	s.sleepers = slices.DeleteFunc(s.sleepers, func(w *sleeper) bool {
		if w.p.dead {
			close(w.wake)
			buried = true
		}
		return w.p.dead
	})
	return buried
}

// ready lists the gates that may be released now, in an order that does not depend on who came first.
func (s *scheduler) ready() []*gate {
	var out []*gate
	for _, g := range s.parked {
		if !g.idle && g.phase <= s.phase && !g.until.After(s.now) {
			out = append(out, g)
		}
	}
	slices.SortFunc(out, func(a, b *gate) int {
		return cmp.Or(cmp.Compare(a.p.id, b.p.id), cmp.Compare(a.method, b.method), cmp.Compare(a.detail, b.detail))
	})
	// Calls that nothing tells apart are one choice.
	return slices.CompactFunc(out, same)
}

func same(a, b *gate) bool { return a.p == b.p && a.method == b.method && a.detail == b.detail }

func (s *scheduler) soonest() *sleeper {
	var first *sleeper
	for _, w := range s.sleepers {
		if first == nil || w.due.Before(first.due) {
			first = w
		}
	}
	return first
}

func (s *scheduler) soonestLate() *gate {
	var first *gate
	for _, g := range s.parked {
		if !g.idle && g.phase <= s.phase && g.until.After(s.now) && (first == nil || g.until.Before(first.until)) {
			first = g
		}
	}
	return first
}

// wakeAt moves the time on and wakes whoever sleeps until then.
func (s *scheduler) wakeAt(due time.Time) {
	s.now = later(s.now, due)
	s.sleepers = slices.DeleteFunc(s.sleepers, func(w *sleeper) bool {
		if w.due.After(due) {
			return false
		}
		close(w.wake)
		return true
	})
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// release lets one goroutine go on, and those that nothing tells apart from it.
func (s *scheduler) release(chosen *gate) {
	v := verdict{step: len(s.steps)}
	if !chosen.idle {
		v.fault = s.faults.decide(chosen)
		if s.sweptWhile(chosen) && v.fault == None && s.faults.take(Late) {
			v.fault, s.sweepDue = Late, true
		}
	}
	if v.fault == Late {
		s.delay(chosen)
		s.steps = append(s.steps, step{s.now, chosen.p.name, chosen.method, chosen.detail, Late, "held back"})
		return
	}
	if s.coverage != nil {
		s.coverage.hit(chosen, v.fault)
	}
	switch {
	case chosen.p.orphaned:
		s.met[ZombieAfterAbort] = true
	case chosen.phase > phaseUnsettled:
		s.met["late call after settling"] = true
	}
	s.steps = append(s.steps, step{at: s.now, who: chosen.p.name, method: chosen.method, detail: chosen.detail, fault: v.fault})
	s.parked = slices.DeleteFunc(s.parked, func(g *gate) bool {
		if g != chosen && (g.idle != chosen.idle || !same(g, chosen)) {
			return false
		}
		g.p.began = true
		g.verdict <- v
		return true
	})
}

// sweptWhile chooses calls to be held back while the sweep comes round: those that follow the end of a run.
func (s *scheduler) sweptWhile(g *gate) bool {
	closing := g.p.closing
	g.p.closing = false
	return closing && s.punctual && !g.late && !g.p.steady && !g.p.prompt
}

// drain ends everything that waits.
func (s *scheduler) drain() {
	for {
		synctest.Wait()
		s.mu.Lock()
		n := len(s.parked) + len(s.sleepers)
		for _, g := range s.parked {
			g.verdict <- verdict{dead: true}
		}
		for _, w := range s.sleepers {
			close(w.wake)
		}
		s.parked, s.sleepers = nil, nil
		s.mu.Unlock()
		if n == 0 {
			return
		}
	}
}

// delay holds a call back: for seconds, for longer than any lease, or until a settled point has passed.
func (s *scheduler) delay(g *gate) {
	g.late = true
	g.p.zombie = !g.p.host
	switch s.faults.rng.IntN(6) {
	case 0, 1:
		g.until = s.now.Add(time.Duration(1+s.faults.rng.IntN(60)) * time.Second)
	case 2:
		g.until = s.now.Add(time.Duration(330+s.faults.rng.IntN(300)) * time.Second)
	case 3:
		g.until = s.now.Add(time.Duration(900+s.faults.rng.IntN(7200)) * time.Second)
	case 4:
		g.phase = phaseSettled
	case 5:
		g.phase = phaseRedeployed
	}
}

// park waits to be released. It does not return when the process has died.
func (s *scheduler) park(g *gate) verdict {
	v := s.parkAny(g)
	if v.dead {
		runtime.Goexit()
	}
	return v
}

// parkAny is park for a caller that goes on when its process has died.
func (s *scheduler) parkAny(g *gate) verdict {
	s.mu.Lock()
	if g.p.dead || s.ending {
		s.mu.Unlock()
		return verdict{dead: true}
	}
	g.verdict = make(chan verdict, 1)
	if s.coverage != nil && !g.idle {
		g.site = s.coverage.site(g.method)
	}
	s.parked = append(s.parked, g)
	s.mu.Unlock()
	return <-g.verdict
}

// sleep waits until a time, or until ctx ends.
func (s *scheduler) sleep(ctx context.Context, p *process, d time.Duration) error {
	if d <= 0 || ctx.Err() != nil {
		return ctx.Err()
	}
	s.mu.Lock()
	if p.dead || s.ending {
		s.mu.Unlock()
		if p.host {
			return errDead
		}
		runtime.Goexit()
	}
	w := &sleeper{p: p, due: s.now.Add(d), wake: make(chan struct{})}
	s.sleepers = append(s.sleepers, w)
	s.mu.Unlock()
	select {
	case <-w.wake:
		s.mu.Lock()
		dead := p.dead || s.ending
		s.mu.Unlock()
		switch {
		case dead && p.host:
			return errDead
		case dead:
			runtime.Goexit()
		}
		return ctx.Err()
	case <-ctx.Done():
		s.mu.Lock()
		s.sleepers = slices.DeleteFunc(s.sleepers, func(o *sleeper) bool { return o == w })
		s.mu.Unlock()
		return ctx.Err()
	}
}

// told puts down how a step has come out.
func (s *scheduler) told(n int, outcome string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.steps[n].outcome == "" {
		s.steps[n].outcome = outcome
	}
}

// note adds a line to the history that is nobody's call.
func (s *scheduler) note(who, what, detail string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.steps = append(s.steps, step{at: s.now, who: who, method: what, detail: detail})
}

func (s *scheduler) time() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}
