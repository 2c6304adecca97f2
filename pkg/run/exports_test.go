package run_test

import (
	"context"
	"strings"
	"testing"

	"github.com/slipway-cdk/slipway/pkg/run"
	"github.com/slipway-cdk/slipway/pkg/runlog"
)

// producer exports "id" unless it is told not to; consumer imports it.
func producer(exports bool) object {
	t := object{"Resources": object{"P": topic(object{})}}
	if exports {
		t["Outputs"] = object{"Id": object{"Value": ref("P"), "Export": object{"Name": "the-id"}}}
	}
	return t
}

func consumer() object {
	return resources(object{"C": queue(object{"KmsMasterKeyId": importOf("the-id")})})
}

func (w *world) deployStack(name string, template object) runlog.Header {
	w.Helper()
	return w.finish(w.submitApp(app{command: runlog.CommandDeploy, stacks: []appStack{{name: name, template: template}}}))
}

func (w *world) destroyStacks(names ...string) runlog.Header {
	w.Helper()
	a := app{command: runlog.CommandDestroy}
	for _, name := range names {
		a.stacks = append(a.stacks, appStack{name: name})
	}
	return w.finish(w.submitApp(a))
}

func imported(t *testing.T) *world {
	w := newWorld(t)
	for _, h := range []runlog.Header{w.deployStack("Producer", producer(true)), w.deployStack("Consumer", consumer())} {
		if h.Result != runlog.ResultSucceeded {
			t.Fatal(w.story(h.RunID))
		}
	}
	return w
}

func says(h runlog.Header, part string) bool {
	for _, d := range h.Diagnostics {
		if strings.Contains(d.Error(), part) {
			return true
		}
	}
	return false
}

func TestAnImportedStackIsNotDestroyed(t *testing.T) {
	w := imported(t)
	h := w.destroyStacks("Producer")
	if h.Result != runlog.ResultFailed || !says(h, "Consumer") || len(w.cloud.exists()) != 2 {
		t.Errorf("%s %v, %v exists", h.Result, h.Diagnostics, w.cloud.exists())
	}
	w.sound(h.RunID)
	// In the right order it is, although the app does not say that one depends on the other.
	if h = w.destroyStacks("Producer", "Consumer"); h.Result != runlog.ResultSucceeded || len(w.cloud.exists()) != 0 {
		t.Errorf("%s: %s", h.Result, w.story(h.RunID))
	}
	x, _, err := w.states.LoadExports(context.Background(), region)
	if err != nil || len(x.Exports) != 0 {
		t.Errorf("exports %+v, %v", x, err)
	}
}

// TestAProducerStaysWhenItsConsumerCouldNotGo: the consumer's destroy leaves something behind.
func TestAProducerStaysWhenItsConsumerCouldNotGo(t *testing.T) {
	w := imported(t)
	w.cloud.script("delete C", script{fails: fails("AccessDenied")})
	h := w.destroyStacks("Consumer", "Producer")
	if h.Result != runlog.ResultFailed || len(w.cloud.steps("delete P")) != 0 {
		t.Errorf("%s, calls %v", h.Result, stepsOf(w))
	}
	w.sound(h.RunID)
	w.accounted("Producer", "Consumer")
}

