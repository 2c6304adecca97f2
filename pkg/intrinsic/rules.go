package intrinsic

import (
	"maps"
	"slices"

	"github.com/slipway-cdk/slipway/pkg/diag"
	"github.com/slipway-cdk/slipway/pkg/template"
)

// ValueOfFact is the key under which CheckRules finds an attribute of what a parameter names, for Fn::ValueOf
// and Fn::ValueOfAll: "value-of:VpcId.Tags.Department". The value of the fact is text.
func ValueOfFact(parameter, attribute string) string {
	return "value-of:" + parameter + "." + attribute
}

// CheckRules evaluates the template's Rules: every assertion of a rule whose RuleCondition is true (or absent)
// must hold (https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/rules-section-structure.html).
//
// A rule that refers to a parameter of an AWS::SSM::Parameter::Value<…> type that has no bound value is left
// out: BindParameters does not read what nothing but Rules refers to. That is the case of the CDK's
// CheckBootstrapVersion, whose bootstrap stack a deploy without CloudFormation does not need.
//
// Facts (ValueOfFact) answer Fn::ValueOf and Fn::ValueOfAll; an assertion that needs one that is in none of
// them is an error.
func CheckRules(t *template.Template, params map[string]any, pseudo Pseudo, facts ...map[string]any) diag.Diagnostics {
	known := map[string]any{}
	for _, f := range facts {
		maps.Copy(known, f)
	}
	var ds diag.Diagnostics
	for _, name := range sortedKeys(t.Rules) {
		rule, ok := t.Rules[name].(map[string]any)
		if !ok || unboundSSM(t, rule, params) {
			continue
		}
		ds = append(ds, checkRule(t, name, rule, params, pseudo, known)...)
	}
	return ds
}

func unboundSSM(t *template.Template, rule map[string]any, params map[string]any) bool {
	found := false
	template.WalkReferences(rule, "", func(ref template.Reference) {
		if p := t.Parameters[ref.Target]; p != nil {
			_, ssm := p.SSMType()
			_, bound := params[ref.Target]
			found = found || ssm && !bound
		}
	})
	return found
}

func checkRule(t *template.Template, name string, rule map[string]any, params map[string]any, pseudo Pseudo, facts map[string]any) diag.Diagnostics {
	c := newConditions(t, &Scope{Template: t, Parameters: params, Pseudo: pseudo})
	e := c.e
	e.place, e.facts = inRules, facts
	path := "Rules." + name
	if cond, ok := rule["RuleCondition"]; ok {
		if applies, _ := e.boolean(cond, child(path, "RuleCondition")).(bool); !applies {
			return e.diags
		}
	}
	assertions, _ := rule["Assertions"].([]any)
	for i, a := range assertions {
		m, _ := a.(map[string]any)
		at := item(child(path, "Assertions"), i)
		if holds, ok := e.boolean(m["Assert"], child(at, "Assert")).(bool); ok && !holds {
			description, _ := m["AssertDescription"].(string)
			e.fail(at, "the rule "+name+" is not satisfied", description)
		}
	}
	return e.diags
}

// texts evaluates a list of strings.
func (e *evaluation) texts(v any, path string) ([]string, any) {
	v = e.value(v, path)
	if b, stop := blocked(v); stop {
		return nil, b
	}
	list, ok := v.([]any)
	if !ok {
		return nil, e.fail(path, "the operand is not a list of strings", "found "+kindOf(v))
	}
	var out []string
	for i, x := range list {
		if inner, isList := x.([]any); isList { // a list parameter among the values of Fn::RefAll
			for _, y := range inner {
				s, _ := text(y)
				out = append(out, s)
			}
			continue
		}
		s, ok := text(x)
		if !ok {
			return nil, e.fail(item(path, i), "an item is not a string", "found "+kindOf(x))
		}
		out = append(out, s)
	}
	return out, nil
}

// textsAndText evaluates [[strings], string]; purpose says in a message what the string is for. stop is what the
// function comes to when they can't be had, nil when they can.
func (e *evaluation) textsAndText(arg any, path, purpose string) (values []string, s string, stop any) {
	list, ok := e.arguments(arg, path, 2, 2, "a list of strings and a string")
	if !ok {
		return nil, "", failed{}
	}
	if values, stop = e.texts(list[0], item(path, 0)); stop != nil {
		return nil, "", stop
	}
	v := e.value(list[1], item(path, 1))
	if b, blocks := blocked(v); blocks {
		return nil, "", b
	}
	if s, ok = text(v); !ok {
		return nil, "", e.fail(item(path, 1), "the value to "+purpose+" is not a string", "found "+kindOf(v))
	}
	return values, s, nil
}

