//go:build emulators

package leastprivilege

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/lambda/messages"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	sdk "github.com/aws/aws-sdk-go-v2/service/s3"
	s3types "github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	sfntypes "github.com/aws/aws-sdk-go-v2/service/sfn/types"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	ssmtypes "github.com/aws/aws-sdk-go-v2/service/ssm/types"

	"github.com/slipway-cdk/slipway/pkg/asl"
	"github.com/slipway-cdk/slipway/pkg/clock"
	"github.com/slipway-cdk/slipway/pkg/controlplane"
	"github.com/slipway-cdk/slipway/pkg/emulators"
	"github.com/slipway-cdk/slipway/pkg/iampolicy/calls"
	"github.com/slipway-cdk/slipway/pkg/objectstore/s3"
	"github.com/slipway-cdk/slipway/pkg/provider"
	"github.com/slipway-cdk/slipway/pkg/remote"
	"github.com/slipway-cdk/slipway/pkg/run"
	"github.com/slipway-cdk/slipway/pkg/runlog/dynamo"
	"github.com/slipway-cdk/slipway/pkg/sandbox"
	"github.com/slipway-cdk/slipway/pkg/trigger"
	"github.com/slipway-cdk/slipway/statemachine"
)

// The names in the recording: those that the evaluation gives to the template's parameters and resources.
const (
	// An account that no other suite has, because names of buckets are everybody's.
	account     = "210987654321"
	region      = "us-east-1"
	stateBucket = "state-bucket"
	uploads     = "uploads-bucket"
	table       = "run-log"
	assets      = "cdk-hnb659fds-assets-" + account + "-" + region
	runMachine  = "arn:aws:states:" + region + ":" + account + ":stateMachine:slipway-run"
	executions  = "arn:aws:states:" + region + ":" + account + ":execution:slipway-run:"
	userID      = "AROACALLER:ann"
	role        = "arn:aws:iam::" + account + ":role/slipway-execution-web"
)

// world is a control plane on an emulator, each function of which has an access key of its own. The state machines run
// in this process; what Cloud Control makes is in the sandbox.
type world struct {
	*testing.T
	recorder *calls.Recorder
	router   *router
	planes   map[string]*controlplane.Plane
	executor *asl.Executor
	trigger  *trigger.Trigger
	vaultKey string
	bucket   *sdk.Client // as the administrator, who is not recorded

	mu          sync.Mutex
	invocations map[string]int // by function
}

// router sends calls of Cloud Control to the sandbox, whose access keys are accounts, and all others to the emulator.
type router struct {
	next    http.RoundTripper
	sandbox *url.URL
	// lost: calls that make a resource are lost on their way.
	lost atomic.Bool
}

func (r *router) RoundTrip(req *http.Request) (*http.Response, error) {
	s, ok := calls.SignatureOf(req)
	if ok && s.Service == "ssm" {
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return nil, err
		}
		if bytes.Contains(body, []byte(`"/aws/service/`)) {
			// AWS's own parameters, which no emulator lets anybody make.
			answer := io.NopCloser(strings.NewReader(`{"Parameter":{"Type":"String","Value":"image-1"}}`))
			return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: answer, Request: req, ProtoMajor: 1, ProtoMinor: 1}, nil
		}
		req = req.Clone(req.Context())
		req.Body = io.NopCloser(bytes.NewReader(body))
	}
	if ok && s.Service != "cloudcontrolapi" && strings.HasPrefix(s.AccessKey, "ASIA") {
		// The emulator takes a role's session for another account's.
		req = req.Clone(req.Context())
		req.Header.Set("Authorization", strings.Replace(req.Header.Get("Authorization"), "Credential="+s.AccessKey+"/", "Credential=testing/", 1))
		req.Header.Del("X-Amz-Security-Token")
	}
	if !ok || s.Service != "cloudcontrolapi" {
		return r.next.RoundTrip(req)
	}
	if r.lost.Load() && strings.HasSuffix(req.Header.Get("X-Amz-Target"), ".CreateResource") {
		return nil, errors.New("the call was lost")
	}
	req = req.Clone(req.Context())
	req.URL.Scheme, req.URL.Host, req.Host = r.sandbox.Scheme, r.sandbox.Host, r.sandbox.Host
	req.Header.Set("Authorization", strings.Replace(req.Header.Get("Authorization"), "Credential="+s.AccessKey+"/", "Credential="+account+"/", 1))
	return r.next.RoundTrip(req)
}

// keyOf is the access key of a principal.
func keyOf(principal string) string { return "AKID" + strings.ToUpper(principal) }

func (w *world) config(principal string) aws.Config {
	cfg := emulators.Config(w.T)
	cfg.Region, cfg.Credentials = region, credentials.NewStaticCredentialsProvider(keyOf(principal), "secret", "")
	cfg.HTTPClient = &http.Client{Transport: w.recorder}
	return cfg
}

