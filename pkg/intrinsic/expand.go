package intrinsic

import (
	"errors"
	"fmt"
	"strings"

	"github.com/slipway-cdk/slipway/pkg/diag"
	"github.com/slipway-cdk/slipway/pkg/template"
)

// Bounds of an expansion.
const (
	// MaxLoopDepth is how deeply loops may nest
	// (https://github.com/aws-cloudformation/cfn-language-discussion/blob/main/RFCs/0009-Fn%3A%3AForEach.md).
	MaxLoopDepth = 5
	// MaxExpandedBytes is how much loops may produce: the bytes of all keys and texts, and 64 for every value.
	// CloudFormation's own bound, 1 MB of JSON, is not ours; without any, a few nested loops fill every memory.
	MaxExpandedBytes = 64 << 20
	valueSize        = 64
)

// Expand evaluates what AWS::LanguageExtensions adds to the language and what has to be known before there are
// resources to speak of: loops, computed names in Ref, Fn::GetAtt and DependsOn, functions in Condition,
// DeletionPolicy and UpdateReplacePolicy
// (https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/transform-aws-languageextensions.html).
// The result is a plain template: everything it creates has its logical ID, and every reference gives its edge in
// the graph. Fn::Length, Fn::ToJsonString and the DefaultValue of Fn::FindInMap are left to Resolve.
//
// The parameters are those that BindParameters gives. A template that does not declare the transform is returned as
// it is, and so is one that is expanded already. The source is not changed. The same input gives the same template.
// Values of NoEcho parameters are refused wherever they would become part of a name.
func Expand(t *template.Template, params map[string]any, pseudo Pseudo) (*template.Template, diag.Diagnostics) {
	if !t.Unexpanded {
		return t, nil
	}
	x := &expansion{source: t, scope: &Scope{Template: t, Parameters: params, Pseudo: pseudo}, loops: map[string]string{}}
	root := make(map[string]any, len(t.Document))
	for k, v := range t.Document {
		root[k] = v
	}
	order := map[string][]string{"Parameters": t.SectionOrder["Parameters"]}
	section := func(name string, one func(v any, path string) any) bool {
		if m, ok := t.Document[name].(map[string]any); ok {
			s, err := x.section(name, m, t.SectionOrder[name], one)
			if err != nil {
				return false
			}
			root[name], order[name] = s.members, s.order
		}
		return !x.diags.HasErrors()
	}
	// Conditions first: the collection of a loop may depend on one. Only those are evaluated that something here
	// depends on: the others may need what is not known yet.
	if !section("Conditions", x.computeNames) {
		return nil, x.diags
	}
	x.prepareConditions(root["Conditions"])
	if !section("Resources", x.resource) || !section("Outputs", x.output) {
		return nil, x.diags
	}
	out, err := template.FromSections(root, order)
	if err != nil {
		return nil, diag.From(err)
	}
	return out, x.diags
}

// expansion is one call of Expand.
type expansion struct {
	source *template.Template
	scope  *Scope
	diags  diag.Diagnostics
	// conditions evaluates the expanded Conditions; nil while they are being expanded.
	conditions *conditions
	// loops holds where each loop stands, by its name.
	loops map[string]string
	size  int // of what loops have produced, in bytes
}

// expanded is an object after the expansion of its loops.
type expanded struct {
	members map[string]any
	order   []string
}

func (x *expansion) fail(path, summary, detail, next string) {
	x.diags = append(x.diags, diag.Diagnostic{Severity: diag.Error, Summary: summary, Detail: detail, Path: path, Next: next})
}

func (x *expansion) prepareConditions(section any) {
	t := *x.source
	t.Conditions, _ = section.(map[string]any)
	x.conditions = newConditions(&t, x.scope)
}

// section expands the loops among the members of a section, each at its place, and applies one to every member.
func (x *expansion) section(name string, m map[string]any, order []string, one func(v any, path string) any) (expanded, error) {
	b := bindings{resource: name == "Resources"}
	out, err := x.members(m, order, name, b)
	if err != nil {
		return out, err
	}
	for _, key := range out.order {
		path, v := child(name, key), out.members[key]
		if _, stood := m[key]; stood {
			if v, err = x.propertyLoops(v, path, b); err != nil {
				return out, err
			}
		}
		out.members[key] = one(v, path)
	}
	return out, nil
}

// resource evaluates what has to be known of a resource. Functions in its attributes are those that
// AWS::LanguageExtensions allows there.
func (x *expansion) resource(v any, path string) any {
	r, ok := v.(map[string]any)
	if !ok {
		return v
	}
	out := x.computeNames(r, path).(map[string]any)
	x.computeDependsOn(out, path)
	for _, name := range []string{"Condition", "DeletionPolicy", "UpdateReplacePolicy"} {
		x.computeAttribute(out, name, path)
	}
	return out
}

