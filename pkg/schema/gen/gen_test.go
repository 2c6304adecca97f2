package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/slipway-cdk/slipway/pkg/schema"
)

const testSpec = `{"schema":{
  "resource":{"entities":[
    {"$id":"1","cloudFormationType":"AWS::Test::Thing","primaryIdentifier":["Id"],"cfnRefIdentifier":["Name"],
     "arnTemplate":"arn:x","isStateful":true,"tagInformation":{"tagPropertyName":"Labels"},
     "additionalReplacementProperties":[["Labels","*","Key"]],
     "attributes":{"Arn":{"type":{"type":"string"}}},
     "properties":{
       "Name":{"type":{"type":"string"},"required":true,"causesReplacement":"yes"},
       "Count":{"type":{"type":"integer"},"required":true},
       "Mode":{"type":{"type":"string","allowedValues":["A","B"]}},
       "Color":{"type":{"type":"string"}},
       "Policy":{"type":{"type":"json"}},
       "Rules":{"type":{"type":"array","element":{"type":"ref","reference":{"$ref":"9"}}},"previousTypes":[{"type":"json"}]},
       "Labels":{"type":{"type":"array","element":{"type":"tag"}}},
       "Handle":{"type":{"type":"string"},"relationshipRefs":[{"cloudFormationType":"AWS::Test::Handle","propertyName":"Arn"}]}}},
    {"$id":"2","cloudFormationType":"AWS::Test::Old","attributes":{},"properties":{
       "Tags":{"type":{"type":"array","element":{"type":"tag"}},"causesReplacement":"maybe"},
       "Self":{"type":{"type":"ref","reference":{"$ref":"10"}}}}},
    {"$id":"3","cloudFormationType":"AWS::Test::Macro","cloudFormationTransform":"AWS::Test-1","attributes":{},"properties":{
       "Needed":{"required":true,"type":{"type":"array","element":{"type":"tag"}}}}}]},
  "typeDefinition":{"entities":[
    {"$id":"9","name":"Rule","properties":{"Port":{"type":{"type":"integer"},"causesReplacement":"yes"},"Inner":{"type":{"type":"ref","reference":{"$ref":"10"}}}}},
    {"$id":"10","name":"Loop","properties":{"Again":{"type":{"type":"ref","reference":{"$ref":"10"}}}}}]}}}`

const testThing = `{"typeName":"AWS::Test::Thing","additionalProperties":false,
  "properties":{
    "Id":{"type":"string"},
    "Name":{"type":"string","maxLength":5,"pattern":"^[a-z]+$"},
    "Count":{"type":"number","minimum":1},
    "Mode":{"type":"string","enum":["B","C"]},
    "Color":{"type":"string","enum":["red"],"pattern":"(?=lookahead)"},
    "Policy":{"type":["object","string"],"format":"json"},
    "Rules":{"type":"array","insertionOrder":false,"maxItems":3,"items":{"$ref":"#/definitions/Rule"}},
    "Labels":{"type":"array","items":{"type":"object","additionalProperties":false,"required":["Key"],"properties":{"Key":{"type":"string"},"Value":{"type":"string"}}}},
    "Extra":{"oneOf":[{"type":"string"},{"type":"array","items":{"type":"string"}}]},
    "Free":{"type":"object","patternProperties":{".*":{"type":"boolean"}}},
    "State":{"type":"object","properties":{"Phase":{"type":"string"}}}},
  "definitions":{"Rule":{"type":"object","additionalProperties":false,"required":["Port"],
     "properties":{"Port":{"type":"string"},"Note":{"type":"string"}}}},
  "required":["Name"],
  "primaryIdentifier":["/properties/Id"],
  "readOnlyProperties":["/properties/Id","/properties/State/properties/Phase"],
  "createOnlyProperties":["/properties/Rules/Note","/properties/Name"],
  "conditionalCreateOnlyProperties":["/properties/Labels/items/properties/Key"],
  "writeOnlyProperties":["/properties/Rules/*/Port"],
  "replacementStrategy":"delete_then_create",
  "tagging":{"taggable":true,"tagProperty":"/properties/Labels"},
  "handlers":{"create":{},"read":{},"delete":{},"list":{}}}`

