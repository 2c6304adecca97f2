package diff

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/slipway-cdk/slipway/pkg/intrinsic"
	"github.com/slipway-cdk/slipway/pkg/schema"
)

// https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-properties-resource-tags.html
func TestStackTagsTakeTheShapeThatTheTypeWants(t *testing.T) {
	tags := map[string]string{"team": "core", "cost": "42", "AWS:x": "y"}
	for _, tt := range []struct{ name, typ, properties, want string }{
		{"a list", "AWS::SQS::Queue", `{}`, `{"Tags":[{"Key":"cost","Value":"42"},{"Key":"team","Value":"core"}]}`},
		{"no properties at all", "AWS::SQS::Queue", `null`, `{"Tags":[{"Key":"cost","Value":"42"},{"Key":"team","Value":"core"}]}`},
		{"the resource's own stand", "AWS::SQS::Queue", `{"Tags":[{"Key":"team","Value":"other"}]}`,
			`{"Tags":[{"Key":"team","Value":"other"},{"Key":"cost","Value":"42"}]}`},
		{"a map", "AWS::ApiGatewayV2::Api", `{"Tags":{"team":"other"}}`, `{"Tags":{"cost":"42","team":"other"}}`},
		{"a map, none yet", "AWS::ApiGatewayV2::Api", `{"Name":"n"}`, `{"Name":"n","Tags":{"cost":"42","team":"core"}}`},
		{"free JSON", "AWS::Glue::Job", `{}`, `{"Tags":{"cost":"42","team":"core"}}`},
		{"free JSON that is a list", "AWS::Glue::Job", `{"Tags":[{"Key":"team","Value":"x"}]}`,
			`{"Tags":[{"Key":"team","Value":"x"},{"Key":"cost","Value":"42"}]}`},
		{"instances of a group", "AWS::AutoScaling::AutoScalingGroup", `{}`,
			`{"Tags":[{"Key":"cost","PropagateAtLaunch":true,"Value":"42"},{"Key":"team","PropagateAtLaunch":true,"Value":"core"}]}`},
		{"another property", "AWS::Cognito::UserPool", `{}`, `{"UserPoolTags":{"cost":"42","team":"core"}}`},
		{"another property, a list", "AWS::EFS::FileSystem", `{}`, `{"FileSystemTags":[{"Key":"cost","Value":"42"},{"Key":"team","Value":"core"}]}`},
		{"other names in use", "AWS::AppStream::AppBlock", `{"Tags":[{"TagKey":"a","TagValue":"b"}]}`,
			`{"Tags":[{"TagKey":"a","TagValue":"b"},{"TagKey":"cost","TagValue":"42"},{"TagKey":"team","TagValue":"core"}]}`},
		{"a nested stack hands them on", "AWS::CloudFormation::Stack", `{}`, `{"Tags":[{"Key":"cost","Value":"42"},{"Key":"team","Value":"core"}]}`},
		{"no tags", "AWS::IAM::Policy", `{}`, `{}`},
		{"tags that would replace the resource", "AWS::AppRunner::Service", `{}`, `{}`},
		{"a type that can't be updated", "AWS::EC2::KeyPair", `{}`, `{}`},
		{"a custom resource", "Custom::X", `{"ServiceToken":"t"}`, `{"ServiceToken":"t"}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			typ, ok := schema.Lookup(tt.typ)
			if !ok {
				t.Fatal("unknown type")
			}
			properties := decode(t, tt.properties)
			got := WithStackTags(typ, properties, tags)
			text, err := json.Marshal(got)
			if err != nil || string(text) != tt.want {
				t.Errorf("got %s, want %s", text, tt.want)
			}
			if before := decode(t, tt.properties); !identical(properties, before) {
				t.Errorf("the properties themselves have changed: %v", properties)
			}
			again := WithStackTags(typ, got, tags)
			if !identical(again, got) {
				t.Errorf("a second time: %v", again)
			}
		})
	}
}

// Every type that has tags either takes stack tags in a form that its schema accepts, or is one whose tags can't change.
func TestStackTagsFitEveryType(t *testing.T) {
	tagged := 0
	for _, name := range schema.Names() {
		typ, _ := schema.Lookup(name)
		got := WithStackTags(typ, nil, map[string]string{"team": "core"})
		if len(got) == 0 {
			if typ.TagProperty != "" && typ.Replacement([]string{typ.TagProperty}) == schema.ReplaceNever && (typ.Updatable || !typ.Provisionable) {
				t.Errorf("%s gets no tags", name)
			}
			continue
		}
		tagged++
		for _, p := range schema.Validate(typ, got, schema.Options{Lenient: true}) {
			if len(p.Path) > 0 && p.Path[0] == typ.TagProperty {
				t.Errorf("%s: %s", name, p)
			}
		}
	}
	if tagged < 1000 {
		t.Errorf("only %d types are tagged", tagged)
	}
}

func TestTagsThatAreNotKnownYetWait(t *testing.T) {
	queue, _ := schema.Lookup("AWS::SQS::Queue")
	unknown := map[string]any{"Tags": intrinsic.Unknown{Refs: []string{"A"}}}
	if got := WithStackTags(queue, unknown, map[string]string{"a": "b"}); fmt.Sprint(got) != fmt.Sprint(unknown) {
		t.Errorf("%v", got)
	}
}

func TestStackTagsAreComparedLikeAnyProperty(t *testing.T) {
	const source = `{"Q":{"Type":"AWS::SQS::Queue","Properties":{"DelaySeconds":1}},"P":{"Type":"AWS::IAM::Policy","Properties":{"PolicyName":"p","PolicyDocument":{},"Users":["u"]}}}`
	in := resources(t, source)
	in.Record = mustDeploy(t, in)
	in.StackTags = map[string]string{"team": "core"}
	result, diags := Compute(in)
	if got := brief(result.Changes); len(diags) > 0 || got != "update Q Tags" {
		t.Fatalf("adding a stack tag: %s %v", got, diags)
	}
	in.Record.Resources["Q"].Properties = result.Desired["Q"]
	if result, _ = Compute(in); len(result.Changes) > 0 {
		t.Errorf("afterwards: %s", brief(result.Changes))
	}
	in.StackTags = map[string]string{"team": "edge"}
	if result, _ = Compute(in); brief(result.Changes) != "update Q Tags.0.Value" {
		t.Errorf("another value: %s", brief(result.Changes))
	}
	in.StackTags = nil
	if result, _ = Compute(in); brief(result.Changes) != "update Q Tags" {
		t.Errorf("no stack tags any more: %s", brief(result.Changes))
	}
}

func TestStackTagsThatAWSRefuses(t *testing.T) {
	many := map[string]string{}
	for i := range 51 {
		many[fmt.Sprint(i)] = ""
	}
	for want, tags := range map[string]map[string]string{
		"":                           {"team": "core", "aws": "fine", strings.Repeat("é", 128): strings.Repeat("é", 256)},
		"has the prefix aws:":        {"Aws:team": "core"},
		"51 tags, and 50":            many,
		"1 to 128 characters":        {"": "x"},
		"more than 256 characters":   {"a": strings.Repeat("x", 257)},
		"needs 1 to 128 characters,": {strings.Repeat("k", 129): "x"},
	} {
		in := resources(t, `{"Q":{"Type":"AWS::SQS::Queue"}}`)
		in.StackTags = tags
		_, diags := Compute(in)
		if want == "" && len(diags) > 0 || want != "" && (!diags.HasErrors() || !strings.Contains(diags.Error(), want)) {
			t.Errorf("%v, want %q", diags, want)
		}
	}
}
