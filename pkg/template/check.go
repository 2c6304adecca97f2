package template

import (
	"slices"
	"strings"
)

// checker walks one value and reports its malformed functions and references to nothing.
type checker struct {
	v           *validator
	id          string
	section     section
	onCondition func(name string)
}

func (c *checker) add(path, summary, detail, next string) { c.v.add(c.id, path, summary, detail, next) }

func (c *checker) value(v any, path string) {
	switch v := v.(type) {
	case map[string]any:
		c.object(v, path)
	case []any:
		for i, e := range v {
			c.value(e, item(path, i))
		}
	}
}

func (c *checker) object(m map[string]any, path string) {
	if name, arg, ok := Intrinsic(m); ok {
		c.function(name, arg, child(path, name))
		return
	}
	if len(m) == 1 && (c.section == inConditions || c.section == inRules) {
		if name, ok := m["Condition"].(string); ok {
			c.condition(name, child(path, "Condition"))
			return
		}
	}
	for _, k := range sortedKeys(m) {
		if k == "Fn::Transform" {
			continue // Validate has reported it by the macro's name
		}
		if strings.HasPrefix(k, "Fn::") {
			c.add(child(path, k), "a function with other keys beside it", "an intrinsic function is the only key of its object", "")
			continue
		}
		c.value(m[k], child(path, k))
	}
}

func (c *checker) condition(name, path string) {
	if c.onCondition != nil {
		c.onCondition(name)
	}
	c.v.conditionExists(c.id, path, name)
}

func (c *checker) function(name string, arg any, path string) {
	switch {
	case name == "Fn::Transform":
		return // Validate has reported it by the macro's name
	case strings.HasPrefix(name, "Fn::ForEach::"):
		c.add(path, "the loop is not expanded", "values are read after Fn::ForEach is expanded, under the transform "+LanguageExtensions, "")
		return
	case !slices.Contains(FunctionNames(), name):
		c.add(path, "unknown function "+name, didYouMean(name, FunctionNames()), "")
		return
	case (name == "Fn::Length" || name == "Fn::ToJsonString") && !c.v.t.HasLanguageExtensions():
		c.add(path, name+" needs the transform "+LanguageExtensions, "", "Add it to the template's Transform.")
	}
	if !c.allowed(name) {
		c.add(path, name+" can't be used here", "", "")
		return
	}
	switch name {
	case "Ref":
		if target, ok := arg.(string); ok {
			c.target(target, "", path)
			return
		}
		c.computed(arg, path, "Ref takes a name")
	case "Fn::GetAtt":
		target, attribute, ok := GetAttTarget(arg)
		if ok {
			c.target(target, "attribute", path)
			c.value(attribute, path)
			return
		}
		c.computed(arg, path, "Fn::GetAtt takes a logical ID and an attribute name")
	case "Fn::Sub":
		c.sub(arg, path)
		return
	case "Fn::If":
		list, ok := arg.([]any)
		if !ok || len(list) != 3 {
			c.add(path, "Fn::If takes a condition, a value if true and a value if false", "found "+kindOf(arg), "")
			return
		}
		if cond, isName := list[0].(string); isName {
			c.condition(cond, item(path, 0))
		} else if c.section == inResources || c.section == inOutputs {
			c.add(item(path, 0), "the condition of Fn::If is the name of a condition", "found "+kindOf(list[0]), "")
		} else {
			c.value(list[0], item(path, 0))
		}
		c.value(list[1], item(path, 1))
		c.value(list[2], item(path, 2))
		return
	case "Fn::FindInMap":
		c.findInMap(arg, path)
	case "Fn::ImportValue", "Fn::GetStackOutput":
		c.v.noResources(c.id, arg, path, "the name of an export or an output can't depend on a resource")
	}
	if arg == nil {
		c.add(path, "null is not allowed here", "", "")
	}
	c.value(arg, path)
}

// computed reports a name that is not written out: it would give no edge in the graph. Under
// AWS::LanguageExtensions it is computed when the template is expanded, before it is checked.
func (c *checker) computed(arg any, path, summary string) {
	if c.v.t.Unexpanded {
		c.add(path, "the name is not computed", "names are computed when the template is expanded, before it is checked", "")
		return
	}
	c.add(path, summary, "found "+kindOf(arg), "A computed name needs the transform "+LanguageExtensions+".")
}

