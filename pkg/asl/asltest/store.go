// Package asltest is the conformance suite of asl.Store.
package asltest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/slipway-cdk/slipway/pkg/asl"
)

const (
	machine = "arn:aws:states:eu-west-1:111122223333:stateMachine:run"
	other   = "arn:aws:states:eu-west-1:111122223333:stateMachine:settle"
)

var start = time.Date(2026, 3, 1, 12, 0, 0, 123456000, time.UTC)

// RunStore checks that a store keeps the contract of asl.Store. newStore returns an empty store; it is called once for
// each test.
func RunStore(t *testing.T, newStore func(t *testing.T) asl.Store) {
	for _, test := range []struct {
		name string
		run  func(t *testing.T, s asl.Store)
	}{
		{"a created execution is returned as it was given", created},
		{"a name is taken once per machine", names},
		{"a name stays taken after the end", takenAfterEnd},
		{"of many creations of one name exactly one wins", createRace},
		{"a creation whose events do not start at 1 writes nothing", createGap},
		{"events are kept in order and whole", history},
		{"events must follow the last one", gap},
		{"an execution ends once", finishOnce},
		{"of many ends exactly one wins", finishRace},
		{"the last events are recorded with the end", lastEvents},
		{"events without an id continue the history", unnumbered},
		{"an end whose events leave a gap changes nothing", finishGap},
		{"an ended execution takes no events", sealed},
		{"what does not exist is not found", notFound},
		{"executions are listed by machine, status and holder", list},
		{"large inputs and many events fit", large},
		{"what was given can be changed afterwards", isolated},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, newStore(t)) })
	}
}

func execution(machine, name string) asl.Execution {
	return asl.Execution{
		ARN: strings.Replace(machine, ":stateMachine:", ":execution:", 1) + ":" + name, Machine: machine, Name: name,
		Status: asl.StatusRunning, Input: json.RawMessage(`{"runId": "r-1", "text": "<&>é"}`), StartedAt: start, Holder: "host/1",
	}
}

func startedEvent() asl.Event {
	return asl.Event{ID: 1, Timestamp: start, Type: asl.ExecutionStarted, ExecutionStarted: &asl.ExecutionStartedDetails{Input: "{}"}}
}

func event(id int64) asl.Event {
	return asl.Event{ID: id, PreviousEventID: id - 1, Timestamp: start.Add(time.Duration(id) * time.Microsecond), Type: asl.PassStateEntered,
		StateEntered: &asl.StateEnteredDetails{Name: "Say <hello>", Input: `{"a":1.50}`}}
}

func succeeded() asl.Outcome {
	return asl.Outcome{Status: asl.StatusSucceeded, Output: json.RawMessage(`{"result":"OK"}`), StoppedAt: start.Add(time.Minute)}
}

// same compares what a store returned with what is expected: times as instants, nil as empty.
func same(t *testing.T, what string, got, want any) {
	t.Helper()
	if d := cmp.Diff(want, got, cmpopts.EquateEmpty()); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}

func mustCreate(t *testing.T, s asl.Store, e asl.Execution) {
	t.Helper()
	_, made, err := s.Create(t.Context(), e, []asl.Event{startedEvent()})
	if err != nil || !made {
		t.Fatalf("Create(%s) = created %v, %v", e.Name, made, err)
	}
}

func get(t *testing.T, s asl.Store, arn string) asl.Execution {
	t.Helper()
	e, err := s.Get(t.Context(), arn)
	if err != nil {
		t.Fatalf("Get(%s): %v", arn, err)
	}
	return e
}

func events(t *testing.T, s asl.Store, arn string, after int64) []asl.Event {
	t.Helper()
	all, err := s.History(t.Context(), arn, after)
	if err != nil {
		t.Fatalf("History(%s, %d): %v", arn, after, err)
	}
	return all
}

func wantError(t *testing.T, what string, got, want error) {
	t.Helper()
	if !errors.Is(got, want) {
		t.Errorf("%s: error is %v, want %v", what, got, want)
	}
}