func TestAnExportThatIsImportedDoesNotVanish(t *testing.T) {
	w := imported(t)
	h := w.deployStack("Producer", producer(false))
	if h.Result != runlog.ResultFailed || !says(h, "the export the-id would go") || !says(h, "Consumer") {
		t.Errorf("%s %v", h.Result, h.Diagnostics)
	}
	// For a plan that is only looked at it is a warning.
	h = w.finish(w.submitApp(app{
		command: runlog.CommandPlan, of: runlog.CommandDeploy, stacks: []appStack{{name: "Producer", template: producer(false)}},
		options: run.Options{Lenient: true},
	}))
	if h.Result != runlog.ResultSucceeded || !says(h, "the-id") {
		t.Errorf("plan: %s %v", h.Result, h.Diagnostics)
	}
	together := app{command: runlog.CommandDeploy, stacks: []appStack{
		{name: "Producer", template: producer(false)},
		{name: "Consumer", template: resources(object{"C": queue(object{})}), dependsOn: []string{"Producer"}},
	}}
	h = w.finish(w.submitApp(together))
	if h.Result != runlog.ResultFailed || !says(h, "in one deploy") || len(w.cloud.steps("update")) != 0 {
		t.Errorf("%s %v", h.Result, h.Diagnostics)
	}
	// A consumer that gives the import up in the same deployment goes first.
	together.stacks[1].dependsOn = nil
	h = w.finish(w.submitApp(together))
	if h.Result != runlog.ResultSucceeded {
		t.Errorf("%s: %s", h.Result, w.story(h.RunID))
	}
	x, _, err := w.states.LoadExports(context.Background(), region)
	if err != nil || len(x.Exports) != 0 {
		t.Errorf("exports %+v, %v", x, err)
	}
}

func TestWhoGivesAnImportUpGoesFirstWhereverItStands(t *testing.T) {
	other := appStack{name: "Other", template: resources(object{"O": queue(object{})})}
	from := appStack{name: "Producer", template: producer(false)}
	to := appStack{name: "Consumer", template: resources(object{"C": queue(object{})})}
	for _, stacks := range [][]appStack{{from, to}, {to, from}, {from, to, other}, {other, from, to}, {to, other, from}} {
		w := imported(t)
		h := w.finish(w.submitApp(app{command: runlog.CommandDeploy, stacks: stacks}))
		if h.Result != runlog.ResultSucceeded {
			t.Fatalf("%s: %s", h.Result, w.story(h.RunID))
		}
		runs, err := w.log.ListRuns(t.Context(), runlog.Filter{Root: h.RunID})
		if err != nil {
			t.Fatal(err)
		}
		began := map[string]runlog.Header{}
		for _, r := range runs {
			began[r.Stack.Name] = r
		}
		if began["Producer"].StartedAt.Before(began["Consumer"].FinishedAt) {
			t.Errorf("the producer has begun at %s, and its consumer ended at %s", began["Producer"].StartedAt, began["Consumer"].FinishedAt)
		}
	}
}

func TestAnImportThatNobodyExportsIsRefused(t *testing.T) {
	w := newWorld(t)
	h := w.deployStack("Consumer", consumer())
	if h.Result != runlog.ResultFailed || !says(h, "no stack exports the-id") {
		t.Errorf("%s %v", h.Result, h.Diagnostics)
	}
}

func TestAProtectedStackIsNotDestroyed(t *testing.T) {
	w := newWorld(t)
	w.deployStack("App", before())
	protected := app{command: runlog.CommandDestroy, stacks: []appStack{{name: "App", protected: true}}}
	h := w.finish(w.submitApp(protected))
	if h.Result != runlog.ResultFailed || !says(h, "protected") || len(w.cloud.exists()) != 5 {
		t.Errorf("%s %v", h.Result, h.Diagnostics)
	}
	protected.options.RemoveProtection = true
	if h = w.finish(w.submitApp(protected)); h.Result != runlog.ResultSucceeded || len(w.cloud.exists()) != 0 {
		t.Errorf("%s %v: %s", h.Result, w.cloud.exists(), w.story(h.RunID))
	}
}

