package sandbox

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/slipway-cdk/slipway/pkg/schema"
)

// stack deploys one template straight into a sandbox: just enough of CloudFormation to show the sandbox real
// models in dependency order. It is the sandbox's own, so that the two can't share a mistake with the engine.
type stack struct {
	b        *bench
	name     string
	template map[string]any
	exports  map[string]any // shared by the stacks of an app

	refs       map[string]string
	attributes map[string]map[string]any
	order      []string // logical ids as created
	types      map[string]string
	ids        map[string]string
}

func (s *stack) resources() map[string]any {
	m, _ := s.template["Resources"].(map[string]any)
	return m
}

var placeholderPattern = regexp.MustCompile(`\$\{([^!}][^}]*)\}`)

// dependencies lists the logical ids that a value mentions.
func (s *stack) dependencies(v any, into map[string]bool) {
	mention := func(id string) {
		id, _, _ = strings.Cut(id, ".")
		if _, ok := s.resources()[id]; ok {
			into[id] = true
		}
	}
	switch v := v.(type) {
	case map[string]any:
		if id, ok := v["Ref"].(string); ok {
			mention(id)
		}
		switch get := v["Fn::GetAtt"].(type) {
		case string:
			mention(get)
		case []any:
			if id, ok := get[0].(string); ok {
				mention(id)
			}
		}
		sub, _ := v["Fn::Sub"].(string)
		if l, ok := v["Fn::Sub"].([]any); ok {
			sub, _ = l[0].(string)
		}
		for _, m := range placeholderPattern.FindAllStringSubmatch(sub, -1) {
			mention(m[1])
		}
		for _, e := range v {
			s.dependencies(e, into)
		}
	case []any:
		for _, e := range v {
			s.dependencies(e, into)
		}
	}
}

// noValue stands for AWS::NoValue.
type noValue struct{}

func (s *stack) resolve(v any) any {
	switch v := v.(type) {
	case map[string]any:
		if len(v) == 1 {
			for k, arg := range v {
				if k == "Ref" || strings.HasPrefix(k, "Fn::") && k != "Fn::Transform" {
					return s.call(k, arg)
				}
			}
		}
		out := map[string]any{}
		for k, e := range v {
			if r := s.resolve(e); r != (noValue{}) {
				out[k] = r
			}
		}
		return out
	case []any:
		out := []any{}
		for _, e := range v {
			if r := s.resolve(e); r != (noValue{}) {
				out = append(out, r)
			}
		}
		return out
	}
	return v
}

func text(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case json.Number, bool:
		return fmt.Sprint(v)
	}
	return encode(v)
}

func (s *stack) call(fn string, arg any) any {
	if fn == "Fn::If" {
		l := arg.([]any)
		if s.condition(l[0].(string)) {
			return s.resolve(l[1])
		}
		return s.resolve(l[2])
	}
	if fn == "Fn::Sub" {
		format, vars := "", map[string]any{}
		if l, ok := arg.([]any); ok {
			format = l[0].(string)
			vars, _ = s.resolve(l[1]).(map[string]any)
		} else {
			format = arg.(string)
		}
		out := placeholderPattern.ReplaceAllStringFunc(format, func(m string) string {
			name := m[2 : len(m)-1]
			if v, ok := vars[name]; ok {
				return text(v)
			}
			if id, attribute, ok := strings.Cut(name, "."); ok {
				return text(s.attribute(id, attribute))
			}
			return text(s.ref(name))
		})
		return strings.ReplaceAll(out, "${!", "${")
	}
	arg = s.resolve(arg)
	list, _ := arg.([]any)
	switch fn {
	case "Ref":
		return s.ref(arg.(string))
	case "Fn::GetAtt":
		if name, ok := arg.(string); ok {
			id, attribute, _ := strings.Cut(name, ".")
			return s.attribute(id, attribute)
		}
		return s.attribute(list[0].(string), text(list[1]))
	case "Fn::Join":
		var parts []string
		items, _ := list[1].([]any)
		for _, e := range items {
			parts = append(parts, text(e))
		}
		return strings.Join(parts, list[0].(string))
	case "Fn::Select":
		n, _ := strconv.Atoi(text(list[0]))
		if items, ok := list[1].([]any); ok && n < len(items) {
			return items[n]
		}
		return "none"
	case "Fn::Split":
		var out []any
		for _, p := range strings.Split(text(list[1]), list[0].(string)) {
			out = append(out, p)
		}
		return out
	case "Fn::GetAZs":
		return []any{"us-east-1a", "us-east-1b", "us-east-1c"}
	case "Fn::ImportValue":
		if v, ok := s.exports[text(arg)]; ok {
			return v
		}
		return "imported-" + text(arg)
	case "Fn::FindInMap":
		m, _ := s.template["Mappings"].(map[string]any)
		for _, k := range list[:2] {
			m, _ = m[text(k)].(map[string]any)
		}
		return m[text(list[2])]
	case "Fn::Base64":
		return text(arg)
	case "Fn::Cidr":
		return []any{"10.0.0.0/24", "10.0.1.0/24", "10.0.2.0/24", "10.0.3.0/24"}
	}
	return arg
}

