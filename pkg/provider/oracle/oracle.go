// Package oracle compares two ways to deploy one template: an emulator's own CloudFormation, and the engine with the
// direct providers on the services of the same emulator. What the two leave is read through the services and compared resource
// by resource, value by value. Every difference is mended or explained (differences.json), with the page that decides.
// The test that deploys carries the build tag "emulators".
package oracle

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

//go:embed templates/*.json
var templates embed.FS

//go:embed differences.json
var differences []byte

// Trial is one template and its change.
type Trial struct {
	// Name is the file's, without ".json".
	Name string `json:"-"`
	// About says in a few words what is built.
	About string `json:"about"`
	// Archive is a bucket that is made before and holds code.zip, a module for Python; "" for none.
	Archive  string         `json:"archive"`
	Template map[string]any `json:"template"`
	// Change is a merge patch of the template (RFC 7396): what the update is to.
	Change map[string]any `json:"change"`
}

// Trials returns all trials, by name.
func Trials() ([]Trial, error) {
	names, err := fs.Glob(templates, "templates/*.json")
	if err != nil {
		return nil, err
	}
	var out []Trial
	for _, name := range names {
		raw, err := templates.ReadFile(name)
		if err != nil {
			return nil, err
		}
		var t Trial
		if err := decode(raw, &t); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		t.Name = strings.TrimSuffix(strings.TrimPrefix(name, "templates/"), ".json")
		out = append(out, t)
	}
	return out, nil
}

// Changed is the template of the update.
func (t Trial) Changed() map[string]any {
	return patched(t.Template, t.Change).(map[string]any)
}

// Types lists the types of both templates, sorted.
func (t Trial) Types() []string {
	seen := map[string]bool{}
	for _, template := range []map[string]any{t.Template, t.Changed()} {
		resources, _ := template["Resources"].(map[string]any)
		for _, r := range resources {
			typeName, _ := r.(map[string]any)["Type"].(string)
			seen[typeName] = true
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

// elsewhere are the types with a direct provider that MiniStack's CloudFormation does not have ("Unrecognized resource types"), so that
// no trial can have one. The conformance matrix and the fault runs have them.
var elsewhere = []string{"AWS::EC2::EIP", "AWS::EC2::NatGateway", "AWS::EC2::SecurityGroupEgress", "AWS::EC2::SecurityGroupIngress"}

// Explanation is a difference that stays.
type Explanation struct {
	// Type and What are what differs: "Ref", "property Tags", "attribute Arn" or "output Url"; the type of an output is "".
	Type string `json:"type"`
	What string `json:"what"`
	// Trials are the templates in which it occurs and Stage the one in which it does; none: all.
	Trials []string `json:"trials,omitempty"`
	Stage  string   `json:"stage,omitempty"`
	// Right is whose side AWS is on: "ours", "theirs" or "both".
	Right   string `json:"right"`
	Because string `json:"because"`
	// Page is the documentation that decides.
	Page string `json:"page"`
}

// Explanations returns the differences that are explained.
func Explanations() ([]Explanation, error) {
	var out []Explanation
	if err := decode(differences, &out); err != nil {
		return nil, fmt.Errorf("differences.json: %w", err)
	}
	return out, nil
}

// explains reports whether the explanation is of a difference.
func (e Explanation) explains(trial string, d Difference) bool {
	return e.Type == d.Type && e.What == d.What && (len(e.Trials) == 0 || slices.Contains(e.Trials, trial)) && (e.Stage == "" || e.Stage == d.Stage)
}

func decode(raw []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	d.DisallowUnknownFields()
	return d.Decode(into)
}

// patched applies a merge patch (RFC 7396, §2).
func patched(v, patch any) any {
	p, ok := patch.(map[string]any)
	if !ok {
		if patch == nil {
			return v
		}
		return patch
	}
	out := map[string]any{}
	if m, ok := v.(map[string]any); ok {
		maps.Copy(out, m)
	}
	for k, e := range p {
		if e == nil {
			delete(out, k)
		} else {
			out[k] = patched(out[k], e)
		}
	}
	return out
}
