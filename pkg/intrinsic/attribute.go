package intrinsic

import (
	"strings"

	"github.com/slipway-cdk/slipway/pkg/diag"
	"github.com/slipway-cdk/slipway/pkg/schema"
	"github.com/slipway-cdk/slipway/pkg/template"
)

// Attribute returns what Fn::GetAtt of a resource gives, looked for in this order (reference §7.3):
//
//  1. the recorded attribute of that very name, also "Outputs.Name" of a nested stack;
//  2. the recorded attributes walked by the dots of the name;
//  3. what the type's rules derive from the physical id, the account and the region (constructed);
//  4. what the type's schema says: a property where Fn::GetAtt reads those too, a part of the identifier, or
//     its template of the ARN.
//
// There is no falling back to the physical id: a value that merely looks right would reach AWS. ok is false
// when nothing gives the attribute.
func Attribute(scope *Scope, r Resource, name string) (value any, ok bool) {
	if v, ok := r.Attributes[name]; ok && v != nil {
		return recordedShape(r.Type, name, v), true
	}
	if v, ok := nested(r.Attributes, name); ok {
		return v, true
	}
	if r.PhysicalID == "" {
		return nil, false
	}
	if v := construct(scope.Pseudo, r, name); v != nil {
		return v, true
	}
	return schemaAttribute(scope, r, name)
}

// recordedShape turns what older records hold into the documented shape: NameServers of a hosted zone is a list,
// and was recorded as text with commas.
func recordedShape(typ, name string, v any) any {
	if s, ok := v.(string); ok && typ == "AWS::Route53::HostedZone" && name == "NameServers" {
		var out []any
		for _, part := range strings.Split(s, ",") {
			out = append(out, strings.TrimSpace(part))
		}
		return out
	}
	return v
}

// nested walks objects by the dots of a name. A key may itself hold dots, so every split is tried, the
// longest key first.
func nested(m map[string]any, name string) (any, bool) {
	for i := len(name); i > 0; i = strings.LastIndexByte(name[:i], '.') {
		v, ok := m[name[:i]]
		if !ok || v == nil {
			continue
		}
		if i == len(name) {
			return v, true
		}
		if inner, isMap := v.(map[string]any); isMap {
			if v, ok := nested(inner, name[i+1:]); ok {
				return v, true
			}
		}
	}
	return nil, false
}

// schemaAttribute derives an attribute from the registry schema of the type.
func schemaAttribute(scope *Scope, r Resource, name string) (any, bool) {
	t, ok := scope.lookupSchema(r.Type)
	if !ok {
		return nil, false
	}
	if !t.IsAttribute(name) {
		return nil, false
	}
	if t.PropertiesReadable {
		if v, ok := nested(r.Properties, name); ok {
			return v, true
		}
	}
	if part, ok := identifierPart(t, r.PhysicalID, name); ok && plausible(name, part) {
		return part, true
	}
	if name == "Arn" && t.ARN != "" {
		if strings.HasPrefix(r.PhysicalID, "arn:") {
			return r.PhysicalID, true
		}
		return fillARN(scope.Pseudo, r, t.ARN, func(field string) (string, bool) { return identifierPart(t, r.PhysicalID, field) })
	}
	return nil, false
}

// plausible refuses a part whose shape can't be that of the attribute: records by different providers hold
// differently shaped ids for the same type.
func plausible(name, part string) bool {
	switch {
	case strings.HasSuffix(name, "Arn") || strings.HasSuffix(name, "ARN"):
		return strings.HasPrefix(part, "arn:")
	case strings.HasSuffix(name, "Url") || strings.HasSuffix(name, "URL"):
		return strings.HasPrefix(part, "http://") || strings.HasPrefix(part, "https://")
	}
	return part != ""
}

// fillARN fills the placeholders of an ARN template. Each must come from the identifier or a recorded value.
func fillARN(p Pseudo, r Resource, pattern string, part func(string) (string, bool)) (any, bool) {
	var out strings.Builder
	for {
		start := strings.Index(pattern, "${")
		if start < 0 {
			break
		}
		length := strings.IndexByte(pattern[start:], '}')
		if length < 0 {
			return nil, false
		}
		field := pattern[start+2 : start+length]
		out.WriteString(pattern[:start])
		pattern = pattern[start+length+1:]
		value := ""
		switch field {
		case "Partition":
			value = p.Partition
		case "Region":
			value = p.Region
		case "Account":
			value = p.AccountID
		default:
			var ok bool
			if value, ok = part(field); !ok {
				value = recorded(r, "", field)
			}
		}
		if value == "" {
			return nil, false
		}
		out.WriteString(value)
	}
	out.WriteString(pattern)
	return out.String(), true
}

// CheckAttributes reports every Fn::GetAtt and ${Resource.Attribute} of an attribute that the resource's type
// does not have, as CloudFormation does when it validates a template. lookup is schema.Lookup; types that it does
// not know, or knows no attributes of, are left out.
func CheckAttributes(t *template.Template, lookup func(string) (*schema.Type, bool)) diag.Diagnostics {
	var ds diag.Diagnostics
	check := func(id string, ref template.Reference) {
		r := t.Resources[ref.Target]
		if r == nil || ref.Attribute == "" {
			return
		}
		typ, ok := lookup(r.Type)
		if !ok || len(typ.Attributes) == 0 || typ.IsAttribute(ref.Attribute) {
			return
		}
		detail := ""
		if best := template.Closest(ref.Attribute, sortedKeys(typ.Attributes)); best != "" {
			detail = "did you mean " + best + "?"
		}
		ds = append(ds, diag.Diagnostic{Severity: diag.Error, Summary: r.Type + " has no attribute " + ref.Attribute, Detail: detail, LogicalID: id, Path: ref.Path})
	}
	for _, id := range t.Order {
		for _, ref := range t.References(id) {
			check(id, ref)
		}
	}
	for _, ref := range t.OutputReferences() {
		check("", ref)
	}
	return ds
}
