package cloudcontrol

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/slipway-cdk/slipway/pkg/schema"
)

// PatchOperation is one operation of an RFC 6902 JSON Patch.
type PatchOperation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// Patch returns the patch that leads from the properties that were sent last to the desired ones, nil when there
// is nothing to change. Both are coerced. live is the resource as it was last read (its recorded attributes); nil
// when that is not known.
//
// The patch works on whole top-level properties (reference §10.4):
//
//   - One is set with "add", which replaces what stands.
//   - A property with a write-only part is not in the live model, and AWS takes what is not in the patched model for
//     removed: it is sent again along with any other change. When only such a part is removed there is nothing to say.
//   - Create-only and read-only properties are never sent.
//   - Inside of an object that holds read-only values (of a secret: the ARN that AWS chose) the members are set one
//     by one, because to replace the object would change those.
//   - A property is removed by setting and then removing it: a mere "remove" fails when the live model does not
//     have the property, as somebody has removed it by hand or the service does not return it.
func Patch(t *schema.Type, previous, desired, live map[string]any) []PatchOperation {
	if t == nil {
		t = &schema.Type{}
	}
	p := &patcher{t: t}
	p.object(nil, previous, desired, live)
	if !p.changed {
		return nil
	}
	return append(p.set, p.removed...)
}

type patcher struct {
	t            *schema.Type
	set, removed []PatchOperation
	// changed: something is sent that is not merely sent again.
	changed bool
}

func (p *patcher) object(path []string, previous, desired, live map[string]any) {
	for _, k := range sortedKeys(desired) {
		at := append(path[:len(path):len(path)], k)
		if desired[k] == nil || isExactly(p.t.CreateOnly, at) || isExactly(p.t.ReadOnly, at) {
			continue
		}
		if was, is, there, ok := p.inner(at, previous[k], desired[k], live[k]); ok {
			p.object(at, was, is, there)
			continue
		}
		same := equal(previous[k], desired[k])
		if same && !reaches(p.t.WriteOnly, at) {
			continue
		}
		p.changed = p.changed || !same
		p.set = append(p.set, PatchOperation{Op: "add", Path: pointer(at), Value: desired[k]})
	}
	for _, k := range sortedKeys(previous) {
		at := append(path[:len(path):len(path)], k)
		if previous[k] == nil || desired[k] != nil || isExactly(p.t.CreateOnly, at) || isExactly(p.t.ReadOnly, at) || p.unreadable(at, previous[k]) {
			continue
		}
		if was, is, there, ok := p.inner(at, previous[k], map[string]any{}, live[k]); ok {
			p.object(at, was, is, there)
			continue
		}
		p.changed = true
		p.removed = append(p.removed,
			PatchOperation{Op: "add", Path: pointer(at), Value: previous[k]},
			PatchOperation{Op: "remove", Path: pointer(at)})
	}
}

// inner returns the three versions of an object that must be patched member by member: one that is there and holds
// read-only values.
func (p *patcher) inner(at []string, previous, desired, live any) (was, is, there map[string]any, ok bool) {
	was, okWas := previous.(map[string]any)
	okWas = okWas || previous == nil
	is, okIs := desired.(map[string]any)
	there, okThere := live.(map[string]any)
	if !okWas || !okIs || !okThere {
		return nil, nil, nil, false
	}
	for _, pattern := range p.t.ReadOnly {
		if below, found := strings.CutPrefix(pattern, strings.Join(at, "/")+"/"); found && holds(there, strings.Split(below, "/")) {
			return was, is, there, true
		}
	}
	return nil, nil, nil, false
}

// unreadable reports whether nothing of a value is ever read back, so that it is not in the live model.
func (p *patcher) unreadable(at []string, v any) bool {
	if p.t.IsWriteOnly(at) {
		return true
	}
	if !reaches(p.t.WriteOnly, at) {
		return false
	}
	switch x := v.(type) {
	case map[string]any:
		for k, e := range x {
			if !p.unreadable(append(at[:len(at):len(at)], k), e) {
				return false
			}
		}
		return true
	case []any:
		for _, e := range x {
			if !p.unreadable(append(at[:len(at):len(at)], "*"), e) {
				return false
			}
		}
		return true
	}
	return false
}

// isExactly reports whether one of the patterns names the path itself.
func isExactly(patterns []string, path []string) bool {
	return slices.Contains(patterns, strings.Join(path, "/"))
}

// reaches reports whether one of the patterns names the path or something below it.
func reaches(patterns []string, path []string) bool {
	at := strings.Join(path, "/")
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		return pattern == at || strings.HasPrefix(pattern, at+"/") || strings.HasPrefix(at, pattern+"/")
	})
}

// holds reports whether an object has a value at a path; "*" and lists end the search.
func holds(v any, path []string) bool {
	for _, k := range path {
		m, ok := v.(map[string]any)
		if !ok {
			return false
		}
		if v, ok = m[k]; !ok {
			return false
		}
	}
	return v != nil
}

// equal compares JSON values; numbers by value, so that 1 and 1.0 are no change.
func equal(a, b any) bool {
	switch x := a.(type) {
	case json.Number:
		y, ok := b.(json.Number)
		if !ok || x == y {
			return ok
		}
		fx, ex := x.Float64()
		fy, ey := y.Float64()
		return ex == nil && ey == nil && fx == fy
	case map[string]any:
		y, ok := b.(map[string]any)
		if !ok || len(x) != len(y) {
			return false
		}
		for k, v := range x {
			if w, found := y[k]; !found || !equal(v, w) {
				return false
			}
		}
		return true
	case []any:
		y, ok := b.([]any)
		return ok && slices.EqualFunc(x, y, equal)
	}
	switch b.(type) {
	case map[string]any, []any:
		return false
	}
	return a == b
}

// pointer writes a path as a JSON Pointer (RFC 6901).
func pointer(path []string) string {
	var b strings.Builder
	for _, k := range path {
		b.WriteByte('/')
		b.WriteString(escape(k))
	}
	return b.String()
}

// escape writes a member name as a JSON Pointer token (RFC 6901 §3).
func escape(s string) string {
	return strings.ReplaceAll(strings.ReplaceAll(s, "~", "~0"), "/", "~1")
}

func sortedKeys(m map[string]any) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

func encode(v any) (string, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return "", err
	}
	return strings.TrimSuffix(b.String(), "\n"), nil
}

func decode(s string) (map[string]any, error) {
	dec := json.NewDecoder(strings.NewReader(s))
	dec.UseNumber()
	var out map[string]any
	if err := dec.Decode(&out); err != nil {
		return nil, err
	}
	return out, nil
}