func created(t *testing.T, s asl.Store) {
	e := execution(machine, "a")
	got, made, err := s.Create(t.Context(), e, []asl.Event{startedEvent()})
	if err != nil || !made {
		t.Fatalf("Create = created %v, %v", made, err)
	}
	same(t, "Create", got, e)
	same(t, "Get", get(t, s, e.ARN), e)
	same(t, "History", events(t, s, e.ARN, 0), []asl.Event{startedEvent()})
}

func names(t *testing.T, s asl.Store) {
	first := execution(machine, "a")
	mustCreate(t, s, first)
	mustCreate(t, s, execution(other, "a"))
	mustCreate(t, s, execution(machine, "A"))
	again := first
	again.Input, again.Holder, again.StartedAt = json.RawMessage(`{}`), "host/2", start.Add(time.Hour)
	got, made, err := s.Create(t.Context(), again, []asl.Event{startedEvent()})
	if err != nil || made {
		t.Fatalf("second Create = created %v, %v", made, err)
	}
	same(t, "existing", got, first)
	same(t, "Get", get(t, s, first.ARN), first)
	same(t, "History", events(t, s, first.ARN, 0), []asl.Event{startedEvent()})
}

func takenAfterEnd(t *testing.T, s asl.Store) {
	e := execution(machine, "a")
	mustCreate(t, s, e)
	ended, err := s.Finish(t.Context(), e.ARN, succeeded(), nil)
	if err != nil {
		t.Fatal(err)
	}
	got, made, err := s.Create(t.Context(), e, nil)
	if err != nil || made {
		t.Fatalf("Create after the end = created %v, %v", made, err)
	}
	same(t, "existing", got, ended)
}

func createRace(t *testing.T, s asl.Store) {
	var won atomic.Int32
	race(t, 16, func(i int) error {
		e := execution(machine, "a")
		e.Holder = fmt.Sprint(i)
		_, made, err := s.Create(context.Background(), e, []asl.Event{startedEvent()})
		if made {
			won.Add(1)
		}
		return err
	})
	if won.Load() != 1 {
		t.Errorf("%d creations won", won.Load())
	}
}

func race(t *testing.T, n int, f func(i int) error) {
	t.Helper()
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			if err := f(i); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}

func createGap(t *testing.T, s asl.Store) {
	e := execution(machine, "a")
	_, made, err := s.Create(t.Context(), e, []asl.Event{event(2)})
	wantError(t, "Create", err, asl.ErrHistoryGap)
	if made {
		t.Error("created")
	}
	_, err = s.Get(t.Context(), e.ARN)
	wantError(t, "Get", err, asl.ErrNotFound)
}

func history(t *testing.T, s asl.Store) {
	e := execution(machine, "a")
	mustCreate(t, s, e)
	details := asl.TaskDetails{ResourceType: "lambda", Resource: "invoke"}
	more := []asl.Event{
		event(2),
		{ID: 3, PreviousEventID: 2, Timestamp: start, Type: asl.TaskScheduled, TaskScheduled: &asl.TaskScheduledDetails{TaskDetails: details, Region: "eu-west-1", Parameters: "{}", TimeoutInSeconds: 890}},
		{ID: 4, PreviousEventID: 3, Timestamp: start, Type: asl.TaskFailed, TaskFailed: &asl.TaskErrorDetails{TaskDetails: details, Error: "E", Cause: "\x00 & é"}},
	}
	for _, batch := range [][]asl.Event{more[:1], nil, more[1:]} {
		if err := s.AppendHistory(t.Context(), e.ARN, batch); err != nil {
			t.Fatal(err)
		}
	}
	all := append([]asl.Event{startedEvent()}, more...)
	for after := range int64(5) {
		same(t, fmt.Sprintf("History after %d", after), events(t, s, e.ARN, after), all[after:])
	}
	same(t, "History after more than there are", events(t, s, e.ARN, 99), []asl.Event{})
}

func gap(t *testing.T, s asl.Store) {
	e := execution(machine, "a")
	mustCreate(t, s, e)
	for _, batch := range [][]asl.Event{{event(3)}, {event(1)}, {event(2), event(4)}, {event(2), event(2)}, {event(0)}} {
		wantError(t, fmt.Sprint("ids ", batch[0].ID), s.AppendHistory(t.Context(), e.ARN, batch), asl.ErrHistoryGap)
	}
	same(t, "History", events(t, s, e.ARN, 0), []asl.Event{startedEvent()})
}

