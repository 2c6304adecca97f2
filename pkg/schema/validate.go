package schema

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// ProblemKind says which rule a value breaks.
type ProblemKind string

// The kinds.
const (
	ProblemRequired ProblemKind = "required" // a property that must be given is missing
	ProblemUnknown  ProblemKind = "unknown"  // the type has no such property
	ProblemType     ProblemKind = "type"     // text where a list belongs, and so on
	ProblemEnum     ProblemKind = "enum"     // not one of the allowed values
	ProblemPattern  ProblemKind = "pattern"  // does not match the pattern
	ProblemRange    ProblemKind = "range"    // too long, too short, too large, too small, too many or few items
	ProblemReadOnly ProblemKind = "readonly" // only AWS sets it
)

// Problem is one thing that is wrong with a resource's properties.
type Problem struct {
	// Path leads to the value: property names, list indices, map keys.
	Path []string
	Kind ProblemKind
	// Message says what is expected. It never holds the value, which may be a secret.
	Message string
	// Suggestion is the name that was probably meant, "" when there is none.
	Suggestion string
}

// String is "Path/To/Value: message".
func (p Problem) String() string {
	if len(p.Path) == 0 {
		return p.Message
	}
	return strings.Join(p.Path, "/") + ": " + p.Message
}

// Options tune Validate.
type Options struct {
	// Lenient accepts scalars the way CloudFormation does: "5" and "true" where a number or a boolean is wanted,
	// 5 and true where text is wanted. A single value where a list is wanted is refused either way, as
	// CloudFormation refuses it ("must be of type List of String").
	Lenient bool
	// Opaque tells that a value is not known yet (an intrinsic function, a placeholder): it is accepted anywhere.
	Opaque func(value any) bool
}

// Validate checks properties against the type. Problems come in the order of the paths; none means that nothing
// is known to be wrong, not that the service accepts it. Rules between properties (one of, either or) are not
// checked. Values are those of encoding/json with UseNumber; float64 and integers are understood as well.
func Validate(t *Type, properties map[string]any, options Options) []Problem {
	v := &validator{t: t, options: options, patterns: t.patterns}
	if v.patterns == nil {
		v.patterns = &patternCache{}
	}
	v.object(&t.Definition, properties, nil)
	return v.problems
}

type validator struct {
	t        *Type
	options  Options
	patterns *patternCache
	problems []Problem
}

func (v *validator) report(path []string, kind ProblemKind, suggestion, format string, args ...any) {
	v.problems = append(v.problems, Problem{
		Path: slices.Clone(path), Kind: kind, Message: fmt.Sprintf(format, args...), Suggestion: suggestion,
	})
}

func (v *validator) opaque(value any) bool {
	return v.options.Opaque != nil && v.options.Opaque(value)
}

func (v *validator) object(def *Definition, value map[string]any, path []string) {
	if v.opaque(value) {
		return
	}
	for _, name := range def.Required {
		if given, found := value[name]; !found || given == nil {
			v.report(append(path, name), ProblemRequired, "", "%s is required", name)
		}
	}
	names := make([]string, 0, len(value))
	for name := range value {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		at := append(path, name)
		p := def.Properties[name]
		switch {
		case p != nil:
			v.value(p, value[name], at)
		case def.Open || name == "Fn::Transform" || strings.HasPrefix(name, "Fn::ForEach::"):
			// Macros and loops stand beside the properties that they add.
		case len(path) == 0 && slices.Contains(v.t.ReadOnly, name):
			v.report(at, ProblemReadOnly, "", "%s is set by AWS and can't be given", name)
		default:
			suggestion := v.t.SuggestProperty(def, name)
			v.report(at, ProblemUnknown, suggestion, "%s has no property %s", v.owner(path), name)
		}
	}
}

func (v *validator) owner(path []string) string {
	if len(path) == 0 {
		return v.t.Name
	}
	return v.t.Name + " " + strings.Join(path, "/")
}

func (v *validator) value(p *Property, value any, path []string) {
	// Null is what a removed value (AWS::NoValue) leaves behind: required says whether it may be absent.
	if value == nil || v.opaque(value) {
		return
	}
	switch p.Kind {
	case KindJSON:
	case KindUnion:
		v.union(p, value, path)
	case KindObject:
		object, ok := value.(map[string]any)
		if !ok {
			v.wrongType(path, "an object")
			return
		}
		if def := v.t.Definitions[p.Ref]; def != nil {
			v.object(def, object, path)
		}
	case KindMap:
		object, ok := value.(map[string]any)
		if !ok {
			v.wrongType(path, "an object")
			return
		}
		for _, key := range sortedKeys(object) {
			v.value(p.Elem, object[key], append(path, key))
		}
	case KindList:
		v.list(p, value, path)
	default:
		v.scalar(p, value, path)
	}
}

func (v *validator) list(p *Property, value any, path []string) {
	items, ok := value.([]any)
	if !ok {
		v.wrongType(path, "a list")
		return
	}
	// An item that is not known yet may stand for several, or vanish.
	if !slices.ContainsFunc(items, v.opaque) {
		if p.MinItems != nil && len(items) < *p.MinItems {
			v.report(path, ProblemRange, "", "needs at least %d items, has %d", *p.MinItems, len(items))
		}
		if p.MaxItems != nil && len(items) > *p.MaxItems {
			v.report(path, ProblemRange, "", "takes at most %d items, has %d", *p.MaxItems, len(items))
		}
	}
	for i, item := range items {
		v.value(p.Elem, item, append(path, strconv.Itoa(i)))
	}
}

