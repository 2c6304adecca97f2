package intrinsic

import (
	"strings"

	"github.com/slipway-cdk/slipway/pkg/template"
)

// ref evaluates Ref: a pseudo parameter, a parameter or a resource
// (https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/intrinsic-function-reference-ref.html).
func (e *evaluation) ref(arg any, path string) any {
	if m, ok := arg.(map[string]any); ok {
		arg = e.value(m, path) // AWS::LanguageExtensions allows a computed name
		if b, stop := blocked(arg); stop {
			return b
		}
	}
	name, ok := arg.(string)
	if !ok {
		return e.fail(path, "Ref takes a name", "found "+kindOf(arg))
	}
	return e.named(name, path)
}

func (e *evaluation) named(name, path string) any {
	if template.IsPseudo(name) {
		v, ok := e.scope.Pseudo.Value(name)
		if !ok {
			return e.fail(path, "unknown pseudo parameter "+name, e.suggest(name, template.PseudoParameters()))
		}
		return v
	}
	if v, ok := e.scope.Parameters[name]; ok {
		return v
	}
	if t := e.scope.Template; t != nil && t.IsParameter(name) {
		return e.fail(path, "the parameter "+name+" has no value", "")
	}
	if e.place != inProperties {
		return e.fail(path, "unknown parameter "+name, e.refersOutside(name))
	}
	r, problem := e.resource(name, path, name)
	if problem != nil {
		return problem
	}
	v, err := refValue(e.scope, r)
	if err != "" {
		return e.failf(path, "the reference to "+name+" has no value", "%s (%s)", err, r.Type)
	}
	return v
}

func (e *evaluation) refersOutside(name string) string {
	if t := e.scope.Template; t != nil {
		if t.Resources[name] != nil {
			return "it is a resource, and this is evaluated before any resource exists"
		}
		return e.suggest(name, append(sortedKeys(t.Parameters), template.PseudoParameters()...))
	}
	return ""
}

// resource finds a resource that can be read. Otherwise problem is what the reference evaluates to: an
// Unknown named waitsFor, or a failure.
func (e *evaluation) resource(name, path, waitsFor string) (r Resource, problem any) {
	r, recorded := e.scope.Resources[name]
	t := e.scope.Template
	if t != nil {
		declared := t.Resources[name]
		if declared == nil && !recorded {
			names := append(sortedKeys(t.Resources), sortedKeys(t.Parameters)...)
			return r, e.fail(path, "nothing is called "+name, e.suggest(name, names))
		}
		if declared != nil && !t.Live(name, e.scope.Conditions) {
			return r, e.fail(path, "the resource "+name+" is not created", "its condition "+declared.Condition+" is false")
		}
	} else if !recorded {
		return r, e.fail(path, "nothing is called "+name, e.suggest(name, sortedKeys(e.scope.Resources)))
	}
	if !recorded || r.Pending {
		return r, unknown([]string{waitsFor})
	}
	if r.Type == "" && t != nil && t.Resources[name] != nil {
		r.Type = t.Resources[name].Type
	}
	return r, nil
}

// getAtt evaluates Fn::GetAtt
// (https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/intrinsic-function-reference-getatt.html).
func (e *evaluation) getAtt(arg any, path string) any {
	if list, ok := arg.([]any); ok && len(list) == 2 {
		name := e.value(list[0], item(path, 0)) // computed names: AWS::LanguageExtensions
		attribute := e.value(list[1], item(path, 1))
		if b, stop := blocked(name, attribute); stop {
			return b
		}
		arg = []any{name, attribute}
	}
	name, attribute, ok := template.GetAttTarget(arg)
	attr, isText := attribute.(string)
	if !ok || !isText {
		return e.fail(path, "Fn::GetAtt takes a logical ID and an attribute name", "found "+kindOf(arg))
	}
	return e.attribute(name, attr, path)
}

func (e *evaluation) attribute(name, attr, path string) any {
	if t := e.scope.Template; t != nil && t.IsParameter(name) && t.Resources[name] == nil {
		return e.fail(path, name+" is a parameter and has no attributes", "use Ref")
	}
	r, problem := e.resource(name, path, name+"."+attr)
	if problem != nil {
		return problem
	}
	v, ok := Attribute(e.scope, r, attr)
	if !ok {
		detail := "it is not recorded and can't be derived"
		if s := e.suggest(attr, e.attributesOf(r)); s != "" {
			detail += "; " + s
		}
		return e.failf(path, r.Type+" "+name+" has no attribute "+attr, "%s", detail)
	}
	return v
}

func (e *evaluation) attributesOf(r Resource) []string {
	names := sortedKeys(r.Attributes)
	if t, ok := e.scope.lookupSchema(r.Type); ok {
		names = append(names, sortedKeys(t.Attributes)...)
	}
	return names
}

// sub evaluates Fn::Sub. A placeholder that can't be filled is an error; cdkd leaves it in the text.
func (e *evaluation) sub(arg any, path string) any {
	if list, ok := arg.([]any); ok && len(list) == 1 {
		arg = list[0]
	}
	body, vars, ok := template.SubArguments(arg)
	if !ok {
		return e.fail(path, "Fn::Sub takes a string, or a list of a string and a map", "found "+kindOf(arg))
	}
	parts, err := template.ParseSub(body)
	if err != nil {
		return e.fail(path, "malformed Fn::Sub", err.Error())
	}
	values := map[string]any{}
	for _, k := range sortedKeys(vars) {
		values[k] = e.value(vars[k], child(item(path, 1), k))
	}
	var out strings.Builder
	var operands []any
	for _, part := range parts {
		if part.Name == "" {
			out.WriteString(part.Text)
			continue
		}
		v := e.placeholder(part, values, path)
		if _, stop := blocked(v); stop {
			operands = append(operands, v)
			continue
		}
		s, ok := text(v)
		if !ok {
			operands = append(operands, e.fail(path, "the value of ${"+part.Name+"} is not text", "found "+kindOf(v)))
			continue
		}
		out.WriteString(s)
	}
	if b, stop := blocked(operands...); stop {
		return b
	}
	return out.String()
}

func (e *evaluation) placeholder(part template.SubPart, vars map[string]any, path string) any {
	if v, own := vars[part.Name]; own {
		return v
	}
	if part.Attribute == "" {
		return e.named(part.Name, path)
	}
	if e.place != inProperties {
		return e.fail(path, "attributes can't be read here", placeNames[e.place])
	}
	return e.attribute(part.Target, part.Attribute, path)
}
