package asl

import (
	"encoding/json"
	"fmt"
)

// choice is one entry of a Choice state's Choices.
type choice struct {
	test condition
	next string
}

// condition is a data test or a combination of them. It reports a variable that is missing with an error,
// which fails the execution, as Step Functions does.
type condition interface {
	holds(data any, context func() any) (bool, error)
}

type (
	allOf []condition
	anyOf []condition
	not   struct{ condition }
	// present is IsPresent.
	present struct {
		variable path
		want     bool
	}
	// comparison is every other test. A value of another type than the operator's does not match.
	comparison struct {
		variable path
		match    func(any) bool
	}
)

func (c allOf) holds(data any, context func() any) (bool, error) {
	for _, one := range c {
		if ok, err := one.holds(data, context); !ok || err != nil {
			return false, err
		}
	}
	return true, nil
}

func (c anyOf) holds(data any, context func() any) (bool, error) {
	for _, one := range c {
		if ok, err := one.holds(data, context); ok || err != nil {
			return ok, err
		}
	}
	return false, nil
}

func (c not) holds(data any, context func() any) (bool, error) {
	ok, err := c.condition.holds(data, context)
	return !ok, err
}

func (c present) holds(data any, context func() any) (bool, error) {
	_, ok := lookup(c.variable, data, context)
	return ok == c.want, nil
}

func (c comparison) holds(data any, context func() any) (bool, error) {
	v, ok := lookup(c.variable, data, context)
	if !ok {
		return false, &missingVariable{c.variable.text}
	}
	return c.match(v), nil
}

// missingVariable says that the variable of a comparison is not there, in Step Functions' words.
type missingVariable struct{ path string }

func (e *missingVariable) Error() string {
	return fmt.Sprintf("Invalid path '%s': The choice state's condition path references an invalid value.", e.path)
}

func lookup(p path, data any, context func() any) (any, bool) {
	if p.context {
		data = context()
	}
	return p.get(data)
}

// comparisonFor returns the test of an operator that takes a constant. known says whether there is such an operator,
// ok whether the constant has its type.
func comparisonFor(operator string, constant any) (match func(any) bool, known, ok bool) {
	switch operator {
	case "StringEquals":
		want, ok := constant.(string)
		return func(v any) bool { s, is := v.(string); return is && s == want }, true, ok
	case "BooleanEquals":
		want, ok := constant.(bool)
		return func(v any) bool { b, is := v.(bool); return is && b == want }, true, ok
	}
	var compare func(a, b float64) bool
	switch operator {
	case "NumericEquals":
		compare = func(a, b float64) bool { return a == b }
	case "NumericLessThan":
		compare = func(a, b float64) bool { return a < b }
	case "NumericGreaterThan":
		compare = func(a, b float64) bool { return a > b }
	case "NumericLessThanEquals":
		compare = func(a, b float64) bool { return a <= b }
	case "NumericGreaterThanEquals":
		compare = func(a, b float64) bool { return a >= b }
	default:
		return nil, false, false
	}
	want, ok := number(constant)
	return func(v any) bool { n, is := number(v); return is && compare(n, want) }, true, ok
}

func number(v any) (float64, bool) {
	n, ok := v.(json.Number)
	if !ok {
		return 0, false
	}
	f, err := n.Float64()
	return f, err == nil
}
