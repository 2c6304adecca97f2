package run_test

import (
	"context"
	"maps"
	"slices"
	"sync"
	"testing"

	"github.com/slipway-cdk/slipway/pkg/assembly"
	"github.com/slipway-cdk/slipway/pkg/asset"
	"github.com/slipway-cdk/slipway/pkg/diag"
	"github.com/slipway-cdk/slipway/pkg/provider"
	"github.com/slipway-cdk/slipway/pkg/run"
	"github.com/slipway-cdk/slipway/pkg/runlog"
	"github.com/slipway-cdk/slipway/pkg/state"
)

// watched notes on whose behalf each call is made.
type watched struct {
	*world
	mu    sync.Mutex
	acted map[string]map[run.Acting]bool // by what was called
	// refused are the accounts whose role can't be assumed.
	refused map[string]bool
}

func watch(w *world) *watched {
	x := &watched{world: w, acted: map[string]map[run.Acting]bool{}, refused: map[string]bool{}}
	x.engine.Providers, x.engine.Assets, x.engine.Facts, x.engine.Roles = x, x, x, x
	return x
}

func (w *watched) note(ctx context.Context, what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.acted[what] == nil {
		w.acted[what] = map[run.Acting]bool{}
	}
	w.acted[what][run.ActingOf(ctx)] = true
}

func (w *watched) For(typeName string, recorded provider.Route, properties []string) (provider.Provider, provider.Route, error) {
	p, route, err := w.cloud.For(typeName, recorded, properties)
	return watchedProvider{p, w}, route, err
}

func (w *watched) Publish(ctx context.Context, a assembly.Asset, env asset.Env) (asset.Outcome, error) {
	w.note(ctx, "publish "+a.ID)
	return w.world.Publish(ctx, a, env)
}

func (w *watched) Zones(ctx context.Context, account, region string) ([]string, error) {
	w.note(ctx, "zones")
	return w.world.Zones(ctx, account, region)
}

func (w *watched) Check(ctx context.Context, account string) (*diag.Diagnostic, error) {
	w.note(ctx, "check "+account)
	if w.refused[account] {
		return &diag.Diagnostic{Severity: diag.Error, Summary: "account " + account + " can't be worked in"}, nil
	}
	return nil, nil
}

type watchedProvider struct {
	provider.Provider
	w *watched
}

func (p watchedProvider) Create(ctx context.Context, req provider.Request) (provider.Progress, error) {
	p.w.note(ctx, "create "+req.LogicalID)
	return p.Provider.Create(ctx, req)
}

func (p watchedProvider) Delete(ctx context.Context, req provider.Request) (provider.Progress, error) {
	p.w.note(ctx, "delete "+req.LogicalID)
	return p.Provider.Delete(ctx, req)
}

func (p watchedProvider) Read(ctx context.Context, req provider.Request) (provider.Snapshot, error) {
	p.w.note(ctx, "read "+req.LogicalID)
	return p.Provider.Read(ctx, req)
}

func roleOf(stack string) *run.Role {
	return &run.Role{ARN: "arn:aws:iam::" + account + ":role/slipway-execution-" + stack, ExternalID: "of-" + stack}
}

// only fails unless a call was made, and on behalf of nobody but the stack, in runs of these ids.
func (w *watched) only(what, stack string, runs ...string) {
	w.Helper()
	if len(w.acted[what]) == 0 {
		w.Errorf("there was no %s, but %v", what, slices.Sorted(maps.Keys(w.acted)))
	}
	for a := range w.acted[what] {
		if a.Stack != stackRef(stack) || a.Role != *roleOf(stack) || !slices.Contains(runs, a.RunID) {
			w.Errorf("%s was done on behalf of %+v", what, a)
		}
	}
}

