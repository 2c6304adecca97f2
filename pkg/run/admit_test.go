package run_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/slipway-cdk/slipway/pkg/diag"
	"github.com/slipway-cdk/slipway/pkg/run"
	"github.com/slipway-cdk/slipway/pkg/runlog"
	"github.com/slipway-cdk/slipway/pkg/state"
)

// gate is an Admission whose answers are set.
type gate struct {
	caller  func(run.UploadRef) (string, error)
	request func(runID string) (run.Request, error)
	cancel  func() (target, by string, err error)
	// asked counts the requests that were made.
	asked int
}

func (g *gate) Caller(ref run.UploadRef) (string, error) {
	if g.caller != nil {
		return g.caller(ref)
	}
	return caller, nil
}

func (g *gate) Request(_ context.Context, runID string, _ runlog.Command, _ run.UploadRef) (run.Request, error) {
	g.asked++
	return g.request(runID)
}

func (g *gate) Cancellation(context.Context, string, run.UploadRef) (string, string, error) {
	return g.cancel()
}

// uploaded is what the execution of an upload begins with.
func uploaded(runID string, command runlog.Command) run.PlannerInput {
	ref := run.UploadRef{Key: "uploads/me/" + runID + ".json"}
	x := run.UploadExecution{RunID: runID, Command: command, Upload: ref}
	return run.PlannerInput{Action: run.ActionAdmit, RunID: runID, Command: command, Upload: &ref, Execution: x.Name()}
}

// admitting is a world with a gate that lets a request for the stack "App" in.
func admitting(t *testing.T) (*world, *gate) {
	w := newWorld(t)
	key := w.store(resources(object{"A": topic(object{})}))
	g := &gate{request: func(runID string) (run.Request, error) {
		return run.Request{
			Version: run.RequestVersion, RunID: runID, Command: runlog.CommandDeploy, Caller: caller, Region: region, CreatedAt: w.clk.Now(),
			Stacks: []run.StackRequest{{StackRef: stackRef("App"), DisplayName: "App", TemplateKey: key}},
		}, nil
	}}
	w.engine.Admission = g
	return w, g
}

func TestAnAdmittedUploadBecomesARunOnce(t *testing.T) {
	w, g := admitting(t)
	in := uploaded(w.newRunID(), runlog.CommandDeploy)
	for range 2 {
		step, err := w.engine.Admit(t.Context(), in)
		if err != nil || step.Kind != run.StepOpen || step.RunID != in.RunID {
			t.Fatalf("%+v, %v", step, err)
		}
	}
	if g.asked != 1 {
		t.Errorf("the request was made %d times", g.asked)
	}
	h := w.header(in.RunID)
	if h.Kind != runlog.KindDeployment || h.Owner != state.Owner(caller, in.RunID) || h.Execution != in.Execution {
		t.Errorf("the header is %+v", h)
	}
	m := w.start(in.Execution, in.RunID)
	if h := w.finish(m); h.Result != runlog.ResultSucceeded || w.record("App") == nil {
		t.Fatalf("%s: %s", h.Result, w.story(in.RunID))
	}
	// The message comes again when all is over.
	if step, err := w.engine.Admit(t.Context(), in); err != nil || step.Kind != run.StepDone {
		t.Errorf("admitted again after its end: %+v, %v", step, err)
	}
	w.sound(in.RunID)
}

func TestWhatIsNoUploadOfARunIsRefusedWithoutARun(t *testing.T) {
	for name, spoil := range map[string]func(*world, *run.PlannerInput){
		"there is no admission":   func(w *world, _ *run.PlannerInput) { w.engine.Admission = nil },
		"the id is not one":       func(_ *world, in *run.PlannerInput) { in.RunID = "../x" },
		"no upload asks for this": func(_ *world, in *run.PlannerInput) { in.Command = "settle" },
		"there is no upload":      func(_ *world, in *run.PlannerInput) { in.Upload = nil },
		"another execution":       func(_ *world, in *run.PlannerInput) { in.Execution += "-2" },
	} {
		w, g := admitting(t)
		in := uploaded(w.newRunID(), runlog.CommandDeploy)
		id := in.RunID
		spoil(w, &in)
		var refused *run.HandlerError
		if step, err := w.engine.Admit(t.Context(), in); !errors.As(err, &refused) || refused.Name != run.ErrorBadRequest {
			t.Errorf("%s: %+v, %v", name, step, err)
		}
		if _, err := w.log.Header(t.Context(), id); !errors.Is(err, runlog.ErrNotFound) || g.asked != 0 {
			t.Errorf("%s: there is a run: %v", name, err)
		}
	}
}

