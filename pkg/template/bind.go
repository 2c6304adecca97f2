package template

import (
	"encoding/json"
	"fmt"
	"math/big"
	"strings"
	"unicode/utf16"

	"github.com/slipway-cdk/slipway/pkg/diag"
)

// SSMFact is the key under which BindParameters finds the value of an SSM parameter.
func SSMFact(name string) string { return "ssm:" + name }

// BindParameters gives every parameter its value: the supplied text, else its Default, else an error that
// names the parameter. Supplied values and defaults are coerced alike by the parameter's type
// (https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/parameters-section-structure.html):
//
//   - String and the AWS-specific types give the text.
//   - Number gives a json.Number, or the text itself where it is a number that JSON has no notation for
//     ("007"): CloudFormation passes it on as it was written.
//   - CommaDelimitedList and List<…> give a list of the trimmed items ([]any of strings, of numbers for
//     List<Number>). Empty text gives a list of one empty string, as in CloudFormation.
//   - AWS::SSM::Parameter::Value<…> gives facts[SSMFact(name)], a string or a list; list types split it.
//     One that nothing but Rules refers to is not bound at all (SSMParameters).
//
// Constraints are checked on each item of a list, and on the name for SSM types. The diagnostics name
// parameters and constraints, never values.
func (t *Template) BindParameters(supplied map[string]string, facts map[string]any) (map[string]any, diag.Diagnostics) {
	var ds diag.Diagnostics
	names := sortedKeys(t.Parameters)
	for _, name := range sortedKeys(supplied) {
		if t.Parameters[name] == nil {
			ds = append(ds, diag.Diagnostic{Severity: diag.Error, Summary: "unknown parameter " + name, Detail: didYouMean(name, names), Path: "Parameters." + name,
				Next: "Supply only parameters that the template declares."})
		}
	}
	used := t.usedParameters()
	bound := map[string]any{}
	for _, name := range names {
		p := t.Parameters[name]
		_, ssm := p.SSMType()
		if ssm && !used[name] {
			continue
		}
		text, ok := supplied[name]
		if !ok {
			if p.Default == nil {
				ds = append(ds, p.problem("the parameter has no value", "it was not supplied and has no Default", "Supply it: --parameters "+name+"=…"))
				continue
			}
			text, _ = scalarText(p.Default)
		}
		v, problems := p.bind(text, facts)
		if ds = append(ds, problems...); !problems.HasErrors() {
			bound[name] = v
		}
	}
	return bound, ds
}

// SSMParameters lists, sorted, the names of the SSM parameters whose values BindParameters will need: those
// of the AWS::SSM::Parameter::Value<…> parameters that Resources, Outputs or Conditions refer to. The CDK's
// BootstrapVersion is only referred to by Rules and is not among them.
func SSMParameters(t *Template, supplied map[string]string) []string {
	used := t.usedParameters()
	set := map[string]bool{}
	for name, p := range t.Parameters {
		if _, ssm := p.SSMType(); !ssm || !used[name] {
			continue
		}
		text, ok := supplied[name]
		if !ok {
			text, ok = scalarText(p.Default)
		}
		if ok && text != "" {
			set[text] = true
		}
	}
	return sortedKeys(set)
}

// usedParameters is the set of parameters that Resources, Outputs or Conditions refer to. The whole document is
// read, not the model: what is yet to be expanded uses parameters too.
func (t *Template) usedParameters() map[string]bool {
	used := map[string]bool{}
	for _, section := range []string{"Resources", "Outputs", "Conditions"} {
		WalkReferences(t.Document[section], section, func(r Reference) {
			if t.Parameters[r.Target] != nil {
				used[r.Target] = true
			}
		})
	}
	return used
}

func (p *Parameter) problem(summary, detail, next string) diag.Diagnostic {
	return diag.Diagnostic{Severity: diag.Error, Summary: "parameter " + p.Name + ": " + summary, Detail: detail, Path: "Parameters." + p.Name, Next: next}
}

