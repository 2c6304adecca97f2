//go:build emulators

package endtoend

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	"github.com/aws/aws-sdk-go-v2/service/sfn/types"

	"github.com/slipway-cdk/slipway/pkg/assembly"
	"github.com/slipway-cdk/slipway/pkg/run"
	"github.com/slipway-cdk/slipway/pkg/runlog"
)

// chains is an assembly of one stack with queues that wait for each other, so that they take several waves.
func chains(t *testing.T, stack string, length, width int) *assembly.Assembly {
	t.Helper()
	var resources []string
	for i := range length {
		for j := range width {
			after := ""
			if i > 0 {
				after = fmt.Sprintf(`,"DependsOn":"Q%dx%d"`, i-1, j)
			}
			resources = append(resources, fmt.Sprintf(`"Q%dx%d":{"Type":"AWS::SQS::Queue","Properties":{"QueueName":"%s-%d-%d"}%s}`, i, j, stack, i, j, after))
		}
	}
	return written(t, stack, `{"Resources":{`+strings.Join(resources, ",")+`}}`)
}

// written is an assembly of one stack with a template.
func written(t *testing.T, stack, template string) *assembly.Assembly {
	t.Helper()
	dir := t.TempDir()
	for name, body := range map[string]string{
		"manifest.json": `{"version":"38.0.0","artifacts":{"` + stack + `":{"type":"aws:cloudformation:stack","environment":"aws://unknown-account/unknown-region","properties":{"templateFile":"template.json"}}}}`,
		"template.json": template,
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

func TestAnExecutionThatIsStoppedInAWaveIsSettledAndNothingIsLost(t *testing.T) {
	w := newWorld(t)
	stack := "Chains" + randomHex(3)
	asm := chains(t, stack, 4, 6)
	before := w.inventory()
	root := w.submit(asm, run.Submission{Command: runlog.CommandDeploy})

	// In the second wave of the stack's run, when some of its queues are made.
	var child runlog.Header
	w.until("the second wave has begun", func(ctx context.Context) (bool, error) {
		list, err := w.plane.Engine.Log.ListRuns(ctx, runlog.Filter{Root: root.RunID})
		for _, h := range list {
			if h.Stack.Name == stack {
				child = h
			}
		}
		return child.Waves >= 2, err
	})
	arn := w.descriptor.Execution(child.Execution)
	if _, err := w.machines.StopExecution(t.Context(), &sfn.StopExecutionInput{ExecutionArn: &arn, Error: aws.String("Test.Stopped"), Cause: aws.String("in a wave")}); err != nil {
		t.Fatal(err)
	}
	x, err := w.machines.DescribeExecution(t.Context(), &sfn.DescribeExecutionInput{ExecutionArn: &arn})
	if err != nil || x.Status != types.ExecutionStatusAborted {
		t.Fatalf("the execution is %s, %v", x.Status, err)
	}

	// EventBridge tells the machine that starts the janitor; nobody here does.
	child = w.wait(child.RunID)
	if child.Result != runlog.ResultFailed {
		t.Errorf("the stopped run ended as %s", child.Result)
	}
	if h := w.wait(root.RunID); h.Result != runlog.ResultFailed {
		t.Errorf("the deployment ended as %s", h.Result)
	}
	w.unlocked(stack)
	rec := w.record(stack)
	if rec == nil || len(rec.Resources) == 0 || len(rec.Resources) == 24 {
		t.Fatalf("it was not stopped in a wave: %+v", rec)
	}
	w.live(rec)
	recorded := map[string]bool{}
	for _, r := range rec.Resources {
		recorded["queue "+r.PhysicalID] = true
	}
	for _, d := range difference(before, w.inventory()) {
		if name, more := strings.CutPrefix(d, "+ "); !more || !recorded[name] {
			t.Errorf("not in the record: %s", d)
		}
	}

	// Another deploy goes on where it was stopped, and makes nothing twice.
	h := w.run(asm, run.Submission{Command: runlog.CommandDeploy}, runlog.ResultSucceeded)
	if made := len(rec.Resources) + h.Counts.Created; made != 24 {
		t.Errorf("%d queues were recorded and %d made after that, of 24", len(rec.Resources), h.Counts.Created)
	}
	w.live(w.record(stack))
	w.run(asm, run.Submission{Command: runlog.CommandDestroy}, runlog.ResultSucceeded)
	if d := difference(before, w.inventory()); len(d) > 0 {
		t.Errorf("the destroy leaves (-before +after):\n%s", strings.Join(d, "\n"))
	}
}
