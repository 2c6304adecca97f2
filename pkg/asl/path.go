package asl

import (
	"fmt"
	"strings"

	"github.com/theory/jsonpath"
	"github.com/theory/jsonpath/spec"
)

// path is a reference path: a JSONPath that names exactly one place, $ or $$ followed by member names and
// array indexes (https://states-language.net/spec.html#ref-paths). Wildcards, slices, filters, unions,
// descendants, negative indexes and functions are refused when the definition is loaded: with none of them, a path
// either finds one value or is missing.
type path struct {
	text string
	// context says that the path starts from the context object ($$) and not from the state's data.
	context bool
	steps   []step
}

// step is one member name, or an array index where isIndex is set.
type step struct {
	name    string
	index   int
	isIndex bool
}

// parsePath reads a reference path. The grammar of names and quotes is RFC 9535's.
func parsePath(text string) (path, error) {
	p := path{text: text}
	query := text
	if strings.HasPrefix(text, "$$") {
		p.context = true
		query = text[1:]
	}
	if !strings.HasPrefix(query, "$") {
		return path{}, fmt.Errorf("%q is not a path: a path starts with $ or $$", text)
	}
	parsed, err := jsonpath.Parse(query)
	if err != nil {
		return path{}, fmt.Errorf("%q is not a path: %w", text, err)
	}
	for _, segment := range parsed.Query().Segments() {
		selectors := segment.Selectors()
		if segment.IsDescendant() || len(selectors) != 1 {
			return path{}, fmt.Errorf("path %q can select several values: use a reference path", text)
		}
		switch s := selectors[0].(type) {
		case spec.Name:
			p.steps = append(p.steps, step{name: string(s)})
		case spec.Index:
			if s < 0 {
				return path{}, fmt.Errorf("path %q counts from the end of an array: use a reference path", text)
			}
			p.steps = append(p.steps, step{index: int(s), isIndex: true})
		default:
			return path{}, fmt.Errorf("path %q can select several values: use a reference path", text)
		}
	}
	return p, nil
}

// get returns the value at the path and whether it is there. A null that is there is found.
func (p path) get(v any) (any, bool) {
	for _, s := range p.steps {
		if s.isIndex {
			list, ok := v.([]any)
			if !ok || s.index >= len(list) {
				return nil, false
			}
			v = list[s.index]
			continue
		}
		object, ok := v.(map[string]any)
		if !ok {
			return nil, false
		}
		if v, ok = object[s.name]; !ok {
			return nil, false
		}
	}
	return v, true
}

// set returns v with value put at the path; v itself is left as it is. Objects that are missing on the way
// are made. It returns false where something on the way is there but is not an object, or where the path has
// an array index, which the loader refuses for paths that are written to.
func (p path) set(v, value any) (any, bool) {
	return setAt(v, p.steps, value)
}

func setAt(v any, steps []step, value any) (any, bool) {
	if len(steps) == 0 {
		return value, true
	}
	object, ok := v.(map[string]any)
	if !ok || steps[0].isIndex {
		return nil, false
	}
	below, there := object[steps[0].name]
	if !there {
		below = map[string]any{}
	}
	below, ok = setAt(below, steps[1:], value)
	if !ok {
		return nil, false
	}
	changed := make(map[string]any, len(object)+1)
	for k, old := range object {
		changed[k] = old
	}
	changed[steps[0].name] = below
	return changed, true
}
