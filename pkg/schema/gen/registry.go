package main

import (
	"archive/zip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
)

// registry is what we read of cfn-lint: the CloudFormation registry's resource type schemas of one region.
// data/schemas/providers/REGION.json maps type names to content hashes, data/schemas/resources/HASH.json is the
// schema (with handlers), after cfn-lint's own corrections.
type registry struct {
	version string
	date    string
	types   map[string]*regType
	// stateful are the types of cfn-lint's AdditionalSpecs/StatefulResources.json.
	stateful map[string]bool
	// readable are the types whose every property Fn::GetAtt can read, as cfn-lint's schema/_getatts.py lists them.
	readable map[string]bool
}

// regType is a resource type schema:
// https://docs.aws.amazon.com/cloudformation-cli/latest/userguide/resource-type-schema.html
type regType struct {
	regSchema
	Definitions           map[string]*regSchema      `json:"definitions"`
	Handlers              map[string]json.RawMessage `json:"handlers"`
	PrimaryIdentifier     []string                   `json:"primaryIdentifier"`
	AdditionalIdentifiers identifiers                `json:"additionalIdentifiers"`
	ReadOnly              []string                   `json:"readOnlyProperties"`
	WriteOnly             []string                   `json:"writeOnlyProperties"`
	CreateOnly            []string                   `json:"createOnlyProperties"`
	ConditionalCreateOnly []string                   `json:"conditionalCreateOnlyProperties"`
	ReplacementStrategy   string                     `json:"replacementStrategy"`
	Tagging               struct {
		Taggable  *bool  `json:"taggable"`
		Updatable *bool  `json:"tagUpdatable"`
		Property  string `json:"tagProperty"`
	} `json:"tagging"`
}

type regSchema struct {
	Ref                  string                `json:"$ref"`
	Type                 oneOrMany             `json:"type"`
	Properties           map[string]*regSchema `json:"properties"`
	PatternProperties    map[string]*regSchema `json:"patternProperties"`
	AdditionalProperties boolOrSchema          `json:"additionalProperties"`
	Items                boolOrSchema          `json:"items"`
	Required             []string              `json:"required"`
	Enum                 []any                 `json:"enum"`
	AnyCase              []any                 `json:"enumCaseInsensitive"`
	Const                any                   `json:"const"`
	Pattern              string                `json:"pattern"`
	Format               string                `json:"format"`
	MinLength            *float64              `json:"minLength"`
	MaxLength            *float64              `json:"maxLength"`
	Minimum              *float64              `json:"minimum"`
	Maximum              *float64              `json:"maximum"`
	MinItems             *float64              `json:"minItems"`
	MaxItems             *float64              `json:"maxItems"`
	InsertionOrder       *bool                 `json:"insertionOrder"`
	OneOf                []*regSchema          `json:"oneOf"`
	AnyOf                []*regSchema          `json:"anyOf"`
	AllOf                []*regSchema          `json:"allOf"`
	Relationship         *struct {
		Type     string `json:"typeName"`
		Property string `json:"propertyPath"`
	} `json:"relationshipRef"`
}

// identifiers is a list of identifiers, each a list of paths; some schemas write a single path as a string.
type identifiers [][]string

func (i *identifiers) UnmarshalJSON(raw []byte) error {
	var entries []oneOrMany
	if err := json.Unmarshal(raw, &entries); err != nil {
		return err
	}
	for _, entry := range entries {
		*i = append(*i, entry)
	}
	return nil
}

type oneOrMany []string

func (o *oneOrMany) UnmarshalJSON(raw []byte) error {
	var one string
	if json.Unmarshal(raw, &one) == nil {
		*o = oneOrMany{one}
		return nil
	}
	return json.Unmarshal(raw, (*[]string)(o))
}

// boolOrSchema is false, true, a schema, or absent (open).
type boolOrSchema struct {
	closed bool
	schema *regSchema
}

func (b *boolOrSchema) UnmarshalJSON(raw []byte) error {
	var allowed bool
	if json.Unmarshal(raw, &allowed) == nil {
		b.closed = !allowed
		return nil
	}
	if len(raw) > 0 && raw[0] == '[' { // a tuple: its items are not described one by one
		return nil
	}
	return json.Unmarshal(raw, &b.schema)
}

