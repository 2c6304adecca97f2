package run_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slipway-cdk/slipway/pkg/objectstore"
	"github.com/slipway-cdk/slipway/pkg/run"
	"github.com/slipway-cdk/slipway/pkg/runlog"
	"github.com/slipway-cdk/slipway/pkg/secret"
)

// sweep asks the janitor of another process to sweep.
func (w *world) sweep() run.Swept {
	w.Helper()
	out, err := w.trySweep()
	if err != nil {
		w.Fatal(err)
	}
	return out
}

func (w *world) trySweep() (run.Swept, error) {
	var out run.Swept
	janitor := w.process("sweeper")
	janitor.Vault = w.vault()
	err := w.call(janitor.HandleJanitor, run.SettleInput{Action: run.ActionSweep}, &out)
	return out, err
}

// plainSealer seals nothing: these tests are about what is left, not about what is in it.
type plainSealer struct{ secret.Sealer }

func (plainSealer) Seal(_ context.Context, plain []byte, _ string) ([]byte, error) { return plain, nil }

func (w *world) vault() *secret.Vault {
	return &secret.Vault{Objects: w.objects, Sealer: plainSealer{}}
}

func TestASweepSettlesWhatNobodyCarriesOn(t *testing.T) {
	w, m := interrupted(t)
	if got := w.sweep(); len(got.Ended)+len(got.Waiting) != 0 {
		t.Fatalf("a run that is alive is swept: %+v", got)
	}
	m.stop()
	w.deadHolders["process-1"] = true
	if got := w.sweep(); !slices.Equal(got.Ended, []string{m.runID}) {
		t.Fatalf("%+v", got)
	}
	w.sound(m.runID)
	w.accounted("App")
	if got := w.sweep(); len(got.Ended)+len(got.Waiting) != 0 {
		t.Errorf("there is something left to sweep: %+v", got)
	}
}

func TestASweepOutwaitsALeaseAndTheNextGoesOn(t *testing.T) {
	w, m := interrupted(t)
	// A provisioner dies in the middle of its call, and nobody can tell that it is dead.
	w.cloud.script("create Changed", script{before: func() {
		w.cloud.script("create Changed", script{})
		w.faults.killAt("put op Changed", false)
	}})
	_, _ = m.provision(w.engine, "Changed")
	w.faults.revive()
	m.stop()
	if got := w.sweep(); !slices.Equal(got.Waiting, []string{m.runID}) {
		t.Fatalf("%+v", got)
	}
	w.clk.Advance(5 * time.Minute)
	if got := w.sweep(); !slices.Equal(got.Ended, []string{m.runID}) {
		t.Fatalf("%+v: %s", got, w.story(m.runID))
	}
	w.sound(m.runID)
	w.accounted("App")
}

