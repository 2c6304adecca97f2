package sim

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/slipway-cdk/slipway/pkg/asl"
	"github.com/slipway-cdk/slipway/pkg/assembly"
	"github.com/slipway-cdk/slipway/pkg/objectstore"
	"github.com/slipway-cdk/slipway/pkg/run"
	"github.com/slipway-cdk/slipway/pkg/runlog"
)

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

func runOf(x asl.Execution) string {
	var of struct{ RunID string }
	_ = json.Unmarshal(x.Input, &of) // its input is the simulation's
	return of.RunID
}

// direct plays the history: what people do, then recovery, then the proofs.
func (w *world) direct() {
	commands := 2 + w.rng.IntN(3)
	if w.byHand {
		commands = max(commands, 3) // deploy, fail, roll back
	}
	for i := range commands {
		w.command(i)
	}
	w.quiesce()
	w.recover()
	w.settled("after recovery")
	w.next(phaseSettled)
	last := w.redeploy("the last version")
	w.quiesce()
	w.recover()
	w.settled("after the redeploy")
	w.next(phaseRedeployed)
	w.quiesce()
	w.recover()
	w.settled("after the last late call")
	w.converged(last)
	if w.rng.IntN(3) == 0 {
		w.redeployNothing()
		w.quiesce()
		w.settled("after the end")
		w.nothing()
	}
	w.s.mu.Lock()
	w.over = true
	w.s.mu.Unlock()
}

// next moves the history to its next settled point: the calls that were held back until then go on.
func (w *world) next(phase int) {
	w.s.mu.Lock()
	w.s.phase = phase
	w.s.mu.Unlock()
}

// quiesce waits until nothing else can happen.
func (w *world) quiesce() {
	p := w.process("director")
	w.s.park(&gate{p: p, method: "quiesce", idle: true})
	if w.violation != "" {
		w.s.park(&gate{p: p, method: "stop", idle: true, phase: 99})
	}
}

// pause lets time pass.
func (w *world) pause(d time.Duration) { _ = w.s.sleep(context.Background(), w.process("director"), d) }

// command is what somebody does next, alone or beside others.
func (w *world) command(i int) {
	w.revive()
	if i > 0 {
		for _, s := range w.stacks {
			s.mutate(w.rng)
		}
	}
	w.log.freeze()
	selected := w.stacks
	if i > 0 && len(selected) > 1 && w.rng.IntN(3) == 0 {
		selected = []*stack{selected[w.rng.IntN(len(selected))]}
	}
	o := order{command: runlog.CommandDeploy, stacks: selected}
	o.options.ForceStatefulRecreation = true
	o.options.NoRollback = w.rng.IntN(5) < 2 || w.byHand
	if w.rng.IntN(5) == 0 {
		o.options.Concurrency = 1 + w.rng.IntN(4)
	}
	if w.rng.IntN(4) == 0 && !w.byHand {
		selected[w.rng.IntN(len(selected))].spoil(w.rng)
	}
	if i > 0 && w.rng.IntN(8) == 0 && !w.byHand {
		o.command = runlog.CommandDestroy
	}
	if i > 0 && w.rng.IntN(5) == 0 && !w.byHand || w.byHand && i > 1 && i%2 == 0 {
		o.command = runlog.CommandRollback
		o.options.RevertFailed, o.options.Force = w.rng.IntN(2) == 0, w.rng.IntN(2) == 0
	}
	if w.rng.IntN(3) == 0 {
		o.options.WaitForLock = 1 + w.rng.IntN(600)
	}
	if o.command == runlog.CommandDeploy && w.rng.IntN(6) == 0 {
		plan := o
		plan.command, plan.of = runlog.CommandPlan, runlog.CommandDeploy
		o.planRun = w.submit(plan)
		w.quiesce()
		w.revive()
	}
	if w.byHand && i%2 == 1 {
		selected[w.rng.IntN(len(selected))].failAfterReplacing(w.rng)
	}
	id := w.submit(o)
	if w.rng.IntN(8) == 0 {
		w.pause(time.Duration(w.rng.IntN(20000)) * time.Millisecond)
		w.cancel(id)
	}
	others := max(0, w.rng.IntN(8)-5)
	if w.byHand {
		others = 0
	}
	for range others {
		// Others deploy at the same time.
		w.pause(time.Duration(w.rng.IntN(5000)) * time.Millisecond)
		w.revive()
		w.submit(o)
	}
	if w.rng.IntN(2) == 0 {
		w.pause(time.Duration(w.rng.IntN(120)) * time.Second)
	} else {
		w.quiesce()
	}
	if w.s.faults.rate[Stale] > 0 {
		w.sweep()
	}
}

// order is what somebody asks for.
type order struct {
	command, of runlog.Command
	stacks      []*stack
	options     run.Options
	planRun     string
}

