package asl_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-cdk/slipway/pkg/asl"
)

func TestStatesTransformTheirInput(t *testing.T) {
	pass := func(fields string) string { return one(`{"Type":"Pass","End":true` + more([]string{fields}) + `}`) }
	succeed := func(fields string) string { return one(`{"Type":"Succeed"` + more([]string{fields}) + `}`) }
	invoke := func(fields string) string {
		return one(`{"Type":"Task","Resource":"arn:aws:states:::lambda:invoke","Parameters":{"FunctionName":"echo","Payload.$":"$"},"End":true` + more([]string{fields}) + `}`)
	}
	const runtime = "FAILED States.Runtime An error occurred while executing the state 'S' (entered at the event id #2). "
	for _, test := range []struct{ name, definition, input, want string }{
		{"Pass hands its input on", pass(`"Comment":"x"`), `{"a":1.50}`, `SUCCEEDED {"a":1.50}`},
		{"an empty input is an empty object", pass(`"Comment":"x"`), ``, `SUCCEEDED {}`},
		{"text is not escaped for HTML", pass(`"Comment":"x"`), `{"a":"<&>"}`, `SUCCEEDED {"a":"<&>"}`},
		{"Result replaces the input", pass(`"Result":{"b":2}`), `{"a":1}`, `SUCCEEDED {"b":2}`},
		{"Result may be null", pass(`"Result":null`), `{"a":1}`, `SUCCEEDED null`},
		{"Result is no template", pass(`"Result":{"b.$":"$.a"}`), `{"a":1}`, `SUCCEEDED {"b.$":"$.a"}`},
		{"Result beats Parameters", pass(`"Result":1,"Parameters":{"x":2}`), `{}`, `SUCCEEDED 1`},
		{"ResultPath puts the result into the raw input", pass(`"InputPath":"$.a","Result":2,"ResultPath":"$.x.y"`), `{"a":1}`, `SUCCEEDED {"a":1,"x":{"y":2}}`},
		{"ResultPath null keeps the raw input", pass(`"InputPath":"$.a","Result":2,"ResultPath":null`), `{"a":1}`, `SUCCEEDED {"a":1}`},
		{"ResultPath into something that is no object fails", pass(`"Result":2,"ResultPath":"$.a.b"`), `{"a":1}`, `FAILED States.ResultPathMatchFailure Unable to apply ReferencePath $.a.b to the state's input`},
		{"InputPath selects", pass(`"InputPath":"$.a[1].b"`), `{"a":[0,{"b":"x"}]}`, `SUCCEEDED "x"`},
		{"InputPath null is the empty object", pass(`"InputPath":null`), `{"a":1}`, `SUCCEEDED {}`},
		{"InputPath to nothing fails", pass(`"InputPath":"$.b"`), `{"a":1}`, runtime + `Invalid path '$.b' : Missing property in path`},
		{"InputPath reads the context", pass(`"InputPath":"$$.Execution.Name"`), `{}`, `SUCCEEDED "x"`},
		{"OutputPath selects", pass(`"OutputPath":"$.a"`), `{"a":1}`, `SUCCEEDED 1`},
		{"OutputPath null is the empty object", pass(`"OutputPath":null`), `{"a":1}`, `SUCCEEDED {}`},
		{"OutputPath to nothing fails", pass(`"OutputPath":"$.b"`), `{"a":1}`, runtime + `Invalid path '$.b' : Missing property in path`},
		{"Parameters are a template", pass(`"Parameters":{"x.$":"$.a","y":[{"z.$":"$.b"},"$.a"],"n":null}`), `{"a":{"q":1},"b":null}`, `SUCCEEDED {"n":null,"x":{"q":1},"y":[{"z":null},"$.a"]}`},
		{"Parameters come after InputPath", pass(`"InputPath":"$.a","Parameters":{"x.$":"$.b"}`), `{"a":{"b":1}}`, `SUCCEEDED {"x":1}`},
		{"Parameters with a path to nothing fail", pass(`"Parameters":{"x.$":"$.b"}`), `{"a":"secret"}`, runtime + `The JSONPath '$.b' specified for the field 'x.$' could not be found in the input`},
		{"the context object", pass(`"Parameters":{"id.$":"$$.Execution.Id","name.$":"$$.Execution.Name","a.$":"$$.Execution.Input.a","at.$":"$$.Execution.StartTime","state.$":"$$.State.Name","entered.$":"$$.State.EnteredTime","machine.$":"$$.StateMachine.Id","mname.$":"$$.StateMachine.Name"}`), `{"a":1}`,
			`SUCCEEDED {"a":1,"at":"2026-03-01T12:00:00.000Z","entered":"2026-03-01T12:00:00.000Z","id":"arn:aws:states:eu-west-1:111122223333:execution:machine:x","machine":"arn:aws:states:eu-west-1:111122223333:stateMachine:machine","mname":"machine","name":"x","state":"S"}`},

		{"Succeed selects", succeed(`"InputPath":"$.a","OutputPath":"$.b"`), `{"a":{"b":1}}`, `SUCCEEDED 1`},
		{"Fail", one(`{"Type":"Fail","Error":"E","Cause":"why"}`), `{}`, `FAILED E why`},
		{"Fail without a word", one(`{"Type":"Fail"}`), `{}`, `FAILED`},

		{"a task's result", invoke(`"Comment":"x"`), `{"a":1}`, `SUCCEEDED {"ExecutedVersion":"$LATEST","Payload":{"a":1},"StatusCode":200}`},
		{"ResultSelector reads the result", invoke(`"ResultSelector":{"r.$":"$.Payload.a","s.$":"$$.State.Name"}`), `{"a":1}`, `SUCCEEDED {"r":1,"s":"S"}`},
		{"an empty ResultSelector drops the result", invoke(`"ResultSelector":{}`), `{"a":1}`, `SUCCEEDED {}`},
		{"ResultSelector with a path to nothing fails", invoke(`"ResultSelector":{"r.$":"$.Payload.b"}`), `{"a":1}`, runtime + `The JSONPath '$.Payload.b' specified for the field 'r.$' could not be found in the input`},
		{"all five in their order", invoke(`"InputPath":"$.in","ResultSelector":{"got.$":"$.Payload.b"},"ResultPath":"$.out","OutputPath":"$.out.got"`), `{"in":{"b":7}}`, `SUCCEEDED 7`},

		{"Wait", one(`{"Type":"Wait","Seconds":5,"InputPath":"$.a","OutputPath":"$.b","End":true}`), `{"a":{"b":2}}`, `SUCCEEDED 2`},
		{"Wait for a path to nothing", one(`{"Type":"Wait","SecondsPath":"$.s","End":true}`), `{}`, runtime + `Invalid path '$.s' : Missing property in path`},
		{"Wait for a word", one(`{"Type":"Wait","SecondsPath":"$.s","End":true}`), `{"s":"5"}`, runtime + `The SecondsPath parameter does not reference a valid value: '$.s' must be a whole number from 0 to 99999999`},
		{"Wait for less than nothing", one(`{"Type":"Wait","SecondsPath":"$.s","End":true}`), `{"s":-1}`, runtime + `The SecondsPath parameter does not reference a valid value: '$.s' must be a whole number from 0 to 99999999`},
		{"Wait for half a second", one(`{"Type":"Wait","SecondsPath":"$.s","End":true}`), `{"s":0.5}`, runtime + `The SecondsPath parameter does not reference a valid value: '$.s' must be a whole number from 0 to 99999999`},
	} {
		t.Run(test.name, func(t *testing.T) {
			x, events := execute(t, test.definition, test.input, functions{"echo": echo})
			if got := summary(x); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
			last := events[len(events)-1]
			if x.Status == asl.StatusFailed && x.Error == "States.Runtime" && last.PreviousEventID != 0 {
				t.Errorf("States.Runtime follows event %d, want 0", last.PreviousEventID)
			}
		})
	}
}