func (s *stack) condition(name string) bool {
	conditions, _ := s.template["Conditions"].(map[string]any)
	return s.truth(conditions[name])
}

func (s *stack) truth(v any) bool {
	m, _ := v.(map[string]any)
	for k, arg := range m {
		list, _ := arg.([]any)
		switch k {
		case "Condition":
			return s.condition(arg.(string))
		case "Fn::Equals":
			return text(s.resolve(list[0])) == text(s.resolve(list[1]))
		case "Fn::Not":
			return !s.truth(list[0])
		case "Fn::And":
			return !slices.ContainsFunc(list, func(e any) bool { return !s.truth(e) })
		case "Fn::Or":
			return slices.ContainsFunc(list, s.truth)
		}
	}
	return false
}

func (s *stack) ref(name string) any {
	switch name {
	case "AWS::AccountId":
		return DefaultAccount
	case "AWS::Region":
		return DefaultRegion
	case "AWS::Partition":
		return "aws"
	case "AWS::URLSuffix":
		return "amazonaws.com"
	case "AWS::StackName":
		return s.name
	case "AWS::StackId":
		return "arn:aws:cloudformation:us-east-1:123456789012:stack/" + s.name + "/00000000-0000-4000-8000-000000000000"
	case "AWS::NoValue":
		return noValue{}
	case "AWS::NotificationARNs":
		return []any{}
	}
	if v, ok := s.refs[name]; ok {
		return v
	}
	parameters, _ := s.template["Parameters"].(map[string]any)
	p, _ := parameters[name].(map[string]any)
	value := text(p["Default"])
	if p["Default"] == nil {
		value = "parameter"
	}
	if kind, _ := p["Type"].(string); strings.HasPrefix(kind, "AWS::SSM") && strings.Contains(kind, "Image") {
		return "ami-0123456789abcdef0"
	} else if kind == "CommaDelimitedList" || strings.HasPrefix(kind, "List<") {
		var out []any
		for _, e := range strings.Split(value, ",") {
			out = append(out, strings.TrimSpace(e))
		}
		return out
	}
	return value
}

func (s *stack) attribute(id, name string) any {
	path := strings.ReplaceAll(name, ".", "/")
	for _, p := range []string{path, name} {
		if v, ok := get(s.attributes[id], p); ok {
			return v
		}
	}
	if _, ok := s.refs[id]; ok {
		s.b.t.Errorf("%s: %s has no attribute %s", s.name, s.types[id], name)
	}
	return "unknown"
}

// coerce turns scalars into the kind that the schema wants, as CloudFormation does before it calls a handler.
func coerce(t *schema.Type, p *schema.Property, v any) any {
	if p == nil {
		return v
	}
	switch x := v.(type) {
	case map[string]any:
		def := t.Definitions[p.Ref]
		for _, a := range p.Alternatives {
			if a.Kind == schema.KindObject && def == nil {
				def = t.Definitions[a.Ref]
			}
		}
		for k := range x {
			switch {
			case def != nil:
				x[k] = coerce(t, def.Properties[k], x[k])
			case p.Kind == schema.KindMap:
				x[k] = coerce(t, p.Elem, x[k])
			}
		}
	case []any:
		for i := range x {
			x[i] = coerce(t, p.Elem, x[i])
		}
	case string:
		switch {
		case (p.Kind == schema.KindInteger || p.Kind == schema.KindNumber) && x != "" && strings.Trim(x, "0123456789.-") == "":
			return json.Number(x)
		case p.Kind == schema.KindBoolean && (strings.EqualFold(x, "true") || strings.EqualFold(x, "false")):
			return strings.EqualFold(x, "true")
		}
	case json.Number, bool:
		if p.Kind == schema.KindString {
			return fmt.Sprint(x)
		}
	}
	return v
}
