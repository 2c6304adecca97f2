package sim

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/slipway-cdk/slipway/pkg/asl"
	"github.com/slipway-cdk/slipway/pkg/runlog"
	"github.com/slipway-cdk/slipway/pkg/schema"
	"github.com/slipway-cdk/slipway/pkg/state"
)

const (
	account = "111111111111"
	region  = "eu-west-1"
)

// The settled points of a history.
const (
	phaseUnsettled  = iota
	phaseSettled    // everybody has settled, and the faults are over
	phaseRedeployed // the last version has been deployed again
)

// One history in so many has a sweep whenever a run ends, and one in so many has executions that are always refused.
const (
	punctual = 128
	refusing = 32
)

// The situations that a thorough simulation must have come to.
const (
	ZombieAfterAbort = "zombie after abort"
	DuplicateNext    = "concurrent duplicate Next"
	OtherTool        = "cdkd-like second writer"
	StaleIndex       = "stale index"
	LostLock         = "lost lock"
)

// Options bound what goes wrong in a history. The zero value lets everything happen.
type Options struct {
	// Faults is how many faults happen at most; 0 is no bound, -1 none at all.
	Faults int
	// Skip are the numbers of faults that do not happen.
	Skip map[int]bool
	// Coverage counts call sites, where it is set.
	Coverage *Coverage
}

// Result is what a history has come to.
type Result struct {
	Seed uint64
	// Violation is the invariant that does not hold, "" when all do; Why tells more.
	Violation, Why string
	// Steps and Elapsed are how long it was; Faults how many went wrong, Counts by kind.
	Steps   int
	Elapsed time.Duration
	Faults  int
	Counts  [numFaults]int
	// Scenarios are the situations that it came to.
	Scenarios map[string]bool
	history   []step
	start     time.Time
}

// world is one history and everything in it.
type world struct {
	seed       uint64
	s          *scheduler
	objects    *memory
	log        *memLog
	cloud      *cloud
	executions *asl.MemoryStore
	plane      *plane
	hosts      map[string]*plane
	// states reads what stands, past all gates.
	states *state.Store
	// rng draws what people do.
	rng    *rand.Rand
	stacks []*stack
	// byHand: nothing is rolled back by itself; every other command replaces something and then fails, and the next one rolls
	// back.
	byHand bool
	local  bool
	// history is the engine's budget of history events.
	history   int
	published map[string]bool
	creates   map[string]int
	planes    int
	ids       int
	runs      int
	// forced are the stacks whose lock somebody has removed; touched the resources that another tool has changed while
	// it had no right to.
	forced map[string]bool
	// others are the stacks on which another tool is at work now.
	others    map[string]bool
	touched   map[string]bool
	twins     []twin
	violation string
	why       string
	over      bool
	// unlocking: the lock that goes now is removed by somebody with force.
	unlocking bool
}

// twin is an invocation that happens twice.
type twin struct{ one, two *process }

var start = time.Date(2026, 11, 29, 21, 0, 0, 0, time.UTC)

// Prepare loads what all histories share. It must be called once before the first of them, outside of any bubble.
func Prepare() error {
	for _, k := range kinds {
		schema.Lookup(k.name)
	}
	_, err := machines()
	return err
}

