package local

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/slipway-cdk/slipway/pkg/assembly"
	"github.com/slipway-cdk/slipway/pkg/diff"
	"github.com/slipway-cdk/slipway/pkg/plan"
	"github.com/slipway-cdk/slipway/pkg/run"
	"github.com/slipway-cdk/slipway/pkg/runlog"
	"github.com/slipway-cdk/slipway/pkg/state"
)

// nestedSample is where the records and assemblies of a nested stack stand that cdkd has deployed.
const nestedSample = "../../../shared/reference/cdkd-samples/07-nested"

// nestedApp writes an app with the stack Parent. The other templates are what its nested stacks are made from.
func nestedApp(t *testing.T, templates map[string]object) *assembly.Assembly {
	t.Helper()
	app := writeApp(t, map[string]object{"Parent": {"Resources": object{}}}, nil)
	for name, template := range templates {
		write(t, filepath.Join(app.Dir, name+".template.json"), template)
	}
	return readAssembly(t, app.Dir)
}

// nestedIn is a nested stack as CDK writes it.
func nestedIn(template string, parameters object) object {
	properties := object{"TemplateURL": "https://s3.us-east-1.amazonaws.com/assets/" + template + ".json"}
	if parameters != nil {
		properties["Parameters"] = parameters
	}
	return with(resource("AWS::CloudFormation::Stack", properties), "Metadata", object{"aws:asset:path": template + ".template.json"})
}

// recursiveDiff plans as diff --recursive does.
func recursiveDiff(t *testing.T, p *Plane, app *assembly.Assembly, values map[string]string) (runlog.Header, []plan.StackView) {
	t.Helper()
	h := submit(t, p, app, run.Submission{
		Command: runlog.CommandPlan, Of: runlog.CommandDeploy, Parameters: given(app, values),
		Options: run.Options{Lenient: true, Recursive: true},
	})
	if h.Result != runlog.ResultSucceeded {
		return h, nil
	}
	list, err := p.PlanViews(context.Background(), h.RunID)
	if err != nil {
		t.Fatal(err)
	}
	return h, list
}

// brief writes views one line each: what a person reads of them.
func brief(list []plan.StackView) string {
	var b strings.Builder
	for _, v := range list {
		b.WriteString(v.Stack)
		if v.Nested != nil && v.Nested.Gone {
			b.WriteString(" (gone)")
		}
		b.WriteString(":")
		if v.Nested != nil && v.Nested.Undecided != "" {
			b.WriteString(" not compared, " + v.Nested.Undecided)
		}
		for _, c := range v.Changes {
			fmt.Fprintf(&b, " %s %s", c.Action, c.LogicalID)
			if c.Retain {
				b.WriteString(" retained")
			}
			if c.Speculative {
				b.WriteString(" perhaps")
			}
			if c.Action == diff.ActionUpdate {
				for _, pc := range c.Changes {
					fmt.Fprintf(&b, " %s", pc.Path)
				}
			}
		}
		fmt.Fprintf(&b, " %d same\n", v.Unchanged)
	}
	return b.String()
}

// recorded saves records of topics: stack → logical ID → DisplayName. A logical ID that is a stack's nested one is
// recorded as that.
func recorded(t *testing.T, p *Plane, stacks map[string]map[string]any) {
	t.Helper()
	for _, stack := range slices.Sorted(maps.Keys(stacks)) {
		rec := &state.Record{Version: state.SchemaVersion, StackName: stack, Region: p.region, Resources: map[string]*state.Resource{}, Outputs: map[string]any{}}
		for id, v := range stacks[stack] {
			r := &state.Resource{PhysicalID: "arn:aws:sns:us-east-1:" + p.account + ":" + id, ResourceType: "AWS::SNS::Topic"}
			switch v := v.(type) {
			case string:
				r.Properties = object{"DisplayName": v}
			case object:
				r.ResourceType, r.Properties = "AWS::CloudFormation::Stack", v["Properties"].(object)
				r.DeletionPolicy, _ = v["DeletionPolicy"].(string)
				if on, ok := v["DependsOn"].(string); ok {
					r.Dependencies = []string{on}
				}
			}
			r.Attributes = object{"TopicArn": r.PhysicalID, "TopicName": id}
			rec.Resources[id] = r
		}
		if _, err := p.States().Save(context.Background(), rec, ""); err != nil {
			t.Fatal(err)
		}
	}
}

