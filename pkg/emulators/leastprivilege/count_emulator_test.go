//go:build emulators

package leastprivilege

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/slipway-cdk/slipway/pkg/iampolicy/calls"
	"github.com/slipway-cdk/slipway/pkg/runlog"
)

// counting is the file that infra/cost computes from.
const counting = "../../../infra/testdata/counts.json"

// counted is what one deploy takes.
type counted struct {
	What        string         `json:"what"`
	Resources   int            `json:"resources"`
	Executions  int            `json:"executions"`
	Transitions int            `json:"transitions"` // of all executions
	Invocations map[string]int `json:"invocations"` // by function
	Requests    map[string]int `json:"requests"`    // by action, those of the caller among them
}

// queues is an app of one stack with so many queues, each of which waits for none.
func queues(n int, timeout string) map[string]string {
	var resources []string
	for i := range n {
		resources = append(resources, fmt.Sprintf(`"Q%d":{"Type":"AWS::SQS::Queue","Properties":{"VisibilityTimeout":%s}}`, i, timeout))
	}
	return map[string]string{
		"manifest.json":      `{"version":"48.0.0","artifacts":{"many":{"type":"aws:cloudformation:stack","properties":{"templateFile":"many.template.json","stackName":"many"}}}}`,
		"many.template.json": `{"Resources":{` + strings.Join(resources, ",") + `}}`,
	}
}

// count counts transitions, invocations and requests of a first deploy of 50 resources and of
// one that changes nothing. The emulated services answer at once: a resource that takes its time is polled, which takes
// a transition more for every look.
func (w *world) count() {
	w.Helper()
	w.rules(`,"roles":[{"arn":"` + role + `"}]`)
	var got []counted
	for _, what := range []string{"first deploy", "deploy without changes"} {
		w.recorder = &calls.Recorder{Next: w.router, Principals: w.recorder.Principals, Place: w.recorder.Place}
		w.connect()
		w.want(w.byCaller(runlog.CommandDeploy, "", w.synthesized(queues(50, "30")), nil), runlog.ResultSucceeded, what)
		c := counted{What: what, Resources: 50, Invocations: w.invocations, Requests: w.recorder.Times()}
		runs, err := w.planes["planner"].Engine.Log.ListRuns(w.Context(), runlog.Filter{})
		w.must(err)
		for _, h := range runs {
			history, err := w.executor.History(w.Context(), executions+h.Execution, 0)
			if err != nil {
				continue // it is of the deploy before
			}
			c.Executions++
			for _, e := range history {
				if strings.HasSuffix(string(e.Type), "StateEntered") {
					c.Transitions++
				}
			}
		}
		got = append(got, c)
	}
	if os.Getenv("SLIPWAY_RECORD_CALLS") != "" {
		b, err := json.MarshalIndent(got, "", "  ")
		w.must(err)
		w.must(os.WriteFile(counting, append(b, '\n'), 0o644))
		return
	}
	b, err := os.ReadFile(counting)
	w.must(err)
	var known []counted
	w.must(json.Unmarshal(b, &known))
	for i, c := range got {
		// How often a deployment looks for its stacks' runs is a matter of luck where waits take no time. A look is an
		// invocation of the planner and three transitions; the rest is the same every time.
		if c.rest() != known[i].rest() || c.Executions != known[i].Executions || c.Invocations["provisioner"] != known[i].Invocations["provisioner"] {
			w.Errorf("%s takes %d transitions and %v invocations; infra/testdata/counts.json says %d and %v", c.What, c.Transitions, c.Invocations, known[i].Transitions, known[i].Invocations)
		}
	}
}

func (c counted) rest() int { return c.Transitions - 3*c.Invocations["planner"] }
