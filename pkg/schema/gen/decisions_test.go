package main

import (
	"encoding/json"
	"testing"

	"github.com/slipway-cdk/slipway/pkg/schema"
)

func TestSourcesThatContradictEachOtherAreSettled(t *testing.T) {
	updatable := true
	list := &regSchema{Items: boolOrSchema{schema: &regSchema{Properties: map[string]*regSchema{"Name": {}}}}}
	handlers := func(names ...string) map[string]json.RawMessage {
		out := map[string]json.RawMessage{}
		for _, name := range names {
			out[name] = nil
		}
		return out
	}
	mutable := &regType{
		regSchema: regSchema{Properties: map[string]*regSchema{"Size": {}, "Rules": list, "Tags": {}}},
		Handlers:  handlers("create", "read", "update", "delete"),
	}
	tagged := *mutable
	tagged.Tagging.Updatable = &updatable
	immutable := *mutable
	immutable.Handlers = handlers("create", "read", "delete")
	const always, maybe, never = schema.ReplaceAlways, schema.ReplaceMaybe, schema.ReplaceNever
	for _, c := range []struct {
		name       string
		reg        *regType
		typ, path  string
		said, spec schema.Replacement
		want       schema.Replacement
	}{
		{"no registry schema", nil, "AWS::A::B", "Size", never, always, always},
		{"a silent registry", mutable, "AWS::A::B", "Size", never, always, maybe},
		{"a silent registry, nested", mutable, "AWS::A::B", "Rules/*/Name", never, always, maybe},
		{"a property that the registry does not describe", mutable, "AWS::A::B", "Rules/*/Gone", never, always, always},
		{"no update handler", &immutable, "AWS::A::B", "Size", never, always, always},
		{"a conditional property", mutable, "AWS::A::B", "Size", maybe, always, always},
		{"below a conditional property", mutable, "AWS::A::B", "Rules/*/Name", maybe, always, maybe},
		{"the specification's maybe", mutable, "AWS::A::B", "Size", never, maybe, maybe},
		{"tags", mutable, "AWS::A::B", "Tags", never, always, maybe},
		{"tags that can be updated", &tagged, "AWS::A::B", "Tags", never, always, never},
		{"documented as updatable", mutable, "AWS::RDS::DBInstance", "Port", never, always, never},
		{"documented as create-only", mutable, "AWS::Route53::RecordSet", "Name", never, always, always},
		{"documented as neither", mutable, "AWS::ECS::Service", "LaunchType", maybe, always, maybe},
	} {
		m := &merger{reg: c.reg}
		got := m.settle(&schema.Type{Name: c.typ, TagProperty: "Tags"}, c.path, c.said, c.spec)
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
