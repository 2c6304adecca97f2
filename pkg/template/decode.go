package template

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/slipway-cdk/slipway/pkg/diag"
)

// MaxDepth is how deeply a template's JSON may nest. CloudFormation has no such limit of its own below its
// size limits; real templates stay under 40. The bound keeps every recursive walk within the stack.
const MaxDepth = 200

// document is decoded JSON together with the order of the members of every top-level section, which Go's
// maps lose and which ties in the graph are broken by.
type document struct {
	root  map[string]any
	order map[string][]string
}

// decoder reads JSON into values with json.Number, refusing what encoding/json lets pass: duplicate keys,
// text that is not UTF-8, unbounded nesting and anything after the value.
type decoder struct {
	data  []byte
	json  *json.Decoder
	order map[string][]string
}

// decode reads one JSON object.
func decode(data []byte) (*document, error) {
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	if !utf8.Valid(data) {
		return nil, diag.Errorf("the template is not UTF-8", "JSON text is UTF-8 (RFC 8259 §8.1)")
	}
	if at := loneSurrogate(data); at >= 0 {
		line, column := position(data, at)
		return nil, diag.Errorf("the template is not Unicode", fmt.Sprintf("line %d, column %d: half of a surrogate pair stands alone (RFC 8259 §8.2)", line, column))
	}
	d := &decoder{data: data, json: json.NewDecoder(bytes.NewReader(data)), order: map[string][]string{}}
	d.json.UseNumber()
	v, err := d.value(nil)
	if err != nil {
		return nil, d.explain(err)
	}
	if _, err := d.json.Token(); !errors.Is(err, io.EOF) {
		return nil, d.explain(errors.New("there is text after the end of the template"))
	}
	root, ok := v.(map[string]any)
	if !ok {
		return nil, diag.Errorf("the template is not a JSON object", "found "+kindOf(v))
	}
	return &document{root: root, order: d.order}, nil
}

func (d *decoder) value(path []string) (any, error) {
	tok, err := d.json.Token()
	if err != nil {
		if errors.Is(err, io.EOF) {
			return nil, io.ErrUnexpectedEOF
		}
		return nil, err
	}
	delim, ok := tok.(json.Delim)
	if !ok {
		return tok, nil
	}
	if len(path) >= MaxDepth {
		return nil, diag.Diagnostics{{Severity: diag.Error, Summary: fmt.Sprintf("the template nests deeper than %d levels", MaxDepth), Path: joinPath(path[:4]) + ".…"}}
	}
	if delim == '[' {
		list := []any{}
		for d.json.More() {
			v, err := d.value(append(path, strconv.Itoa(len(list))))
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		_, err := d.json.Token()
		return list, err
	}
	return d.object(path)
}

func (d *decoder) object(path []string) (any, error) {
	m := map[string]any{}
	for d.json.More() {
		tok, err := d.json.Token()
		if err != nil {
			return nil, err
		}
		key, ok := tok.(string)
		if !ok {
			return nil, errors.New("an object's key is not a string")
		}
		here := append(path, key)
		if _, dup := m[key]; dup {
			return nil, diag.Diagnostics{{Severity: diag.Error, Summary: "the key stands twice in the same object", Path: joinPath(here),
				Next: "Remove one of the two: JSON does not say which would count."}}
		}
		v, err := d.value(here)
		if err != nil {
			return nil, err
		}
		m[key] = v
		if len(path) == 1 {
			d.order[path[0]] = append(d.order[path[0]], key)
		}
	}
	_, err := d.json.Token()
	return m, err
}

// explain adds line and column to a syntax error.
func (d *decoder) explain(err error) error {
	var ds diag.Diagnostics
	if errors.As(err, &ds) {
		return ds
	}
	offset := d.json.InputOffset()
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		offset = syntax.Offset
	}
	line, column := position(d.data, min(int(offset), len(d.data)))
	return diag.Errorf("the template is not valid JSON", fmt.Sprintf("line %d, column %d: %s", line, column, err))
}

// position is the line and column, from 1, of the character before an offset.
func position(data []byte, offset int) (line, column int) {
	before := data[:offset]
	return bytes.Count(before, []byte("\n")) + 1, utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:])
}

// loneSurrogate finds a \u escape that is half of a surrogate pair, which encoding/json would silently replace by
// another character, or -1.
func loneSurrogate(data []byte) int {
	for i := 0; i+1 < len(data); {
		next := bytes.IndexByte(data[i:], '\\')
		if next < 0 || i+next+1 >= len(data) {
			break
		}
		at := i + next
		i = at + 2
		unit, ok := escapedUnit(data[at:])
		if !ok {
			continue
		}
		i = at + 6
		if unit < 0xd800 || unit > 0xdfff {
			continue
		}
		if low, ok := escapedUnit(data[i:]); unit > 0xdbff || !ok || low < 0xdc00 || low > 0xdfff {
			return i
		}
		i += 6
	}
	return -1
}

// escapedUnit reads the UTF-16 unit of a \u escape at the beginning of data.
func escapedUnit(data []byte) (uint64, bool) {
	if len(data) < 6 || data[0] != '\\' || data[1] != 'u' {
		return 0, false
	}
	unit, err := strconv.ParseUint(string(data[2:6]), 16, 16)
	return unit, err == nil
}

func joinPath(path []string) string { return strings.Join(path, ".") }

// child appends one step to a dotted path.
func child(path, step string) string {
	if path == "" {
		return step
	}
	return path + "." + step
}

func item(path string, i int) string { return child(path, strconv.Itoa(i)) }

// kindOf names the JSON kind of a value for messages, which never quote the value itself.
func kindOf(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case map[string]any:
		return "an object"
	case []any:
		return "a list"
	case string:
		return "a string"
	case bool:
		return "a boolean"
	case json.Number, float64, int, int64:
		return "a number"
	}
	return fmt.Sprintf("a %T", v)
}
