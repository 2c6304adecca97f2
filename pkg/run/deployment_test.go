package run_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-cdk/slipway/pkg/assembly"
	"github.com/slipway-cdk/slipway/pkg/provider"
	"github.com/slipway-cdk/slipway/pkg/run"
	"github.com/slipway-cdk/slipway/pkg/runlog"
)

// app is a deployment: stacks in order, each with its template, what it depends on and its assets.
type app struct {
	command runlog.Command
	of      runlog.Command
	stacks  []appStack
	options run.Options
	planRun string
}

type appStack struct {
	name      string
	template  object
	dependsOn []string
	assets    []string
	protected bool
}

// submitApp submits a deployment and makes its execution.
func (w *world) submitApp(a app) *machine {
	w.Helper()
	req := run.Request{
		Version: run.RequestVersion, RunID: w.newRunID(), Command: a.command, Of: a.of, Caller: caller, Region: region, CreatedAt: w.clk.Now(),
		Options: a.options, PlanRun: a.planRun,
	}
	known := map[string]bool{}
	for _, s := range a.stacks {
		r := run.StackRequest{StackRef: stackRef(s.name), DisplayName: s.name, DependsOn: s.dependsOn, Assets: s.assets, TerminationProtection: s.protected}
		if s.template != nil {
			r.TemplateKey = w.store(s.template)
		}
		req.Stacks = append(req.Stacks, r)
		for _, id := range s.assets {
			if !known[id] {
				known[id] = true
				req.Assets = append(req.Assets, run.AssetRequest{ID: id, Asset: assembly.Asset{ID: id, DisplayName: id}})
			}
		}
	}
	h, err := w.engine.Submit(context.Background(), req)
	if err != nil {
		w.Fatal(err)
	}
	if again, err := w.engine.Submit(context.Background(), req); err != nil || again.RunID != h.RunID {
		w.Errorf("submitted twice: %+v, %v", again, err)
	}
	return w.start(h.Execution, h.RunID)
}

// chain is three stacks, each of which imports from the one before.
func chain() app {
	exporting := func(r object, id, name string) object {
		return object{"Resources": r, "Outputs": object{"Out": object{"Value": ref(id), "Export": object{"Name": name}}}}
	}
	return app{command: runlog.CommandDeploy, stacks: []appStack{
		{name: "One", template: exporting(object{"A": topic(object{})}, "A", "one"), assets: []string{"code"}},
		{name: "Two", template: exporting(object{"B": queue(object{"KmsMasterKeyId": importOf("one")})}, "B", "two"), dependsOn: []string{"One"}, assets: []string{"code", "data"}},
		{name: "Three", template: resources(object{"C": queue(object{"KmsMasterKeyId": importOf("two")})}), dependsOn: []string{"Two"}},
	}}
}

func (w *world) children(runID string) map[string]runlog.Header {
	w.Helper()
	list, err := w.log.ListRuns(context.Background(), runlog.Filter{Root: runID})
	if err != nil {
		w.Fatal(err)
	}
	out := map[string]runlog.Header{}
	for _, h := range list {
		if h.RunID != runID {
			out[h.Stack.Name] = h
		}
	}
	return out
}

func destroyed(a app) app {
	a.command = runlog.CommandDestroy
	stacks := a.stacks
	a.stacks = nil
	for _, s := range stacks {
		s.template = nil
		a.stacks = append(a.stacks, s)
	}
	return a
}