// submit asks for a run as a command line does, and returns its id. The command line may die on the way.
func (w *world) submit(o order) string {
	w.runs++
	id := fmt.Sprintf("20261129T2100%05dZ-%08x", w.runs, w.runs)
	p := w.process("command-" + number(w.runs))
	p.steady, p.prompt = w.s.faults.off, true
	req := run.Request{
		Version: run.RequestVersion, RunID: id, Command: o.command, Of: o.of, Caller: "me@host", Region: region, Options: o.options,
		CreatedAt: w.s.time(), PlanRun: o.planRun,
	}
	if w.plane.local {
		req.Holder = w.plane.p.name
		p.machine = w.plane
		w.s.mu.Lock()
		w.plane.adopt(p)
		w.s.mu.Unlock()
	}
	for _, s := range o.stacks {
		r := run.StackRequest{StackRef: runlog.StackRef{Account: account, Region: region, Name: s.name}, DisplayName: s.name, DependsOn: s.dependsOn}
		if o.command == runlog.CommandDeploy || o.command == runlog.CommandPlan {
			body, key := s.template()
			if _, err := w.objects.Put(context.Background(), key, body, objectstore.Condition{}); err != nil {
				panic(err) // memory does not fail
			}
			r.TemplateKey = key
			if o.command == runlog.CommandDeploy && w.seed%3 == 0 {
				r.Assets = []string{"code-" + s.name}
				req.Assets = append(req.Assets, run.AssetRequest{ID: r.Assets[0], Asset: assembly.Asset{ID: r.Assets[0], DisplayName: r.Assets[0]}})
			}
		}
		req.Stacks = append(req.Stacks, r)
	}
	if o.command != runlog.CommandDeploy {
		// Only the stacks of the request can be depended on.
		req.Assets = nil
	}
	names := map[string]bool{}
	for _, s := range o.stacks {
		names[s.name] = true
	}
	for i := range req.Stacks {
		req.Stacks[i].DependsOn = slices.DeleteFunc(slices.Clone(req.Stacks[i].DependsOn), func(n string) bool { return !names[n] })
	}
	plane := w.plane
	done := make(chan struct{})
	go func() {
		defer close(done)
		e := w.engine(p, plane.p.name)
		h, err := e.Submit(context.Background(), req)
		if err != nil {
			w.s.note(p.name, "gives up", err.Error())
			return
		}
		v := w.s.park(&gate{p: p, method: "executions.Start", detail: h.Execution, kind: writes})
		switch v.fault {
		case CrashBefore, CrashAfter:
			p.crash(v)
		case Broken, Lost:
			p.s.told(v.step, "not started")
			return
		}
		_, err = plane.executor.Start(context.Background(), runMachine, h.Execution, []byte(`{"runId":"`+h.RunID+`"}`))
		p.s.told(v.step, outcome(err))
	}()
	<-done
	return id
}

// cancel asks a run to end.
func (w *world) cancel(runID string) {
	p := w.process("canceller of " + runID)
	p.steady = true
	done := make(chan struct{})
	go func() {
		defer close(done)
		err := w.engine(p, p.name).Cancel(context.Background(), runID, "somebody")
		w.s.note(p.name, "cancel", runID+" "+outcome(err))
		if err == nil {
			w.s.met["cancelled run"] = true
		}
	}()
	<-done
}

// revive starts another process where the last one has died: it settles what that has left.
func (w *world) revive() {
	if !w.plane.local || !w.plane.p.isDead() {
		return
	}
	pl := w.newPlane(true)
	pl.p.steady = w.s.faults.off
	if w.s.faults.rate[Skew] > 0 && !w.s.faults.off {
		pl.p.skew = w.skew(pl.p.name)
		w.s.met["clock skew"] = true
	}
	w.settleDead(pl)
}

// settleDead settles the runs of dead processes, as a process of --local does when it begins.
func (w *world) settleDead(pl *plane) {
	running, err := w.executions.List(context.Background(), asl.Query{Status: asl.StatusRunning})
	if err != nil {
		panic(err) // memory does not fail
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for _, x := range running {
			if h := w.hosts[x.Holder]; h == nil || !h.p.isDead() {
				continue
			}
			if settling, err := pl.executor.Start(context.Background(), settleMachine, "", []byte(`{"runId":"`+runOf(x)+`"}`)); err == nil {
				if settling, err = pl.executor.Wait(context.Background(), settling.ARN); err != nil || settling.Status != asl.StatusSucceeded {
					return
				}
				if _, err := pl.executor.Stop(context.Background(), x.ARN, "Slipway.ProcessEnded", "The process that ran this execution has ended."); err != nil {
					return
				}
			}
		}
	}()
	select {
	case <-done:
	case <-pl.p.died:
	}
}

// sweep is the janitor's schedule: it settles what nobody has told of. The index that it starts from may lag.
func (w *world) sweep() {
	pl := w.plane
	if pl.p.isDead() {
		return
	}
	before := w.s.faults.count[Stale]
	inv, answered := w.startSweep(true)
	select {
	case <-answered:
	case <-inv.died:
	}
	if w.s.faults.count[Stale] > before {
		w.s.met[StaleIndex] = true
	}
	w.quiesce()
}

// startSweep lets the sweep come round, whoever is at work. prompt: it is waited for.
func (w *world) startSweep(prompt bool) (*process, <-chan answered) {
	payload := []byte(`{"action":"sweep"}`)
	inv := w.plane.invocation(janitor, payload)
	inv.prompt = prompt
	return inv, w.plane.carry(context.Background(), inv, janitor, payload)
}

// recover ends the faults and lets everybody settle.
func (w *world) recover() {
	w.s.mu.Lock()
	w.s.faults.off = true
	for _, pl := range w.hosts {
		pl.p.steady = true
	}
	w.s.mu.Unlock()
	w.revive()
	w.quiesce()
	for range 3 {
		w.pause(10 * time.Minute)
		w.sweep()
	}
}

// redeploy deploys the last version of everything and returns the run.
func (w *world) redeploy(string) string {
	for _, s := range w.stacks {
		s.heal()
	}
	o := order{command: runlog.CommandDeploy, stacks: w.stacks}
	o.options.ForceStatefulRecreation = true
	return w.submit(o)
}

// redeployNothing destroys everything.
func (w *world) redeployNothing() {
	w.submit(order{command: runlog.CommandDestroy, stacks: w.stacks})
}
