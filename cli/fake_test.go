package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/slipway-cdk/slipway/pkg/assembly"
	"github.com/slipway-cdk/slipway/pkg/diag"
	"github.com/slipway-cdk/slipway/pkg/objectstore"
	"github.com/slipway-cdk/slipway/pkg/plan"
	"github.com/slipway-cdk/slipway/pkg/run"
	"github.com/slipway-cdk/slipway/pkg/runlog"
	"github.com/slipway-cdk/slipway/pkg/sandbox"
	"github.com/slipway-cdk/slipway/pkg/state"
)

// fakePlane answers from a script. It is what the commands are tested against; the engine has its own tests.
type fakePlane struct {
	// Plan is the header of every plan run, Views what it has found.
	Plan  runlog.Header    `json:"plan"`
	Views []plan.StackView `json:"views"`
	// Runs are the headers that a deploy or destroy leads to, the deployment's first.
	Runs   []runlog.Header `json:"runs"`
	Events []runlog.Event  `json:"events"`
	// Ops are the operations of runs, by run.
	Ops map[string][]runlog.Op `json:"ops"`
	// Objects are the files of the state store.
	Objects map[string]string  `json:"objects"`
	Sandbox []sandbox.Resource `json:"sandbox"`
	// SubmitError refuses every submission.
	SubmitError *diag.Diagnostic `json:"submitError"`

	mu sync.Mutex // of Runs and what follows
	// submitted remembers what was asked, and onEvents runs before every read of events.
	submitted []submission
	record    string // file that submissions are written to
	onEvents  func()
	closed    bool
	// cancelled are the runs that were cancelled, with by whom; stubborn runs go on all the same.
	cancelled map[string]string
	stubborn  bool
}

type submission struct {
	Command runlog.Command `json:"command"`
	Of      runlog.Command `json:"of,omitempty"`
	Options run.Options    `json:"options"`
	PlanRun string         `json:"planRun,omitempty"`
	Stacks  []string       `json:"stacks"`
	// Parameters are recorded without their values.
	Parameters map[string][]string `json:"parameters,omitempty"`
}

const planRunID = "plan-run"

