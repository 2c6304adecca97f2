package main

import (
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/slipway-cdk/slipway/pkg/schema"
)

// merger builds the definitions of one type from both sources at once. Either side may be missing.
type merger struct {
	spec  *serviceSpec
	reg   *regType
	stats *statistics
	named map[pair]string
	out   map[string]*schema.Definition
}

// pair identifies an object: the definition in one source and the schema in the other that describe it.
type pair struct {
	spec *specDefinition
	reg  *regSchema
	tag  bool
}

// alternative is one shape a value may have, in one source or (once matched) in both.
type alternative struct {
	kind schema.PropertyKind
	spec *specType
	reg  *regSchema
	name string // of an object, when its source names it
}

// property merges a property. hint names its object, if that has no name of its own.
func (m *merger) property(s *specProperty, r *regSchema, hint string) *schema.Property {
	if s == nil {
		p := m.value(nil, r, hint)
		m.relate(p, nil, r)
		return p
	}
	t := s.Type
	if len(s.Previous) > 0 {
		t = &specType{Type: "union", Types: append([]*specType{s.Type}, s.Previous...)}
	}
	p := m.value(t, r, hint)
	m.relate(p, s, r)
	return p
}

func (m *merger) value(s *specType, r *regSchema, hint string) *schema.Property {
	fromSpec, fromReg := m.specShapes(s), m.regShapes(r, 0)
	all := m.match(fromSpec, fromReg)
	both := len(fromSpec) > 0 && len(fromReg) > 0
	if both && len(all) > max(len(fromSpec), len(fromReg)) {
		m.stats.mixedKinds++
	}
	if len(all) == 0 {
		return &schema.Property{Kind: schema.KindJSON}
	}
	// JSON takes any scalar; only structure is worth keeping beside it.
	if slices.ContainsFunc(all, func(a alternative) bool { return a.kind == schema.KindJSON }) {
		all = slices.DeleteFunc(all, func(a alternative) bool {
			return a.kind != schema.KindJSON && a.kind != schema.KindObject && a.kind != schema.KindList && a.kind != schema.KindMap
		})
	}
	if len(all) == 1 {
		return m.shape(all[0], both, hint)
	}
	p := &schema.Property{Kind: schema.KindUnion}
	for _, a := range all {
		p.Alternatives = append(p.Alternatives, m.shape(a, both, hint))
	}
	return p
}

// match pairs shapes of the same kind; the rest stand alone, so that a value either source accepts is accepted.
func (m *merger) match(spec, reg []alternative) []alternative {
	used := make([]bool, len(reg))
	var all []alternative
	for _, a := range spec {
		for i, b := range reg {
			numbers := isNumber(a.kind) && isNumber(b.kind)
			if used[i] || a.kind != b.kind && !numbers {
				continue
			}
			used[i] = true
			a.reg = b.reg
			if a.kind != b.kind {
				a.kind = schema.KindNumber
			}
			if a.name == "" {
				a.name = b.name
			}
			break
		}
		if !slices.ContainsFunc(all, func(b alternative) bool { return same(a, b) }) {
			all = append(all, a)
		}
	}
	for i, b := range reg {
		if !used[i] && !slices.ContainsFunc(all, func(a alternative) bool { return same(a, b) }) {
			all = append(all, b)
		}
	}
	return all
}

func isNumber(k schema.PropertyKind) bool { return k == schema.KindInteger || k == schema.KindNumber }

// same tells that a second alternative adds nothing: a plain kind that is there already.
func same(a, b alternative) bool {
	structured := a.kind == schema.KindObject || a.kind == schema.KindList || a.kind == schema.KindMap
	return a.kind == b.kind && (!structured || a.spec == b.spec && a.reg == b.reg)
}

func (m *merger) specShapes(s *specType) []alternative {
	if s == nil {
		return nil
	}
	switch s.Type {
	case "union":
		var all []alternative
		for _, t := range s.Types {
			for _, a := range m.specShapes(t) {
				// A previous type often repeats a part of the present one.
				if !slices.ContainsFunc(all, func(b alternative) bool { return reflect.DeepEqual(a.spec, b.spec) }) {
					all = append(all, a)
				}
			}
		}
		return all
	case "string", "date-time":
		return []alternative{{kind: schema.KindString, spec: s}}
	case "integer", "number", "boolean", "json":
		return []alternative{{kind: schema.PropertyKind(s.Type), spec: s}}
	case "array":
		return []alternative{{kind: schema.KindList, spec: s}}
	case "map":
		return []alternative{{kind: schema.KindMap, spec: s}}
	case "tag":
		return []alternative{{kind: schema.KindObject, spec: s, name: "Tag"}}
	case "ref":
		if def := m.spec.defs[s.Ref.ID]; def != nil {
			return []alternative{{kind: schema.KindObject, spec: s, name: def.Name}}
		}
	}
	return []alternative{{kind: schema.KindJSON, spec: s}}
}

