package template

import (
	"regexp"
	"slices"
	"strings"
)

// parameterMembers are the members of a parameter declaration
// (https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/parameters-section-structure.html).
var parameterMembers = []string{"Type", "Default", "AllowedValues", "AllowedPattern", "ConstraintDescription", "Description", "MaxLength", "MaxValue", "MinLength", "MinValue", "NoEcho"}

// awsType matches the AWS-specific parameter types, AWS::EC2::VPC::Id and its like
// (https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/cloudformation-supplied-parameter-types.html).
var awsType = regexp.MustCompile(`^AWS::[A-Za-z0-9]+::[A-Za-z0-9]+(::[A-Za-z0-9]+)*$`)

const (
	ssmValuePrefix = "AWS::SSM::Parameter::Value<"
	typeNumber     = "Number"
	typeNumbers    = "List<Number>"
)

// SSMType returns what the SSM parameter holds ("String", "List<AWS::EC2::Subnet::Id>") when the
// parameter's type is AWS::SSM::Parameter::Value<…>: its own value is then the name of an SSM parameter.
func (p *Parameter) SSMType() (inner string, ok bool) {
	inner, ok = strings.CutPrefix(p.Type, ssmValuePrefix)
	return strings.TrimSuffix(inner, ">"), ok
}

// IsList reports whether a reference to the parameter gives a list.
func (p *Parameter) IsList() bool {
	typ := p.Type
	if inner, ok := p.SSMType(); ok {
		typ = inner
	}
	return isListType(typ)
}

func isListType(typ string) bool {
	return typ == "CommaDelimitedList" || strings.HasPrefix(typ, "List<")
}

func knownType(typ string) bool {
	if inner, ok := strings.CutPrefix(typ, ssmValuePrefix); ok {
		inner, closed := strings.CutSuffix(inner, ">")
		// An SSM parameter holds text or a list of texts; numbers are not among the supported types.
		return closed && !strings.Contains(inner, "SSM") && inner != typeNumber && inner != typeNumbers && knownType(inner)
	}
	if inner, ok := strings.CutPrefix(typ, "List<"); ok {
		inner, closed := strings.CutSuffix(inner, ">")
		return closed && (inner == "String" || inner == typeNumber || awsType.MatchString(inner))
	}
	return typ == "String" || typ == typeNumber || typ == "CommaDelimitedList" || awsType.MatchString(typ)
}

func (p *parser) parameter(name string, v any) *Parameter {
	path := "Parameters." + name
	m, ok := v.(map[string]any)
	if !ok {
		p.fail(path, "the parameter is not an object", "found "+kindOf(v))
		return nil
	}
	if !logicalName.MatchString(name) {
		p.fail(path, "the parameter's name is not alphanumeric", "letters A-Z, a-z and digits are allowed")
	}
	param := &Parameter{Name: name}
	if _, ok := m["Type"]; !ok {
		p.fail(path+".Type", "the parameter has no Type", "")
	}
	for _, key := range sortedKeys(m) {
		v, path := m[key], path+"."+key
		switch key {
		case "Type":
			if param.Type = p.str(v, path); param.Type != "" && !knownType(param.Type) {
				p.fail(path, "unknown parameter type", didYouMean(param.Type, []string{"String", typeNumber, typeNumbers, "CommaDelimitedList"}))
			}
		case "Default":
			if _, ok := scalarText(v); !ok {
				p.fail(path, "a Default is a string, a number or a boolean", "found "+kindOf(v))
			}
			param.Default = v
		case "AllowedValues":
			list, ok := v.([]any)
			if !ok || len(list) == 0 {
				p.fail(path, "AllowedValues is a list of values", "found "+kindOf(v))
			}
			for i, e := range list {
				if _, ok := scalarText(e); !ok {
					p.fail(item(path, i), "an allowed value is a string, a number or a boolean", "found "+kindOf(e))
				}
			}
			param.AllowedValues = list
		case "AllowedPattern":
			param.AllowedPattern = p.str(v, path)
			if _, err := compilePattern(param.AllowedPattern); err != nil {
				p.fail(path, "the pattern is not a regular expression", err.Error())
			}
		case "ConstraintDescription":
			param.ConstraintDescription, _ = scalarText(v)
		case "Description":
			param.Description, _ = scalarText(v)
		case "MinLength":
			param.MinLength = p.wholeNumber(v, path)
		case "MaxLength":
			param.MaxLength = p.wholeNumber(v, path)
		case "MinValue":
			param.MinValue = p.number(v, path)
		case "MaxValue":
			param.MaxValue = p.number(v, path)
		case "NoEcho":
			text, _ := scalarText(v)
			if text = strings.ToLower(text); text != "true" && text != "false" {
				p.fail(path, "NoEcho is true or false", "found "+kindOf(v))
			}
			param.NoEcho = text == "true"
		default:
			if !slices.Contains(parameterMembers, key) {
				p.fail(path, "unknown member of a parameter", didYouMean(key, parameterMembers))
			}
		}
	}
	return param
}
