package asl_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-cdk/slipway/pkg/asl"
)

// invoking is a machine of one task with the given fields, which succeeds or ends in Caught with what was caught.
func invoking(fields ...string) string {
	return `{"StartAt":"S","States":{"S":{"Type":"Task","Resource":"arn:aws:states:::lambda:invoke","Parameters":{"FunctionName":"f","Payload.$":"$"},"OutputPath":"$.Payload","End":true` +
		more(fields) + `}` + catchState(fields) + `}}`
}

// catchState is the state Caught, where something leads to it.
func catchState(fields []string) string {
	if !strings.Contains(more(fields), `"Caught"`) {
		return ""
	}
	return `,"Caught":{"Type":"Pass","Parameters":{"caught.$":"$"},"End":true}`
}

func caught(names ...string) string {
	return `"Catch":[{"ErrorEquals":["` + strings.Join(names, `","`) + `"],"Next":"Caught"},{"ErrorEquals":["NeverRaised"],"Next":"Caught"}]`
}

type customError struct{ code int }

func (*customError) Error() string { return "custom" }

func TestAFunctionsFailureIsNamedByItsType(t *testing.T) {
	var nilMap map[string]int
	for _, test := range []struct {
		name    string
		handler func(context.Context, []byte) ([]byte, error)
		want    string
	}{
		{"a function error", fails("Slipway.Refused", "no <b>"), `FAILED Slipway.Refused {"errorMessage":"no <b>","errorType":"Slipway.Refused"}`},
		{"a wrapped function error", func(context.Context, []byte) ([]byte, error) {
			return nil, errors.Join(errors.New("x"), &asl.FunctionError{Type: "T", Message: "m"})
		}, `FAILED T {"errorMessage":"m","errorType":"T"}`},
		{"any other error", func(context.Context, []byte) ([]byte, error) { return nil, errors.New("x") }, `FAILED errorString {"errorMessage":"x","errorType":"errorString"}`},
		{"an error of a type", func(context.Context, []byte) ([]byte, error) { return nil, &customError{1} }, `FAILED customError {"errorMessage":"custom","errorType":"customError"}`},
		{"a panic", func(context.Context, []byte) ([]byte, error) { panic("oh") }, `FAILED string {"errorMessage":"oh","errorType":"string"}`},
		{"a panic of the runtime", func(context.Context, []byte) ([]byte, error) { nilMap["a"] = 1; return nil, nil }, `FAILED plainError {"errorMessage":"assignment to entry in nil map","errorType":"plainError"}`},
		{"a response that is not JSON", returns(`{`), `FAILED States.TaskFailed function f has returned a response that is not JSON`},
		{"no response", returns(``), `SUCCEEDED null`},
	} {
		t.Run(test.name, func(t *testing.T) {
			x, events := execute(t, invoking(caught("Other")), `{}`, functions{"f": test.handler})
			if got := summary(x); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
			if x.Status == asl.StatusFailed {
				failed := events[len(events)-2]
				if failed.Type != asl.TaskFailed || failed.TaskFailed.Error != x.Error || failed.TaskFailed.Cause != x.Cause || events[len(events)-1].PreviousEventID != failed.ID {
					t.Errorf("ends with %+v, %+v", failed, events[len(events)-1])
				}
			}
		})
	}
	x, _ := execute(t, invoking(caught("Lambda.ResourceNotFoundException")), `{}`, nil)
	if want := `SUCCEEDED {"caught":{"Cause":"Function not found: f","Error":"Lambda.ResourceNotFoundException"}}`; summary(x) != want {
		t.Errorf("a function that does not exist: %s", summary(x))
	}
}

