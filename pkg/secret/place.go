package secret

import (
	"slices"
	"strconv"
	"strings"

	"github.com/slipway-cdk/slipway/pkg/intrinsic"
	"github.com/slipway-cdk/slipway/pkg/template"
)

// Scope is what Walk needs to know to find the places that derive from secrets: parameters, and attributes.
type Scope struct {
	// Secret tells which are, by NameOf.
	Secret func(name string) bool
	// Conditions are the evaluated conditions: only the chosen branch of an Fn::If counts.
	Conditions map[string]bool
	// Mappings are the template's.
	Mappings map[string]any
	// Resolve resolves an expression that refers to no secret parameter.
	Resolve func(v any, path string) (any, error)
}

// NameOf names what a reference reads: "Name" for a parameter, "LogicalID.Attribute" for an attribute.
func NameOf(ref template.Reference) string {
	if ref.Attribute == "" {
		return ref.Target
	}
	return ref.Target + "." + ref.Attribute
}

// Place is a position in a resolved value at which a function stood that refers to a secret. Everything
// below it derives from that: whatever functions the value has passed through, Fn::Base64, Fn::Split and
// Fn::Select among them, it is known by its expression and not by its text.
type Place struct {
	// Path is the position in the resolved value.
	Path Path
	// Secrets are the names of the secrets, sorted.
	Secrets []string
	// Others are the other things that the expression refers to, as expressions of their own.
	Others []any
	// Skeleton is the expression with everything resolved that is no secret: as long as it and the secrets
	// are the same, the value is. Waits names what it can't be resolved for yet.
	Skeleton any
	Waits    []string
}

// Walk finds the places in an unresolved value. visit returns what is to stand there instead, the expression
// itself for no change; Walk returns the value with the replacements. The input is not changed.
func (s Scope) Walk(v any, visit func(Place, any) any) any { return s.walk(v, nil, visit) }

func (s Scope) walk(v any, at Path, visit func(Place, any) any) any {
	if !s.refersToSecret(v) {
		return v
	}
	if name, arg, ok := template.Intrinsic(v); ok {
		if branch, ok := s.chosen(name, arg); ok {
			return s.walk(branch, at, visit)
		}
		p := Place{Path: slices.Clone(at)}
		s.describe(&p, v)
		return visit(p, v)
	}
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, member := range v {
			out[k] = s.walk(member, append(slices.Clone(at), k), visit)
		}
		return out
	case []any:
		out := make([]any, len(v))
		i := 0
		for n, item := range v {
			out[n] = s.walk(item, append(slices.Clone(at), strconv.Itoa(i)), visit)
			if !s.vanishes(item) {
				i++ // an item that is AWS::NoValue leaves no position behind
			}
		}
		return out
	}
	return v
}

// chosen is the branch that an Fn::If comes to.
func (s Scope) chosen(name string, arg any) (any, bool) {
	list, ok := arg.([]any)
	if name != "Fn::If" || !ok || len(list) != 3 {
		return nil, false
	}
	condition, ok := list[0].(string)
	holds, known := s.Conditions[condition]
	if !ok || !known {
		return nil, false
	}
	if holds {
		return list[1], true
	}
	return list[2], true
}

func (s Scope) vanishes(v any) bool {
	name, arg, ok := template.Intrinsic(v)
	if !ok {
		return false
	}
	if branch, ok := s.chosen(name, arg); ok {
		return s.vanishes(branch)
	}
	return name == "Ref" && arg == "AWS::NoValue"
}

// refersToSecret reports whether a secret is referred to anywhere in a value that counts.
func (s Scope) refersToSecret(v any) bool {
	found := false
	s.references(v, func(ref template.Reference) { found = found || s.Secret(NameOf(ref)) })
	return found
}

// references visits the references of a value, in the chosen branches of Fn::If only.
func (s Scope) references(v any, visit func(template.Reference)) {
	template.WalkReferences(s.choose(v), "", visit)
}

