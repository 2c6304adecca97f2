//go:build emulators

package oracle

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"github.com/slipway-cdk/slipway/pkg/asl"
	"github.com/slipway-cdk/slipway/pkg/clock"
	"github.com/slipway-cdk/slipway/pkg/emulators"
	"github.com/slipway-cdk/slipway/pkg/intrinsic"
	"github.com/slipway-cdk/slipway/pkg/localdb"
	"github.com/slipway-cdk/slipway/pkg/objectstore"
	objects "github.com/slipway-cdk/slipway/pkg/objectstore/local"
	"github.com/slipway-cdk/slipway/pkg/provider"
	"github.com/slipway-cdk/slipway/pkg/provider/direct"
	"github.com/slipway-cdk/slipway/pkg/provider/services"
	"github.com/slipway-cdk/slipway/pkg/run"
	"github.com/slipway-cdk/slipway/pkg/runlog"
	logs "github.com/slipway-cdk/slipway/pkg/runlog/local"
	"github.com/slipway-cdk/slipway/pkg/schema"
	"github.com/slipway-cdk/slipway/pkg/state"
	"github.com/slipway-cdk/slipway/statemachine"
)

const (
	account = "123456789012"
	region  = "us-east-1"
	// speed is how much faster the engine waits than time goes by: the emulator is quick.
	speed = 50

	runMachine    = "arn:aws:states:us-east-1:" + account + ":stateMachine:slipway-run"
	settleMachine = "arn:aws:states:us-east-1:" + account + ":stateMachine:slipway-settle"
	executionName = "arn:aws:states:us-east-1:" + account + ":execution:slipway-run:"
)

// engine is the engine with its own state machines and stores in this process, and the direct providers on the emulator.
type engine struct {
	*run.Engine
	executor  *asl.Executor
	providers map[string]provider.Provider
}

// onlyDirect: a template that needs more than the direct providers is refused.
func onlyDirect(own map[string]provider.Provider) *provider.Registry {
	return &provider.Registry{Direct: own, Unhandled: services.Unhandled(), Provisionable: func(string) bool { return false }}
}

func clients(t *testing.T) aws.Config {
	t.Helper()
	cfg := emulators.Config(t)
	cfg.Credentials = credentials.NewStaticCredentialsProvider(account, "testing", "") // MiniStack takes the key for the account
	return cfg
}

