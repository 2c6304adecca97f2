package run_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/smithy-go"
	"github.com/google/go-cmp/cmp"

	"github.com/slipway-cdk/slipway/pkg/macro"
	"github.com/slipway-cdk/slipway/pkg/macro/macrotest"
	"github.com/slipway-cdk/slipway/pkg/objectstore"
	"github.com/slipway-cdk/slipway/pkg/run"
	"github.com/slipway-cdk/slipway/pkg/runlog"
)

// macroWorld is a world whose CloudFormation runs the macro Queues, which writes a queue for each name, and the number of
// the change set that it was run for.
type macroWorld struct {
	*world
	service *macrotest.Service
	// failure is why the macro fails; actings are on whose behalf it was called.
	failure string
	actings []run.Acting
}

func newMacroWorld(t testing.TB) *macroWorld {
	mw := &macroWorld{world: newWorld(t)}
	mw.service = &macrotest.Service{Polls: 2, Around: mw.around, Macro: mw.queues}
	mw.engine = mw.process("process-1")
	return mw
}

// process is an engine with macros in another process.
func (mw *macroWorld) process(holder string) *run.Engine {
	e := mw.world.process(holder)
	e.Macros = &macro.Expander{CloudFormation: mw.service, Clock: mw.clk}
	return e
}

func (mw *macroWorld) around(ctx context.Context, call string, do func() error) error {
	mw.actings = append(mw.actings, run.ActingOf(ctx))
	return mw.faults.around(call, do)
}

func (mw *macroWorld) queues(in *cloudformation.CreateChangeSetInput, n int) (string, string) {
	if mw.failure != "" {
		return "", mw.failure
	}
	var t map[string]any
	if err := json.Unmarshal([]byte(aws.ToString(in.TemplateBody)), &t); err != nil {
		return "", err.Error()
	}
	delete(t, "Transform")
	out := object{}
	for _, name := range t["Queues"].([]any) {
		out[name.(string)] = queue(object{"VisibilityTimeout": n})
	}
	delete(t, "Queues")
	t["Resources"] = out
	body, err := json.Marshal(t)
	if err != nil {
		return "", err.Error()
	}
	return string(body), ""
}

// timeouts are what the macro has written: for which change set each queue of a stack was made.
func (mw *macroWorld) timeouts(stack string) map[string]string {
	mw.Helper()
	out := map[string]string{}
	for id, r := range mw.record(stack).Resources {
		out[id] = fmt.Sprint(r.Properties["VisibilityTimeout"])
	}
	return out
}

// clean checks that nothing is left of the macros.
func (mw *macroWorld) clean() {
	mw.Helper()
	if left := mw.service.Standing(); len(left) > 0 {
		mw.Errorf("the transient stacks %v are left", left)
	}
}

func queuesOf(names ...any) object { return object{"Transform": "Queues", "Queues": names} }

// twoOfMacros is a deployment of two stacks with macros and one without.
func twoOfMacros() app {
	return app{command: runlog.CommandDeploy, stacks: []appStack{
		{name: "One", template: queuesOf("A")},
		{name: "Plain", template: resources(object{"P": topic(object{})})},
		{name: "Two", template: queuesOf("B", "C"), dependsOn: []string{"One"}},
	}}
}

func TestMacrosRunOnceForADeploymentAndItsStacks(t *testing.T) {
	mw := newMacroWorld(t)
	m := mw.submitApp(twoOfMacros())
	m.step()
	if got := len(mw.service.Standing()); got != 2 || m.steps[0].Kind != run.StepWait {
		t.Errorf("after the first look %d change sets are being made, and the answer is %+v", got, m.steps[0])
	}
	h := mw.finish(m)
	if h.Result != runlog.ResultSucceeded || h.Counts.Created != 4 {
		t.Fatalf("%s %+v: %s", h.Result, h.Counts, mw.story(m.runID))
	}
	if n := len(mw.service.Created()); n != 2 {
		t.Errorf("%d change sets were made, want one for each of two stacks", n)
	}
	if d := cmp.Diff(map[string]string{"B": "2", "C": "2"}, mw.timeouts("Two")); d != "" {
		t.Error(d)
	}
	told := map[string]string{}
	for _, ev := range mw.events(m.runID, runlog.RunningMacros) {
		told[ev.Stack] = ev.Message
	}
	if len(told) != 2 || told["One"] == "" || told["Two"] == "" {
		t.Errorf("it is told by %v", told)
	}
	for _, a := range mw.actings {
		if a.Stack.Account != account || a.Stack.Region != region {
			t.Errorf("a call was made for %+v", a)
		}
	}
	mw.clean()
	mw.sound(m.runID)
	mw.accounted("One", "Plain", "Two")
}

