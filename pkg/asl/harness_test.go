package asl_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-cdk/slipway/pkg/asl"
	"github.com/slipway-cdk/slipway/pkg/clock"
)

var update = flag.Bool("update", false, "rewrite the golden files")

const (
	machineARN = "arn:aws:states:eu-west-1:111122223333:stateMachine:machine"
	childARN   = "arn:aws:states:eu-west-1:111122223333:stateMachine:child"
)

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// functions are the handlers of a test, by name.
type functions map[string]func(ctx context.Context, payload []byte) ([]byte, error)

func (f functions) Invoke(ctx context.Context, function string, payload []byte) ([]byte, error) {
	handler, ok := f[function]
	if !ok {
		return nil, fmt.Errorf("invoking %s: %w", function, asl.ErrFunctionNotFound)
	}
	return handler(ctx, payload)
}

// returns is a handler that always gives the same answer.
func returns(answer string) func(context.Context, []byte) ([]byte, error) {
	return func(context.Context, []byte) ([]byte, error) { return []byte(answer), nil }
}

func fails(kind, message string) func(context.Context, []byte) ([]byte, error) {
	return func(context.Context, []byte) ([]byte, error) {
		return nil, &asl.FunctionError{Type: kind, Message: message}
	}
}

// echo answers with its payload.
func echo(_ context.Context, payload []byte) ([]byte, error) { return payload, nil }

// jumpingClock ends every sleep at once, moves by it, and remembers it.
type jumpingClock struct {
	*clock.Fake
	mu    sync.Mutex
	slept []time.Duration
}

func newJumpingClock() *jumpingClock {
	c := &jumpingClock{Fake: clock.NewFake(start)}
	c.AutoAdvance = true
	return c
}

func (c *jumpingClock) Sleep(ctx context.Context, d time.Duration) error {
	c.mu.Lock()
	c.slept = append(c.slept, d)
	c.mu.Unlock()
	return c.Fake.Sleep(ctx, d)
}

func (c *jumpingClock) sleeps() []time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]time.Duration(nil), c.slept...)
}

func mustLoad(t testing.TB, definition string) *asl.Machine {
	t.Helper()
	m, err := asl.Load([]byte(definition), nil)
	if err != nil {
		t.Fatalf("Load: %v", err)
	}
	return m
}

// newExecutor runs machines whose sleeps are instant, and whose timeouts never come unless a test moves that clock.
func newExecutor(t testing.TB, f asl.Functions, machines map[string]*asl.Machine) *asl.Executor {
	e := &asl.Executor{
		Machines: machines, Functions: f, Store: asl.NewMemoryStore(), Holder: "test",
		Clock: newJumpingClock(), Timeouts: clock.NewFake(start), Rand: rand.NewPCG(1, 2),
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

// outcome runs one execution to its end.
func outcome(t testing.TB, e *asl.Executor, machine, name, input string) asl.Execution {
	t.Helper()
	x, err := e.Start(t.Context(), machine, name, []byte(input))
	if err != nil {
		t.Fatalf("Start: %v", err)
	}
	x, err = e.Wait(t.Context(), x.ARN)
	if err != nil {
		t.Fatalf("Wait: %v", err)
	}
	return x
}

// execute runs a definition with the given handlers.
func execute(t testing.TB, definition, input string, f functions) (asl.Execution, []asl.Event) {
	t.Helper()
	e := newExecutor(t, f, map[string]*asl.Machine{machineARN: mustLoad(t, definition)})
	x := outcome(t, e, machineARN, "x", input)
	return x, historyOf(t, e, x.ARN)
}

func historyOf(t testing.TB, e *asl.Executor, arn string) []asl.Event {
	t.Helper()
	events, err := e.History(t.Context(), arn, 0)
	if err != nil {
		t.Fatal(err)
	}
	return events
}

// summary is how an execution ended, in one line.
func summary(x asl.Execution) string {
	if x.Status == asl.StatusSucceeded {
		return "SUCCEEDED " + string(x.Output)
	}
	return strings.TrimSpace(fmt.Sprintf("%s %s %s", x.Status, x.Error, x.Cause))
}

// types are the types of the events, in order.
func types(events []asl.Event) []string {
	var all []string
	for _, e := range events {
		all = append(all, string(e.Type))
	}
	return all
}

func count(events []asl.Event, kind asl.EventType) int {
	n := 0
	for _, e := range events {
		if e.Type == kind {
			n++
		}
	}
	return n
}

// render prints a history for a golden file: an event a line, with its details.
func render(t testing.TB, events []asl.Event) string {
	t.Helper()
	var b strings.Builder
	for _, e := range events {
		text, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		var members map[string]any
		if err := json.Unmarshal(text, &members); err != nil {
			t.Fatal(err)
		}
		for _, shown := range []string{"id", "previousEventId", "timestamp", "type"} {
			delete(members, shown)
		}
		details := ""
		for _, d := range members {
			object := d.(map[string]any)
			delete(object, "inputDetails")
			delete(object, "outputDetails")
			var d strings.Builder
			enc := json.NewEncoder(&d)
			enc.SetEscapeHTML(false)
			if err := enc.Encode(object); err != nil {
				t.Fatal(err)
			}
			details += " " + strings.TrimSpace(d.String())
		}
		fmt.Fprintf(&b, "%3d < %-3d %s%s\n", e.ID, e.PreviousEventID, e.Type, details)
	}
	return b.String()
}

// golden compares text with a file of testdata, or writes it with -update.
func golden(t testing.TB, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("%s (-want +got):\n%s", file, d)
	}
}

// until lets other goroutines run until the condition holds. The test's own deadline bounds it.
func until(condition func() bool) {
	for !condition() {
		runtime.Gosched()
	}
}

// one wraps a single state, named S, into a machine.
func one(state string) string { return `{"StartAt":"S","States":{"S":` + state + `}}` }

// advance moves the clock of timeouts once somebody waits on it.
func advance(e *asl.Executor, d time.Duration) {
	c := e.Timeouts.(*clock.Fake)
	until(func() bool { return c.Sleepers() > 0 })
	c.Advance(d)
}