func TestAChainOfStacks(t *testing.T) {
	for _, twice := range []bool{false, true} {
		w := newWorld(t)
		m := w.submitApp(chain())
		m.twice = twice
		h := w.finish(m)
		if h.Result != runlog.ResultSucceeded || h.Counts.Created != 3 {
			t.Fatalf("%s %+v: %s", h.Result, h.Counts, w.story(m.runID))
		}
		w.sound(m.runID)
		for _, child := range w.children(m.runID) {
			w.sound(child.RunID)
		}
		w.accounted("One", "Two", "Three")
		if got := w.record("Three").Resources["C"].Properties["KmsMasterKeyId"]; got != w.record("Two").Resources["B"].PhysicalID {
			t.Errorf("C reads %v", got)
		}
		if imports := w.record("Two").Imports; len(imports) != 1 || imports[0].SourceStack != "One" || imports[0].ExportName != "one" {
			t.Errorf("imports of Two: %+v", imports)
		}
		x, _, err := w.states.LoadExports(context.Background(), region)
		if err != nil || x.Exports["one"].ProducerStack != "One" || x.Exports["two"].Value != w.record("Two").Resources["B"].PhysicalID {
			t.Errorf("exports %+v, %v", x, err)
		}
		if !twice && w.published["code"] != 1 {
			t.Errorf("published %v", w.published)
		}
		for _, ev := range append(w.events(m.runID, runlog.StackFinished), w.events(m.runID, runlog.StackStarted)...) {
			if ev.Command != runlog.CommandDeploy || ev.Root != m.runID || ev.ChildRun == "" || ev.Stack == "" {
				t.Errorf("%+v", ev)
			}
		}
		h = w.finish(w.submitApp(destroyed(chain())))
		if h.Result != runlog.ResultSucceeded || len(w.cloud.exists()) > 0 {
			t.Errorf("the destroy is %s and leaves %v: %s", h.Result, w.cloud.exists(), w.story(h.RunID))
		}
		order := stepsOf(w)
		if d := cmp.Diff([]string{"delete C", "delete B", "delete A"}, order[len(order)-3:]); d != "" {
			t.Errorf("order of the destroy (-want +got):\n%s", d)
		}
	}
}

func TestAFailureInTheMiddleOfAChainLeavesOutWhatComesAfter(t *testing.T) {
	w := newWorld(t)
	w.cloud.script("create B", script{fails: fails(provider.KindInvalid)})
	m := w.submitApp(chain())
	h := w.finish(m)
	children := w.children(m.runID)
	if h.Result != runlog.ResultFailed || h.Failure == nil || h.Failure.LogicalID != "B" || h.Counts.Created != 1 {
		t.Errorf("%s %+v %+v", h.Result, h.Failure, h.Counts)
	}
	got := map[string]runlog.Result{}
	for name, child := range children {
		got[name] = child.Result
		w.sound(child.RunID)
	}
	if d := cmp.Diff(map[string]runlog.Result{"One": "SUCCEEDED", "Two": "FAILED", "Three": "FAILED"}, got); d != "" {
		t.Errorf("stacks (-want +got):\n%s", d)
	}
	if n := len(w.cloud.steps("create C")); n != 0 {
		t.Error("Three was begun")
	}
	if n := len(w.events(m.runID, runlog.OpSkip)); n != 1 {
		t.Errorf("%d events tell of a skipped stack", n)
	}
	w.sound(m.runID)
	w.accounted("One", "Two", "Three")
	w.cloud.script("create B", script{})
	if h = w.finish(w.submitApp(chain())); h.Result != runlog.ResultSucceeded || h.Counts.Unchanged != 1 {
		t.Errorf("the next deployment is %s %+v: %s", h.Result, h.Counts, w.story(h.RunID))
	}
}

func TestAnAssetThatCannotBePublishedStopsItsStacks(t *testing.T) {
	w := newWorld(t)
	w.unpublishable["data"] = errors.New("the bucket is closed")
	m := w.submitApp(chain())
	h := w.finish(m)
	if h.Result != runlog.ResultFailed || h.Failure == nil || !strings.Contains(h.Failure.Summary, "data") {
		t.Errorf("%s %+v", h.Result, h.Failure)
	}
	if len(w.cloud.steps("create B")) != 0 {
		t.Errorf("calls %v", stepsOf(w))
	}
	if n := len(w.events(m.runID, runlog.AssetFailed)); n != 1 {
		t.Errorf("%d events tell of the asset", n)
	}
	w.sound(m.runID)
	w.accounted("One", "Two", "Three")
}

func TestAnAssetIsPublishedAgainAfterAPassingFailure(t *testing.T) {
	w := newWorld(t)
	w.unpublishable["data"] = &provider.Error{Kind: provider.KindThrottled, Message: "slow down"}
	m := w.submitApp(chain())
	m.until(func() bool { return w.published["data"] == 2 })
	delete(w.unpublishable, "data")
	if h := w.finish(m); h.Result != runlog.ResultSucceeded || w.published["data"] != 3 {
		t.Errorf("%s after %d tries: %s", h.Result, w.published["data"], w.story(m.runID))
	}
}

