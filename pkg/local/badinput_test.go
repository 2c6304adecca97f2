package local

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-cdk/slipway/pkg/assembly"
	"github.com/slipway-cdk/slipway/pkg/diag"
	"github.com/slipway-cdk/slipway/pkg/objectstore"
	"github.com/slipway-cdk/slipway/pkg/run"
	"github.com/slipway-cdk/slipway/pkg/runlog"
)

// badTemplate is something wrong in a template that is otherwise fine.
type badTemplate struct {
	spoil func(template, resources object)
	// Where the one diagnostic must point, and what it must say, summary and detail and next step together.
	logicalID, path string
	says            []string
}

var badTemplates = map[string]badTemplate{
	"a resource type that does not exist": {
		func(_, r object) { r["Queue"].(object)["Type"] = "AWS::SQS::Qeue" },
		"Queue", "Type", []string{"AWS::SQS::Qeue", "AWS::SQS::Queue"},
	},
	"a Ref to nothing": {
		func(_, r object) { props(r, "Name")["Value"] = ref("Quue") },
		"Name", "Properties.Value", []string{"Quue"},
	},
	"a GetAtt of nothing": {
		func(_, r object) { props(r, "Name")["Value"] = att("Quue", "Arn") },
		"Name", "Properties.Value", []string{"Quue"},
	},
	"a Sub of nothing": {
		func(_, r object) { props(r, "Name")["Value"] = object{"Fn::Sub": "at ${Quue.Arn}"} },
		"Name", "Properties.Value", []string{"Quue"},
	},
	"a DependsOn of nothing": {
		func(_, r object) { r["Name"].(object)["DependsOn"] = "Quue" },
		"Name", "DependsOn", []string{"Quue"},
	},
	"a circle": {
		func(_, r object) {
			props(r, "Topic")["DisplayName"] = ref("Name")
		},
		"Name", "", []string{"Name.Properties.Value → Queue", "Queue.DependsOn → Topic", "Topic.Properties.DisplayName → Name"},
	},
	"a resource that refers to itself": {
		func(_, r object) { props(r, "Topic")["DisplayName"] = ref("Topic") },
		"Topic", "", []string{"itself", "Topic.Properties.DisplayName → Topic"},
	},
	"a property that does not exist": {
		func(_, r object) { props(r, "Queue")["VisibilityTimeot"] = 30 },
		"Queue", "Properties.VisibilityTimeot", []string{"VisibilityTimeout"},
	},
	"a nested property that does not exist": {
		func(_, r object) {
			props(r, "Topic")["DeliveryStatusLogging"] = []any{object{"Protocol": "sqs", "SuccesFeedbackSampleRate": "1"}}
		},
		"Topic", "Properties.DeliveryStatusLogging.0.SuccesFeedbackSampleRate", []string{"SuccessFeedbackSampleRate"},
	},
	"a required property that is missing": {
		func(_, r object) { delete(props(r, "Subscription"), "TopicArn") },
		"Subscription", "Properties.TopicArn", []string{"required"},
	},
	"a text where a number belongs": {
		func(_, r object) { props(r, "Queue")["VisibilityTimeout"] = "soon" },
		"Queue", "Properties.VisibilityTimeout", []string{"whole number"},
	},
	"a macro": {
		func(t, _ object) { t["Transform"] = "Company::Defaults" },
		"", "Transform", []string{"Company::Defaults", "macro"},
	},
	"an attribute that does not exist": {
		func(_, r object) { props(r, "Name")["Value"] = att("Queue", "Arnn") },
		"Name", "Properties.Value", []string{"Arnn", "Queue"},
	},
	"an import of an export that nobody has": {
		func(_, r object) { props(r, "Name")["Value"] = object{"Fn::ImportValue": "Base:Network"} },
		"", "", []string{"Base:Network", "exports"},
	},
	"a condition that does not exist": {
		func(_, r object) { r["Name"].(object)["Condition"] = "IsProd" },
		"Name", "Condition", []string{"IsProd"},
	},
	"a function that does not exist": {
		func(_, r object) { props(r, "Name")["Value"] = object{"Fn::Joyn": []any{"", []any{"a"}}} },
		"Name", "Properties.Value", []string{"Fn::Joyn"},
	},
	"a parameter without a value": {
		func(t, r object) {
			t["Parameters"] = object{"Stage": object{"Type": "String"}}
			props(r, "Name")["Value"] = ref("Stage")
		},
		"", "Parameters.Stage", []string{"Stage"},
	},
	"an output that refers to nothing": {
		func(t, _ object) { t["Outputs"] = object{"Url": object{"Value": ref("Quue")}} },
		"", "Outputs.Url", []string{"Quue"},
	},
}

