package conformance

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/slipway-cdk/slipway/pkg/intrinsic"
	"github.com/slipway-cdk/slipway/pkg/schema"
)

// shapesFile holds what the direct provider of every case has answered an emulator: what the sandbox answers in its place
// has to look the same.
const shapesFile = "shapes.json"

// shape is what the record of a created resource looks like. In its texts everything that is another one's next time is a
// placeholder: names of the run, values of properties ({QueueName}), needs ({Key}, {Key.Arn}), the physical id itself ({id}
// in Ref and the attributes), and what a service makes up ({uuid}, {hex}, {random}, {time}, {ip}).
type shape struct {
	// Emulator is where it was recorded.
	Emulator   string         `json:"emulator,omitempty"`
	ID         string         `json:"id"`
	Ref        any            `json:"ref"`
	Attributes map[string]any `json:"attributes"`
}

// readShapes returns the recorded shapes, by case.
func readShapes() (map[string]shape, error) {
	raw, err := os.ReadFile(shapesFile)
	if err != nil {
		return nil, err
	}
	var out map[string]shape
	return out, json.Unmarshal(raw, &out)
}

func writeShapes(shapes map[string]shape) error {
	raw, err := json.MarshalIndent(shapes, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(shapesFile, append(raw, '\n'), 0o644)
}

// shapeOf makes the case's resource, takes its shape and removes it.
func (l *life) shapeOf(endpoint string) (shape, error) {
	r, err := l.make(l.request(l.c.Type, "Resource", l.c.Properties))
	if err != nil {
		return shape{}, err
	}
	ref, ok := intrinsic.Ref(
		&intrinsic.Scope{Schema: schema.Lookup, Pseudo: intrinsic.Pseudo{AccountID: l.account, Region: l.region, Partition: "aws"}},
		intrinsic.Resource{Type: l.c.Type, PhysicalID: r.id, Attributes: r.attributes, Properties: l.c.Properties},
	)
	if !ok {
		return shape{}, fmt.Errorf("%s has no Ref", r.id)
	}
	words := l.words(endpoint)
	s := shape{ID: words.text(r.id), Attributes: map[string]any{}}
	words = append(words, word{r.id, "{id}"})
	words.sort()
	s.Ref = words.value(ref)
	for name, v := range r.attributes {
		if v != nil {
			s.Attributes[name] = words.value(v)
		}
	}
	return s, l.remove(r)
}

// word is a text with a placeholder for it.
type word struct{ text, placeholder string }

type words []word

// words are the texts that are known to be another run's.
func (l *life) words(endpoint string) words {
	stack := "Conf" + l.seed
	out := words{
		{endpoint, "{endpoint}"}, {l.account, "{account}"}, {l.region, "{region}"}, {stack, "{stack}"}, {strings.ToLower(stack), "{lower:stack}"}, {l.seed, "{seed}"},
	}
	for id, need := range l.needs {
		for name, v := range need.attributes {
			if s, ok := v.(string); ok && s != need.id {
				out = append(out, word{s, "{" + id + "." + name + "}"})
			}
		}
		out = append(out, word{need.id, "{" + id + "}"})
	}
	for name, v := range l.c.Properties {
		if s, ok := v.(string); ok {
			out = append(out, word{s, "{" + name + "}"})
		}
	}
	out.sort()
	return out
}

// sort puts the longest first, of the same text the first placeholder. A short text may be anywhere by chance.
func (w *words) sort() {
	*w = slices.DeleteFunc(*w, func(e word) bool { return len(e.text) < 5 })
	slices.SortStableFunc(*w, func(a, b word) int {
		return cmp.Or(cmp.Compare(len(b.text), len(a.text)), strings.Compare(a.text, b.text), strings.Compare(a.placeholder, b.placeholder))
	})
}

// madeUp are what services make up, in the order in which they are recognised.
var madeUp = []struct {
	pattern     *regexp.Regexp
	placeholder string
}{
	{regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`), "{uuid}"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[0-9.Z:+-]*`), "{time}"},
	{regexp.MustCompile(`\b\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}\b`), "{ip}"},
	{regexp.MustCompile(`\b[0-9a-f]{8,}\b`), "{hex}"},
	{regexp.MustCompile(`\b[A-Za-z]*[0-9][A-Za-z0-9]{4,}\b|\b[A-Za-z0-9]{4,}[0-9][A-Za-z0-9]*\b`), "{random}"},
}

// text writes a text with placeholders.
func (w words) text(s string) string {
	// What has been replaced is kept out of the way of what follows.
	var found []string
	keep := func(placeholder string) string {
		found = append(found, placeholder)
		return fmt.Sprintf("\x00%c\x00", 'A'+len(found)-1)
	}
	for _, e := range w {
		for strings.Contains(s, e.text) {
			s = strings.Replace(s, e.text, keep(e.placeholder), 1)
		}
	}
	for _, m := range madeUp {
		s = m.pattern.ReplaceAllStringFunc(s, func(string) string { return keep(m.placeholder) })
	}
	for i, placeholder := range found {
		s = strings.Replace(s, fmt.Sprintf("\x00%c\x00", 'A'+i), placeholder, 1)
	}
	return s
}

// value writes the texts of a value with placeholders, and every number as one.
func (w words) value(v any) any {
	switch v := v.(type) {
	case string:
		return w.text(v)
	case map[string]any:
		out := map[string]any{}
		for name, e := range v {
			out[name] = w.value(e)
		}
		return out
	case []any:
		out := []any{}
		for _, e := range v {
			out = append(out, w.value(e))
		}
		return out
	case bool, nil:
		return v
	}
	return "{number}"
}

// differences are what two shapes differ in, as sentences.
func (s shape) differences(other shape) []string {
	var out []string
	differ := func(what string, a, b any) {
		if text(a) != text(b) {
			out = append(out, fmt.Sprintf("%s is %s, want %s", what, text(b), text(a)))
		}
	}
	differ("the physical id", s.ID, other.ID)
	differ("Ref", s.Ref, other.Ref)
	names := maps.Clone(s.Attributes)
	maps.Copy(names, other.Attributes)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		differ("the attribute "+name, s.Attributes[name], other.Attributes[name])
	}
	return out
}
