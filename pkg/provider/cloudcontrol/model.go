package cloudcontrol

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/slipway-cdk/slipway/pkg/schema"
)

// Coerce returns the properties in the JSON types that the resource's schema asks for. Templates write
// numbers and booleans as strings and the other way round, which CloudFormation accepts and Cloud Control
// does not; an object where the schema has a string becomes its JSON text. Nulls are dropped. What the
// schema does not know stays as it is.
func Coerce(typeName string, props map[string]any) map[string]any {
	t, ok := schema.Lookup(typeName)
	if !ok {
		t = &schema.Type{}
	}
	return coerceObject(t, t.Properties, props)
}

func coerceObject(t *schema.Type, known map[string]*schema.Property, in map[string]any) map[string]any {
	out := make(map[string]any, len(in))
	for k, v := range in {
		if v == nil {
			continue
		}
		out[k] = coerce(t, known[k], v)
	}
	return out
}

func coerce(t *schema.Type, p *schema.Property, v any) any {
	if p == nil {
		return v
	}
	switch p.Kind {
	case schema.KindString:
		return toString(v)
	case schema.KindInteger, schema.KindNumber:
		if s, ok := v.(string); ok {
			if _, err := strconv.ParseFloat(strings.TrimSpace(s), 64); err == nil {
				return json.Number(strings.TrimSpace(s))
			}
		}
	case schema.KindBoolean:
		if s, ok := v.(string); ok {
			switch strings.ToLower(s) {
			case "true":
				return true
			case "false":
				return false
			}
		}
	case schema.KindList:
		if list, ok := v.([]any); ok {
			out := make([]any, 0, len(list))
			for _, item := range list {
				if item != nil {
					out = append(out, coerce(t, p.Elem, item))
				}
			}
			return out
		}
	case schema.KindMap:
		if m, ok := v.(map[string]any); ok {
			out := make(map[string]any, len(m))
			for k, item := range m {
				if item != nil {
					out[k] = coerce(t, p.Elem, item)
				}
			}
			return out
		}
	case schema.KindObject:
		if m, ok := v.(map[string]any); ok {
			if d := t.Definitions[p.Ref]; d != nil {
				return coerceObject(t, d.Properties, m)
			}
		}
	case schema.KindUnion:
		return coerceUnion(t, p, v)
	}
	return v
}

// coerceUnion picks the alternative whose JSON type the value already has; a scalar that fits none is left.
func coerceUnion(t *schema.Type, p *schema.Property, v any) any {
	for _, alt := range p.Alternatives {
		if fits(alt, v) {
			return coerce(t, alt, v)
		}
	}
	if len(p.Alternatives) == 1 {
		return coerce(t, p.Alternatives[0], v)
	}
	return v
}

func fits(p *schema.Property, v any) bool {
	switch v.(type) {
	case string:
		return p.Kind == schema.KindString || p.Kind == schema.KindJSON
	case json.Number, float64, int:
		return p.Kind == schema.KindInteger || p.Kind == schema.KindNumber || p.Kind == schema.KindJSON
	case bool:
		return p.Kind == schema.KindBoolean || p.Kind == schema.KindJSON
	case []any:
		return p.Kind == schema.KindList || p.Kind == schema.KindJSON
	case map[string]any:
		return p.Kind == schema.KindObject || p.Kind == schema.KindMap || p.Kind == schema.KindJSON
	}
	return false
}

func toString(v any) any {
	switch x := v.(type) {
	case json.Number:
		return x.String()
	case bool:
		return strconv.FormatBool(x)
	case map[string]any:
		if s, err := encode(x); err == nil {
			return s
		}
	}
	return v
}

// PatchOperation is one operation of an RFC 6902 JSON Patch.
type PatchOperation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// Patch compares two property sets and returns the patch that leads from one to the other, by whole top-level
// property. A property is set with "add", which also replaces one that stands. A property with a write-only
// part is not in the live model and is always sent again; create-only and read-only ones are never sent
// (reference §10.4).
func Patch(t *schema.Type, previous, desired map[string]any) []PatchOperation {
	var never, always map[string]bool
	if t != nil {
		never, always = exact(t.CreateOnly, t.ReadOnly), roots(t.WriteOnly)
	}
	var ops []PatchOperation
	for _, k := range sortedKeys(desired) {
		if never[k] || (!always[k] && reflect.DeepEqual(previous[k], desired[k])) {
			continue
		}
		ops = append(ops, PatchOperation{Op: "add", Path: "/" + escape(k), Value: desired[k]})
	}
	changed := len(ops) > 0 && !onlyResent(ops, previous, desired)
	for _, k := range sortedKeys(previous) {
		if _, kept := desired[k]; kept || never[k] || always[k] {
			continue
		}
		ops = append(ops, PatchOperation{Op: "remove", Path: "/" + escape(k)})
		changed = true
	}
	if !changed {
		return nil
	}
	return ops
}

// onlyResent reports whether every operation sends a value that has not changed.
func onlyResent(ops []PatchOperation, previous, desired map[string]any) bool {
	for _, op := range ops {
		k := unescape(strings.TrimPrefix(op.Path, "/"))
		if !reflect.DeepEqual(previous[k], desired[k]) {
			return false
		}
	}
	return true
}

func exact(lists ...[]string) map[string]bool {
	out := map[string]bool{}
	for _, list := range lists {
		for _, path := range list {
			if !strings.Contains(path, "/") {
				out[path] = true
			}
		}
	}
	return out
}

func roots(paths []string) map[string]bool {
	out := map[string]bool{}
	for _, path := range paths {
		root, _, _ := strings.Cut(path, "/")
		out[root] = true
	}
	return out
}

// escape writes a member name as a JSON Pointer token (RFC 6901 §3).
func escape(s string) string {
	return strings.ReplaceAll(strings.ReplaceAll(s, "~", "~0"), "/", "~1")
}

func unescape(s string) string {
	return strings.ReplaceAll(strings.ReplaceAll(s, "~1", "/"), "~0", "~")
}

func sortedKeys(m map[string]any) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

func encode(v any) (string, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return "", err
	}
	return strings.TrimSuffix(b.String(), "\n"), nil
}

func decode(s string) (map[string]any, error) {
	dec := json.NewDecoder(strings.NewReader(s))
	dec.UseNumber()
	var out map[string]any
	if err := dec.Decode(&out); err != nil {
		return nil, err
	}
	return out, nil
}
