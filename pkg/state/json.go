package state

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"
)

// compact encodes v on one line, without HTML escaping.
func compact(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// pretty encodes v as cdkd writes its files: two spaces of indent, no trailing newline (reference §1.2).
func pretty(v any) ([]byte, error) {
	line, err := compact(v)
	if err != nil {
		return nil, err
	}
	return indent(line)
}

func indent(line []byte) ([]byte, error) {
	var b bytes.Buffer
	b.Grow(2 * len(line))
	if err := json.Indent(&b, line, "", "  "); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// unmarshal decodes exactly one JSON value, numbers as json.Number.
func unmarshal(data []byte, into any) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	if err := dec.Decode(into); err != nil {
		if errors.Is(err, io.EOF) {
			return errors.New("the file is empty")
		}
		return err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("there is more text after the JSON value")
	}
	return nil
}

// withExtra encodes the struct v and appends the members of extra that v has no field for.
func withExtra(v any, extra map[string]json.RawMessage) ([]byte, error) {
	body, err := compact(v)
	if err != nil || len(extra) == 0 {
		return body, err
	}
	known := fieldNames(v)
	rest := make(map[string]json.RawMessage, len(extra))
	for name, value := range extra {
		if !known[name] {
			rest[name] = value
		}
	}
	if len(rest) == 0 {
		return body, nil
	}
	tail, err := compact(rest)
	if err != nil {
		return nil, err
	}
	if len(body) == len("{}") {
		return tail, nil
	}
	body[len(body)-1] = ','
	return append(body, tail[1:]...), nil
}

// intoWithExtra decodes data into the struct that v points to and returns the members v has no field for.
func intoWithExtra(data []byte, v any) (map[string]json.RawMessage, error) {
	all, err := asObject(data)
	if err != nil {
		return nil, err
	}
	if err := unmarshal(data, v); err != nil {
		return nil, err
	}
	return without(all, fieldNames(v)), nil
}

func without(all map[string]json.RawMessage, known map[string]bool) map[string]json.RawMessage {
	var extra map[string]json.RawMessage
	for name, value := range all {
		if known[name] {
			continue
		}
		if extra == nil {
			extra = map[string]json.RawMessage{}
		}
		// value has been parsed before, so it is valid.
		var line bytes.Buffer
		if json.Compact(&line, value) == nil {
			value = line.Bytes()
		}
		extra[name] = value
	}
	return extra
}

// fieldNames lists the JSON names of a struct's fields.
func fieldNames(v any) map[string]bool {
	t := reflect.TypeOf(v)
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	names := make(map[string]bool, t.NumField())
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		if name != "" && name != "-" {
			names[name] = true
		}
	}
	return names
}

// shape says in one word what a JSON value is: "a list", "null", "a string" …
func shape(data json.RawMessage) string {
	t := bytes.TrimLeft(data, " \t\r\n")
	if len(t) == 0 {
		return "nothing"
	}
	switch t[0] {
	case '{':
		return "an object"
	case '[':
		return "a list"
	case '"':
		return "a string"
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	}
	return "a number"
}

func is(data json.RawMessage, want string) bool { return shape(data) == want }

// shapeOf is shape for a decoded value.
func shapeOf(v any) string {
	switch v.(type) {
	case map[string]any:
		return "an object"
	case []any:
		return "a list"
	case string:
		return "a string"
	case bool:
		return "a boolean"
	case nil:
		return "null"
	}
	return "a number"
}

// integer reads a number, as an integer where it is one; anything else is 0.
func integer(raw json.RawMessage) int64 {
	if n, err := strconv.ParseInt(string(raw), 10, 64); err == nil {
		return n
	}
	f, err := strconv.ParseFloat(string(raw), 64)
	if err != nil || f < -1<<53 || f > 1<<53 {
		return 0
	}
	return int64(f)
}

// asObject decodes an object, or fails naming the shape that it found.
func asObject(data json.RawMessage) (map[string]json.RawMessage, error) {
	if !is(data, "an object") {
		return nil, fmt.Errorf("it is %s and not an object", shape(data))
	}
	var m map[string]json.RawMessage
	err := unmarshal(data, &m)
	return m, err
}