// contains evaluates Fn::Contains [[strings], string].
func (e *evaluation) contains(arg any, path string) any {
	values, s, stop := e.textsAndText(arg, path, "look for")
	if stop != nil {
		return stop
	}
	return slices.Contains(values, s)
}

// eachMemberEquals evaluates Fn::EachMemberEquals [[strings], string].
func (e *evaluation) eachMemberEquals(arg any, path string) any {
	values, s, stop := e.textsAndText(arg, path, "compare with")
	if stop != nil {
		return stop
	}
	for _, x := range values {
		if x != s {
			return false
		}
	}
	return true
}

// eachMemberIn evaluates Fn::EachMemberIn [[strings to check], [strings to match]].
func (e *evaluation) eachMemberIn(arg any, path string) any {
	list, ok := e.arguments(arg, path, 2, 2, "two lists of strings")
	if !ok {
		return failed{}
	}
	values, bad := e.texts(list[0], item(path, 0))
	allowed, bad2 := e.texts(list[1], item(path, 1))
	if bad != nil {
		return bad
	}
	if bad2 != nil {
		return bad2
	}
	for _, x := range values {
		if !slices.Contains(allowed, x) {
			return false
		}
	}
	return true
}

// parametersOfType lists the parameters of a type, in name order.
func (e *evaluation) parametersOfType(v any, path string) ([]string, any) {
	typ, ok := v.(string)
	if !ok {
		return nil, e.fail(path, "the operand is not a parameter type", "found "+kindOf(v))
	}
	var out []string
	for _, name := range sortedKeys(e.scope.Template.Parameters) {
		if t := e.scope.Template.Parameters[name].Type; t == typ || t == "List<"+typ+">" {
			out = append(out, name)
		}
	}
	return out, nil
}

// refAll evaluates Fn::RefAll "AWS::EC2::VPC::Id": the values of all parameters of a type.
func (e *evaluation) refAll(arg any, path string) any {
	names, bad := e.parametersOfType(arg, path)
	if bad != nil {
		return bad
	}
	out := []any{}
	for _, name := range names {
		switch v := e.scope.Parameters[name].(type) {
		case nil:
		case []any:
			out = append(out, v...)
		default:
			out = append(out, v)
		}
	}
	return out
}

// valueOf evaluates Fn::ValueOf [parameter, attribute].
func (e *evaluation) valueOf(arg any, path string) any {
	list, ok := e.arguments(arg, path, 2, 2, "the name of a parameter and an attribute")
	if !ok {
		return failed{}
	}
	name, _ := list[0].(string)
	attribute, isText := list[1].(string)
	if e.scope.Template.Parameters[name] == nil || !isText {
		return e.fail(path, "Fn::ValueOf takes the name of a parameter and an attribute", e.suggest(name, sortedKeys(e.scope.Template.Parameters)))
	}
	return e.valueOfFact(name, attribute, path)
}

func (e *evaluation) valueOfFact(name, attribute, path string) any {
	v, ok := e.facts[ValueOfFact(name, attribute)]
	if !ok {
		return e.fail(path, "the rule can't be checked", "the attribute "+attribute+" of what the parameter "+name+" names is not known")
	}
	return v
}

// valueOfAll evaluates Fn::ValueOfAll [parameter type, attribute].
func (e *evaluation) valueOfAll(arg any, path string) any {
	list, ok := e.arguments(arg, path, 2, 2, "a parameter type and an attribute")
	if !ok {
		return failed{}
	}
	names, bad := e.parametersOfType(list[0], item(path, 0))
	if bad != nil {
		return bad
	}
	attribute, ok := list[1].(string)
	if !ok {
		return e.fail(item(path, 1), "the attribute is not a string", "found "+kindOf(list[1]))
	}
	out := []any{}
	for _, name := range names {
		v := e.valueOfFact(name, attribute, path)
		if _, stop := v.(failed); stop {
			return v
		}
		out = append(out, v)
	}
	return out
}
