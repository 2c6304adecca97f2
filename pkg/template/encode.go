package template

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Encode writes the template as JSON that Parse reads as the same template: Parameters, Conditions, Resources and
// Outputs keep the order of their names, every other object has its keys sorted, and numbers stay as they were
// written. It is for templates that are the result of an expansion and are kept for later.
func (t *Template) Encode() ([]byte, error) {
	order := map[string][]string{"Parameters": t.ParameterOrder, "Resources": t.Order, "Outputs": t.OutputOrder}
	var out bytes.Buffer
	out.WriteByte('{')
	for i, name := range sortedKeys(t.Document) {
		if i > 0 {
			out.WriteByte(',')
		}
		if err := encodeMember(&out, name, nil); err != nil {
			return nil, err
		}
		section, isObject := t.Document[name].(map[string]any)
		if !isObject || len(order[name]) == 0 {
			if err := encodeValue(&out, t.Document[name]); err != nil {
				return nil, fmt.Errorf("encoding %s: %w", name, err)
			}
			continue
		}
		if err := encodeOrdered(&out, section, order[name]); err != nil {
			return nil, fmt.Errorf("encoding %s: %w", name, err)
		}
	}
	out.WriteByte('}')
	return out.Bytes(), nil
}

// encodeOrdered writes the members that the order names, then the others.
func encodeOrdered(out *bytes.Buffer, m map[string]any, order []string) error {
	seen := make(map[string]bool, len(m))
	out.WriteByte('{')
	for _, key := range append(append([]string{}, order...), sortedKeys(m)...) {
		v, there := m[key]
		if !there || seen[key] {
			continue
		}
		if len(seen) > 0 {
			out.WriteByte(',')
		}
		seen[key] = true
		if err := encodeMember(out, key, &v); err != nil {
			return err
		}
	}
	out.WriteByte('}')
	return nil
}

// encodeMember writes a key, and its value if there is one.
func encodeMember(out *bytes.Buffer, key string, v *any) error {
	if err := encodeValue(out, key); err != nil {
		return err
	}
	out.WriteByte(':')
	if v == nil {
		return nil
	}
	return encodeValue(out, *v)
}

func encodeValue(out *bytes.Buffer, v any) error {
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return err
	}
	out.Truncate(out.Len() - 1) // the newline
	return nil
}
