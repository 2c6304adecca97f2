package main

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/slipway-cdk/slipway/cli/views"
	"github.com/slipway-cdk/slipway/pkg/clock"
	"github.com/slipway-cdk/slipway/pkg/diff"
	"github.com/slipway-cdk/slipway/pkg/plan"
	"github.com/slipway-cdk/slipway/pkg/runlog"
)

// session runs commands in process, on a plane of the test's own and with a person who types.
type session struct {
	plane     *fakePlane
	out, errs bytes.Buffer
	// interrupts, when set, are the test's own Ctrl-C.
	interrupts *interrupts
}

func (s *session) run(ctx context.Context, typed string, args ...string) int {
	env := &environment{
		streams: &views.Streams{
			Out: views.Stream{Writer: &s.out}, Err: views.Stream{Writer: &s.errs},
			In: strings.NewReader(typed), InTerminal: true,
		},
		getenv:     func(string) string { return "" },
		clock:      &clock.Fake{AutoAdvance: true},
		open:       func(context.Context, globalFlags) (Plane, error) { return s.plane, nil },
		simulation: fakeSimulationOf,
		interrupts: s.interrupts,
	}
	return execute(ctx, env, append(args, "--local"))
}

// onePlan is a plane on which one stack has one change, or none, and deploys well.
func onePlan(changes ...diff.Change) *fakePlane {
	stack := runlog.StackRef{Account: "1", Region: "eu-west-1", Name: "shop-data"}
	return &fakePlane{
		Views: []plan.StackView{{Stack: "shop-data", Region: "eu-west-1", Changes: changes, Unchanged: 2}},
		Runs: []runlog.Header{
			{RunID: "d1", Root: "d1", Kind: runlog.KindDeployment, Command: runlog.CommandDeploy, Status: runlog.StatusClosed, Result: runlog.ResultSucceeded},
			{RunID: "s1", Root: "d1", Kind: runlog.KindStack, Command: runlog.CommandDeploy, Status: runlog.StatusClosed, Result: runlog.ResultSucceeded, Stack: stack},
		},
	}
}

var create = diff.Change{LogicalID: "Table", Type: "AWS::DynamoDB::Table", Action: diff.ActionCreate}

func deployOf(s *session) *submission {
	for i := range s.plane.submitted {
		if s.plane.submitted[i].Command != runlog.CommandPlan {
			return &s.plane.submitted[i]
		}
	}
	return nil
}

func TestDeployAsksOnATerminal(t *testing.T) {
	for typed, deployed := range map[string]bool{"y\n": true, "no\n": false, "": false} {
		s := &session{plane: onePlan(create)}
		code := s.run(t.Context(), typed, "deploy", "Shop/Data", "--app", "testdata/assembly")
		if got := deployOf(s) != nil; got != deployed {
			t.Errorf("answer %q: deployed %v, want %v", typed, got, deployed)
		}
		if want := map[bool]int{true: exitDone, false: exitFailed}[deployed]; code != want {
			t.Errorf("answer %q: exit code %d, want %d", typed, code, want)
		}
		if !strings.Contains(s.errs.String(), "Deploy these changes? [y/N]") {
			t.Errorf("no question on standard error:\n%s", s.errs.String())
		}
		if !s.plane.closed {
			t.Error("the plane was left open")
		}
	}
}

func TestADeployWithoutChangesIsCarriedOutWithoutAsking(t *testing.T) {
	s := &session{plane: onePlan()}
	if code := s.run(t.Context(), "", "deploy", "Shop/Data", "--app", "testdata/assembly"); code != exitDone {
		t.Fatalf("exit code %d:\n%s", code, s.errs.String())
	}
	if deployOf(s) == nil {
		t.Error("nothing was deployed: outputs were not resolved again")
	}
	if strings.Contains(s.errs.String(), "[y/N]") {
		t.Error("it asked")
	}
	if !strings.Contains(s.out.String(), "no changes (2 resources unchanged)") {
		t.Errorf("it did not say that nothing changes:\n%s", s.out.String())
	}
}

