package asl_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipway-cdk/slipway/pkg/asl"
	"github.com/slipway-cdk/slipway/pkg/clock"
)

// code is that of an APIError, "" for any other error.
func code(err error) string {
	var e *asl.APIError
	if !errors.As(err, &e) {
		return ""
	}
	return e.Code
}

// gate is a function that waits until it is opened.
type gate struct {
	entered, open chan struct{}
	left          atomic.Bool
	ended         atomic.Bool // whether its context had ended when it left
}

func newGate() *gate { return &gate{entered: make(chan struct{}, 100), open: make(chan struct{})} }

func (g *gate) invoke(ctx context.Context, p []byte) ([]byte, error) {
	g.entered <- struct{}{}
	<-g.open
	g.ended.Store(ctx.Err() != nil)
	g.left.Store(true)
	return p, nil
}

func TestStartIsIdempotentByName(t *testing.T) {
	g := newGate()
	e := newExecutor(t, functions{"f": g.invoke}, map[string]*asl.Machine{machineARN: mustLoad(t, invoking())})
	first, err := e.Start(t.Context(), machineARN, "x", []byte(`{"a": 1, "b": 2}`))
	if err != nil {
		t.Fatal(err)
	}
	again, err := e.Start(t.Context(), machineARN, "x", []byte(`{"b":2,"a":1}`))
	if err != nil || again.ARN != first.ARN || !again.StartedAt.Equal(first.StartedAt) {
		t.Errorf("same input while it runs: %+v, %v", again, err)
	}
	if _, err := e.Start(t.Context(), machineARN, "x", []byte(`{"a":2}`)); !asl.IsExecutionAlreadyExists(err) {
		t.Errorf("another input: %v", err)
	}
	close(g.open)
	if _, err := e.Wait(t.Context(), first.ARN); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Start(t.Context(), machineARN, "x", []byte(`{"a":1,"b":2}`)); !asl.IsExecutionAlreadyExists(err) {
		t.Errorf("same input after the end: %v", err)
	}
	if n := len(g.entered); n != 1 {
		t.Errorf("%d executions ran", n)
	}
}

func TestOfManyStartsOneRuns(t *testing.T) {
	var calls atomic.Int32
	g := newGate()
	e := newExecutor(t, functions{"f": func(ctx context.Context, p []byte) ([]byte, error) { calls.Add(1); return g.invoke(ctx, p) }},
		map[string]*asl.Machine{machineARN: mustLoad(t, invoking())})
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			x, err := e.Start(context.Background(), machineARN, "x", nil)
			if err != nil {
				t.Error(err)
				return
			}
			<-g.entered
			g.entered <- struct{}{}
			if x, err = e.Describe(context.Background(), x.ARN); err != nil || x.Status != asl.StatusRunning {
				t.Errorf("%s, %v", summary(x), err)
			}
		})
	}
	all.Wait()
	close(g.open)
	if x, err := e.Wait(t.Context(), "arn:aws:states:eu-west-1:111122223333:execution:machine:x"); err != nil || summary(x) != "SUCCEEDED {}" || calls.Load() != 1 {
		t.Errorf("%s, %v after %d calls", summary(x), err, calls.Load())
	}
}

func TestStartRefusesWhatItDoesNotKnow(t *testing.T) {
	e := newExecutor(t, nil, nil)
	for machine, want := range map[string]string{
		machineARN: asl.CodeStateMachineDoesNotExist, "machine": asl.CodeInvalidArn,
		"arn:aws:states:eu-west-1:111122223333:execution:machine:x": asl.CodeInvalidArn,
	} {
		if _, err := e.Start(t.Context(), machine, "x", nil); code(err) != want {
			t.Errorf("%s: %v", machine, err)
		}
	}
	if _, err := e.Wait(t.Context(), machineARN); !errors.Is(err, asl.ErrNotFound) {
		t.Errorf("Wait: %v", err)
	}
	if _, err := e.Stop(t.Context(), machineARN, "", ""); !errors.Is(err, asl.ErrNotFound) {
		t.Errorf("Stop: %v", err)
	}
}

func TestAnExecutionOutlivesTheContextThatStartedIt(t *testing.T) {
	g := newGate()
	e := newExecutor(t, functions{"f": g.invoke}, map[string]*asl.Machine{machineARN: mustLoad(t, invoking())})
	ctx, cancel := context.WithCancel(t.Context())
	x, err := e.Start(ctx, machineARN, "x", nil)
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if _, err := e.Wait(ctx, x.ARN); !errors.Is(err, context.Canceled) {
		t.Errorf("Wait with an ended context: %v", err)
	}
	close(g.open)
	if x, err = e.Wait(t.Context(), x.ARN); err != nil || summary(x) != "SUCCEEDED {}" || g.ended.Load() {
		t.Errorf("%s, %v", summary(x), err)
	}
}

