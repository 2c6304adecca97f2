package sim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"sync"
	"time"

	"github.com/slipway-cdk/slipway/pkg/asl"
	"github.com/slipway-cdk/slipway/pkg/asl/shipped"
	"github.com/slipway-cdk/slipway/pkg/assembly"
	"github.com/slipway-cdk/slipway/pkg/asset"
	"github.com/slipway-cdk/slipway/pkg/run"
	"github.com/slipway-cdk/slipway/pkg/state"
)

// Names of the functions and machines. The ARNs only have to look like ARNs.
const (
	planner       = "planner"
	provisioner   = "provisioner"
	publisher     = "publisher"
	janitor       = "janitor"
	runMachine    = "arn:aws:states:eu-west-1:111111111111:stateMachine:run"
	settleMachine = "arn:aws:states:eu-west-1:111111111111:stateMachine:settle"
	runExecutions = "arn:aws:states:eu-west-1:111111111111:execution:run:"
)

// machines are the shipped definitions, loaded once: they never change.
var machines = sync.OnceValues(func() (map[string]*asl.Machine, error) {
	return shipped.Machines(shipped.Names{
		Planner: planner, Provisioner: provisioner, Publisher: publisher, Janitor: janitor, Run: runMachine, Settle: settleMachine,
	})
})

// plane is whatever runs executions: Step Functions, which never dies, with a Lambda for every invocation; or one
// process of --local, which takes all of its executions and functions with it.
type plane struct {
	w        *world
	p        *process
	executor *asl.Executor
	local    bool
	// running are the invocations that have not ended.
	running []*process
	// work is what the invocations of a process know of each other.
	work run.AtWork
}

// newPlane starts Step Functions, or a process.
func (w *world) newPlane(local bool) *plane {
	w.planes++
	pl := &plane{w: w, local: local}
	name := "step functions"
	if local {
		name = "process-" + number(w.planes)
	}
	pl.p = w.process(name)
	pl.p.host = true
	definitions, err := machines()
	if err != nil {
		panic(err) // the shipped definitions are tested elsewhere
	}
	pl.executor = &asl.Executor{
		Machines: definitions, Functions: pl, Store: executionStore{pl, w.executions}, Clock: pl.p,
		Rand: &dice{pl: pl}, Holder: pl.p.name,
	}
	if !local {
		pl.executor.Ended = pl.ended
	}
	w.plane = pl
	w.hosts[pl.p.name] = pl
	return pl
}

// dice is a source of randomness that depends on the history alone.
type dice struct {
	pl    *plane
	rolls int
}

// Uint64 implements rand.Source.
func (d *dice) Uint64() uint64 {
	s := d.pl.w.s
	s.mu.Lock()
	defer s.mu.Unlock()
	d.rolls++
	return hashed(d.pl.w.seed, d.pl.p.name, number(d.rolls))
}

func hashed(seed uint64, parts ...string) uint64 {
	h := fnv.New64a()
	fmt.Fprint(h, seed)
	for _, p := range parts {
		_, _ = h.Write([]byte{0})
		_, _ = h.Write([]byte(p))
	}
	return h.Sum64()
}

// engine makes an engine that reaches the world as one process.
func (w *world) engine(p *process, holder string) *run.Engine {
	objects := gatedObjects{p, w.objects}
	return &run.Engine{
		Objects: objects, Log: gatedLog{p, w.log}, States: &state.Store{Objects: objects, Clock: p}, Clock: p,
		Providers: w.cloud.providers(p), Assets: assets{p, w}, Facts: noFacts{}, Executions: seen{p, w}, Holder: holder,
		History: w.history,
	}
}

