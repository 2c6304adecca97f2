package main

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/slipway-cdk/slipway/pkg/schema"
)

// mutations are the changes made to a resource: every top-level property is changed, removed or added, written
// in another notation, and, if it is a list, reordered; and so is what lies at every nested path that any source
// calls create-only.
func mutations(t *schema.Type, properties map[string]any) []pair {
	var out []pair
	add := func(path, kind string, next any) {
		name, _, _ := strings.Cut(path, "/")
		out = append(out, pair{Path: path, Kind: kind, Property: name, New: next})
	}
	for _, name := range slices.Sorted(maps.Keys(t.Properties)) {
		p, value := t.Properties[name], properties[name]
		if value == nil {
			add(name, "add", synthesize(t, p, 1, false))
			continue
		}
		if next, ok := different(t, p, value); ok {
			add(name, "change", next)
		}
		if !slices.Contains(t.Required, name) {
			out = append(out, pair{Path: name, Kind: "remove", Property: name, Gone: true})
		}
		if next, ok := restated(p, value); ok {
			add(name, "restate", next)
		}
		if next, ok := reordered(value); ok {
			add(name, "reorder", next)
		}
	}
	for _, path := range nested(t) {
		steps := strings.Split(path, "/")
		value := properties[steps[0]]
		if value == nil || t.Properties[steps[0]] == nil {
			continue
		}
		leaf := t.At(steps)
		if leaf == nil {
			continue
		}
		edit := func(kind string, member func(value any, there bool) (any, bool)) {
			if next, ok := edited(value, steps[1:], member); ok {
				add(path, kind, next)
			}
		}
		edit("change", func(value any, there bool) (any, bool) {
			if !there {
				return nil, false
			}
			return different(t, leaf, value)
		})
		edit("add", func(_ any, there bool) (any, bool) { return synthesize(t, leaf, 2, false), !there })
		edit("remove", func(_ any, there bool) (any, bool) { return nil, there })
	}
	return out
}

// nested lists the paths below a property about which any source says that a change replaces, or may.
func nested(t *schema.Type) []string {
	paths := slices.Concat(t.CreateOnly, t.ConditionalCreateOnly, slices.Collect(maps.Keys(t.Replacements)))
	paths = slices.DeleteFunc(paths, func(path string) bool {
		return !strings.Contains(path, "/") || t.IsReadOnly(strings.Split(path, "/"))
	})
	slices.Sort(paths)
	return slices.Compact(paths)
}

// edited copies a value with the member at a path edited, at the first place where that is possible. member gets
// what is there and gives what shall be, nil for nothing.
func edited(value any, path []string, member func(value any, there bool) (any, bool)) (any, bool) {
	switch value := value.(type) {
	case []any:
		for i, item := range value {
			var next any
			var ok bool
			switch {
			case path[0] != "*":
				continue
			case len(path) == 1:
				next, ok = member(item, true)
			default:
				next, ok = edited(item, path[1:], member)
			}
			if !ok {
				continue
			}
			if next == nil {
				return slices.Delete(slices.Clone(value), i, i+1), true
			}
			list := slices.Clone(value)
			list[i] = next
			return list, true
		}
	case map[string]any:
		keys := []string{path[0]}
		if path[0] == "*" {
			keys = slices.Sorted(maps.Keys(value))
		}
		for _, key := range keys {
			was, there := value[key]
			var next any
			var ok bool
			switch {
			case len(path) == 1:
				next, ok = member(was, there)
			case there:
				next, ok = edited(was, path[1:], member)
			}
			if !ok {
				continue
			}
			out := maps.Clone(value)
			if out[key] = next; next == nil {
				delete(out, key)
			}
			return out, true
		}
	}
	return nil, false
}

// restated writes the same scalar in another notation, as templates do: 5 as "5", true as "true".
func restated(p *schema.Property, value any) (any, bool) {
	switch value := value.(type) {
	case json.Number:
		return value.String(), p.Kind == schema.KindInteger || p.Kind == schema.KindNumber
	case bool:
		return strconv.FormatBool(value), p.Kind == schema.KindBoolean
	}
	return nil, false
}

func reordered(value any) (any, bool) {
	list, ok := value.([]any)
	if !ok || len(list) < 2 || reflect.DeepEqual(list[0], list[len(list)-1]) {
		return nil, false
	}
	out := slices.Clone(list)
	slices.Reverse(out)
	return out, !reflect.DeepEqual(out, list)
}
