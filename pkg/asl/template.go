package asl

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// template is a payload template (https://states-language.net/spec.html#payload-template): a JSON value in
// which a member whose name ends in ".$" is replaced by what its path finds.
type template struct {
	// fill makes the value. data is the state's data, context gives the context object.
	fill func(data any, context func() any) (any, error)
	// paths are all paths in the template.
	paths []path
}

// missingError says that a path of a template found nothing.
type missingError struct{ path, field string }

func (e *missingError) Error() string {
	return fmt.Sprintf("The JSONPath '%s' specified for the field '%s' could not be found in the input", e.path, e.field)
}

// parseTemplate reads a payload template. Intrinsic functions are refused.
func parseTemplate(v any) (*template, error) {
	switch v := v.(type) {
	case map[string]any:
		return parseObjectTemplate(v)
	case []any:
		return parseListTemplate(v)
	}
	return &template{fill: func(any, func() any) (any, error) { return v, nil }}, nil
}

func parseObjectTemplate(object map[string]any) (*template, error) {
	t := &template{}
	type member struct {
		name string
		fill func(any, func() any) (any, error)
	}
	members := make([]member, 0, len(object))
	for _, key := range slices.Sorted(maps.Keys(object)) {
		name, isPath := strings.CutSuffix(key, ".$")
		if !isPath {
			inner, err := parseTemplate(object[key])
			if err != nil {
				return nil, err
			}
			t.paths = append(t.paths, inner.paths...)
			members = append(members, member{key, inner.fill})
			continue
		}
		if _, twice := object[name]; twice {
			return nil, fmt.Errorf("%q and %q stand side by side", name, key)
		}
		text, ok := object[key].(string)
		if !ok {
			return nil, fmt.Errorf("%q must be a path", key)
		}
		if strings.HasPrefix(text, "States.") {
			return nil, fmt.Errorf("%q calls an intrinsic function: %s is not supported", key, strings.SplitN(text, "(", 2)[0])
		}
		p, err := parsePath(text)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", key, err)
		}
		t.paths = append(t.paths, p)
		members = append(members, member{name, func(data any, context func() any) (any, error) {
			if p.context {
				data = context()
			}
			v, ok := p.get(data)
			if !ok {
				return nil, &missingError{p.text, key}
			}
			return v, nil
		}})
	}
	t.fill = func(data any, context func() any) (any, error) {
		filled := make(map[string]any, len(members))
		for _, m := range members {
			v, err := m.fill(data, context)
			if err != nil {
				return nil, err
			}
			filled[m.name] = v
		}
		return filled, nil
	}
	return t, nil
}

func parseListTemplate(list []any) (*template, error) {
	t := &template{}
	items := make([]*template, len(list))
	for i, v := range list {
		inner, err := parseTemplate(v)
		if err != nil {
			return nil, err
		}
		items[i] = inner
		t.paths = append(t.paths, inner.paths...)
	}
	t.fill = func(data any, context func() any) (any, error) {
		filled := make([]any, len(items))
		for i, item := range items {
			v, err := item.fill(data, context)
			if err != nil {
				return nil, err
			}
			filled[i] = v
		}
		return filled, nil
	}
	return t, nil
}
