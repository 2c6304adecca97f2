package run

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/slipway-cdk/slipway/pkg/diag"
	"github.com/slipway-cdk/slipway/pkg/diff"
	"github.com/slipway-cdk/slipway/pkg/intrinsic"
	"github.com/slipway-cdk/slipway/pkg/plan"
	"github.com/slipway-cdk/slipway/pkg/runlog"
	"github.com/slipway-cdk/slipway/pkg/secret"
	"github.com/slipway-cdk/slipway/pkg/state"
	"github.com/slipway-cdk/slipway/pkg/template"
)

// nestedType is the resource type of nested stacks.
const nestedType = "AWS::CloudFormation::Stack"

// NestedTemplate is the template of a nested stack, and those of the stacks nested in it.
type NestedTemplate struct {
	// TemplateKey is the object that holds the template.
	TemplateKey string                    `json:"templateKey"`
	Nested      map[string]NestedTemplate `json:"nested,omitempty"` // by logical ID
}

// passed is what a nested stack gets from its parent besides values. unknown are the parameters whose value is not
// known before the deploy of the parent, or is a secret of the parent. undecided is filled in by the planner: why
// the nested stack can't be compared as long as they are not known.
type passed struct {
	unknown   []string
	undecided string
}

// nestedStack is a nested stack as the plan of its parent leaves it.
type nestedStack struct {
	logicalID string
	// gone: it is in the record of the parent only. retained: and its resources stay in AWS.
	gone, retained bool
	parameters     map[string]string
	unknown        []string
	tags           map[string]string
	// undecided says why nothing is known of its parameters.
	undecided string
}

// nested finds the nested stacks of a template, with what it passes to them, and those that only the record has
// (reference §8.10).
func (v *veil) nested(rec *state.Record, result diff.Result) ([]nestedStack, diag.Diagnostics) {
	var found []nestedStack
	var diags diag.Diagnostics
	live := map[string]bool{}
	for _, id := range v.t.Order {
		r := v.t.Resources[id]
		if r == nil || r.Type != nestedType || !v.t.Live(id, v.f.Conditions) {
			continue
		}
		live[id] = true
		n := nestedStack{logicalID: id}
		diags = append(diags, n.take(result.Desired[id], v.secretPaths(rec, id))...)
		found = append(found, n)
	}
	if rec == nil {
		return found, diags
	}
	for _, id := range sortedIDs(rec.Resources) {
		if rec.Resources[id].ResourceType != nestedType || live[id] {
			continue
		}
		i := slices.IndexFunc(result.Changes, func(c diff.Change) bool { return c.LogicalID == id })
		found = append(found, nestedStack{logicalID: id, gone: true, retained: i >= 0 && result.Changes[i].Retain})
	}
	return found, diags
}

// secretPaths are the places of a resource that derive from NoEcho parameters.
func (v *veil) secretPaths(rec *state.Record, id string) []secret.Path {
	if !v.hasSecrets() {
		return nil
	}
	resources := map[string]intrinsic.Resource{}
	if rec != nil {
		resources = resourcesOf(rec)
	}
	var paths []secret.Path
	v.scope(resources).Walk(v.t.Resources[id].Properties, func(p secret.Place, expr any) any {
		paths = append(paths, p.Path)
		return expr
	})
	return paths
}

