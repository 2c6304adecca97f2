// Package conformance puts the direct provider of every type through its life against an emulator of AWS, and
// keeps the matrix: type × emulator × what was tried. The cases are data (testdata/*.json, one resource each); the
// checks are the same for all types. The test that runs them carries the build tag "emulators".
package conformance

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
)

//go:embed testdata/*.json
var files embed.FS

// Case is one resource. Values may refer to the resources that it needs, {"Ref": "Key"} and {"Fn::GetAtt": ["Key", "Arn"]},
// and to the account and region of the run, {"Fn::Sub": "arn:aws:sqs:${AWS::Region}:${AWS::AccountId}:q"}.
type Case struct {
	// Name is the file's, without ".json".
	Name string `json:"-"`
	Type string `json:"type"`
	// Needs are made before, in their order, and deleted after.
	Needs []Need `json:"needs"`
	// Properties are those to create with.
	Properties map[string]any `json:"properties"`
	// Named: the properties hold a name that only one resource can have.
	Named bool `json:"named"`
	// Shared: a second create puts what is there already, as CloudFormation's does.
	Shared bool `json:"shared"`
	// Heals: an update of what is gone makes it again, as that can't be told from an update that was half made.
	Heals bool `json:"heals"`
	// Change holds another value for every mutable property. Each is changed alone and back, then all together and back.
	Change map[string]any `json:"change"`
	// Together lists properties that are only changed with all others: alone the service refuses them.
	Together []string `json:"together"`
	// Faults is the property that is changed while calls fail; the first of Change when empty.
	Faults string `json:"faults"`
	// Removed holds what every optional property is read as after it has been removed from the template; null: it is not
	// read any more.
	Removed map[string]any `json:"removed"`
	// Unread lists properties that the service does not return.
	Unread []string `json:"unread"`
	// Attributes are those that must have a value after the create, dotted.
	Attributes []string `json:"attributes"`
	// Creates is the call that makes a new resource each time; "" where made twice it makes one.
	Creates string `json:"creates"`
	// Calls is how many calls each step may make.
	Calls Calls `json:"calls"`
	// Differs lists what an emulator does otherwise than AWS. The check runs, and has to fail: what has been mended there is
	// to be taken out here.
	Differs []Difference `json:"differs"`
}

// Need is a resource that a case refers to.
type Need struct {
	ID         string         `json:"id"`
	Type       string         `json:"type"`
	Properties map[string]any `json:"properties"`
}

// Calls are at most so many calls, with those that read back.
type Calls struct {
	Create int `json:"create"`
	// Update is one changed property; the dearest counts.
	Update int `json:"update"`
	Delete int `json:"delete"`
}

// Difference is a check that an emulator can't pass.
type Difference struct {
	Emulator string `json:"emulator"`
	// Check is a column of the matrix, or "faults" for the fault run, which then runs elsewhere, or, with a Call, one of its
	// columns.
	Check string `json:"check"`
	// Call is the call that a fault is not put on: the column has to fail with it and runs once more without.
	Call string `json:"call,omitempty"`
	// Properties are those, or attributes, that it is about: the check has to fail with them and runs once more without. None: the check as a whole.
	Properties []string `json:"properties"`
	Because    string   `json:"because"`
}

// less is the case without properties that an emulator has wrong.
func (c Case) less(names []string) Case {
	for _, part := range []*map[string]any{&c.Properties, &c.Change, &c.Removed} {
		*part = maps.Clone(*part)
		for _, name := range names {
			delete(*part, name)
		}
	}
	c.Attributes = slices.DeleteFunc(slices.Clone(c.Attributes), func(a string) bool { return slices.Contains(names, a) })
	return c
}

// Cases returns every case, by name.
func Cases() ([]Case, error) {
	names, err := fs.Glob(files, "testdata/*.json")
	if err != nil {
		return nil, err
	}
	var out []Case
	for _, name := range names {
		raw, err := files.ReadFile(name)
		if err != nil {
			return nil, err
		}
		var c Case
		d := json.NewDecoder(bytes.NewReader(raw))
		d.UseNumber()
		d.DisallowUnknownFields()
		if err := d.Decode(&c); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		c.Name = strings.TrimSuffix(strings.TrimPrefix(name, "testdata/"), ".json")
		out = append(out, c)
	}
	return out, nil
}

// resolve writes references as values.
func resolve(v any, refs func(id, attribute string) (any, error)) (any, error) {
	switch v := v.(type) {
	case map[string]any:
		if id, ok := v["Ref"].(string); ok && len(v) == 1 {
			return refs(id, "")
		}
		if at, ok := v["Fn::GetAtt"].([]any); ok && len(v) == 1 && len(at) == 2 {
			return refs(fmt.Sprint(at[0]), fmt.Sprint(at[1]))
		}
		if text, ok := v["Fn::Sub"].(string); ok && len(v) == 1 {
			return substitute(text, refs)
		}
		out := make(map[string]any, len(v))
		for _, k := range slices.Sorted(maps.Keys(v)) {
			e, err := resolve(v[k], refs)
			if err != nil {
				return nil, err
			}
			out[k] = e
		}
		return out, nil
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			r, err := resolve(e, refs)
			if err != nil {
				return nil, err
			}
			out[i] = r
		}
		return out, nil
	}
	return v, nil
}

func substitute(text string, refs func(id, attribute string) (any, error)) (any, error) {
	var out strings.Builder
	for {
		before, rest, found := strings.Cut(text, "${")
		out.WriteString(before)
		if !found {
			return out.String(), nil
		}
		name, after, _ := strings.Cut(rest, "}")
		id, attribute, _ := strings.Cut(name, ".")
		v, err := refs(id, attribute)
		if err != nil {
			return nil, err
		}
		fmt.Fprint(&out, v)
		text = after
	}
}