func TestTheIDOfAnothersRunIsNotTaken(t *testing.T) {
	for name, other := range map[string]func(*gate, *run.PlannerInput){
		"by another caller": func(g *gate, _ *run.PlannerInput) {
			g.caller = func(run.UploadRef) (string, error) { return "mallory", nil }
		},
		"for another command": func(_ *gate, in *run.PlannerInput) { *in = uploaded(in.RunID, runlog.CommandDestroy) },
	} {
		w, g := admitting(t)
		in := uploaded(w.newRunID(), runlog.CommandDeploy)
		if _, err := w.engine.Admit(t.Context(), in); err != nil {
			t.Fatal(err)
		}
		other(g, &in)
		var refused *run.HandlerError
		if step, err := w.engine.Admit(t.Context(), in); !errors.As(err, &refused) || refused.Name != run.ErrorBadRequest {
			t.Errorf("%s: %+v, %v", name, step, err)
		}
	}
}

// ended is the one terminal event of a run.
func (w *world) ended(runID string) runlog.Event {
	w.Helper()
	list := w.events(runID, runlog.RunFinished)
	if len(list) != 1 || len(w.events(runID, runlog.RunStarted)) != 1 {
		w.Fatalf("it has not begun once and ended once: %s", w.story(runID))
	}
	return list[0]
}

func TestARefusedUploadIsARunThatTellsWhy(t *testing.T) {
	why := diag.Errorf("the archive can't be read", "it is not a zip")
	for name, refuse := range map[string]func(*gate){
		"nobody knows who has put it there": func(g *gate) { g.caller = func(run.UploadRef) (string, error) { return "", why } },
		"its caller may not": func(g *gate) {
			g.request = func(string) (run.Request, error) { return run.Request{}, why }
		},
	} {
		w, g := admitting(t)
		refuse(g)
		in := uploaded(w.newRunID(), runlog.CommandDeploy)
		for range 2 {
			if step, err := w.engine.Admit(t.Context(), in); err != nil || step.Kind != run.StepRefused {
				t.Fatalf("%s: %+v, %v", name, step, err)
			}
		}
		h := w.header(in.RunID)
		if h.Result != runlog.ResultFailed || h.Status != runlog.StatusClosed || !strings.Contains(h.Diagnostics.Error(), "the archive can't be read") {
			t.Errorf("%s: %s %s %v", name, h.Status, h.Result, h.Diagnostics)
		}
		if ev := w.ended(in.RunID); ev.Result != runlog.ResultFailed {
			t.Errorf("%s: its end is %+v", name, ev)
		}
	}
}

func TestAnUploadThatCannotBeLookedAtNowIsLookedAtAgain(t *testing.T) {
	w, g := admitting(t)
	ask := g.request
	g.request = func(string) (run.Request, error) { return run.Request{}, errors.New("the bucket does not answer") }
	in := uploaded(w.newRunID(), runlog.CommandDeploy)
	if step, err := w.engine.Admit(t.Context(), in); err == nil {
		t.Fatalf("%+v", step)
	}
	if h := w.header(in.RunID); h.Result != "" || h.Status != runlog.StatusNew {
		t.Errorf("it is %s, %s", h.Status, h.Result)
	}
	g.request = ask
	if step, err := w.engine.Admit(t.Context(), in); err != nil || step.Kind != run.StepOpen {
		t.Errorf("%+v, %v", step, err)
	}
}