func (p *Parameter) bind(text string, facts map[string]any) (any, diag.Diagnostics) {
	inner, ssm := p.SSMType()
	typ := p.Type
	if ssm {
		typ = "String" // what is written is a name; constraints are on the name
	}
	items := []string{text}
	if isListType(typ) {
		items = splitList(text)
	}
	var ds diag.Diagnostics
	values := make([]any, len(items))
	for i, s := range items {
		values[i] = s
		if typ == typeNumber || typ == typeNumbers {
			number, inJSON := isNumber(s)
			if !number {
				ds = append(ds, p.problem("the value is not a number", "its type is "+p.Type, ""))
				continue
			}
			if inJSON {
				values[i] = json.Number(s)
			}
		}
		if d, bad := p.check(s, typ); bad {
			ds = append(ds, d)
		}
	}
	if ds.HasErrors() {
		return nil, ds
	}
	if !ssm {
		if isListType(typ) {
			return values, nil
		}
		return values[0], nil
	}
	fact, ok := facts[SSMFact(text)]
	if !ok {
		return nil, diag.Diagnostics{p.problem("the SSM parameter that it names was not found", "SSM parameter "+text, "Create the SSM parameter in the stack's account and region, or supply the name of another.")}
	}
	v, err := ssmValue(fact, isListType(inner))
	if err != "" {
		return nil, diag.Diagnostics{p.problem("the SSM parameter's value does not fit", err, "")}
	}
	return v, nil
}

func ssmValue(fact any, list bool) (v any, problem string) {
	switch f := fact.(type) {
	case string:
		if !list {
			return f, ""
		}
		return anyList(splitList(f)), ""
	case []string:
		if list {
			return anyList(f), ""
		}
		return strings.Join(f, ","), ""
	case []any:
		texts := make([]string, len(f))
		for i, e := range f {
			s, ok := scalarText(e)
			if !ok {
				return nil, "an item of its list is " + kindOf(e)
			}
			texts[i] = s
		}
		return ssmValue(texts, list)
	}
	return nil, "it is " + kindOf(fact)
}

func anyList(texts []string) []any {
	out := make([]any, len(texts))
	for i, s := range texts {
		out[i] = s
	}
	return out
}

func splitList(text string) []string {
	items := strings.Split(text, ",")
	for i := range items {
		items[i] = strings.TrimSpace(items[i])
	}
	return items
}

// check applies the parameter's constraints to one value.
func (p *Parameter) check(text, typ string) (diag.Diagnostic, bool) {
	violated := func(detail string) (diag.Diagnostic, bool) {
		if p.ConstraintDescription != "" {
			detail += "; " + p.ConstraintDescription
		}
		return p.problem("the value does not satisfy a constraint", detail, "Supply a value that the template allows."), true
	}
	if len(p.AllowedValues) > 0 {
		found := false
		var allowed []string
		for _, a := range p.AllowedValues {
			s, _ := scalarText(a)
			allowed = append(allowed, s)
			found = found || s == text
		}
		if !found {
			if p.NoEcho {
				return violated("AllowedValues")
			}
			return violated("AllowedValues: " + strings.Join(allowed, ", "))
		}
	}
	if p.AllowedPattern != "" && typ != typeNumber && typ != typeNumbers {
		re, err := compilePattern(p.AllowedPattern)
		if err != nil {
			return violated(err.Error())
		}
		ok, err := re.match(text)
		if err != nil {
			return violated("AllowedPattern: matching it took longer than " + patternTimeout.String())
		}
		if !ok {
			return violated("AllowedPattern: " + p.AllowedPattern)
		}
	}
	// Java, which CloudFormation counts in, counts UTF-16 units.
	if length := len(utf16.Encode([]rune(text))); typ == "String" {
		if p.MinLength != nil && length < *p.MinLength {
			return violated(fmt.Sprintf("MinLength: %d", *p.MinLength))
		}
		if p.MaxLength != nil && length > *p.MaxLength {
			return violated(fmt.Sprintf("MaxLength: %d", *p.MaxLength))
		}
	}
	if typ == typeNumber || typ == typeNumbers {
		n, _, err := big.ParseFloat(text, 10, 256, big.ToNearestEven)
		if err != nil {
			return violated("it is not a number")
		}
		if p.MinValue != nil && n.Cmp(big.NewFloat(*p.MinValue)) < 0 {
			return violated(fmt.Sprintf("MinValue: %v", *p.MinValue))
		}
		if p.MaxValue != nil && n.Cmp(big.NewFloat(*p.MaxValue)) > 0 {
			return violated(fmt.Sprintf("MaxValue: %v", *p.MaxValue))
		}
	}
	return diag.Diagnostic{}, false
}