func topicNamed(name any) object { return resource("AWS::SNS::Topic", object{"DisplayName": name}) }

func TestARecursiveDiffLooksIntoNestedStacks(t *testing.T) {
	child := func(more object) object {
		template := object{
			"Parameters": object{"P": object{"Type": "String"}},
			"Resources":  object{"T": topicNamed(ref("P"))},
		}
		maps.Copy(template, more)
		return template
	}
	parent := func(resources object) object { return object{"Resources": resources} }
	const url = "https://s3.us-east-1.amazonaws.com/assets/Child.json"
	stands := func(value any) object {
		return object{"Properties": object{"TemplateURL": url, "Parameters": object{"P": value}}}
	}

	for _, c := range []struct {
		name      string
		templates map[string]object
		records   map[string]map[string]any
		want      string
		warns     string
	}{
		{
			name:      "nothing is deployed",
			templates: map[string]object{"Parent": parent(object{"Kid": nestedIn("Child", object{"P": "one"})}), "Child": child(nil)},
			want:      "Parent: create Kid 0 same\nParent~Kid: create T 0 same\n",
		},
		{
			name:      "everything is as it is deployed",
			templates: map[string]object{"Parent": parent(object{"Kid": nestedIn("Child", object{"P": "one"})}), "Child": child(nil)},
			records:   map[string]map[string]any{"Parent": {"Kid": stands("one")}, "Parent~Kid": {"T": "one"}},
			want:      "Parent: 1 same\nParent~Kid: 1 same\n",
		},
		{
			name:      "another value is passed",
			templates: map[string]object{"Parent": parent(object{"Kid": nestedIn("Child", object{"P": "two"})}), "Child": child(nil)},
			records:   map[string]map[string]any{"Parent": {"Kid": stands("one")}, "Parent~Kid": {"T": "one"}},
			want:      "Parent: update Kid Parameters.P 0 same\nParent~Kid: update T DisplayName 0 same\n",
		},
		{
			name:      "a number and a boolean are passed as text",
			templates: map[string]object{"Parent": parent(object{"Kid": nestedIn("Child", object{"P": 12}), "Kid2": nestedIn("Child", object{"P": true})}), "Child": child(nil)},
			records:   map[string]map[string]any{"Parent~Kid": {"T": "12"}, "Parent~Kid2": {"T": "true"}},
			want:      "Parent: create Kid create Kid2 0 same\nParent~Kid: 1 same\nParent~Kid2: 1 same\n",
		},
		{
			name: "what a recorded resource gives is known",
			templates: map[string]object{
				"Parent": parent(object{"Own": topicNamed("own"), "Kid": nestedIn("Child", object{"P": object{"Fn::GetAtt": []any{"Own", "TopicName"}}})}),
				"Child":  child(nil),
			},
			records: map[string]map[string]any{"Parent": {"Own": "own", "Kid": with(stands("Own"), "DependsOn", "Own")}, "Parent~Kid": {"T": "Own"}},
			want:    "Parent: 2 same\nParent~Kid: 1 same\n",
		},
		{
			name: "what a new resource will give is not",
			templates: map[string]object{
				"Parent": parent(object{"T": topicNamed("own"), "Kid": nestedIn("Child", object{"P": object{"Fn::GetAtt": []any{"T", "TopicName"}}})}),
				"Child":  child(nil),
			},
			records: map[string]map[string]any{"Parent": {"Kid": stands("Own")}, "Parent~Kid": {"T": "Own"}},
			want:    "Parent: update Kid Parameters.P create T 0 same\nParent~Kid: update T perhaps DisplayName 0 same\n",
		},
		{
			name: "a condition that needs it can't be decided",
			templates: map[string]object{
				"Parent": parent(object{"Own": topicNamed("own"), "Kid": nestedIn("Child", object{"P": object{"Fn::GetAtt": []any{"Own", "TopicName"}}})}),
				"Child": child(object{"Conditions": object{
					"Is":  object{"Fn::Equals": []any{ref("P"), "x"}},
					"Not": object{"Fn::Not": []any{object{"Condition": "Is"}}},
				}}),
			},
			want:  "Parent: create Kid create Own 0 same\nParent~Kid: not compared, the condition Is needs the parameter P, which is known after the deploy of its parent 0 same\n",
			warns: "Parent~Kid: the nested stack can't be compared",
		},
		{
			name: "a rule that needs it waits",
			templates: map[string]object{
				"Parent": parent(object{"Own": topicNamed("own"), "Kid": nestedIn("Child", object{"P": ref("Own")})}),
				"Child":  child(object{"Rules": object{"R": object{"Assertions": []any{object{"Assert": object{"Fn::Contains": []any{[]any{"x"}, ref("P")}}}}}}}),
			},
			want: "Parent: create Kid create Own 0 same\nParent~Kid: create T 0 same\n",
		},
		{
			name: "stacks in nested stacks",
			templates: map[string]object{
				"Parent":     parent(object{"Kid": nestedIn("Child", object{"P": "one"})}),
				"Child":      child(object{"Resources": object{"T": topicNamed(ref("P")), "Grand": nestedIn("Grandchild", object{"P": object{"Fn::Sub": "${P}-${T.TopicName}"}})}}),
				"Grandchild": child(nil),
			},
			records: map[string]map[string]any{
				"Parent":           {"Kid": stands("one")},
				"Parent~Kid":       {"T": "one", "Grand": object{"Properties": object{"TemplateURL": "https://s3.us-east-1.amazonaws.com/assets/Grandchild.json", "Parameters": object{"P": "one-T"}}, "DependsOn": "T"}},
				"Parent~Kid~Grand": {"T": "one-T", "Left": "over"},
			},
			want: "Parent: 1 same\nParent~Kid: 2 same\nParent~Kid~Grand: delete Left 1 same\n",
		},
		{
			name:      "one that is gone takes everything with it",
			templates: map[string]object{"Parent": parent(object{"Own": topicNamed("own")})},
			records: map[string]map[string]any{
				"Parent":           {"Own": "own", "Kid": stands("one")},
				"Parent~Kid":       {"T": "one", "Grand": stands("one")},
				"Parent~Kid~Grand": {"T": "one"},
			},
			want: "Parent: delete Kid 1 same\nParent~Kid (gone): delete Grand delete T 0 same\nParent~Kid~Grand (gone): delete T 0 same\n",
		},
		{
			name:      "unless it is retained",
			templates: map[string]object{"Parent": parent(object{"Own": topicNamed("own")})},
			records: map[string]map[string]any{
				"Parent":           {"Own": "own", "Kid": with(stands("one"), "DeletionPolicy", "Retain")},
				"Parent~Kid":       {"T": "one", "Grand": stands("one")},
				"Parent~Kid~Grand": {"T": "one"},
			},
			want: "Parent: delete Kid retained 1 same\nParent~Kid (gone): delete Grand retained delete T retained 0 same\nParent~Kid~Grand (gone): delete T retained 0 same\n",
		},
		{
			name: "a condition of the parent that is false takes it away",
			templates: map[string]object{
				"Parent": {"Conditions": object{"No": object{"Fn::Equals": []any{"a", "b"}}}, "Resources": object{"Own": topicNamed("own"), "Kid": with(nestedIn("Child", object{"P": "one"}), "Condition", "No")}},
				"Child":  child(nil),
			},
			records: map[string]map[string]any{"Parent": {"Own": "own", "Kid": stands("one")}, "Parent~Kid": {"T": "one"}},
			want:    "Parent: delete Kid 1 same\nParent~Kid (gone): delete T 0 same\n",
		},
		{
			name:      "a template that stands elsewhere",
			templates: map[string]object{"Parent": parent(object{"Kid": resource("AWS::CloudFormation::Stack", object{"TemplateURL": url})})},
			want:      "Parent: create Kid 0 same\nParent~Kid: not compared, its template is not in the cloud assembly 0 same\n",
			warns:     "Parent~Kid: the nested stack can't be compared: its template is not in the cloud assembly",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := openPlane(t, Options{Dir: t.TempDir()})
			recorded(t, p, c.records)
			h, list := recursiveDiff(t, p, nestedApp(t, c.templates), nil)
			if got := brief(list); got != c.want {
				t.Errorf("got\n%swant\n%s%s", got, c.want, story(t, p, h))
			}
			if text := story(t, p, h); !strings.Contains(text, c.warns) || c.warns == "" && len(h.Diagnostics) > 0 {
				t.Errorf("it says %s, want %q", text, c.warns)
			}
		})
	}
}

