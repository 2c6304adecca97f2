package intrinsic_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-cdk/slipway/pkg/intrinsic"
	"github.com/slipway-cdk/slipway/pkg/template"
)

const (
	docForEach    = docReference + "-foreach.html"
	docForEachRes = docReference + "-foreach-example-resource.html"
	docExtensions = "https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/transform-aws-languageextensions.html"
	docMapPlus    = docReference + "-findinmap-enhancements.html"
	docPolicyRefs = docGuide + "function-refs-in-policy-attributes.html"
)

// An expansionCase is one rule of AWS::LanguageExtensions: the sections of a template, and what they become. want
// names the sections that are compared; fails is a part of the expected problem. The parameters are those of
// expansionParameters.
type expansionCase struct {
	name     string
	doc      string
	template string
	want     string
	fails    string
}

const expansionParameters = `"Parameters": {
 "Names": {"Type": "CommaDelimitedList", "Default": "Red,Green"}, "None": {"Type": "CommaDelimitedList", "Default": ""},
 "Cidrs": {"Type": "CommaDelimitedList", "Default": "10.0.2.0/24,10.0.3.0/24"}, "Ports": {"Type": "List<Number>", "Default": "80,443"},
 "Env": {"Type": "String", "Default": "prod"}, "Secret": {"Type": "String", "NoEcho": true, "Default": "hush"}, "Secrets": {"Type": "CommaDelimitedList", "NoEcho": true, "Default": "hush,mum"}
}, "Mappings": {
 "Zones": {"eu-west-1": {"Suffixes": ["A", "B"], "Empty": []}, "prod": {"Suffixes": ["P"]}},
 "Gateways": {"Condition": {"B": "IsProd"}}, "Sizes": {"Red": {"Type": "m5.large", "Policy": "Retain"}}
}`

func expandJSON(t *testing.T, sections string) (*template.Template, error) {
	t.Helper()
	tmpl, err := template.Parse([]byte(`{"Transform": "AWS::LanguageExtensions", ` + expansionParameters + `, ` + sections + `}`))
	if err != nil {
		return nil, err
	}
	before, err := json.Marshal(tmpl.Document)
	if err != nil {
		t.Fatal(err)
	}
	params, ds := tmpl.BindParameters(nil, nil)
	if err := ds.Err(); err != nil {
		t.Fatal(err)
	}
	out, ds := intrinsic.Expand(tmpl, params, intrinsic.PseudoFor("123456789012", "eu-west-1", "Shop"))
	after, err := json.Marshal(tmpl.Document)
	if err != nil {
		t.Fatal(err)
	}
	if string(before) != string(after) {
		t.Fatal("the source was changed")
	}
	if err := ds.Err(); err != nil {
		return nil, err
	}
	return out, template.Validate(out).Err()
}

func TestLanguageExtensionsExpandAsDocumented(t *testing.T) {
	cases := expansionCases()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if !strings.HasPrefix(c.doc, "https://") {
				t.Fatalf("the rule cites nothing: %q", c.doc)
			}
			sections := c.template
			if !strings.Contains(sections, `"Resources"`) {
				sections += `, "Resources": {"Only": {"Type": "AWS::SNS::Topic"}}`
			}
			if !strings.Contains(sections, `"Conditions"`) {
				sections += `, "Conditions": {"IsProd": {"Fn::Equals": [{"Ref": "Env"}, "prod"]}, "IsTest": {"Fn::Equals": [{"Ref": "Env"}, "test"]}}`
			}
			got, err := expandJSON(t, sections)
			if c.fails != "" {
				if err == nil {
					t.Fatalf("it expands to %s\nwant a problem with %q", encodeJSON(t, got.Document), c.fails)
				}
				if !strings.Contains(err.Error(), c.fails) {
					t.Fatalf("the problem is\n%v\nwant %q", err, c.fails)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			want := parseJSON(t, "{"+c.want+"}").(map[string]any)
			for section := range want {
				if diff := cmp.Diff(want[section], got.Document[section]); diff != "" {
					t.Errorf("%s (-want +got):\n%s", section, diff)
				}
			}
		})
	}
	t.Logf("%d rules", len(cases))
}