// choose replaces every Fn::If by the branch that it comes to.
func (s Scope) choose(v any) any {
	if name, arg, ok := template.Intrinsic(v); ok {
		if branch, ok := s.chosen(name, arg); ok {
			return s.choose(branch)
		}
	}
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, member := range v {
			out[k] = s.choose(member)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = s.choose(item)
		}
		return out
	}
	return v
}

// describe fills in what the expression refers to, and its skeleton.
func (s Scope) describe(p *Place, expr any) {
	s.references(expr, func(ref template.Reference) {
		switch {
		case s.Secret(NameOf(ref)):
			if !slices.Contains(p.Secrets, NameOf(ref)) {
				p.Secrets = append(p.Secrets, NameOf(ref))
			}
			if ref.Attribute != "" {
				// The secret may be another one as soon as its resource is.
				p.Others = append(p.Others, map[string]any{"Ref": ref.Target})
			}
		case ref.Attribute != "":
			p.Others = append(p.Others, map[string]any{"Fn::GetAtt": []any{ref.Target, ref.Attribute}})
		default:
			p.Others = append(p.Others, map[string]any{"Ref": ref.Target})
		}
	})
	slices.Sort(p.Secrets)
	p.Skeleton = s.skeleton(expr, &p.Waits)
	slices.Sort(p.Waits)
	p.Waits = slices.Compact(p.Waits)
}

func (s Scope) skeleton(v any, waits *[]string) any {
	if !s.refersToSecret(v) {
		return s.resolved(v, waits)
	}
	name, arg, function := template.Intrinsic(v)
	if !function {
		switch v := v.(type) {
		case map[string]any:
			out := make(map[string]any, len(v))
			for k, member := range v {
				out[k] = s.skeleton(member, waits)
			}
			return out
		case []any:
			out := make([]any, 0, len(v))
			for _, item := range v {
				if !s.vanishes(item) {
					out = append(out, s.skeleton(item, waits))
				}
			}
			return out
		}
		return v
	}
	if branch, ok := s.chosen(name, arg); ok {
		return s.skeleton(branch, waits)
	}
	switch name {
	case "Ref", "Fn::GetAtt":
		return v
	case "Fn::Sub":
		if body, vars, ok := template.SubArguments(arg); ok {
			return s.sub(body, vars, waits)
		}
	case "Fn::FindInMap":
		// The secret chooses from the mapping, so all of the mapping counts.
		return []any{name, s.skeleton(arg, waits), s.Mappings}
	}
	return []any{name, s.skeleton(arg, waits)}
}

// sub is the skeleton of Fn::Sub: the body, and what its placeholders come to.
func (s Scope) sub(body string, vars map[string]any, waits *[]string) any {
	values := map[string]any{}
	for k, v := range vars {
		values[k] = s.skeleton(v, waits)
	}
	parts, err := template.ParseSub(body)
	if err != nil {
		return []any{"Fn::Sub", body, values}
	}
	for _, part := range parts {
		if _, own := vars[part.Name]; own || part.Name == "" {
			continue
		}
		if name := NameOf(template.Reference{Target: part.Target, Attribute: part.Attribute}); s.Secret(name) {
			values[part.Name] = map[string]any{"Ref": name}
			continue
		}
		values[part.Name] = s.resolved(map[string]any{"Fn::Sub": "${" + part.Name + "}"}, waits)
	}
	return []any{"Fn::Sub", body, values}
}

func (s Scope) resolved(v any, waits *[]string) any {
	out, err := s.Resolve(v, "Properties")
	if err != nil {
		*waits = append(*waits, strings.ReplaceAll(err.Error(), "\n", "; "))
		return nil
	}
	*waits = append(*waits, intrinsic.HasUnknown(out)...)
	if _, none := out.(intrinsic.NoValue); none {
		return nil
	}
	return out
}
