package sandbox

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"sort"
	"strings"

	jsonpatch "github.com/evanphx/json-patch/v5"

	"github.com/slipway-cdk/slipway/pkg/schema"
)

// decodeObject reads a JSON object, numbers as json.Number.
func decodeObject(text string) (map[string]any, error) {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, fmt.Errorf("trailing text after the JSON value")
	}
	m, ok := v.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("not a JSON object")
	}
	return m, nil
}

// encode writes JSON without HTML escaping and with sorted keys, so that equal values are equal texts.
func encode(v any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		// Only JSON values come here: a failure is a bug of this package, not a condition of a caller.
		panic(fmt.Sprintf("encoding a JSON value: %v", err))
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// clone copies a JSON value deeply.
func clone(v any) any {
	switch v := v.(type) {
	case map[string]any:
		m := make(map[string]any, len(v))
		for k, e := range v {
			m[k] = clone(e)
		}
		return m
	case []any:
		l := make([]any, len(v))
		for i, e := range v {
			l[i] = clone(e)
		}
		return l
	}
	return v
}

// get returns the value at a path without "*".
func get(model map[string]any, path string) (any, bool) {
	var v any = model
	for _, key := range strings.Split(path, "/") {
		m, ok := v.(map[string]any)
		if !ok {
			return nil, false
		}
		if v, ok = m[key]; !ok {
			return nil, false
		}
	}
	return v, true
}

// getString is get for strings and numbers, "" when there is neither.
func getString(model map[string]any, path string) string {
	v, _ := get(model, path)
	switch v := v.(type) {
	case string:
		return v
	case json.Number:
		return v.String()
	case bool:
		return fmt.Sprint(v)
	}
	return ""
}

// set writes the value at a path without "*". Objects on the way are made; where something else is in the way
// (a string that the caller gave in place of an object) nothing is written and set reports false.
func set(model map[string]any, path string, value any) bool {
	keys := strings.Split(path, "/")
	for _, key := range keys[:len(keys)-1] {
		next, ok := model[key]
		if !ok {
			next = map[string]any{}
			model[key] = next
		}
		m, ok := next.(map[string]any)
		if !ok {
			return false
		}
		model = m
	}
	model[keys[len(keys)-1]] = value
	return true
}

// visit calls f for every value at a path that may contain "*" (list items, map values).
func visit(v any, path []string, f func(value any)) {
	if len(path) == 0 {
		f(v)
		return
	}
	switch v := v.(type) {
	case map[string]any:
		if path[0] == "*" {
			for _, k := range sortedKeys(v) {
				visit(v[k], path[1:], f)
			}
			return
		}
		if e, ok := v[path[0]]; ok {
			visit(e, path[1:], f)
		}
	case []any:
		// Registry schemas omit the "*" of a list in some paths.
		rest := path
		if path[0] == "*" {
			rest = path[1:]
		}
		for _, e := range v {
			visit(e, rest, f)
		}
	}
}

// remove deletes every value at a path that may contain "*". An object left empty by it goes too: a handler that
// may not return a member does not return the shell around it.
func remove(v any, path []string) {
	switch v := v.(type) {
	case map[string]any:
		if path[0] == "*" {
			for _, e := range v {
				if len(path) > 1 {
					remove(e, path[1:])
				}
			}
			return
		}
		e, ok := v[path[0]]
		if !ok {
			return
		}
		if len(path) == 1 {
			delete(v, path[0])
			return
		}
		remove(e, path[1:])
		if m, ok := e.(map[string]any); ok && len(m) == 0 {
			delete(v, path[0])
		}
	case []any:
		rest := path
		if path[0] == "*" {
			rest = path[1:]
		}
		if len(rest) == 0 {
			return
		}
		for _, e := range v {
			remove(e, rest)
		}
	}
}

// present reports whether anything is at a path that may contain "*".
func present(model map[string]any, path string) bool {
	found := false
	visit(model, strings.Split(path, "/"), func(any) { found = true })
	return found
}

// public is the model as a read handler returns it: without write-only properties.
func public(t *schema.Type, model map[string]any) map[string]any {
	m := clone(model).(map[string]any)
	for _, p := range t.WriteOnly {
		remove(m, strings.Split(p, "/"))
	}
	return m
}

// withoutReadOnly is the part of a model that a caller may give.
func withoutReadOnly(t *schema.Type, model map[string]any) map[string]any {
	m := clone(model).(map[string]any)
	for _, p := range t.ReadOnly {
		remove(m, strings.Split(p, "/"))
	}
	return m
}

// withoutNulls drops members that are null, at every depth: CloudFormation and Cloud Control treat them as absent.
func withoutNulls(v any) any {
	switch v := v.(type) {
	case map[string]any:
		m := make(map[string]any, len(v))
		for k, e := range v {
			if e != nil {
				m[k] = withoutNulls(e)
			}
		}
		return m
	case []any:
		l := make([]any, 0, len(v))
		for _, e := range v {
			if e != nil {
				l = append(l, withoutNulls(e))
			}
		}
		return l
	}
	return v
}

// changedPaths returns those of the paths whose values differ between two models, in the order of the paths.
func changedPaths(paths []string, before, after map[string]any) []string {
	var out []string
	for _, p := range paths {
		keys := strings.Split(p, "/")
		var a, b []any
		visit(before, keys, func(v any) { a = append(a, v) })
		visit(after, keys, func(v any) { b = append(b, v) })
		if !equal(a, b) {
			out = append(out, p)
		}
	}
	return out
}

// equal compares JSON values; numbers by their value where both fit a float exactly.
func equal(a, b any) bool {
	switch x := a.(type) {
	case json.Number:
		y, ok := b.(json.Number)
		if !ok {
			return false
		}
		if x == y {
			return true
		}
		fx, ex := x.Float64()
		fy, ey := y.Float64()
		return ex == nil && ey == nil && fx == fy
	case map[string]any:
		y, ok := b.(map[string]any)
		if !ok || len(x) != len(y) {
			return false
		}
		for k, v := range x {
			w, ok := y[k]
			if !ok || !equal(v, w) {
				return false
			}
		}
		return true
	case []any:
		y, ok := b.([]any)
		if !ok || len(x) != len(y) {
			return false
		}
		for i := range x {
			if !equal(x[i], y[i]) {
				return false
			}
		}
		return true
	}
	return reflect.DeepEqual(a, b)
}

// applyPatch applies an RFC 6902 document to a model.
func applyPatch(model map[string]any, document string) (map[string]any, error) {
	patch, err := jsonpatch.DecodePatch([]byte(document))
	if err != nil {
		return nil, err
	}
	out, err := patch.Apply([]byte(encode(model)))
	if err != nil {
		return nil, err
	}
	return decodeObject(string(out))
}

// pointers writes paths as Cloud Control's messages do: "/properties/A/B".
func pointers(paths []string) string {
	out := make([]string, len(paths))
	for i, p := range paths {
		out[i] = "/properties/" + p
	}
	return strings.Join(out, ", ")
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}