func (x *expansion) output(v any, path string) any {
	o, ok := v.(map[string]any)
	if !ok {
		return v
	}
	out := x.computeNames(o, path).(map[string]any)
	x.computeAttribute(out, "Condition", path)
	return out
}

// computeAttribute evaluates an attribute that is a function. AWS::NoValue removes it. Whether the text is a policy
// or the name of a condition is the parser's and the validator's question
// (https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/function-refs-in-policy-attributes.html).
func (x *expansion) computeAttribute(m map[string]any, name, path string) {
	if _, _, function := template.Intrinsic(m[name]); !function {
		return
	}
	path = child(path, name)
	v, ok := x.evaluate(m[name], path)
	if !ok {
		return
	}
	switch v := v.(type) {
	case NoValue:
		delete(m, name)
	case string:
		m[name] = v
	default:
		x.fail(path, name+" is not a string", "found "+kindOf(v), "")
	}
}

func (x *expansion) computeDependsOn(r map[string]any, path string) {
	path = child(path, "DependsOn")
	one := func(v any, path string) (any, bool) {
		if _, _, function := template.Intrinsic(v); !function {
			return v, true
		}
		return x.evaluate(v, path)
	}
	switch deps := r["DependsOn"].(type) {
	case map[string]any:
		v, ok := one(deps, path)
		if !ok {
			return
		}
		if _, none := v.(NoValue); none {
			delete(r, "DependsOn")
			return
		}
		r["DependsOn"] = v
	case []any:
		out := make([]any, 0, len(deps))
		for i, d := range deps {
			v, ok := one(d, item(path, i))
			if _, none := v.(NoValue); ok && !none {
				out = append(out, v)
			}
		}
		r["DependsOn"] = out
	}
}

// computeNames writes out the computed names of Ref and Fn::GetAtt inside a value: a graph can't have edges to what
// has no name yet.
func (x *expansion) computeNames(v any, path string) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for _, k := range sortedKeys(v) {
			out[k] = x.computeNames(v[k], child(path, k))
		}
		if name, arg, ok := template.Intrinsic(out); ok {
			switch name {
			case "Ref":
				out[name] = x.computeName(arg, child(path, name))
			case "Fn::GetAtt":
				out[name] = x.computeName(arg, child(path, name))
				if list, ok := arg.([]any); ok && len(list) > 0 {
					list[0] = x.computeName(list[0], item(child(path, name), 0))
				}
			}
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = x.computeNames(e, item(path, i))
		}
		return out
	}
	return v
}

func (x *expansion) computeName(v any, path string) any {
	if _, _, function := template.Intrinsic(v); !function {
		return v
	}
	name, ok := x.evaluate(v, path)
	if !ok {
		return v
	}
	s, ok := name.(string)
	if !ok || s == "" {
		x.fail(path, "the computed name is not a name", "found "+kindOf(name), "")
		return v
	}
	return s
}

// evaluate resolves a value that must be known before there is any resource. ok is false when it has failed.
func (x *expansion) evaluate(v any, path string) (any, bool) {
	if hidden := x.noEcho(v); hidden != "" {
		x.fail(path, "a name can't be made of the NoEcho parameter "+hidden, "names are shown and recorded", "Use a parameter that may be seen.")
		return nil, false
	}
	e := NewResolver(x.scope).evaluation(inExpansion)
	if c := x.conditions; c != nil {
		e.condition = func(name, path string) any {
			out := c.named(name, path)
			e.diags, c.e.diags = append(e.diags, c.e.diags...), nil
			return out
		}
	}
	out := e.value(v, path)
	if err := e.diags.Err(); err != nil {
		x.diags = append(x.diags, e.diags...)
		return nil, false
	}
	return out, true
}

func (x *expansion) noEcho(v any) (name string) {
	template.WalkReferences(v, "", func(ref template.Reference) {
		if p := x.source.Parameters[ref.Target]; p != nil && p.NoEcho && name == "" {
			name = ref.Target
		}
	})
	return name
}

// errStopped ends an expansion whose problem is reported.
var errStopped = errors.New("the template can't be expanded")

// stop reports a problem after which the expansion does not go on.
func (x *expansion) stop(path, summary, detail, next string) error {
	x.fail(path, summary, detail, next)
	return errStopped
}

// grow counts what loops produce.
func (x *expansion) grow(n int, path string) error {
	if x.size += n; x.size <= MaxExpandedBytes {
		return nil
	}
	return x.stop(path, "the loops make the template too large", fmt.Sprintf("they produce more than %d MiB", MaxExpandedBytes>>20), "Split the stack, or shorten the collections.")
}

func isLoop(key string) bool { return strings.HasPrefix(key, template.LoopPrefix) }
