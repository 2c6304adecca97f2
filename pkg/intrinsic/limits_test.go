package intrinsic_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/slipway-cdk/slipway/pkg/intrinsic"
	"github.com/slipway-cdk/slipway/pkg/template"
)

// foreign is text that must come out as it went in: several scripts, combining marks, an emoji of several code points,
// a right-to-left mark, U+2028, U+FFFD, an escaped NUL and an escaped surrogate pair.
const (
	foreign        = "Größe 日本語 кириллица e\u0301 👩‍👩‍👧‍👦 \u200f \u2028 \ufffd <&> \x00 😀"
	foreignEscaped = `Größe 日本語 кириллица e\u0301 👩‍👩‍👧‍👦 \u200f \u2028 \ufffd <&> \u0000 \ud83d\ude00`
)

// largeTemplate has 2,000 resources and 5 MB, half of it made by hand and half by a loop.
func largeTemplate() string {
	var b strings.Builder
	filler := strings.Repeat("x", 4_800)
	b.WriteString(`{"Transform": "AWS::LanguageExtensions", "Parameters": {"Env": {"Type": "String", "Default": "` + foreignEscaped + `"}}, "Resources": {`)
	for i := range 1000 {
		fmt.Fprintf(&b, `"Topic%d": {"Type": "AWS::SNS::Topic", "Properties": {"DisplayName": {"Fn::Sub": "${Env}%s"}, "Tags": [{"Key": "%s", "Value": {"Ref": "Loop%d"}}]}},`, i, filler, foreignEscaped, i)
	}
	items := make([]string, 1000)
	for i := range items {
		items[i] = fmt.Sprintf(`"%d"`, i)
	}
	fmt.Fprintf(&b, `"Fn::ForEach::Topics": ["N", [%s], {"Loop${N}": {"Type": "AWS::SNS::Topic", "Properties": {"DisplayName": {"Fn::Join": ["", [{"Ref": "Env"}, "-", {"Ref": "N"}, "%s"]]}}}}]}}`, strings.Join(items, ","), filler[:400])
	return b.String()
}

func TestTwoThousandResourcesAndFiveMegabytesAreNoLimit(t *testing.T) {
	data := []byte(largeTemplate())
	if len(data) < 5_000_000 {
		t.Fatalf("the template has %d bytes", len(data))
	}
	start := time.Now()
	tmpl, err := template.Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	params, ds := tmpl.BindParameters(nil, nil)
	if ds.HasErrors() {
		t.Fatal(ds)
	}
	pseudo := intrinsic.PseudoFor("123456789012", "eu-west-1", "Shop")
	out, ds := intrinsic.Expand(tmpl, params, pseudo)
	if ds.HasErrors() {
		t.Fatal(ds)
	}
	if ds := template.Validate(out); ds.HasErrors() {
		t.Fatal(ds)
	}
	if len(out.Order) != 2000 {
		t.Fatalf("it has %d resources", len(out.Order))
	}
	edges := template.Dependencies(out, nil)
	scope := &intrinsic.Scope{Template: out, Parameters: params, Pseudo: pseudo, Resources: map[string]intrinsic.Resource{}}
	for id, r := range out.Resources {
		scope.Resources[id] = intrinsic.Resource{Type: r.Type, PhysicalID: "arn:" + id}
	}
	r := intrinsic.NewResolver(scope)
	for i, id := range out.Order {
		props, err := r.ResolveProperties(out.Resources[id].Properties, "Properties")
		if err != nil {
			t.Fatal(err)
		}
		if name, _ := props["DisplayName"].(string); !strings.HasPrefix(name, foreign) {
			t.Fatalf("%s is called %q", id, name[:60])
		}
		if i >= 1000 {
			continue
		}
		tag := props["Tags"].([]any)[0].(map[string]any)
		if tag["Key"] != foreign || tag["Value"] != fmt.Sprintf("arn:Loop%d", i) {
			t.Fatalf("%s has the tag %q", id, tag)
		}
		if len(edges[id]) != 1 || edges[id][0].Target != fmt.Sprintf("Loop%d", i) {
			t.Fatalf("%s waits for %v", id, edges[id])
		}
	}
	took := time.Since(start)
	t.Logf("%d bytes, %d resources: %s", len(data), len(out.Order), took)
	if took > 20*time.Second {
		t.Errorf("it took %s", took)
	}
}

func TestForeignTextSurvivesByteForByte(t *testing.T) {
	tmpl, err := template.Parse([]byte(`{"Transform": "AWS::LanguageExtensions", "Resources": {"R": {"Type": "T", "Properties": {
	 "Plain": "` + foreignEscaped + `", "` + foreignEscaped + `": 1, "Sub": {"Fn::Sub": ["${A}", {"A": "` + foreignEscaped + `"}]}, "Join": {"Fn::Join": ["|", ["` + foreignEscaped + `"]]},
	 "Split": {"Fn::Split": [" ", "` + foreignEscaped + `"]}, "JSON": {"Fn::ToJsonString": {"k": "` + foreignEscaped + `"}}}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	out, ds := intrinsic.Expand(tmpl, nil, intrinsic.Pseudo{})
	if ds.HasErrors() {
		t.Fatal(ds)
	}
	props, err := intrinsic.NewResolver(&intrinsic.Scope{Template: out}).ResolveProperties(out.Resources["R"].Properties, "Properties")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"Plain", "Sub", "Join"} {
		if props[name] != foreign {
			t.Errorf("%s is %q", name, props[name])
		}
	}
	if props[foreign] != json.Number("1") {
		t.Errorf("the key is lost: %v", props)
	}
	var back map[string]string
	if err := json.Unmarshal([]byte(props["JSON"].(string)), &back); err != nil || back["k"] != foreign {
		t.Errorf("the JSON is %q: %v", props["JSON"], err)
	}
	if parts := props["Split"].([]any); fmt.Sprint(parts) != fmt.Sprint(strings.Split(foreign, " ")) {
		t.Errorf("the parts are %q", parts)
	}
}

func TestDeepFunctionsResolveUpToTheLimitOfTheTemplate(t *testing.T) {
	nested := func(depth int) string {
		return strings.Repeat(`{"Fn::Join": ["", [`, depth) + `"x"` + strings.Repeat(`]]}`, depth)
	}
	parse := func(depth int) (*template.Template, error) {
		return template.Parse([]byte(`{"Transform": "AWS::LanguageExtensions", "Resources": {"R": {"Type": "T", "Properties": {"P": ` + nested(depth) + `}}}}`))
	}
	// Each Join nests three levels: its object, its arguments, its list.
	deepest := (template.MaxDepth - 5) / 3
	tmpl, err := parse(deepest)
	if err != nil {
		t.Fatal(err)
	}
	out, ds := intrinsic.Expand(tmpl, nil, intrinsic.Pseudo{})
	if ds.HasErrors() {
		t.Fatal(ds)
	}
	if v, err := intrinsic.NewResolver(&intrinsic.Scope{Template: out}).Resolve(out.Resources["R"].Properties["P"], "P"); err != nil || v != "x" {
		t.Fatalf("got %v, %v", v, err)
	}
	if _, err := parse(deepest + 2); err == nil || !strings.Contains(err.Error(), "the template nests deeper than 200 levels") {
		t.Fatalf("the problem is %v", err)
	}
}
