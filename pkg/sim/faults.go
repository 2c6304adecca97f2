package sim

import (
	"math/rand/v2"
)

// Fault is one thing that goes wrong.
type Fault uint8

// The faults.
const (
	None         Fault = iota
	CrashBefore        // the process is gone before its call has an effect
	CrashAfter         // the call has its effect, and the process is gone
	Broken             // an error without an effect: 5xx, a connection that was refused, 409
	Lost               // the call has its effect, and its answer is lost
	Echo               // the effect, and a refusal: a repeated request met its own first try (412)
	Throttled          // a refusal that asks to slow down
	Refused            // the handler of a resource fails
	Late               // the call is held back: for a while, beyond every lease, beyond settling
	Stale              // a list shows what was
	Duplicate          // an invocation happens twice
	Abort              // an execution is aborted; what it has invoked goes on
	KillProcess        // a whole process is gone, executions and all
	ForceUnlock        // somebody removes a lock
	SecondWriter       // another tool works on a stack
	NoticeLost         // nobody hears of the end of an execution
	Skew               // a clock is off
	numFaults
)

var faultNames = [numFaults]string{
	"", "crash before", "crash after", "broken", "answer lost", "own refusal (412)", "throttled", "handler failed", "late", "stale",
	"duplicate", "abort", "kill process", "force-unlock", "second writer", "notice lost", "clock skew",
}

// String implements fmt.Stringer.
func (f Fault) String() string { return faultNames[f] }

// faults decides what goes wrong. It draws the same numbers for the same steps whatever it is allowed to do, so that a
// history with fewer faults is the same up to the first one that is missing.
type faults struct {
	rng *rand.Rand
	// rate is the share of the calls that a fault can hit which it hits.
	rate [numFaults]float64
	off  bool
	// n counts the faults so far; those from limit on, and those in skip, do not happen.
	n     int
	limit int
	skip  map[int]bool
	count [numFaults]int
}

// newFaults draws which faults a history knows, and how often: some histories have one kind, some many.
func newFaults(rng *rand.Rand, limit int, skip map[int]bool) *faults {
	f := &faults{rng: rng, limit: limit, skip: skip}
	share := []float64{0.15, 0.35, 0.7}[rng.IntN(3)]
	level := []float64{0.5, 1.5, 4}[rng.IntN(3)]
	base := [numFaults]float64{
		CrashBefore: 0.002, CrashAfter: 0.004, Broken: 0.004, Lost: 0.004, Echo: 0.006, Throttled: 0.01, Refused: 0.04,
		Late: 0.003, Stale: 0.1, Duplicate: 0.03, Abort: 0.0012, KillProcess: 0.0008, ForceUnlock: 0.0012, SecondWriter: 0.0012,
		NoticeLost: 0.4, Skew: 0.1,
	}
	for i := range base {
		enabled, factor := rng.Float64() < share, 0.5+rng.Float64()
		if enabled {
			f.rate[i] = base[i] * level * factor
		}
	}
	return f
}

// happens draws whether one fault happens now.
func (f *faults) happens(kind Fault) bool {
	hit := f.rng.Float64() < f.rate[kind]
	return hit && f.take(kind)
}

// take counts a fault, unless it is not to happen.
func (f *faults) take(kind Fault) bool {
	if f.off {
		return false
	}
	f.n++
	if f.n > f.limit || f.skip[f.n] {
		return false
	}
	f.count[kind]++
	return true
}

// decide draws what happens to a call.
func (f *faults) decide(g *gate) Fault {
	u := f.rng.Float64()
	if g.p.steady {
		return None
	}
	try := func(kind Fault) bool {
		u -= f.rate[kind]
		return u < 0
	}
	chosen := None
	pick := func(kinds ...Fault) {
		for _, k := range kinds {
			if chosen == None && try(k) {
				chosen = k
			}
		}
	}
	if !g.late && !g.p.prompt && (!g.p.host || g.kind&invokes != 0) {
		pick(Late)
	}
	switch {
	case g.kind&reads != 0:
		pick(CrashBefore, Broken)
		if g.kind&lists != 0 {
			pick(Stale)
		}
	case g.kind&provides != 0:
		pick(CrashBefore, CrashAfter, Broken, Lost, Throttled)
		if g.kind&writes != 0 {
			pick(Refused)
		}
	case g.kind&writes != 0:
		pick(CrashBefore, CrashAfter, Broken, Lost)
		if g.kind&conditional != 0 {
			pick(Echo)
		}
	case g.kind&invokes != 0:
		pick(Throttled, Lost, Duplicate)
	case g.kind&starts != 0:
		pick(Broken, Lost)
	case g.kind&notices != 0:
		pick(NoticeLost)
	}
	if g.p.host && (chosen == CrashBefore || chosen == CrashAfter) {
		return None
	}
	if chosen == None || !f.take(chosen) {
		return None
	}
	return chosen
}