func props(resources object, id string) object { return resources[id].(object)["Properties"].(object) }

func plainTemplate() object {
	return object{"Resources": object{
		"Topic":        resource("AWS::SNS::Topic", object{}),
		"Queue":        with(resource("AWS::SQS::Queue", object{"VisibilityTimeout": 30}), "DependsOn", "Topic"),
		"Name":         resource("AWS::SSM::Parameter", object{"Type": "String", "Value": att("Queue", "QueueName")}),
		"Subscription": resource("AWS::SNS::Subscription", object{"TopicArn": ref("Topic"), "Protocol": "sqs", "Endpoint": att("Queue", "Arn")}),
	}}
}

// TestABadTemplateIsRefusedBeforeAnythingIsTouched gives the engine templates with one mistake each: as a first
// deploy, and as a change of what stands.
func TestABadTemplateIsRefusedBeforeAnythingIsTouched(t *testing.T) {
	good := writeApp(t, map[string]object{"Bad": plainTemplate()}, nil)
	for _, name := range slices.Sorted(maps.Keys(badTemplates)) {
		bad := badTemplates[name]
		t.Run(name, func(t *testing.T) {
			f := &faults{}
			p := openPlane(t, Options{Dir: t.TempDir(), WrapProvider: f.decorator()})
			template := plainTemplate()
			bad.spoil(template, template["Resources"].(object))
			asm := writeApp(t, map[string]object{"Bad": template}, nil)

			refuses := func(when string) {
				t.Helper()
				before, files := worldOf(t, p, "Bad"), stackFiles(t, p, "Bad")
				f.set(nil)
				h := submit(t, p, asm, run.Submission{Command: runlog.CommandDeploy})
				checkRefusal(t, h, bad.logicalID, bad.path, bad.says)
				if len(f.calls) > 0 {
					t.Errorf("%s: providers were called: %v", when, f.calls)
				}
				if d := cmp.Diff(before, worldOf(t, p, "Bad")); d != "" {
					t.Errorf("%s: something has changed:\n%s", when, d)
				}
				if d := cmp.Diff(files, stackFiles(t, p, "Bad")); d != "" {
					t.Errorf("%s: the files of the stack have changed:\n%s", when, d)
				}
				settled(t, p, when)
			}
			refuses("first deploy")
			if h := submit(t, p, good, run.Submission{Command: runlog.CommandDeploy}); h.Result != runlog.ResultSucceeded {
				t.Fatal(story(t, p, h))
			}
			refuses("change")
			unchanged(t, p, good, "the good version afterwards")
		})
	}
}

// checkRefusal checks that a run was refused with one diagnostic that says where, what and what next.
func checkRefusal(t *testing.T, h runlog.Header, logicalID, path string, says []string) {
	t.Helper()
	if h.Result != runlog.ResultFailed || h.Status != runlog.StatusClosed {
		t.Errorf("the run is %s %s", h.Status, h.Result)
	}
	var errs diag.Diagnostics
	for _, d := range h.Diagnostics {
		if d.Severity == diag.Error {
			errs = append(errs, d)
		}
	}
	if len(errs) != 1 {
		t.Errorf("%d errors, want one: %v", len(errs), errs)
		return
	}
	d := errs[0]
	if d.Stack != "Bad" || d.LogicalID != logicalID || !strings.HasPrefix(d.Path, path) || (path == "") != (d.Path == "") {
		t.Errorf("it points to stack %q, logical id %q, path %q; want Bad, %q, %q: %v", d.Stack, d.LogicalID, d.Path, logicalID, path, d)
	}
	if d.Summary == "" || d.Next == "" {
		t.Errorf("summary %q, next step %q: want both", d.Summary, d.Next)
	}
	text := d.Summary + " " + d.Detail + " " + d.Next
	for _, want := range says {
		if !strings.Contains(text, want) {
			t.Errorf("it does not say %q: %s", want, text)
		}
	}
}