func TestAWaitLastsAsLongAsItSays(t *testing.T) {
	for _, test := range []struct {
		state, input string
		want         time.Duration
	}{
		{`{"Type":"Wait","Seconds":90,"End":true}`, `{}`, 90 * time.Second},
		{`{"Type":"Wait","SecondsPath":"$.s","End":true}`, `{"s":7}`, 7 * time.Second},
		{`{"Type":"Wait","SecondsPath":"$$.Execution.Input.s","End":true}`, `{"s":8}`, 8 * time.Second},
	} {
		x, events := execute(t, one(test.state), test.input, nil)
		if got := x.StoppedAt.Sub(start); got != test.want {
			t.Errorf("%s took %v", test.state, got)
		}
		if got := events[2].Timestamp.Sub(events[1].Timestamp); got != test.want {
			t.Errorf("%s: WaitStateExited came after %v", test.state, got)
		}
	}
}

func TestChoiceRules(t *testing.T) {
	const input = `{"s":"x","n":1.5,"zero":0,"yes":true,"nothing":null,"list":[1]}`
	for _, test := range []struct {
		rule string
		want bool
	}{
		{`"Variable":"$.s","StringEquals":"x"`, true},
		{`"Variable":"$.s","StringEquals":"X"`, false},
		{`"Variable":"$.n","StringEquals":"1.5"`, false},
		{`"Variable":"$.nothing","StringEquals":""`, false},
		{`"Variable":"$.yes","BooleanEquals":true`, true},
		{`"Variable":"$.yes","BooleanEquals":false`, false},
		{`"Variable":"$.s","BooleanEquals":true`, false},
		{`"Variable":"$.n","NumericEquals":1.50`, true},
		{`"Variable":"$.zero","NumericEquals":0.0`, true},
		{`"Variable":"$.s","NumericEquals":1`, false},
		{`"Variable":"$.n","NumericLessThan":1.5`, false},
		{`"Variable":"$.n","NumericLessThan":2`, true},
		{`"Variable":"$.n","NumericLessThanEquals":1.5`, true},
		{`"Variable":"$.n","NumericGreaterThan":1.5`, false},
		{`"Variable":"$.n","NumericGreaterThan":-1e3`, true},
		{`"Variable":"$.n","NumericGreaterThanEquals":1.5`, true},
		{`"Variable":"$.s","IsPresent":true`, true},
		{`"Variable":"$.s","IsPresent":false`, false},
		{`"Variable":"$.nothing","IsPresent":true`, true},
		{`"Variable":"$.none","IsPresent":true`, false},
		{`"Variable":"$.none.none","IsPresent":false`, true},
		{`"Variable":"$.list[0]","NumericEquals":1`, true},
		{`"Variable":"$.list[1]","IsPresent":true`, false},
		{`"Variable":"$$.Execution.Name","StringEquals":"x"`, true},
		{`"And":[{"Variable":"$.s","StringEquals":"x"},{"Variable":"$.yes","BooleanEquals":true}]`, true},
		{`"And":[{"Variable":"$.s","StringEquals":"x"},{"Variable":"$.yes","BooleanEquals":false}]`, false},
		{`"And":[{"Variable":"$.none","IsPresent":true},{"Variable":"$.none","StringEquals":"x"}]`, false},
		{`"Or":[{"Variable":"$.s","StringEquals":"y"},{"Variable":"$.yes","BooleanEquals":true}]`, true},
		{`"Or":[{"Variable":"$.s","StringEquals":"y"},{"Variable":"$.yes","BooleanEquals":false}]`, false},
		{`"Not":{"Variable":"$.s","StringEquals":"y"}`, true},
		{`"Not":{"And":[{"Not":{"Variable":"$.s","StringEquals":"y"}},{"Variable":"$.n","NumericEquals":1.5}]}`, false},
	} {
		definition := `{"StartAt":"S","States":{"S":{"Type":"Choice","Choices":[{` + test.rule + `,"Next":"Yes"}],"Default":"No"},
			"Yes":{"Type":"Pass","Result":true,"End":true},"No":{"Type":"Pass","Result":false,"End":true}}}`
		x, _ := execute(t, definition, input, nil)
		if got := string(x.Output); got != map[bool]string{true: "true", false: "false"}[test.want] {
			t.Errorf("%s: %s", test.rule, summary(x))
		}
	}
}

