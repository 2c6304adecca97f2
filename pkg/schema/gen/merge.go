package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/slipway-cdk/slipway/pkg/schema"
)

// statistics counts where the sources differ, for the person who regenerates.
type statistics struct {
	droppedPatterns, specOnlyEnums, registryOnlyEnums, mixedKinds, relaxedRequired, specOnlyVerdicts, milderVerdicts int
}

func (s *statistics) String() string {
	return fmt.Sprintf("patterns dropped: %d\nenums in the service spec only (dropped): %d\nenums in the registry only: %d\n"+
		"values of different kinds (both accepted): %d\nrequired in one source only (optional): %d\n"+
		"replacement verdicts in the service spec only (kept): %d\n"+
		"replacement verdicts of the service spec made milder: %d\n",
		s.droppedPatterns, s.specOnlyEnums, s.registryOnlyEnums, s.mixedKinds, s.relaxedRequired, s.specOnlyVerdicts, s.milderVerdicts)
}

// mergeType joins what both sources say of one type. Where they differ about what is valid the looser one
// wins; where they differ about replacement, settle decides (see docs/replacement.md).
func mergeType(name string, spec *serviceSpec, reg *registry, stats *statistics) *schema.Type {
	s, r := spec.resources[name], reg.types[name]
	m := &merger{
		spec: spec, reg: r, stats: stats,
		named: map[pair]string{}, out: map[string]*schema.Definition{},
	}
	t := &schema.Type{Name: name, Attributes: map[string]*schema.Property{}}
	if r != nil {
		m.registryFacts(t)
	}
	settable := m.settable(s, t)
	var specProperties map[string]*specProperty
	if s != nil {
		specProperties = s.Properties
	}
	t.Definition = *m.object(s != nil, specProperties, settable)
	m.attributes(t, s)
	if s != nil {
		m.specFacts(t, s)
	}
	// "If missing, the cfnRefIdentifier is the same as the (CC-API) primaryIdentifier", say the spec's types.
	if t.RefProperty == "" && len(t.RefIdentifier) == 0 {
		switch len(t.PrimaryIdentifier) {
		case 0:
		case 1:
			t.RefProperty = t.PrimaryIdentifier[0]
		default:
			t.RefIdentifier = t.PrimaryIdentifier
		}
	}
	t.Stateful = t.Stateful || reg.stateful[name]
	t.PropertiesReadable = reg.readable[name]
	t.Definitions = m.out
	if t.Transform != "" {
		loosen(t)
	}
	return t
}

// loosen opens a type that a transform replaces before anything is deployed (AWS::Serverless::*): the service
// specification's copy of its schema is old, and the transform checks it anyway.
func loosen(t *schema.Type) {
	t.Open, t.Required = true, nil
	for _, def := range t.Definitions {
		def.Open, def.Required = true, nil
	}
}

func (m *merger) registryFacts(t *schema.Type) {
	r := m.reg
	t.PrimaryIdentifier = m.paths(r.PrimaryIdentifier)
	for _, paths := range r.AdditionalIdentifiers {
		t.AdditionalIdentifiers = append(t.AdditionalIdentifiers, m.paths(paths))
	}
	t.ReadOnly, t.WriteOnly = m.paths(r.ReadOnly), m.paths(r.WriteOnly)
	t.CreateOnly, t.ConditionalCreateOnly = m.paths(r.CreateOnly), m.paths(r.ConditionalCreateOnly)
	t.Provisionable, t.Updatable, t.Listable = r.provisionable(), r.has("update"), r.has("list")
	t.DeleteBeforeCreate = r.ReplacementStrategy == "delete_then_create"
	if r.Tagging.Taggable != nil && *r.Tagging.Taggable {
		t.TagProperty = "Tags"
		if r.Tagging.Property != "" {
			t.TagProperty = r.path(r.Tagging.Property)
		}
		if r.Properties[t.TagProperty] == nil {
			t.TagProperty = ""
		}
	}
}

func (m *merger) specFacts(t *schema.Type, s *specResource) {
	t.ARN, t.Stateful, t.Transform = s.ARNTemplate, s.Stateful, s.Transform
	if len(t.PrimaryIdentifier) == 0 {
		t.PrimaryIdentifier = s.PrimaryIdentifier
	}
	switch {
	case len(s.RefIdentifier) == 1:
		t.RefProperty = s.RefIdentifier[0]
	case len(s.RefIdentifier) > 1:
		t.RefIdentifier = s.RefIdentifier
	}
	if t.TagProperty == "" {
		t.TagProperty = s.Tags.Property
	}
	t.Replacements = m.replacements(t, s)
}