func TestEachStackIsWorkedOnUnderItsOwnRole(t *testing.T) {
	w := watch(newWorld(t))
	zones := func(id string) object {
		return resources(object{id: queue(object{"QueueName": object{"Fn::Select": []any{0, object{"Fn::GetAZs": ""}}}})})
	}
	req := run.Request{
		Version: run.RequestVersion, RunID: w.newRunID(), Command: runlog.CommandDeploy, Caller: caller, Region: region, CreatedAt: w.clk.Now(),
		Assets: []run.AssetRequest{{ID: "code", Asset: assembly.Asset{ID: "code"}}},
		Stacks: []run.StackRequest{
			{StackRef: stackRef("Web"), TemplateKey: w.store(zones("W")), Role: roleOf("Web")},
			{StackRef: stackRef("Api"), TemplateKey: w.store(zones("A")), Assets: []string{"code"}, Role: roleOf("Api")},
		},
	}
	h, err := w.engine.Submit(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	if h = w.finish(w.start(h.Execution, h.RunID)); h.Result != runlog.ResultSucceeded {
		t.Fatalf("%+v", h)
	}
	runs := slices.Collect(maps.Keys(w.acted))
	var ids []string
	for _, what := range runs {
		for a := range w.acted[what] {
			ids = append(ids, a.RunID)
		}
	}
	w.only("create W", "Web", ids...)
	w.only("create A", "Api", ids...)
	w.only("publish code", "Api", req.RunID)
	for _, what := range []string{"zones", "check " + account} {
		// In the deployment's plan and in each stack's own.
		if len(w.acted[what]) != 4 {
			t.Errorf("%s was done on behalf of %v", what, w.acted[what])
		}
		for a := range w.acted[what] {
			if a.Role != *roleOf(a.Stack.Name) {
				t.Errorf("%s was done on behalf of %+v", what, a)
			}
		}
	}
}

func withRole(req *run.Request) { req.Stacks[0].Role = roleOf("App") }

func TestWhoeverSettlesADeadRunHasItsRole(t *testing.T) {
	w := watch(newWorld(t))
	m := w.submit(order{stack: "App", command: runlog.CommandDeploy, template: before(), change: withRole})
	m.until(m.atItem("Changed"))
	// The process dies in the middle: the janitor makes the call again, under the same token.
	w.faults.killAt("put op Changed SUCCEEDED", false)
	_, _ = m.provision(w.engine, "Changed")
	w.faults.revive()
	m.stop()
	w.deadHolders["process-1"] = true
	// Somebody has recorded another resource meanwhile: what exists has to be looked at.
	theirs := &state.Record{Version: state.SchemaVersion, StackName: "App", Region: region, Resources: map[string]*state.Resource{
		"Changed": {PhysicalID: "theirs", ResourceType: "AWS::SNS::Topic", Properties: map[string]any{}},
	}}
	w.cloud.live["theirs"] = thing{Type: "AWS::SNS::Topic", LogicalID: "Changed"}
	if _, err := w.states.Save(t.Context(), theirs, ""); err != nil {
		t.Fatal(err)
	}
	w.acted = map[string]map[run.Acting]bool{}
	janitor := w.process("janitor")
	janitor.Providers = w
	w.settle(janitor, m.runID)
	w.only("create Changed", "App", m.runID)
	w.only("read ", "App", m.runID)
	w.sound(m.runID)
	w.accounted("App")
}

func TestAFailedDeployIsRolledBackUnderItsRole(t *testing.T) {
	w := watch(newWorld(t))
	w.cloud.script("create Bad", script{fails: func(int) *provider.Error { return &provider.Error{Kind: provider.KindInvalid, Message: "no"} }})
	good := queue(nil)
	bad := object{"Type": "AWS::SQS::Queue", "DependsOn": "Good"}
	m := w.submit(order{stack: "App", command: runlog.CommandDeploy, template: resources(object{"Good": good, "Bad": bad}), change: withRole})
	if h := w.finish(m); h.Result == runlog.ResultSucceeded {
		t.Fatalf("%+v", h)
	}
	w.only("delete Good", "App", m.runID)
}

func TestARoleThatCannotBeAssumedIsToldBeforeAnythingIsTouched(t *testing.T) {
	w := watch(newWorld(t))
	w.refused[account] = true
	m := w.submit(order{stack: "App", command: runlog.CommandDeploy, template: before(), change: withRole})
	h := w.finish(m)
	if h.Result != runlog.ResultFailed || len(h.Diagnostics) != 1 || h.Diagnostics[0].Stack != "App" {
		t.Errorf("%+v", h)
	}
	if len(w.cloud.calls) != 0 {
		t.Errorf("the calls are %v", w.cloud.calls)
	}
	w.sound(m.runID)
}
