package intrinsic

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"strconv"
	"strings"
)

// arguments resolves a function's list of arguments, whose number is bounded.
func (e *evaluation) arguments(arg any, path string, atLeast, atMost int, shape string) ([]any, bool) {
	list, ok := arg.([]any)
	if !ok || len(list) < atLeast || len(list) > atMost {
		e.fail(path, "wrong arguments", "it takes "+shape)
		return nil, false
	}
	return list, true
}

// join evaluates Fn::Join; items that are AWS::NoValue are dropped
// (https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/intrinsic-function-reference-join.html).
func (e *evaluation) join(arg any, path string) any {
	list, ok := e.arguments(arg, path, 2, 2, "a delimiter and a list of strings")
	if !ok {
		return failed{}
	}
	delimiter, values := e.value(list[0], item(path, 0)), e.value(list[1], item(path, 1))
	if b, stop := blocked(delimiter, values); stop {
		return b
	}
	sep, ok := text(delimiter)
	if !ok {
		return e.fail(item(path, 0), "the delimiter is not a string", "found "+kindOf(delimiter))
	}
	items, ok := values.([]any)
	if !ok {
		return e.fail(item(path, 1), "Fn::Join joins a list", "found "+kindOf(values))
	}
	texts := make([]string, len(items))
	for i, v := range items {
		if texts[i], ok = text(v); !ok {
			return e.fail(item(item(path, 1), i), "an item to join is not a string", "found "+kindOf(v))
		}
	}
	return strings.Join(texts, sep)
}

// split evaluates Fn::Split
// (https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/intrinsic-function-reference-split.html).
func (e *evaluation) split(arg any, path string) any {
	list, ok := e.arguments(arg, path, 2, 2, "a delimiter and a string")
	if !ok {
		return failed{}
	}
	delimiter, source := e.value(list[0], item(path, 0)), e.value(list[1], item(path, 1))
	if b, stop := blocked(delimiter, source); stop {
		return b
	}
	sep, ok := delimiter.(string)
	if !ok || sep == "" {
		return e.fail(item(path, 0), "the delimiter is not a string of at least one character", "found "+kindOf(delimiter))
	}
	s, ok := text(source)
	if !ok {
		return e.fail(item(path, 1), "Fn::Split splits a string", "found "+kindOf(source))
	}
	parts := strings.Split(s, sep)
	out := make([]any, len(parts))
	for i, p := range parts {
		out[i] = p
	}
	return out
}

// selectItem evaluates Fn::Select. Items that are not chosen may be unknown
// (https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/intrinsic-function-reference-select.html).
func (e *evaluation) selectItem(arg any, path string) any {
	list, ok := e.arguments(arg, path, 2, 2, "an index and a list")
	if !ok {
		return failed{}
	}
	index, values := e.value(list[0], item(path, 0)), e.value(list[1], item(path, 1))
	if b, stop := blocked(index); stop {
		if _, bad := b.(failed); bad {
			return b
		}
		both, _ := blocked(index, values)
		return both
	}
	s, ok := text(index)
	n, err := strconv.Atoi(s)
	if !ok || err != nil {
		return e.fail(item(path, 0), "the index is not a whole number", "found "+kindOf(index))
	}
	items, ok := values.([]any)
	if !ok {
		switch values.(type) {
		case Unknown, failed:
			return values
		}
		return e.fail(item(path, 1), "Fn::Select selects from a list", "found "+kindOf(values))
	}
	if n < 0 || n >= len(items) {
		return e.failf(path, "the index is out of range", "index %d, and the list has %d items", n, len(items))
	}
	if items[n] == nil {
		return e.failf(path, "the selected item is null", "index %d", n)
	}
	return items[n]
}

// base64 evaluates Fn::Base64: of the UTF-8 bytes of the string
// (https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/intrinsic-function-reference-base64.html).
func (e *evaluation) base64(arg any, path string) any {
	v := e.value(arg, path)
	if b, stop := blocked(v); stop {
		return b
	}
	s, ok := text(v)
	if !ok {
		return e.fail(path, "Fn::Base64 encodes a string", "found "+kindOf(v))
	}
	return base64.StdEncoding.EncodeToString([]byte(s))
}

// length evaluates Fn::Length: of a list, whose items may be unknown
// (https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/intrinsic-function-reference-length.html).
func (e *evaluation) length(arg any, path string) any {
	switch v := e.value(arg, path).(type) {
	case []any:
		return json.Number(strconv.Itoa(len(v)))
	case Unknown, failed:
		return v
	default:
		return e.fail(path, "Fn::Length counts a list", "found "+kindOf(v))
	}
}

// toJSONString evaluates Fn::ToJsonString: compact, keys sorted (objects have no order here)
// (https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/intrinsic-function-reference-ToJsonString.html).
func (e *evaluation) toJSONString(arg any, path string) any {
	v := e.value(arg, path)
	if b, stop := blocked(v); stop {
		return b
	}
	switch v.(type) {
	case map[string]any, []any:
	default:
		return e.fail(path, "Fn::ToJsonString takes an object or a list", "found "+kindOf(v))
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return e.fail(path, "the value has no JSON form", "")
	}
	return strings.TrimSuffix(out.String(), "\n")
}