func TestCatchMatchesErrorNames(t *testing.T) {
	big := returns(`"` + strings.Repeat("x", 262144) + `"`)
	for _, test := range []struct {
		name     string
		handler  func(context.Context, []byte) ([]byte, error)
		names    []string
		isCaught bool
	}{
		{"its own name", fails("A", ""), []string{"B", "A"}, true},
		{"another name", fails("A", ""), []string{"B", "a"}, false},
		{"States.TaskFailed", fails("A", ""), []string{"States.TaskFailed"}, true},
		{"States.ALL", fails("A", ""), []string{"States.ALL"}, true},
		{"too much data by its name", big, []string{"States.DataLimitExceeded"}, true},
		{"too much data by States.ALL", big, []string{"States.ALL"}, false},
		{"too much data by States.TaskFailed", big, []string{"States.TaskFailed"}, false},
	} {
		catch := `"Catch":[{"ErrorEquals":["` + strings.Join(test.names, `","`) + `"],"Next":"Caught"}]`
		x, _ := execute(t, invoking(catch), `{}`, functions{"f": test.handler})
		if got := strings.Contains(string(x.Output), `"caught"`); got != test.isCaught {
			t.Errorf("%s: %.200s", test.name, summary(x))
		}
	}
	// A path to nothing is States.Runtime: nothing catches or retries it.
	calls := 0
	x, events := execute(t, invoking(`"ResultSelector":{"x.$":"$.none"}`, `"Retry":[{"ErrorEquals":["States.ALL"]}]`, `"Catch":[{"ErrorEquals":["States.ALL"],"Next":"Caught"}]`), `{}`,
		functions{"f": func(context.Context, []byte) ([]byte, error) { calls++; return nil, nil }})
	if x.Error != "States.Runtime" || calls != 1 || count(events, asl.TaskSucceeded) != 1 {
		t.Errorf("a path to nothing: %s after %d calls", summary(x), calls)
	}
	// ResultPath into something that is no object is caught like any other.
	x, _ = execute(t, invoking(`"ResultPath":"$.a.b"`, `"Catch":[{"ErrorEquals":["States.ResultPathMatchFailure"],"ResultPath":"$.e","Next":"Caught"}]`), `{"a":1}`, functions{"f": echo})
	if want := `SUCCEEDED {"caught":{"a":1,"e":{"Cause":"Unable to apply ReferencePath $.a.b to the state's input","Error":"States.ResultPathMatchFailure"}}}`; summary(x) != want {
		t.Errorf("a result that does not fit: %s", summary(x))
	}
}

func TestCatchJoinsTheErrorWithTheRawInput(t *testing.T) {
	for resultPath, want := range map[string]string{
		`"ResultPath":"$.error",`: `SUCCEEDED {"caught":{"a":1,"error":{"Cause":"{\"errorMessage\":\"m\",\"errorType\":\"A\"}","Error":"A"},"in":{}}}`,
		`"ResultPath":null,`:      `SUCCEEDED {"caught":{"a":1,"in":{}}}`,
		``:                        `SUCCEEDED {"caught":{"Cause":"{\"errorMessage\":\"m\",\"errorType\":\"A\"}","Error":"A"}}`,
	} {
		x, _ := execute(t, invoking(`"InputPath":"$.in"`, `"Catch":[{"ErrorEquals":["B"],"Next":"S"},{`+resultPath+`"ErrorEquals":["A"],"Next":"Caught"}]`), `{"a":1,"in":{}}`, functions{"f": fails("A", "m")})
		if summary(x) != want {
			t.Errorf("%s got %s", resultPath, summary(x))
		}
	}
}

func TestRetryBacksOff(t *testing.T) {
	s := func(all ...float64) []time.Duration {
		var d []time.Duration
		for _, one := range all {
			d = append(d, time.Duration(one*float64(time.Second)))
		}
		return d
	}
	for _, test := range []struct {
		name, retry string
		errors      []string // of the calls in turn; after them the calls succeed
		slept       []time.Duration
		want        string
	}{
		{"the defaults", `{"ErrorEquals":["A"]}`, []string{"A", "A", "A"}, s(1, 2, 4), `SUCCEEDED 1`},
		{"the defaults are exhausted", `{"ErrorEquals":["A"]}`, []string{"A", "A", "A", "A"}, s(1, 2, 4), `SUCCEEDED {"caught":`},
		{"a rate and a maximum", `{"ErrorEquals":["A"],"IntervalSeconds":2,"BackoffRate":3,"MaxDelaySeconds":10,"MaxAttempts":4}`, []string{"A", "A", "A", "A"}, s(2, 6, 10, 10), `SUCCEEDED 1`},
		{"a rate that is no whole number", `{"ErrorEquals":["A"],"BackoffRate":1.5}`, []string{"A", "A", "A"}, s(1, 1.5, 2.25), `SUCCEEDED 1`},
		{"a constant interval", `{"ErrorEquals":["A"],"IntervalSeconds":3,"BackoffRate":1,"JitterStrategy":"NONE"}`, []string{"A", "A"}, s(3, 3), `SUCCEEDED 1`},
		{"no attempts", `{"ErrorEquals":["A"],"MaxAttempts":0},{"ErrorEquals":["States.ALL"]}`, []string{"A"}, nil, `SUCCEEDED {"caught":`},
		{"each retrier counts for itself", `{"ErrorEquals":["A"],"MaxAttempts":2},{"ErrorEquals":["B"],"MaxAttempts":1,"IntervalSeconds":5}`, []string{"A", "B", "A"}, s(1, 5, 2), `SUCCEEDED 1`},
		{"the first retrier that matches decides", `{"ErrorEquals":["A"],"MaxAttempts":1},{"ErrorEquals":["A","B"],"MaxAttempts":9}`, []string{"A", "A"}, s(1), `SUCCEEDED {"caught":`},
		{"another error is not retried", `{"ErrorEquals":["A"]}`, []string{"B"}, nil, `SUCCEEDED {"caught":`},
	} {
		t.Run(test.name, func(t *testing.T) {
			calls := 0
			e := newExecutor(t, functions{"f": func(context.Context, []byte) ([]byte, error) {
				calls++
				if calls <= len(test.errors) {
					return nil, &asl.FunctionError{Type: test.errors[calls-1]}
				}
				return []byte("1"), nil
			}}, map[string]*asl.Machine{machineARN: mustLoad(t, invoking(`"Retry":[`+test.retry+`]`, `"Catch":[{"ErrorEquals":["States.ALL"],"Next":"Caught"}]`))})
			x := outcome(t, e, machineARN, "x", "{}")
			if !strings.HasPrefix(summary(x), test.want) {
				t.Errorf("got %s", summary(x))
			}
			if d := cmp.Diff(test.slept, e.Clock.(*jumpingClock).sleeps()); d != "" {
				t.Errorf("sleeps: %s", d)
			}
			// A retry is scheduled after the failure, without leaving the state.
			events := historyOf(t, e, x.ARN)
			for i, ev := range events {
				if ev.Type == asl.TaskScheduled && i > 3 && (events[i-1].Type != asl.TaskFailed || ev.PreviousEventID != events[i-1].ID) {
					t.Errorf("event %d follows %s", ev.ID, events[i-1].Type)
				}
			}
			if n := count(events, asl.TaskScheduled); n != calls {
				t.Errorf("%d calls were scheduled, %d made", n, calls)
			}
		})
	}
}