// union accepts what any alternative accepts. Otherwise the alternative that comes closest speaks: the one with
// the fewest problems, provided its JSON shape fits.
func (v *validator) union(p *Property, value any, path []string) {
	var best []Problem
	for _, alternative := range p.Alternatives {
		try := &validator{t: v.t, options: v.options, patterns: v.patterns}
		try.value(alternative, value, path)
		if len(try.problems) == 0 {
			return
		}
		mismatch := func(ps []Problem) bool { return ps[0].Kind == ProblemType && len(ps[0].Path) == len(path) }
		if best == nil || mismatch(best) && !mismatch(try.problems) ||
			mismatch(best) == mismatch(try.problems) && len(try.problems) < len(best) {
			best = try.problems
		}
	}
	v.problems = append(v.problems, best...)
}

func (v *validator) wrongType(path []string, want string) {
	v.report(path, ProblemType, "", "must be %s", want)
}

func isScalar(value any) bool {
	switch value.(type) {
	case map[string]any, []any, nil:
		return false
	}
	return true
}

func (v *validator) scalar(p *Property, value any, path []string) {
	if !isScalar(value) {
		v.wrongType(path, "a "+string(p.Kind))
		return
	}
	switch p.Kind {
	case KindString:
		v.text(p, value, path)
	case KindInteger, KindNumber:
		v.number(p, value, path)
	case KindBoolean:
		if _, ok := value.(bool); ok {
			return
		}
		text, ok := value.(string)
		if !v.options.Lenient || !ok || !strings.EqualFold(text, "true") && !strings.EqualFold(text, "false") {
			v.wrongType(path, "true or false")
		}
	}
}

func (v *validator) text(p *Property, value any, path []string) {
	text, ok := value.(string)
	if !ok {
		if !v.options.Lenient {
			v.wrongType(path, "text")
			return
		}
		text = fmt.Sprint(value)
	}
	// A dynamic reference stands for a value that only the deploy sees.
	if strings.Contains(text, "{{resolve:") {
		return
	}
	if len(p.Enum) > 0 && !slices.Contains(p.Enum, text) {
		suggestion := ""
		if found := closest(text, p.Enum, 1); len(found) > 0 {
			suggestion = found[0]
		}
		v.report(path, ProblemEnum, suggestion, "must be one of %s", list(p.Enum))
		return
	}
	length := utf8.RuneCountInString(text)
	if p.MinLength != nil && length < *p.MinLength {
		v.report(path, ProblemRange, "", "needs at least %d characters, has %d", *p.MinLength, length)
		return
	}
	if p.MaxLength != nil && length > *p.MaxLength {
		v.report(path, ProblemRange, "", "takes at most %d characters, has %d", *p.MaxLength, length)
		return
	}
	if p.Pattern == "" {
		return
	}
	if pattern := v.patterns.compiled(p.Pattern); pattern != nil && !pattern.MatchString(text) {
		v.report(path, ProblemPattern, "", "must match %s", p.Pattern)
	}
}

func (v *validator) number(p *Property, value any, path []string) {
	number, literal, ok := v.parse(value)
	if !ok || p.Kind == KindInteger && number != math.Trunc(number) {
		want := "a number"
		if p.Kind == KindInteger {
			want = "a whole number"
		}
		if literal != unresolved {
			v.wrongType(path, want)
		}
		return
	}
	if len(p.Enum) > 0 && !slices.Contains(p.Enum, literal) && !slices.Contains(p.Enum, strconv.FormatFloat(number, 'f', -1, 64)) {
		v.report(path, ProblemEnum, "", "must be one of %s", list(p.Enum))
		return
	}
	if p.Minimum != nil && number < *p.Minimum {
		v.report(path, ProblemRange, "", "must be at least %s", strconv.FormatFloat(*p.Minimum, 'f', -1, 64))
	}
	if p.Maximum != nil && number > *p.Maximum {
		v.report(path, ProblemRange, "", "must be at most %s", strconv.FormatFloat(*p.Maximum, 'f', -1, 64))
	}
}

// unresolved marks a dynamic reference, which may well resolve to a number.
const unresolved = "{{resolve:"

func (v *validator) parse(value any) (number float64, literal string, ok bool) {
	switch value := value.(type) {
	case json.Number:
		literal = value.String()
	case string:
		if strings.Contains(value, unresolved) {
			return 0, unresolved, false
		}
		if !v.options.Lenient {
			return 0, "", false
		}
		literal = strings.TrimSpace(value)
	case float64, float32, int, int8, int16, int32, int64, uint, uint8, uint16, uint32, uint64:
		literal = fmt.Sprint(value)
	default:
		return 0, "", false
	}
	number, err := strconv.ParseFloat(literal, 64)
	return number, literal, err == nil && !math.IsNaN(number) && !math.IsInf(number, 0)
}

// list spells allowed values out, but not hundreds of them.
func list(values []string) string {
	const most = 12
	if len(values) <= most {
		return strings.Join(values, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(values[:most], ", "), len(values)-most)
}

func sortedKeys(m map[string]any) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}
