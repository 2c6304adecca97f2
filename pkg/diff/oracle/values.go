package main

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/slipway-cdk/slipway/pkg/schema"
)

// deepest is how far down synthesized values go: definitions may hold themselves.
const deepest = 7

// examples are tried in turn where a pattern says what text looks like.
var examples = []string{
	"value", "value-1", "Value1", "1", "arn:aws:iam::123456789012:role/example", "2024-01-01T00:00:00Z", "10.0.0.0/16", "10.0.0.1",
	"us-east-1", "123456789012", "subnet-0123456789abcdef0", "sg-0123456789abcdef0", "a@example.com", "https://example.com/a", "s3://bucket/key",
	"example.com", "0123456789abcdef0123456789abcdef", "01234567-89ab-cdef-0123-456789abcdef", "/example", "P1D", "1.0.0", "rate(1 day)", "d-0123456789",
}

// synthesize makes a value of a property: with all members of every object, or with the required ones only.
func synthesize(t *schema.Type, p *schema.Property, depth int, whole bool) any {
	switch p.Kind {
	case schema.KindUnion:
		return synthesize(t, p.Alternatives[0], depth, whole)
	case schema.KindList:
		list := []any{}
		for range max(1, least(p.MinItems)) {
			list = append(list, synthesize(t, p.Elem, depth+1, whole))
		}
		return list
	case schema.KindMap:
		return map[string]any{"Key": synthesize(t, p.Elem, depth+1, whole)}
	case schema.KindObject:
		object := map[string]any{}
		def := t.Definitions[p.Ref]
		if def == nil || depth > deepest {
			return object
		}
		for _, name := range slices.Sorted(maps.Keys(def.Properties)) {
			if whole || slices.Contains(def.Required, name) || len(def.Required) == 0 && len(object) == 0 {
				object[name] = synthesize(t, def.Properties[name], depth+1, whole)
			}
		}
		return object
	case schema.KindJSON:
		return map[string]any{"Key": "value"}
	case schema.KindBoolean:
		return true
	case schema.KindInteger, schema.KindNumber:
		n := 1
		if p.Minimum != nil {
			n = max(n, int(*p.Minimum))
		}
		if p.Maximum != nil && float64(n) > *p.Maximum {
			n = int(*p.Maximum)
		}
		return json.Number(strconv.Itoa(n))
	}
	return plainText(p)
}

func plainText(p *schema.Property) string {
	if len(p.Enum) > 0 {
		return p.Enum[0]
	}
	for _, example := range examples {
		if fits(p, example) {
			return example
		}
	}
	return "value"
}

func fits(p *schema.Property, text string) bool {
	if p == nil {
		return true
	}
	if p.MinLength != nil && len(text) < *p.MinLength || p.MaxLength != nil && len(text) > *p.MaxLength {
		return false
	}
	if p.Pattern == "" {
		return true
	}
	pattern, err := regexp.Compile(p.Pattern)
	return err != nil || pattern.MatchString(text)
}

func least(n *int) int {
	if n == nil {
		return 0
	}
	return min(*n, 3)
}

// different makes another value of the same shape, valid as far as the schema says. ok is false where there is
// none: an enumeration of one.
func different(t *schema.Type, p *schema.Property, value any) (other any, ok bool) {
	switch value := value.(type) {
	case map[string]any:
		return differentObject(t, p, value)
	case []any:
		var elem *schema.Property
		if list := p.Of(schema.KindList); list != nil {
			elem = list.Elem
		}
		for i, item := range value {
			if changed, ok := different(t, elem, item); ok {
				list := slices.Clone(value)
				list[i] = changed
				return list, true
			}
		}
		if elem == nil {
			return append(slices.Clone(value), "value"), true
		}
		return append(slices.Clone(value), synthesize(t, elem, 1, false)), true
	case bool:
		return !value, true
	case json.Number:
		return differentNumber(p, value.String())
	case string:
		return differentText(p, value)
	}
	return nil, false
}

func differentObject(t *schema.Type, p *schema.Property, value map[string]any) (any, bool) {
	object := p.Of(schema.KindObject)
	for _, name := range slices.Sorted(maps.Keys(value)) {
		var member *schema.Property
		if object != nil && t.Definitions[object.Ref] != nil {
			member = t.Definitions[object.Ref].Properties[name]
		} else if m := p.Of(schema.KindMap); m != nil {
			member = m.Elem
		}
		if changed, ok := different(t, member, value[name]); ok {
			out := maps.Clone(value)
			out[name] = changed
			return out, true
		}
	}
	if object == nil {
		out := maps.Clone(value)
		out["Added"] = "value"
		return out, true
	}
	if def := t.Definitions[object.Ref]; def != nil {
		for _, name := range slices.Sorted(maps.Keys(def.Properties)) {
			if _, there := value[name]; !there {
				out := maps.Clone(value)
				out[name] = synthesize(t, def.Properties[name], 2, false)
				return out, true
			}
		}
	}
	return nil, false
}

func differentNumber(p *schema.Property, literal string) (any, bool) {
	n, err := strconv.ParseFloat(literal, 64)
	if err != nil {
		return nil, false
	}
	limit := p.Of(schema.KindInteger)
	if limit == nil {
		limit = p.Of(schema.KindNumber)
	}
	next := n + 1
	if limit != nil && limit.Maximum != nil && next > *limit.Maximum {
		next = n - 1
	}
	if limit != nil && len(limit.Enum) > 0 {
		for _, allowed := range limit.Enum {
			if f, err := strconv.ParseFloat(allowed, 64); err == nil && f != n {
				return json.Number(allowed), true
			}
		}
		return nil, false
	}
	return json.Number(strconv.FormatFloat(next, 'f', -1, 64)), true
}

func differentText(p *schema.Property, value string) (any, bool) {
	if p.Of(schema.KindBoolean) != nil && p.Of(schema.KindString) == nil {
		return strconv.FormatBool(!strings.EqualFold(value, "true")), true
	}
	if (p.Of(schema.KindInteger) != nil || p.Of(schema.KindNumber) != nil) && p.Of(schema.KindString) == nil {
		number, ok := differentNumber(p, value)
		if !ok {
			return nil, false
		}
		return number.(json.Number).String(), true
	}
	text := p.Of(schema.KindString)
	if text != nil && len(text.Enum) > 0 {
		for _, allowed := range text.Enum {
			if allowed != value {
				return allowed, true
			}
		}
		return nil, false
	}
	candidates := []string{value + "2", value + "x"}
	if value != "" {
		last := value[len(value)-1]
		for _, c := range "2xab" {
			if byte(c) != last {
				candidates = append(candidates, value[:len(value)-1]+string(c))
			}
		}
	}
	for _, candidate := range append(candidates, examples...) {
		if candidate != value && fits(text, candidate) {
			return candidate, true
		}
	}
	return value + "2", true
}
