package oracle

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/slipway-cdk/slipway/pkg/provider"
	"github.com/slipway-cdk/slipway/pkg/provider/direct"
)

// Stack is what a deploy has left.
type Stack struct {
	Resources map[string]Resource
	Outputs   map[string]string
	// Order lists the resources, each after what it refers to: a name belongs to the first that has it.
	Order []string
	// Given is the text of the template: a name that stands in it is not made up.
	Given string
}

// Resource is one resource as its service describes it.
type Resource struct {
	Type string
	// ID is the physical id by which the provider reads it, and Ref what Ref returns.
	ID, Ref    string
	Properties map[string]any
	Attributes map[string]any
}

// Difference is a value that the two ways leave differently.
type Difference struct {
	Stage     string `json:"stage"`
	LogicalID string `json:"logicalId"`
	Type      string `json:"type"`
	What      string `json:"what"`
	Ours      string `json:"ours"`
	Theirs    string `json:"theirs"`
}

// Compare returns how many values were compared, and those that differ. Names and ids that a deploy makes up are replaced by
// logical ids first.
func Compare(stage string, ours, theirs Stack) (values int, out []Difference) {
	a, b := ours.plain(), theirs.plain()
	for _, id := range union(a.Resources, b.Resources) {
		x, y := a.Resources[id], b.Resources[id]
		typeName := cmp.Or(x.Type, y.Type)
		differ := func(what string, ours, theirs any) {
			values++
			if direct.Same(typeName, strings.TrimPrefix(what, "property "), ours, theirs) || text(ours) == text(theirs) {
				return
			}
			out = append(out, Difference{Stage: stage, LogicalID: id, Type: typeName, What: what, Ours: text(ours), Theirs: text(theirs)})
		}
		differ("Ref", x.Ref, y.Ref)
		for _, name := range union(x.Properties, y.Properties) {
			differ("property "+name, x.Properties[name], y.Properties[name])
		}
		for _, name := range union(x.Attributes, y.Attributes) {
			differ("attribute "+name, x.Attributes[name], y.Attributes[name])
		}
	}
	for _, name := range union(a.Outputs, b.Outputs) {
		values++
		if a.Outputs[name] != b.Outputs[name] {
			out = append(out, Difference{Stage: stage, What: "output " + name, Ours: a.Outputs[name], Theirs: b.Outputs[name]})
		}
	}
	return values, out
}

func union[V any](a, b map[string]V) []string {
	names := slices.AppendSeq(slices.Collect(maps.Keys(a)), maps.Keys(b))
	slices.Sort(names)
	return slices.Compact(names)
}

func text(v any) string {
	if v == nil {
		return "–"
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return fmt.Sprint(v)
	}
	return strings.TrimSpace(b.String())
}

// Atoms are names and ids that a deploy has made up, with what stands for them.
type Atoms map[string]string

var (
	// madeUp are ids that services make: "vpc-0123abcd", "AROA…", a UUID.
	madeUp = regexp.MustCompile(`^([a-z]+(-[a-z]+)*-[0-9a-f]{8,}|[A-Z0-9]{16,}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|[a-z0-9]{10})$`)
	// where is the emulator's address, which it calls by several names, and moment a time.
	where = regexp.MustCompile(`https?://(localhost|127\.0\.0\.1)(:\d+)?/`)
	// host is a name that AWS makes up for an endpoint, and digest that of a zip that each side has made for itself, with times in it.
	host   = regexp.MustCompile(`https://[a-z0-9]{10,32}\.(lambda-url|execute-api)\.`)
	digest = regexp.MustCompile(`^[A-Za-z0-9+/]{43}=$`)
	moment = regexp.MustCompile(`\b20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|\+\d\d:?\d\d)?`)
)

// Add notes the names and ids of a resource; those that stand in the template, given, are not made up.
func (a Atoms) Add(logicalID string, r Resource, given string) {
	put := func(value, token string) {
		if len(value) >= 5 && a[value] == "" && !strings.Contains(given, `"`+value+`"`) {
			a[value] = "<" + token + ">"
		}
	}
	if rule, ok := provider.NameRuleOf(r.Type); ok {
		name, _ := r.Properties[rule.Property].(string)
		put(name, logicalID)
	}
	put(last(r.ID), logicalID)
	put(last(r.Ref), logicalID)
	for _, name := range slices.Sorted(maps.Keys(r.Attributes)) {
		list, ok := r.Attributes[name].([]any)
		if !ok {
			list = []any{r.Attributes[name]}
		}
		for _, v := range list {
			if s, ok := v.(string); ok && madeUp.MatchString(last(s)) {
				put(last(s), logicalID+"."+name)
			}
		}
	}
}

// last is the last part of an ARN, a URL or a path.
func last(id string) string { return id[strings.LastIndexAny(id, ":/|")+1:] }

// Plain replaces what was made up by what stands for it.
func (a Atoms) Plain(v any) any {
	var pairs []string
	for _, value := range a.longestFirst() {
		pairs = append(pairs, value, a[value])
	}
	once := strings.NewReplacer(pairs...)
	return mapped(v, func(s string) string { return once.Replace(s) })
}

// Own is the opposite of Plain.
func (a Atoms) Own(v any) any {
	var pairs []string
	for _, value := range a.longestFirst() {
		pairs = append(pairs, a[value], value)
	}
	once := strings.NewReplacer(pairs...)
	return mapped(v, func(s string) string { return once.Replace(s) })
}

func (a Atoms) longestFirst() []string {
	return slices.SortedFunc(maps.Keys(a), func(x, y string) int { return cmp.Or(cmp.Compare(len(y), len(x)), cmp.Compare(x, y)) })
}

func mapped(v any, f func(string) string) any {
	switch v := v.(type) {
	case string:
		return f(v)
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = mapped(e, f)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, e := range v {
			out[k] = mapped(e, f)
		}
		return out
	}
	return v
}

// atoms are those of a stack.
func (s Stack) atoms() Atoms {
	a := Atoms{}
	for _, id := range slices.Concat(s.Order, slices.Sorted(maps.Keys(s.Resources))) {
		a.Add(id, s.Resources[id], s.Given)
	}
	return a
}

// plain is the stack without what was made up.
func (s Stack) plain() Stack {
	a := s.atoms()
	clean := func(v any) any {
		return mapped(a.Plain(v), func(s string) string {
			s = host.ReplaceAllString(where.ReplaceAllString(s, "https://<emulator>/"), "https://<id>.$1.")
			return digest.ReplaceAllString(moment.ReplaceAllString(s, "<time>"), "<digest>")
		})
	}
	out := Stack{Resources: map[string]Resource{}, Outputs: map[string]string{}}
	for id, r := range s.Resources {
		plain := Resource{Type: r.Type, ID: clean(r.ID).(string), Ref: clean(r.Ref).(string)}
		plain.Properties, _ = clean(r.Properties).(map[string]any)
		plain.Attributes, _ = clean(r.Attributes).(map[string]any)
		out.Resources[id] = plain
	}
	for name, value := range s.Outputs {
		out.Outputs[name] = clean(value).(string)
	}
	return out
}
