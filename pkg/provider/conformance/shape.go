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

// shapesFile holds what the direct provider of every case has answered, by case and emulator: what the sandbox answers in its
// place has to look the same.
const shapesFile = "shapes.json"

// shape is what the record of a created resource looks like. In its texts everything that is another one's next time is a
// placeholder: names of the run, values of properties ({QueueName}), needs ({Key}, {Key.Arn}), the physical id itself ({id}
// in Ref and the attributes), and what a service makes up ({uuid}, {hex}, {random}, {time}, {ip}).
type shape struct {
	ID         string         `json:"id"`
	Ref        any            `json:"ref"`
	Attributes map[string]any `json:"attributes"`
}

// shapes are those that are recorded, by case and emulator.
type shapes map[string]map[string]shape

func readShapes() (shapes, error) {
	raw, err := os.ReadFile(shapesFile)
	if err != nil {
		return nil, err
	}
	var out shapes
	return out, json.Unmarshal(raw, &out)
}

// write writes a line for each shape.
func (s shapes) write() error {
	var out strings.Builder
	out.WriteString("{\n")
	for i, name := range slices.Sorted(maps.Keys(s)) {
		if i > 0 {
			out.WriteString(",\n")
		}
		fmt.Fprintf(&out, "%q: {\n", name)
		for i, emulator := range slices.Sorted(maps.Keys(s[name])) {
			if i > 0 {
				out.WriteString(",\n")
			}
			fmt.Fprintf(&out, "  %q: %s", emulator, text(s[name][emulator]))
		}
		out.WriteString("}")
	}
	out.WriteString("\n}\n")
	return os.WriteFile(shapesFile, []byte(out.String()), 0o644)
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
	{regexp.MustCompile(`^[a-z0-9]{6,10}$`), "{random}"}, // of an API and its parts
	{regexp.MustCompile(`localhost:\d+`), "localhost"},
	{regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`), "{uuid}"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[0-9.Z:+-]*`), "{time}"},
	{regexp.MustCompile(`\b\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}\b`), "{ip}"},
	{regexp.MustCompile(`\b[0-9a-f]{8,}\b`), "{hex}"},
	{regexp.MustCompile(`\bA(ROA|NPA)[A-Z0-9]{12,}\b`), "{random}"},       // of a role, of a managed policy
	{regexp.MustCompile(`-[A-Za-z0-9]{6}$`), "-{random}"},                 // of a secret
	{regexp.MustCompile(`\b[a-z0-9]{20,}\b`), "{random}"},                 // of a URL
	{regexp.MustCompile(`\bus-east-1[a-f]\b|\x00.\x00[a-f]\b`), "{zone}"}, // that a subnet gets
	{regexp.MustCompile(`\buse1-az[1-6]\b`), "{zone id}"},
	{regexp.MustCompile(`\b[A-Za-z]*[0-9][A-Za-z0-9]{5,}\b|\b[A-Za-z0-9]{5,}[0-9][A-Za-z0-9]*\b`), "{random}"},
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

// differences are what a shape has otherwise than all of the recorded ones, as sentences. What one emulator gets wrong, another
// gets right.
func (s shape) differences(recorded map[string]shape) []string {
	var out []string
	differ := func(what string, of func(shape) any) {
		var answers []string
		for _, emulator := range slices.Sorted(maps.Keys(recorded)) {
			answer := text(of(recorded[emulator]))
			if answer == text(of(s)) {
				return
			}
			answers = append(answers, emulator+": "+answer)
		}
		out = append(out, fmt.Sprintf("%s is %s, recorded is %s", what, text(of(s)), strings.Join(answers, ", ")))
	}
	differ("the physical id", func(s shape) any { return s.ID })
	differ("Ref", func(s shape) any { return s.Ref })
	names := maps.Clone(s.Attributes)
	for _, r := range recorded {
		maps.Copy(names, r.Attributes)
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		differ("the attribute "+name, func(s shape) any { return s.Attributes[name] })
	}
	return out
}
