package secret

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/slipway-cdk/slipway/pkg/intrinsic"
	"github.com/slipway-cdk/slipway/pkg/template"
)

// placesIn walks properties written as JSON. Password is secret, Plain is not, Topic exists, New does not.
func placesIn(t *testing.T, properties string, parameters map[string]any) (places []Place, rewritten any) {
	t.Helper()
	tmpl, err := template.Parse([]byte(`{
		"Parameters":{"Password":{"Type":"String","NoEcho":true},"Other":{"Type":"String","NoEcho":true},"Plain":{"Type":"String"}},
		"Mappings":{"M":{"a":{"b":"c"}}},
		"Conditions":{"Yes":{"Fn::Equals":["a","a"]},"No":{"Fn::Equals":["a","b"]}},
		"Resources":{"Topic":{"Type":"AWS::SNS::Topic"},"New":{"Type":"AWS::SNS::Topic"},"R":{"Type":"AWS::SSM::Parameter","Properties":` + properties + `}}}`))
	if err != nil {
		t.Fatal(err)
	}
	conditions := map[string]bool{"Yes": true, "No": false}
	values := map[string]any{"Plain": "plain"}
	for k, v := range parameters {
		values[k] = v
	}
	resolver := intrinsic.NewResolver(&intrinsic.Scope{
		Template: tmpl, Conditions: conditions, Parameters: values, Pseudo: intrinsic.PseudoFor("111111111111", "eu-west-1", "S"),
		Resources: map[string]intrinsic.Resource{"Topic": {Type: "AWS::SNS::Topic", PhysicalID: "arn:aws:sns:eu-west-1:111111111111:T"}},
	})
	scope := Scope{
		Secret:     func(name string) bool { return name == "Password" || name == "Other" },
		Conditions: conditions, Mappings: tmpl.Mappings, Resolve: resolver.Resolve,
	}
	rewritten = scope.Walk(tmpl.Resources["R"].Properties, func(p Place, _ any) any {
		places = append(places, p)
		return Mask
	})
	return places, rewritten
}

func TestPlacesAreFoundByTheirExpression(t *testing.T) {
	for properties, want := range map[string]string{
		`{"A":{"Ref":"Password"}}`:                                                                       `A`,
		`{"A":{"Fn::Sub":"x${Password}y"}}`:                                                              `A`,
		`{"A":{"Fn::Sub":"x${!Password}y"}}`:                                                             ``,
		`{"A":{"Fn::Sub":["${V}",{"V":{"Ref":"Password"}}]}}`:                                            `A`,
		`{"A":{"Fn::Sub":["${Password}",{"Password":"own"}]}}`:                                           ``,
		`{"A":{"Fn::Base64":{"Fn::Join":["",["a",{"Ref":"Password"}]]}}}`:                                `A`,
		`{"A":{"Fn::Select":[0,{"Fn::Split":[",",{"Ref":"Password"}]}]}}`:                                `A`,
		`{"A":{"B.c":[{"Ref":"Plain"},{"Ref":"Password"}]}}`:                                             `A.B~1c.1`,
		`{"A":[{"Ref":"AWS::NoValue"},{"Fn::If":["No","x",{"Ref":"AWS::NoValue"}]},{"Ref":"Password"}]}`: `A.0`,
		`{"A":{"Fn::If":["Yes",{"B":{"Ref":"Password"},"C":"c"},{"Ref":"Other"}]}}`:                      `A.B`,
		`{"A":{"Fn::If":["No",{"Ref":"Password"},"x"]}}`:                                                 ``,
		`{"A":{"Fn::Join":["",[{"Fn::If":["No",{"Ref":"Password"},"x"]}]]}}`:                             ``,
		`{"A":{"Fn::ToJsonString":{"k":{"Ref":"Password"}}},"B":{"Ref":"Topic"}}`:                        `A`,
	} {
		places, rewritten := placesIn(t, properties, map[string]any{"Password": "p", "Other": "o"})
		var keys []string
		for _, p := range places {
			keys = append(keys, p.Path.Key())
		}
		if got := strings.Join(keys, " "); got != want {
			t.Errorf("%s: %q, want %q", properties, got, want)
		}
		if body, _ := json.Marshal(rewritten); (want != "") != strings.Contains(string(body), Mask) {
			t.Errorf("%s is rewritten to %s", properties, body)
		}
	}
}

// The skeleton changes with everything but the secret.
func TestASkeletonIsWhatSurroundsTheSecret(t *testing.T) {
	skeleton := func(properties string, parameters map[string]any) string {
		places, _ := placesIn(t, properties, parameters)
		if len(places) != 1 {
			t.Fatalf("%s has %d places", properties, len(places))
		}
		body, err := json.Marshal(places[0].Skeleton)
		if err != nil {
			t.Fatal(err)
		}
		return string(body)
	}
	base := `{"A":{"Fn::Join":["-",["x",{"Ref":"Password"},{"Ref":"Plain"},{"Fn::GetAtt":["Topic","TopicName"]}]]}}`
	one := skeleton(base, map[string]any{"Password": "marker-1"})
	if two := skeleton(base, map[string]any{"Password": "marker-2"}); one != two || strings.Contains(one, "marker") {
		t.Errorf("%s and %s", one, two)
	}
	for _, other := range []string{
		skeleton(base, map[string]any{"Plain": "another"}),
		skeleton(strings.Replace(base, `"x"`, `"y"`, 1), nil),
		skeleton(strings.Replace(base, `"-"`, `"+"`, 1), nil),
		skeleton(strings.Replace(base, "Password", "Other", 1), nil),
		skeleton(strings.Replace(base, `"TopicName"`, `"TopicArn"`, 1), nil),
	} {
		if other == one {
			t.Errorf("%s is taken for the same", other)
		}
	}
	sub := `{"A":{"Fn::Sub":"${Password} ${Topic.TopicName} ${Plain}"}}`
	if a, b := skeleton(sub, nil), skeleton(sub, map[string]any{"Plain": "b"}); a == b {
		t.Errorf("%s is taken for the same", a)
	}
	mapped := `{"A":{"Fn::FindInMap":["M",{"Ref":"Password"},"b"]}}`
	if a := skeleton(mapped, nil); !strings.Contains(a, `"c"`) {
		t.Errorf("the mapping is not part of %s", a)
	}
}

func TestAPlaceSaysWhatItWaitsForAndReads(t *testing.T) {
	places, _ := placesIn(t, `{"A":{"Fn::Sub":"${Password} ${Other} ${New} ${New.TopicName} ${Topic}"}}`, nil)
	p := places[0]
	if want := []string{"Other", "Password"}; !reflect.DeepEqual(p.Secrets, want) {
		t.Errorf("secrets %v", p.Secrets)
	}
	if want := []string{"New", "New.TopicName"}; !reflect.DeepEqual(p.Waits, want) {
		t.Errorf("waits for %v", p.Waits)
	}
	want := []any{map[string]any{"Ref": "New"}, map[string]any{"Fn::GetAtt": []any{"New", "TopicName"}}, map[string]any{"Ref": "Topic"}}
	if !reflect.DeepEqual(p.Others, want) {
		t.Errorf("reads %v", p.Others)
	}
}