func TestADestroyIsAskedForInItsOwnWords(t *testing.T) {
	plane := onePlan(diff.Change{LogicalID: "Table", Type: "AWS::DynamoDB::Table", Action: diff.ActionDelete})
	s := &session{plane: plane}
	if code := s.run(t.Context(), "n\n", "destroy", "--all", "--app", "testdata/assembly"); code != exitFailed {
		t.Errorf("exit code %d", code)
	}
	for _, want := range []string{"Destroy this? [y/N]", "nothing was destroyed"} {
		if !strings.Contains(s.errs.String(), want) {
			t.Errorf("%q is missing:\n%s", want, s.errs.String())
		}
	}
}

// interruptedDeploy deploys a run that does not end by itself, and presses Ctrl-C as often as it is told.
func interruptedDeploy(t *testing.T, times int, change func(*fakePlane), more ...string) (*session, int) {
	ctx, cancel := context.WithCancelCause(t.Context())
	plane := onePlan(create)
	plane.Runs[0].Status, plane.Runs[0].Result = runlog.StatusOpen, ""
	plane.Runs[1].Status, plane.Runs[1].Result = runlog.StatusOpen, ""
	s := &session{plane: plane, interrupts: &interrupts{again: make(chan struct{})}}
	polls := 0
	plane.onEvents = func() {
		switch polls++; {
		case polls == 3:
			cancel(errInterrupted)
		case polls == 9 && times > 1:
			close(s.interrupts.again)
		}
	}
	if change != nil {
		change(plane)
	}
	return s, s.run(ctx, "", append([]string{"deploy", "Shop/Data", "--yes", "--app", "testdata/assembly"}, more...)...)
}

func (s *session) wants(t *testing.T, texts ...string) {
	t.Helper()
	for _, want := range texts {
		if !strings.Contains(s.errs.String(), want) {
			t.Errorf("%q is missing:\n%s", want, s.errs.String())
		}
	}
	if !s.plane.closed {
		t.Error("the plane was left open")
	}
}

func TestCtrlCCancelsTheRunAndFollowsItToItsEnd(t *testing.T) {
	s, code := interruptedDeploy(t, 1, nil)
	if code != exitInterrupted || s.plane.cancelled["d1"] == "" {
		t.Errorf("exit code %d, cancelled %v", code, s.plane.cancelled)
	}
	s.wants(t, "cancelling run d1", "Press Ctrl-C again to leave at once", "the run was cancelled by")
	if !strings.Contains(s.out.String(), "FAILED in") {
		t.Errorf("the end was not told:\n%s", s.out.String())
	}
	s, code = interruptedDeploy(t, 1, nil, "--json")
	if code != exitInterrupted || strings.Count(s.out.String(), `"summary": "the run was cancelled by`) != 1 {
		t.Errorf("exit code %d:\n%s", code, s.out.String())
	}
}

func TestCtrlCThatComesTooLateSaysSo(t *testing.T) {
	s, code := interruptedDeploy(t, 1, func(p *fakePlane) {
		press := p.onEvents
		p.onEvents = func() {
			p.Runs[0].Status, p.Runs[0].Result = runlog.StatusClosed, runlog.ResultSucceeded
			p.Runs[1].Status, p.Runs[1].Result = runlog.StatusClosed, runlog.ResultSucceeded
			press()
			press()
			press()
		}
	})
	if code != exitInterrupted {
		t.Errorf("exit code %d", code)
	}
	if !strings.Contains(s.out.String(), "SUCCEEDED in") {
		t.Errorf("the end was not told:\n%s", s.out.String())
	}
}