func newEngine(t *testing.T) *engine {
	t.Helper()
	cfg, clk := clients(t), clock.Scaled{Speed: speed}
	db, err := localdb.Open(filepath.Join(t.TempDir(), "slipway.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	store, err := objects.New(db, clock.Real{})
	if err != nil {
		t.Fatal(err)
	}
	log, err := logs.New(db)
	if err != nil {
		t.Fatal(err)
	}
	e := &engine{providers: services.Providers(direct.Env{Clock: clk, Config: func(string, string) aws.Config { return cfg }})}
	e.Engine = &run.Engine{
		Objects: store, Log: log, Clock: clk, Outside: clock.Real{}, Holder: "oracle", States: &state.Store{Objects: store, Clock: clk},
		Providers: onlyDirect(e.providers), Facts: zones{}, Executions: e,
	}
	functions := map[string]string{
		statemachine.PlannerFunction: "planner", statemachine.ProvisionerFunction: "provisioner",
		statemachine.PublisherFunction: "publisher", statemachine.JanitorFunction: "janitor", statemachine.SettleStateMachine: settleMachine,
	}
	machines := map[string]*asl.Machine{}
	for arn, definition := range map[string][]byte{runMachine: statemachine.Run, settleMachine: statemachine.Settle} {
		if machines[arn], err = asl.Load(definition, functions); err != nil {
			t.Fatal(err)
		}
	}
	e.executor = &asl.Executor{Machines: machines, Functions: e, Store: asl.NewMemoryStore(), Clock: clk, Holder: "oracle"}
	t.Cleanup(func() { _ = e.executor.Close() })
	return e
}

// Invoke implements asl.Functions.
func (e *engine) Invoke(ctx context.Context, name string, payload []byte) (out []byte, err error) {
	switch name {
	case "planner":
		out, err = e.HandlePlanner(ctx, payload)
	case "provisioner":
		out, err = e.HandleProvisioner(ctx, payload)
	case "publisher":
		out, err = e.HandlePublisher(ctx, payload)
	case "janitor":
		out, err = e.HandleJanitor(ctx, payload)
	default:
		return nil, asl.ErrFunctionNotFound
	}
	var failed *run.HandlerError
	if errors.As(err, &failed) {
		return nil, &asl.FunctionError{Type: failed.Name, Message: failed.Error()}
	}
	return out, err
}

// Running implements run.Executions.
func (e *engine) Running(ctx context.Context, name string) (bool, error) {
	x, err := e.executor.Describe(ctx, executionName+name)
	if errors.Is(err, asl.ErrNotFound) {
		return false, nil
	}
	return x.Status == asl.StatusRunning, err
}

// HolderAlive implements run.Executions.
func (e *engine) HolderAlive(context.Context, string) bool { return true }

// zones are the emulator's.
type zones struct{}

func (zones) Zones(context.Context, string, string) ([]string, error) {
	return []string{region + "a", region + "b", region + "c"}, nil
}

func (zones) SSMParameter(context.Context, string, string, string) (string, error) {
	return "", errors.New("no template has such a parameter")
}

// recorded is what the engine has on record of a stack.
type recorded struct {
	resources map[string]*state.Resource
	outputs   map[string]string
	template  string
}

// deploy carries a deploy to its end and returns the record.
func (e *engine) deploy(t *testing.T, stack string, template map[string]any) (recorded, error) {
	t.Helper()
	key := run.TemplateKey(fmt.Sprint(time.Now().UnixNano()))
	if _, err := e.Objects.Put(t.Context(), key, []byte(text(template)), objectstore.Condition{IfNoneMatch: true}); err != nil {
		return recorded{}, err
	}
	if err := e.carry(t, runlog.CommandDeploy, stack, key); err != nil {
		return recorded{}, err
	}
	s, _, err := e.States.Load(t.Context(), stack, region)
	if err != nil {
		return recorded{}, err
	}
	out := recorded{resources: map[string]*state.Resource{}, outputs: map[string]string{}, template: text(template)}
	for id, r := range s.Resources {
		out.resources[id] = r
	}
	for name, v := range s.Outputs {
		out.outputs[name] = direct.Text(v)
	}
	return out, nil
}

func (e *engine) destroy(t *testing.T, stack string) error {
	t.Helper()
	return e.carry(t, runlog.CommandDestroy, stack, "")
}

func (e *engine) carry(t *testing.T, command runlog.Command, stack, templateKey string) error {
	t.Helper()
	ctx := t.Context()
	now := time.Now().UTC()
	ref := runlog.StackRef{Account: account, Region: region, Name: stack}
	h, err := e.Submit(ctx, run.Request{
		Version: run.RequestVersion, RunID: run.NewRunID(now), Command: command, Caller: "oracle", Region: region, CreatedAt: now,
		Options: run.Options{ForceStatefulRecreation: true}, // nothing is in them
		Stacks:  []run.StackRequest{{StackRef: ref, DisplayName: stack, TemplateKey: templateKey}},
	})
	if err != nil {
		return err
	}
	if _, err := e.executor.Start(ctx, runMachine, h.Execution, []byte(`{"runId":"`+h.RunID+`"}`)); err != nil {
		return err
	}
	if _, err := e.executor.Wait(ctx, executionName+h.Execution); err != nil {
		return err
	}
	if h, err = e.Log.Header(ctx, h.RunID); err != nil {
		return err
	}
	if h.Status == runlog.StatusClosed && h.Result == runlog.ResultSucceeded {
		return nil
	}
	var said []string
	if head, err := e.Log.Head(ctx, ref); err == nil && head != "" {
		events, err := e.Log.Events(ctx, head, "")
		if err != nil {
			return err
		}
		for _, event := range events {
			if event.Type == runlog.OpFail || event.Type == runlog.OpRetry {
				said = append(said, fmt.Sprintf("%+v", event))
			}
		}
	}
	return fmt.Errorf("the run ended as %s, %s: %+v %s", h.Status, h.Result, h.Failure, strings.Join(said, "; "))
}

// look reads what the engine has on record from the services.
func (e *engine) look(t *testing.T, r recorded) (Stack, error) {
	t.Helper()
	s := Stack{Resources: map[string]Resource{}, Outputs: r.outputs, Order: ordered(r), Given: r.template}
	for id, have := range r.resources {
		live, err := e.read(t, have.ResourceType, have.PhysicalID, have.Properties)
		if err != nil {
			return s, fmt.Errorf("%s: %w", id, err)
		}
		ref, ok := intrinsic.Ref(&intrinsic.Scope{Schema: schema.Lookup}, intrinsic.Resource{
			Type: have.ResourceType, PhysicalID: have.PhysicalID, Properties: have.Properties, Attributes: have.Attributes,
		})
		if !ok {
			return s, fmt.Errorf("%s has no Ref", id)
		}
		live.Ref = direct.Text(ref)
		s.Resources[id] = live
	}
	return s, nil
}

// read asks a service, through the provider's own reading.
func (e *engine) read(t *testing.T, typeName, id string, properties map[string]any) (Resource, error) {
	t.Helper()
	p := e.providers[typeName]
	if p == nil {
		return Resource{}, fmt.Errorf("%s has no direct provider", typeName)
	}
	// A template that gives nothing has a made-up name all the same; without any property it would be a drift check.
	if rule, ok := provider.NameRuleOf(typeName); ok && len(properties) == 0 {
		properties = map[string]any{rule.Property: last(id)}
	}
	req := provider.Request{
		Account: account, Region: region, Stack: "oracle", LogicalID: "Read", Type: typeName, PhysicalID: id, Properties: properties, Previous: properties,
	}
	snap, err := p.Read(t.Context(), req)
	for range 3 {
		if !provider.IsUnavailable(err) {
			break
		}
		snap, err = p.Read(t.Context(), req) // the emulator has broken the connection off
	}
	if err != nil {
		return Resource{}, err
	}
	maps.DeleteFunc(snap.Properties, func(_ string, v any) bool { return v == nil })
	maps.DeleteFunc(snap.Attributes, func(_ string, v any) bool { return v == nil })
	return Resource{Type: typeName, ID: id, Properties: snap.Properties, Attributes: snap.Attributes}, nil
}

// left lists, sorted, the resources of a deleted stack that can still be read. ours is the stack of the record.
func (e *engine) left(t *testing.T, s, ours Stack, r recorded) []string {
	t.Helper()
	var out []string
	own, plain := s.atoms(), ours.atoms()
	for id, have := range s.Resources {
		var properties map[string]any
		if known := r.resources[id]; known != nil {
			properties, _ = own.Own(plain.Plain(known.Properties)).(map[string]any)
		}
		if _, err := e.read(t, have.Type, have.ID, properties); !provider.IsNotFound(err) {
			out = append(out, fmt.Sprintf("%s (%s)", id, have.Type))
		}
	}
	slices.Sort(out)
	return out
}

func (e *engine) expectNone(t *testing.T, s Stack, r recorded) error {
	t.Helper()
	if left := e.left(t, s, s, r); len(left) > 0 {
		return fmt.Errorf("these are left: %s", strings.Join(left, ", "))
	}
	return nil
}