func finishOnce(t *testing.T, s asl.Store) {
	for name, o := range map[string]asl.Outcome{
		"succeeded": succeeded(),
		"failed":    {Status: asl.StatusFailed, Error: "E", Cause: "why", StoppedAt: start},
		"timed out": {Status: asl.StatusTimedOut, StoppedAt: start},
		"aborted":   {Status: asl.StatusAborted, Error: "E", StoppedAt: start},
	} {
		e := execution(machine, strings.ReplaceAll(name, " ", "-"))
		mustCreate(t, s, e)
		want := e
		want.Status, want.Output, want.Error, want.Cause, want.StoppedAt = o.Status, o.Output, o.Error, o.Cause, o.StoppedAt
		got, err := s.Finish(t.Context(), e.ARN, o, nil)
		if err != nil {
			t.Fatalf("Finish %s: %v", name, err)
		}
		same(t, "Finish", got, want)
		same(t, "Get", get(t, s, e.ARN), want)
		got, err = s.Finish(t.Context(), e.ARN, asl.Outcome{Status: asl.StatusAborted, StoppedAt: start.Add(time.Hour)}, []asl.Event{event(0)})
		wantError(t, "second Finish", err, asl.ErrNotRunning)
		same(t, "second Finish", got, want)
		same(t, "Get after the second", get(t, s, e.ARN), want)
		same(t, "History after the second", events(t, s, e.ARN, 0), []asl.Event{startedEvent()})
	}
}

func finishRace(t *testing.T, s asl.Store) {
	e := execution(machine, "a")
	mustCreate(t, s, e)
	var won atomic.Int32
	race(t, 16, func(int) error {
		_, err := s.Finish(context.Background(), e.ARN, succeeded(), []asl.Event{{Timestamp: start, Type: asl.ExecutionSucceeded}})
		if errors.Is(err, asl.ErrNotRunning) {
			return nil
		}
		won.Add(1)
		return err
	})
	if won.Load() != 1 {
		t.Errorf("%d ends won", won.Load())
	}
	if n := len(events(t, s, e.ARN, 0)); n != 2 {
		t.Errorf("history has %d events, want 2", n)
	}
}

func lastEvents(t *testing.T, s asl.Store) {
	e := execution(machine, "a")
	mustCreate(t, s, e)
	if _, err := s.Finish(t.Context(), e.ARN, succeeded(), []asl.Event{event(2), event(3)}); err != nil {
		t.Fatal(err)
	}
	same(t, "History", events(t, s, e.ARN, 1), []asl.Event{event(2), event(3)})
}

func unnumbered(t *testing.T, s asl.Store) {
	e := execution(machine, "a")
	mustCreate(t, s, e)
	if err := s.AppendHistory(t.Context(), e.ARN, []asl.Event{event(2), event(3)}); err != nil {
		t.Fatal(err)
	}
	end := asl.Event{Timestamp: start, Type: asl.ExecutionAborted, ExecutionAborted: &asl.ErrorDetails{Error: "E", Cause: "why"}}
	given := []asl.Event{end, end}
	if _, err := s.Finish(t.Context(), e.ARN, asl.Outcome{Status: asl.StatusAborted, StoppedAt: start}, given); err != nil {
		t.Fatal(err)
	}
	first, second := end, end
	first.ID, first.PreviousEventID = 4, 3
	second.ID, second.PreviousEventID = 5, 4
	same(t, "History", events(t, s, e.ARN, 3), []asl.Event{first, second})
	if given[0].ID != 0 {
		t.Error("the caller's events were changed")
	}
}

func finishGap(t *testing.T, s asl.Store) {
	e := execution(machine, "a")
	mustCreate(t, s, e)
	_, err := s.Finish(t.Context(), e.ARN, succeeded(), []asl.Event{event(7)})
	wantError(t, "Finish", err, asl.ErrHistoryGap)
	same(t, "Get", get(t, s, e.ARN), e)
	same(t, "History", events(t, s, e.ARN, 0), []asl.Event{startedEvent()})
}