func TestANestedStackIsComparedAsFarAsItsParametersAreKnown(t *testing.T) {
	fn := func(name string, arg any) object { return object{"Fn::" + name: arg} }
	extended := func(resources object) object {
		return object{"Transform": "AWS::LanguageExtensions", "Resources": resources}
	}
	one := func(name any) object { return object{"Resources": object{"T": topicNamed(name)}} }
	lines := fn("Split", []any{",", ref("P")})
	for _, c := range []struct {
		name  string
		child object
		why   string // "" when it is compared
	}{
		{"a property", one(fn("Join", []any{"-", []any{"a", ref("P")}})), ""},
		{"the key of a mapping", with(one(fn("FindInMap", []any{"M", ref("P"), "b"})), "Mappings", object{"M": object{"a": object{"b": "c"}}}), ""},
		{"the region of zones", one(fn("Select", []any{0, fn("GetAZs", ref("P"))})), ""},
		{"an index", one(fn("Select", []any{ref("P"), []any{"a", "b"}})), ""},
		{"a length", extended(object{"T": topicNamed(fn("Sub", []any{"${x}", object{"x": fn("Length", lines)}}))}), ""},
		{"the name of an export", with(one("x"), "Outputs", object{"O": object{"Value": "x", "Export": object{"Name": ref("P")}}}), ""},
		{"an import", one(fn("ImportValue", fn("Sub", "${P}-x"))), "Fn::ImportValue"},
		{"an output of another stack", one(fn("GetStackOutput", object{"StackName": ref("P"), "OutputName": "x"})), "Fn::GetStackOutput"},
		{"a policy", extended(object{"T": with(topicNamed("x"), "DeletionPolicy", ref("P"))}), "the DeletionPolicy of T"},
		{"a condition in a condition", with(one("x"), "Conditions", object{"A": fn("Not", []any{object{"Condition": "B"}}), "B": fn("Equals", []any{ref("P"), "x"})}), "the condition A"},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.child["Parameters"] = object{"P": object{"Type": "String"}}
			app := nestedApp(t, map[string]object{
				"Parent": {"Resources": object{"Own": topicNamed("x"), "Kid": nestedIn("Child", object{"P": ref("Own")})}},
				"Child":  c.child,
			})
			p := openPlane(t, Options{Dir: t.TempDir()})
			h, list := recursiveDiff(t, p, app, nil)
			want := "Parent: create Kid create Own 0 same\nParent~Kid: create T 0 same\n"
			if c.why != "" {
				want = "Parent: create Kid create Own 0 same\nParent~Kid: not compared, " + c.why +
					" needs the parameter P, which is known after the deploy of its parent 0 same\n"
			}
			if got := brief(list); got != want {
				t.Errorf("got\n%swant\n%s%s", got, want, story(t, p, h))
			}
		})
	}
}

