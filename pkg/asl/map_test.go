package asl_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-cdk/slipway/pkg/asl"
)

// items is an input with the numbers from 0.
func items(n int) string {
	all := make([]string, n)
	for i := range all {
		all[i] = strconv.Itoa(i)
	}
	return `{"items":[` + strings.Join(all, ",") + `],"run":"r"}`
}

const invokeItem = `"T":{"Type":"Task","Resource":"arn:aws:states:::lambda:invoke","Parameters":{"FunctionName":"f","Payload.$":"$"},"OutputPath":"$.Payload","End":true}`

func mapping(states string, fields ...string) string {
	return `{"StartAt":"S","States":{"S":{"Type":"Map","ItemsPath":"$.items","ItemProcessor":{"StartAt":"T","States":{` + states + `}},"End":true` + more(fields) + `}` + catchState(fields) + `}}`
}

func TestMapTransformsItsInput(t *testing.T) {
	const pass = `"T":{"Type":"Pass","End":true}`
	for _, test := range []struct{ name, definition, input, want string }{
		{"each item is an input, results are in order", mapping(pass), items(3), `SUCCEEDED [0,1,2]`},
		{"no items", mapping(pass), items(0), `SUCCEEDED []`},
		{"the input itself is the items", one(`{` + mapOver(`{`+pass+`}`) + `,"End":true}`), `["a"]`, `SUCCEEDED ["a"]`},
		{"ItemSelector sees the Map's input and the item", mapping(pass, `"ItemSelector":{"run.$":"$.run","i.$":"$$.Map.Item.Index","v.$":"$$.Map.Item.Value","s.$":"$$.State.Name"}`), `{"items":["a","b"],"run":"r"}`, `SUCCEEDED [{"i":0,"run":"r","s":"S","v":"a"},{"i":1,"run":"r","s":"S","v":"b"}]`},
		{"the item is known inside of the iteration", mapping(`"T":{"Type":"Pass","Parameters":{"i.$":"$$.Map.Item.Index","s.$":"$$.State.Name"},"End":true}`), items(2), `SUCCEEDED [{"i":0,"s":"T"},{"i":1,"s":"T"}]`},
		{"InputPath comes before ItemsPath", mapping(pass, `"InputPath":"$.in"`), `{"in":{"items":[7]}}`, `SUCCEEDED [7]`},
		{"ResultSelector and ResultPath", mapping(pass, `"ResultSelector":{"all.$":"$"}`, `"ResultPath":"$.out"`), `{"items":[7]}`, `SUCCEEDED {"items":[7],"out":{"all":[7]}}`},
		{"ResultPath null", mapping(pass, `"ResultPath":null`), `{"items":[7]}`, `SUCCEEDED {"items":[7]}`},
		{"iterations may end in Succeed", mapping(`"T":{"Type":"Succeed"}`), items(2), `SUCCEEDED [0,1]`},
		{"items that are missing", mapping(pass), `{}`, `FAILED States.Runtime An error occurred while executing the state 'S' (entered at the event id #2). Invalid path '$.items' : Missing property in path`},
		{"items that are no array", mapping(pass), `{"items":{}}`, `FAILED States.Runtime An error occurred while executing the state 'S' (entered at the event id #2). Reference path "$.items" must point to array.`},
		{"a Map inside of a Map", mapping(`"T":{"Type":"Map","ItemSelector":{"v.$":"$$.Map.Item.Value"},"ItemProcessor":{"StartAt":"U","States":{"U":{"Type":"Pass","End":true}}},"End":true}`), `{"items":[[1,2],[3]]}`, `SUCCEEDED [[{"v":1},{"v":2}],[{"v":3}]]`},
	} {
		t.Run(test.name, func(t *testing.T) {
			if x, _ := execute(t, test.definition, test.input, nil); summary(x) != test.want {
				t.Errorf("got  %s\nwant %s", summary(x), test.want)
			}
		})
	}
}

