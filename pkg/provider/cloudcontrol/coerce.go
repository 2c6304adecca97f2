package cloudcontrol

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/slipway-cdk/slipway/pkg/schema"
)

// Coerce returns the properties in the JSON types that the resource's schema asks for. Templates write
// numbers and booleans as strings and the other way round, which CloudFormation accepts and Cloud Control
// does not; an object where the schema has a string becomes its JSON text. Nulls are dropped. What the
// schema does not know, or what can't become what it asks for, stays as it is: the service then says so.
// The result shares no map or list with props, except inside free JSON.
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
		return toText(v)
	case schema.KindInteger, schema.KindNumber:
		if s, ok := v.(string); ok {
			if n, ok := toNumber(s); ok {
				return n
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

// coerceUnion follows the alternative that the value fits as it is, or else the first one that it can be made
// to fit. Of several objects the one that knows all members wins.
func coerceUnion(t *schema.Type, p *schema.Property, v any) any {
	for _, alt := range p.Alternatives {
		if fits(t, alt, v) {
			return coerce(t, alt, v)
		}
	}
	for _, alt := range p.Alternatives {
		if c := coerce(t, alt, v); fits(t, alt, c) {
			return c
		}
	}
	for _, alt := range p.Alternatives {
		if alt.Kind == schema.KindObject || alt.Kind == schema.KindList || alt.Kind == schema.KindMap {
			if _, text := v.(string); !text {
				return coerce(t, alt, v)
			}
		}
	}
	return v
}

// fits reports whether a value has the JSON type of a property: for lists and objects also that of what is in it,
// one level deep.
func fits(t *schema.Type, p *schema.Property, v any) bool {
	if p == nil || p.Kind == schema.KindJSON {
		return true
	}
	if p.Kind == schema.KindUnion {
		return slices.ContainsFunc(p.Alternatives, func(alt *schema.Property) bool { return fits(t, alt, v) })
	}
	switch x := v.(type) {
	case string:
		return p.Kind == schema.KindString
	case json.Number:
		return p.Kind == schema.KindInteger || p.Kind == schema.KindNumber
	case bool:
		return p.Kind == schema.KindBoolean
	case []any:
		if p.Kind != schema.KindList {
			return false
		}
		for _, item := range x {
			if item != nil && !sameShape(p.Elem, item) {
				return false
			}
		}
		return true
	case map[string]any:
		if p.Kind == schema.KindMap {
			return true
		}
		d := t.Definitions[p.Ref]
		if p.Kind != schema.KindObject {
			return false
		}
		if d == nil || d.Open {
			return true
		}
		for k := range x {
			if d.Properties[k] == nil {
				return false
			}
		}
		return true
	}
	return false
}

// sameShape reports whether a value is an object, list or scalar as the property is.
func sameShape(p *schema.Property, v any) bool {
	if p == nil || p.Kind == schema.KindJSON || p.Kind == schema.KindUnion {
		return true
	}
	switch v.(type) {
	case map[string]any:
		return p.Kind == schema.KindObject || p.Kind == schema.KindMap
	case []any:
		return p.Kind == schema.KindList
	}
	return p.Kind == schema.KindString || p.Kind == schema.KindInteger || p.Kind == schema.KindNumber || p.Kind == schema.KindBoolean
}

func toText(v any) any {
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

// toNumber reads the ways in which templates write numbers as text: "5", " 5", "+5", "007", "1e3", ".5". What has
// no JSON number (infinities, hexadecimals) is none.
func toNumber(s string) (json.Number, bool) {
	s = strings.TrimSpace(s)
	if isNumber(s) {
		return json.Number(s), true
	}
	if strings.Trim(s, "+-.0123456789eE") != "" {
		return "", false
	}
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		return json.Number(strconv.FormatInt(n, 10)), true
	}
	if f, err := strconv.ParseFloat(s, 64); err == nil && !math.IsInf(f, 0) {
		return json.Number(strconv.FormatFloat(f, 'f', -1, 64)), true
	}
	return "", false
}

// isNumber reports whether a text is a JSON number (RFC 8259 §6).
func isNumber(s string) bool {
	if s == "" || s[0] != '-' && (s[0] < '0' || s[0] > '9') {
		return false
	}
	return json.Valid([]byte(s))
}
