package template

import (
	"slices"
	"strings"

	"github.com/slipway-cdk/slipway/pkg/diag"
)

// Validate reports what is wrong in a template that Parse accepts, before anything is resolved: references to
// nothing, unknown conditions and circles of them, unknown or misspelt functions and functions at a place
// where they can't stand, members that CloudFormation doesn't know, and what only CloudFormation itself can
// expand. It reports everything it finds.
func Validate(t *Template) diag.Diagnostics {
	v := &validator{t: t}
	v.diags = append(v.diags, macroDiagnostics(t.MacroUses())...)
	v.loops()
	for _, name := range sortedKeys(t.Parameters) {
		if t.Resources[name] != nil {
			v.add(name, "", "a parameter and a resource share one name", "", "Rename one of them: Ref could mean either.")
		}
	}
	v.conditions()
	v.rules()
	for _, id := range t.Order {
		v.resource(t.Resources[id])
	}
	v.outputs()
	return v.diags
}

// loops refuses loops that are not expanded: the model does not have what they produce.
func (v *validator) loops() {
	for _, section := range []string{"Conditions", "Resources", "Outputs"} {
		m, _ := v.t.Document[section].(map[string]any)
		for _, key := range sortedKeys(m) {
			if strings.HasPrefix(key, LoopPrefix) {
				v.add("", section+"."+key, "the loop is not expanded", "loops are expanded under the transform "+LanguageExtensions+", before the template is checked", "")
			}
		}
	}
}

// section is the part of a template that a value stands in: which functions it may use depends on it.
type section int

const (
	inResources section = iota
	inOutputs
	inConditions
	inRules
)

type validator struct {
	t     *Template
	diags diag.Diagnostics
}

func (v *validator) add(id, path, summary, detail, next string) {
	v.diags = append(v.diags, diag.Diagnostic{Severity: diag.Error, Summary: summary, Detail: detail, LogicalID: id, Path: path, Next: next})
}

func (v *validator) resource(r *Resource) {
	id := r.LogicalID
	for _, name := range sortedKeys(r.Extra) {
		if len(v.t.Macros()) == 0 {
			v.add(id, name, "unknown attribute of a resource", didYouMean(name, attributes), "Properties of the resource belong under Properties.")
		}
	}
	if r.Condition != "" {
		v.conditionExists(id, "Condition", r.Condition)
	}
	for _, dep := range r.DependsOn {
		if v.t.Resources[dep] == nil {
			v.unknown(id, "DependsOn", dep, sortedKeys(v.t.Resources))
		}
	}
	c := checker{v: v, id: id, section: inResources}
	for _, name := range sortedKeys(r.Properties) {
		// CloudFormation refuses null. Deeper inside it may be part of a JSON document (a state machine's
		// definition), which only the type's schema can tell.
		if r.Properties[name] == nil {
			v.add(id, "Properties."+name, "null is not allowed here", "a property without a value is left out", "Remove the property, or use AWS::NoValue.")
		}
	}
	if r.Properties != nil {
		c.value(r.Properties, "Properties")
	}
	if r.Metadata != nil {
		c.value(r.Metadata, "Metadata")
	}
	c.value(r.UpdatePolicy, "UpdatePolicy")
	c.value(r.CreationPolicy, "CreationPolicy")
	for _, name := range []string{"DeletionPolicy", "UpdateReplacePolicy"} {
		p := r.DeletionPolicy
		if name == "UpdateReplacePolicy" {
			p = r.UpdateReplacePolicy
		}
		if _, text := p.(string); p != nil && !text && !v.t.HasLanguageExtensions() {
			v.add(id, name, name+" is not a policy name", "functions are allowed under the transform "+LanguageExtensions+" only", "")
			continue
		}
		c.value(p, name)
	}
}

func (v *validator) outputs() {
	for _, name := range sortedKeys(v.t.Outputs) {
		o := v.t.Outputs[name]
		path := "Outputs." + name
		if o.Condition != "" {
			v.conditionExists("", path+".Condition", o.Condition)
		}
		c := checker{v: v, section: inOutputs}
		c.value(o.Value, path+".Value")
		c.value(o.ExportName, path+".Export.Name")
		v.noResources("", o.ExportName, path+".Export.Name", "the name of an export can't depend on a resource")
	}
}

func (v *validator) rules() {
	for _, name := range sortedKeys(v.t.Rules) {
		c := checker{v: v, section: inRules}
		c.value(v.t.Rules[name], "Rules."+name)
	}
}

func (v *validator) unknown(id, path, target string, candidates []string) {
	detail := didYouMean(target, candidates)
	v.add(id, path, "nothing in the template is called "+target, detail, "")
}

func (v *validator) conditionExists(id, path, name string) {
	if _, ok := v.t.Conditions[name]; !ok {
		v.add(id, path, "unknown condition "+name, didYouMean(name, sortedKeys(v.t.Conditions)), "")
	}
}

// conditions checks the expressions and finds circles: each circle is reported once, by the names on it.
func (v *validator) conditions() {
	uses := map[string][]string{}
	for _, name := range sortedKeys(v.t.Conditions) {
		if strings.HasPrefix(name, LoopPrefix) {
			continue
		}
		c := checker{v: v, section: inConditions, onCondition: func(used string) { uses[name] = append(uses[name], used) }}
		c.value(v.t.Conditions[name], "Conditions."+name)
	}
	const (
		visiting = 1
		done     = 2
	)
	state := map[string]int{}
	var path []string
	var visit func(string)
	visit = func(name string) {
		switch state[name] {
		case done:
			return
		case visiting:
			circle := append(slices.Clone(path[slices.Index(path, name):]), name)
			v.add("", "Conditions."+name, "conditions refer to each other in a circle", strings.Join(circle, " → "), "")
			return
		}
		state[name] = visiting
		path = append(path, name)
		for _, used := range uses[name] {
			visit(used)
		}
		path = path[:len(path)-1]
		state[name] = done
	}
	for _, name := range sortedKeys(v.t.Conditions) {
		visit(name)
	}
}