func TestTheFirstChoiceThatMatchesIsTaken(t *testing.T) {
	const definition = `{"StartAt":"S","States":{"S":{"Type":"Choice","InputPath":"$.in","OutputPath":"$.a","Choices":[
		{"Variable":"$.a","NumericEquals":2,"Next":"Two"},{"Variable":"$.a","NumericLessThan":5,"Next":"Small"}]},
		"Two":{"Type":"Pass","Parameters":{"two.$":"$"},"End":true},"Small":{"Type":"Pass","Parameters":{"small.$":"$"},"End":true}}}`
	for input, want := range map[string]string{
		`{"in":{"a":2}}`: `SUCCEEDED {"two":2}`,
		`{"in":{"a":3}}`: `SUCCEEDED {"small":3}`,
		`{"in":{"a":9}}`: `FAILED States.NoChoiceMatched No choice rule of state 'S' matches, and it has no default`,
		`{"in":{}}`:      `FAILED States.Runtime An error occurred while executing the state 'S' (entered at the event id #2). Invalid path '$.a': The choice state's condition path references an invalid value.`,
	} {
		if x, _ := execute(t, definition, input, nil); summary(x) != want {
			t.Errorf("%s: got %s, want %s", input, summary(x), want)
		}
	}
}

func TestEveryEventFollowsAnEarlierOne(t *testing.T) {
	const definition = `{"StartAt":"A","States":{"A":{"Type":"Pass","Next":"B"},"B":{"Type":"Wait","Seconds":1,"Next":"C"},"C":{"Type":"Succeed"}}}`
	_, events := execute(t, definition, `{"a":1}`, nil)
	want := "ExecutionStarted PassStateEntered PassStateExited WaitStateEntered WaitStateExited SucceedStateEntered SucceedStateExited ExecutionSucceeded"
	if d := cmp.Diff(strings.Fields(want), types(events)); d != "" {
		t.Error(d)
	}
	for i, e := range events {
		before := int64(max(i, 0))
		if i == 1 {
			before = 0 // the first state follows no event, as in Step Functions
		}
		if e.ID != int64(i)+1 || e.PreviousEventID != before {
			t.Errorf("event %d has id %d and follows %d", i, e.ID, e.PreviousEventID)
		}
	}
}
