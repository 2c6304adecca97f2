package run_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-cdk/slipway/pkg/diff"
	"github.com/slipway-cdk/slipway/pkg/plan"
	"github.com/slipway-cdk/slipway/pkg/run"
	"github.com/slipway-cdk/slipway/pkg/runlog"
	"github.com/slipway-cdk/slipway/pkg/state"
)

// nestedIn is a nested stack, with what it passes to it.
func nestedIn(parameters object) object {
	properties := object{"TemplateURL": "https://s3.amazonaws.com/assets/kid.json"}
	if parameters != nil {
		properties["Parameters"] = parameters
	}
	return object{"Type": "AWS::CloudFormation::Stack", "Properties": properties}
}

// kid is the template of a nested stack with a parameter P.
func kid(declared object, members object) object {
	t := one("T", topic(object{"DisplayName": ref("P")}))
	t["Parameters"] = object{"P": declared}
	for k, v := range members {
		t[k] = v
	}
	return t
}

var text = object{"Type": "String"}

// recursive plans the stack App and what is nested in it, as diff --recursive does. The views are by stack.
func (w *world) recursive(parent object, nested map[string]run.NestedTemplate, change ...func(*run.Request)) (runlog.Header, map[string]plan.StackView) {
	w.Helper()
	m := w.submit(order{
		stack: "App", command: runlog.CommandPlan, template: parent, options: run.Options{Lenient: true, Recursive: true},
		change: func(r *run.Request) {
			r.Of, r.Stacks[0].Nested = runlog.CommandDeploy, nested
			for _, fn := range change {
				fn(r)
			}
		},
	})
	h := w.header(m.runID)
	h.Kind = runlog.KindDeployment
	if _, err := w.log.UpdateHeader(w.Context(), h); err != nil {
		w.Fatal(err)
	}
	h = w.finish(m)
	if h.Result != runlog.ResultSucceeded {
		return h, nil
	}
	views, err := w.engine.PlanViews(w.Context(), m.runID)
	if err != nil {
		w.Fatal(err)
	}
	out := map[string]plan.StackView{}
	for _, v := range views {
		out[v.Stack] = v
	}
	return h, out
}

func TestNestedStacksArePlannedWithWhatTheirParentPasses(t *testing.T) {
	kidName := state.NestedStackName("App", "Kid")
	for _, c := range []struct {
		name       string
		parameters object
		kid        object // nil: its template is not known
		created    int
		undecided  string
		refused    string
	}{
		{"a text", object{"P": "text"}, kid(text, nil), 1, "", ""},
		{"what is not known yet, as a value", object{"P": att("Late", "TopicArn")}, kid(text, nil), 1, "", ""},
		{"what is not known yet, and decides", object{"P": att("Late", "TopicArn")},
			kid(text, object{"Conditions": object{"C": object{"Fn::Equals": []any{ref("P"), "x"}}}}), 0, "the condition C needs the parameter P", ""},
		{"a template that is not there", object{"P": "text"}, nil, 0, "its template is not in the cloud assembly", ""},
		{"a value that is not allowed", object{"P": "text"}, kid(object{"Type": "String", "AllowedValues": []any{"a", "b"}}, nil), 0, "", "Correct the Parameters of Kid in the stack around it."},
		{"a parameter that it does not have", object{"P": "text", "Q": "q"}, kid(text, nil), 0, "", "Q"},
		{"what is not known yet for a parameter that it does not have", object{"P": "text", "Q": att("Late", "TopicArn")}, kid(text, nil), 0, "", "Q"},
		{"a list", object{"P": []any{"a"}}, kid(text, nil), 0, "", "must be a text"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			nested := map[string]run.NestedTemplate{}
			if c.kid != nil {
				nested["Kid"] = run.NestedTemplate{TemplateKey: w.store(c.kid)}
			}
			h, views := w.recursive(resources(object{"Kid": nestedIn(c.parameters), "Late": topic(object{})}), nested)
			if c.refused != "" {
				if h.Result != runlog.ResultFailed || !strings.Contains(w.story(h.RunID)+nextSteps(h), c.refused) {
					t.Errorf("%s: %s", h.Result, w.story(h.RunID))
				}
				return
			}
			v, ok := views[kidName]
			if !ok || v.Nested == nil || v.Nested.Parent != "App" || v.Nested.LogicalID != "Kid" || v.Nested.Gone {
				t.Fatalf("%+v: %s", v, w.story(h.RunID))
			}
			if len(v.Changes) != c.created || c.undecided == "" != (v.Nested.Undecided == "") || !strings.Contains(v.Nested.Undecided, c.undecided) {
				t.Errorf("%d changes, %+v", len(v.Changes), v.Nested)
			}
			if c.undecided != "" && !says(h, "can't be compared") {
				t.Errorf("%v", h.Diagnostics)
			}
			if len(w.cloud.calls) != 0 {
				t.Errorf("calls %v", stepsOf(w))
			}
		})
	}
}

