//go:build emulators

package controlplane

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/lambda/messages"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/cloudcontrol"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	sdk "github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/slipway-cdk/slipway/pkg/asl"
	"github.com/slipway-cdk/slipway/pkg/clock"
	"github.com/slipway-cdk/slipway/pkg/emulators"
	"github.com/slipway-cdk/slipway/pkg/objectstore"
	"github.com/slipway-cdk/slipway/pkg/objectstore/s3"
	"github.com/slipway-cdk/slipway/pkg/provider"
	cc "github.com/slipway-cdk/slipway/pkg/provider/cloudcontrol"
	"github.com/slipway-cdk/slipway/pkg/run"
	"github.com/slipway-cdk/slipway/pkg/runlog"
	"github.com/slipway-cdk/slipway/pkg/runlog/dynamo"
	"github.com/slipway-cdk/slipway/pkg/sandbox"
	"github.com/slipway-cdk/slipway/pkg/state"
	"github.com/slipway-cdk/slipway/statemachine"
)

// trial is a plane on an emulator's S3 and DynamoDB. The shipped state machines run in this process and
// invoke its functions; resources live in the sandbox, since no emulator has a faithful Cloud Control.
type trial struct {
	plane    *Plane
	sandbox  *sandbox.Sandbox
	executor *asl.Executor
	client   *dynamodb.Client
}

const (
	trialRegion = "us-east-1"
	runMachine  = "arn:aws:states:us-east-1:" + sandbox.DefaultAccount + ":stateMachine:slipway-run"
	runName     = "arn:aws:states:us-east-1:" + sandbox.DefaultAccount + ":execution:slipway-run:"
)

func newTrial(t *testing.T) *trial {
	t.Helper()
	ctx := t.Context()
	cfg := emulators.Config(t)
	name := fmt.Sprintf("slipway-plane-%d", time.Now().UnixNano())
	if _, err := s3.NewClient(cfg, "").CreateBucket(ctx, &sdk.CreateBucketInput{Bucket: &name}); err != nil {
		t.Fatal(err)
	}
	client := dynamodb.NewFromConfig(cfg)
	if _, err := client.CreateTable(ctx, dynamo.Table(name)); err != nil {
		t.Fatal(err)
	}
	if err := dynamodb.NewTableExistsWaiter(client).Wait(ctx, &dynamodb.DescribeTableInput{TableName: &name}, time.Minute); err != nil {
		t.Fatal(err)
	}
	env := environment(t, map[string]string{StateBucketVariable: name, TableNameVariable: name, RunStateMachineVariable: runMachine})
	tr := &trial{plane: New(cfg, env, nil), client: client}
	var err error
	if tr.sandbox, err = sandbox.Open(ctx, t.TempDir(), sandbox.Options{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tr.sandbox.Close() })
	endpoint, err := tr.sandbox.Serve()
	if err != nil {
		t.Fatal(err)
	}
	clk := clock.Scaled{}
	tr.plane.Engine.Clock = clk
	registry := tr.plane.Engine.Providers.(*provider.Registry)
	registry.Direct = nil // the sandbox has the resources
	registry.CloudControl = provider.Named{Provider: &cc.Provider{Clock: clk, Client: func(account, region string) cc.API {
		return cloudcontrol.New(cloudcontrol.Options{
			Region: region, BaseEndpoint: aws.String(endpoint), Credentials: credentials.NewStaticCredentialsProvider(account, "sandbox", ""),
		})
	}}}
	functions := map[string]string{
		statemachine.PlannerFunction: "planner", statemachine.ProvisionerFunction: "provisioner",
		statemachine.PublisherFunction: "publisher", statemachine.JanitorFunction: "janitor",
		statemachine.SettleStateMachine: "arn:aws:states:us-east-1:" + sandbox.DefaultAccount + ":stateMachine:slipway-settle",
	}
	machines := map[string]*asl.Machine{}
	for arn, definition := range map[string][]byte{runMachine: statemachine.Run, functions[statemachine.SettleStateMachine]: statemachine.Settle} {
		if machines[arn], err = asl.Load(definition, functions); err != nil {
			t.Fatal(err)
		}
	}
	tr.executor = &asl.Executor{Machines: machines, Functions: tr, Store: asl.NewMemoryStore(), Clock: clk, Holder: "test"}
	tr.plane.Engine.Executions = tr
	t.Cleanup(func() { _ = tr.executor.Close() })
	return tr
}

// Running implements run.Executions.
func (tr *trial) Running(ctx context.Context, name string) (bool, error) {
	e, err := tr.executor.Describe(ctx, runName+name)
	if errors.Is(err, asl.ErrNotFound) {
		return false, nil
	}
	return e.Status == asl.StatusRunning, err
}

// HolderAlive implements run.Executions.
func (tr *trial) HolderAlive(context.Context, string) bool { return true }

// Invoke implements asl.Functions: each function as Lambda runs it, its own wrapping included.
func (tr *trial) Invoke(ctx context.Context, name string, payload []byte) ([]byte, error) {
	handlers := map[string]Handler{
		"planner": (*Plane).Planner, "provisioner": (*Plane).Provisioner, "publisher": (*Plane).Publisher, "janitor": (*Plane).Janitor,
	}
	f := &Function{Handle: handlers[name], Open: func(context.Context) (*Plane, error) { return tr.plane, nil }}
	out, err := f.Invoke(ctx, payload)
	if failure, ok := lambdaFailure(err); ok {
		return nil, &asl.FunctionError{Type: failure.Type, Message: failure.Message}
	}
	return out, err
}