func topics(ids ...string) string {
	var parts []string
	for _, id := range ids {
		parts = append(parts, `"`+id+`": {"Type": "AWS::SNS::Topic"}`)
	}
	return `"Resources": {` + strings.Join(parts, ", ") + `}`
}

// loopOf is a section of one loop over topics.
func loopOf(collection, key string) string {
	return `"Resources": {"Fn::ForEach::Loop": ["X", ` + collection + `, {"` + key + `": {"Type": "AWS::SNS::Topic"}}]}`
}

// inResource is a template whose loop makes one resource per item of ["A", "B"], with the attributes given.
func inResource(attributes string) string {
	return `"Resources": {"Fn::ForEach::Loop": ["X", ["A", "B"], {"R${X}": {"Type": "AWS::SNS::Topic", ` + attributes + `}}]}`
}

func twoResources(a, b string) string {
	return `"Resources": {"RA": {"Type": "AWS::SNS::Topic", ` + a + `}, "RB": {"Type": "AWS::SNS::Topic", ` + b + `}}`
}

func TestLoopsKeepTheOrderOfTheTemplate(t *testing.T) {
	tmpl, err := expandJSON(t, `"Resources": {"Zebra": {"Type": "AWS::SNS::Topic"}, "Fn::ForEach::Loop": ["X", ["9", "1", "5"], {"T${X}": {"Type": "AWS::SNS::Topic"}, "Q${X}": {"Type": "AWS::SQS::Queue"}}], "Alpha": {"Type": "AWS::SNS::Topic"}}`)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"Zebra", "Q9", "T9", "Q1", "T1", "Q5", "T5", "Alpha"}, tmpl.Order); diff != "" {
		t.Fatal(diff)
	}
}

func TestComputedLogicalIDsGiveEdges(t *testing.T) {
	tmpl, err := expandJSON(t, `"Resources": {
	 "Fn::ForEach::Queues": ["X", {"Ref": "Names"}, {"Queue${X}": {"Type": "AWS::SQS::Queue"}, "Topic${X}": {"Type": "AWS::SNS::Topic", "DependsOn": "Queue${X}", "Properties": {
	  "DisplayName": {"Ref": {"Fn::Sub": "Queue${X}"}}, "TopicName": {"Fn::GetAtt": [{"Fn::Join": ["", ["Queue", {"Ref": "X"}]]}, "QueueName"]}, "KmsMasterKeyId": {"Fn::Sub": "${Queue${X}.Arn}"}}}}],
	 "Last": {"Type": "AWS::SNS::Topic", "DependsOn": [{"Fn::Sub": "Topic${Env}"}, "TopicRed"], "Properties": {"DisplayName": {"Ref": {"Fn::Select": [1, ["x", "TopicGreen"]]}}}},
	 "Topicprod": {"Type": "AWS::SNS::Topic"}
	}`)
	if err != nil {
		t.Fatal(err)
	}
	edges := template.Dependencies(tmpl, nil)
	var got []string
	for _, id := range tmpl.Order {
		for _, e := range edges[id] {
			got = append(got, fmt.Sprintf("%s %s %s%s", id, e.Kind, e.Target, map[bool]string{true: "." + e.Attribute}[e.Attribute != ""]))
		}
	}
	var want []string
	for _, x := range []string{"Red", "Green"} {
		want = append(want, "Topic"+x+" DependsOn Queue"+x, "Topic"+x+" Ref Queue"+x, "Topic"+x+" Fn::Sub Queue"+x+".Arn", "Topic"+x+" Fn::GetAtt Queue"+x+".QueueName")
	}
	want = append(want, "Last DependsOn Topicprod", "Last DependsOn TopicRed", "Last Ref TopicGreen")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatal(diff)
	}
}

