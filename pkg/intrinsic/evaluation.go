package intrinsic

import (
	"encoding/json"
	"fmt"
	"sort"
	"strconv"

	"github.com/slipway-cdk/slipway/pkg/diag"
	"github.com/slipway-cdk/slipway/pkg/template"
)

// place is where a value stands: which functions are allowed depends on it
// (https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/intrinsic-function-reference.html).
type place int

const (
	inProperties place = iota // Resources and Outputs
	inConditions
	inRules
	inExpansion // what Expand evaluates: before there are resources
)

// failed stands for a value whose problem is already reported. It spreads like an Unknown, silently.
type failed struct{}

// evaluation is one walk over one value.
type evaluation struct {
	scope *Scope
	place place
	diags diag.Diagnostics
	// condition gives the value of a named condition.
	condition func(name, path string) any
	// facts, set in Rules, answers Fn::ValueOf.
	facts map[string]any
	// needs, when set, collects the facts that are missing instead of reporting them.
	needs *collector
}

func (r *Resolver) evaluation(p place) *evaluation {
	e := &evaluation{scope: r.scope, place: p}
	e.condition = func(name, path string) any {
		v, ok := r.scope.Conditions[name]
		if !ok {
			return e.fail(path, "unknown condition "+name, e.suggest(name, conditionNames(r.scope)))
		}
		return v
	}
	return e
}

func conditionNames(s *Scope) []string {
	var names []string
	for name := range s.Conditions {
		names = append(names, name)
	}
	return names
}

func (e *evaluation) suggest(name string, candidates []string) string {
	sort.Strings(candidates)
	if best := template.Closest(name, candidates); best != "" {
		return "did you mean " + best + "?"
	}
	return ""
}

// fail reports a problem and returns failed.
func (e *evaluation) fail(path, summary, detail string) any {
	e.diags = append(e.diags, diag.Diagnostic{Severity: diag.Error, Summary: summary, Detail: detail, Path: path})
	return failed{}
}

func (e *evaluation) failf(path, summary, format string, args ...any) any {
	return e.fail(path, summary, fmt.Sprintf(format, args...))
}

// value resolves any value.
func (e *evaluation) value(v any, path string) any {
	switch v := v.(type) {
	case map[string]any:
		if name, arg, ok := e.intrinsic(v); ok {
			return e.function(name, arg, child(path, name))
		}
		return e.object(v, path)
	case []any:
		out := make([]any, 0, len(v))
		for i, x := range v {
			if x = e.value(x, item(path, i)); x != (NoValue{}) {
				out = append(out, x)
			}
		}
		return out
	}
	return v
}

func (e *evaluation) object(m map[string]any, path string) any {
	out := make(map[string]any, len(m))
	for _, k := range sortedKeys(m) {
		if x := e.value(m[k], child(path, k)); x != (NoValue{}) {
			out[k] = x
		}
	}
	return out
}

// intrinsic also takes {"Condition": name} for a function where conditions are evaluated.
func (e *evaluation) intrinsic(m map[string]any) (string, any, bool) {
	if name, arg, ok := template.Intrinsic(m); ok {
		return name, arg, true
	}
	if (e.place == inConditions || e.place == inRules) && len(m) == 1 {
		if arg, ok := m["Condition"]; ok {
			return "Condition", arg, true
		}
	}
	return "", nil, false
}

type function func(e *evaluation, arg any, path string) any

// function evaluates one intrinsic function.
func (e *evaluation) function(name string, arg any, path string) any {
	f, allowed := lookupFunction(name, e.place)
	if f == nil {
		return e.fail(path, "unknown function "+name, e.suggest(name, functionNames()))
	}
	if !allowed {
		return e.fail(path, name+" can't be used here", placeNames[e.place])
	}
	return f(e, arg, path)
}

var placeNames = [...]string{
	inProperties: "it is allowed in Conditions and Rules only",
	inConditions: "it is not allowed in Conditions",
	inRules:      "it is not allowed in Rules",
	inExpansion:  "the template is expanded before anything exists that it could be read from",
}