func TestMapRunsSoManyAtATimeAndKeepsTheOrder(t *testing.T) {
	for _, test := range []struct{ given, want int }{{0, 40}, {1, 1}, {7, 7}, {40, 40}, {100, 40}} {
		t.Run(fmt.Sprintf("MaxConcurrency %d", test.given), func(t *testing.T) {
			const n = 200
			var mu sync.Mutex
			running, most := 0, 0
			full := make(chan struct{})
			x, events := execute(t, mapping(invokeItem, fmt.Sprintf(`"MaxConcurrency":%d`, test.given)), items(n), functions{"f": func(_ context.Context, p []byte) ([]byte, error) {
				mu.Lock()
				running++
				if most = max(most, running); running == test.want && most == test.want {
					select {
					case <-full:
					default:
						close(full)
					}
				}
				mu.Unlock()
				<-full // nobody ends before as many run as may
				mu.Lock()
				running--
				mu.Unlock()
				return p, nil
			}})
			var got []int
			if err := json.Unmarshal(x.Output, &got); err != nil || len(got) != n {
				t.Fatalf("%s: %v", summary(x), err)
			}
			for i, v := range got {
				if v != i {
					t.Fatalf("result %d is %d", i, v)
				}
			}
			if most != test.want {
				t.Errorf("%d ran at a time, want %d", most, test.want)
			}
			next := 0
			for _, e := range events {
				if e.Type == asl.MapIterationStarted {
					if e.MapIterationStarted.Index != next {
						t.Fatalf("iteration %d started as number %d", e.MapIterationStarted.Index, next)
					}
					next++
				}
			}
			chains(t, events)
		})
	}
}

// chains checks that ids count up and that every event follows an earlier one that fits.
func chains(t *testing.T, events []asl.Event) {
	t.Helper()
	for i, e := range events {
		if e.ID != int64(i)+1 || e.PreviousEventID >= e.ID {
			t.Fatalf("event %d has id %d and follows %d", i+1, e.ID, e.PreviousEventID)
		}
		if e.PreviousEventID == 0 {
			continue
		}
		before := events[e.PreviousEventID-1].Type
		fits := map[asl.EventType]string{
			asl.TaskStarted: "TaskScheduled", asl.TaskSucceeded: "TaskStarted", asl.TaskStateExited: "TaskSucceeded TaskFailed TaskTimedOut",
			asl.MapIterationStarted: "MapStateStarted MapIterationSucceeded", asl.MapIterationSucceeded: "TaskStateExited PassStateExited",
			asl.MapStateStarted: "MapStateEntered MapStateFailed", asl.MapStateSucceeded: "MapStateStarted MapIterationSucceeded", asl.MapStateExited: "MapStateStarted MapIterationSucceeded MapStateFailed",
		}[e.Type]
		if fits != "" && !strings.Contains(fits, string(before)) {
			t.Errorf("event %d %s follows %s", e.ID, e.Type, before)
		}
	}
}

func TestMapFailsWithItsFirstIteration(t *testing.T) {
	definition := mapping(`"T":{"Type":"Choice","Choices":[{"Variable":"$","NumericEquals":2,"Next":"Break"},{"Variable":"$","NumericEquals":1,"Next":"Hang"}],"Default":"Wait"},
		"Break":{"Type":"Task","Resource":"arn:aws:states:::lambda:invoke","Parameters":{"FunctionName":"break","Payload":{}},"End":true},
		"Hang":{"Type":"Task","Resource":"arn:aws:states:::lambda:invoke","Parameters":{"FunctionName":"hang","Payload":{}},"Catch":[{"ErrorEquals":["States.ALL"],"Next":"Never"}],"End":true},
		"Never":{"Type":"Pass","End":true},
		"Wait":{"Type":"Task","Resource":"arn:aws:states:::lambda:invoke","Parameters":{"FunctionName":"quick","Payload":{}},"End":true}`,
		`"MaxConcurrency":3`, `"Catch":[{"ErrorEquals":["Broken"],"ResultPath":"$.error","Next":"Caught"}]`)
	hanging, release := make(chan struct{}), make(chan struct{})
	var cancelled, dropped atomic.Bool
	x, events := execute(t, definition, items(9), functions{
		"quick": returns(`0`),
		"hang": func(ctx context.Context, _ []byte) ([]byte, error) {
			close(hanging)
			<-release
			cancelled.Store(ctx.Err() != nil)
			dropped.Store(true)
			return nil, nil
		},
		"break": func(context.Context, []byte) ([]byte, error) {
			<-hanging
			return nil, &asl.FunctionError{Type: "Broken", Message: "m"}
		},
	})
	if !strings.Contains(summary(x), `"error":{"Cause":"{\"errorMessage\":\"m\",\"errorType\":\"Broken\"}","Error":"Broken"}`) {
		t.Errorf("got %s", summary(x))
	}
	if dropped.Load() {
		t.Error("the execution waited for the function of another iteration")
	}
	close(release)
	until(dropped.Load)
	if cancelled.Load() {
		t.Error("the function of another iteration was cancelled")
	}
	// An iteration that is aborted between two states has no state to abort.
	if failed, aborted, states := count(events, asl.MapIterationFailed), count(events, asl.MapIterationAborted), count(events, asl.TaskStateAborted); failed != 1 || count(events, asl.MapStateFailed) != 1 || states == 0 || states > aborted {
		t.Errorf("history: %s", render(t, events))
	}
	if started, ended := count(events, asl.MapIterationStarted), count(events, asl.MapIterationSucceeded)+count(events, asl.MapIterationFailed)+count(events, asl.MapIterationAborted); started != ended {
		t.Errorf("%d iterations started, %d ended", started, ended)
	}
	chains(t, events)
}