func TestStopLeavesTheFunctionAlone(t *testing.T) {
	g := newGate()
	e := newExecutor(t, functions{"f": g.invoke}, map[string]*asl.Machine{machineARN: mustLoad(t, invoking(`"TimeoutSeconds":890`, `"Catch":[{"ErrorEquals":["States.ALL"],"Next":"Caught"}]`))})
	var told []asl.Execution
	e.Ended = func(x asl.Execution) { told = append(told, x) }
	x, err := e.Start(t.Context(), machineARN, "x", nil)
	if err != nil {
		t.Fatal(err)
	}
	<-g.entered
	x, err = e.Stop(t.Context(), x.ARN, "Slipway.Stopped", "asked to")
	if err != nil || summary(x) != "ABORTED Slipway.Stopped asked to" {
		t.Errorf("Stop: %s, %v", summary(x), err)
	}
	again, err := e.Stop(t.Context(), x.ARN, "other", "")
	if err != nil || summary(again) != summary(x) {
		t.Errorf("second Stop: %s, %v", summary(again), err)
	}
	if len(told) != 1 || summary(told[0]) != summary(x) {
		t.Errorf("told of %v", told)
	}
	before := historyOf(t, e, x.ARN)
	close(g.open)
	until(g.left.Load)
	if g.ended.Load() {
		t.Error("the function's context was cancelled")
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	after := historyOf(t, e, x.ARN)
	if last := after[len(after)-1]; len(after) != len(before) || last.Type != asl.ExecutionAborted || *last.ExecutionAborted != (asl.ErrorDetails{Error: "Slipway.Stopped", Cause: "asked to"}) || last.PreviousEventID != last.ID-1 {
		t.Errorf("history: %s", render(t, after))
	}
}

func TestStopCutsAWaitAndARetryShort(t *testing.T) {
	for name, definition := range map[string]string{
		"a wait":          one(`{"Type":"Wait","Seconds":3600,"End":true}`),
		"a retry":         invoking(`"Retry":[{"ErrorEquals":["A"],"IntervalSeconds":3600}]`),
		"a wait in a Map": mapping(`"T":{"Type":"Wait","Seconds":3600,"End":true}`),
	} {
		e := newExecutor(t, functions{"f": fails("A", "")}, map[string]*asl.Machine{machineARN: mustLoad(t, definition)})
		c := clock.NewFake(start)
		e.Clock = c
		x, err := e.Start(t.Context(), machineARN, "x", []byte(items(1)))
		if err != nil {
			t.Fatal(err)
		}
		until(func() bool { return c.Sleepers() > 0 })
		if x, err = e.Stop(t.Context(), x.ARN, "", ""); err != nil || x.Status != asl.StatusAborted {
			t.Errorf("%s: %s, %v", name, summary(x), err)
		}
		events := historyOf(t, e, x.ARN)
		if last := events[len(events)-1]; last.Type != asl.ExecutionAborted {
			t.Errorf("%s ends with %s", name, last.Type)
		}
	}
}

func TestStoppingAnExecutionStopsTheOneItWaitsFor(t *testing.T) {
	g := newGate()
	e := newExecutor(t, functions{"f": g.invoke}, map[string]*asl.Machine{machineARN: mustLoad(t, startingChild("startExecution.sync:2", `,"Name":"c"`)), childARN: mustLoad(t, invoking())})
	defer close(g.open)
	x, err := e.Start(t.Context(), machineARN, "x", nil)
	if err != nil {
		t.Fatal(err)
	}
	<-g.entered
	if x, err = e.Stop(t.Context(), x.ARN, "", ""); err != nil || x.Status != asl.StatusAborted {
		t.Errorf("parent: %s, %v", summary(x), err)
	}
	if child, err := e.Describe(t.Context(), "arn:aws:states:eu-west-1:111122223333:execution:child:c"); err != nil || child.Status != asl.StatusAborted {
		t.Errorf("child: %s, %v", summary(child), err)
	}
}

func TestAClosedExecutorLeavesItsExecutionsRunning(t *testing.T) {
	entered := make(chan struct{})
	e := newExecutor(t, functions{"f": func(ctx context.Context, _ []byte) ([]byte, error) {
		close(entered)
		<-ctx.Done()
		return nil, ctx.Err()
	}}, map[string]*asl.Machine{machineARN: mustLoad(t, invoking(`"Retry":[{"ErrorEquals":["States.ALL"]}]`))})
	e.Ended = func(x asl.Execution) { t.Errorf("told of the end: %s", summary(x)) }
	x, err := e.Start(t.Context(), machineARN, "x", nil)
	if err != nil {
		t.Fatal(err)
	}
	<-entered
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Wait(t.Context(), x.ARN); !errors.Is(err, asl.ErrClosed) {
		t.Errorf("Wait: %v", err)
	}
	if _, err := e.Start(t.Context(), machineARN, "y", nil); !errors.Is(err, asl.ErrClosed) {
		t.Errorf("Start: %v", err)
	}
	record, err := e.Describe(t.Context(), x.ARN)
	if err != nil || record.Status != asl.StatusRunning || record.Holder != "test" {
		t.Errorf("%+v, %v", record, err)
	}
	if events := historyOf(t, e, x.ARN); events[len(events)-1].Type != asl.TaskStarted {
		t.Errorf("history: %s", render(t, events))
	}
}

// twoProcesses are executors that share a store.
func twoProcesses(t *testing.T, f asl.Functions, definition string) (first, second *asl.Executor) {
	first = newExecutor(t, f, map[string]*asl.Machine{machineARN: mustLoad(t, definition)})
	second = newExecutor(t, f, first.Machines)
	second.Store, second.Holder = first.Store, "second"
	return first, second
}

func TestAnotherProcessCanStopAndWait(t *testing.T) {
	// The first turn of the function is stopped by the other process; what it does next must not be recorded.
	g := newGate()
	first, second := twoProcesses(t, functions{"f": g.invoke}, `{"StartAt":"S","States":{"S":{"Type":"Task","Resource":"arn:aws:states:::lambda:invoke","Parameters":{"FunctionName":"f","Payload":{}},"Next":"S2"},"S2":{"Type":"Task","Resource":"arn:aws:states:::lambda:invoke","Parameters":{"FunctionName":"f","Payload":{}},"End":true}}}`)
	x, err := first.Start(t.Context(), machineARN, "x", nil)
	if err != nil {
		t.Fatal(err)
	}
	<-g.entered
	until(func() bool { return len(historyOf(t, first, x.ARN)) == 4 })
	waited := make(chan string)
	go func() {
		x, err := second.Wait(context.Background(), x.ARN)
		waited <- fmt.Sprint(summary(x), err)
	}()
	until(func() bool { return second.Timeouts.(*clock.Fake).Sleepers() > 0 })
	stopped, err := second.Stop(t.Context(), x.ARN, "E", "by another")
	if err != nil || summary(stopped) != "ABORTED E by another" {
		t.Errorf("Stop: %s, %v", summary(stopped), err)
	}
	second.Timeouts.(*clock.Fake).Advance(time.Second)
	if got := <-waited; got != "ABORTED E by another<nil>" {
		t.Errorf("the other process waited for %s", got)
	}
	close(g.open)
	if own, err := first.Wait(t.Context(), x.ARN); err != nil || summary(own) != "ABORTED E by another" {
		t.Errorf("Wait: %s, %v", summary(own), err)
	}
	events := historyOf(t, first, x.ARN)
	if last := events[len(events)-1]; len(events) != 5 || last.Type != asl.ExecutionAborted || last.PreviousEventID != 4 {
		t.Errorf("history: %s", render(t, events))
	}
}

func TestDeadExecutionsAreStopped(t *testing.T) {
	g := newGate()
	first, second := twoProcesses(t, functions{"f": g.invoke}, invoking())
	defer close(g.open)
	for e, names := range map[*asl.Executor][]string{first: {"a", "b"}, second: {"c"}} {
		for _, name := range names {
			if _, err := e.Start(t.Context(), machineARN, name, nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	var told []string
	second.Ended = func(x asl.Execution) { told = append(told, x.Name) }
	asked := map[string]int{}
	alive := true
	for _, want := range []string{"", "a b", ""} {
		dead, err := second.StopDead(t.Context(), func(holder string) bool { asked[holder]++; return alive }, "Slipway.Dead", "its process is gone")
		var names []string
		for _, x := range dead {
			names = append(names, x.Name)
			if summary(x) != "ABORTED Slipway.Dead its process is gone" {
				t.Errorf("%s: %s", x.Name, summary(x))
			}
		}
		if err != nil || strings.Join(names, " ") != want {
			t.Errorf("stopped %v, %v, want %s", names, err, want)
		}
		alive = false
	}
	if len(asked) != 1 || asked["test"] != 4 || strings.Join(told, " ") != "a b" {
		t.Errorf("asked %v, told %v", asked, told)
	}
}

// brokenStore fails writes as its test says.
type brokenStore struct {
	asl.Store
	mu   sync.Mutex
	fail func(call string) (before, after bool)
}

var errBroken = errors.New("disk is on fire")

func (s *brokenStore) broken(call string, write func() error) error {
	s.mu.Lock()
	before, after := s.fail(call)
	s.mu.Unlock()
	if before {
		return errBroken
	}
	if err := write(); err != nil || !after {
		return err
	}
	return errBroken
}

func (s *brokenStore) AppendHistory(ctx context.Context, arn string, events []asl.Event) error {
	return s.broken("append", func() error { return s.Store.AppendHistory(ctx, arn, events) })
}

func (s *brokenStore) Finish(ctx context.Context, arn string, o asl.Outcome, last []asl.Event) (x asl.Execution, err error) {
	err = s.broken("finish", func() error { x, err = s.Store.Finish(ctx, arn, o, last); return err })
	return x, err
}

func TestAStoreThatFailsLosesNoEvent(t *testing.T) {
	for _, test := range []struct {
		name string
		fail func(n map[string]int, call string) (before, after bool)
	}{
		{"every other write fails", func(n map[string]int, call string) (bool, bool) { return n[call]%2 == 1, false }},
		{"every other write fails after it is done", func(n map[string]int, call string) (bool, bool) { return false, n[call]%2 == 1 }},
		{"history cannot be written before the end", func(_ map[string]int, call string) (bool, bool) { return call == "append", false }},
	} {
		t.Run(test.name, func(t *testing.T) {
			e := newExecutor(t, functions{"f": echo}, map[string]*asl.Machine{machineARN: mustLoad(t, mapping(invokeItem))})
			n := map[string]int{}
			e.Store = &brokenStore{Store: e.Store, fail: func(call string) (bool, bool) { n[call]++; return test.fail(n, call) }}
			e.Timeouts = newJumpingClock()
			x := outcome(t, e, machineARN, "x", items(50))
			events := historyOf(t, e, x.ARN)
			if x.Status != asl.StatusSucceeded || len(events) != 1+2+50*7+2+1 {
				t.Errorf("%s, %d events", summary(x), len(events))
			}
			chains(t, events)
		})
	}
}

func TestAnEndThatCannotBeRecordedIsAnError(t *testing.T) {
	e := newExecutor(t, functions{"f": echo}, map[string]*asl.Machine{machineARN: mustLoad(t, invoking())})
	var works atomic.Bool
	e.Store = &brokenStore{Store: e.Store, fail: func(call string) (bool, bool) { return call == "finish" && !works.Load(), false }}
	c := newJumpingClock()
	e.Timeouts = c
	x, err := e.Start(t.Context(), machineARN, "x", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Wait(t.Context(), x.ARN); !errors.Is(err, errBroken) {
		t.Errorf("Wait: %v", err)
	}
	if got := len(c.sleeps()); got != 4 {
		t.Errorf("waited %d times between tries", got)
	}
	works.Store(true)
	if x, err = e.Stop(t.Context(), x.ARN, "E", ""); err != nil || summary(x) != "ABORTED E" {
		t.Errorf("Stop afterwards: %s, %v", summary(x), err)
	}
}

func TestAScaledClockDoesNotShortenTimeouts(t *testing.T) {
	e := &asl.Executor{
		Machines: map[string]*asl.Machine{machineARN: mustLoad(t, `{"StartAt":"W","States":{"W":{"Type":"Wait","Seconds":3600,"Next":"S"},"S":{"Type":"Task","Resource":"arn:aws:states:::lambda:invoke","Parameters":{"FunctionName":"f","Payload":{}},"TimeoutSeconds":890,"OutputPath":"$.Payload","End":true}}}`)},
		Store:    asl.NewMemoryStore(), Clock: clock.Scaled{},
		Functions: functions{"f": func(ctx context.Context, _ []byte) ([]byte, error) {
			// As long as a timeout on the scaled clock would have taken.
			if err := (clock.Scaled{}).Sleep(ctx, 890*time.Second); err != nil {
				return nil, err
			}
			return []byte("1"), nil
		}},
	}
	if x := outcome(t, e, machineARN, "", ""); summary(x) != "SUCCEEDED 1" || len(x.Name) != 36 {
		t.Errorf("%s: %s", x.Name, summary(x))
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}