// run carries a command on one stack to its end and returns the run of the stack.
func (tr *trial) run(t *testing.T, command runlog.Command, template string) runlog.Header {
	t.Helper()
	ctx := t.Context()
	e := tr.plane.Engine
	now := time.Now().UTC()
	stack := run.StackRequest{
		StackRef: runlog.StackRef{Account: sandbox.DefaultAccount, Region: trialRegion, Name: "App"}, DisplayName: "App",
	}
	if template != "" {
		stack.TemplateKey = run.TemplateKey(fmt.Sprint(now.UnixNano()))
		if _, err := e.Objects.Put(ctx, stack.TemplateKey, []byte(template), objectstore.Condition{IfNoneMatch: true}); err != nil {
			t.Fatal(err)
		}
	}
	h, err := e.Submit(ctx, run.Request{
		Version: run.RequestVersion, RunID: run.NewRunID(now), Command: command, Caller: "me@host", Region: trialRegion,
		Stacks: []run.StackRequest{stack}, CreatedAt: now,
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tr.executor.Start(ctx, runMachine, h.Execution, []byte(`{"runId":"`+h.RunID+`"}`)); err != nil {
		t.Fatal(err)
	}
	if _, err := tr.executor.Wait(ctx, runName+h.Execution); err != nil {
		t.Fatal(err)
	}
	head, err := e.Log.Head(ctx, stack.StackRef)
	if err != nil || head == "" {
		t.Fatalf("the head of the stack is %q, %v", head, err)
	}
	if h, err = e.Log.Header(ctx, head); err != nil {
		t.Fatal(err)
	}
	return h
}

const twoQueues = `{"Resources":{
	"Dead":{"Type":"AWS::SQS::Queue","Properties":{"MessageRetentionPeriod":1209600}},
	"Jobs":{"Type":"AWS::SQS::Queue","Properties":{"VisibilityTimeout":%d,
		"RedrivePolicy":{"deadLetterTargetArn":{"Fn::GetAtt":["Dead","Arn"]},"maxReceiveCount":3}}}},
	"Outputs":{"Url":{"Value":{"Ref":"Jobs"}}}}`

func TestAStackIsDeployedChangedAndDestroyedByTheFunctions(t *testing.T) {
	tr := newTrial(t)
	ctx := t.Context()
	deployed := tr.run(t, runlog.CommandDeploy, fmt.Sprintf(twoQueues, 30))
	if deployed.Status != runlog.StatusClosed || deployed.Result != runlog.ResultSucceeded || deployed.Counts.Created != 2 {
		t.Fatalf("the deploy ended as %+v", deployed)
	}
	rec, _, err := tr.plane.Engine.States.Load(ctx, "App", trialRegion)
	if err != nil || len(rec.Resources) != 2 {
		t.Fatalf("the record is %+v, %v", rec, err)
	}
	// Its journal expires, its header does not.
	events, err := tr.plane.Engine.Log.Events(ctx, deployed.RunID, "")
	if err != nil || len(events) == 0 || events[len(events)-1].Type != runlog.RunFinished {
		t.Fatalf("the events are %v, %v", events, err)
	}
	for sk, want := range map[string]bool{"header": false, "op#Jobs": true, "event#" + events[0].ID: true} {
		if got := tr.expires(t, deployed.RunID, sk); got != want {
			t.Errorf("%s expires: %t", sk, got)
		}
	}
	again := tr.run(t, runlog.CommandDeploy, fmt.Sprintf(twoQueues, 30))
	if again.Result != runlog.ResultSucceeded || again.Counts.Created+again.Counts.Updated != 0 {
		t.Errorf("a deploy of the same ended as %+v", again)
	}
	changed := tr.run(t, runlog.CommandDeploy, fmt.Sprintf(twoQueues, 60))
	if changed.Result != runlog.ResultSucceeded || changed.Counts.Updated != 1 {
		t.Errorf("a change ended as %+v", changed)
	}
	destroyed := tr.run(t, runlog.CommandDestroy, "")
	if destroyed.Result != runlog.ResultSucceeded || destroyed.Counts.Deleted != 2 {
		t.Errorf("the destroy ended as %+v", destroyed)
	}
	if left, err := tr.sandbox.List(ctx, sandbox.Filter{}); err != nil || len(left) != 0 {
		t.Errorf("these live on: %v, %v", left, err)
	}
	if _, err := tr.plane.Engine.States.ReadLock(ctx, "App", trialRegion); !errors.Is(err, state.ErrNotFound) {
		t.Errorf("the lock: %v", err)
	}
	runs, err := tr.plane.Engine.Log.ListRuns(ctx, runlog.Filter{Stack: deployed.Stack})
	if err != nil || len(runs) != 4 || runs[0].RunID != destroyed.RunID {
		t.Errorf("the runs of the stack are %+v, %v", runs, err)
	}
}

func (tr *trial) expires(t *testing.T, runID, sk string) bool {
	t.Helper()
	partition := "run#"
	if strings.HasPrefix(sk, "op#") {
		partition = "ops#"
	}
	out, err := tr.client.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: &tr.plane.log.Table, Key: dynamoKey(partition+runID, sk)})
	if err != nil || len(out.Item) == 0 {
		t.Fatalf("there is no item %s: %v", sk, err)
	}
	_, ok := out.Item[dynamo.ExpiryAttribute]
	return ok
}

func dynamoKey(pk, sk string) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: pk}, "sk": &types.AttributeValueMemberS{Value: sk}}
}

func lambdaFailure(err error) (messages.InvokeResponse_Error, bool) {
	failure, ok := err.(messages.InvokeResponse_Error) //nolint:errorlint // Lambda's own check
	return failure, ok
}