func sealed(t *testing.T, s asl.Store) {
	e := execution(machine, "a")
	mustCreate(t, s, e)
	if _, err := s.Finish(t.Context(), e.ARN, succeeded(), nil); err != nil {
		t.Fatal(err)
	}
	wantError(t, "AppendHistory", s.AppendHistory(t.Context(), e.ARN, []asl.Event{event(2)}), asl.ErrNotRunning)
	same(t, "History", events(t, s, e.ARN, 0), []asl.Event{startedEvent()})
}

func notFound(t *testing.T, s asl.Store) {
	arn := execution(machine, "none").ARN
	_, err := s.Get(t.Context(), arn)
	wantError(t, "Get", err, asl.ErrNotFound)
	_, err = s.History(t.Context(), arn, 0)
	wantError(t, "History", err, asl.ErrNotFound)
	wantError(t, "AppendHistory", s.AppendHistory(t.Context(), arn, []asl.Event{event(1)}), asl.ErrNotFound)
	_, err = s.Finish(t.Context(), arn, succeeded(), nil)
	wantError(t, "Finish", err, asl.ErrNotFound)
	all, err := s.List(t.Context(), asl.Query{})
	if err != nil || len(all) != 0 {
		t.Errorf("List = %v, %v", all, err)
	}
}

func list(t *testing.T, s asl.Store) {
	for i, e := range []asl.Execution{execution(machine, "a"), execution(machine, "c"), execution(machine, "b"), execution(other, "a")} {
		e.StartedAt = start.Add(time.Duration(min(i, 1)) * time.Microsecond)
		e.Holder = fmt.Sprint("host/", i%2)
		mustCreate(t, s, e)
	}
	if _, err := s.Finish(t.Context(), execution(machine, "c").ARN, succeeded(), nil); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		query asl.Query
		want  string
	}{
		{asl.Query{}, "run:b run:c settle:a run:a"},
		{asl.Query{Machine: machine}, "run:b run:c run:a"},
		{asl.Query{Status: asl.StatusRunning}, "run:b settle:a run:a"},
		{asl.Query{Status: asl.StatusSucceeded}, "run:c"},
		{asl.Query{Holder: "host/1"}, "run:c settle:a"},
		{asl.Query{Machine: machine, Status: asl.StatusRunning, Holder: "host/1"}, ""},
		{asl.Query{Machine: machine + "x"}, ""},
	} {
		all, err := s.List(t.Context(), test.query)
		if err != nil {
			t.Fatal(err)
		}
		got := []string{}
		for _, e := range all {
			got = append(got, e.Machine[strings.LastIndex(e.Machine, ":")+1:]+":"+e.Name)
		}
		if strings.Join(got, " ") != test.want {
			t.Errorf("List(%+v) = %v, want %s", test.query, got, test.want)
		}
	}
}

func large(t *testing.T, s asl.Store) {
	e := execution(machine, strings.Repeat("n", 80))
	e.Input = json.RawMessage(`"` + strings.Repeat("é", 131071) + `"`)
	mustCreate(t, s, e)
	batch := []asl.Event{}
	for id := int64(2); id <= 2001; id++ {
		batch = append(batch, event(id))
	}
	if err := s.AppendHistory(t.Context(), e.ARN, batch); err != nil {
		t.Fatal(err)
	}
	same(t, "Get", get(t, s, e.ARN), e)
	same(t, "History", events(t, s, e.ARN, 1), batch)
}

func isolated(t *testing.T, s asl.Store) {
	e := execution(machine, "a")
	mustCreate(t, s, e)
	batch := []asl.Event{event(2)}
	if err := s.AppendHistory(t.Context(), e.ARN, batch); err != nil {
		t.Fatal(err)
	}
	batch[0] = event(9)
	read := events(t, s, e.ARN, 1)
	same(t, "History", read, []asl.Event{event(2)})
	read[0] = event(8)
	same(t, "History again", events(t, s, e.ARN, 1), []asl.Event{event(2)})
}