func (m *merger) regShapes(r *regSchema, depth int) []alternative {
	if r == nil || depth > 8 {
		return nil
	}
	r, name := m.reg.resolve(r)
	if r == nil {
		return []alternative{{kind: schema.KindJSON}}
	}
	types := r.Type
	if len(types) == 0 {
		switch {
		case len(r.Properties) > 0 || len(r.PatternProperties) > 0:
			types = oneOrMany{"object"}
		case r.Items.schema != nil:
			types = oneOrMany{"array"}
		case len(branches(r)) > 0:
			var all []alternative
			for _, branch := range branches(r) {
				all = append(all, m.regShapes(branch, depth+1)...)
			}
			return all
		case r.Pattern != "" || len(r.Enum) > 0:
			types = oneOrMany{"string"}
		default:
			return []alternative{{kind: schema.KindJSON, reg: r}}
		}
	}
	var all []alternative
	for _, t := range types {
		a := alternative{kind: schema.PropertyKind(t), reg: r, name: name}
		switch t {
		case "null":
			continue
		case "array":
			a.kind = schema.KindList
		case "object":
			switch {
			case m.hasProperties(r, 0):
				a.kind = schema.KindObject
			case len(r.PatternProperties) > 0 || r.AdditionalProperties.schema != nil:
				a.kind = schema.KindMap
			default:
				a.kind = schema.KindJSON
			}
		}
		all = append(all, a)
	}
	return all
}

func (m *merger) hasProperties(r *regSchema, depth int) bool {
	if r == nil || depth > 8 {
		return false
	}
	if len(r.Properties) > 0 {
		return true
	}
	return slices.ContainsFunc(branches(r), func(b *regSchema) bool {
		b, _ = m.reg.resolve(b)
		return m.hasProperties(b, depth+1)
	})
}

func (m *merger) shape(a alternative, both bool, hint string) *schema.Property {
	p := &schema.Property{Kind: a.kind}
	if a.name == "" {
		a.name = hint
	}
	switch a.kind {
	case schema.KindObject:
		p.Ref = m.define(a)
	case schema.KindList:
		var element *specType
		if a.spec != nil {
			element = a.spec.Element
		}
		var items *regSchema
		if a.reg != nil {
			items = m.reg.element(a.reg)
			p.MinItems, p.MaxItems = whole(a.reg.MinItems), whole(a.reg.MaxItems)
			p.Unordered = a.reg.InsertionOrder != nil && !*a.reg.InsertionOrder
		}
		p.Elem = m.value(element, items, a.name)
	case schema.KindMap:
		var element *specType
		if a.spec != nil {
			element = a.spec.Element
		}
		var values *regSchema
		if a.reg != nil {
			if values = m.reg.element(a.reg); values == nil {
				values = a.reg.AdditionalProperties.schema
			}
			if len(a.reg.PatternProperties) > 1 {
				element, values = nil, nil // several patterns of keys, each with its own values: not described
			}
		}
		p.Elem = m.value(element, values, a.name)
	default:
		m.limits(p, a, both)
	}
	return p
}

// limits are enum, pattern, length and range. Where both sources have an enum it is the union; one that only the
// registry has counts, one that only the service specification has does not: AWS validates against the registry.
func (m *merger) limits(p *schema.Property, a alternative, both bool) {
	var spec, reg []string
	if a.spec != nil {
		spec = literals(a.spec.Allowed)
	}
	if a.reg != nil {
		reg = literals(a.reg.Enum)
		if len(a.reg.AnyCase) > 0 {
			spec, reg = nil, nil // any case is accepted: nothing to compare with
		}
	}
	switch {
	case len(spec) > 0 && len(reg) > 0:
		p.Enum = merged(spec, reg)
	case both && len(spec) > 0:
		m.stats.specOnlyEnums++
	case both && len(reg) > 0:
		// The registry's enum is what Cloud Control validates a model against.
		m.stats.registryOnlyEnums++
		p.Enum = merged(nil, reg)
	case !both:
		p.Enum = merged(spec, reg)
	}
	if a.reg == nil {
		return
	}
	if isNumber(a.kind) {
		p.Minimum, p.Maximum = a.reg.Minimum, a.reg.Maximum
	}
	if a.kind != schema.KindString {
		return
	}
	p.MinLength, p.MaxLength = whole(a.reg.MinLength), whole(a.reg.MaxLength)
	if p.MinLength != nil && *p.MinLength == 0 {
		p.MinLength = nil
	}
	if a.reg.Pattern == "" || a.reg.Pattern == ".*" {
		return
	}
	if !portable(a.reg.Pattern) {
		m.stats.droppedPatterns++
		return
	}
	p.Pattern = a.reg.Pattern
}