func TestASweepClosesARunThatHasItsResult(t *testing.T) {
	w := newWorld(t)
	m := w.submitDeploy(before())
	m.until(m.atClose)
	m.stop()
	h := w.header(m.runID)
	h.Result = runlog.ResultSucceeded
	if _, err := w.log.UpdateHeader(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	if got := w.sweep(); !slices.Equal(got.Ended, []string{m.runID}) {
		t.Fatalf("%+v", got)
	}
	if h := w.header(m.runID); h.Status != runlog.StatusClosed || h.Result != runlog.ResultSucceeded {
		t.Errorf("%+v", h)
	}
}

func TestARunThatWasNeverStartedIsLeftAWhile(t *testing.T) {
	w := newWorld(t)
	m := w.submitDeploy(before())
	delete(w.machines, m.name)
	if got := w.sweep(); len(got.Ended) != 0 {
		t.Fatalf("its caller is about to start it: %+v", got)
	}
	w.clk.Advance(6 * time.Minute)
	if got := w.sweep(); !slices.Equal(got.Ended, []string{m.runID}) {
		t.Fatalf("%+v", got)
	}
	if h := w.header(m.runID); h.Status != runlog.StatusClosed || h.Result != runlog.ResultFailed {
		t.Errorf("%+v", h)
	}

	again := w.submit(order{stack: "App", command: runlog.CommandDeploy, template: before(), change: func(r *run.Request) { r.Holder = "caller" }})
	delete(w.machines, again.name)
	w.deadHolders["caller"] = true
	if got := w.sweep(); !slices.Equal(got.Ended, []string{again.runID}) {
		t.Errorf("its caller is known to be dead: %+v", got)
	}
}

func TestTheRunOfAStackThatHasNotBegunBelongsToItsDeployment(t *testing.T) {
	w := newWorld(t)
	root := w.submitDeploy(before())
	child := runlog.Header{
		RunID: "20261129T210000000Z-000000cc", Kind: runlog.KindStack, Command: runlog.CommandDeploy, Stack: stackRef("Child"), Root: root.runID,
		Parent: root.runID, Status: runlog.StatusNew, CreatedAt: w.clk.Now(),
	}
	if _, err := w.log.CreateRun(t.Context(), child); err != nil {
		t.Fatal(err)
	}
	w.clk.Advance(time.Hour)
	if got := w.sweep(); len(got.Ended) != 0 {
		t.Fatalf("%+v", got)
	}
	w.finish(root)
	if got := w.sweep(); !slices.Equal(got.Ended, []string{child.RunID}) {
		t.Errorf("its deployment has ended without it: %+v", got)
	}
}

func TestASweepFreesTheLockOfAClosedRun(t *testing.T) {
	w := newWorld(t)
	m := w.submitDeploy(before())
	m.until(m.atClose)
	m.stop()
	w.settle(w.engine, m.runID)
	h := w.header(m.runID)
	if _, err := w.states.Acquire(t.Context(), "App", region, h.Owner, "deploy"); err != nil {
		t.Fatal(err)
	}
	w.sweep()
	w.sound(m.runID)
	// Somebody else's is left alone.
	if _, err := w.states.Acquire(t.Context(), "App", region, "other@host:1", "deploy"); err != nil {
		t.Fatal(err)
	}
	w.sweep()
	if lock, err := w.states.ReadLock(t.Context(), "App", region); err != nil || lock.Owner != "other@host:1" {
		t.Errorf("%+v, %v", lock, err)
	}
}

func TestASweepAsksForTheLockOfAStackOnceAndForgetsRunsAfterADay(t *testing.T) {
	w := newWorld(t)
	var last runlog.Header
	for range 5 {
		last = w.deploy(resources(object{"A": topic(object{})}))
	}
	asked := func() int {
		n := len(w.faults.names)
		w.sweep()
		asked := 0
		for _, name := range w.faults.names[n:] {
			if strings.Contains(name, w.states.LockKey("App", region)) {
				asked++
			}
		}
		return asked
	}
	if n := asked(); n != 1 {
		t.Errorf("the lock is asked for %d times", n)
	}
	// It was left, and a day has passed.
	if _, err := w.states.Acquire(t.Context(), "App", region, last.Owner, "deploy"); err != nil {
		t.Fatal(err)
	}
	w.clk.Advance(25 * time.Hour)
	if n := asked(); n != 0 {
		t.Errorf("a day later the lock is asked for %d times", n)
	}
	if h := w.deploy(resources(object{"B": topic(object{})})); h.Result != runlog.ResultSucceeded {
		t.Errorf("the next run does not get the lock: %s", w.story(h.RunID))
	}
}

func TestALockThatItsClosedRunIsAboutToFreeIsLeftToIt(t *testing.T) {
	w := newWorld(t)
	h := w.deploy(resources(object{"A": topic(object{})}))
	if _, err := w.states.Acquire(t.Context(), "App", region, h.Owner, "deploy"); err != nil {
		t.Fatal(err)
	}
	w.machines[h.Execution].ended = false
	w.sweep()
	if _, err := w.states.ReadLock(t.Context(), "App", region); err != nil {
		t.Error(err)
	}
	w.machines[h.Execution].ended = true
	w.sweep()
	w.sound(h.RunID)
}

func TestASweepEmptiesTheVaultsOfADayAgo(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	now := w.clk.Now().UTC()
	id := func(ago time.Duration, n int) string {
		return fmt.Sprintf("%s-%08x", strings.ReplaceAll(now.Add(-ago).Format("20060102T150405.000Z"), ".", ""), n)
	}
	const day = 24 * time.Hour
	closed, open, orphan, young, old := id(day+30*time.Minute, 1), id(day+30*time.Minute, 2), id(3*day+30*time.Minute, 3), id(time.Hour, 4), id(3*day+30*time.Minute, 5)
	// Nobody here knows it; another's run may be going on for a day.
	another := id(day+30*time.Minute, 6)
	for _, r := range []struct {
		id     string
		status runlog.Status
	}{{closed, runlog.StatusClosed}, {open, runlog.StatusOpen}, {orphan, ""}, {another, ""}, {young, runlog.StatusClosed}, {old, runlog.StatusClosed}} {
		if r.status != "" {
			h := runlog.Header{RunID: r.id, Kind: runlog.KindStack, Command: runlog.CommandDeploy, Stack: stackRef(r.id), Root: r.id, Status: r.status, Owner: "x@" + r.id}
			h.Execution = run.ExecutionName(h.Stack.Name, h.Command, h.RunID)
			if _, err := w.log.CreateRun(ctx, h); err != nil {
				t.Fatal(err)
			}
			w.machines[h.Execution] = &machine{w: w, name: h.Execution, runID: r.id}
		}
		for range 2 {
			if _, err := w.vault().Put(ctx, r.id, "v"); err != nil {
				t.Fatal(err)
			}
		}
		w.put("slipway/runs/"+r.id+"/request.json", run.Request{RunID: r.id})
	}
	got := w.sweep()
	want := []string{closed, orphan, old}
	slices.Sort(got.Emptied)
	slices.Sort(want)
	if !slices.Equal(got.Emptied, want) {
		t.Errorf("emptied are %v, want %v", got.Emptied, want)
	}
	for _, root := range []string{closed, open, orphan, another, young, old} {
		full, err := w.vault().Filled(ctx, root)
		if err != nil {
			t.Fatal(err)
		}
		if (len(full) == 1) == slices.Contains(want, root) {
			t.Errorf("the vault of %s: %v", root, full)
		}
	}
}

func TestWhatFailsDoesNotKeepASweepFromTheRest(t *testing.T) {
	w, m := interrupted(t)
	m.stop()
	w.deadHolders["process-1"] = true
	// A run whose plan can't be read comes before it.
	broken := w.submit(order{stack: "Other", command: runlog.CommandDeploy, template: before()})
	broken.until(broken.atNext)
	broken.stop()
	if _, err := w.objects.Put(t.Context(), "slipway/runs/"+broken.runID+"/plan.json", []byte("{"), objectstore.Condition{}); err != nil {
		t.Fatal(err)
	}
	var failed *run.HandlerError
	if _, err := w.trySweep(); !errors.As(err, &failed) || failed.Name != run.ErrorUnavailable || !strings.Contains(err.Error(), broken.runID) {
		t.Errorf("the failure is told as %v", err)
	}
	w.sound(m.runID)
}

func TestSweepsComeToEveryRunInTurn(t *testing.T) {
	w := newWorld(t)
	for i := range 50 {
		id := fmt.Sprintf("20261128T2100%05dZ-%08x", i, i)
		h := runlog.Header{
			RunID: id, Kind: runlog.KindStack, Command: runlog.CommandDeploy, Stack: stackRef(fmt.Sprint("S", i)), Root: id,
			Owner: "x@" + id, Status: runlog.StatusOpen, CreatedAt: w.clk.Now().Add(time.Duration(i) * time.Second),
		}
		if _, err := w.log.CreateRun(t.Context(), h); err != nil {
			t.Fatal(err)
		}
	}
	ended := 0
	for sweeps := 1; ended < 50; sweeps++ {
		got := w.sweep()
		if len(got.Ended) > 20 || sweeps > 4 {
			t.Fatalf("sweep %d ends %d runs", sweeps, len(got.Ended))
		}
		ended += len(got.Ended)
		w.clk.Advance(5 * time.Minute)
	}
}

func TestTwoSweepsAtATimeDoNoHarm(t *testing.T) {
	w, m := interrupted(t)
	m.stop()
	w.deadHolders["process-1"] = true
	done := make(chan error, 4)
	for range cap(done) {
		go func() {
			_, err := w.process("sweeper").Sweep(context.Background())
			done <- err
		}()
	}
	for range cap(done) {
		if err := <-done; err != nil && !errors.Is(err, runlog.ErrConflict) && !errors.Is(err, runlog.ErrFenced) {
			t.Logf("a sweep that met another: %v", err)
		}
	}
	w.sweep()
	w.sound(m.runID)
	w.accounted("App")
}
