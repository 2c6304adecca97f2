package sim

import (
	"context"
	"runtime"
	"strconv"
	"time"

	"github.com/slipway-cdk/slipway/pkg/clock"
)

// process is whoever makes calls: one invocation of a function, a command line, the execution service, another tool.
type process struct {
	s    *scheduler
	id   int
	name string
	// host: it stands for a whole machine, whose goroutines come to their own end when it dies.
	host bool
	// steady processes meet no faults; prompt ones, for which the history waits, are not held back.
	steady, prompt bool
	// skew is how far its clock is off.
	skew time.Duration

	dead bool
	// execution and runID say what an invocation works for; zombie: it has been held back, orphaned: its execution
	// has been aborted.
	execution, runID string
	function, action string
	decision         int
	zombie, orphaned bool
	// closing: it has just closed the run of a stack, and has not made another call.
	closing bool
	// began: it has gone past a gate; ended: it has come to its end. machine is the process that it dies with.
	began, ended bool
	machine      *plane
	// died ends when the process does.
	died chan struct{}
}

// die ends a process: nothing of it goes past a gate any more.
func (p *process) die() {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	p.dieLocked()
}

func (p *process) dieLocked() {
	if !p.dead {
		p.dead = true
		close(p.died)
	}
}

// Now implements clock.Clock.
func (p *process) Now() time.Time { return p.s.time().Add(p.skew) }

// Sleep implements clock.Clock.
func (p *process) Sleep(ctx context.Context, d time.Duration) error { return p.s.sleep(ctx, p, d) }

var _ clock.Clock = (*process)(nil)

// callKind says what a call is to the fault injector.
type callKind uint8

const (
	reads       callKind = 1 << iota // of a store
	writes                           // to a store
	conditional                      // a write whose own effect refuses its repetition
	provides                         // a call of a service
	invokes                          // an invocation of a function
	starts                           // a call of the execution service
	lists                            // an answer that may lag
	notices                          // a message that may be lost
)

// answers are what a faulty call answers.
type answers struct {
	// broken is the failure of a store or service that may have happened or not; throttled and refused are its
	// refusals; echo is what a repeated conditional write meets when its first try has succeeded.
	broken, throttled, refused, echo error
}

// call makes one call past a gate. do has the effect; stale, where there is one, answers with what was.
func (p *process) call(kind callKind, method, detail string, a answers, do func() error) error {
	v := p.s.park(&gate{p: p, method: method, detail: detail, kind: kind})
	var err error
	switch v.fault {
	case Broken:
		err = a.broken
	case Throttled:
		err = a.throttled
	case Refused:
		err = a.refused
	case CrashBefore:
		p.crash(v)
	case CrashAfter:
		_ = do() // whatever it answers, nobody hears it
		p.crash(v)
	case Lost:
		_ = do() // the answer is lost
		err = a.broken
	case Echo:
		if err = do(); err == nil {
			err = a.echo
		}
	default:
		err = do()
	}
	p.s.told(v.step, outcome(err))
	return err
}

// callOr is call for a caller that must go on when its process has died: it is answered with dead.
func (p *process) callOr(dead error, kind callKind, method, detail string, a answers, do func() error) error {
	v := p.s.parkAny(&gate{p: p, method: method, detail: detail, kind: kind})
	var err error
	switch {
	case v.dead:
		return dead
	case v.fault == Broken:
		err = a.broken
	case v.fault == Lost:
		_ = do() // the answer is lost
		err = a.broken
	default:
		err = do()
	}
	p.s.told(v.step, outcome(err))
	return err
}

// crash ends the process in the middle of a call.
func (p *process) crash(v verdict) {
	p.s.told(v.step, "the process is gone")
	if p.machine != nil {
		p.machine.kill()
	}
	p.die()
	runtime.Goexit()
}

func (p *process) isDead() bool {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	return p.dead
}

func outcome(err error) string {
	if err == nil {
		return "ok"
	}
	return err.Error()
}

func number(n int) string { return strconv.Itoa(n) }