// lookupFunction finds a function; allowed tells whether it may stand at the place.
func lookupFunction(name string, p place) (f function, allowed bool) {
	everywhere := func(f function) (function, bool) { return f, true }
	only := func(f function, places ...place) (function, bool) {
		for _, q := range places {
			if p == q {
				return f, true
			}
		}
		return f, false
	}
	switch name {
	case "Ref":
		return everywhere((*evaluation).ref)
	case "Fn::FindInMap":
		return everywhere((*evaluation).findInMap)
	case "Fn::Join":
		return everywhere((*evaluation).join)
	case "Fn::Sub":
		return everywhere((*evaluation).sub)
	case "Fn::Select":
		return everywhere((*evaluation).selectItem)
	case "Fn::Split":
		return everywhere((*evaluation).split)
	case "Fn::Length":
		return everywhere((*evaluation).length)
	case "Fn::ToJsonString":
		return everywhere((*evaluation).toJSONString)
	case "Fn::If":
		return everywhere((*evaluation).ifElse)
	case "Fn::GetAtt":
		return only((*evaluation).getAtt, inProperties)
	case "Fn::Base64":
		return only((*evaluation).base64, inProperties)
	case "Fn::Cidr":
		return only((*evaluation).cidr, inProperties)
	case "Fn::GetAZs":
		return only((*evaluation).getAZs, inProperties)
	case "Fn::ImportValue":
		return only((*evaluation).importValue, inProperties)
	case "Fn::GetStackOutput":
		return only((*evaluation).getStackOutput, inProperties)
	case "Condition":
		return only((*evaluation).namedCondition, inConditions, inRules)
	case "Fn::Equals":
		return only((*evaluation).equals, inConditions, inRules)
	case "Fn::And":
		return only((*evaluation).and, inConditions, inRules)
	case "Fn::Or":
		return only((*evaluation).or, inConditions, inRules)
	case "Fn::Not":
		return only((*evaluation).not, inConditions, inRules)
	case "Fn::Contains":
		return only((*evaluation).contains, inRules)
	case "Fn::EachMemberEquals":
		return only((*evaluation).eachMemberEquals, inRules)
	case "Fn::EachMemberIn":
		return only((*evaluation).eachMemberIn, inRules)
	case "Fn::RefAll":
		return only((*evaluation).refAll, inRules)
	case "Fn::ValueOf":
		return only((*evaluation).valueOf, inRules)
	case "Fn::ValueOfAll":
		return only((*evaluation).valueOfAll, inRules)
	}
	return nil, false
}

func functionNames() []string { return template.FunctionNames() }

// --- values ---------------------------------------------------------------------------------------------

// blocked tells whether a resolved operand can't be worked with: it is, or deep inside holds, an Unknown or
// a failure. It returns what the function then evaluates to.
func blocked(operands ...any) (any, bool) {
	var refs []string
	bad := false
	for _, v := range operands {
		bad = gather(v, &refs) || bad
	}
	if bad {
		return failed{}, true
	}
	if refs != nil {
		return unknown(refs), true
	}
	return nil, false
}

// gather adds the refs of every Unknown inside a value and reports whether it holds a failure.
func gather(v any, refs *[]string) (bad bool) {
	switch v := v.(type) {
	case failed:
		return true
	case Unknown:
		*refs = append(*refs, v.Refs...)
		if *refs == nil {
			*refs = []string{}
		}
	case map[string]any:
		for _, x := range v {
			bad = gather(x, refs) || bad
		}
	case []any:
		for _, x := range v {
			bad = gather(x, refs) || bad
		}
	}
	return bad
}

// unknown is an Unknown with sorted, distinct refs.
func unknown(refs []string) Unknown {
	sort.Strings(refs)
	out := refs[:0:0]
	for i, r := range refs {
		if i == 0 || r != refs[i-1] {
			out = append(out, r)
		}
	}
	return Unknown{Refs: out}
}

// text is the string that CloudFormation works with in place of a scalar.
func text(v any) (string, bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case bool:
		return strconv.FormatBool(v), true
	case json.Number:
		return v.String(), true
	case int:
		return strconv.Itoa(v), true
	case int64:
		return strconv.FormatInt(v, 10), true
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64), true
	}
	return "", false
}

// kindOf names the kind of a value for messages, which never quote it.
func kindOf(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case NoValue:
		return "AWS::NoValue"
	case map[string]any:
		if name, _, ok := template.Intrinsic(v); ok {
			return "the function " + name
		}
		return "an object"
	case []any:
		return "a list"
	case string:
		return "a string"
	case bool:
		return "a boolean"
	case json.Number, int, int64, float64:
		return "a number"
	}
	return fmt.Sprintf("a %T", v)
}

func child(path, step string) string {
	if path == "" {
		return step
	}
	return path + "." + step
}

func item(path string, i int) string { return child(path, strconv.Itoa(i)) }

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}