// stackFiles returns the ETags of everything that is stored for a stack.
func stackFiles(t *testing.T, p *Plane, stack string) map[string]string {
	t.Helper()
	infos, err := p.engine.Objects.List(context.Background(), "")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, i := range infos {
		if strings.Contains(i.Key, "/"+stack+"/") {
			out[i.Key] = i.ETag
		}
	}
	return out
}

// TestAValueThatIsNotAllowedIsWarnedOf: services widen their enumerations faster than their schemas say, so it is
// the service that refuses; the warning says before what it will say.
func TestAValueThatIsNotAllowedIsWarnedOf(t *testing.T) {
	p := openPlane(t, Options{Dir: t.TempDir()})
	template := plainTemplate()
	props(template["Resources"].(object), "Name")["Type"] = "Strng"
	h := submit(t, p, writeApp(t, map[string]object{"Bad": template}, nil), run.Submission{Command: runlog.CommandDeploy})
	if h.Result != runlog.ResultFailed || h.Failure == nil || h.Failure.LogicalID != "Name" {
		t.Fatalf("the run is %s with %+v", h.Result, h.Failure)
	}
	warnings := strings.Join(warningsAbout(t, p, h, "Name"), " ")
	for _, want := range []string{"Properties.Type", "StringList", "did you mean String?"} {
		if !strings.Contains(warnings, want) {
			t.Errorf("the warning does not say %q: %s", want, warnings)
		}
	}
	if left := liveKeys(t, p); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	settled(t, p, "after the rollback")
}