func TestFullJitterSpreadsTheDelays(t *testing.T) {
	e := newExecutor(t, functions{"f": fails("A", "")}, map[string]*asl.Machine{
		machineARN: mustLoad(t, invoking(`"Retry":[{"ErrorEquals":["A"],"IntervalSeconds":10,"BackoffRate":1,"MaxAttempts":50,"JitterStrategy":"FULL"}]`, caught("A"))),
	})
	outcome(t, e, machineARN, "x", "{}")
	slept := e.Clock.(*jumpingClock).sleeps()
	low, high, seen := 0, 0, map[time.Duration]bool{}
	for _, d := range slept {
		seen[d] = true
		switch {
		case d < 0 || d >= 10*time.Second:
			t.Errorf("delay of %v", d)
		case d < 5*time.Second:
			low++
		default:
			high++
		}
	}
	if len(slept) != 50 || len(seen) < 45 || low < 10 || high < 10 {
		t.Errorf("%d delays, %d different, %d low, %d high", len(slept), len(seen), low, high)
	}
}

func TestTheFunctionSeesPayloadAndDeadline(t *testing.T) {
	var payload string
	var deadline time.Time
	e := newExecutor(t, functions{"f": func(ctx context.Context, p []byte) ([]byte, error) {
		payload = string(p)
		deadline, _ = ctx.Deadline()
		inner, cancel := context.WithTimeout(ctx, time.Minute) // what an AWS client does with it
		defer cancel()
		return nil, inner.Err()
	}}, map[string]*asl.Machine{machineARN: mustLoad(t, invoking(`"TimeoutSeconds":890`))})
	x := outcome(t, e, machineARN, "x", `{"b": "<é>", "a": 1.0}`)
	if want := start.Add(890 * time.Second); x.Status != asl.StatusSucceeded || payload != `{"a":1.0,"b":"<é>"}` || !deadline.Equal(want) {
		t.Errorf("%s: payload %s, deadline %v", summary(x), payload, deadline)
	}
}

// startingChild is a machine of one task that starts the child machine.
func startingChild(action, parameters string, fields ...string) string {
	return `{"StartAt":"S","States":{"S":{"Type":"Task","Resource":"arn:aws:states:::states:` + action + `","Parameters":{"StateMachineArn":"` + childARN + `"` + parameters + `},"End":true` +
		more(fields) + `}` + catchState(fields) + `}}`
}

