package schema

import (
	"slices"
	"strings"
)

// Replacement is the verdict on a change of the property at path, whose elements are property names, map keys,
// and list indices or "*". A create-only path decides for itself and for everything below it, never for what is
// above: compare parents member by member and ask for each leaf that differs.
//
// Precedence: always, if the registry (createOnlyProperties) or Replacements says so; then maybe, if either does
// (conditionalCreateOnlyProperties); else never. A property that no source knows is updated in place.
// docs/replacement.md says how Replacements came about.
func (t *Type) Replacement(path []string) Replacement {
	if anyCovers(t.CreateOnly, path) {
		return ReplaceAlways
	}
	verdict := ReplaceNever
	if anyCovers(t.ConditionalCreateOnly, path) {
		verdict = ReplaceMaybe
	}
	for pattern, stated := range t.Replacements {
		if !covers(pattern, path) {
			continue
		}
		if stated == ReplaceAlways {
			return ReplaceAlways
		}
		verdict = ReplaceMaybe
	}
	return verdict
}

// IsReadOnly tells whether only AWS sets the property at path, or a parent of it.
func (t *Type) IsReadOnly(path []string) bool { return anyCovers(t.ReadOnly, path) }

// IsWriteOnly tells whether the property at path, or a parent of it, is never read back.
func (t *Type) IsWriteOnly(path []string) bool { return anyCovers(t.WriteOnly, path) }

func anyCovers(patterns []string, path []string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool { return covers(pattern, path) })
}

// covers tells whether path is what pattern names or lies below it. "*" on either side matches any element.
func covers(pattern string, path []string) bool {
	for _, element := range path {
		head, rest, more := strings.Cut(pattern, "/")
		if head != element && head != "*" && element != "*" {
			return false
		}
		if !more {
			return true
		}
		pattern = rest
	}
	return false
}

// At is the property at path (elements as in Replacement), nil when the path is unknown or lies inside free JSON.
// The empty path is nil too. Of several alternatives the first that has the path answers. What only AWS sets is
// found as well: Cloud Control's model holds properties and attributes side by side.
func (t *Type) At(path []string) *Property {
	if len(path) == 0 {
		return nil
	}
	if p := t.Properties[path[0]]; p != nil {
		if found := t.below(p, path[1:]); found != nil {
			return found
		}
	}
	// "MetadataConfiguration.Destination" is an attribute inside a settable object.
	for n := len(path); n > 0; n-- {
		if p := t.Attributes[strings.Join(path[:n], ".")]; p != nil {
			if found := t.below(p, path[n:]); found != nil {
				return found
			}
		}
	}
	return nil
}

func (t *Type) below(p *Property, path []string) *Property {
	if p == nil || len(path) == 0 {
		return p
	}
	switch p.Kind {
	case KindList:
		if path[0] == "*" || isIndex(path[0]) {
			return t.below(p.Elem, path[1:])
		}
	case KindMap:
		return t.below(p.Elem, path[1:])
	case KindObject:
		if def := t.Definitions[p.Ref]; def != nil {
			return t.below(def.Properties[path[0]], path[1:])
		}
	case KindUnion:
		for _, alternative := range p.Alternatives {
			if found := t.below(alternative, path); found != nil {
				return found
			}
		}
	}
	return nil
}

// Of is the property itself or its first alternative that has the kind, nil when there is none:
// t.At(path).Of(KindList) describes the list that a value turned out to be. A nil property gives nil.
func (p *Property) Of(kind PropertyKind) *Property {
	if p == nil || p.Kind == kind {
		return p
	}
	for _, alternative := range p.Alternatives {
		if found := alternative.Of(kind); found != nil {
			return found
		}
	}
	return nil
}

// RefPaths are the properties or attributes whose values, joined with "|", Ref returns. Empty when no source
// says (Ref is then the physical id).
func (t *Type) RefPaths() []string {
	if t.RefProperty != "" {
		return []string{t.RefProperty}
	}
	return t.RefIdentifier
}

func isIndex(element string) bool {
	return element != "" && strings.Trim(element, "0123456789") == ""
}

// IsAttribute tells whether Fn::GetAtt can read name: "Arn", "Endpoint.Address".
func (t *Type) IsAttribute(name string) bool { return t.Attribute(name) != nil }

// Attribute describes what Fn::GetAtt of name returns, nil for an unknown attribute. Members of an attribute
// that is an object are reached by dots, as are the outputs of a nested stack or a provisioned product ("Outputs.VpcId"); every attribute
// of a custom resource exists, as its handler decides, and of a type that a transform replaces.
func (t *Type) Attribute(name string) *Property {
	if p := t.Attributes[name]; p != nil {
		return p
	}
	if t.Name == customResource || strings.HasPrefix(t.Name, customPrefix) || t.Transform != "" {
		return &Property{Kind: KindJSON}
	}
	if output, found := strings.CutPrefix(name, "Outputs."); found && (t.Name == nestedStack || t.Name == provisionedProduct) && output != "" {
		return &Property{Kind: KindString}
	}
	segments := strings.Split(name, ".")
	if p := t.Properties[segments[0]]; p != nil && t.PropertiesReadable {
		return t.below(p, segments[1:])
	}
	for n := len(segments) - 1; n > 0; n-- {
		p := t.Attributes[strings.Join(segments[:n], ".")]
		if p == nil {
			continue
		}
		if found := t.below(p, segments[n:]); found != nil {
			return found
		}
	}
	return nil
}