func (m *merger) paths(pointers []string) []string {
	var out []string
	for _, pointer := range pointers {
		if path := m.reg.path(pointer); path != "" && !slices.Contains(out, path) {
			out = append(out, path)
		}
	}
	return out
}

// settable is the registry's object without what only AWS sets. A property that the service specification
// lists as settable stays, whatever the registry says, and so does one that the documentation does.
func (m *merger) settable(s *specResource, t *schema.Type) *regSchema {
	if m.reg == nil {
		return nil
	}
	copied := m.reg.regSchema
	copied.Properties = map[string]*regSchema{}
	for name, property := range m.reg.Properties {
		if slices.Contains(t.ReadOnly, name) && (s == nil || s.Properties[name] == nil) && !documentedInput(t.Name, name) {
			continue
		}
		copied.Properties[name] = property
	}
	return &copied
}

// attributes are the service specification's plus every read-only path of the registry, by dotted name.
func (m *merger) attributes(t *schema.Type, s *specResource) {
	if s != nil {
		for _, name := range sortedKeys(s.Attributes) {
			t.Attributes[name] = m.property(s.Attributes[name], m.at(name), name)
		}
	}
	for _, path := range t.ReadOnly {
		name := strings.ReplaceAll(path, "/", ".")
		if strings.Contains(path, "*") || t.Attributes[name] != nil {
			continue
		}
		// Types that predate the registry have an invented "Id" that stands for the physical id.
		if name == "Id" && len(m.reg.Handlers) == 0 && s != nil {
			continue
		}
		t.Attributes[name] = m.property(nil, m.at(name), name)
	}
}

// at is the registry's schema at a dotted name, nil when there is none.
func (m *merger) at(dotted string) *regSchema {
	if m.reg == nil {
		return nil
	}
	at := &m.reg.regSchema
	for _, segment := range strings.Split(dotted, ".") {
		at, _ = m.reg.resolve(at)
		if at = m.reg.child(at, segment); at == nil {
			return nil
		}
	}
	return at
}

// replacements are the verdicts of the service specification, by path.
func (m *merger) replacements(t *schema.Type, s *specResource) map[string]schema.Replacement {
	verdicts := map[string]schema.Replacement{}
	note := func(path string, verdict schema.Replacement) {
		if verdicts[path] != schema.ReplaceAlways {
			verdicts[path] = verdict
		}
	}
	for _, path := range s.AdditionalReplacement {
		note(strings.Join(path, "/"), schema.ReplaceAlways)
	}
	var open []string
	var properties func(prefix string, all map[string]*specProperty)
	var value func(path string, v *specType)
	value = func(path string, v *specType) {
		switch v.Type {
		case "array", "map":
			value(path+"/*", v.Element)
		case "union":
			for _, alternative := range v.Types {
				value(path, alternative)
			}
		case "ref":
			if def := m.spec.defs[v.Ref.ID]; def != nil && !slices.Contains(open, v.Ref.ID) {
				open = append(open, v.Ref.ID)
				properties(path+"/", def.Properties)
				open = open[:len(open)-1]
			}
		}
	}
	properties = func(prefix string, all map[string]*specProperty) {
		for name, p := range all {
			switch p.Replaces {
			case "yes":
				note(prefix+name, schema.ReplaceAlways)
			case "maybe":
				note(prefix+name, schema.ReplaceMaybe)
			}
			value(prefix+name, p.Type)
		}
	}
	properties("", s.Properties)
	// What the registry says already, of the path or of a parent, need not be kept.
	silent := *t
	silent.Replacements = nil
	for _, path := range sortedKeys(verdicts) {
		said := silent.Replacement(strings.Split(path, "/"))
		verdict := m.settle(t, path, said, verdicts[path])
		if verdict != verdicts[path] {
			m.stats.milderVerdicts++
		}
		if said == verdict || said == schema.ReplaceAlways || verdict == schema.ReplaceNever {
			delete(verdicts, path)
			continue
		}
		verdicts[path] = verdict
		m.stats.specOnlyVerdicts++
	}
	return verdicts
}
