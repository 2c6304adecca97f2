package intrinsic

import (
	"encoding/json"
	"strings"
)

// findInMap evaluates Fn::FindInMap, with the DefaultValue and the computed names of AWS::LanguageExtensions
// (https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/intrinsic-function-reference-findinmap.html).
func (e *evaluation) findInMap(arg any, path string) any {
	list, ok := e.arguments(arg, path, 3, 4, "the names of a mapping, a top-level key and a second-level key")
	if !ok {
		return failed{}
	}
	var names [3]string
	var operands []any
	for i := range names {
		v := e.value(list[i], item(path, i))
		if _, stop := blocked(v); stop {
			operands = append(operands, v)
		} else if names[i], ok = text(v); !ok {
			operands = append(operands, e.fail(item(path, i), "the key of a mapping is not a string", "found "+kindOf(v)))
		}
	}
	if b, stop := blocked(operands...); stop {
		return b
	}
	var fallback any
	hasFallback := false
	if len(list) == 4 {
		if m, isMap := list[3].(map[string]any); isMap && len(m) == 1 {
			fallback, hasFallback = m["DefaultValue"]
		}
		if !hasFallback {
			return e.fail(item(path, 3), "the fourth argument is an object with a DefaultValue", "found "+kindOf(list[3]))
		}
	}
	v, problem, detail := e.lookupMapping(names)
	if problem == "" {
		return e.value(v, path)
	}
	if hasFallback {
		return e.value(fallback, child(item(path, 3), "DefaultValue"))
	}
	return e.fail(path, problem, detail)
}

func (e *evaluation) lookupMapping(names [3]string) (v any, problem, detail string) {
	var mappings map[string]any
	if e.scope.Template != nil {
		mappings = e.scope.Template.Mappings
	}
	top, ok := mappings[names[0]].(map[string]any)
	if !ok {
		return nil, "unknown mapping", e.suggest(names[0], sortedKeys(mappings))
	}
	second, ok := top[names[1]].(map[string]any)
	if !ok {
		return nil, "the mapping " + names[0] + " has no such top-level key", e.suggest(names[1], sortedKeys(top))
	}
	if v, ok = second[names[2]]; !ok {
		return nil, "the mapping " + names[0] + " has no such second-level key", e.suggest(names[2], sortedKeys(second))
	}
	return v, "", ""
}

// getAZs evaluates Fn::GetAZs: the zones of a region, of the stack's own for ""
// (https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/intrinsic-function-reference-getavailabilityzones.html).
func (e *evaluation) getAZs(arg any, path string) any {
	v := e.value(arg, path)
	if b, stop := blocked(v); stop {
		return b
	}
	region, ok := v.(string)
	if !ok {
		return e.fail(path, "Fn::GetAZs takes the name of a region", "found "+kindOf(v))
	}
	if region == "" {
		region = e.scope.Pseudo.Region
	}
	zones := e.scope.Zones[region]
	if len(zones) == 0 {
		if e.needs != nil {
			e.needs.zone(region)
			return unknown([]string{"zones:" + region})
		}
		return e.fail(path, "the availability zones of "+region+" are not known", "the region does not exist or is not enabled for the account")
	}
	out := make([]any, len(zones))
	for i, z := range zones {
		out[i] = z
	}
	return out
}

// importValue evaluates Fn::ImportValue
// (https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/intrinsic-function-reference-importvalue.html).
func (e *evaluation) importValue(arg any, path string) any {
	v := e.value(arg, path)
	if b, stop := blocked(v); stop {
		e.needs.unresolvable(v, path)
		return b
	}
	name, ok := text(v)
	if !ok || name == "" {
		return e.fail(path, "Fn::ImportValue takes the name of an export", "found "+kindOf(v))
	}
	if value, ok := e.scope.Imports[name]; ok {
		return value
	}
	if e.scope.PendingImports[name] {
		return unknown([]string{"export:" + name})
	}
	if e.needs != nil {
		e.needs.imported(name)
		return unknown([]string{"export:" + name})
	}
	return e.fail(path, "no stack exports "+name, "")
}

// StackOutput is one output of another stack, as Fn::GetStackOutput names it.
type StackOutput struct {
	Stack, Region, Output string
	// RoleARN is the role to read it with, when it is in another account.
	RoleARN string
}

// Key is the output's key in Scope.StackOutputs: "stack|region|output", and "|roleArn" when it is read with
// a role, since the same names may then mean another account's stack.
func (o StackOutput) Key() string {
	key := o.Stack + "|" + o.Region + "|" + o.Output
	if o.RoleARN != "" {
		key += "|" + o.RoleARN
	}
	return key
}

// getStackOutput evaluates Fn::GetStackOutput {StackName, OutputName, Region?, RoleArn?} (reference §7.8): a
// weak reference to another stack's output, across regions and accounts.
func (e *evaluation) getStackOutput(arg any, path string) any {
	m, ok := arg.(map[string]any)
	if !ok {
		return e.fail(path, "Fn::GetStackOutput takes an object", "found "+kindOf(arg))
	}
	o := StackOutput{Region: e.scope.Pseudo.Region}
	var operands []any
	for _, k := range sortedKeys(m) {
		var into *string
		switch k {
		case "StackName":
			into = &o.Stack
		case "OutputName":
			into = &o.Output
		case "Region":
			into = &o.Region
		case "RoleArn":
			into = &o.RoleARN
		default:
			return e.fail(child(path, k), "unknown member of Fn::GetStackOutput", e.suggest(k, []string{"StackName", "OutputName", "Region", "RoleArn"}))
		}
		v := e.value(m[k], child(path, k))
		if _, stop := blocked(v); stop {
			operands = append(operands, v)
			continue
		}
		if *into, ok = v.(string); !ok {
			operands = append(operands, e.fail(child(path, k), k+" is not a string", "found "+kindOf(v)))
		}
	}
	if b, stop := blocked(operands...); stop {
		e.needs.unresolvable(b, path)
		return b
	}
	switch {
	case o.Stack == "" || o.Output == "":
		return e.fail(path, "Fn::GetStackOutput needs a StackName and an OutputName", "")
	case o.Stack == e.scope.Pseudo.StackName && o.Region == e.scope.Pseudo.Region && o.RoleARN == "":
		return e.fail(path, "a stack can't read its own output", "refer to the resource instead")
	case PartitionOf(o.Region) == "":
		return e.fail(child(path, "Region"), "the region is not the name of a region", "")
	}
	key := o.Key()
	if v, ok := e.scope.StackOutputs[key]; ok {
		return v
	}
	if e.scope.PendingStackOutputs[key] {
		return unknown([]string{"output:" + key})
	}
	if e.needs != nil {
		e.needs.output(o)
		return unknown([]string{"output:" + key})
	}
	return e.fail(path, "the stack "+o.Stack+" in "+o.Region+" has no output "+o.Output, "")
}

// whole reads a whole number that may be written as a string.
func whole(v any) (int64, bool) {
	s, ok := text(v)
	if !ok {
		return 0, false
	}
	n, err := json.Number(strings.TrimSpace(s)).Int64()
	return n, err == nil
}