// readFake reads a script; without the file it is a plane on which nothing has ever happened.
func readFake(path string) (*fakePlane, error) {
	f := &fakePlane{}
	body, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	if err == nil {
		if err := json.Unmarshal(body, f); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	return f, nil
}

func (f *fakePlane) Identity(context.Context) (string, string, error) {
	return "111111111111", "eu-west-1", nil
}

func (f *fakePlane) Submit(_ context.Context, _ *assembly.Assembly, stacks []*assembly.Stack, req run.Submission) (string, error) {
	s := submission{Command: req.Command, Of: req.Of, Options: req.Options, PlanRun: req.PlanRun}
	for _, st := range stacks {
		s.Stacks = append(s.Stacks, st.Name)
	}
	for id, values := range req.Parameters {
		if s.Parameters == nil {
			s.Parameters = map[string][]string{}
		}
		s.Parameters[id] = slices.Sorted(maps.Keys(values))
	}
	f.submitted = append(f.submitted, s)
	if f.record != "" {
		body, err := json.Marshal(f.submitted)
		if err != nil {
			return "", err
		}
		if err := os.WriteFile(f.record, body, 0o600); err != nil {
			return "", err
		}
	}
	if f.SubmitError != nil {
		return "", diag.Diagnostics{*f.SubmitError}
	}
	if req.Command == runlog.CommandPlan {
		return planRunID, nil
	}
	if len(f.Runs) == 0 {
		return "", fmt.Errorf("the script has no runs")
	}
	return f.Runs[0].RunID, nil
}

// Wait answers for plan runs. Other runs are followed; a test decides when they close.
func (f *fakePlane) Wait(ctx context.Context, runID string) (runlog.Header, error) {
	if runID == planRunID {
		return f.Log().Header(ctx, runID)
	}
	<-ctx.Done()
	return runlog.Header{}, ctx.Err()
}

// Cancel ends every run of the script as cancelled.
func (f *fakePlane) Cancel(_ context.Context, runID, by string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.cancelled == nil {
		f.cancelled = map[string]string{}
	}
	f.cancelled[runID] = by
	for i := range f.Runs {
		h := &f.Runs[i]
		if h.RunID == runID && h.Status == runlog.StatusClosed {
			return fmt.Errorf("cancelling run %s: it has ended as %s: %w", runID, h.Result, run.ErrEnded)
		}
	}
	for i := range f.Runs {
		h := &f.Runs[i]
		if h.Status != runlog.StatusClosed && !f.stubborn {
			h.Status, h.Result = runlog.StatusClosed, runlog.ResultFailed
			h.Failure = &runlog.Failure{Summary: "the run was cancelled by " + by}
		}
	}
	return nil
}

func (f *fakePlane) PlanViews(context.Context, string) ([]plan.StackView, error) { return f.Views, nil }

func (f *fakePlane) Log() runlog.Store { return fakeLog{plane: f} }

func (f *fakePlane) States() *state.Store { return &state.Store{Objects: fakeObjects{f.Objects}} }

func (f *fakePlane) Close() error { f.closed = true; return nil }

// fakeLog is the part of a run log that commands read.
type fakeLog struct {
	runlog.Store
	plane *fakePlane
}

func (l fakeLog) Header(_ context.Context, runID string) (runlog.Header, error) {
	l.plane.mu.Lock()
	defer l.plane.mu.Unlock()
	if runID == planRunID {
		h := l.plane.Plan
		h.RunID, h.Root, h.Status = planRunID, planRunID, runlog.StatusClosed
		if h.Result == "" {
			h.Result = runlog.ResultSucceeded
		}
		return h, nil
	}
	for _, h := range l.plane.Runs {
		if h.RunID == runID {
			return h, nil
		}
	}
	return runlog.Header{}, fmt.Errorf("run %s: %w", runID, runlog.ErrNotFound)
}

func (l fakeLog) ListRuns(_ context.Context, f runlog.Filter) ([]runlog.Header, error) {
	l.plane.mu.Lock()
	defer l.plane.mu.Unlock()
	var list []runlog.Header
	for _, h := range slices.Backward(l.plane.Runs) {
		if (f.Root == "" || h.Root == f.Root) && (f.Stack.Name == "" || h.Stack.Name == f.Stack.Name) && (f.Stack.Region == "" || h.Stack.Region == f.Stack.Region) &&
			(!f.Open || h.Status != runlog.StatusClosed) {
			list = append(list, h)
		}
	}
	return list, nil
}

func (l fakeLog) Events(_ context.Context, runID, after string) ([]runlog.Event, error) {
	l.plane.mu.Lock()
	defer l.plane.mu.Unlock()
	if l.plane.onEvents != nil {
		l.plane.onEvents()
	}
	var list []runlog.Event
	for _, e := range l.plane.Events {
		if e.RunID == runID && e.ID > after {
			list = append(list, e)
		}
	}
	slices.SortFunc(list, func(a, b runlog.Event) int { return strings.Compare(a.ID, b.ID) })
	return list, nil
}

func (l fakeLog) Ops(_ context.Context, runID string) ([]runlog.Op, error) {
	return l.plane.Ops[runID], nil
}

// fakeObjects is a read-and-delete object store over a map.
type fakeObjects struct{ m map[string]string }

func (o fakeObjects) info(key string) objectstore.Info {
	return objectstore.Info{Key: key, ETag: `"1"`, Size: int64(len(o.m[key])), LastModified: time.UnixMilli(0)}
}

func (o fakeObjects) Get(_ context.Context, key string) (objectstore.Object, error) {
	body, ok := o.m[key]
	if !ok {
		return objectstore.Object{}, objectstore.ErrNotFound
	}
	return objectstore.Object{Info: o.info(key), Body: []byte(body)}, nil
}

func (o fakeObjects) Head(ctx context.Context, key string) (objectstore.Info, error) {
	obj, err := o.Get(ctx, key)
	return obj.Info, err
}

func (o fakeObjects) Put(context.Context, string, []byte, objectstore.Condition) (string, error) {
	return "", errors.New("a command wrote to the state store")
}

func (o fakeObjects) Delete(_ context.Context, key string, _ objectstore.Condition) error {
	delete(o.m, key)
	return nil
}

func (o fakeObjects) List(_ context.Context, prefix string) ([]objectstore.Info, error) {
	var list []objectstore.Info
	for key := range o.m {
		if strings.HasPrefix(key, prefix) {
			list = append(list, o.info(key))
		}
	}
	slices.SortFunc(list, func(a, b objectstore.Info) int { return strings.Compare(a.Key, b.Key) })
	return list, nil
}

type fakeSimulation struct{ plane *fakePlane }

func (s fakeSimulation) List(_ context.Context, f sandbox.Filter) ([]sandbox.Resource, error) {
	var list []sandbox.Resource
	for _, r := range s.plane.Sandbox {
		if (f.Type == "" || f.Type == r.Type) && (f.Identifier == "" || f.Identifier == r.Identifier) && (f.Region == "" || f.Region == r.Region) {
			list = append(list, r)
		}
	}
	return list, nil
}

func (s fakeSimulation) Reset(context.Context) error {
	s.plane.Sandbox = nil
	return nil
}

// fakeSimulationOf stands in for simulationOf.
func fakeSimulationOf(p Plane) (simulation, bool) {
	f, ok := p.(*fakePlane)
	return fakeSimulation{f}, ok
}

var (
	_ Plane             = (*fakePlane)(nil)
	_ objectstore.Store = fakeObjects{}
)