func TestABadAssemblyIsRefusedWhenItIsRead(t *testing.T) {
	manifest := func(version string, stack object) string {
		data, err := json.Marshal(object{"version": version, "artifacts": object{"Bad": stack}})
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	stack := object{"type": "aws:cloudformation:stack", "environment": "aws://unknown-account/unknown-region", "properties": object{"templateFile": "Bad.template.json"}}
	for name, bad := range map[string]struct {
		manifest, template string
		says               []string
	}{
		"no manifest":             {"", "{}", []string{"manifest.json"}},
		"a manifest cut short":    {`{"version":"48.0.0","artifacts":{`, "{}", []string{"manifest.json"}},
		"a manifest of a list":    {`[]`, "{}", []string{"manifest.json"}},
		"a newer manifest":        {manifest("999.0.0", stack), "{}", []string{"999", "pgrade"}},
		"a template that is gone": {manifest("48.0.0", stack), "", []string{"Bad.template.json"}},
		"a path that leads out": {
			manifest("48.0.0", object{"type": "aws:cloudformation:stack", "environment": "aws://unknown-account/unknown-region", "properties": object{"templateFile": "../../etc/passwd"}}),
			"{}", []string{"../../etc/passwd"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for file, content := range map[string]string{assembly.ManifestFile: bad.manifest, "Bad.template.json": bad.template} {
				if content == "" {
					continue
				}
				if err := os.WriteFile(filepath.Join(dir, file), []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			_, err := assembly.Read(dir)
			ds := diag.From(err)
			if len(ds) != 1 || ds[0].Severity != diag.Error || ds[0].Summary == "" || !strings.HasSuffix(ds[0].Next, ".") {
				t.Fatalf("want one error with a next step, got %+v", ds)
			}
			text := ds[0].Error() + " " + ds[0].Next
			for _, want := range bad.says {
				if !strings.Contains(text, want) {
					t.Errorf("it does not say %q: %s", want, text)
				}
			}
		})
	}
}

func TestATemplateThatIsNoneIsRefused(t *testing.T) {
	for name, text := range map[string]string{
		"cut short": `{"Resources":{"Queue":{"Type":"AWS::SQS::Queue"`, "a list": `[]`, "a text": `"template"`,
		"resources that are a list": `{"Resources":[]}`, "a resource that is a text": `{"Resources":{"Queue":"AWS::SQS::Queue"}}`,
		"properties that are a list": `{"Resources":{"Queue":{"Type":"AWS::SQS::Queue","Properties":[]}}}`,
		"no type":                    `{"Resources":{"Queue":{"Properties":{}}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			p := openPlane(t, Options{Dir: t.TempDir()})
			asm := writeApp(t, map[string]object{"Bad": {}}, nil)
			asm.Stacks[0].Template = []byte(text)
			h := submit(t, p, asm, run.Submission{Command: runlog.CommandDeploy})
			if h.Result != runlog.ResultFailed || !h.Diagnostics.HasErrors() {
				t.Fatalf("the run is %s with %v", h.Result, h.Diagnostics)
			}
			for _, d := range h.Diagnostics {
				if d.Stack != "Bad" || d.Summary == "" || !strings.HasSuffix(d.Next, ".") {
					t.Errorf("stack %q, summary %q, next step %q: want all three", d.Stack, d.Summary, d.Next)
				}
			}
			if left := stackFiles(t, p, "Bad"); len(left) > 0 || len(liveKeys(t, p)) > 0 {
				t.Errorf("something was stored: %v", left)
			}
			settled(t, p, "after the refusal")
		})
	}
}

// TestAnErrorAnnotationIsRead: the command refuses a stack by it; what the assembly says of it must be complete.
func TestAnErrorAnnotationIsRead(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "Bad.template.json"), plainTemplate())
	write(t, filepath.Join(dir, assembly.ManifestFile), object{"version": "48.0.0", "artifacts": object{"Bad": object{
		"type": "aws:cloudformation:stack", "environment": "aws://unknown-account/unknown-region",
		"properties": object{"templateFile": "Bad.template.json"},
		"metadata":   object{"/Bad/Queue": []any{object{"type": "aws:cdk:error", "data": "the queue has no dead-letter queue"}}},
	}}})
	asm := readAssembly(t, dir)
	ms := asm.Stacks[0].Messages
	if len(ms) != 1 || ms[0].Level != assembly.LevelError || ms[0].Path != "/Bad/Queue" || !strings.Contains(ms[0].Text, "dead-letter") {
		t.Errorf("the annotation is read as %+v", ms)
	}
}

// shapes are values of every shape but one.
func shapes(but string) map[string]any {
	all := map[string]any{"a text": "broken", "a list": []any{}, "an object": object{}, "a number": 7, "a boolean": true, "null": nil}
	delete(all, but)
	return all
}

// TestADamagedStateRecordIsRefused damages a good record in every way that the format's description names. Deploy and
// destroy refuse it and touch nothing; a plan that is only looked at repairs it with a warning.
func TestADamagedStateRecordIsRefused(t *testing.T) {
	asm := writeApp(t, map[string]object{"Bad": plainTemplate()}, nil)
	p := openPlane(t, Options{Dir: t.TempDir()})
	if h := submit(t, p, asm, run.Submission{Command: runlog.CommandDeploy}); h.Result != runlog.ResultSucceeded {
		t.Fatal(story(t, p, h))
	}
	ctx := context.Background()
	key := p.States().StateKey("Bad", p.region)
	sound, err := p.engine.Objects.Get(ctx, key)
	if err != nil {
		t.Fatal(err)
	}
	type damage struct {
		logicalID, path string
		do              func(record object)
	}
	damages := map[string]damage{}
	for shape, v := range shapes("an object") {
		damages["resources is "+shape] = damage{"", "resources", func(r object) { r["resources"] = v }}
		damages["a resource is "+shape] = damage{"Queue", "", func(r object) { r["resources"].(object)["Queue"] = v }}
		damages["properties are "+shape] = damage{"Queue", "properties", func(r object) { r["resources"].(object)["Queue"].(object)["properties"] = v }}
		damages["outputs are "+shape] = damage{"", "outputs", func(r object) { r["outputs"] = v }}
	}
	for shape, v := range shapes("a list") {
		damages["orphans are "+shape] = damage{"", "orphans", func(r object) { r["orphans"] = v }}
	}
	for shape, v := range shapes("a text") {
		damages["a resource type is "+shape] = damage{"Queue", "resourceType", func(r object) { r["resources"].(object)["Queue"].(object)["resourceType"] = v }}
	}
	damages["a resource has no type"] = damage{"Queue", "resourceType", func(r object) { delete(r["resources"].(object)["Queue"].(object), "resourceType") }}
	damages["a resource has no properties"] = damage{"Queue", "properties", func(r object) { delete(r["resources"].(object)["Queue"].(object), "properties") }}
	orphan := func(id any) object {
		return object{"logicalId": id, "state": object{"physicalId": "q", "resourceType": "AWS::SQS::Queue", "properties": object{}}}
	}
	damages["an orphan is a text"] = damage{"", "orphans", func(r object) { r["orphans"] = []any{"broken"} }}
	damages["an orphan has no logical id"] = damage{"", "orphans", func(r object) { r["orphans"] = []any{object{"physicalId": "q", "resourceType": "AWS::SQS::Queue"}} }}
	damages["two orphans have one logical id"] = damage{"Lost", "orphans", func(r object) { r["orphans"] = []any{orphan("Lost"), orphan("Lost")} }}

	for _, name := range slices.Sorted(maps.Keys(damages)) {
		d := damages[name]
		t.Run(name, func(t *testing.T) {
			var record object
			if err := json.Unmarshal(sound.Body, &record); err != nil {
				t.Fatal(err)
			}
			d.do(record)
			body, err := json.Marshal(record)
			if err != nil {
				t.Fatal(err)
			}
			put(t, p, key, body)
			defer put(t, p, key, sound.Body)
			live, files := liveKeys(t, p), stackFiles(t, p, "Bad")
			for _, command := range []runlog.Command{runlog.CommandDeploy, runlog.CommandDestroy} {
				h := submit(t, p, asm, run.Submission{Command: command})
				if h.Result != runlog.ResultFailed {
					t.Errorf("%s is %s", command, h.Result)
				}
				errs := diag.Diagnostics{}
				for _, x := range h.Diagnostics {
					if x.Severity == diag.Error {
						errs = append(errs, x)
					}
				}
				if len(errs) != 1 {
					t.Errorf("%s gives %d errors, want one: %v", command, len(errs), errs)
					continue
				}
				if x := errs[0]; x.Stack != "Bad" || x.LogicalID != d.logicalID || !strings.Contains(x.Path, d.path) || !strings.Contains(x.Next, "state.json") {
					t.Errorf("%s says %+v; want it at %q %q", command, x, d.logicalID, d.path)
				}
				if !slices.Equal(live, liveKeys(t, p)) {
					t.Errorf("%s has changed what lives", command)
				}
				if diff := cmp.Diff(files, stackFiles(t, p, "Bad")); diff != "" {
					t.Errorf("%s has changed the files of the stack:\n%s", command, diff)
				}
			}
			for _, of := range []runlog.Command{runlog.CommandDeploy, runlog.CommandDestroy} {
				h := submit(t, p, asm, run.Submission{Command: runlog.CommandPlan, Of: of, Options: run.Options{Lenient: true}})
				warned := false
				for _, x := range h.Diagnostics {
					warned = warned || x.Severity == diag.Warning && x.Stack == "Bad" && strings.Contains(x.Path, d.path)
				}
				if h.Result != runlog.ResultSucceeded || !warned {
					t.Errorf("the plan of a %s is %s, with %v", of, h.Result, h.Diagnostics)
				}
			}
		})
	}
	for name, body := range map[string]string{"text that is not JSON": "broken", "nothing": "", "a record cut short": string(sound.Body[:len(sound.Body)/2])} {
		t.Run(name, func(t *testing.T) {
			put(t, p, key, []byte(body))
			defer put(t, p, key, sound.Body)
			for _, sub := range []run.Submission{
				{Command: runlog.CommandDeploy}, {Command: runlog.CommandDestroy},
				{Command: runlog.CommandPlan, Of: runlog.CommandDeploy, Options: run.Options{Lenient: true}},
			} {
				h := submit(t, p, asm, sub)
				if h.Result != runlog.ResultFailed || len(h.Diagnostics) != 1 || !strings.Contains(h.Diagnostics[0].Next, "state.json") {
					t.Errorf("%s is %s with %v", sub.Command, h.Result, h.Diagnostics)
				}
			}
		})
	}
	unchanged(t, p, asm, "the record as it was")
	settled(t, p, "in the end")
}

func put(t *testing.T, p *Plane, key string, body []byte) {
	t.Helper()
	if _, err := p.engine.Objects.Put(context.Background(), key, body, objectstore.Condition{}); err != nil {
		t.Fatal(err)
	}
}