func TestADeployTakesTheTemplateThatItsPlanWasMadeFrom(t *testing.T) {
	mw := newMacroWorld(t)
	a := twoOfMacros()
	a.command, a.of = runlog.CommandPlan, runlog.CommandDeploy
	planned := mw.submitApp(a)
	if h := mw.finish(planned); h.Result != runlog.ResultSucceeded {
		t.Fatalf("%s: %s", h.Result, mw.story(planned.runID))
	}
	mw.clean()

	bound := twoOfMacros()
	bound.planRun = planned.runID
	m := mw.submitApp(bound)
	if h := mw.finish(m); h.Result != runlog.ResultSucceeded || h.Counts.Created != 4 {
		t.Fatalf("%s %+v: %s", h.Result, h.Counts, mw.story(m.runID))
	}
	if n := len(mw.service.Created()); n != 2 {
		t.Errorf("%d change sets were made, want those of the plan", n)
	}

	// Another run of the macros makes something else: what is bound to the plan must not be that.
	if h := mw.finish(mw.submitApp(twoOfMacros())); h.Result != runlog.ResultSucceeded || h.Counts.Updated != 3 {
		t.Fatalf("%s %+v", h.Result, h.Counts)
	}
	mw.clean()
}

func TestADeployWhoseShownTemplateIsGoneIsRefusedWhereTheMacrosMakeAnother(t *testing.T) {
	mw := newMacroWorld(t)
	a := app{command: runlog.CommandPlan, of: runlog.CommandDeploy, stacks: []appStack{{name: "One", template: queuesOf("A")}}}
	planned := mw.submitApp(a)
	mw.finish(planned)
	var views struct {
		Bindings map[string]struct{ Expanded string }
	}
	obj, err := mw.objects.Get(context.Background(), "slipway/runs/"+planned.runID+"/view.json")
	if err != nil || json.Unmarshal(obj.Body, &views) != nil {
		t.Fatal(err)
	}
	for _, b := range views.Bindings {
		mw.forget(b.Expanded)
	}
	a.command, a.of, a.planRun = runlog.CommandDeploy, "", planned.runID
	m := mw.submitApp(a)
	if h := mw.finish(m); h.Result != runlog.ResultFailed || !strings.Contains(mw.story(m.runID), "has changed since its plan was shown") {
		t.Fatalf("%s: %s", h.Result, mw.story(m.runID))
	}
	mw.clean()
}

func (mw *macroWorld) forget(key string) {
	mw.Helper()
	obj, err := mw.objects.Get(context.Background(), key)
	if err == nil {
		err = mw.objects.Delete(context.Background(), key, objectstore.Condition{IfMatch: obj.ETag})
	}
	if err != nil {
		mw.Fatalf("%q: %v", key, err)
	}
}

func TestMacrosRunAgainForOtherParameters(t *testing.T) {
	mw := newMacroWorld(t)
	template := queuesOf("A")
	template["Parameters"] = object{"Size": object{"Type": "String", "Default": "s"}}
	deploy := func(parameters map[string]string) {
		t.Helper()
		m := mw.submit(order{stack: "App", command: runlog.CommandDeploy, template: template, change: func(r *run.Request) { r.Stacks[0].Parameters = parameters }})
		if h := mw.finish(m); h.Result != runlog.ResultSucceeded {
			t.Fatalf("%s: %s", h.Result, mw.story(m.runID))
		}
	}
	deploy(nil)
	deploy(map[string]string{"Size": "xl"})
	deploy(nil) // it keeps the value
	var sent []string
	for _, in := range mw.service.Created() {
		got := ""
		for _, p := range in.Parameters {
			got = aws.ToString(p.ParameterValue)
		}
		sent = append(sent, got)
	}
	if d := cmp.Diff([]string{"", "xl", "xl"}, sent); d != "" {
		t.Error(d)
	}
	mw.clean()
}

func TestMacrosThatFailAreNotRunAgainByTheSameDeployment(t *testing.T) {
	mw := newMacroWorld(t)
	mw.failure = "Transform 1::Queues failed with: boom"
	a := twoOfMacros()
	m := mw.submitApp(a)
	h := mw.finish(m)
	if h.Result != runlog.ResultFailed || len(h.Diagnostics) != 2 {
		t.Fatalf("%s: %s", h.Result, mw.story(m.runID))
	}
	for i, name := range []string{"One", "Two"} {
		if d := h.Diagnostics[i]; d.Stack != name || d.Summary != "the macros have failed" || !strings.Contains(d.Detail, "boom") || d.Next == "" {
			t.Errorf("got %+v", d)
		}
	}
	if n := len(mw.service.Created()); n != 2 {
		t.Errorf("%d change sets were made, want one for each stack", n)
	}
	mw.clean()
	if mw.record("Plain") != nil {
		t.Error("something was deployed")
	}
}