// TestAdmissionSurvivesEveryBrokenCall breaks each call that Admit makes of a store, before it, after it, and for good.
func TestAdmissionSurvivesEveryBrokenCall(t *testing.T) {
	w, _ := admitting(t)
	if _, err := w.engine.Admit(t.Context(), uploaded(w.newRunID(), runlog.CommandDeploy)); err != nil {
		t.Fatal(err)
	}
	names := slices.Clone(w.faults.names)
	if len(names) < 4 {
		t.Fatalf("it makes the calls %v", names)
	}
	for k, name := range names {
		for _, b := range breakages() {
			w, _ := admitting(t)
			in := uploaded(w.newRunID(), runlog.CommandDeploy)
			w.faults.breaks, w.faults.after, w.faults.dies = k+1, b.after, b.dies
			step, err := w.engine.Admit(t.Context(), in)
			w.faults.revive()
			if err == nil && step.Kind != run.StepOpen {
				t.Errorf("with %s broken %s: %+v", name, b.name, step)
			}
			if step, err = w.engine.Admit(t.Context(), in); err != nil || step.Kind != run.StepOpen {
				t.Fatalf("again, after %s was broken %s: %+v, %v", name, b.name, step, err)
			}
			if h := w.finish(w.start(in.Execution, in.RunID)); h.Result != runlog.ResultSucceeded {
				t.Errorf("after %s was broken %s: %s", name, b.name, w.story(in.RunID))
			}
		}
	}
}

func TestAnUploadMayCancelARun(t *testing.T) {
	w, g := admitting(t)
	m := w.submitDeploy(resources(object{"A": topic(object{})}))
	g.cancel = func() (string, string, error) { return m.runID, "ann", nil }
	in := uploaded(w.newRunID(), runlog.CommandCancel)
	for range 2 {
		if step, err := w.engine.Admit(t.Context(), in); err != nil || step.Kind != run.StepEnded {
			t.Fatalf("%+v, %v", step, err)
		}
	}
	if ev := w.ended(in.RunID); ev.Result != runlog.ResultSucceeded {
		t.Errorf("its end is %+v", ev)
	}
	c, err := w.engine.Cancellation(t.Context(), w.header(m.runID))
	if err != nil || c == nil || c.By != "ann" {
		t.Errorf("the other run: %+v, %v", c, err)
	}
}

func TestAnUploadThatCannotCancelTellsWhy(t *testing.T) {
	for name, prepare := range map[string]func(*world, *gate) string{
		"it has ended": func(w *world, g *gate) string {
			h := w.deploy(resources(object{"A": topic(object{})}))
			g.cancel = func() (string, string, error) { return h.RunID, "ann", nil }
			return h.RunID
		},
		"there is no such run": func(w *world, g *gate) string {
			id := w.newRunID()
			g.cancel = func() (string, string, error) { return id, "ann", nil }
			return id
		},
		"its caller may not": func(_ *world, g *gate) string {
			g.cancel = func() (string, string, error) { return "", "", diag.Errorf("no rule lets ann cancel it", "") }
			return "no rule lets ann"
		},
	} {
		w, g := admitting(t)
		says := prepare(w, g)
		in := uploaded(w.newRunID(), runlog.CommandCancel)
		for range 2 {
			if step, err := w.engine.Admit(t.Context(), in); err != nil || step.Kind != run.StepRefused {
				t.Fatalf("%s: %+v, %v", name, step, err)
			}
		}
		if h := w.header(in.RunID); h.Result != runlog.ResultFailed || !strings.Contains(h.Diagnostics.Error(), says) {
			t.Errorf("%s: %s %v", name, h.Result, h.Diagnostics)
		}
	}

	w, g := admitting(t)
	g.cancel = func() (string, string, error) { return "", "", errors.New("the bucket does not answer") }
	in := uploaded(w.newRunID(), runlog.CommandCancel)
	if step, err := w.engine.Admit(t.Context(), in); err == nil {
		t.Errorf("%+v", step)
	}
	if h := w.header(in.RunID); h.Result != "" {
		t.Errorf("it has ended as %s", h.Result)
	}
}
