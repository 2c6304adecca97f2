package local

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/slipway-cdk/slipway/pkg/asl"
	"github.com/slipway-cdk/slipway/pkg/assembly"
	"github.com/slipway-cdk/slipway/pkg/run"
	"github.com/slipway-cdk/slipway/pkg/runlog"
	"github.com/slipway-cdk/slipway/pkg/sandbox"
)

// The bounds that the engine keeps well below Step Functions' own, 256 KiB and 25,000 events
// (https://docs.aws.amazon.com/step-functions/latest/dg/service-quotas.html).
const (
	payloadBound = 64 << 10
	historyBound = 15_000
)

// TestThreeThousandResourcesKeepPayloadsAndHistoriesSmall deploys them without an order among them, so that all are
// ready at once, and looks at everything that went in and out of a state.
func TestThreeThousandResourcesKeepPayloadsAndHistoriesSmall(t *testing.T) {
	const n = 3000
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Minute)
	defer cancel()
	p, err := Open(ctx, Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = p.Close() }()
	asm := independent(t, n)
	id, err := p.Submit(ctx, asm, asm.Stacks, run.Submission{Command: runlog.CommandDeploy, Caller: "test@host"})
	if err != nil {
		t.Fatal(err)
	}
	h, err := p.Wait(ctx, id)
	if err != nil || h.Result != runlog.ResultSucceeded || h.Counts.Created != n {
		t.Fatalf("the deploy ended as %s with %+v, %v", h.Result, h.Counts, err)
	}
	executions, err := p.Executions.List(ctx, asl.Query{})
	if err != nil {
		t.Fatal(err)
	}
	longest, largest, waves := 0, payload{}, 0
	for _, x := range executions {
		if x.Status != asl.StatusSucceeded {
			t.Errorf("execution %s is %s", x.Name, x.Status)
		}
		events, err := p.Executions.History(ctx, x.ARN, 0)
		if err != nil {
			t.Fatal(err)
		}
		longest = max(longest, len(events))
		for _, e := range events {
			if e.MapStateStarted != nil {
				waves++
				if e.MapStateStarted.Length > 200 {
					t.Errorf("a wave has %d items", e.MapStateStarted.Length)
				}
			}
			if got := of(e); got.size > largest.size {
				largest = got
			}
		}
	}
	t.Logf("%d resources: %d executions, %d waves, at most %d events in a history, the largest payload has %d bytes (%s)",
		n, len(executions), waves, longest, largest.size, largest.where)
	if longest >= historyBound {
		t.Errorf("a history has %d events", longest)
	}
	if largest.size > payloadBound {
		t.Errorf("%s has %d bytes", largest.where, largest.size)
	}
	// The deployment's, the stack's and at least one that went on with it.
	if len(executions) < 3 {
		t.Errorf("there are %d executions: nothing went on in a successor", len(executions))
	}
}

// payload is what went in or out somewhere, in bytes.
type payload struct {
	size  int
	where string
}

// of is the largest payload of an event.
func of(e asl.Event) payload {
	largest := payload{}
	see := func(text, name string) {
		if len(text) > largest.size {
			largest = payload{len(text), string(e.Type) + " " + name}
		}
	}
	if d := e.ExecutionStarted; d != nil {
		see(d.Input, "")
	}
	if d := e.ExecutionSucceeded; d != nil {
		see(d.Output, "")
	}
	if d := e.StateEntered; d != nil {
		see(d.Input, d.Name)
	}
	if d := e.StateExited; d != nil {
		see(d.Output, d.Name)
	}
	if d := e.TaskScheduled; d != nil {
		see(d.Parameters, d.Resource)
	}
	if d := e.TaskSubmitted; d != nil {
		see(d.Output, d.Resource)
	}
	if d := e.TaskSucceeded; d != nil {
		see(d.Output, d.Resource)
	}
	for _, d := range []*asl.TaskErrorDetails{e.TaskFailed, e.TaskTimedOut} {
		if d != nil {
			see(d.Cause, d.Resource)
		}
	}
	return largest
}

// independent is an assembly of one stack of n parameters that know nothing of each other. Their logical ids are as
// long as CDK's often are.
func independent(t *testing.T, n int) *assembly.Assembly {
	t.Helper()
	var resources []string
	for i := range n {
		resources = append(resources, fmt.Sprintf(
			`"TheParametersOfAnApplicationWithAnUsuallyLongPath%04dA1B2C3D4":{"Type":"AWS::SSM::Parameter","Properties":{"Type":"String","Value":"%d"}}`, i, i))
	}
	dir := t.TempDir()
	for name, body := range map[string]string{
		"manifest.json": `{"version":"38.0.0","artifacts":{"Wide":{"type":"aws:cloudformation:stack","environment":"aws://` + sandbox.DefaultAccount + "/" +
			sandbox.DefaultRegion + `","properties":{"templateFile":"wide.json"}}}}`,
		"wide.json": `{"Resources":{` + strings.Join(resources, ",") + `}}`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(body), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	asm, err := assembly.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	return asm
}
