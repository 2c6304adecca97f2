package iampolicy

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Call is one action on one resource.
type Call struct {
	Action   string `json:"action"`   // "s3:GetObject"
	Resource string `json:"resource"` // an ARN, or "*" for an action that has no resource
	// Context are the condition keys of the request with their values. A key that is absent is not in the request.
	Context map[string][]string `json:"context,omitempty"`
}

// Decision is what policies say to a call.
type Decision struct {
	Allowed bool
	// By is the statement that has decided; nil where none speaks of the call.
	By *Statement
}

// Evaluate decides on a call. An error is a policy that is not understood: nothing is decided then.
func Evaluate(call Call, documents ...Document) (Decision, error) {
	var d Decision
	for i := range documents {
		for j := range documents[i].Statement {
			s := &documents[i].Statement[j]
			applies, err := s.Applies(call)
			if err != nil {
				return Decision{}, fmt.Errorf("statement %s: %w", s.Sid, err)
			}
			switch {
			case !applies:
			case s.Effect == "Deny":
				return Decision{By: s}, nil
			case !d.Allowed:
				d = Decision{Allowed: true, By: s}
			}
		}
	}
	return d, nil
}

// Applies reports whether the statement speaks of a call.
func (s *Statement) Applies(call Call) (bool, error) {
	if !slices.ContainsFunc(s.Action, func(pattern string) bool {
		return Matches(strings.ToLower(pattern), strings.ToLower(call.Action))
	}) {
		return false, nil
	}
	if !slices.ContainsFunc(s.Resource, func(pattern string) bool {
		pattern, known := substitute(pattern, call.Context)
		return known && Matches(pattern, call.Resource)
	}) {
		return false, nil
	}
	for operator, keys := range s.Condition {
		for key, values := range keys {
			holds, err := holds(operator, key, values, call.Context)
			if err != nil || !holds {
				return false, err
			}
		}
	}
	return true, nil
}

// Matches reports whether a text is of a pattern, in which "*" stands for any characters and "?" for one
// (https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_elements_resource.html).
func Matches(pattern, text string) bool {
	// p and t are where the last "*" was met: from there more is taken into it when the rest does not fit.
	i, j, p, t := 0, 0, -1, 0
	for j < len(text) {
		switch {
		case i < len(pattern) && pattern[i] == '*':
			p, t = i, j
			i++
		case i < len(pattern) && (pattern[i] == '?' || pattern[i] == text[j]):
			i++
			j++
		case p >= 0:
			t++
			i, j = p+1, t
		default:
			return false
		}
	}
	return strings.Trim(pattern[i:], "*") == ""
}

var variable = regexp.MustCompile(`\$\{([^}]*)\}`)

// substitute puts the request's values in place of policy variables
// (https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_variables.html). A value is taken as it is:
// IAM does not let its wildcards act.
func substitute(pattern string, context map[string][]string) (out string, known bool) {
	known = true
	out = variable.ReplaceAllStringFunc(pattern, func(v string) string {
		name := variable.FindStringSubmatch(v)[1]
		switch name {
		case "*", "?", "$":
			known = false // literal wildcards are not supported
			return v
		}
		values := context[name]
		if len(values) != 1 || strings.ContainsAny(values[0], "*?") {
			known = false
			return v
		}
		return values[0]
	})
	return out, known
}

// holds reports whether one condition holds
// (https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_elements_condition_operators.html).
func holds(operator, key string, values []string, context map[string][]string) (bool, error) {
	base, quantifier := operator, ""
	if q, rest, ok := strings.Cut(operator, ":"); ok {
		quantifier, base = q, rest
	}
	base, optional := strings.CutSuffix(base, "IfExists")
	asked, present := lookUp(context, key)
	var one func(pattern, value string) bool
	negated := false
	switch base {
	case "StringEquals":
		one = func(p, v string) bool { return p == v }
	case "StringNotEquals":
		one, negated = func(p, v string) bool { return p == v }, true
	case "StringLike", "ArnLike", "ArnEquals":
		one = Matches
	case "StringNotLike", "ArnNotLike":
		one, negated = Matches, true
	case "Bool":
		one = strings.EqualFold
	case "Null":
		return len(values) == 1 && strings.EqualFold(values[0], "true") == !present, nil
	default:
		return false, fmt.Errorf("the condition operator %s is not supported", operator)
	}
	matches := func(v string) bool {
		any := slices.ContainsFunc(values, func(p string) bool {
			p, known := substitute(p, context)
			return known && one(p, v)
		})
		return any != negated
	}
	switch {
	case quantifier == "ForAllValues":
		return !slices.ContainsFunc(asked, func(v string) bool { return !matches(v) }), nil
	case quantifier == "ForAnyValue":
		return slices.ContainsFunc(asked, matches), nil
	case quantifier != "":
		return false, fmt.Errorf("the condition operator %s is not supported", operator)
	case !present:
		return optional || negated, nil
	case len(asked) != 1:
		return false, fmt.Errorf("the condition key %s has %d values and %s takes one", key, len(asked), operator)
	}
	return matches(asked[0]), nil
}

// lookUp finds a condition key, whose case does not matter.
func lookUp(context map[string][]string, key string) ([]string, bool) {
	for k, v := range context {
		if strings.EqualFold(k, key) {
			return v, true
		}
	}
	return nil, false
}