func TestARecursiveDiffRefusesWhatNoDeployCouldDo(t *testing.T) {
	topics := object{"Resources": object{"T": topicNamed("x")}}
	for _, c := range []struct {
		name      string
		templates map[string]object
		says      string
	}{
		{"a parameter that is not declared", map[string]object{
			"Parent": {"Resources": object{"Kid": nestedIn("Child", object{"Q": "one"})}}, "Child": topics,
		}, "Parent~Kid Parameters.Q: unknown parameter Q"},
		{"one whose value is not known", map[string]object{
			"Parent": {"Resources": object{"Own": topicNamed("x"), "Kid": nestedIn("Child", object{"Q": ref("Own")})}}, "Child": topics,
		}, "Parent~Kid Parameters.Q: unknown parameter Q"},
		{"a parameter that is not passed", map[string]object{
			"Parent": {"Resources": object{"Kid": nestedIn("Child", nil)}},
			"Child":  {"Parameters": object{"P": object{"Type": "String"}}, "Resources": object{"T": topicNamed(ref("P"))}},
		}, "Parent~Kid Parameters.P: parameter P: the parameter has no value"},
		{"a type that is not one", map[string]object{
			"Parent": {"Resources": object{"Kid": nestedIn("Child", nil)}},
			"Child":  {"Resources": object{"T": resource("AWS::SNS::Topik", object{})}},
		}, "Parent~Kid/T Type: unknown resource type"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := openPlane(t, Options{Dir: t.TempDir()})
			h, _ := recursiveDiff(t, p, nestedApp(t, c.templates), nil)
			for _, d := range h.Diagnostics {
				if strings.Contains(d.Next, "--parameters") {
					t.Errorf("the command line can't give a nested stack its parameters: %s", d.Next)
				}
			}
			if text := story(t, p, h); h.Result == runlog.ResultSucceeded || !strings.Contains(text, c.says) {
				t.Errorf("it says %s, want %q", text, c.says)
			}
		})
	}
}