func TestOnlyOneIterationOfAMapFails(t *testing.T) {
	var all sync.WaitGroup
	all.Add(5)
	x, events := execute(t, mapping(invokeItem), items(5), functions{"f": func(context.Context, []byte) ([]byte, error) {
		all.Done()
		all.Wait()
		return nil, &asl.FunctionError{Type: "A"}
	}})
	if x.Error != "A" || count(events, asl.MapIterationFailed) != 1 || count(events, asl.MapIterationAborted) != 4 {
		t.Errorf("%s: %s", summary(x), render(t, events))
	}
}

func TestAnIterationThatCannotStartFailsTheMap(t *testing.T) {
	x, events := execute(t, mapping(`"T":{"Type":"Pass","End":true}`, `"ItemSelector":{"a.$":"$.none"}`, `"Catch":[{"ErrorEquals":["States.ALL"],"Next":"Caught"}]`), items(1), nil)
	if want := "FAILED States.Runtime An error occurred while executing the state 'S' (entered at the event id #2). The JSONPath '$.none' specified for the field 'a.$' could not be found in the input"; summary(x) != want {
		t.Errorf("got %s", summary(x))
	}
	want := "ExecutionStarted MapStateEntered MapStateStarted MapIterationStarted MapIterationFailed MapStateFailed ExecutionFailed"
	if d := cmp.Diff(strings.Fields(want), types(events)); d != "" {
		t.Error(d)
	}
}

func TestAMapIsRetriedAsAWhole(t *testing.T) {
	var calls atomic.Int32
	x, events := execute(t, mapping(invokeItem, `"MaxConcurrency":1`, `"Retry":[{"ErrorEquals":["A"]}]`), items(2), functions{"f": func(_ context.Context, p []byte) ([]byte, error) {
		if calls.Add(1) == 2 {
			return nil, &asl.FunctionError{Type: "A"}
		}
		return p, nil
	}})
	if summary(x) != "SUCCEEDED [0,1]" || calls.Load() != 4 || count(events, asl.MapStateStarted) != 2 || count(events, asl.MapStateEntered) != 1 {
		t.Errorf("%s after %d calls: %v", summary(x), calls.Load(), types(events))
	}
	chains(t, events)
}

func TestTransitionsAreFast(t *testing.T) {
	began := time.Now()
	_, events := execute(t, mapping(invokeItem, `"MaxConcurrency":40`), items(200), functions{"f": echo})
	// Loose enough for a loaded machine; a lost wake-up or a poll would take longer.
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("200 items took %v", took)
	}
	if len(events) != 1+2+200*7+2+1 {
		t.Errorf("%d events", len(events))
	}
}

func BenchmarkMapOf200(b *testing.B) {
	e := newExecutor(b, functions{"f": echo}, map[string]*asl.Machine{machineARN: mustLoad(b, mapping(invokeItem, `"MaxConcurrency":40`))})
	for i := 0; b.Loop(); i++ {
		if x := outcome(b, e, machineARN, strconv.Itoa(i), items(200)); x.Status != asl.StatusSucceeded {
			b.Fatal(summary(x))
		}
	}
}

func BenchmarkTransition(b *testing.B) {
	const loop = `{"StartAt":"A","States":{"A":{"Type":"Pass","Next":"B"},"B":{"Type":"Choice","Choices":[{"Variable":"$.a","IsPresent":true,"Next":"A"}],"Default":"C"},"C":{"Type":"Succeed"}}}`
	e := newExecutor(b, nil, map[string]*asl.Machine{machineARN: mustLoad(b, loop)})
	for i := 0; b.Loop(); i++ {
		outcome(b, e, machineARN, strconv.Itoa(i), `{"a":1}`) // runs into the history's limit: 12,499 transitions
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/12499, "ns/transition")
}