// Invoke implements asl.Functions.
func (pl *plane) Invoke(ctx context.Context, function string, payload []byte) ([]byte, error) {
	v := pl.p.s.park(&gate{p: pl.p, method: "invoke." + function, detail: string(payload), kind: invokes})
	if v.fault == Throttled {
		pl.p.s.told(v.step, "throttled")
		return nil, &asl.FunctionError{Type: "Lambda.TooManyRequestsException", Message: "Rate exceeded"}
	}
	inv := pl.invocation(function, payload)
	pl.p.s.told(v.step, "as "+inv.name)
	answered := pl.carry(ctx, inv, function, payload)
	if v.fault == Duplicate {
		twin := pl.invocation(function, payload)
		twin.name += "'"
		pl.w.duplicate(inv, twin)
		pl.carry(ctx, twin, function, payload)
	}
	lost := &asl.FunctionError{Type: "Lambda.ServiceException", Message: "the answer was lost"}
	if v.fault == Lost && v.step%2 == 0 {
		return nil, lost // it still runs
	}
	select {
	case a := <-answered:
		if v.fault == Lost {
			return nil, lost
		}
		return a.body, a.err
	case <-inv.died:
		return nil, &asl.FunctionError{Type: "Runtime.ExitError", Message: "RequestId: " + inv.name + " Error: Runtime exited"}
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

type answered struct {
	body []byte
	err  error
}

// invocation names one invocation of a function.
func (pl *plane) invocation(function string, payload []byte) *process {
	var of struct {
		RunID, Execution, Action, Op string
		Decision                     int
	}
	_ = json.Unmarshal(payload, &of) // the payload is the state machine's
	what := function
	if of.Action != "" {
		what = of.Action
	}
	if of.Op != "" {
		what += " " + of.Op
	}
	inv := pl.w.process(what + " " + of.RunID[max(0, len(of.RunID)-4):])
	inv.name += "/" + number(inv.id)
	inv.runID, inv.execution, inv.function, inv.action, inv.decision = of.RunID, of.Execution, function, of.Action, of.Decision
	inv.steady = pl.p.steady
	pl.w.s.mu.Lock()
	defer pl.w.s.mu.Unlock()
	if pl.local {
		inv.skew, inv.machine = pl.p.skew, pl
	} else if pl.w.s.faults.rate[Skew] > 0 && !pl.w.s.faults.off {
		if inv.skew = pl.w.skew(inv.name); inv.skew != 0 {
			pl.w.s.met["clock skew"] = true
		}
	}
	pl.adopt(inv)
	return inv
}

// adopt makes somebody die with the plane.
func (pl *plane) adopt(p *process) {
	if pl.p.dead {
		p.dieLocked()
	}
	pl.running = append(pl.running, p)
}

// carry runs a function's handler. A Lambda does not hear that its task has ended; a handler in a process does.
func (pl *plane) carry(ctx context.Context, inv *process, function string, payload []byte) <-chan answered {
	e := pl.w.engine(inv, pl.p.name)
	e.Work = &pl.work
	if !pl.local {
		e, ctx = pl.w.engine(inv, function+"/"+inv.name), context.Background()
	}
	out := make(chan answered, 1)
	go func() {
		defer pl.over(inv)
		body, err := handler(e, function)(ctx, payload)
		var failed *run.HandlerError
		if errors.As(err, &failed) {
			err = &asl.FunctionError{Type: failed.Name, Message: failed.Error()}
		}
		outcome := string(body)
		if err != nil {
			outcome = err.Error()
		}
		pl.w.s.note(inv.name, "answers", outcome)
		out <- answered{body, err}
	}()
	return out
}

func handler(e *run.Engine, function string) func(context.Context, []byte) ([]byte, error) {
	switch function {
	case planner:
		return e.HandlePlanner
	case provisioner:
		return e.HandleProvisioner
	case publisher:
		return e.HandlePublisher
	}
	return e.HandleJanitor
}

// over forgets an invocation that has ended.
func (pl *plane) over(inv *process) {
	pl.w.s.mu.Lock()
	defer pl.w.s.mu.Unlock()
	for i, r := range pl.running {
		if r == inv {
			pl.running = append(pl.running[:i], pl.running[i+1:]...)
			break
		}
	}
	inv.ended = true
}

// kill ends a process with everything in it.
func (pl *plane) kill() {
	s := pl.w.s
	s.mu.Lock()
	pl.p.dieLocked()
	for _, inv := range pl.running {
		inv.dieLocked()
	}
	s.mu.Unlock()
	go pl.executor.Close() //nolint:errcheck // it always returns nil
}

// ended is what Step Functions tells EventBridge: of an execution that has ended badly, settling is started, unless
// nobody hears of it.
func (pl *plane) ended(x asl.Execution) {
	if x.Machine != runMachine || x.Status == asl.StatusSucceeded {
		return
	}
	var of struct{ RunID string }
	if json.Unmarshal(x.Input, &of) != nil || pl.p.dead {
		return
	}
	go func() {
		p := pl.w.process("notice of " + x.Name)
		v := p.s.park(&gate{p: p, method: "notice", detail: x.Name + " " + string(x.Status), kind: notices})
		if v.fault == NoticeLost {
			p.s.told(v.step, "nobody hears")
			return
		}
		_, err := pl.executor.Start(context.Background(), settleMachine, "", []byte(`{"runId":"`+of.RunID+`"}`))
		p.s.told(v.step, outcome(err))
	}()
}

// executionStore keeps executions as one plane reaches it. What a dead process still has to say is not kept.
type executionStore struct {
	pl *plane
	*asl.MemoryStore
}

var errDead = errors.New("the process is dead")

// Create implements asl.Store. It is no gate: the executor holds a mutex across it.
func (x executionStore) Create(ctx context.Context, e asl.Execution, first []asl.Event) (asl.Execution, bool, error) {
	s := x.pl.w.s
	s.mu.Lock()
	dead, rate, off := x.pl.p.dead, s.faults.rate[Broken], s.faults.off || s.faults.n >= s.faults.limit
	tries := x.pl.w.creates[e.Name]
	x.pl.w.creates[e.Name]++
	s.mu.Unlock()
	if dead {
		return asl.Execution{}, false, errDead
	}
	if !off && !x.pl.p.steady && float64(hashed(x.pl.w.seed, "create", e.Name, number(tries))>>11)/(1<<53) < rate {
		return asl.Execution{}, false, errStore
	}
	if !off && !x.pl.p.steady && e.Machine == runMachine && hashed(x.pl.w.seed, "refusing")%refusing == 0 && hashed(x.pl.w.seed, "refuses", e.Name)%4 == 0 {
		return asl.Execution{}, false, errStore // as often as it is asked for
	}
	return x.MemoryStore.Create(ctx, e, first)
}

// Finish implements asl.Store.
func (x executionStore) Finish(ctx context.Context, arn string, o asl.Outcome, last []asl.Event) (e asl.Execution, err error) {
	x.pl.w.s.mu.Lock()
	dead := x.pl.p.dead
	x.pl.w.s.mu.Unlock()
	if dead {
		return asl.Execution{}, errDead
	}
	kind := starts
	if !x.pl.local {
		kind = 0 // Step Functions keeps its own records
	}
	err = x.pl.p.callOr(errDead, kind, "executions.Finish", arn[len(runExecutions)-4:]+" "+string(o.Status), storeAnswers, func() error {
		e, err = x.MemoryStore.Finish(ctx, arn, o, last)
		return err
	})
	return e, err
}

// seen is what the engine sees of executions and processes.
type seen struct {
	p *process
	w *world
}

// Running implements run.Executions. Of an execution that has just started a stale answer says that it is not known.
func (x seen) Running(ctx context.Context, name string) (bool, error) {
	v := x.p.s.park(&gate{p: x.p, method: "executions.Running", detail: name, kind: reads | lists})
	switch v.fault {
	case Broken:
		x.p.s.told(v.step, outcome(errStore))
		return false, errStore
	case CrashBefore:
		x.p.crash(v)
	}
	e, err := x.w.executions.Get(ctx, runExecutions+name)
	running := err == nil && e.Status == asl.StatusRunning
	if running && v.fault == Stale && !x.w.plane.local && x.p.s.time().Sub(e.StartedAt) < 5*time.Second {
		running = false
	}
	if h := x.w.hosts[e.Holder]; running && h != nil && h.local {
		running = !h.p.isDead()
	}
	x.p.s.told(v.step, fmt.Sprint(running))
	return running, nil
}

// HolderAlive implements run.Executions: of a Lambda nobody can tell.
func (x seen) HolderAlive(_ context.Context, holder string) bool {
	h := x.w.hosts[holder]
	return h == nil || !h.p.isDead()
}

// assets publishes nothing, and counts.
type assets struct {
	p *process
	w *world
}

// Publish implements run.Publisher.
func (a assets) Publish(_ context.Context, of assembly.Asset, _ asset.Env) (out asset.Outcome, err error) {
	err = a.p.call(provides, "assets.Publish", of.ID, storeAnswers, func() error {
		a.w.s.mu.Lock()
		defer a.w.s.mu.Unlock()
		out.Status = asset.Published
		if a.w.published[of.ID] {
			out.Status = asset.Present
		}
		a.w.published[of.ID] = true
		return nil
	})
	return out, err
}

// noFacts knows no zones and no parameters: no template of the simulation asks.
type noFacts struct{}

// Zones implements run.Facts.
func (noFacts) Zones(context.Context, string, string) ([]string, error) {
	return []string{region + "a"}, nil
}

// SSMParameter implements run.Facts.
func (noFacts) SSMParameter(context.Context, string, string, string) (string, error) {
	return "", errors.New("there is no such parameter")
}