func TestASecondCtrlCLeavesAtOnce(t *testing.T) {
	for _, json := range []bool{false, true} {
		var more []string
		if json {
			more = append(more, "--json")
		}
		s, code := interruptedDeploy(t, 2, func(p *fakePlane) { p.stubborn = true }, more...)
		if code != exitInterrupted || s.plane.cancelled["d1"] == "" {
			t.Errorf("exit code %d, cancelled %v", code, s.plane.cancelled)
		}
		s.wants(t, "cancelling run d1", "no longer waiting for run d1", "next deploy of the stack settles")
		if json && !strings.Contains(s.out.String(), `"summary": "interrupted"`) {
			t.Errorf("the document does not say that it was interrupted:\n%s", s.out.String())
		}
	}
}

func TestCtrlCAtTheQuestionDeploysNothing(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errInterrupted)
	s := &session{plane: onePlan(create)}
	if code := s.run(ctx, "", "deploy", "Shop/Data", "--app", "testdata/assembly"); code != exitInterrupted {
		t.Errorf("exit code %d, want %d", code, exitInterrupted)
	}
	if deployOf(s) != nil {
		t.Error("it was deployed")
	}
}

func TestTheLiveViewIsGoneBeforeTheResultIsPrinted(t *testing.T) {
	var screen bytes.Buffer
	plane := onePlan(create)
	plane.Runs[0].Status = runlog.StatusOpen
	plane.Events = []runlog.Event{{ID: "00001.Table.RESOURCE_STARTED.001", Type: runlog.OpStarted, Time: time.Unix(0, 0), RunID: "d1", Root: "d1", LogicalID: "Table", Action: "create"}}
	polls := 0
	plane.onEvents = func() {
		if polls++; polls == 3 {
			plane.Runs[0].Status = runlog.StatusClosed
		}
	}
	terminal := views.Stream{Writer: &screen, Terminal: true, Size: func() (int, int) { return 60, 10 }}
	env := &environment{
		streams: &views.Streams{Out: terminal, Err: terminal, In: strings.NewReader(""), Live: true},
		getenv:  func(string) string { return "" },
		clock:   &clock.Fake{AutoAdvance: true},
		open:    func(context.Context, globalFlags) (Plane, error) { return plane, nil },
	}
	if code := execute(t.Context(), env, []string{"deploy", "Shop/Data", "--yes", "--app", "testdata/assembly", "--local"}); code != exitDone {
		t.Fatalf("exit code %d:\n%s", code, screen.String())
	}
	block, result := strings.LastIndex(screen.String(), "in flight"), strings.LastIndex(screen.String(), "SUCCEEDED in")
	if block < 0 || result < block || !strings.Contains(screen.String()[block:result], "\x1b[J") {
		t.Errorf("the block was not erased before the result:\n%q", screen.String())
	}
}

// lostPlane is a plane whose runs nothing carries any more.
type lostPlane struct{ *fakePlane }

func (p lostPlane) Wait(ctx context.Context, runID string) (runlog.Header, error) {
	if runID == planRunID {
		return p.fakePlane.Wait(ctx, runID)
	}
	return runlog.Header{}, errors.New("the execution was aborted")
}

func TestARunThatNothingCarriesAnyMoreIsNotFollowedForEver(t *testing.T) {
	plane := onePlan(create)
	plane.Runs[0].Status = runlog.StatusOpen
	s := &session{plane: plane}
	env := &environment{
		streams: &views.Streams{Out: views.Stream{Writer: &s.out}, Err: views.Stream{Writer: &s.errs}},
		getenv:  func(string) string { return "" },
		clock:   clock.Real{},
		open:    func(context.Context, globalFlags) (Plane, error) { return lostPlane{plane}, nil },
	}
	if code := execute(t.Context(), env, []string{"deploy", "Shop/Data", "--yes", "--app", "testdata/assembly", "--local"}); code != exitFailed {
		t.Errorf("exit code %d, want %d", code, exitFailed)
	}
	if !strings.Contains(s.errs.String(), "the execution was aborted") {
		t.Errorf("it does not say why:\n%s", s.errs.String())
	}
}