func TestAnUnansweredServiceIsAskedUntilTheTimeIsOver(t *testing.T) {
	mw := newMacroWorld(t)
	mw.service.Around = func(context.Context, string, func() error) error { return errors.New("no route to host") }
	began := mw.clk.Now()
	m := mw.submitDeploy(queuesOf("A"))
	if h := mw.finish(m); h.Result != runlog.ResultFailed || !strings.Contains(mw.story(m.runID), "no route to host") {
		t.Fatalf("%s: %s", h.Result, mw.story(m.runID))
	}
	if took := mw.clk.Now().Sub(began); took < macro.Timeout || took > macro.Timeout+time.Minute {
		t.Errorf("it took %s", took)
	}
}

func TestARejectionByEarlyValidationIsTriedAgainUnderAnotherName(t *testing.T) {
	mw := newMacroWorld(t)
	mw.service.Macro = func(in *cloudformation.CreateChangeSetInput, n int) (string, string) {
		if n < 3 {
			return "", "validation failed: [AWS::EarlyValidation::ResourceExistenceCheck]"
		}
		return mw.queues(in, n)
	}
	if h := mw.deploy(queuesOf("A")); h.Result != runlog.ResultSucceeded {
		t.Fatalf("%s: %s", h.Result, mw.story(h.RunID))
	}
	names := map[string]bool{}
	for _, in := range mw.service.Created() {
		names[aws.ToString(in.StackName)] = true
	}
	if len(names) != 3 {
		t.Errorf("the stacks were %v", names)
	}
	mw.clean()
}

func TestARunThatIsCancelledWhileItsMacrosRunLeavesNothing(t *testing.T) {
	for _, deployment := range []bool{false, true} {
		mw := newMacroWorld(t)
		mw.service.Polls = -1
		var m *machine
		if deployment {
			m = mw.submitApp(twoOfMacros())
		} else {
			m = mw.submitDeploy(queuesOf("A"))
		}
		for range 5 {
			m.step()
		}
		if len(mw.service.Standing()) == 0 {
			t.Fatal("no macro is running")
		}
		mw.cancel(m.runID)
		if h := mw.finish(m); h.Result != runlog.ResultFailed || !strings.Contains(h.Failure.Summary, "cancelled") {
			t.Errorf("%s %+v", h.Result, h.Failure)
		}
		mw.clean()
		if mw.service.Polls = 0; !deployment {
			if h := mw.deploy(queuesOf("A")); h.Result != runlog.ResultSucceeded {
				t.Errorf("the next run: %s: %s", h.Result, mw.story(h.RunID))
			}
		}
	}
}

// A twin has read the template and deleted the stack when this process comes to make it: that one is not needed, and
// must not stay.
func TestALateProcessLeavesNoStack(t *testing.T) {
	mw := newMacroWorld(t)
	m := mw.submitDeploy(queuesOf("A"))
	twin := mw.process("process-2")
	mw.faults.meanwhile("create change set", func() {
		for range 10 {
			step, err := m.ask(twin, 1)
			if err != nil {
				t.Fatal(err)
			}
			if step.Kind == run.StepNext {
				break
			}
			mw.clk.Advance(time.Duration(step.Seconds) * time.Second)
		}
		mw.clean()
	})
	if h := mw.finish(m); h.Result != runlog.ResultSucceeded {
		t.Fatalf("%s: %s", h.Result, mw.story(m.runID))
	}
	if n := len(mw.service.Created()); n != 2 {
		t.Errorf("%d change sets were made: the late one was not", n)
	}
	mw.clean()
}

// A process may be late beyond the end of the deployment.
func TestAProcessThatIsLateBeyondTheEndLeavesNoStack(t *testing.T) {
	mw := newMacroWorld(t)
	m := mw.submitDeploy(queuesOf("A"))
	mw.faults.meanwhile("create change set", func() { mw.settle(mw.process("janitor"), m.runID) })
	m.step()
	if n := len(mw.service.Created()); n != 1 {
		t.Errorf("%d change sets were made", n)
	}
	mw.clean()
}

