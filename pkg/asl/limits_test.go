package asl_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/slipway-cdk/slipway/pkg/asl"
)

const limit = 262144

func TestDataAtTheLimitPassesAndOverItFails(t *testing.T) {
	text := func(bytes int) string {
		return `"` + strings.Repeat("é", (bytes-2)/2) + strings.Repeat("x", bytes%2) + `"`
	}
	const envelope = len(`{"ExecutedVersion":"$LATEST","Payload":,"StatusCode":200}`)
	invoke := func(fields ...string) string {
		return one(`{"Type":"Task","Resource":"arn:aws:states:::lambda:invoke","Parameters":{"FunctionName":"f","Payload":{}},"End":true` + more(fields) + `}`)
	}
	for _, test := range []struct {
		name       string
		definition string
		input      func(over int) string
		answer     func(over int) string
		cause      string
	}{
		{"the result of a task", invoke(`"ResultSelector":{}`), nil, func(over int) string { return text(limit - envelope + over) }, "'lambda'"},
		{"the output of a state", one(`{"Type":"Pass","Parameters":{"ab.$":"$"},"End":true}`), func(over int) string { return text(limit - len(`{"ab":}`) + over) }, nil, "'S'"},
		{"the payload of a task", one(`{"Type":"Task","Resource":"arn:aws:states:::lambda:invoke","Parameters":{"FunctionName":"f","Payload.$":"$"},"ResultSelector":{},"End":true}`),
			func(over int) string { return text(limit - len(`{"FunctionName":"f","Payload":}`) + over) }, nil, "'S'"},
		{"the results of a Map", one(`{` + mapOver(`{"T":{"Type":"Pass","Parameters":{"x.$":"$"},"End":true}}`) + `,"End":true}`),
			func(over int) string { return "[" + text(limit-len(`[{"x":}]`)+over) + "]" }, nil, "'S'"},
	} {
		for over, want := range []string{"SUCCEEDED", "FAILED States.DataLimitExceeded The state/task " + test.cause + " returned a result with a size exceeding the maximum number of bytes service limit."} {
			t.Run(fmt.Sprintf("%s %d over", test.name, over), func(t *testing.T) {
				input, answer := "{}", "{}"
				if test.input != nil {
					input = test.input(over)
				}
				if test.answer != nil {
					answer = test.answer(over)
				}
				x, _ := execute(t, test.definition, input, functions{"f": returns(answer)})
				if !strings.HasPrefix(summary(x), want) {
					t.Errorf("got %.300s, want %s", summary(x), want)
				}
			})
		}
	}
}

func TestAnInputOverTheLimitIsRefused(t *testing.T) {
	e := newExecutor(t, nil, map[string]*asl.Machine{machineARN: mustLoad(t, one(`{"Type":"Succeed"}`))})
	at := `"` + strings.Repeat("x", limit-2) + `"`
	if x := outcome(t, e, machineARN, "at", at); x.Status != asl.StatusSucceeded {
		t.Errorf("at the limit: %.100s", summary(x))
	}
	for name, input := range map[string]string{"over": `"x` + at[1:], "not JSON": "{", "two values": "1 2"} {
		if _, err := e.Start(t.Context(), machineARN, "over", []byte(input)); code(err) != asl.CodeInvalidExecutionInput {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAHistoryThatIsFullFailsTheExecution(t *testing.T) {
	const want = "FAILED States.Runtime The execution reached the maximum number of history events (25000)."
	for name, test := range map[string]struct{ definition, input string }{
		"in a loop": {`{"StartAt":"A","States":{"A":{"Type":"Pass","Next":"B"},"B":{"Type":"Choice","Choices":[{"Variable":"$.a","IsPresent":true,"Next":"A"}],"Default":"C"},"C":{"Type":"Succeed"}}}`, `{"a":1}`},
		"in a Map": {`{"StartAt":"S","States":{"S":{"Type":"Map","ItemsPath":"$.items","Catch":[{"ErrorEquals":["States.ALL"],"Next":"C"}],"ItemProcessor":{"StartAt":"A","States":{
			"A":{"Type":"Pass","Next":"B"},"B":{"Type":"Choice","Choices":[{"Variable":"$","IsPresent":true,"Next":"A"}],"Default":"D"},"D":{"Type":"Succeed"}}},"End":true},"C":{"Type":"Succeed"}}}`, items(5)},
	} {
		x, events := execute(t, test.definition, test.input, nil)
		if summary(x) != want || len(events) != 25000 || events[24999].Type != asl.ExecutionFailed || events[24999].ID != 25000 {
			t.Errorf("%s: %s after %d events", name, summary(x), len(events))
		}
	}
}

func TestExecutionNames(t *testing.T) {
	e := newExecutor(t, nil, map[string]*asl.Machine{machineARN: mustLoad(t, one(`{"Type":"Succeed"}`))})
	for _, name := range []string{"a", "Guest-Book_1.x", strings.Repeat("n", 80), "é" + strings.Repeat("n", 79), "a=b+c@d!(e)'"} {
		if _, err := e.Start(t.Context(), machineARN, name, nil); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
	for _, name := range []string{strings.Repeat("n", 81), "a b", "a\tb", "a<b", "a>", "{", "}", "[", "]", "?", "*", `"`, "#", "%", `\`, "^", "|", "~", "`", "$", "&", ",", ";", ":", "/", "\x7f", "\u0085", "\ufffe", "\xff"} {
		if _, err := e.Start(t.Context(), machineARN, name, nil); code(err) != asl.CodeInvalidName {
			t.Errorf("%q: %v", name, err)
		}
	}
}