// portable tells whether a pattern means the same in the registry's engine and in RE2: it compiles, and has no
// class intersection or POSIX class, which compile but differ.
func portable(pattern string) bool {
	if strings.Contains(pattern, "&&") || strings.Contains(pattern, "[:") {
		return false
	}
	_, err := regexp.Compile(pattern)
	return err == nil
}

func (m *merger) relate(p *schema.Property, s *specProperty, r *regSchema) {
	if r != nil {
		r, _ = m.reg.resolve(r)
	}
	switch {
	case s != nil && len(s.Refs) > 0:
		p.RelationType, p.RelationProperty = s.Refs[0].Type, s.Refs[0].Property
	case r != nil && r.Relationship != nil:
		p.RelationType = r.Relationship.Type
		p.RelationProperty = strings.ReplaceAll(strings.TrimPrefix(r.Relationship.Property, "/properties/"), "/", ".")
	case r != nil && strings.HasPrefix(r.Format, "AWS::"):
		// cfn-lint's own formats: AWS::KMS::Key.Arn; Ids and Names are lists of such.
		kind, property, found := strings.Cut(r.Format, ".")
		if found && property != "Ids" && property != "Names" {
			p.RelationType, p.RelationProperty = kind, property
		}
	}
}

// define builds the definition of an object once and returns its name.
func (m *merger) define(a alternative) string {
	key := pair{reg: a.reg}
	if a.spec != nil {
		key.spec, key.tag = m.spec.defs[a.spec.Ref.ID], a.spec.Type == "tag"
	}
	if name, done := m.named[key]; done {
		return name
	}
	name := strings.ReplaceAll(a.name, ".", "")
	for n := 2; m.out[name] != nil; n++ {
		name = fmt.Sprintf("%s%d", strings.ReplaceAll(a.name, ".", ""), n)
	}
	m.named[key] = name
	m.out[name] = &schema.Definition{} // taken: the definition may refer to itself
	var properties map[string]*specProperty
	if key.spec != nil {
		properties = key.spec.Properties
	}
	if key.tag && a.reg == nil {
		properties = map[string]*specProperty{}
		for _, name := range []string{"Key", "Value"} {
			properties[name] = &specProperty{Type: &specType{Type: "string"}, Required: true}
		}
		key.spec = &specDefinition{}
	}
	*m.out[name] = *m.object(key.spec != nil, properties, a.reg)
	return name
}

// object merges the members of an object: all that either source has, required only where all that describe
// the object say so.
func (m *merger) object(inSpec bool, spec map[string]*specProperty, r *regSchema) *schema.Definition {
	def := &schema.Definition{Properties: map[string]*schema.Property{}}
	members := map[string]*regSchema{}
	var required []string
	if r != nil {
		m.members(r, members, 0)
		required = slices.Clone(r.Required)
		for _, all := range r.AllOf {
			if all, _ = m.reg.resolve(all); all != nil {
				required = append(required, all.Required...)
			}
		}
		def.Open = !r.AdditionalProperties.closed || len(r.PatternProperties) > 0
	}
	for _, name := range union(spec, members) {
		s, member := spec[name], members[name]
		def.Properties[name] = m.property(s, member, name)
		inRegistry := r != nil && slices.Contains(required, name)
		switch {
		case inSpec && r != nil:
			if s != nil && s.Required && inRegistry {
				def.Required = append(def.Required, name)
			} else if s != nil && s.Required || inRegistry {
				m.stats.relaxedRequired++
			}
		case s != nil && s.Required, inRegistry:
			def.Required = append(def.Required, name)
		}
	}
	return def
}

// members collects an object's properties, those of its alternatives included.
func (m *merger) members(r *regSchema, into map[string]*regSchema, depth int) {
	if r == nil || depth > 8 {
		return
	}
	for name, property := range r.Properties {
		// A branch that only says more about a property (required, const) does not describe it.
		if into[name] == nil {
			into[name] = property
		}
	}
	for _, branch := range branches(r) {
		branch, _ = m.reg.resolve(branch)
		m.members(branch, into, depth+1)
	}
}

func whole(f *float64) *int {
	if f == nil || *f > 1<<40 || *f < 0 {
		return nil
	}
	n := int(*f)
	return &n
}

func literals(values []any) []string {
	var out []string
	for _, v := range values {
		switch v := v.(type) {
		case string:
			out = append(out, v)
		default:
			raw, err := json.Marshal(v)
			if err == nil {
				out = append(out, string(raw))
			}
		}
	}
	return out
}

func merged(a, b []string) []string {
	out := slices.Clone(a)
	for _, v := range b {
		if !slices.Contains(out, v) {
			out = append(out, v)
		}
	}
	slices.Sort(out)
	return out
}

func sortedKeys[V any](m map[string]V) []string { return union(m, map[string]V{}) }