func TestExpansionIsDeterministicAndIdempotent(t *testing.T) {
	for _, c := range expansionCases() {
		if c.fails != "" || !strings.Contains(c.template, `"Resources"`) || !strings.Contains(c.template, `"Conditions"`) {
			continue
		}
		first, err := expandJSON(t, c.template)
		if err != nil {
			t.Fatal(err)
		}
		second, err := expandJSON(t, c.template)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(first, second); diff != "" {
			t.Errorf("%s is not deterministic:\n%s", c.name, diff)
		}
		again, ds := intrinsic.Expand(first, nil, intrinsic.Pseudo{})
		if ds.HasErrors() || again != first {
			t.Errorf("%s: an expanded template is not plain", c.name)
		}
		reread, err := template.Parse([]byte(encodeJSON(t, first.Document)))
		if err != nil {
			t.Fatal(err)
		}
		params, _ := reread.BindParameters(nil, nil)
		twice, ds := intrinsic.Expand(reread, params, intrinsic.PseudoFor("123456789012", "eu-west-1", "Shop"))
		if ds.HasErrors() {
			t.Fatal(ds)
		}
		if diff := cmp.Diff(first.Document, twice.Document); diff != "" {
			t.Errorf("%s: expanding twice changes it:\n%s", c.name, diff)
		}
	}
}

func TestAnExpandedTemplateKeepsItsOrderWhenItIsStored(t *testing.T) {
	first, err := expandJSON(t, `"Resources": {"Zebra": {"Type": "AWS::SNS::Topic"}, "Fn::ForEach::Loop": ["X", ["9", "1"], {"T${X}": {"Type": "AWS::SNS::Topic", "DeletionPolicy": {"Fn::If": ["C", "Retain", "Delete"]}}}], "Alpha": {"Type": "AWS::SNS::Topic"}}, "Conditions": {"C": {"Fn::Equals": ["a", "a"]}}`)
	if err != nil {
		t.Fatal(err)
	}
	data, err := first.Encode()
	if err != nil {
		t.Fatal(err)
	}
	stored, err := template.Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(first.Order, stored.Order); diff != "" {
		t.Errorf("the order (-before +after):\n%s", diff)
	}
	// Nothing is left that a parameter or a condition would have to be known for.
	again, ds := intrinsic.Expand(stored, nil, intrinsic.Pseudo{})
	if ds.HasErrors() {
		t.Fatal(ds)
	}
	if diff := cmp.Diff(first, again); diff != "" {
		t.Errorf("(-before +after):\n%s", diff)
	}
}

func TestConditionsThatNothingHereDependsOnAreNotEvaluated(t *testing.T) {
	source := func(collection string) *template.Template {
		tmpl, err := template.Parse([]byte(`{"Transform": "AWS::LanguageExtensions", "Parameters": {"Later": {"Type": "String"}, "Now": {"Type": "String"}},
		 "Conditions": {"OnLater": {"Fn::Equals": [{"Ref": "Later"}, "x"]}, "OnNow": {"Fn::Equals": [{"Ref": "Now"}, "x"]}, "Both": {"Fn::And": [{"Condition": "OnNow"}, {"Condition": "OnLater"}]}},
		 "Resources": {"Fn::ForEach::Loop": ["X", ` + collection + `, {"T${X}": {"Type": "AWS::SNS::Topic", "Condition": "OnLater"}}]}}`))
		if err != nil {
			t.Fatal(err)
		}
		return tmpl
	}
	params := map[string]any{"Now": "x"}
	out, ds := intrinsic.Expand(source(`{"Fn::If": ["OnNow", ["A"], []]}`), params, intrinsic.Pseudo{})
	if ds.HasErrors() || len(out.Resources) != 1 {
		t.Fatalf("got %v, %v", out, ds)
	}
	_, ds = intrinsic.Expand(source(`{"Fn::If": ["Both", ["A"], []]}`), params, intrinsic.Pseudo{})
	if err := ds.Err(); err == nil || !strings.Contains(err.Error(), "the parameter Later has no value") {
		t.Fatalf("the problem is %v", err)
	}
}