func readRegistry(file, region string) (*registry, error) {
	wheel, err := zip.OpenReader(file)
	if err != nil {
		return nil, err
	}
	defer wheel.Close()
	const data = "cfnlint/data/"
	read := func(name string, into any) error {
		f, err := wheel.Open(name)
		if err != nil {
			return fmt.Errorf("opening %s (has the wheel's layout changed?): %w", name, err)
		}
		defer func() { _ = f.Close() }() // it is only read
		if err := json.NewDecoder(f).Decode(into); err != nil {
			return fmt.Errorf("reading %s: %w", name, err)
		}
		return nil
	}
	r := &registry{types: map[string]*regType{}, stateful: map[string]bool{}}
	if r.readable, err = readable(wheel); err != nil {
		return nil, err
	}
	for _, f := range wheel.File {
		if dir := path.Dir(f.Name); path.Base(f.Name) == "METADATA" && strings.HasSuffix(dir, ".dist-info") {
			r.version = strings.TrimPrefix(strings.TrimSuffix(dir, ".dist-info"), "cfn_lint-")
		}
	}
	var version struct {
		Date string `json:"schema_date"`
	}
	hashes := map[string]string{}
	var stateful struct{ ResourceTypes map[string]json.RawMessage }
	if err := errors.Join(read(data+"schemas/version.json", &version), read(data+"schemas/providers/"+region+".json", &hashes),
		read(data+"AdditionalSpecs/StatefulResources.json", &stateful)); err != nil {
		return nil, err
	}
	r.date = version.Date
	for name := range stateful.ResourceTypes {
		r.stateful[name] = true
	}
	for name, hash := range hashes {
		t := &regType{}
		if err := read(data+"schemas/resources/"+hash+".json", t); err != nil {
			return nil, fmt.Errorf("schema of %s: %w", name, err)
		}
		r.types[name] = t
	}
	if r.version == "" || len(r.types) == 0 {
		return nil, errors.New("the wheel holds no version or no schemas: has its layout changed?")
	}
	return r, nil
}

// readable finds the list of cfn-lint's that no schema states, in the one Python file that has it.
func readable(wheel *zip.ReadCloser) (map[string]bool, error) {
	const file = "cfnlint/schema/_getatts.py"
	f, err := wheel.Open(file)
	if err != nil {
		return nil, fmt.Errorf("opening %s (has the wheel's layout changed?): %w", file, err)
	}
	defer func() { _ = f.Close() }() // it is only read
	source, err := io.ReadAll(f)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", file, err)
	}
	_, list, found := strings.Cut(string(source), "_all_property_types = [")
	list, _, closed := strings.Cut(list, "]")
	if !found || !closed {
		return nil, fmt.Errorf("%s has no list _all_property_types any more", file)
	}
	types := map[string]bool{}
	for _, item := range strings.Split(list, ",") {
		if name := strings.Trim(item, " \n\"'"); strings.HasPrefix(name, "AWS::") {
			types[name] = true
		}
	}
	return types, nil
}

// resolve follows local references; nil stays nil, an unknown reference becomes nil (any JSON).
func (t *regType) resolve(s *regSchema) (*regSchema, string) {
	name := ""
	for depth := 0; s != nil && s.Ref != "" && depth < 10; depth++ {
		local, found := strings.CutPrefix(s.Ref, "#/definitions/")
		if found {
			name, s = local, t.Definitions[local]
			continue
		}
		local, found = strings.CutPrefix(s.Ref, "#/properties/")
		if !found {
			return nil, ""
		}
		name, s = local, t.Properties[local]
	}
	return s, name
}

// path turns a registry pointer into this project's form: "/properties/Rules/items/properties/Name" and
// "/properties/Rules/Name", where Rules is a list, both become "Rules/*/Name".
func (t *regType) path(pointer string) string {
	segments := strings.Split(strings.Trim(pointer, "/"), "/")
	at := &t.regSchema
	var out []string
	for _, segment := range segments {
		at, _ = t.resolve(at)
		segment = strings.NewReplacer("~1", "/", "~0", "~").Replace(segment)
		if t.child(at, segment) == nil {
			if segment == "properties" || segment == "definitions" {
				continue
			}
			if element := t.element(at); element != nil {
				out, at = append(out, "*"), element
				if segment == "*" || segment == "items" || segment == "patternProperties" || isIndex(segment) {
					continue
				}
				at, _ = t.resolve(at)
			}
		}
		out, at = append(out, segment), t.child(at, segment)
	}
	return strings.Join(out, "/")
}

func (t *regType) child(s *regSchema, name string) *regSchema {
	if s == nil {
		return nil
	}
	if p, found := s.Properties[name]; found {
		return p
	}
	for _, branch := range branches(s) {
		branch, _ = t.resolve(branch)
		if p := t.child(branch, name); p != nil {
			return p
		}
	}
	return nil
}

// element is the schema of a list's items or a map's values.
func (t *regType) element(s *regSchema) *regSchema {
	if s == nil {
		return nil
	}
	if s.Items.schema != nil {
		return s.Items.schema
	}
	for _, key := range sortedKeys(s.PatternProperties) {
		return s.PatternProperties[key]
	}
	for _, branch := range branches(s) {
		branch, _ = t.resolve(branch)
		if e := t.element(branch); e != nil {
			return e
		}
	}
	return nil
}

func branches(s *regSchema) []*regSchema {
	var all []*regSchema
	all = append(all, s.AllOf...)
	all = append(all, s.OneOf...)
	return append(all, s.AnyOf...)
}

func isIndex(segment string) bool {
	return segment != "" && strings.Trim(segment, "0123456789") == ""
}

// provisionable reports what DescribeType calls ProvisioningType: FULLY_MUTABLE or IMMUTABLE rather than
// NON_PROVISIONABLE, which is a type that lacks a create, a read or a delete handler.
// https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_DescribeType.html
func (t *regType) provisionable() bool {
	return t.has("create") && t.has("read") && t.has("delete")
}

func (t *regType) has(handler string) bool {
	_, found := t.Handlers[handler]
	return found
}