func TestANestedStackThatContainsItselfIsRefused(t *testing.T) {
	app := nestedApp(t, map[string]object{
		"Parent": {"Resources": object{"Kid": nestedIn("Child", nil)}},
		"Child":  {"Resources": object{"Kid": nestedIn("Child", nil)}},
	})
	p := openPlane(t, Options{Dir: t.TempDir()})
	_, err := p.Submit(context.Background(), app, app.Stacks, run.Submission{Command: runlog.CommandPlan, Of: runlog.CommandDeploy, Options: run.Options{Recursive: true}})
	if err == nil || !strings.Contains(err.Error(), "a nested stack contains itself") {
		t.Errorf("it says %v", err)
	}
}

func TestTemplatesThatNameEachOtherCanNotMakeEndlesslyManyStacks(t *testing.T) {
	templates := map[string]object{"L12": {"Resources": object{"T": topicNamed("x")}}}
	for i := range 12 {
		next := fmt.Sprintf("L%d", i+1)
		templates[fmt.Sprintf("L%d", i)] = object{"Resources": object{"A": nestedIn(next, nil), "B": nestedIn(next, nil)}}
	}
	templates["Parent"] = object{"Resources": object{"Kid": nestedIn("L0", nil)}}
	app := nestedApp(t, templates)
	p := openPlane(t, Options{Dir: t.TempDir()})
	_, err := p.Submit(context.Background(), app, app.Stacks, run.Submission{Command: runlog.CommandPlan, Of: runlog.CommandDeploy, Options: run.Options{Recursive: true}})
	if err == nil || !strings.Contains(err.Error(), "contains more than 2500") {
		t.Errorf("it says %v", err)
	}
}