// Run plays the history of a seed. It must be called in a bubble of testing/synctest.
func Run(seed uint64, opts Options) Result {
	limit := opts.Faults
	switch {
	case limit == 0:
		limit = 1 << 30
	case limit < 0:
		limit = 0
	}
	w := &world{
		seed: seed, log: newLog(), executions: asl.NewMemoryStore(), hosts: map[string]*plane{},
		rng: rand.New(rand.NewPCG(seed, 1)), published: map[string]bool{}, creates: map[string]int{},
		forced: map[string]bool{}, others: map[string]bool{}, touched: map[string]bool{},
	}
	w.s = &scheduler{
		met: map[string]bool{}, now: start, followed: start, choose: rand.New(rand.NewPCG(seed, 2)), coverage: opts.Coverage,
		faults: newFaults(rand.New(rand.NewPCG(seed, 3)), limit, opts.Skip),
	}
	w.s.between = w.meanwhile
	w.s.punctual = hashed(seed, "punctual")%punctual == 0
	w.objects = newMemory(func() time.Time { return w.s.now })
	w.objects.watch = w.watchObject
	w.log.watch = w.watchOp
	w.states = &state.Store{Objects: w.objects}
	w.cloud = newCloud(w)
	w.draw()
	w.tellOfThePast(rand.New(rand.NewPCG(seed, 4)))
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.direct()
	}()
	err := w.s.play(func() bool { return w.over || w.violation != "" })
	if err != nil && w.violation == "" {
		w.violate("it comes to an end", "%v", err)
	}
	w.end(done)
	r := Result{
		Seed: seed, Violation: w.violation, Why: w.why, Steps: len(w.s.steps), Elapsed: w.s.now.Sub(start), Faults: w.s.faults.n,
		Counts: w.s.faults.count, Scenarios: w.s.met, history: w.s.steps, start: start,
	}
	return r
}

// draw chooses the kind of history.
func (w *world) draw() {
	w.local = w.rng.IntN(3) == 0
	w.byHand = w.rng.IntN(10) == 0
	w.cloud.slow = []float64{0, 0.1, 0.4}[w.rng.IntN(3)]
	w.cloud.eventual = w.rng.IntN(3) == 0
	w.cloud.strict = w.rng.IntN(3) == 0
	if w.rng.IntN(3) == 0 {
		w.history = 60 + w.rng.IntN(300)
	}
	for i := range 1 + w.rng.IntN(6)/3 + w.rng.IntN(2)*w.rng.IntN(2) {
		s := newStack(w.rng, "S"+number(i+1), w.stacks)
		if w.byHand {
			// One whose service is asked directly, and that can be replaced.
			s.resources[0].typ, s.resources[0].policy, s.resources[0].replacePolicy = "AWS::SSM::Parameter", "", ""
		}
		w.stacks = append(w.stacks, s)
	}
	w.newPlane(w.local)
}

// tellOfThePast gives the stacks of some histories as many earlier runs as are kept, so that each run makes one go. rng is
// its own: histories are the same but for that.
func (w *world) tellOfThePast(rng *rand.Rand) {
	if rng.IntN(8) > 0 {
		return
	}
	for _, s := range w.stacks {
		for i := range state.KeptDeployments {
			id := fmt.Sprintf("20260101T0000%02d000Z-00000000", i)
			run := state.DeploymentRun{RunID: id, Command: "deploy", StartedAt: "2026-01-01T00:00:00.000Z", Result: "SUCCEEDED"}
			if err := w.states.WriteDeployment(context.Background(), s.name, region, nil, run); err != nil {
				panic(err) // memory does not fail
			}
		}
	}
}

// process makes somebody who makes calls.
func (w *world) process(name string) *process {
	w.s.mu.Lock()
	defer w.s.mu.Unlock()
	w.ids++
	return &process{s: w.s, id: w.ids, name: name, died: make(chan struct{})}
}

// skew is how far a process's clock is off.
func (w *world) skew(name string) time.Duration {
	return time.Duration(int64(hashed(w.seed, "skew", name)%20000)-10000) * time.Millisecond
}

// end lets every goroutine come to its end.
func (w *world) end(done chan struct{}) {
	w.s.mu.Lock()
	for _, pl := range w.hosts {
		pl.p.dieLocked()
		for _, inv := range pl.running {
			inv.dieLocked()
		}
	}
	w.s.ending = true
	w.s.mu.Unlock()
	for _, name := range sorted(w.hosts) {
		go w.hosts[name].executor.Close() //nolint:errcheck // it always returns nil
	}
	w.s.drain()
	<-done
}

