package asl_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/slipway-cdk/slipway/pkg/asl"
	"github.com/slipway-cdk/slipway/statemachine"
)

const (
	runARN    = "arn:aws:states:eu-west-1:111122223333:stateMachine:run"
	settleARN = "arn:aws:states:eu-west-1:111122223333:stateMachine:settle"
)

// script answers the calls of one function in turn. An answer "!TYPE message" is a failure. A call that is not
// in the script fails the test.
type script struct {
	mu     sync.Mutex
	calls  []string
	answer map[string][]string // by function, and operation or action
}

func (s *script) Invoke(_ context.Context, function string, payload []byte) ([]byte, error) {
	var in struct{ Action, Op string }
	if err := json.Unmarshal(payload, &in); err != nil {
		return nil, err
	}
	key := function + " " + cmp.Or(in.Op, in.Action)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, function+" "+string(payload))
	if len(s.answer[key]) == 0 {
		return nil, &asl.FunctionError{Type: "NotInTheScript", Message: key}
	}
	answer := s.answer[key][0]
	s.answer[key] = s.answer[key][1:]
	if failure, ok := strings.CutPrefix(answer, "!"); ok {
		kind, message, _ := strings.Cut(failure, " ")
		return nil, &asl.FunctionError{Type: kind, Message: message}
	}
	return []byte(answer), nil
}

// startDates depend on how often the clock was asked to sleep, and so on jitter.
var startDates = regexp.MustCompile(`(StartDate|StopDate)\\":\d+`)

const (
	next = `{"kind":"NEXT","runId":"r-1","decision":0}`
	done = `{"kind":"DONE","runId":"r-1","decision":9}`
)

// wave is a decision to run one item.
func wave(n int, item string) string {
	return fmt.Sprintf(`{"kind":"WAVE","runId":"r-1","decision":%d,"wave":%d,"epoch":1,"slice":20,"items":[%s]}`, n, n, item)
}

const bucket = `{"kind":"resource","op":"o-1","logicalId":"Bucket","type":"AWS::S3::Bucket","action":"CREATE"}`