// newWorld makes everything that the template makes, and what is there before.
func newWorld(t *testing.T) *world {
	t.Helper()
	ctx := t.Context()
	w := &world{T: t, planes: map[string]*controlplane.Plane{}}
	box, err := sandbox.Open(ctx, t.TempDir(), sandbox.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = box.Close() })
	endpoint, err := box.Serve()
	if err != nil {
		t.Fatal(err)
	}
	at, err := url.Parse(endpoint)
	if err != nil {
		t.Fatal(err)
	}
	admin := emulators.Config(t)
	w.router = &router{next: admin.HTTPClient.(*http.Client).Transport, sandbox: at}
	w.recorder = &calls.Recorder{Next: w.router, Principals: map[string]string{}, Place: calls.Place{Account: account}}
	for _, p := range []string{"planner", "provisioner", "publisher", "janitor", "trigger", "caller"} {
		w.recorder.Principals[keyOf(p)] = p
	}
	w.setUp(admin)
	w.connect()
	return w
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// setUp makes stores and parameters. The emulator may have them from another suite's world.
func (w *world) setUp(admin aws.Config) {
	w.Helper()
	ctx := w.Context()
	admin.Region = region
	w.bucket = s3.NewClient(admin, "")
	for _, name := range []string{stateBucket, uploads, assets} {
		_, err := w.bucket.CreateBucket(ctx, &sdk.CreateBucketInput{Bucket: aws.String(name)})
		var ours *s3types.BucketAlreadyOwnedByYou
		if err != nil && !errors.As(err, &ours) {
			w.Fatal(err)
		}
	}
	_, err := w.bucket.PutBucketVersioning(ctx, &sdk.PutBucketVersioningInput{Bucket: aws.String(uploads), VersioningConfiguration: &s3types.VersioningConfiguration{Status: s3types.BucketVersioningStatusEnabled}})
	w.must(err)
	db := dynamodb.NewFromConfig(admin)
	_, err = db.CreateTable(ctx, dynamo.Table(table))
	var there *ddbtypes.ResourceInUseException
	if err != nil && !errors.As(err, &there) {
		w.Fatal(err)
	}
	w.must(dynamodb.NewTableExistsWaiter(db).Wait(ctx, &dynamodb.DescribeTableInput{TableName: aws.String(table)}, time.Minute))
	key, err := kms.NewFromConfig(admin).CreateKey(ctx, &kms.CreateKeyInput{})
	w.must(err)
	w.vaultKey = aws.ToString(key.KeyMetadata.Arn)
	_, err = ssm.NewFromConfig(admin).PutParameter(ctx, &ssm.PutParameterInput{
		Name: aws.String("/cdk-bootstrap/hnb659fds/version"), Value: aws.String("21"), Type: ssmtypes.ParameterTypeString, Overwrite: aws.Bool(true),
	})
	w.must(err)
}

// connect wires the functions, each with its own key, and the machines.
func (w *world) connect() {
	w.Helper()
	variables := map[string]string{
		controlplane.StateBucketVariable: stateBucket, controlplane.TableNameVariable: table, controlplane.UploadsBucketVariable: uploads,
		controlplane.RunStateMachineVariable: runMachine, controlplane.VaultKeyVariable: w.vaultKey, controlplane.PlaneNameVariable: "slipway",
	}
	get := func(name string) string { return variables[name] }
	env, err := controlplane.ReadEnvironment(get)
	w.must(err)
	clk := clock.Scaled{}
	w.invocations = map[string]int{}
	for _, name := range []string{"planner", "provisioner", "publisher", "janitor"} {
		p := controlplane.New(w.config(name), env, nil)
		p.Engine.Clock = clk
		// Whatever a stack has is made through Cloud Control: with what rights other services are called is the
		// execution roles' business.
		p.Engine.Providers.(*provider.Registry).Direct = nil
		p.Engine.Executions = askedTwice{w: w, theirs: p.Engine.Executions}
		w.planes[name] = p
	}
	functions := map[string]string{
		statemachine.PlannerFunction: "planner", statemachine.ProvisionerFunction: "provisioner",
		statemachine.PublisherFunction: "publisher", statemachine.JanitorFunction: "janitor",
		statemachine.SettleStateMachine: "arn:aws:states:" + region + ":" + account + ":stateMachine:slipway-settle",
	}
	machines := map[string]*asl.Machine{}
	for arn, definition := range map[string][]byte{runMachine: statemachine.Run, functions[statemachine.SettleStateMachine]: statemachine.Settle} {
		machines[arn], err = asl.Load(definition, functions)
		w.must(err)
	}
	w.executor = &asl.Executor{Machines: machines, Functions: w, Store: asl.NewMemoryStore(), Clock: clk, Holder: "test"}
	w.Cleanup(func() { _ = w.executor.Close() })
	w.trigger, err = trigger.New(w.config("trigger"), get, slog.New(slog.DiscardHandler))
	w.must(err)
	w.trigger.Executions = startedTwice{w: w, client: sfn.NewFromConfig(w.config("trigger"))}
}