func TestATemplateWithoutTheTransformIsReturnedAsItIs(t *testing.T) {
	tmpl, err := template.Parse([]byte(`{"Resources": {"R": {"Type": "AWS::SNS::Topic"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	if out, ds := intrinsic.Expand(tmpl, nil, intrinsic.Pseudo{}); out != tmpl || len(ds) != 0 {
		t.Fatal("it is another one")
	}
}

func TestEndlessLoopsAreStopped(t *testing.T) {
	items := func(n int) string {
		list := make([]string, n)
		for i := range list {
			list[i] = fmt.Sprintf("%q", fmt.Sprintf("i%d", i))
		}
		return "[" + strings.Join(list, ",") + "]"
	}
	// Five loops of 200 items: 3.2e11 resources, or nothing at all 3.2e11 times.
	nest := func(innermost string) string {
		s := innermost
		for level := 4; level >= 1; level-- {
			s = fmt.Sprintf(`"Fn::ForEach::L%d": ["X%d", %s, {%s}]`, level, level, items(200), s)
		}
		return `"Resources": {"R": {"Type": "AWS::SNS::Topic"}, ` + s + `}`
	}
	cases := map[string]string{
		"that produce too much":         nest(`"Fn::ForEach::L5": ["X5", ` + items(200) + `, {"R${X1}${X2}${X3}${X4}${X5}": {"Type": "AWS::SNS::Topic"}}]`),
		"that produce nothing":          nest(`"Fn::ForEach::L5": ["X5", [], {"R${X5}": {"Type": "AWS::SNS::Topic"}}]`),
		"that copy a long text":         `"Resources": {"Fn::ForEach::L": ["X", ` + items(1000) + `, {"R${X}": {"Type": "AWS::SNS::Topic", "Properties": {"DisplayName": "${X}` + strings.Repeat("long ", 20_000) + `"}}}]}`,
		"with many unclosed identifier": `"Resources": {"Fn::ForEach::L": ["X", ` + items(1000) + `, {"R${X}": {"Type": "AWS::SNS::Topic", "Properties": {"DisplayName": "` + strings.Repeat("${", 50_000) + `}"}}}]}`,
	}
	for name, sections := range cases {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			_, err := expandJSON(t, sections)
			if err == nil || !strings.Contains(err.Error(), "the loops make the template too large: they produce more than 64 MiB") {
				t.Fatalf("the problem is %v", err)
			}
			if took := time.Since(start); took > 10*time.Second {
				t.Fatalf("it took %s to stop", took)
			}
		})
	}
}

func FuzzExpand(f *testing.F) {
	for _, c := range expansionCases() {
		f.Add(c.template)
	}
	f.Fuzz(func(t *testing.T, sections string) {
		tmpl, err := template.Parse([]byte(`{"Transform": "AWS::LanguageExtensions", ` + expansionParameters + `, ` + sections + `}`))
		if err != nil {
			return
		}
		params, ds := tmpl.BindParameters(nil, nil)
		if ds.HasErrors() {
			return
		}
		out, ds := intrinsic.Expand(tmpl, params, intrinsic.PseudoFor("123456789012", "eu-west-1", "Shop"))
		if ds.HasErrors() {
			return
		}
		for id := range out.Resources {
			if strings.Contains(id, "Fn::ForEach") {
				t.Fatalf("a loop is left: %s", id)
			}
		}
		_ = template.Validate(out)
		template.Dependencies(out, nil)
	})
}

func TestAtLeast250RulesCiteTheDocumentation(t *testing.T) {
	if n := len(languageCases()) + len(expansionCases()); n < 250 {
		t.Errorf("%d rules, want at least 250", n)
	}
}