// take reads what the resolved properties of a nested stack pass to it. A secret stays here: the nested template may
// use it anywhere, and need not say that its parameter is NoEcho.
func (n *nestedStack) take(properties map[string]any, secrets []secret.Path) diag.Diagnostics {
	hidden := func(name string) bool {
		return slices.ContainsFunc(secrets, func(p secret.Path) bool {
			return p[0] == "Parameters" && (len(p) == 1 || p[1] == name)
		})
	}
	n.tags = textTags(properties["Tags"])
	var diags diag.Diagnostics
	switch values := properties["Parameters"].(type) {
	case nil:
	case map[string]any:
		n.parameters = map[string]string{}
		for _, name := range sortedIDs(values) {
			text, scalar := scalarText(values[name])
			_, unknown := values[name].(intrinsic.Unknown)
			switch {
			case unknown, hidden(name), strings.Contains(text, secret.Mask):
				n.unknown = append(n.unknown, name)
			case scalar:
				n.parameters[name] = text
			default:
				diags = append(diags, diag.Diagnostic{
					Severity: diag.Error, LogicalID: n.logicalID, Path: "Properties.Parameters." + name,
					Summary: "the parameter " + name + " of a nested stack must be a text",
					Next:    "Join a list with Fn::Join and a comma.",
				})
			}
		}
	default:
		n.undecided = "its Parameters are known after the deploy of its parent"
	}
	return diags
}

// scalarText writes a value as the text that a parameter takes.
func scalarText(v any) (string, bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case json.Number:
		return v.String(), true
	case bool:
		return strconv.FormatBool(v), true
	}
	return "", false
}

// textTags reads the tags of a nested stack, which its resources get: those of the stacks around it are among them.
func textTags(v any) map[string]string {
	list, _ := v.([]any)
	tags := map[string]string{}
	for _, item := range list {
		tag, _ := item.(map[string]any)
		key, ok := tag["Key"].(string)
		value, scalar := scalarText(tag["Value"])
		if ok && scalar && !strings.Contains(value, secret.Mask) {
			tags[key] = value
		}
	}
	return tags
}

// take binds the parameters of a nested stack to what its parent passes. A name that the template does not declare
// stays among the texts, where it is refused.
func (p *parameters) take(from *passed) {
	for _, name := range from.unknown {
		if p.t.Parameters[name] == nil {
			p.texts[name] = ""
			continue
		}
		p.unknown = append(p.unknown, name)
	}
}

// undecided refuses a template that can't be read without a parameter that is not known: its value decides which
// resources there are, what becomes of them, or which other stack a value comes from. Everywhere else what is made
// from it is merely not known.
func (p *parameters) undecided() diag.Diagnostics {
	if len(p.unknown) == 0 {
		return nil
	}
	what, parameter := p.firstUnknown()
	if parameter == "" {
		return nil
	}
	p.s.passed.undecided = what + " needs the parameter " + parameter + ", which is known after the deploy of its parent"
	return diag.Diagnostics{{Severity: diag.Error, Summary: p.s.passed.undecided}}
}

func (p *parameters) firstUnknown() (what, parameter string) {
	for _, condition := range sortedIDs(p.t.Conditions) {
		for _, name := range p.usedBy(condition, map[string]bool{}) {
			if slices.Contains(p.unknown, name) {
				return "the condition " + condition, name
			}
		}
	}
	decides := func(key string, arg any) {
		template.WalkReferences(arg, "", func(ref template.Reference) {
			if parameter == "" && slices.Contains(p.unknown, ref.Target) {
				what, parameter = key, ref.Target
			}
		})
	}
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, item := range v {
				walk(item)
			}
		case map[string]any:
			for _, key := range sortedIDs(v) {
				switch {
				case key == "Fn::ImportValue", key == "Fn::GetStackOutput":
					decides(key, v[key])
				case strings.HasPrefix(key, "Fn::ForEach::"):
					if list, ok := v[key].([]any); ok && len(list) > 1 {
						decides("the loop "+strings.TrimPrefix(key, "Fn::ForEach::"), list[1])
					}
				}
				walk(v[key])
			}
		}
	}
	for _, section := range []string{"Conditions", "Resources", "Outputs"} {
		walk(p.t.Document[section])
	}
	resources, _ := p.t.Document["Resources"].(map[string]any)
	for _, id := range sortedIDs(resources) {
		r, _ := resources[id].(map[string]any)
		for _, policy := range []string{"DeletionPolicy", "UpdateReplacePolicy"} {
			decides("the "+policy+" of "+id, r[policy])
		}
	}
	return what, parameter
}