// askedTwice asks Step Functions, which knows nothing of this process's executions, for the recording's sake, and then
// this process.
type askedTwice struct {
	w      *world
	theirs run.Executions
}

func (a askedTwice) Running(ctx context.Context, name string) (bool, error) {
	_, _ = a.theirs.Running(ctx, name)
	e, err := a.w.executor.Describe(ctx, executions+name)
	if errors.Is(err, asl.ErrNotFound) {
		return false, nil
	}
	return e.Status == asl.StatusRunning, err
}

func (a askedTwice) HolderAlive(context.Context, string) bool { return false }

// startedTwice starts executions in the same way.
type startedTwice struct {
	w      *world
	client *sfn.Client
}

func (s startedTwice) StartExecution(ctx context.Context, in *sfn.StartExecutionInput, opts ...func(*sfn.Options)) (*sfn.StartExecutionOutput, error) {
	_, _ = s.client.StartExecution(ctx, in, opts...)
	return &sfn.StartExecutionOutput{}, s.w.begin(ctx, *in.Name, []byte(*in.Input))
}

// startedByCaller is remote.Starter.
type startedByCaller struct {
	w      *world
	client *sfn.Client
}

func (s startedByCaller) StartExecution(ctx context.Context, name string, input []byte) error {
	_, _ = s.client.StartExecution(ctx, &sfn.StartExecutionInput{StateMachineArn: aws.String(runMachine), Name: &name, Input: aws.String(string(input))})
	return s.w.begin(ctx, name, input)
}

// begin starts an execution and waits until it has ended.
func (w *world) begin(ctx context.Context, name string, input []byte) error {
	_, err := w.executor.Start(ctx, runMachine, name, input)
	var refused *asl.APIError
	if errors.As(err, &refused) && refused.Code == asl.CodeExecutionAlreadyExists {
		return &sfntypes.ExecutionAlreadyExists{}
	}
	if err != nil {
		return err
	}
	_, err = w.executor.Wait(ctx, executions+name)
	return err
}

// Invoke implements asl.Functions: each function as Lambda runs it.
func (w *world) Invoke(ctx context.Context, name string, payload []byte) ([]byte, error) {
	w.mu.Lock()
	w.invocations[name]++
	w.mu.Unlock()
	handle := map[string]controlplane.Handler{
		"planner": (*controlplane.Plane).Planner, "provisioner": (*controlplane.Plane).Provisioner,
		"publisher": (*controlplane.Plane).Publisher, "janitor": (*controlplane.Plane).Janitor,
	}[name]
	f := &controlplane.Function{Handle: handle, Open: func(context.Context) (*controlplane.Plane, error) { return w.planes[name], nil }}
	out, err := f.Invoke(ctx, payload)
	if failure, ok := err.(messages.InvokeResponse_Error); ok { //nolint:errorlint // Lambda's own check
		return nil, &asl.FunctionError{Type: failure.Type, Message: failure.Message}
	}
	return out, err
}

// call invokes a function and decodes its answer.
func (w *world) call(name string, in, out any) {
	w.Helper()
	payload, err := json.Marshal(in)
	w.must(err)
	answer, err := w.Invoke(w.Context(), name, payload)
	w.must(err)
	w.must(json.Unmarshal(answer, out))
}

// put writes an object as the administrator and returns its version.
func (w *world) put(bucket, key string, body []byte) string {
	w.Helper()
	out, err := w.bucket.PutObject(w.Context(), &sdk.PutObjectInput{Bucket: &bucket, Key: &key, Body: bytes.NewReader(body)})
	w.must(err)
	return aws.ToString(out.VersionId)
}

// caller is the control plane as one of its callers sees it.
func (w *world) caller() *remote.Plane {
	w.Helper()
	cfg := w.config("caller")
	d := controlplane.Descriptor{
		Version: controlplane.DescriptorVersion, Release: "test", StateMachine: runMachine, Table: table, UploadsBucket: uploads, Region: region,
		Account: account, StateBucket: stateBucket, VaultKey: w.vaultKey,
	}
	b, err := json.Marshal(d)
	w.must(err)
	admin := emulators.Config(w.T)
	admin.Region = region
	_, err = ssm.NewFromConfig(admin).PutParameter(w.Context(), &ssm.PutParameterInput{
		Name: aws.String(controlplane.DescriptorParameter("slipway")), Value: aws.String(string(b)), Type: ssmtypes.ParameterTypeString, Overwrite: aws.Bool(true),
	})
	w.must(err)
	found, err := controlplane.ReadDescriptor(w.Context(), ssm.NewFromConfig(cfg), "")
	w.must(err)
	p := remote.Connect(cfg, found, userID)
	p.Start = startedByCaller{w: w, client: sfn.NewFromConfig(cfg)}
	return p
}

func notice(key, version string) []byte {
	return []byte(fmt.Sprintf(`{"source":"aws.s3","detail-type":"Object Created","time":"2026-11-29T21:31:24Z","detail":{"bucket":{"name":%q},"object":{"key":%q,"size":1,"version-id":%q}}}`, uploads, key, version))
}
