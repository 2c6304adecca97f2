//go:build emulators

package endtoend

import (
	"encoding/json"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	"github.com/aws/aws-sdk-go-v2/service/sfn/types"

	"github.com/slipway-cdk/slipway/pkg/assembly"
	"github.com/slipway-cdk/slipway/pkg/run"
	"github.com/slipway-cdk/slipway/pkg/runlog"
)

// costsVariable is the file that takes the counts, as JSON.
const costsVariable = "SLIPWAY_TEST_COSTS"

// cost is what a deploy has used of what AWS has a price for. Durations are those of this machine against the emulator.
type cost struct {
	Resources  int `json:"resources"`
	Executions int `json:"executions"`
	// Transitions are state transitions, those within waves included.
	Transitions int `json:"stateTransitions"`
	// Waits are how often an execution has waited for work in flight: each is three transitions (Wait, Plan next wave,
	// What next) and an invocation of the planner. Waits of the emulator take a tenth of their time: in AWS there are fewer.
	Waits     int              `json:"waits"`
	Functions map[string]*used `json:"functions"`
	// Calls are those of the functions, by service and operation.
	Calls map[string]map[string]int `json:"calls"`
}

type used struct {
	Invocations int     `json:"invocations"`
	Cold        int     `json:"coldStarts"`
	MemoryMB    int     `json:"memoryMb"`
	DurationMS  float64 `json:"durationMs"`
	// GBSeconds are billed: each invocation is rounded up to a millisecond, and a start counts.
	GBSeconds float64 `json:"gbSeconds"`
}

// TestWhatADeployUses counts it for documentation and prints it.
func TestWhatADeployUses(t *testing.T) {
	w := newWorld(t)
	counted := map[string]cost{}
	wide := chains(t, "Hundred"+randomHex(3), 10, 10)
	for _, c := range []struct {
		name     string
		assembly *assembly.Assembly
	}{
		{"guestbook", guestbook(t)},
		{"100 queues in 10 layers", wide},
	} {
		w.forget()
		h := w.run(c.assembly, run.Submission{Command: runlog.CommandDeploy}, runlog.ResultSucceeded)
		counted[c.name] = w.count(h)
		w.run(c.assembly, run.Submission{Command: runlog.CommandDestroy}, runlog.ResultSucceeded)
	}
	text, err := json.MarshalIndent(counted, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s", text)
	if file := os.Getenv(costsVariable); file != "" {
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range counted {
		// A deploy has its own planner calls and at least one transition and invocation for each resource.
		if c.Transitions < c.Resources || c.Functions["provisioner"] == nil || c.Functions["provisioner"].Invocations < c.Resources || c.Calls["dynamodb"]["PutItem"]+c.Calls["dynamodb"]["TransactWriteItems"] == 0 {
			t.Errorf("%s: these are no counts of a deploy: %+v", name, c)
		}
	}
}

// count reads the bridge's book and the histories of a deployment's executions.
func (w *world) count(root runlog.Header) cost {
	w.Helper()
	c := cost{Resources: root.Counts.Created, Functions: map[string]*used{}, Calls: map[string]map[string]int{}}
	for _, h := range w.runs(root.RunID) {
		c.Executions++
		transitions, waits := w.transitions(w.descriptor.Execution(h.Execution))
		c.Transitions, c.Waits = c.Transitions+transitions, c.Waits+waits
	}
	book := w.book()
	functions := lambda.NewFromConfig(w.cfg)
	for _, i := range book.Invocations {
		name := strings.TrimPrefix(i.Function, w.prefix+"-")
		if name == i.Function || name == "janitor" {
			continue // it sweeps every five minutes, whether something is deployed or not
		}
		u := c.Functions[name]
		if u == nil {
			out, err := functions.GetFunctionConfiguration(w.Context(), &lambda.GetFunctionConfigurationInput{FunctionName: aws.String(i.Function)})
			if err != nil {
				w.Fatal(err)
			}
			u = &used{MemoryMB: int(aws.ToInt32(out.MemorySize))}
			c.Functions[name] = u
		}
		u.Invocations++
		if i.Cold {
			u.Cold++
		}
		u.DurationMS = math.Round(10*(u.DurationMS+i.DurationMS)) / 10
		u.GBSeconds = math.Round(1e4*(u.GBSeconds+math.Ceil(i.DurationMS+i.InitMS)/1000*float64(u.MemoryMB)/1024)) / 1e4
	}
	for _, call := range book.Calls {
		if call.Function == w.name("janitor") || !strings.HasPrefix(call.Function, w.prefix) {
			continue
		}
		if c.Calls[call.Service] == nil {
			c.Calls[call.Service] = map[string]int{}
		}
		operation := call.Operation
		if strings.Contains(operation, "/") {
			operation = "REST" // of services that have no price for a call
		}
		c.Calls[call.Service][operation]++
	}
	return c
}

// transitions are the state transitions of an execution. The emulator does not tell of the states within a Map, only of
// their tasks: each item enters a Choice and a Task.
func (w *world) transitions(arn string) (n, waits int) {
	w.Helper()
	entered, tasks, scheduled := 0, 0, 0
	for pages := sfn.NewGetExecutionHistoryPaginator(w.machines, &sfn.GetExecutionHistoryInput{ExecutionArn: &arn}); pages.HasMorePages(); {
		page, err := pages.NextPage(w.Context())
		if err != nil {
			w.Fatal(err)
		}
		for _, e := range page.Events {
			if e.StateEnteredEventDetails != nil {
				entered++
			}
			switch e.Type {
			case types.HistoryEventTypeWaitStateEntered:
				waits++
			case types.HistoryEventTypeTaskStateEntered:
				tasks++
			case types.HistoryEventTypeTaskScheduled:
				scheduled++
			}
		}
	}
	return entered + 2*(scheduled-tasks), waits
}
