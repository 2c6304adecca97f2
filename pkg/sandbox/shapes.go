package sandbox

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/slipway-cdk/slipway/pkg/schema"
)

//go:embed shapes.txt
var shapesTable string

// rule says how one identifier or attribute is made.
type rule struct {
	path     string
	template string
	// The rule holds only where the condition does: the path is given and not false, or has a value.
	condition string
	value     string
	unless    bool
}

// claim is a property whose value must be unique although it does not identify the resource.
type claim struct {
	path   string
	global bool
}

// shape is what the table says about a type.
type shape struct {
	rules  []rule
	claims []claim
	own    *own // nil where the service's own API calls its resources what Cloud Control does
}

// find returns the rule of a path.
func (s *shape) find(path string) (rule, bool) {
	if s == nil {
		return rule{}, false
	}
	for _, r := range s.rules {
		if r.path == path {
			return r, true
		}
	}
	return rule{}, false
}

// parseShapes reads the table; its grammar is described at its head.
func parseShapes(table string) (map[string]*shape, error) {
	out := map[string]*shape{}
	var current *shape
	for n, line := range strings.Split(table, "\n") {
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
		case !strings.HasPrefix(line, " "):
			if out[line] != nil {
				return nil, fmt.Errorf("shape table, line %d: %s twice", n+1, line)
			}
			current = &shape{}
			out[line] = current
		case current == nil:
			return nil, fmt.Errorf("shape table, line %d: a rule before any type", n+1)
		default:
			line = strings.TrimSpace(line)
			if rest, ok := strings.CutPrefix(line, "name global "); ok {
				current.claims = append(current.claims, claim{rest, true})
				continue
			}
			if rest, ok := strings.CutPrefix(line, "name "); ok {
				current.claims = append(current.claims, claim{rest, false})
				continue
			}
			if rest, ok := strings.CutPrefix(line, "direct "); ok {
				if err := current.parseOwn(rest); err != nil {
					return nil, fmt.Errorf("shape table, line %d: %w", n+1, err)
				}
				continue
			}
			path, rest, ok := strings.Cut(line, " = ")
			if !ok {
				return nil, fmt.Errorf("shape table, line %d: no template", n+1)
			}
			r := rule{path: path, template: rest}
			if template, condition, ok := strings.Cut(rest, " unless "); ok {
				r.template, r.condition, r.unless = template, condition, true
			} else if template, condition, ok := strings.Cut(rest, " if "); ok {
				r.template = template
				r.condition, r.value, _ = strings.Cut(condition, " is ")
			}
			current.rules = append(current.rules, r)
		}
	}
	return out, nil
}

// applies reports whether a rule's condition holds for a model.
func (r rule) applies(model map[string]any) bool {
	if r.condition == "" {
		return true
	}
	v, given := get(model, r.condition)
	if b, ok := v.(bool); ok {
		given = b
	}
	if l, ok := v.([]any); ok {
		given = len(l) > 0
	}
	if r.value != "" {
		given = getString(model, r.condition) == r.value
	}
	return given != r.unless
}

// maker fills in what the caller of a create left to AWS. One maker serves one resource.
type maker struct {
	caller Caller
	t      *schema.Type
	shape  *shape
	model  map[string]any
	now    time.Time
	rng    *rand.Rand
	// label is what the caller would call the resource, "" for one that does not say.
	label string
	// sequence counts from 1 for each key: revisions, versions.
	sequence func(key string) (int, error)
	// settled: the model is complete, nothing is made up in it any more. physical is then the id of the resource.
	settled  bool
	physical string

	filled []string // paths written by the maker
	busy   map[string]bool
	err    error
}

// fill completes the model: rules first, then identifiers, then every attribute that the schema names.
// It returns the paths it wrote.
func (m *maker) fill() ([]string, error) {
	m.busy = map[string]bool{}
	if m.shape != nil {
		for _, r := range m.shape.rules {
			m.resolve(r.path)
		}
	}
	for _, path := range m.t.PrimaryIdentifier {
		if _, ok := get(m.model, path); !ok {
			m.write(path, m.fallback(path))
		}
	}
	for _, name := range sortedKeys(m.t.Attributes) {
		path := strings.ReplaceAll(name, ".", "/")
		if _, ok := get(m.model, path); ok || strings.Contains(path, "*") {
			continue
		}
		if m.withheld(path) || m.hasConditionalParts(path) {
			continue
		}
		m.write(path, m.fallback(path))
	}
	return m.filled, m.err
}

// withheld reports whether the table says that an attribute, or an object that it is in, does not exist now.
func (m *maker) withheld(path string) bool {
	for {
		if r, ok := m.shape.find(path); ok && !r.applies(m.model) {
			return true
		}
		i := strings.LastIndexByte(path, '/')
		if i < 0 {
			return false
		}
		path = path[:i]
	}
}