func TestOutputsFollowTheTemplate(t *testing.T) {
	w := newWorld(t)
	template := func(value string) object {
		return object{
			"Parameters": object{"Size": object{"Type": "Number", "Default": 3}, "Names": object{"Type": "CommaDelimitedList", "Default": "a,b"}},
			"Resources":  object{"P": topic(object{})},
			"Outputs":    object{"V": object{"Value": value}, "Id": object{"Value": ref("P")}, "Size": object{"Value": ref("Size")}},
		}
	}
	w.deploy(template("one"))
	h := w.deploy(template("two"))
	rec := w.record("App")
	if h.Result != runlog.ResultSucceeded || h.Counts.Unchanged != 1 || rec.Outputs["V"] != "two" || rec.Outputs["Id"] != rec.Resources["P"].PhysicalID {
		t.Errorf("%s %+v %+v", h.Result, h.Counts, rec.Outputs)
	}
}

func TestTheSidecarTellsWhatTheRecordWasMadeFrom(t *testing.T) {
	w := newWorld(t)
	m := w.submit(order{stack: "App", command: runlog.CommandDeploy, template: object{
		"Parameters": object{"Size": object{"Type": "Number", "Default": 3}, "Name": object{"Type": "String"}},
		"Resources":  object{"P": topic(object{"DisplayName": ref("Name")})},
	}, change: func(r *run.Request) { r.Stacks[0].Parameters = map[string]string{"Name": "given"} }})
	if h := w.finish(m); h.Result != runlog.ResultSucceeded {
		t.Fatal(w.story(m.runID))
	}
	c, _, err := w.states.LoadSidecar(context.Background(), "App", region)
	if err != nil {
		t.Fatal(err)
	}
	if c.Next.Parameters["Name"] != "given" || c.Next.RunID != m.runID || c.Next.TemplateDigest == "" {
		t.Errorf("%+v", c.Next)
	}
}

func TestAStackThatCdkdHasDeployedKeepsItsStackID(t *testing.T) {
	w := newWorld(t)
	stackID := "arn:aws:cloudformation:" + region + ":" + account + ":stack/App/cdkd"
	template := func(name string) object {
		return one("P", topic(object{"DisplayName": object{"Fn::Sub": name + "${AWS::StackId}"}}))
	}
	rec := `{"version":8,"stackName":"App","region":"` + region + `","outputs":{},"lastModified":1,"resources":{"P":{"physicalId":"P-0","resourceType":"AWS::SNS::Topic",` +
		`"properties":{"DisplayName":"` + stackID + `"},"attributes":{},"provisionedBy":"sdk"}}}`
	w.putRaw(w.states.StateKey("App", region), rec)
	w.cloud.live["P-0"] = thing{Type: "AWS::SNS::Topic", LogicalID: "P"}
	if h := w.deploy(template("")); h.Counts.Unchanged != 1 {
		t.Errorf("%+v: %s", h.Counts, w.story(h.RunID))
	}
	w.deploy(template("more"))
	if got := w.record("App").Resources["P"].Properties["DisplayName"]; got != "more"+stackID {
		t.Errorf("the update has sent %v", got)
	}
	other := newWorld(t)
	other.deploy(template(""))
	if got := other.record("App").Resources["P"].Properties["DisplayName"].(string); strings.HasSuffix(got, "/cdkd") {
		t.Errorf("a new stack has the id %s", got)
	}
}

func TestADamagedRecordIsRefusedAndAPassingFaultIsNot(t *testing.T) {
	w := newWorld(t)
	w.putRaw(w.states.StateKey("App", region), `{"version":8,"stackName":"App","region":"`+region+`","resources":"none"}`)
	m := w.submitDeploy(before())
	if h := w.finish(m); h.Result != runlog.ResultFailed || m.failed != nil || len(w.cloud.calls) != 0 {
		t.Errorf("%s, %v", h.Result, m.failed)
	}
	w.sound(m.runID)
	w = newWorld(t)
	m = w.submitDeploy(before())
	w.faults.killAt("get cdkd/App/eu-west-1/state.json", false)
	w.faults.dies = false
	if h := w.finish(m); h.Result != runlog.ResultSucceeded {
		t.Errorf("a store that was away for a moment: %s %v", h.Result, h.Diagnostics)
	}
}
