package intrinsic_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-cdk/slipway/pkg/intrinsic"
	"github.com/slipway-cdk/slipway/pkg/template"
)

// Where the rules of the language are documented.
const (
	docReference = "https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/intrinsic-function-reference"
	docGuide     = "https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/"

	docRef        = docReference + "-ref.html"
	docGetAtt     = docReference + "-getatt.html"
	docSub        = docReference + "-sub.html"
	docJoin       = docReference + "-join.html"
	docSelect     = docReference + "-select.html"
	docSplit      = docReference + "-split.html"
	docConditions = docReference + "-conditions.html"
	docFindInMap  = docReference + "-findinmap.html"
	docGetAZs     = docReference + "-getavailabilityzones.html"
	docBase64     = docReference + "-base64.html"
	docCidr       = docReference + "-cidr.html"
	docImport     = docReference + "-importvalue.html"
	docToJSON     = docReference + "-ToJsonString.html"
	docLength     = docReference + "-length.html"
	docDynamic    = docGuide + "dynamic-references.html"
	docPseudo     = docGuide + "pseudo-parameter-reference.html"
	docOutput     = docGuide + "outputs-section-structure.html"
)

// A languageCase is one rule of the template language: a value, and what CloudFormation makes of it. want is JSON,
// fails a part of the expected problem, waits what an unknown result waits for. Exactly one of them is set.
type languageCase struct {
	name  string
	doc   string
	value string
	want  string
	fails string
	waits []string
}

func languageCases() []languageCase {
	var all []languageCase
	all = append(all, referenceCases()...)
	all = append(all, stringCases()...)
	all = append(all, lookupCases()...)
	all = append(all, logicCases()...)
	return append(all, unknownCases()...)
}

const languageTemplate = `{
 "Transform": "AWS::LanguageExtensions",
 "Parameters": {
  "Env": {"Type": "String"}, "Size": {"Type": "Number"}, "Names": {"Type": "CommaDelimitedList"}, "Ports": {"Type": "List<Number>"}, "Empty": {"Type": "String"}
 },
 "Mappings": {
  "Regions": {"eu-west-1": {"Ami": "ami-1", "Zones": ["a", "b"], "Count": 3}, "us-east-1": {"Ami": "ami-2"}}
 },
 "Conditions": {"Yes": {"Fn::Equals": ["a", "a"]}, "No": {"Fn::Equals": ["a", "b"]}},
 "Resources": {
  "Bucket": {"Type": "AWS::S3::Bucket"},
  "Role": {"Type": "AWS::IAM::Role", "Properties": {"Path": "/team/"}},
  "Database": {"Type": "AWS::RDS::DBInstance"},
  "Child": {"Type": "AWS::CloudFormation::Stack"},
  "Custom": {"Type": "Custom::Thing"},
  "Later": {"Type": "AWS::SNS::Topic"},
  "Replaced": {"Type": "AWS::SQS::Queue"},
  "Never": {"Type": "AWS::SNS::Topic", "Condition": "No"}
 }
}`

func languageScope(t testing.TB) *intrinsic.Scope {
	t.Helper()
	tmpl, err := template.Parse([]byte(languageTemplate))
	if err != nil {
		t.Fatal(err)
	}
	params, ds := tmpl.BindParameters(map[string]string{"Env": "prod", "Size": "8", "Names": "x, y ,z", "Ports": "80,443", "Empty": ""}, nil)
	if err := ds.Err(); err != nil {
		t.Fatal(err)
	}
	pseudo := intrinsic.PseudoFor("123456789012", "eu-west-1", "Shop")
	conditions, ds := intrinsic.EvaluateConditions(tmpl, params, pseudo)
	if err := ds.Err(); err != nil {
		t.Fatal(err)
	}
	return &intrinsic.Scope{
		Template: tmpl, Parameters: params, Conditions: conditions, Pseudo: pseudo,
		Resources: map[string]intrinsic.Resource{
			"Bucket":   {Type: "AWS::S3::Bucket", PhysicalID: "shop-bucket"},
			"Role":     {Type: "AWS::IAM::Role", PhysicalID: "shop-role", Properties: map[string]any{"Path": "/team/"}},
			"Database": {Type: "AWS::RDS::DBInstance", PhysicalID: "shopdb", Attributes: map[string]any{"Endpoint.Address": "db.example", "Endpoint": map[string]any{"Port": "5432"}}},
			"Child":    {Type: "AWS::CloudFormation::Stack", PhysicalID: "arn:child", Attributes: map[string]any{"Outputs.Url": "https://child"}},
			"Custom":   {Type: "Custom::Thing", PhysicalID: "thing-1", Attributes: map[string]any{"Num": json.Number("7"), "List": []any{"p", "q"}, "Deep": map[string]any{"Er": "deeper"}}},
			"Replaced": {Type: "AWS::SQS::Queue", PhysicalID: "https://sqs.eu-west-1.amazonaws.com/123456789012/old", Pending: true},
		},
		Imports:             map[string]any{"Net-Vpc": "vpc-1", "Net-List": []any{"s1", "s2"}},
		PendingImports:      map[string]bool{"Soon": true},
		StackOutputs:        map[string]any{"Net|eu-west-1|Vpc": "vpc-9", "Net|us-east-1|Vpc": "vpc-us"},
		PendingStackOutputs: map[string]bool{"Net|eu-west-1|Soon": true},
		Zones:               map[string][]string{"eu-west-1": {"eu-west-1a", "eu-west-1b", "eu-west-1c"}, "us-east-1": {"us-east-1a"}},
	}
}

func parseJSON(t testing.TB, text string) any {
	t.Helper()
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return v
}

func encodeJSON(t testing.TB, v any) string {
	t.Helper()
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(out.String())
}

func TestTheLanguageResolvesAsDocumented(t *testing.T) {
	cases := languageCases()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if !strings.HasPrefix(c.doc, "https://docs.aws.amazon.com/") && !strings.HasPrefix(c.doc, "reference §") {
				t.Fatalf("the rule cites nothing: %q", c.doc)
			}
			input := parseJSON(t, c.value)
			got, err := intrinsic.NewResolver(languageScope(t)).Resolve(input, "Properties.P")
			if c.fails != "" {
				if err == nil {
					t.Fatalf("got %v, want a problem with %q", got, c.fails)
				}
				if !strings.Contains(err.Error(), c.fails) {
					t.Fatalf("the problem is\n%v\nwant %q", err, c.fails)
				}
				if !strings.Contains(err.Error(), "Properties.P") {
					t.Fatalf("the problem does not say where: %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if c.waits != nil {
				if diff := cmp.Diff(c.waits, intrinsic.HasUnknown(got)); diff != "" {
					t.Fatalf("waits for (-want +got):\n%s", diff)
				}
				if c.want == "" {
					return
				}
			}
			if c.want == "NoValue" {
				if got != (intrinsic.NoValue{}) {
					t.Fatalf("got %v, want NoValue", got)
				}
				return
			}
			if diff := cmp.Diff(parseJSON(t, c.want), got); diff != "" {
				t.Fatalf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(parseJSON(t, c.value), input); diff != "" {
				t.Fatalf("the input was changed:\n%s", diff)
			}
		})
	}
	if len(cases) < 120 {
		t.Errorf("%d rules, want at least 120", len(cases))
	}
	t.Logf("%d rules", len(cases))
}