// TestMacrosSurviveEveryBrokenCall: the state machine repeats the call that a fault has ended.
func TestMacrosSurviveEveryBrokenCall(t *testing.T) {
	a := app{command: runlog.CommandDeploy, stacks: []appStack{{name: "One", template: queuesOf("A")}, {name: "Two", template: queuesOf("B")}}}
	calls := macroCalls(t, a)
	for _, b := range breakages() {
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			for k, name := range calls {
				if b.after && !changes(name) || k%sampled != 0 && !ofMacros(name) {
					continue
				}
				mw := newMacroWorld(t)
				m := mw.submitApp(a)
				mw.faults.breaks, mw.faults.after, mw.faults.dies = k+1, b.after, b.dies
				if h := mw.finish(m); h.Result != runlog.ResultSucceeded || len(mw.service.Created()) != 2 {
					t.Errorf("%s with %d change sets: %s", h.Result, len(mw.service.Created()), mw.story(m.runID))
				}
				mw.clean()
				mw.sound(m.runID)
				mw.accounted("One", "Two")
				if t.Failed() {
					t.Fatalf("with call %d of %d broken: %s", k+1, len(calls), name)
				}
			}
		})
	}
}

// TestADeadExecutionLeavesNoMacros: the execution ends with the call that breaks, the janitor comes, and then the next
// deploy.
func TestADeadExecutionLeavesNoMacros(t *testing.T) {
	a := app{command: runlog.CommandDeploy, stacks: []appStack{{name: "One", template: queuesOf("A")}}}
	calls := macroCalls(t, a)
	for _, b := range breakages() {
		if !b.dies {
			continue
		}
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			for k, name := range calls {
				if b.after && !changes(name) || k%sampled != 0 && !ofMacros(name) {
					continue
				}
				mw := newMacroWorld(t)
				m := mw.submitApp(a)
				mw.faults.breaks, mw.faults.after, mw.faults.dies = k+1, b.after, b.dies
				for range 5000 {
					for _, each := range mw.running() {
						if each.step(); mw.faults.struck {
							break
						}
					}
					if mw.faults.struck {
						break
					}
				}
				for _, each := range mw.running() {
					each.stop()
				}
				mw.faults.revive()
				mw.faults.breaks = 0
				mw.deadHolders["process-1"] = true
				janitor := mw.process("janitor")
				mw.settle(janitor, m.runID)
				for _, child := range mw.children(m.runID) {
					mw.settle(janitor, child.RunID)
				}
				mw.clean()
				mw.engine = mw.process("process-2")
				again := mw.submitApp(a)
				if h := mw.finish(again); h.Result != runlog.ResultSucceeded {
					t.Errorf("the next run is %s: %s", h.Result, mw.story(again.runID))
				}
				mw.clean()
				if t.Failed() {
					t.Fatalf("with call %d of %d broken: %s", k+1, len(calls), name)
				}
			}
		})
	}
}

// macroCalls are the store calls of a deployment; those that macros add are all broken, of the others, which other tests
// break, some.
func macroCalls(t *testing.T, a app) []string {
	mw := newMacroWorld(t)
	mw.finish(mw.submitApp(a))
	return mw.faults.names
}

func ofMacros(name string) bool {
	return strings.Contains(name, "change set") || strings.Contains(name, "get template") || strings.Contains(name, "delete stack") || strings.Contains(name, "/macros/")
}

func changes(name string) bool { return writes(name) && !strings.HasPrefix(name, "append ") }

func TestAStackThatCanNotBeDeletedIsAWarningAndKeepsNoRunFromClosing(t *testing.T) {
	mw := newMacroWorld(t)
	mw.service.Around = func(_ context.Context, call string, do func() error) error {
		if call == "delete stack" {
			return &smithy.GenericAPIError{Code: "AccessDenied", Message: "no"}
		}
		return do()
	}
	m := mw.submitDeploy(queuesOf("A"))
	h := mw.finish(m)
	if h.Result != runlog.ResultSucceeded || h.Status != runlog.StatusClosed {
		t.Fatalf("%s: %s", h.Result, mw.story(m.runID))
	}
	if len(h.Diagnostics) != 1 || !strings.Contains(h.Diagnostics[0].Summary, mw.service.Standing()[0]+" is left over from running macros") {
		t.Errorf("it is told by %v", h.Diagnostics)
	}
}

func TestTheRoleOfTheStackIsThatOfItsMacrosAndOfTheirCleanup(t *testing.T) {
	mw := newMacroWorld(t)
	role := run.Role{ARN: "arn:aws:iam::" + account + ":role/r", ExternalID: "x"}
	m := mw.submit(order{stack: "App", command: runlog.CommandDeploy, template: queuesOf("A"), change: func(r *run.Request) { r.Stacks[0].Role = &role }})
	m.step()
	mw.cancel(m.runID)
	mw.finish(m)
	mw.clean()
	if len(mw.actings) != 2 { // made, deleted
		t.Errorf("%d calls were made", len(mw.actings))
	}
	for _, a := range mw.actings {
		if a.Role != role || a.RunID != m.runID || a.Stack != stackRef("App") {
			t.Errorf("a call was made for %+v", a)
		}
	}
}