func TestStartExecution(t *testing.T) {
	const all = `"Catch":[{"ErrorEquals":["States.ALL"],"Next":"Caught"}]`
	for _, test := range []struct{ name, definition, want string }{
		{"by name", startingChild("startExecution", `,"Name":"c","Input":{"a.$":"$.a"}`), `SUCCEEDED {"ExecutionArn":"arn:aws:states:eu-west-1:111122223333:execution:child:c","StartDate":1772366400000}`},
		{"an illegal name", startingChild("startExecution", `,"Name":"c d"`, all), `SUCCEEDED {"caught":{"Cause":"Invalid Name: \"c d\"","Error":"StepFunctions.InvalidNameException"}}`},
		{"an empty name", startingChild("startExecution", `,"Name":""`, all), `SUCCEEDED {"caught":{"Cause":"Invalid Name: \"\"","Error":"StepFunctions.InvalidNameException"}}`},
		{"a name that is no string", startingChild("startExecution", `,"Name":1`, all), `FAILED States.Runtime An error occurred while executing the state 'S' (entered at the event id #2). The value for the field 'Name' must be a string`},
		{"a name that is taken", startingChild("startExecution", `,"Name":"done"`, `"Catch":[{"ErrorEquals":["StepFunctions.ExecutionAlreadyExistsException"],"ResultPath":null,"Next":"Caught"}]`), `SUCCEEDED {"caught":{"a":1}}`},
		{"a machine that does not exist", strings.ReplaceAll(startingChild("startExecution", ``, all), childARN, childARN+"x"), `SUCCEEDED {"caught":{"Cause":"State Machine Does Not Exist: '` + childARN + `x'","Error":"StepFunctions.StateMachineDoesNotExistException"}}`},
		{"and wait", startingChild("startExecution.sync:2", `,"Name":"c","Input":{"a.$":"$.a"}`), `SUCCEEDED {"ExecutionArn":"arn:aws:states:eu-west-1:111122223333:execution:child:c","Input":{"a":1},"InputDetails":{"Included":true},"Name":"c","Output":{"a":1},"OutputDetails":{"Included":true},"StartDate":1772366400000,"StateMachineArn":"` + childARN + `","Status":"SUCCEEDED","StopDate":1772366405000}`},
		{"and wait for a failure", startingChild("startExecution.sync:2", `,"Name":"c","Input":{"fail":true}`, all), `SUCCEEDED {"caught":{"Cause":"{\"Cause\":\"why\",\"Error\":\"E\",\"ExecutionArn\":\"arn:aws:states:eu-west-1:111122223333:execution:child:c\",\"Input\":\"{\\\"fail\\\":true}\",\"InputDetails\":{\"Included\":true},\"Name\":\"c\",\"StartDate\":1772366400000,\"StateMachineArn\":\"` + childARN + `\",\"Status\":\"FAILED\",\"StopDate\":1772366400000}","Error":"States.TaskFailed"}}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			e := newExecutor(t, nil, map[string]*asl.Machine{machineARN: mustLoad(t, test.definition), childARN: mustLoad(t, `{"StartAt":"Which","States":{
				"Which":{"Type":"Choice","Choices":[{"Variable":"$.fail","IsPresent":true,"Next":"Fail"}],"Default":"Wait"},
				"Wait":{"Type":"Wait","Seconds":5,"End":true},"Fail":{"Type":"Fail","Error":"E","Cause":"why"}}}`)})
			if strings.Contains(test.definition, "done") {
				outcome(t, e, childARN, "done", `{"fail":true}`)
			}
			if x := outcome(t, e, machineARN, "x", `{"a":1}`); summary(x) != test.want {
				t.Errorf("got  %s\nwant %s", summary(x), test.want)
			}
		})
	}
}

func TestAGeneratedNameIsAUUID(t *testing.T) {
	e := newExecutor(t, nil, map[string]*asl.Machine{machineARN: mustLoad(t, startingChild("startExecution", ``)), childARN: mustLoad(t, one(`{"Type":"Succeed"}`))})
	outcome(t, e, machineARN, "x", `{}`)
	all, err := e.Store.List(t.Context(), asl.Query{Machine: childARN})
	if err != nil || len(all) != 1 {
		t.Fatal(all, err)
	}
	parts := strings.Split(all[0].Name, "-")
	if len(all[0].Name) != 36 || len(parts) != 5 || parts[2][0] != '4' || !strings.ContainsRune("89ab", rune(parts[3][0])) || string(all[0].Input) != "{}" {
		t.Errorf("name %s, input %s", all[0].Name, all[0].Input)
	}
}

func TestTimeouts(t *testing.T) {
	t.Run("a task that takes too long fails with States.Timeout and its late answer is dropped", func(t *testing.T) {
		var cause atomic.Value
		let := make(chan struct{})
		e := newExecutor(t, functions{"f": func(ctx context.Context, _ []byte) ([]byte, error) {
			<-ctx.Done()
			cause.Store(ctx.Err())
			<-let
			return []byte(`"late"`), nil
		}}, map[string]*asl.Machine{machineARN: mustLoad(t, invoking(`"TimeoutSeconds":10`, `"Catch":[{"ErrorEquals":["States.TaskFailed"],"Next":"S"},{"ErrorEquals":["States.Timeout"],"Next":"Caught"}]`))})
		x, err := e.Start(t.Context(), machineARN, "x", nil)
		if err != nil {
			t.Fatal(err)
		}
		advance(e, 9*time.Second)
		if now, err := e.Describe(t.Context(), x.ARN); err != nil || now.Status != asl.StatusRunning {
			t.Fatalf("after 9 s: %s, %v", summary(now), err)
		}
		advance(e, time.Second)
		x, err = e.Wait(t.Context(), x.ARN)
		if want := `SUCCEEDED {"caught":{"Cause":"","Error":"States.Timeout"}}`; err != nil || summary(x) != want {
			t.Errorf("got %s, %v", summary(x), err)
		}
		close(let)
		until(func() bool { return cause.Load() != nil })
		if !errors.Is(cause.Load().(error), context.DeadlineExceeded) {
			t.Errorf("the function's context ended with %v", cause.Load())
		}
		events := historyOf(t, e, x.ARN)
		if events[4].Type != asl.TaskTimedOut || *events[4].TaskTimedOut != (asl.TaskErrorDetails{TaskDetails: asl.TaskDetails{ResourceType: "lambda", Resource: "invoke"}, Error: "States.Timeout"}) || events[2].TaskScheduled.TimeoutInSeconds != 10 {
			t.Errorf("history: %s", render(t, events))
		}
	})
	t.Run("a function that gives up at its deadline has timed out", func(t *testing.T) {
		e := newExecutor(t, functions{"f": func(ctx context.Context, _ []byte) ([]byte, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}}, map[string]*asl.Machine{machineARN: mustLoad(t, invoking(`"TimeoutSeconds":10`))})
		x, err := e.Start(t.Context(), machineARN, "x", nil)
		if err != nil {
			t.Fatal(err)
		}
		advance(e, 10*time.Second)
		if x, err = e.Wait(t.Context(), x.ARN); err != nil || summary(x) != "FAILED States.Timeout" {
			t.Errorf("got %s, %v", summary(x), err)
		}
	})
	t.Run("waiting for another execution can time out, and stops it", func(t *testing.T) {
		blocked := make(chan struct{})
		e := newExecutor(t, functions{"f": func(context.Context, []byte) ([]byte, error) { <-blocked; return nil, nil }}, map[string]*asl.Machine{
			machineARN: mustLoad(t, startingChild("startExecution.sync:2", `,"Name":"c"`, `"TimeoutSeconds":10`)), childARN: mustLoad(t, invoking()),
		})
		defer close(blocked)
		x, err := e.Start(t.Context(), machineARN, "x", nil)
		if err != nil {
			t.Fatal(err)
		}
		advance(e, 10*time.Second)
		if x, err = e.Wait(t.Context(), x.ARN); err != nil || summary(x) != "FAILED States.Timeout" {
			t.Errorf("got %s, %v", summary(x), err)
		}
		if child, err := e.Describe(t.Context(), "arn:aws:states:eu-west-1:111122223333:execution:child:c"); err != nil || child.Status != asl.StatusAborted {
			t.Errorf("child: %s, %v", summary(child), err)
		}
	})
	t.Run("a machine that takes too long is timed out", func(t *testing.T) {
		blocked := make(chan struct{})
		e := newExecutor(t, functions{"f": func(context.Context, []byte) ([]byte, error) { <-blocked; return nil, nil }}, map[string]*asl.Machine{
			machineARN: mustLoad(t, strings.Replace(invoking(`"Catch":[{"ErrorEquals":["States.ALL"],"Next":"Caught"}]`), `{"StartAt"`, `{"TimeoutSeconds":60,"StartAt"`, 1)),
		})
		defer close(blocked)
		x, err := e.Start(t.Context(), machineARN, "x", nil)
		if err != nil {
			t.Fatal(err)
		}
		advance(e, time.Minute)
		if x, err = e.Wait(t.Context(), x.ARN); err != nil || summary(x) != "TIMED_OUT" {
			t.Errorf("got %s, %v", summary(x), err)
		}
		events := historyOf(t, e, x.ARN)
		if last := events[len(events)-1]; last.Type != asl.ExecutionTimedOut {
			t.Errorf("ends with %s", last.Type)
		}
	})
}
