//go:build emulators

package endtoend

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	sdk "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	"github.com/aws/aws-sdk-go-v2/service/sfn/types"

	"github.com/slipway-cdk/slipway/pkg/assembly"
	"github.com/slipway-cdk/slipway/pkg/controlplane"
	"github.com/slipway-cdk/slipway/pkg/emulators"
	"github.com/slipway-cdk/slipway/pkg/emulators/bridge"
	"github.com/slipway-cdk/slipway/pkg/objectstore/s3"
	"github.com/slipway-cdk/slipway/pkg/run"
	"github.com/slipway-cdk/slipway/pkg/runlog"
	"github.com/slipway-cdk/slipway/pkg/runlog/dynamo"
)

// motoAccount is the account of moto's callers.
const motoAccount = "123456789012"

// parts are the functions and state machines of the control plane's template, by logical id.
type parts struct {
	Resources map[string]struct {
		Type       string
		Properties struct {
			Handler                 string
			MemorySize              int
			Environment             struct{ Variables map[string]any }
			DefinitionString        string
			DefinitionSubstitutions map[string]any
		}
		Metadata map[string]any
	}
}

// TestMotoAcceptsTheDefinitionsAndRunsThemToTheSameEnd plays a stack's life on moto's Step Functions, which execute
// definitions with a parser of their own. Its functions are the control plane's binaries.
func TestMotoAcceptsTheDefinitionsAndRunsThemToTheSameEnd(t *testing.T) {
	if name := os.Getenv(emulatorVariable); name != "moto" {
		t.Skipf("this is about moto, not %s", name)
	}
	ctx := t.Context()
	cfg := emulators.Config(t)
	executing(t, cfg)
	name := "t" + randomHex(4)
	values := map[string]string{
		controlplane.StateBucketVariable: name, controlplane.TableNameVariable: name,
		controlplane.RunStateMachineVariable: machineARN(name + "-run"), controlplane.JournalDaysVariable: "90",
	}
	if _, err := s3.NewClient(cfg, "").CreateBucket(ctx, &sdk.CreateBucketInput{Bucket: &name}); err != nil {
		t.Fatal(err)
	}
	if _, err := dynamodb.NewFromConfig(cfg).CreateTable(ctx, dynamo.Table(name)); err != nil {
		t.Fatal(err)
	}
	env, err := controlplane.ReadEnvironment(func(v string) string { return values[v] })
	if err != nil {
		t.Fatal(err)
	}
	machines := sfn.NewFromConfig(cfg)
	setUp(t, machines, name, values)
	w := &world{
		T: t, cfg: cfg, machines: machines, plane: controlplane.New(cfg, env, nil),
		descriptor: controlplane.Descriptor{StateMachine: values[controlplane.RunStateMachineVariable], Account: motoAccount, Region: region},
	}

	stack := "Pair" + randomHex(3)
	good := `{"Resources":{
		"Dead":{"Type":"AWS::SQS::Queue","Properties":{"QueueName":"` + stack + `-dead"}},
		"Jobs":{"Type":"AWS::SQS::Queue","Properties":{"QueueName":"` + stack + `-jobs",
			"RedrivePolicy":{"deadLetterTargetArn":{"Fn::GetAtt":["Dead","Arn"]},"maxReceiveCount":3}}},
		"Name":{"Type":"AWS::SSM::Parameter","Properties":{"Name":"/` + stack + `","Type":"String","Value":{"Ref":"Jobs"}}}}}`
	bad := strings.Replace(good, `"Resources":{`, `"Resources":{"Taken":{"Type":"AWS::SSM::Parameter","DependsOn":"Name","Properties":{"Name":"/`+stack+`","Type":"String","Value":"x"}},`, 1)
	for _, step := range []struct {
		name     string
		assembly *assembly.Assembly
		command  runlog.Command
		result   runlog.Result
		status   types.ExecutionStatus
		last     string
	}{
		{"deploy", written(t, stack, good), runlog.CommandDeploy, runlog.ResultSucceeded, types.ExecutionStatusSucceeded, "Run finished"},
		{"a deploy that fails", written(t, stack, bad), runlog.CommandDeploy, runlog.ResultFailed, types.ExecutionStatusFailed, "Run failed"},
		{"destroy", written(t, stack, good), runlog.CommandDestroy, runlog.ResultSucceeded, types.ExecutionStatusSucceeded, "Run finished"},
	} {
		h := w.run(step.assembly, run.Submission{Command: step.command}, step.result)
		arn := w.descriptor.Execution(h.Execution)
		var x *sfn.DescribeExecutionOutput
		w.until("the execution has ended", func(ctx context.Context) (bool, error) {
			var err error
			x, err = machines.DescribeExecution(ctx, &sfn.DescribeExecutionInput{ExecutionArn: &arn})
			return err == nil && x.Status != types.ExecutionStatusRunning, err
		})
		if x.Status != step.status {
			t.Errorf("%s: the execution is %s: %s %s", step.name, x.Status, aws.ToString(x.Error), aws.ToString(x.Cause))
		}
		if got := lastState(t, machines, arn); got != step.last {
			t.Errorf("%s: the execution ended in %q, want %q", step.name, got, step.last)
		}
	}
	if rec := w.record(stack); rec != nil {
		t.Errorf("a record is left: %+v", rec)
	}
	w.unlocked(stack)
}