// TestAPublisherThatDiesIsFollowedByAnother: the intent is there and nobody works on it.
func TestAPublisherThatDiesIsFollowedByAnother(t *testing.T) {
	for _, times := range []int{1, 100} {
		w := newWorld(t)
		m := w.submitApp(chain())
		died := 0
		m.onItem = func(it run.Item) bool {
			if it.Op != "asset.data" || died == times {
				return false
			}
			died++
			w.faults.killAt("put op asset.data", died%2 == 0)
			var status run.OperationStatus
			_ = w.call(w.engine.HandlePublisher, run.PublishInput{RunID: m.runID, Wave: m.wave.Wave, Epoch: m.wave.Epoch, Op: it.Op}, &status)
			w.faults.revive()
			return true
		}
		h := w.finish(m)
		want := runlog.ResultSucceeded
		if times > 5 {
			want = runlog.ResultFailed
		}
		if h.Result != want {
			t.Errorf("after %d deaths: %s", died, h.Result)
		}
		w.sound(m.runID)
	}
}

func TestAStackWhoseStartWasLostIsStartedAgain(t *testing.T) {
	w := newWorld(t)
	m := w.submitApp(chain())
	lost := 0
	m.onItem = func(it run.Item) bool {
		if it.Kind == "stack" && it.LogicalID == "Two" && lost < 3 {
			lost++
			return true
		}
		return false
	}
	if h := w.finish(m); h.Result != runlog.ResultSucceeded || lost != 3 {
		t.Errorf("%s after %d lost starts", h.Result, lost)
	}
	if n := len(w.events(m.runID, runlog.StackStarted)); n != 3 {
		t.Errorf("%d starts are told", n)
	}
}

func TestAStackThatCannotBeStartedFailsAndSaysWhy(t *testing.T) {
	for name, c := range map[string]struct {
		why          run.Refusal
		detail, next string
		twice        bool
	}{
		"nobody knows why": {run.Refusal{}, "has never been seen", "slipway doctor", false},
		"its role may not": {
			run.Refusal{Error: "StepFunctions.AccessDeniedException", Cause: "the role is not authorized to perform: states:StartExecution"},
			"AccessDeniedException: the role is not authorized to perform: states:StartExecution", "slipway bootstrap", true,
		},
		"there are too many": {run.Refusal{Error: "StepFunctions.ExecutionLimitExceededException"}, "ExecutionLimitExceeded", "quota", false},
		"it came to nothing": {
			run.Refusal{Error: "StepFunctions.ExecutionAlreadyExistsException", Cause: "Execution Already Exists"}, "Execution Already Exists", "that execution", false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			m := w.submitApp(chain())
			m.twice = c.twice
			m.until(func() bool { return len(w.children(m.runID)) == 3 })
			two := w.children(m.runID)["Two"]
			w.unstartable[two.Execution] = c.why
			began := w.clk.Now()
			h := w.finish(m)
			two = w.header(two.RunID)
			if h.Result != runlog.ResultFailed || two.Result != runlog.ResultFailed {
				t.Errorf("%s, the stack is %s", h.Result, two.Result)
			}
			if took := w.clk.Now().Sub(began); took < time.Minute || took > 5*time.Minute {
				t.Errorf("it was given up after %s", took)
			}
			if h.Failure == nil || two.Failure == nil || *h.Failure != *two.Failure {
				t.Fatalf("the deployment says %+v, the stack's run %+v", h.Failure, two.Failure)
			}
			if !strings.Contains(h.Failure.Summary, "stack Two could not be started") || !strings.Contains(h.Failure.Detail, c.detail) {
				t.Errorf("the failure is %+v", h.Failure)
			}
			if len(two.Diagnostics) != 1 || two.Diagnostics[0].Stack != "Two" || !strings.Contains(two.Diagnostics[0].Next, c.next) {
				t.Errorf("it is told %+v", two.Diagnostics)
			}
			w.sound(m.runID)
			w.sound(two.RunID)
			w.accounted("One", "Two", "Three")
		})
	}
}

