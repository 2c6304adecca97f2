package intrinsic

import "slices"

// ifElse evaluates Fn::If: only the chosen branch is looked at. In Rules its first argument is an expression,
// elsewhere the name of a condition
// (https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/intrinsic-function-reference-conditions.html).
func (e *evaluation) ifElse(arg any, path string) any {
	list, ok := e.arguments(arg, path, 3, 3, "a condition, a value if true and a value if false")
	if !ok {
		return failed{}
	}
	var chosen any
	if name, isName := list[0].(string); isName {
		chosen = e.condition(name, item(path, 0))
	} else if e.place == inProperties || e.place == inExpansion {
		return e.fail(item(path, 0), "the condition of Fn::If is the name of a condition", "found "+kindOf(list[0]))
	} else {
		chosen = e.boolean(list[0], item(path, 0))
	}
	yes, ok := chosen.(bool)
	if !ok {
		return chosen
	}
	if yes {
		return e.value(list[1], item(path, 1))
	}
	return e.value(list[2], item(path, 2))
}

// namedCondition evaluates {"Condition": name}.
func (e *evaluation) namedCondition(arg any, path string) any {
	name, ok := arg.(string)
	if !ok {
		return e.fail(path, "Condition takes the name of a condition", "found "+kindOf(arg))
	}
	return e.condition(name, path)
}

// boolean evaluates an operand that must be true or false.
func (e *evaluation) boolean(v any, path string) any {
	v = e.value(v, path)
	if _, isBool := v.(bool); isBool {
		return v
	}
	if b, stop := blocked(v); stop {
		return b
	}
	switch s, _ := text(v); s {
	case "true":
		return true
	case "false":
		return false
	}
	return e.fail(path, "the operand is neither true nor false", "found "+kindOf(v))
}

// equals evaluates Fn::Equals. Scalars are compared as the text they are written as, case-sensitively: 1 and
// "1" are equal, 1 and "1.0" are not; lists and objects are equal when all their parts are.
func (e *evaluation) equals(arg any, path string) any {
	list, ok := e.arguments(arg, path, 2, 2, "two values")
	if !ok {
		return failed{}
	}
	a, b := e.value(list[0], item(path, 0)), e.value(list[1], item(path, 1))
	if x, stop := blocked(a, b); stop {
		return x
	}
	return sameValue(a, b)
}

func sameValue(a, b any) bool {
	if s, ok := text(a); ok {
		t, ok := text(b)
		return ok && s == t
	}
	switch a := a.(type) {
	case nil:
		return b == nil
	case NoValue:
		_, ok := b.(NoValue)
		return ok
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, sameValue)
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for k, v := range a {
			w, ok := b[k]
			if !ok || !sameValue(v, w) {
				return false
			}
		}
		return true
	}
	return false
}

// operands evaluates every operand of Fn::And and Fn::Or: as in CloudFormation, all of them are evaluated and
// a problem in any is a problem.
func (e *evaluation) operands(arg any, path string) ([]bool, any) {
	list, ok := e.arguments(arg, path, 2, 10, "2 to 10 conditions")
	if !ok {
		return nil, failed{}
	}
	out := make([]bool, len(list))
	var bad any
	for i, v := range list {
		x := e.boolean(v, item(path, i))
		if out[i], ok = x.(bool); !ok {
			bad = x
		}
	}
	return out, bad
}

func (e *evaluation) and(arg any, path string) any {
	list, bad := e.operands(arg, path)
	if bad != nil {
		return bad
	}
	return !slices.Contains(list, false)
}

func (e *evaluation) or(arg any, path string) any {
	list, bad := e.operands(arg, path)
	if bad != nil {
		return bad
	}
	return slices.Contains(list, true)
}

func (e *evaluation) not(arg any, path string) any {
	list, ok := e.arguments(arg, path, 1, 1, "a list of one condition")
	if !ok {
		return failed{}
	}
	x := e.boolean(list[0], item(path, 0))
	if yes, ok := x.(bool); ok {
		return !yes
	}
	return x
}