// hasConditionalParts reports whether the table describes members of an object attribute: it then decides.
func (m *maker) hasConditionalParts(path string) bool {
	if m.shape == nil {
		return false
	}
	for _, r := range m.shape.rules {
		if r.condition != "" && strings.HasPrefix(r.path, path+"/") {
			return true
		}
	}
	return false
}

func (m *maker) write(path string, value any) {
	if value == nil {
		return
	}
	if set(m.model, path, value) {
		m.filled = append(m.filled, path)
	}
}

// resolve makes the value of a path by its rule unless there is one already.
func (m *maker) resolve(path string) {
	if _, ok := get(m.model, path); ok || m.busy[path] {
		return
	}
	r, ok := m.shape.find(path)
	if !ok || !r.applies(m.model) {
		return
	}
	m.busy[path] = true
	m.write(path, m.typed(path, m.expand(r.template)))
}

// typed turns an expanded template into the kind that the schema wants.
func (m *maker) typed(path, text string) any {
	kind := schema.KindString
	if p := m.t.At(strings.Split(path, "/")); p != nil {
		kind = p.Kind
	}
	if strings.HasPrefix(text, "[") && strings.HasSuffix(text, "]") {
		list := []any{}
		for _, item := range strings.Split(text[1:len(text)-1], ",") {
			if item != "" {
				list = append(list, item)
			}
		}
		return list
	}
	switch kind {
	case schema.KindInteger, schema.KindNumber:
		return json.Number(text)
	case schema.KindBoolean:
		return text == "true"
	case schema.KindList:
		return []any{text}
	}
	return text
}

// expand replaces the placeholders of a template.
func (m *maker) expand(template string) string {
	var b strings.Builder
	for {
		open := strings.IndexByte(template, '{')
		if open < 0 {
			break
		}
		end := strings.IndexByte(template[open:], '}')
		if end < 0 {
			break
		}
		b.WriteString(template[:open])
		name := template[open+1 : open+end]
		template = template[open+end+1:]
		if name == "" { // "{}" is an empty JSON object
			b.WriteString("{}")
			continue
		}
		b.WriteString(m.placeholder(name))
	}
	b.WriteString(template)
	return b.String()
}

func (m *maker) placeholder(name string) string {
	alternatives := strings.Split(name, "|")
	for i, a := range alternatives {
		if fn, argument, ok := strings.Cut(a, ":"); ok {
			return m.function(fn, argument)
		}
		if v, ok := m.builtin(a); ok {
			return v
		}
		if v := m.value(a, i == len(alternatives)-1); v != "" {
			return v
		}
	}
	return ""
}

// value is the value at a path, made first where it must be. must: a name is invented when nothing gives one.
func (m *maker) value(path string, must bool) string {
	if !m.settled {
		m.resolve(path)
	}
	if v := getString(m.model, path); v != "" {
		return v
	}
	if _, given := get(m.model, path); given || !must || m.settled {
		return ""
	}
	m.write(path, m.fallback(path))
	return getString(m.model, path)
}

// function applies a named function to a value.
func (m *maker) function(fn, argument string) string {
	switch fn {
	case "lower":
		return strings.ToLower(m.value(argument, true))
	case "last":
		return afterLast(m.value(argument, true), "/:")
	case "after":
		marker, path, _ := strings.Cut(argument, ":")
		v := m.value(path, true)
		if _, rest, ok := strings.Cut(v, marker); ok {
			return rest
		}
		return afterLast(v, ":")
	case "dashed":
		v, ok := m.builtin(argument)
		if !ok {
			v = m.value(argument, true)
		}
		return strings.ReplaceAll(v, ".", "-")
	case "nohttps":
		return strings.TrimPrefix(m.value(argument, true), "https://")
	case "fifo":
		if getString(m.model, argument) == "true" {
			return ".fifo"
		}
		return ""
	case "iampath":
		if v := m.value(argument, false); v != "" {
			return v
		}
		return "/"
	case "fn": // the name in a function's name, ARN or partial ARN
		return functionName(m.value(argument, true))
	case "qualifier":
		if v := m.value(argument, false); v != "" {
			return ":" + v
		}
		return ""
	case "bus": // a rule of the default bus has no bus in its ARN
		v := afterLast(m.value(argument, false), "/")
		if v == "" || v == "default" {
			return ""
		}
		return v + "/"
	case "schedulegroup":
		if v := m.value(argument, false); v != "" {
			return v
		}
		return "default"
	case "statemachine": // the state machine whose versions an alias routes to
		var arn string
		visit(m.model, []string{argument, "*", "StateMachineVersionArn"}, func(v any) {
			if s, ok := v.(string); ok && arn == "" {
				arn = s
			}
		})
		if i := strings.LastIndexByte(arn, ':'); i > 0 {
			return arn[:i]
		}
		return m.expand("arn:{partition}:states:{region}:{account}:stateMachine:{mixed12}")
	case "slash": // a name that is a path or becomes one
		return "/" + strings.TrimPrefix(m.value(argument, true), "/")
	case "first":
		first, _, _ := strings.Cut(m.joined(argument, "\n"), "\n")
		return first
	case "joined":
		return m.joined(argument, ",")
	case "port": // -1 stands for all
		if v := m.value(argument, false); v != "" {
			return v
		}
		return "-1"
	case "sequence":
		n, err := m.sequence(m.caller.Account + " " + m.caller.Region + " " + m.t.Name + " " + m.value(argument, true))
		if err != nil {
			m.err = err
		}
		return fmt.Sprint(n)
	}
	m.err = fmt.Errorf("shape of %s: no function %q", m.t.Name, fn)
	return ""
}