func TestTheRunMachine(t *testing.T) {
	for _, test := range []struct {
		name, input string
		answer      map[string][]string
		want        string
		others      []string // how the other executions ended
	}{
		{"a deploy", `{"runId":"r-1"}`, map[string][]string{
			"planner open":    {next},
			"planner next":    {wave(1, bucket), `{"kind":"WAIT","runId":"r-1","decision":2,"seconds":5}`, done},
			"provisioner o-1": {`{"secret":"dropped"}`},
			"planner close":   {`{"result":"SUCCEEDED"}`},
		}, `SUCCEEDED {"result":"SUCCEEDED"}`, nil},

		{"a successor", `{"runId":"r-1","decision":7}`, map[string][]string{
			"planner next": {done}, "planner close": {`{"result":"SUCCEEDED"}`},
		}, `SUCCEEDED {"result":"SUCCEEDED"}`, nil},

		{"continued in a successor", `{"runId":"r-1"}`, map[string][]string{
			"planner open":  {`{"kind":"CONTINUE","runId":"r-1","decision":7,"successor":"x-2"}`},
			"planner next":  {done},
			"planner close": {`{"result":"SUCCEEDED"}`},
		}, `SUCCEEDED {"result":"SUCCEEDED"}`, []string{`run:x-2 SUCCEEDED {"result":"SUCCEEDED"}`}},

		{"a refusal", `{"runId":"r-1"}`, map[string][]string{
			"planner open": {`{"kind":"REFUSED","runId":"r-1"}`},
		}, "FAILED Slipway.RunFailed The run did not succeed. Its events say why: slipway events STACK.", nil},

		{"a run that failed", `{"runId":"r-1","decision":7}`, map[string][]string{
			"planner next": {done}, "planner close": {`{"result":"FAILED"}`},
		}, "FAILED Slipway.RunFailed The run did not succeed. Its events say why: slipway events STACK.", nil},

		{"failures are retried, caught and settled", `{"runId":"r-1"}`, map[string][]string{
			"planner open":    {"!Slipway.Unavailable the store does not answer", "!Lambda.TooManyRequestsException", next},
			"planner next":    {wave(1, bucket), "!Slipway.LockLost the lock is gone"},
			"provisioner o-1": {"!errorString out of luck"},
			"janitor settle":  {"!errorString once more", `{"runId":"r-1","settled":false,"seconds":30}`, `{"runId":"r-1","settled":true}`},
		}, "FAILED Slipway.RunFailed The run did not succeed. Its events say why: slipway events STACK.", []string{`settle:GENERATED SUCCEEDED {"runId":"r-1","settled":true}`}},

		{"a decision that is not known", `{"runId":"r-1"}`, map[string][]string{
			"planner open":   {`{"kind":"DANCE","runId":"r-1"}`},
			"janitor settle": {`{"settled":true}`},
		}, "FAILED Slipway.RunFailed The run did not succeed. Its events say why: slipway events STACK.", []string{`settle:GENERATED SUCCEEDED {"settled":true}`}},

		{"a deployment of assets and stacks", `{"runId":"r-1"}`, map[string][]string{
			"planner open": {wave(1, `{"kind":"asset","op":"o-1","logicalId":"Code","type":"asset","action":"PUBLISH"}`),
				`{"kind":"REFUSED","runId":"r-2"}`},
			"planner next": {wave(2, `{"kind":"stack","op":"o-2","execution":"web-deploy-r-2","childRun":"r-2"}`),
				wave(3, `{"kind":"cloud","op":"o-3"}`), done},
			"publisher o-1": {`{}`},
			"planner close": {`{"result":"SUCCEEDED"}`},
		}, `SUCCEEDED {"result":"SUCCEEDED"}`, []string{`run:web-deploy-r-2 FAILED Slipway.RunFailed The run did not succeed. Its events say why: slipway events STACK.`}},

		{"a run that cannot be started", `{"runId":"r-1"}`, map[string][]string{
			"planner open":  {wave(1, `{"kind":"stack","op":"o-1","execution":"no name","childRun":"r-2"}`)},
			"planner o-1":   {`{}`},
			"planner next":  {done},
			"planner close": {`{"result":"SUCCEEDED"}`},
		}, `SUCCEEDED {"result":"SUCCEEDED"}`, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			run, err := asl.Load(statemachine.Run, substitutions())
			if err != nil {
				t.Fatal(err)
			}
			settle, err := asl.Load(statemachine.Settle, substitutions())
			if err != nil {
				t.Fatal(err)
			}
			s := &script{answer: test.answer}
			e := newExecutor(t, s, map[string]*asl.Machine{runARN: run, settleARN: settle})
			x := outcome(t, e, runARN, "x-1", test.input)
			if summary(x) != test.want {
				t.Errorf("got %s, want %s", summary(x), test.want)
			}
			text := render(t, historyOf(t, e, x.ARN))

			all, err := e.Store.List(t.Context(), asl.Query{})
			if err != nil {
				t.Fatal(err)
			}
			var others []string
			for _, other := range all {
				if other.ARN == x.ARN {
					continue
				}
				other, err := e.Wait(t.Context(), other.ARN)
				if err != nil {
					t.Fatal(err)
				}
				id := strings.TrimPrefix(other.ARN, "arn:aws:states:eu-west-1:111122223333:execution:")
				history := render(t, historyOf(t, e, other.ARN))
				if strings.HasPrefix(id, "settle:") { // its name is generated
					name := other.Name
					id = "settle:GENERATED"
					text, history = strings.ReplaceAll(text, name, "GENERATED"), strings.ReplaceAll(history, name, "GENERATED")
				}
				others = append(others, id+" "+summary(other))
				text += "\n" + id + "\n" + history
			}
			if strings.Join(others, "\n") != strings.Join(test.others, "\n") {
				t.Errorf("other executions:\n%s\nwant:\n%s", strings.Join(others, "\n"), strings.Join(test.others, "\n"))
			}
			for key, left := range test.answer {
				if len(left) > 0 {
					t.Errorf("%s was not asked for %v", key, left)
				}
			}
			if strings.Contains(text, "NotInTheScript") {
				t.Errorf("a call is not in the script: %v", s.calls)
			}
			golden(t, "history/"+strings.ReplaceAll(test.name, " ", "-")+".txt", startDates.ReplaceAllString(text, `$1\":0`))
		})
	}
}