// violate notes that an invariant does not hold, once.
func (w *world) violate(what, why string, args ...any) {
	if w.violation == "" {
		w.violation, w.why = what, fmt.Sprintf(why, args...)
		w.s.steps = append(w.s.steps, step{at: w.s.now, who: "invariant", method: what, detail: w.why})
	}
}

// duplicate notes that an invocation happens twice.
func (w *world) duplicate(one, two *process) {
	w.s.mu.Lock()
	defer w.s.mu.Unlock()
	w.twins = append(w.twins, twin{one, two})
}

// meanwhile is what may happen between any two steps: aborted executions, dead processes, other people.
func (w *world) meanwhile() {
	w.look()
	if w.s.sweepDue {
		w.s.sweepDue = false
		w.startSweep(false)
	}
	f := w.s.faults
	if f.happens(Abort) {
		w.abort()
	}
	if f.happens(KillProcess) && w.plane.local && !w.plane.p.dead && !w.plane.p.steady {
		w.s.note(w.plane.p.name, "kill", "the process is gone")
		w.plane.kill()
		w.s.met["dead process"] = true
	}
	if f.happens(ForceUnlock) {
		w.forceUnlock()
	}
	if f.happens(SecondWriter) {
		w.secondWriter()
	}
}

// look notes the situations that the history has come to.
func (w *world) look() {
	w.s.mu.Lock()
	defer w.s.mu.Unlock()
	w.twins = slices.DeleteFunc(w.twins, func(t twin) bool {
		both := t.one.began && t.two.began && !t.one.ended && !t.two.ended
		if both && !t.one.dead && !t.two.dead && t.one.action == "next" {
			w.s.met[DuplicateNext] = true
		}
		return t.one.ended && t.two.ended || t.one.dead || t.two.dead
	})
}

// abort stops an execution; what it has invoked goes on.
func (w *world) abort() {
	running, err := w.executions.List(context.Background(), asl.Query{Machine: runMachine, Status: asl.StatusRunning})
	if err != nil || len(running) == 0 || w.plane.p.dead {
		return
	}
	x := running[w.s.faults.rng.IntN(len(running))]
	held, impatient := w.s.faults.rng.IntN(2) == 0, w.s.faults.rng.IntN(3) == 0
	if held {
		x = w.holdCall(running, x)
	}
	w.s.note("somebody", "abort", x.Name)
	runID := runOf(x)
	w.s.mu.Lock()
	for _, inv := range w.plane.running {
		if inv.runID == runID {
			inv.orphaned = true
		}
	}
	w.s.mu.Unlock()
	if impatient {
		// Somebody wants to be rid of it all, now.
		go w.submit(order{command: runlog.CommandDestroy, stacks: w.stacks})
	}
	executor := w.plane.executor
	go executor.Stop(context.Background(), x.ARN, "Aborted", "somebody has aborted it") //nolint:errcheck // whatever it answers, the history goes on
}

// holdCall holds back a call that is about to change something in the account, for as long as its lease may last, and
// returns the execution that it belongs to; another one where there is no such call.
func (w *world) holdCall(running []asl.Execution, other asl.Execution) asl.Execution {
	w.s.mu.Lock()
	defer w.s.mu.Unlock()
	for _, g := range w.s.ready() {
		if g.kind&provides == 0 || g.kind&writes == 0 || g.late {
			continue
		}
		i := slices.IndexFunc(running, func(x asl.Execution) bool { return runOf(x) == g.p.runID })
		if i < 0 {
			continue
		}
		g.late, g.p.zombie = true, true
		g.until = w.s.now.Add(time.Duration(5+w.s.faults.rng.IntN(25)) * time.Second)
		w.s.steps = append(w.s.steps, step{w.s.now, g.p.name, g.method, g.detail, Late, "held back"})
		return running[i]
	}
	return other
}