func machineARN(name string) string {
	return "arn:aws:states:" + region + ":" + motoAccount + ":stateMachine:" + name
}

// setUp makes the template's state machines in moto and its functions in the bridge, with what the template says of them.
func setUp(t *testing.T, machines *sfn.Client, prefix string, values map[string]string) {
	t.Helper()
	dir := need(t, planeVariable)
	asm, err := assembly.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	var template parts
	if err := json.Unmarshal(asm.Stacks[0].Template, &template); err != nil {
		t.Fatal(err)
	}
	arns := map[string]string{}
	for id, r := range template.Resources {
		switch r.Type {
		case "AWS::Lambda::Function":
			arns[id] = "arn:aws:lambda:" + region + ":" + motoAccount + ":function:" + prefix + "-" + id
		case "AWS::StepFunctions::StateMachine":
			// The functions know the run's machine by its name.
			arns[id] = machineARN(prefix + "-" + strings.ToLower(strings.TrimSuffix(id, "Machine")))
		}
	}
	for id, r := range template.Resources {
		switch r.Type {
		case "AWS::Lambda::Function":
			environment := map[string]string{}
			for variable := range r.Properties.Environment.Variables {
				environment[variable] = values[variable] // what this test has not is empty, as an optional one is
			}
			archive, err := os.ReadFile(filepath.Join(dir, fmt.Sprint(r.Metadata["aws:asset:path"])))
			if err != nil {
				t.Fatal(err)
			}
			var added struct{ Code string }
			_, body := send(t, http.MethodPut, need(t, bridgeVariable)+"/bridge/code", archive)
			if err := json.Unmarshal(body, &added); err != nil || added.Code == "" {
				t.Fatalf("adding the code of %s: %s", id, body)
			}
			fn, err := json.Marshal(bridge.Function{
				Name: prefix + "-" + id, ARN: arns[id], Handler: r.Properties.Handler, MemoryMB: r.Properties.MemorySize,
				TimeoutSeconds: 900, Environment: environment, Code: added.Code,
			})
			if err != nil {
				t.Fatal(err)
			}
			if status, body := send(t, http.MethodPut, need(t, bridgeVariable)+"/bridge/functions/"+prefix+"-"+id, fn); status/100 != 2 {
				t.Fatalf("putting %s: %d %s", id, status, body)
			}
		case "AWS::StepFunctions::StateMachine":
			definition := r.Properties.DefinitionString
			for placeholder, v := range r.Properties.DefinitionSubstitutions {
				at, _ := v.(map[string]any)["Fn::GetAtt"].([]any)
				if len(at) != 2 || arns[fmt.Sprint(at[0])] == "" {
					t.Fatalf("%s: nobody knows %v", id, v)
				}
				definition = strings.ReplaceAll(definition, "${"+placeholder+"}", arns[fmt.Sprint(at[0])])
			}
			name := arns[id][strings.LastIndexByte(arns[id], ':')+1:]
			_, err := machines.CreateStateMachine(t.Context(), &sfn.CreateStateMachineInput{
				Name: &name, Definition: &definition, RoleArn: aws.String("arn:aws:iam::" + motoAccount + ":role/" + name),
			})
			if err != nil {
				t.Fatalf("moto does not accept %s: %v", id, err)
			}
		}
	}
}

// lastState is the state that an execution was in last.
func lastState(t *testing.T, machines *sfn.Client, arn string) string {
	t.Helper()
	last := ""
	for pages := sfn.NewGetExecutionHistoryPaginator(machines, &sfn.GetExecutionHistoryInput{ExecutionArn: &arn}); pages.HasMorePages(); {
		page, err := pages.NextPage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range page.Events {
			if e.StateEnteredEventDetails != nil {
				last = aws.ToString(e.StateEnteredEventDetails.Name)
			}
		}
	}
	return last
}

func send(t *testing.T, method, address string, body []byte) (int, []byte) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	out, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, out
}