// noResources reports every reference to a resource in a value that must be known before the run
// (https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/intrinsic-function-reference-importvalue.html,
// https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/outputs-section-structure.html).
func (v *validator) noResources(id string, value any, path, summary string) {
	WalkReferences(value, path, func(ref Reference) {
		if v.t.Resources[ref.Target] != nil {
			v.add(id, ref.Path, summary, "it refers to "+ref.Target, "Build the name from parameters and pseudo parameters only.")
		}
	})
}

// allowed tells whether a function may stand in the section
// (https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/intrinsic-function-reference-conditions.html and
// …/intrinsic-function-reference-rules.html).
func (c *checker) allowed(name string) bool {
	switch name {
	case "Fn::And", "Fn::Equals", "Fn::Not", "Fn::Or":
		return c.section == inConditions || c.section == inRules
	case "Fn::Contains", "Fn::EachMemberEquals", "Fn::EachMemberIn", "Fn::RefAll", "Fn::ValueOf", "Fn::ValueOfAll":
		return c.section == inRules
	case "Fn::GetAtt", "Fn::Base64", "Fn::Cidr", "Fn::GetAZs", "Fn::ImportValue", "Fn::GetStackOutput":
		return c.section == inResources || c.section == inOutputs
	}
	return true
}

func (c *checker) sub(arg any, path string) {
	if list, ok := arg.([]any); ok && len(list) == 1 {
		arg = list[0]
	}
	body, vars, ok := SubArguments(arg)
	if !ok {
		c.add(path, "Fn::Sub takes a string, or a list of a string and a map", "found "+kindOf(arg), "")
		return
	}
	parts, err := ParseSub(body)
	if err != nil {
		c.add(path, "malformed Fn::Sub", err.Error(), "")
		return
	}
	for _, part := range parts {
		if _, own := vars[part.Name]; part.Name == "" || own {
			continue
		}
		c.target(part.Target, part.Attribute, path)
	}
	for _, k := range sortedKeys(vars) {
		c.value(vars[k], child(item(path, 1), k))
	}
}

// findInMap checks what is written out: the mapping and its keys, unless a DefaultValue stands by.
func (c *checker) findInMap(arg any, path string) {
	list, ok := arg.([]any)
	if !ok || len(list) < 3 || len(list) > 4 {
		c.add(path, "Fn::FindInMap takes a mapping, a top-level key and a second-level key", "found "+kindOf(arg), "")
		return
	}
	if len(list) == 4 {
		if !c.v.t.HasLanguageExtensions() {
			c.add(item(path, 3), "a DefaultValue needs the transform "+LanguageExtensions, "", "Add it to the template's Transform.")
		}
		return
	}
	name, ok := list[0].(string)
	if !ok {
		return
	}
	top, ok := c.v.t.Mappings[name].(map[string]any)
	if !ok {
		c.add(item(path, 0), "unknown mapping "+name, didYouMean(name, sortedKeys(c.v.t.Mappings)), "")
		return
	}
	if key, ok := list[1].(string); ok && top[key] == nil {
		c.add(item(path, 1), "the mapping "+name+" has no top-level key "+key, didYouMean(key, sortedKeys(top)), "")
	}
}

// target checks one reference.
func (c *checker) target(target, attribute, path string) {
	t := c.v.t
	if IsPseudo(target) {
		if !slices.Contains(PseudoParameters(), target) {
			c.add(path, "unknown pseudo parameter "+target, didYouMean(target, PseudoParameters()), "")
		} else if attribute != "" {
			c.add(path, "the pseudo parameter "+target+" has no attributes", "", "")
		}
		return
	}
	isParameter, isResource := t.Parameters[target] != nil, t.Resources[target] != nil
	switch {
	case !isParameter && !isResource:
		candidates := sortedKeys(t.Parameters)
		if c.section == inResources || c.section == inOutputs {
			candidates = append(candidates, sortedKeys(t.Resources)...)
		}
		c.v.unknown(c.id, path, target, append(candidates, PseudoParameters()...))
	case !isParameter && (c.section == inConditions || c.section == inRules):
		c.add(path, target+" is a resource", "Conditions and Rules are evaluated before any resource exists", "Refer to parameters and mappings only.")
	case !isResource && attribute != "":
		c.add(path, target+" is a parameter and has no attributes", "", "Use Ref.")
	}
}

// PseudoParameters lists the pseudo parameters
// (https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/pseudo-parameter-reference.html).
func PseudoParameters() []string {
	return []string{"AWS::AccountId", "AWS::NoValue", "AWS::NotificationARNs", "AWS::Partition", "AWS::Region", "AWS::StackId", "AWS::StackName", "AWS::URLSuffix"}
}
