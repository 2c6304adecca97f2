package direct

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-viper/mapstructure/v2"

	"github.com/slipway-cdk/slipway/pkg/schema"
)

// Renames are the fields that a service calls otherwise than CloudFormation, case aside: by CloudFormation's path
// ("Code/ImageUri", "Rules/*/Id"), the service's name of the last element.
type Renames map[string]string

// Into writes properties into an SDK input, by name without regard to case. Only the properties named are taken: all when
// none is. Text becomes a number or a truth value where the field is one, and the other way round. A part of a
// property that the input has no field for is an error: nothing is dropped.
func Into(properties map[string]any, input any, renames Renames, names ...string) error {
	chosen := map[string]any{}
	for name, value := range properties {
		if value != nil && (len(names) == 0 || slices.Contains(names, name)) {
			chosen[name] = value
		}
	}
	decoder, err := mapstructure.NewDecoder(&mapstructure.DecoderConfig{
		Result: input, WeaklyTypedInput: true, ErrorUnused: true, DecodeHook: decodeHook, DecodeNil: false,
	})
	if err != nil {
		return fmt.Errorf("decoding into %T: %w", input, err)
	}
	if err := decoder.Decode(renamed(chosen, nil, renames)); err != nil {
		return Invalid("the properties can't be sent: " + describe(err))
	}
	return nil
}

// decodeHook is for the types that text has to be parsed into.
func decodeHook(from, to reflect.Type, v any) (any, error) {
	if from.Kind() == reflect.String && to == reflect.TypeFor[time.Time]() {
		text := Text(v)
		if seconds, err := strconv.ParseFloat(text, 64); err == nil {
			return time.UnixMilli(int64(seconds * 1000)).UTC(), nil
		}
		return time.Parse(time.RFC3339, text)
	}
	if to.Kind() == reflect.String && (from.Kind() == reflect.Map || from.Kind() == reflect.Slice) {
		return Document(v)
	}
	if from.Kind() == reflect.Bool && to.Kind() == reflect.String {
		return Text(v), nil
	}
	return v, nil
}

// describe tells where decoding failed, without the value.
func describe(err error) string {
	var all []string
	var walk func(error)
	walk = func(err error) {
		if list, ok := err.(interface{ Unwrap() []error }); ok {
			for _, e := range list.Unwrap() {
				walk(e)
			}
			return
		}
		var at *mapstructure.DecodeError
		if errors.As(err, &at) {
			if text := at.Unwrap().Error(); strings.HasPrefix(text, "has invalid keys") {
				all = append(all, strings.TrimSpace(at.Name()+" "+text))
				return
			}
			all = append(all, at.Name()+" has the wrong type")
			return
		}
		if next := errors.Unwrap(err); next != nil {
			walk(next)
		}
	}
	walk(err)
	if len(all) == 0 {
		return "they do not fit"
	}
	slices.Sort(all)
	return strings.Join(all, "; ")
}

func renamed(v any, path []string, renames Renames) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, e := range v {
			if e == nil {
				continue
			}
			at := append(path[:len(path):len(path)], k)
			name := k
			if n, ok := renames[strings.Join(at, "/")]; ok {
				name = n
			}
			out[name] = renamed(e, at, renames)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = renamed(e, append(path[:len(path):len(path)], "*"), renames)
		}
		return out
	}
	return v
}

// From is the part of an SDK output, or of any value that JSON can hold, that the type has properties for, in CloudFormation's
// names and shapes. What is empty is left out.
func From(typeName string, output any, renames Renames) map[string]any {
	t, ok := schema.Lookup(typeName)
	if !ok {
		return map[string]any{}
	}
	raw, err := json.Marshal(output)
	if err != nil {
		return map[string]any{}
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var v map[string]any
	if decoder.Decode(&v) != nil {
		return map[string]any{}
	}
	s := shaper{t: t, renames: renames}
	return s.object(&t.Definition, v, nil)
}

// shaper writes values as a type's schema has them.
type shaper struct {
	t       *schema.Type
	renames Renames
}

func (s shaper) object(def *schema.Definition, v map[string]any, path []string) map[string]any {
	out := map[string]any{}
	for name, property := range def.Properties {
		at := append(path[:len(path):len(path)], name)
		theirs := name
		if n, ok := s.renames[strings.Join(at, "/")]; ok {
			theirs = n
		}
		for k, e := range v {
			if strings.EqualFold(k, theirs) {
				if shaped := s.value(property, e, at); !empty(shaped) {
					out[name] = shaped
				}
			}
		}
	}
	return out
}

func (s shaper) value(p *schema.Property, v any, path []string) any {
	switch p.Kind {
	case schema.KindObject:
		if def := s.t.Definitions[p.Ref]; def != nil {
			if m, ok := v.(map[string]any); ok {
				return s.object(def, m, path)
			}
		}
	case schema.KindList:
		if list, ok := v.([]any); ok && p.Elem != nil {
			out := make([]any, len(list))
			for i, e := range list {
				out[i] = s.value(p.Elem, e, append(path[:len(path):len(path)], "*"))
			}
			return out
		}
	case schema.KindMap:
		if m, ok := v.(map[string]any); ok && p.Elem != nil {
			out := make(map[string]any, len(m))
			for k, e := range m {
				out[k] = s.value(p.Elem, e, append(path[:len(path):len(path)], k))
			}
			return out
		}
	case schema.KindUnion:
		if m, ok := v.(map[string]any); ok {
			for _, a := range p.Alternatives {
				if a.Kind == schema.KindObject {
					return s.value(a, m, path)
				}
			}
		}
		return Parsed(v)
	case schema.KindJSON:
		return Parsed(v)
	case schema.KindInteger, schema.KindNumber:
		if text, ok := v.(string); ok && text != "" {
			if _, err := strconv.ParseFloat(text, 64); err == nil {
				return json.Number(text)
			}
		}
	case schema.KindBoolean:
		if text, ok := v.(string); ok && text != "" {
			if b, err := strconv.ParseBool(text); err == nil {
				return b
			}
		}
	}
	return v
}

func empty(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case string:
		return v == ""
	case map[string]any:
		return len(v) == 0
	case []any:
		return len(v) == 0
	}
	return false
}