func TestASecretOfTheParentIsNotShownInANestedStack(t *testing.T) {
	const hidden = "correct-horse-battery"
	app := nestedApp(t, map[string]object{
		"Parent": {
			"Parameters": object{"Secret": object{"Type": "String", "NoEcho": true}},
			"Resources":  object{"Kid": nestedIn("Child", object{"P": object{"Fn::Sub": "is ${Secret}"}, "Q": "open"})},
		},
		// The nested template does not say that P is a secret.
		"Child": {
			"Parameters": object{"P": object{"Type": "String"}, "Q": object{"Type": "String"}},
			"Resources":  object{"T": topicNamed(ref("P")), "U": topicNamed(ref("Q"))},
			"Outputs":    object{"O": object{"Value": ref("P")}},
		},
	})
	p := openPlane(t, Options{Dir: t.TempDir()})
	h, list := recursiveDiff(t, p, app, map[string]string{"Secret": hidden})
	if got, want := brief(list), "Parent: create Kid 0 same\nParent~Kid: create T create U 0 same\n"; got != want {
		t.Errorf("got\n%swant\n%s%s", got, want, story(t, p, h))
	}
	body, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(body), hidden) {
		t.Errorf("the plan has the secret: %s", body)
	}
	if !strings.Contains(string(body), `"open"`) {
		t.Errorf("the plan lacks what is no secret: %s", body)
	}
}

func TestAPlanOfADeployDoesNotLookIntoNestedStacks(t *testing.T) {
	app := nestedApp(t, map[string]object{
		"Parent": {"Resources": object{"Kid": nestedIn("Child", nil)}}, "Child": {"Resources": object{"T": topicNamed("x")}},
	})
	p := openPlane(t, Options{Dir: t.TempDir()})
	h := submit(t, p, app, run.Submission{Command: runlog.CommandPlan, Of: runlog.CommandDeploy})
	list, err := p.PlanViews(context.Background(), h.RunID)
	if got := brief(list); err != nil || got != "Parent: create Kid 0 same\n" {
		t.Errorf("got %q, %v", got, err)
	}
}

// TestTheRecordsOfANestedStackAreUpToDate puts the records that cdkd has written into a store and compares them with
// the assembly that was deployed, and with the one before.
func TestTheRecordsOfANestedStackAreUpToDate(t *testing.T) {
	if _, err := os.Stat(nestedSample); err != nil {
		t.Skip("the samples are not beside the repository")
	}
	const kid = "Parent~KidNestedStackKidNestedStackResource09D9D03C"
	for _, c := range []struct{ records, app, want string }{
		{"01-deploy", "01-deploy", "Parent: 3 same\n" + kid + ": 2 same\n"},
		{"02-nochange", "01-deploy", "Parent: 3 same\n" + kid + ": 2 same\n"},
		{"03-update", "03-update", "Parent: 3 same\n" + kid + ": 2 same\n"},
		// The parent's own parameter reads an attribute of the nested stack: it may change with it.
		{"01-deploy", "03-update", "Parent: update KidNestedStackKidNestedStackResource09D9D03C TemplateURL update FromChild1190AF91 perhaps Value 1 same\n" +
			kid + ": update TD925BC7E DisplayName 1 same\n"},
	} {
		t.Run(c.records+" with "+c.app, func(t *testing.T) {
			p := openPlane(t, Options{Dir: t.TempDir(), Account: "000000000000"})
			root := filepath.Join(nestedSample, c.records, "s3")
			err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
				if err != nil || filepath.Base(path) != "state.json" {
					return err
				}
				body, err := os.ReadFile(path)
				if err != nil {
					return err
				}
				key, err := filepath.Rel(root, path)
				put(t, p, filepath.ToSlash(key), body)
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			app := readAssembly(t, filepath.Join(nestedSample, c.app, "assembly"))
			app.Stacks = slices.DeleteFunc(app.Stacks, func(s *assembly.Stack) bool { return s.Name != "Parent" })
			h, list := recursiveDiff(t, p, app, nil)
			if got := brief(list); got != c.want {
				t.Errorf("got\n%swant\n%s%s", got, c.want, story(t, p, h))
			}
			for _, v := range list {
				if len(v.Outputs) > 0 && c.records[:2] == c.app[:2] {
					t.Errorf("%s: outputs %v", v.Stack, v.Outputs)
				}
			}
		})
	}
}