// nestedRequest describes a nested stack as if it had been selected itself.
func (s StackRequest) nestedRequest(n nestedStack) StackRequest {
	inner := s.Nested[n.logicalID]
	ref := s.StackRef
	ref.Name = state.NestedStackName(s.Name, n.logicalID)
	return StackRequest{
		StackRef: ref, DisplayName: s.DisplayName + "/" + n.logicalID,
		TemplateKey: inner.TemplateKey, Nested: inner.Nested, Parameters: n.parameters, Tags: n.tags,
		passed: &passed{unknown: n.unknown},
	}
}

// planNested plans the nested stacks of a planned stack, and the stacks nested in them. Their plans are only looked
// at: no run carries them out.
func (e *Engine) planNested(ctx context.Context, req Request, s StackRequest, p *stackPlan, earlier *published) (diag.Diagnostics, error) {
	var diags diag.Diagnostics
	for _, n := range p.nested {
		child := s.nestedRequest(n)
		cp, more, err := e.planOneNested(ctx, req, child, n, earlier)
		if err != nil {
			return nil, fmt.Errorf("planning nested stack %s: %w", child.Name, err)
		}
		if diags = append(diags, more...); more.HasErrors() {
			continue
		}
		if cp.view.Nested == nil {
			cp.view.Nested = &plan.NestedView{}
		}
		cp.view.Nested.Parent, cp.view.Nested.LogicalID, cp.view.Nested.Gone = s.Name, n.logicalID, n.gone
		p.children = append(p.children, cp)
		earlier.add(child, cp)
		more, err = e.planNested(ctx, req, child, cp, earlier)
		if err != nil {
			return nil, err
		}
		diags = append(diags, more...)
		p.children = append(p.children, cp.children...)
	}
	return diags, nil
}

func (e *Engine) planOneNested(ctx context.Context, req Request, child StackRequest, n nestedStack, earlier *published) (*stackPlan, diag.Diagnostics, error) {
	if n.gone {
		return e.planGone(ctx, req, child, n)
	}
	why := n.undecided
	if child.TemplateKey == "" {
		why = "its template is not in the cloud assembly"
	}
	if why == "" {
		cp, diags, err := e.planStack(ctx, req, child, runlog.CommandDeploy, earlier)
		if why = child.passed.undecided; why == "" || err != nil {
			for i := range diags {
				if strings.HasPrefix(diags[i].Path, "Parameters.") {
					diags[i].Next = "Correct the Parameters of " + n.logicalID + " in the stack around it."
				}
			}
			return cp, diags, err
		}
	}
	cp := &stackPlan{view: viewOf(child)}
	cp.view.Nested = &plan.NestedView{Undecided: why}
	return cp, diag.Diagnostics{{
		Severity: diag.Warning, Stack: child.Name, Summary: "the nested stack can't be compared", Detail: why,
	}}, nil
}

func viewOf(s StackRequest) plan.StackView {
	return plan.StackView{Stack: s.Name, Region: s.Region, Account: s.Account, Command: string(runlog.CommandDeploy)}
}

// planGone plans a nested stack that its parent does not have any more: everything goes, unless the parent's
// DeletionPolicy keeps the nested stack.
func (e *Engine) planGone(ctx context.Context, req Request, child StackRequest, n nestedStack) (*stackPlan, diag.Diagnostics, error) {
	l, warnings, err := e.planningLedger(ctx, child.StackRef, req.Options.Lenient)
	if err != nil {
		diags, err := refusal(err)
		return nil, diags.InStack(child.Name), err
	}
	cp := &stackPlan{view: viewOf(child)}
	warnings = append(warnings, cp.destroy(l, false)...)
	for i := range cp.view.Changes {
		c := &cp.view.Changes[i]
		c.Retain = c.Retain || n.retained
		if c.Type == nestedType {
			cp.nested = append(cp.nested, nestedStack{logicalID: c.LogicalID, gone: true, retained: c.Retain})
		}
	}
	return cp, warnings.InStack(child.Name), nil
}