const testLegacy = `{"typeName":"AWS::Test::Legacy","properties":{"Id":{"type":"string"},"A":{"type":"string"}},
  "readOnlyProperties":["/properties/Id"],"primaryIdentifier":["/properties/Id"],"handlers":{"create":{},"delete":{}}}`

// sources writes both archives in the layout of the published ones.
func sources(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	var db, tgz bytes.Buffer
	zipper := gzip.NewWriter(&db)
	write(t, zipper, testSpec)
	closeAll(t, zipper)
	outer := gzip.NewWriter(&tgz)
	tarball := tar.NewWriter(outer)
	for name, content := range map[string]string{"package/package.json": `{"version":"9.8.7"}`, "package/db.json.gz": db.String()} {
		if err := tarball.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(content))}); err != nil {
			t.Fatal(err)
		}
		write(t, tarball, content)
	}
	closeAll(t, tarball, outer)
	var wheel bytes.Buffer
	archive := zip.NewWriter(&wheel)
	for name, content := range map[string]string{
		"cfnlint/schema/_getatts.py":                          "_all_property_types = [\n    \"AWS::Test::Legacy\",\n]\n",
		"cfn_lint-1.2.3.dist-info/METADATA":                   "Name: cfn-lint",
		"cfnlint/data/schemas/version.json":                   `{"schema_date":"2026-01-02T03:04:05Z"}`,
		"cfnlint/data/schemas/providers/us-east-1.json":       `{"AWS::Test::Thing":"aa","AWS::Test::Legacy":"bb"}`,
		"cfnlint/data/schemas/resources/aa.json":              testThing,
		"cfnlint/data/schemas/resources/bb.json":              testLegacy,
		"cfnlint/data/AdditionalSpecs/StatefulResources.json": `{"ResourceTypes":{"AWS::Test::Old":{}}}`,
	} {
		f, err := archive.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		write(t, f, content)
	}
	closeAll(t, archive)
	for name, content := range map[string][]byte{"aws-cdk-aws-service-spec-9.8.7.tgz": tgz.Bytes(), "cfn_lint-1.2.3-py3-none-any.whl": wheel.Bytes()} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func write(t *testing.T, w interface{ Write([]byte) (int, error) }, content string) {
	t.Helper()
	if _, err := w.Write([]byte(content)); err != nil {
		t.Fatal(err)
	}
}

