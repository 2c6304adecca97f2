package asl

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/theory/jsonpath"
)

const sample = `{"a":{"b":[10,{"c":null,"é ":"x"}],"":1},"n":1.50,"list":[]}`

func TestAReferencePathFindsOneValueOrNone(t *testing.T) {
	data, err := decode([]byte(sample))
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		path, want string // want "" is missing
	}{
		{"$", sample},
		{"$.n", "1.50"},
		{"$.a.b[0]", "10"},
		{"$['a']['b'][1]", `{"c":null,"é ":"x"}`},
		{`$["a"].b[1]['é ']`, `"x"`},
		{"$.a['']", "1"},
		{"$.a.b[1].c", "null"},
		{"$.list", "[]"},
		{"$.list[0]", ""},
		{"$.missing", ""},
		{"$.missing.b", ""},
		{"$.n.b", ""},
		{"$.a[0]", ""},
		{"$.a.b.c", ""},
		{"$.a.b[1].c.d", ""},
	} {
		p, err := parsePath(test.path)
		if err != nil {
			t.Errorf("%s: %v", test.path, err)
			continue
		}
		v, ok := p.get(data)
		got, _ := encode(v)
		if want, _ := decode([]byte(test.want)); ok != (test.want != "") || ok && !reflect.DeepEqual(v, want) {
			t.Errorf("%s = %s, %v", test.path, got, ok)
		}
	}
}

func TestAValueIsPutAtAPath(t *testing.T) {
	for _, test := range []struct{ data, path, want string }{
		{`{"a":1}`, "$", `"v"`},
		{`{"a":1}`, "$.b", `{"a":1,"b":"v"}`},
		{`{"a":1}`, "$.a", `{"a":"v"}`},
		{`{"a":{"x":1}}`, "$.a.b.c", `{"a":{"b":{"c":"v"},"x":1}}`},
		{`{}`, "$['b c'].d", `{"b c":{"d":"v"}}`},
		{`{"a":1}`, "$.a.b", ""},
		{`{"a":[1]}`, "$.a[0]", ""},
		{`[]`, "$.a", ""},
		{`null`, "$.a", ""},
		{`{"a":null}`, "$.a.b", ""},
	} {
		data, err := decode([]byte(test.data))
		if err != nil {
			t.Fatal(err)
		}
		p, err := parsePath(test.path)
		if err != nil {
			t.Fatal(err)
		}
		v, ok := p.set(data, "v")
		if got, _ := encode(v); ok != (test.want != "") || ok && got != test.want {
			t.Errorf("%s in %s = %s, %v, want %s", test.path, test.data, got, ok, test.want)
		}
		if after, _ := encode(data); after != test.data {
			t.Errorf("%s in %s changed the data to %s", test.path, test.data, after)
		}
	}
}

// FuzzPath checks that a path that is accepted finds what the JSONPath library finds with it, and that what is put
// at a path is found there.
func FuzzPath(f *testing.F) {
	for _, path := range []string{"$", "$.a", "$.a.b[1].c", "$['a'][\"b\"][0]", "$$.Execution.Id", "$.a[-1]", "$..a", "$.a[*]", "$[?@.a]", "$.a[0:1]", "$.a[0,1]", "$.é", "$['\\u00e9 ']", "$.a[99999999999]"} {
		f.Add(path, sample)
	}
	f.Fuzz(func(t *testing.T, text, document string) {
		p, err := parsePath(text)
		if err != nil {
			return
		}
		var data any
		d := json.NewDecoder(strings.NewReader(document))
		d.UseNumber()
		if d.Decode(&data) != nil {
			return
		}
		v, ok := p.get(data)
		query := text
		if p.context {
			query = text[1:]
		}
		oracle := jsonpath.MustParse(query).Select(data)
		if ok != (len(oracle) == 1) || ok && !reflect.DeepEqual(v, oracle[0]) {
			t.Errorf("%s in %s: got %v, %v, want %v", text, document, v, ok, oracle)
		}
		changed, done := p.set(data, "v")
		if !done {
			return
		}
		if v, ok := p.get(changed); !ok || v != "v" {
			t.Errorf("%s put into %s is not found in %v", text, document, changed)
		}
	})
}

// FuzzLoad checks that no definition makes the loader panic.
func FuzzLoad(f *testing.F) {
	f.Add(`{"StartAt":"S","States":{"S":{"Type":"Choice","Choices":[{"Not":{"Variable":"$.a","IsPresent":true},"Next":"T"}]},"T":{"Type":"Succeed"}}}`)
	f.Add(`{"StartAt":"S","States":{"S":{"Type":"Map","ItemProcessor":{"StartAt":"T","States":{"T":{"Type":"Wait","Seconds":1,"End":true}}},"End":true}}}`)
	f.Fuzz(func(t *testing.T, definition string) {
		m, err := Load([]byte(definition), nil)
		if (m == nil) == (err == nil) {
			t.Errorf("machine %v, error %v", m, err)
		}
	})
}
