package macro

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"

	"github.com/slipway-cdk/slipway/pkg/diag"
	"github.com/slipway-cdk/slipway/pkg/template"
)

// placeholders gives the parameters of the change set their values: the supplied one, else the one that was kept from an
// earlier deploy, unless it is a secret; nothing where there is a Default; else a placeholder that the constraints
// accept. The result is sorted by name.
func placeholders(req Request) ([]types.Parameter, error) {
	declared, err := declaredParameters(req.Body)
	if err != nil {
		return nil, err
	}
	var out []types.Parameter
	var ds diag.Diagnostics
	for _, p := range declared {
		value, supplied := req.Parameters[p.Name]
		if kept, ok := req.Kept[p.Name]; ok && !supplied && accepts(p, kept) {
			value, supplied = kept, true
		}
		switch {
		case supplied && !p.NoEcho:
		case p.Default != nil:
			continue
		default:
			var ok bool
			if value, ok = placeholder(p); !ok {
				ds = append(ds, diag.Diagnostic{
					Severity: diag.Error, Path: "Parameters." + p.Name, Summary: "parameter " + p.Name + " needs a value before the macros can run",
					Detail: "no placeholder satisfies its constraints", Next: "Supply it: --parameters " + p.Name + "=…, or give it a Default.",
				})
				continue
			}
		}
		out = append(out, types.Parameter{ParameterKey: aws.String(p.Name), ParameterValue: aws.String(value)})
	}
	return out, ds.Err()
}

// declaredParameters reads the Parameters of a template whose other sections may have any shape.
func declaredParameters(body []byte) ([]*template.Parameter, error) {
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	var root map[string]any
	if err := dec.Decode(&root); err != nil {
		return nil, err
	}
	section, _ := root["Parameters"].(map[string]any)
	delete(section, "Fn::Transform")
	if len(section) == 0 {
		return nil, nil
	}
	t, err := template.FromDocument(map[string]any{
		"Parameters": section, "Resources": map[string]any{"Any": map[string]any{"Type": "AWS::CloudFormation::WaitConditionHandle"}},
	}, nil)
	if err != nil {
		return nil, err
	}
	out := make([]*template.Parameter, 0, len(t.Parameters))
	for _, p := range t.Parameters {
		out = append(out, p)
	}
	slices.SortFunc(out, func(a, b *template.Parameter) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

// placeholder finds a value that the parameter's constraints accept. There is none for the name of an SSM parameter:
// CloudFormation reads it.
func placeholder(p *template.Parameter) (string, bool) {
	if _, ssm := p.SSMType(); ssm {
		return "", false
	}
	candidates := typed(p.Type)
	for _, a := range p.AllowedValues {
		switch a := a.(type) {
		case string:
			candidates = append(candidates, a)
		case json.Number:
			candidates = append(candidates, a.String())
		case bool:
			candidates = append(candidates, strconv.FormatBool(a))
		}
	}
	for _, bound := range []*float64{p.MinValue, p.MaxValue} {
		if bound != nil {
			candidates = append(candidates, strconv.FormatFloat(*bound, 'f', -1, 64))
		}
	}
	if p.MinLength != nil {
		candidates = append(candidates, strings.Repeat("x", min(*p.MinLength, 4096)))
	}
	if p.MaxLength != nil {
		candidates = append(candidates, strings.Repeat("x", min(max(*p.MaxLength, 0), 4)))
	}
	candidates = append(candidates, "1", "1.0.0.0", "10.0.0.0/16", "example.com", "user@example.com", "Placeholder1!", "https://example.com/")
	for _, value := range candidates {
		if accepts(p, value) {
			return value, true
		}
	}
	return "", false
}

// accepts reports whether a parameter's declaration allows a value.
func accepts(p *template.Parameter, value string) bool {
	alone := &template.Template{Parameters: map[string]*template.Parameter{p.Name: p}}
	_, ds := alone.BindParameters(map[string]string{p.Name: value}, map[string]any{template.SSMFact(value): ""})
	return !ds.HasErrors()
}

// typed lists values that look like what an AWS-specific type names. CloudFormation looks most of them up and says so
// when they do not exist.
func typed(typ string) []string {
	inner := strings.TrimSuffix(strings.TrimPrefix(typ, "List<"), ">")
	switch inner {
	case "Number":
		return []string{"1"}
	case "AWS::EC2::VPC::Id":
		return []string{"vpc-00000000000000000"}
	case "AWS::EC2::Subnet::Id":
		return []string{"subnet-00000000000000000"}
	case "AWS::EC2::SecurityGroup::Id":
		return []string{"sg-00000000000000000"}
	case "AWS::EC2::Image::Id":
		return []string{"ami-00000000000000000"}
	case "AWS::EC2::Instance::Id":
		return []string{"i-00000000000000000"}
	case "AWS::EC2::Volume::Id":
		return []string{"vol-00000000000000000"}
	case "AWS::Route53::HostedZone::Id":
		return []string{"Z00000000000000000000"}
	}
	return []string{"placeholder"}
}