func TestAStartThatWasRefusedAtFirstLeavesNothing(t *testing.T) {
	w := newWorld(t)
	m := w.submitApp(chain())
	m.until(func() bool { return len(w.children(m.runID)) == 3 })
	two := w.children(m.runID)["Two"]
	w.unstartable[two.Execution] = run.Refusal{Error: "StepFunctions.ThrottlingException"}
	m.onItem = func(it run.Item) bool {
		if op, err := w.log.Op(context.Background(), m.runID, it.Op); err == nil && op.Error != nil {
			delete(w.unstartable, two.Execution)
		}
		return false
	}
	if h := w.finish(m); h.Result != runlog.ResultSucceeded || len(w.unstartable) > 0 {
		t.Errorf("%s: %s", h.Result, w.story(m.runID))
	}
	ops, err := w.log.Ops(context.Background(), m.runID)
	if err != nil {
		t.Fatal(err)
	}
	for _, op := range ops {
		if op.Error != nil {
			t.Errorf("%s has the error %+v", op.OpID, op.Error)
		}
	}
	w.sound(m.runID)
}

func TestARefusalThatComesTooLateIsDropped(t *testing.T) {
	w := newWorld(t)
	m := w.submitApp(chain())
	w.finish(m)
	ops, err := w.log.Ops(context.Background(), m.runID)
	if err != nil {
		t.Fatal(err)
	}
	for _, op := range ops {
		if op.ChildRun == "" {
			continue
		}
		in := run.PlannerInput{Action: run.ActionUnstarted, RunID: m.runID, Epoch: op.Epoch, Op: op.OpID, Refusal: &run.Refusal{Error: "E"}, Execution: m.name}
		var status run.OperationStatus
		if err := w.call(w.engine.HandlePlanner, in, &status); err != nil {
			t.Fatal(err)
		}
		if again, err := w.log.Op(context.Background(), m.runID, op.OpID); err != nil || again.Error != nil || again.Version != op.Version {
			t.Errorf("%s has become %+v, %v", op.OpID, again, err)
		}
		in.Execution = "somebody-else"
		if err := w.call(w.engine.HandlePlanner, in, &status); err == nil {
			t.Error("an execution that does not carry the run is heard")
		}
	}
}

func TestAChildWhoseExecutionDiedIsSettledByItsParent(t *testing.T) {
	w := newWorld(t)
	m := w.submitApp(chain())
	var two *machine
	m.until(func() bool {
		for name, other := range w.machines {
			if strings.HasPrefix(name, "Two-") {
				two = other
			} else if other != m && !other.ended {
				other.step()
			}
		}
		return two != nil
	})
	two.until(two.atItem("B"))
	w.faults.killAt("put op B SUCCEEDED", false)
	_, _ = two.provision(w.engine, "B")
	w.faults.revive()
	two.stop()
	h := w.finish(m)
	if h.Result != runlog.ResultFailed || h.Failure == nil || h.Failure.Summary != "the run was interrupted" {
		t.Errorf("%s %+v", h.Result, h.Failure)
	}
	w.sound(m.runID)
	for _, child := range w.children(m.runID) {
		w.sound(child.RunID)
	}
	w.accounted("One", "Two", "Three")
	if n := w.cloud.effects()["create B"]; n != 1 {
		t.Errorf("B was created under %d tokens", n)
	}
}

// TestADeploymentDiesAnywhere: its own execution ends after any number of calls; its stacks' go on.
func TestADeploymentDiesAnywhere(t *testing.T) {
	for after := range 30 {
		w := newWorld(t)
		m := w.submitApp(chain())
		for range after {
			for _, other := range w.running() {
				other.step()
			}
		}
		m.stop()
		for _, other := range w.running() {
			for !other.ended {
				other.step()
			}
		}
		w.settle(w.process("janitor"), m.runID)
		w.sound(m.runID)
		for _, child := range w.children(m.runID) {
			w.sound(child.RunID)
		}
		w.accounted("One", "Two", "Three")
		if h := w.finish(w.submitApp(chain())); h.Result != runlog.ResultSucceeded {
			t.Fatalf("after a death at call %d: %s", after, w.story(h.RunID))
		}
	}
}

// TestEverythingDiesAnywhere: the deployment and its stacks.
func TestEverythingDiesAnywhere(t *testing.T) {
	for after := range 40 {
		w := newWorld(t)
		m := w.submitApp(chain())
		for range after {
			for _, other := range w.running() {
				other.step()
			}
		}
		for _, other := range w.running() {
			other.stop()
		}
		w.deadHolders["process-1"] = true
		w.settle(w.process("janitor"), m.runID)
		w.sound(m.runID)
		for _, child := range w.children(m.runID) {
			w.sound(child.RunID)
		}
		w.accounted("One", "Two", "Three")
		w.engine = w.process("process-2")
		if h := w.finish(w.submitApp(chain())); h.Result != runlog.ResultSucceeded {
			t.Fatalf("after a death at call %d: %s", after, w.story(h.RunID))
		}
	}
}

