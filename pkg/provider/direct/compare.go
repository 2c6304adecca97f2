package direct

import (
	"slices"

	"github.com/slipway-cdk/slipway/pkg/schema"
)

// Same reports whether two values of a type's property mean the same: scalars by their text, documents whether they are objects
// or text, tags and lists without an order by what they hold.
func Same(typeName, property string, a, b any) bool {
	return Covers(typeName, property, a, b) && Covers(typeName, property, b, a)
}

// Covers reports whether a live property has all of a desired one. Members may have been filled in by the service; items of a
// list may not.
func Covers(typeName, property string, live, want any) bool {
	t, ok := schema.Lookup(typeName)
	if !ok {
		t = new(schema.Type)
	}
	p := t.Properties[property]
	if p != nil && property == t.TagProperty && (p.Kind == schema.KindList || p.Kind == schema.KindUnion) {
		tags := *p
		tags.Unordered = true
		p = &tags
	}
	return comparison{t}.covers(p, live, want)
}

// comparison compares by a type's schema; where that has nothing to say, p is nil.
type comparison struct{ t *schema.Type }

func (c comparison) covers(p *schema.Property, live, want any) bool {
	if p == nil {
		p = new(schema.Property)
	}
	switch w := want.(type) {
	case nil:
		return live == nil
	case map[string]any:
		l, ok := Parsed(live).(map[string]any)
		if !ok {
			return false
		}
		for k, v := range w {
			if v != nil && !c.covers(c.member(p, k), l[k], v) {
				return false
			}
		}
		return true
	case []any:
		l, ok := Parsed(live).([]any)
		if !ok || len(l) != len(w) {
			return false
		}
		if p.Unordered {
			return c.matched(p.Elem, l, w)
		}
		for i := range w {
			if !c.covers(p.Elem, l[i], w[i]) {
				return false
			}
		}
		return true
	}
	if doc, isText := Parsed(want).(map[string]any); isText {
		return c.covers(p, live, doc)
	}
	switch live.(type) {
	case nil, map[string]any, []any:
		return false
	}
	return Text(live) == Text(want)
}

// matched finds a live item of its own for every desired one.
func (c comparison) matched(elem *schema.Property, live, want []any) bool {
	left := slices.Clone(live)
	for _, w := range want {
		i := slices.IndexFunc(left, func(l any) bool { return c.covers(elem, l, w) })
		if i < 0 {
			return false
		}
		left = slices.Delete(left, i, i+1)
	}
	return true
}

// member is the property of an object's member.
func (c comparison) member(p *schema.Property, name string) *schema.Property {
	switch p.Kind {
	case schema.KindObject:
		if def := c.t.Definitions[p.Ref]; def != nil {
			return def.Properties[name]
		}
	case schema.KindMap:
		return p.Elem
	case schema.KindUnion:
		for _, a := range p.Alternatives {
			if a.Kind == schema.KindObject {
				return c.member(a, name)
			}
		}
	}
	return nil
}