func closeAll(t *testing.T, all ...interface{ Close() error }) {
	t.Helper()
	for _, one := range all {
		if err := one.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func generate(t *testing.T) *schema.Index {
	t.Helper()
	out := filepath.Join(t.TempDir(), "types.bin")
	if err := run(sources(t), "us-east-1", out); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	index, err := schema.Open(data)
	if err != nil {
		t.Fatal(err)
	}
	return index
}

func TestMerge(t *testing.T) {
	index := generate(t)
	if names := index.Names(); !slices.Equal(names, []string{"AWS::Test::Legacy", "AWS::Test::Macro", "AWS::Test::Old", "AWS::Test::Thing"}) {
		t.Fatalf("types %v", names)
	}
	if got := index.Sources(); got != (schema.SourceVersions{ServiceSpec: "9.8.7", CfnLint: "1.2.3", SchemaDate: "2026-01-02T03:04:05Z", Region: "us-east-1"}) {
		t.Errorf("sources %+v", got)
	}
	thing, _ := index.Lookup("AWS::Test::Thing")
	at := func(path string) *schema.Property {
		p := thing.At(strings.Split(path, "/"))
		if p == nil {
			t.Fatalf("nothing at %s", path)
		}
		return p
	}
	for what, ok := range map[string]bool{
		"required in both sources only":         slices.Equal(thing.Required, []string{"Name"}),
		"integer and number give number":        at("Count").Kind == schema.KindNumber && *at("Count").Minimum == 1,
		"enums are joined":                      slices.Equal(at("Mode").Enum, []string{"A", "B", "C"}),
		"an enum of the registry alone counts":  slices.Equal(at("Color").Enum, []string{"red"}),
		"a pattern RE2 lacks is dropped":        at("Color").Pattern == "" && at("Name").Pattern == "^[a-z]+$",
		"JSON swallows text":                    at("Policy").Kind == schema.KindJSON,
		"a previous type stays accepted":        at("Rules").Kind == schema.KindUnion,
		"different scalars are both accepted":   at("Rules/0/Port").Kind == schema.KindUnion,
		"a property of one source is kept":      at("Rules/0/Note").Kind == schema.KindString && at("Extra").Kind == schema.KindUnion,
		"a map":                                 at("Free").Kind == schema.KindMap && at("Free/x").Kind == schema.KindBoolean,
		"relations":                             at("Handle").RelationType == "AWS::Test::Handle" && at("Handle").RelationProperty == "Arn",
		"a property is no attribute":            !thing.IsAttribute("Name"),
		"what AWS sets is no property":          thing.Properties["Id"] == nil && thing.IsAttribute("Id") && thing.IsAttribute("State.Phase") && thing.IsAttribute("Arn"),
		"Ref is the spec's":                     thing.RefProperty == "Name" && slices.Equal(thing.PrimaryIdentifier, []string{"Id"}),
		"paths get their list element":          slices.Equal(thing.CreateOnly, []string{"Rules/*/Note", "Name"}),
		"paths lose schema words":               slices.Equal(thing.ConditionalCreateOnly, []string{"Labels/*/Key"}) && slices.Equal(thing.WriteOnly, []string{"Rules/*/Port"}),
		"the spec adds verdicts":                len(thing.Replacements) == 2 && thing.Replacements["Rules/*/Port"] == schema.ReplaceAlways,
		"the stricter verdict wins":             thing.Replacement([]string{"Labels", "0", "Key"}) == schema.ReplaceAlways,
		"handlers decide":                       thing.Provisionable && !thing.Updatable && thing.Listable,
		"replacement order":                     thing.DeleteBeforeCreate,
		"tags, ARN, state":                      thing.TagProperty == "Labels" && thing.ARN == "arn:x" && thing.Stateful,
		"a definition's requirement needs both": len(thing.Definitions["Rule"].Required) == 0,
		"a tag takes the registry's word":       slices.Equal(thing.Definitions["Tag"].Required, []string{"Key"}),
	} {
		if !ok {
			t.Errorf("not so: %s", what)
		}
	}
	legacy, _ := index.Lookup("AWS::Test::Legacy")
	if legacy.Provisionable || legacy.RefProperty != "Id" || !legacy.Open || !legacy.IsAttribute("A") {
		t.Errorf("a type without a read handler: %+v", legacy)
	}
	macro, _ := index.Lookup("AWS::Test::Macro")
	if tag := macro.Definitions["Tag"]; !macro.Open || len(macro.Required) > 0 || !tag.Open || len(tag.Required) > 0 {
		t.Errorf("a type that a transform replaces is closed: %+v", macro)
	}
	old, _ := index.Lookup("AWS::Test::Old")
	if old.Provisionable || !old.Stateful || old.Replacement([]string{"Tags", "0", "Key"}) != schema.ReplaceMaybe ||
		old.At([]string{"Self", "Again", "Again"}) == nil || !slices.Equal(old.Definitions["Tag"].Required, []string{"Key", "Value"}) {
		t.Errorf("a type of the service specification only: %+v", old)
	}
}

func TestMissingSourcesAreNamed(t *testing.T) {
	err := run(t.TempDir(), "us-east-1", filepath.Join(t.TempDir(), "out"))
	if err == nil || !strings.Contains(err.Error(), "fetch.sh") {
		t.Errorf("error %v", err)
	}
	if err := run(sources(t), "moon-1", filepath.Join(t.TempDir(), "out")); err == nil || !strings.Contains(err.Error(), "moon-1") {
		t.Errorf("error %v", err)
	}
}
