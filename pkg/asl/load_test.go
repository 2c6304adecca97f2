package asl_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/slipway-cdk/slipway/pkg/asl"
	"github.com/slipway-cdk/slipway/statemachine"
)

func substitutions() map[string]string {
	return map[string]string{
		statemachine.PlannerFunction: "planner", statemachine.ProvisionerFunction: "provisioner",
		statemachine.PublisherFunction: "publisher", statemachine.JanitorFunction: "janitor",
		statemachine.SettleStateMachine: settleARN,
	}
}

func TestTheShippedMachinesLoad(t *testing.T) {
	for name, definition := range map[string][]byte{"run": statemachine.Run, "settle": statemachine.Settle} {
		if _, err := asl.Load(definition, substitutions()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestPlaceholdersAreReplacedInStrings(t *testing.T) {
	m, err := asl.Load([]byte(one(`{"Type":"Pass","Comment":"${A}","Result":{"a":"${A}","list":["x ${A}${B}","$.a"]},"End":true}`)),
		map[string]string{"A": `quo"te`, "B": "$${x}"})
	if err != nil {
		t.Fatal(err)
	}
	e := newExecutor(t, functions{}, map[string]*asl.Machine{machineARN: m})
	x := outcome(t, e, machineARN, "x", "{}")
	if want := `SUCCEEDED {"a":"quo\"te","list":["x quo\"te$${x}","$.a"]}`; summary(x) != want {
		t.Errorf("got %s, want %s", summary(x), want)
	}
}

// refusals are definitions that must not load. A definition that starts with "Type" is the body of state S, which
// ends the machine.
var refusals = []struct{ name, definition string }{
	{"not JSON", `{"StartAt":`},
	{"two values", `{} {}`},
	{"not an object", `[]`},
	{"a member that stands twice", `{"StartAt":"S","StartAt":"S","States":{"S":{"Type":"Succeed"}}}`},
	{"no StartAt", `{"States":{"S":{"Type":"Succeed"}}}`},
	{"StartAt names nothing", `{"StartAt":"T","States":{"S":{"Type":"Succeed"}}}`},
	{"no States", `{"StartAt":"S"}`},
	{"no state", `{"StartAt":"S","States":{}}`},
	{"machine QueryLanguage", `{"QueryLanguage":"JSONata","StartAt":"S","States":{"S":{"Type":"Succeed"}}}`},
	{"machine Version", `{"Version":"1.0","StartAt":"S","States":{"S":{"Type":"Succeed"}}}`},
	{"machine timeout of no time", `{"TimeoutSeconds":0,"StartAt":"S","States":{"S":{"Type":"Succeed"}}}`},
	{"a state that nothing leads to", `{"StartAt":"S","States":{"S":{"Type":"Succeed"},"T":{"Type":"Succeed"}}}`},
	{"no end", `{"StartAt":"S","States":{"S":{"Type":"Pass","Next":"S"}}}`},
	{"a long name", `{"StartAt":"` + strings.Repeat("S", 81) + `","States":{"` + strings.Repeat("S", 81) + `":{"Type":"Succeed"}}}`},
	{"a state that is not an object", `{"StartAt":"S","States":{"S":"Succeed"}}`},
	{"a placeholder without a substitution", `"Type":"Pass","Result":"${Nothing}"`},

	{"no type", `"Comment":"nothing"`},
	{"Parallel", `"Type":"Parallel","Branches":[]`},
	{"an unknown type", `"Type":"task"`},
	{"a type that is not a string", `"Type":1`},
	{"an unknown field", `"Type":"Pass","Parametres":{}`},
	{"Assign", `"Type":"Pass","Assign":{"a":1}`},
	{"QueryLanguage", `"Type":"Pass","QueryLanguage":"JSONata"`},
	{"Next and End", `"Type":"Pass","Next":"S"`},
	{"End is false", `"Type":"Pass","Result":1,"End":false`},
	{"neither Next nor End", `{"StartAt":"S","States":{"S":{"Type":"Pass"}}}`},
	{"Next names nothing", `{"StartAt":"S","States":{"S":{"Type":"Pass","Next":"T"}}}`},
	{"Next of a Succeed", `{"StartAt":"S","States":{"S":{"Type":"Succeed","Next":"S"}}}`},
	{"OutputPath of a Fail", `{"StartAt":"S","States":{"S":{"Type":"Fail","OutputPath":"$"}}}`},
	{"ErrorPath", `{"StartAt":"S","States":{"S":{"Type":"Fail","ErrorPath":"$.e"}}}`},
	{"ResultPath of a Wait", `"Type":"Wait","Seconds":1,"ResultPath":"$.a"`},

	{"Seconds and SecondsPath", `"Type":"Wait","Seconds":1,"SecondsPath":"$.s"`},
	{"a Wait without a time", `"Type":"Wait"`},
	{"Timestamp", `"Type":"Wait","Timestamp":"2026-01-01T00:00:00Z"`},
	{"TimestampPath", `"Type":"Wait","TimestampPath":"$.t"`},
	{"half a second", `"Type":"Wait","Seconds":0.5`},
	{"negative seconds", `"Type":"Wait","Seconds":-1`},

	{"a function's own ARN", `"Type":"Task","Resource":"arn:aws:lambda:eu-west-1:111122223333:function:f","Parameters":{}`},
	{"an SDK integration", `"Type":"Task","Resource":"arn:aws:states:::aws-sdk:s3:getObject","Parameters":{}`},
	{"a task token", `"Type":"Task","Resource":"arn:aws:states:::lambda:invoke.waitForTaskToken","Parameters":{}`},
	{"startExecution.sync", `"Type":"Task","Resource":"arn:aws:states:::states:startExecution.sync","Parameters":{}`},
	{"no Resource", `"Type":"Task","Parameters":{}`},
	{"no Parameters", `"Type":"Task","Resource":"arn:aws:states:::lambda:invoke"`},
	{"no FunctionName", `"Type":"Task","Resource":"arn:aws:states:::lambda:invoke","Parameters":{"Payload":{}}`},
	{"no Payload", `"Type":"Task","Resource":"arn:aws:states:::lambda:invoke","Parameters":{"FunctionName":"f"}`},
	{"InvocationType", task(`"FunctionName":"f","Payload":{},"InvocationType":"Event"`)},
	{"TraceHeader", `"Type":"Task","Resource":"arn:aws:states:::states:startExecution","Parameters":{"StateMachineArn":"m","TraceHeader":"h"}`},
	{"HeartbeatSeconds", task(f, `"HeartbeatSeconds":1`)},
	{"TimeoutSecondsPath", task(f, `"TimeoutSecondsPath":"$.t"`)},
	{"Credentials", task(f, `"Credentials":{}`)},
	{"an intrinsic function", task(`"FunctionName":"f","Payload":{"a.$":"States.Format('{}', $.a)"}`)},
	{"an intrinsic function as a path", `"Type":"Pass","InputPath":"States.UUID()"`},
	{"a path that is no string", task(`"FunctionName":"f","Payload":{"a.$":1}`)},
	{"a path that is no path", task(`"FunctionName":"f","Payload":{"a.$":"a"}`)},
	{"a value and a path of one name", task(`"FunctionName":"f","Payload":{"a.$":"$.a","a":1}`)},
	{"Parameters that are no object", `"Type":"Pass","Parameters":[]`},
	{"a wildcard", `"Type":"Pass","InputPath":"$.a[*]"`},
	{"a descendant", `"Type":"Pass","InputPath":"$..a"`},
	{"a filter", `"Type":"Pass","InputPath":"$.a[?(@.b == 1)]"`},
	{"a slice", `"Type":"Pass","InputPath":"$.a[0:2]"`},
	{"a union", `"Type":"Pass","InputPath":"$.a[0,1]"`},
	{"a negative index", `"Type":"Pass","InputPath":"$.a[-1]"`},
	{"a path that does not end", `"Type":"Pass","InputPath":"$.a["`},
	{"a variable", `"Type":"Pass","InputPath":"$a"`},
	{"a context member that is not provided", `"Type":"Pass","Parameters":{"a.$":"$$.Task.Token"}`},
	{"a context object as a whole", `"Type":"Pass","Parameters":{"a.$":"$$"}`},
	{"State.RetryCount", `"Type":"Pass","Parameters":{"a.$":"$$.State.RetryCount"}`},
	{"a Map item outside of a Map", `"Type":"Pass","Parameters":{"a.$":"$$.Map.Item.Value"}`},
	{"a ResultPath into the context", `"Type":"Pass","ResultPath":"$$.a"`},
	{"a ResultPath into an array", `"Type":"Pass","ResultPath":"$.a[0]"`},
	{"a ResultPath that is a number", `"Type":"Pass","ResultPath":1`},

	{"no Choices", `{"StartAt":"S","States":{"S":{"Type":"Choice","Default":"T"},"T":{"Type":"Succeed"}}}`},
	{"empty Choices", choose()},
	{"a choice without Next", choose(`{"Variable":"$.a","IsPresent":true}`)},
	{"a choice without Variable", choose(`{"IsPresent":true,"Next":"T"}`)},
	{"a choice without an operator", choose(`{"Variable":"$.a","Next":"T"}`)},
	{"two operators", choose(`{"Variable":"$.a","IsPresent":true,"StringEquals":"b","Next":"T"}`)},
	{"StringMatches", choose(`{"Variable":"$.a","StringMatches":"b*","Next":"T"}`)},
	{"StringEqualsPath", choose(`{"Variable":"$.a","StringEqualsPath":"$.b","Next":"T"}`)},
	{"IsNull", choose(`{"Variable":"$.a","IsNull":true,"Next":"T"}`)},
	{"TimestampEquals", choose(`{"Variable":"$.a","TimestampEquals":"2026-01-01T00:00:00Z","Next":"T"}`)},
	{"a constant of another type", choose(`{"Variable":"$.a","StringEquals":1,"Next":"T"}`)},
	{"IsPresent with a string", choose(`{"Variable":"$.a","IsPresent":"true","Next":"T"}`)},
	{"Next inside of And", choose(`{"And":[{"Variable":"$.a","IsPresent":true,"Next":"T"}],"Next":"T"}`)},
	{"an empty Or", choose(`{"Or":[],"Next":"T"}`)},
	{"Not with an array", choose(`{"Not":[],"Next":"T"}`)},
	{"a Choice with Next", `{"StartAt":"S","States":{"S":{"Type":"Choice","Choices":[{"Variable":"$.a","IsPresent":true,"Next":"T"}],"Next":"T"},"T":{"Type":"Succeed"}}}`},
	{"a Default that names nothing", `{"StartAt":"S","States":{"S":{"Type":"Choice","Choices":[{"Variable":"$.a","IsPresent":true,"Next":"T"}],"Default":"U"},"T":{"Type":"Succeed"}}}`},

	{"ErrorEquals is missing", task(f, `"Retry":[{"MaxAttempts":1}]`)},
	{"ErrorEquals is empty", task(f, `"Retry":[{"ErrorEquals":[]}]`)},
	{"States.ALL with another", task(f, `"Retry":[{"ErrorEquals":["States.ALL","A"]}]`)},
	{"States.ALL before the last", task(f, `"Retry":[{"ErrorEquals":["States.ALL"]},{"ErrorEquals":["A"]}]`)},
	{"States.Runtime", task(f, `"Retry":[{"ErrorEquals":["States.Runtime"]}]`)},
	{"States.HeartbeatTimeout", task(f, `"Retry":[{"ErrorEquals":["States.HeartbeatTimeout"]}]`)},
	{"an empty Retry", task(f, `"Retry":[]`)},
	{"an interval of no time", task(f, `"Retry":[{"ErrorEquals":["A"],"IntervalSeconds":0}]`)},
	{"a backoff below 1", task(f, `"Retry":[{"ErrorEquals":["A"],"BackoffRate":0.5}]`)},
	{"negative attempts", task(f, `"Retry":[{"ErrorEquals":["A"],"MaxAttempts":-1}]`)},
	{"a maximum delay below the interval", task(f, `"Retry":[{"ErrorEquals":["A"],"IntervalSeconds":5,"MaxDelaySeconds":5}]`)},
	{"an unknown jitter", task(f, `"Retry":[{"ErrorEquals":["A"],"JitterStrategy":"HALF"}]`)},
	{"an unknown field of Retry", task(f, `"Retry":[{"ErrorEquals":["A"],"Interval":5}]`)},
	{"Retry of a Pass", `"Type":"Pass","Retry":[{"ErrorEquals":["A"]}]`},
	{"Catch without Next", task(f, `"Catch":[{"ErrorEquals":["A"]}]`)},
	{"Catch names nothing", task(f, `"Catch":[{"ErrorEquals":["A"],"Next":"T"}]`)},
	{"Catch with Output", task(f, `"Catch":[{"ErrorEquals":["A"],"Next":"S","Output":{}}]`)},

	{"a Map without ItemProcessor", `"Type":"Map"`},
	{"Iterator", `"Type":"Map","Iterator":{"StartAt":"T","States":{"T":{"Type":"Succeed"}}}`},
	{"a distributed Map", `"Type":"Map","ItemProcessor":{"ProcessorConfig":{"Mode":"DISTRIBUTED","ExecutionType":"STANDARD"},"StartAt":"T","States":{"T":{"Type":"Succeed"}}}`},
	{"ItemReader", mapOver(`{"T":{"Type":"Succeed"}}`, `"ItemReader":{}`)},
	{"ItemBatcher", mapOver(`{"T":{"Type":"Succeed"}}`, `"ItemBatcher":{}`)},
	{"ToleratedFailureCount", mapOver(`{"T":{"Type":"Succeed"}}`, `"ToleratedFailureCount":1`)},
	{"MaxConcurrencyPath", mapOver(`{"T":{"Type":"Succeed"}}`, `"MaxConcurrencyPath":"$.n"`)},
	{"Parameters of a Map", mapOver(`{"T":{"Type":"Succeed"}}`, `"Parameters":{}`)},
	{"ItemsPath into the context", mapOver(`{"T":{"Type":"Succeed"}}`, `"ItemsPath":"$$.Execution.Input"`)},
	{"a name that is used outside of the Map", mapOver(`{"T":{"Type":"Pass","Next":"S"},"S":{"Type":"Succeed"}}`)},
	{"a transition out of the Map", `{"StartAt":"S","States":{"S":{"Type":"Map","ItemProcessor":{"StartAt":"T","States":{"T":{"Type":"Pass","Next":"U"}}},"Next":"U"},"U":{"Type":"Succeed"}}}`},
	{"a state inside that is not supported", mapOver(`{"T":{"Type":"Parallel"}}`)},
}

const f = `"FunctionName":"f","Payload":{}`

// task is the body of a state that invokes a function.
func task(parameters string, fields ...string) string {
	return `"Type":"Task","Resource":"arn:aws:states:::lambda:invoke","Parameters":{` + parameters + `}` + more(fields)
}

func more(fields []string) string {
	all := ""
	for _, field := range fields {
		all += "," + field
	}
	return all
}

func choose(choices ...string) string {
	return `{"StartAt":"S","States":{"S":{"Type":"Choice","Choices":[` + strings.Join(choices, ",") + `],"Default":"T"},"T":{"Type":"Succeed"}}}`
}

func mapOver(states string, fields ...string) string {
	return `"Type":"Map","ItemProcessor":{"StartAt":"T","States":` + states + `}` + more(fields)
}

func TestWhatIsNotSupportedIsRefused(t *testing.T) {
	var b strings.Builder
	for _, r := range refusals {
		definition := r.definition
		if strings.HasPrefix(definition, `"`) {
			if !strings.Contains(definition, `"End":`) {
				definition += `,"End":true`
			}
			definition = one("{" + definition + "}")
		}
		_, err := asl.Load([]byte(definition), nil)
		if err == nil {
			t.Errorf("%s: loaded", r.name)
			continue
		}
		fmt.Fprintf(&b, "%s:\n    %s\n", r.name, strings.ReplaceAll(err.Error(), "\n", "\n    "))
	}
	golden(t, "refusals.txt", b.String())
}

func TestARefusalNamesItsState(t *testing.T) {
	_, err := asl.Load([]byte(one(`{"Type":"Pass","Foo":1,"End":true}`)), nil)
	var problem *asl.DefinitionError
	if !errors.As(err, &problem) || problem.State != "S" || problem.Reason != "field Foo is not supported" {
		t.Errorf("got %#v", err)
	}
}