// TestADeploymentSurvivesEveryBrokenCall is the counterpart of the test for one stack.
func TestADeploymentSurvivesEveryBrokenCall(t *testing.T) {
	w := newWorld(t)
	w.finish(w.submitApp(chain()))
	for k, name := range w.faults.names {
		for _, b := range breakages() {
			if b.after && !writes(name) || testing.Short() && k%sampled != 0 {
				continue
			}
			w := newWorld(t)
			// The calls of the submission are the client's.
			m := w.submitApp(chain())
			w.faults.breaks, w.faults.after, w.faults.dies = max(k+1, w.faults.n+1), b.after, b.dies
			h := w.finish(m)
			w.sound(m.runID)
			w.accounted("One", "Two", "Three")
			if h.Result != runlog.ResultSucceeded {
				t.Errorf("%s: %s", h.Result, w.story(m.runID))
			}
			if t.Failed() {
				t.Fatalf("with call %d, %s, broken: %s", k+1, name, b.name)
			}
		}
	}
}

// running lists the executions that run.
func (w *world) running() []*machine {
	var out []*machine
	for _, name := range sortedNames(w.machines) {
		if m := w.machines[name]; !m.ended {
			out = append(out, m)
		}
	}
	return out
}

func TestARefusedDeploymentTouchesNothing(t *testing.T) {
	w := newWorld(t)
	bad := chain()
	bad.stacks[2].template = resources(object{"C": object{"Type": "AWS::Nowhere::Thing", "Properties": object{}}})
	m := w.submitApp(bad)
	h := w.finish(m)
	if h.Result != runlog.ResultFailed || len(h.Diagnostics) == 0 || len(w.cloud.calls) != 0 || len(w.children(m.runID)) != 0 {
		t.Errorf("%s %v, calls %v, children %v", h.Result, h.Diagnostics, stepsOf(w), w.children(m.runID))
	}
	w.sound(m.runID)
}

func TestAPlanRunWritesNothing(t *testing.T) {
	w := newWorld(t)
	a := chain()
	a.command, a.of = runlog.CommandPlan, runlog.CommandDeploy
	m := w.submitApp(a)
	h := w.finish(m)
	if h.Result != runlog.ResultSucceeded || len(w.cloud.calls) != 0 {
		t.Fatalf("%s: %s", h.Result, w.story(m.runID))
	}
	views, err := w.engine.PlanViews(context.Background(), m.runID)
	if err != nil || len(views) != 3 || len(views[0].Changes) != 1 {
		t.Errorf("%+v, %v", views, err)
	}
	infos, err := w.objects.List(context.Background(), "cdkd/")
	if err != nil || len(infos) != 0 {
		t.Errorf("it has written %v, %v", infos, err)
	}
	w.sound(m.runID)
}

func TestADeployIsBoundToThePlanThatWasShown(t *testing.T) {
	for _, meanwhile := range []bool{false, true} {
		t.Run(fmt.Sprintf("changed %v", meanwhile), func(t *testing.T) {
			w := newWorld(t)
			w.deploy(before())
			shown := app{command: runlog.CommandPlan, of: runlog.CommandDeploy, stacks: []appStack{{name: "App", template: after()}}}
			planned := w.submitApp(shown)
			w.finish(planned)
			if meanwhile {
				w.deploy(resources(object{"Same": topic(object{"DisplayName": "other"})}))
			}
			shown.command, shown.of, shown.planRun = runlog.CommandDeploy, "", planned.runID
			m := w.submit(order{stack: "App", command: runlog.CommandDeploy, template: after(), change: func(r *run.Request) {
				r.PlanRun = planned.runID
				r.Stacks[0].TemplateKey = w.request(planned.runID).Stacks[0].TemplateKey
			}})
			h := w.finish(m)
			if meanwhile != (h.Result == runlog.ResultFailed) {
				t.Errorf("%s: %s", h.Result, w.story(m.runID))
			}
			w.sound(m.runID)
		})
	}
}