// builtin expands placeholders that need no model.
func (m *maker) builtin(name string) (string, bool) {
	part, dns := partition(m.caller.Region)
	switch name {
	case "partition":
		return part, true
	case "dns":
		return dns, true
	case "region":
		return m.caller.Region, true
	case "account":
		return m.caller.Account, true
	case "label":
		if m.label == "" {
			return strings.ToLower(word(m.t.Name)), true
		}
		return m.label, true
	case "nothing":
		return "", true
	case "id":
		return m.physical, m.settled
	case "uuid":
		return fmt.Sprintf("%s-%s-4%s-%s%s-%s", m.random(hexDigits, 8), m.random(hexDigits, 4), m.random(hexDigits, 3),
			m.random("89ab", 1), m.random(hexDigits, 3), m.random(hexDigits, 12)), true
	case "ip":
		return fmt.Sprintf("%d.%d.%d.%d", []int{3, 18, 34, 44, 52, 54}[m.rng.IntN(6)], m.rng.IntN(256), m.rng.IntN(256), 1+m.rng.IntN(254)), true
	case "privateip":
		return fmt.Sprintf("10.0.%d.%d", m.rng.IntN(256), 4+m.rng.IntN(251)), true
	case "now":
		return m.now.UTC().Format("2006-01-02T15:04:05.000Z"), true
	case "streamtime":
		return m.now.UTC().Format("2006-01-02T15:04:05.000"), true
	case "epoch":
		return fmt.Sprint(m.now.Unix()), true
	case "lbkind":
		return map[string]string{"network": "net", "gateway": "gwy"}[getString(m.model, "Type")] + map[bool]string{true: "app"}[getString(m.model, "Type") == "" || getString(m.model, "Type") == "application"], true
	case "gatewaykind":
		if getString(m.model, "VpnGatewayId") != "" {
			return "VGW", true
		}
		return "IGW", true
	case "dbport":
		if strings.Contains(getString(m.model, "Engine"), "postgres") {
			return "5432", true
		}
		return "3306", true
	case "redshiftport":
		return "5439", true
	case "wafscope":
		if getString(m.model, "Scope") == "CLOUDFRONT" {
			return "global", true
		}
		return "regional", true
	case "wafregion":
		if getString(m.model, "Scope") == "CLOUDFRONT" {
			return "us-east-1", true
		}
		return m.caller.Region, true
	}
	for _, set := range []struct{ prefix, alphabet string }{
		{"hex", hexDigits}, {"alnum", lowerDigits}, {"letters", lowerDigits[:26]}, {"upper", upperDigits}, {"digits", digits[1:]}, {"mixed", mixedDigits},
	} {
		count, ok := strings.CutPrefix(name, set.prefix)
		if !ok {
			continue
		}
		var n int
		if _, err := fmt.Sscanf(count, "%d", &n); err == nil && fmt.Sprint(n) == count {
			return m.random(set.alphabet, n), true
		}
	}
	return "", false
}

const (
	digits      = "0123456789"
	hexDigits   = digits + "abcdef"
	lowerDigits = "abcdefghijklmnopqrstuvwxyz" + digits
	upperDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZ" + digits
	mixedDigits = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ" + digits
)

func (m *maker) random(alphabet string, n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = alphabet[m.rng.IntN(len(alphabet))]
	}
	return string(b)
}

func afterLast(s, separators string) string {
	return s[strings.LastIndexAny(s, separators)+1:]
}

// functionName takes the name out of a Lambda function's name, partial or full ARN, with or without a qualifier.
func functionName(s string) string {
	if _, rest, ok := strings.Cut(s, ":function:"); ok {
		s = rest
	}
	name, _, _ := strings.Cut(s, ":")
	return name
}