func nextSteps(h runlog.Header) string {
	var b strings.Builder
	for _, d := range h.Diagnostics {
		b.WriteString(d.Next)
	}
	return b.String()
}

func TestStacksInNestedStacksArePlannedToo(t *testing.T) {
	w := newWorld(t)
	leaf := w.store(kid(text, nil))
	inner := resources(object{"Leaf": nestedIn(object{"P": ref("P")}), "Own": topic(object{})})
	inner["Parameters"] = object{"P": text}
	nested := map[string]run.NestedTemplate{"Kid": {TemplateKey: w.store(inner), Nested: map[string]run.NestedTemplate{"Leaf": {TemplateKey: leaf}}}}
	_, views := w.recursive(one("Kid", nestedIn(object{"P": "deep"})), nested)
	kidName := state.NestedStackName("App", "Kid")
	v, ok := views[state.NestedStackName(kidName, "Leaf")]
	if len(views) != 3 || !ok || v.Nested.Parent != kidName || v.Nested.LogicalID != "Leaf" || len(v.Changes) != 1 || v.Changes[0].LogicalID != "T" {
		t.Errorf("%+v", views)
	}
}

func TestASecretIsNotPassedToANestedStack(t *testing.T) {
	w := secretWorld(t)
	parent := one("Kid", nestedIn(object{"P": ref("Password"), "Q": "q"}))
	parent["Parameters"] = object{"Password": object{"Type": "String", "NoEcho": true, "Default": firstPassword}}
	template := kid(text, object{"Conditions": object{"C": object{"Fn::Equals": []any{ref("P"), "x"}}}})
	template["Parameters"].(object)["Q"] = text
	_, views := w.recursive(parent, map[string]run.NestedTemplate{"Kid": {TemplateKey: w.store(template)}})
	if v := views[state.NestedStackName("App", "Kid")]; v.Nested == nil || !strings.Contains(v.Nested.Undecided, "the condition C needs the parameter P") {
		t.Errorf("%+v", v)
	}
}

func TestANestedStackThatGoesIsPlannedAsADestroy(t *testing.T) {
	kidName := state.NestedStackName("App", "Kid")
	leafName := state.NestedStackName(kidName, "Leaf")
	for _, retained := range []bool{false, true} {
		w := newWorld(t)
		put := func(stack string, r map[string]*state.Resource) {
			rec := &state.Record{Version: state.SchemaVersion, StackName: stack, Region: region, Resources: r}
			if _, err := w.states.Save(t.Context(), rec, ""); err != nil {
				t.Fatal(err)
			}
		}
		nested := &state.Resource{PhysicalID: "kid", ResourceType: "AWS::CloudFormation::Stack", Properties: map[string]any{}}
		if retained {
			nested.DeletionPolicy = "Retain"
		}
		put("App", map[string]*state.Resource{"Kid": nested})
		put(kidName, map[string]*state.Resource{
			"T":    {PhysicalID: "t", ResourceType: "AWS::SNS::Topic", Properties: map[string]any{}},
			"Leaf": {PhysicalID: "leaf", ResourceType: "AWS::CloudFormation::Stack", Properties: map[string]any{}},
		})
		put(leafName, map[string]*state.Resource{"L": {PhysicalID: "l", ResourceType: "AWS::SNS::Topic", Properties: map[string]any{}}})
		h, views := w.recursive(one("Other", topic(object{})), nil)
		got := map[string]bool{}
		for _, name := range []string{kidName, leafName} {
			v := views[name]
			if v.Nested == nil || !v.Nested.Gone {
				t.Fatalf("%s: %+v: %s", name, v, w.story(h.RunID))
			}
			for _, c := range v.Changes {
				if c.Action != diff.ActionDelete {
					t.Errorf("%+v", c)
				}
				got[c.LogicalID] = c.Retain
			}
		}
		if d := cmp.Diff(map[string]bool{"T": retained, "Leaf": retained, "L": retained}, got); d != "" {
			t.Errorf("retained (-want +got):\n%s", d)
		}
	}
}
