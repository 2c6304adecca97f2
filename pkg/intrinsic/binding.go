package intrinsic

import (
	"strings"

	"github.com/slipway-cdk/slipway/pkg/template"
)

// bindings are the values of the identifiers of the loops around a value.
type bindings struct {
	values map[string]string
	// longest is the length of the longest identifier.
	longest int
	// resource: the value is a resource. properties: the value stands in the properties of one. Loops inside of a
	// value may stand in properties only.
	resource, properties bool
}

func (b bindings) has(name string) bool {
	_, ok := b.values[name]
	return ok
}

// with is the bindings with one more identifier, whose value is to be set.
func (b bindings) with(name string) bindings {
	out := b
	out.values = make(map[string]string, len(b.values)+1)
	for k, v := range b.values {
		out.values[k] = v
	}
	out.longest = max(b.longest, len(name))
	return out
}

// below is the bindings for a member of an object.
func (b bindings) below(key string) bindings {
	if b.resource {
		b.resource, b.properties = false, key == "Properties"
	}
	return b
}

// mentions tells whether a key holds an identifier in either form.
func mentions(key, identifier string) bool {
	return strings.Contains(key, "${"+identifier+"}") || strings.Contains(key, "&{"+identifier+"}")
}

// text fills the identifiers into a text: ${X} is replaced by the item as it is, &{X} by its letters and digits.
// What has been filled in is not looked at again.
func (b bindings) text(s string) string { return b.fill(s, func(v string) string { return v }) }

// sub fills the identifiers into the body of Fn::Sub, where an item may not begin a placeholder of its own.
func (b bindings) sub(s string) string {
	return b.fill(s, func(v string) string { return strings.ReplaceAll(v, "${", "${!") })
}

func (b bindings) fill(s string, escape func(string) string) string {
	if len(b.values) == 0 || !strings.Contains(s, "{") {
		return s
	}
	var out strings.Builder
	for {
		i := strings.IndexAny(s, "$&")
		if i < 0 {
			break
		}
		name, ok := b.identifierAt(s[i+1:])
		if !ok {
			out.WriteString(s[:i+1])
			s = s[i+1:]
			continue
		}
		out.WriteString(s[:i])
		if s[i] == '&' {
			out.WriteString(alphanumeric(b.values[name]))
		} else {
			out.WriteString(escape(b.values[name]))
		}
		s = s[i+len("${}")+len(name):]
	}
	out.WriteString(s)
	return out.String()
}

// identifierAt reads "{identifier}" at the beginning of a text.
func (b bindings) identifierAt(s string) (string, bool) {
	if !strings.HasPrefix(s, "{") {
		return "", false
	}
	s = s[1:min(len(s), b.longest+2)]
	name, _, closed := strings.Cut(s, "}")
	return name, closed && b.has(name)
}

func alphanumeric(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return -1
	}, s)
}

// substitute copies a value with the identifiers filled into its texts, its keys and its Refs, and expands the loops
// inside of it.
func (x *expansion) substitute(v any, path string, b bindings) (any, error) {
	if err := x.grow(valueSize, path); err != nil {
		return nil, err
	}
	switch v := v.(type) {
	case string:
		s := b.text(v)
		return s, x.grow(len(s), path)
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			var err error
			if out[i], err = x.substitute(e, item(path, i), b); err != nil {
				return nil, err
			}
		}
		return out, nil
	case map[string]any:
		if name, arg, ok := template.Intrinsic(v); ok && !isLoop(name) {
			return x.substituteFunction(name, arg, child(path, name), b)
		}
		return x.substituteObject(v, path, b)
	}
	return v, nil
}

func (x *expansion) substituteObject(m map[string]any, path string, b bindings) (any, error) {
	out := expanded{members: make(map[string]any, len(m))}
	for _, k := range sortedKeys(m) {
		here := child(path, k)
		if isLoop(k) {
			if !b.properties {
				return nil, x.misplaced(here)
			}
			if err := x.loop(k, m[k], here, b, &out); err != nil {
				return nil, err
			}
			continue
		}
		key := b.text(k)
		if _, double := out.members[key]; double {
			return nil, x.collision(here, key)
		}
		v, err := x.substitute(m[k], here, b.below(k))
		if err != nil {
			return nil, err
		}
		if err := x.grow(len(key), here); err != nil {
			return nil, err
		}
		out.members[key] = v
	}
	return out.members, nil
}

func (x *expansion) substituteFunction(name string, arg any, path string, b bindings) (any, error) {
	v, err := x.substitute(arg, path, b)
	if err != nil {
		return nil, err
	}
	switch name {
	case "Ref":
		if target, written := v.(string); written && b.has(target) {
			return b.values[target], nil
		}
	case "Fn::Sub":
		// The body again: an item may not begin a placeholder of its own.
		switch body := arg.(type) {
		case string:
			v = b.sub(body)
		case []any:
			if len(body) > 0 {
				if first, written := body[0].(string); written {
					v.([]any)[0] = b.sub(first)
				}
			}
		}
	}
	return map[string]any{name: v}, nil
}
