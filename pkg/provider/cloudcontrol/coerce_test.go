package cloudcontrol

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/slipway-cdk/slipway/pkg/schema"
)

func object(t testing.TB, text string) map[string]any {
	t.Helper()
	m, err := decode(text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return m
}

func TestCoerceGivesWhatTheSchemaAsksFor(t *testing.T) {
	cases := []struct{ name, typ, in, want string }{
		{"a number written as text", "AWS::SQS::Queue", `{"DelaySeconds":"5"}`, `{"DelaySeconds":5}`},
		{"a number with blanks, a sign or zeros", "AWS::SQS::Queue", `{"DelaySeconds":" 5 ","MaximumMessageSize":"+2048","VisibilityTimeout":"007"}`, `{"DelaySeconds":5,"MaximumMessageSize":2048,"VisibilityTimeout":7}`},
		{"a fraction", "AWS::CloudWatch::Alarm", `{"Threshold":"0.50"}`, `{"Threshold":0.50}`},
		{"a fraction without its zero", "AWS::CloudWatch::Alarm", `{"Threshold":".5"}`, `{"Threshold":0.5}`},
		{"an exponent", "AWS::CloudWatch::Alarm", `{"Threshold":"1e3"}`, `{"Threshold":1e3}`},
		{"text that is no number stays", "AWS::CloudWatch::Alarm", `{"Threshold":"Inf","Period":"0x10","EvaluationPeriods":"soon"}`, `{"Threshold":"Inf","Period":"0x10","EvaluationPeriods":"soon"}`},
		{"empty text stays", "AWS::SQS::Queue", `{"DelaySeconds":""}`, `{"DelaySeconds":""}`},
		{"a number where text is wanted", "AWS::SSM::Parameter", `{"Value":5}`, `{"Value":"5"}`},
		{"a long number keeps its digits", "AWS::SSM::Parameter", `{"Value":12345678901234567890.10}`, `{"Value":"12345678901234567890.10"}`},
		{"a boolean where text is wanted", "AWS::SSM::Parameter", `{"Value":true}`, `{"Value":"true"}`},
		{"a boolean written as text", "AWS::SQS::Queue", `{"FifoQueue":"True","SqsManagedSseEnabled":"false"}`, `{"FifoQueue":true,"SqsManagedSseEnabled":false}`},
		{"text that is no boolean stays", "AWS::SQS::Queue", `{"FifoQueue":"yes"}`, `{"FifoQueue":"yes"}`},
		{"an object where JSON text is wanted", "AWS::StepFunctions::StateMachine", `{"DefinitionString":{"States":{"A":{"End":true}},"StartAt":"<A>"}}`, `{"DefinitionString":"{\"StartAt\":\"<A>\",\"States\":{\"A\":{\"End\":true}}}"}`},
		{"JSON text stays text", "AWS::StepFunctions::StateMachine", `{"DefinitionString":"{}"}`, `{"DefinitionString":"{}"}`},
		{"free JSON stays as it is", "AWS::IAM::Role", `{"AssumeRolePolicyDocument":{"Statement":[{"Condition":{"Bool":{"a":"true"},"Num":{"b":"5"}}}]}}`, `{"AssumeRolePolicyDocument":{"Statement":[{"Condition":{"Bool":{"a":"true"},"Num":{"b":"5"}}}]}}`},
		{"items of lists", "AWS::EC2::SecurityGroup", `{"SecurityGroupIngress":[{"FromPort":"1","ToPort":2,"IpProtocol":-1},null,{"FromPort":3}]}`, `{"SecurityGroupIngress":[{"FromPort":1,"ToPort":2,"IpProtocol":"-1"},{"FromPort":3}]}`},
		{"lists of text", "AWS::Lambda::Function", `{"Layers":["a",null,1]}`, `{"Layers":["a","1"]}`},
		{"values of maps", "AWS::ECS::TaskDefinition", `{"ContainerDefinitions":[{"DockerLabels":{"N":1,"B":false,"S":"s","Nothing":null}}]}`, `{"ContainerDefinitions":[{"DockerLabels":{"N":"1","B":"false","S":"s"}}]}`},
		{"members of objects", "AWS::Lambda::Function", `{"EphemeralStorage":{"Size":"512"},"Tags":[{"Key":1,"Value":true}]}`, `{"EphemeralStorage":{"Size":512},"Tags":[{"Key":"1","Value":"true"}]}`},
		{"nulls are no values", "AWS::SQS::Queue", `{"QueueName":null,"RedrivePolicy":null}`, `{}`},
		{"an unknown property stays", "AWS::SQS::Queue", `{"Nope":{"A":"5"}}`, `{"Nope":{"A":"5"}}`},
		{"a list where an object belongs stays", "AWS::Lambda::Function", `{"Environment":["a"]}`, `{"Environment":["a"]}`},
		{"an object where a list belongs stays", "AWS::SQS::Queue", `{"Tags":{"a":"5"}}`, `{"Tags":{"a":"5"}}`},
		{"a list where text belongs stays", "AWS::SQS::Queue", `{"QueueName":["a"]}`, `{"QueueName":["a"]}`},
		{"a type that nobody knows", "AWS::Nobody::Knows", `{"A":"5","B":null}`, `{"A":"5"}`},
		{"nothing", "AWS::SQS::Queue", `{}`, `{}`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			in := object(t, c.in)
			before, _ := encode(in)
			if diff := cmp.Diff(object(t, c.want), Coerce(c.typ, in)); diff != "" {
				t.Error(diff)
			}
			if after, _ := encode(in); after != before {
				t.Error("the argument has changed")
			}
		})
	}
}

func TestCoerceFollowsTheAlternativeThatFits(t *testing.T) {
	typ := &schema.Type{Definitions: map[string]*schema.Definition{
		"Small": {Properties: map[string]*schema.Property{"Size": {Kind: schema.KindInteger}}},
		"Large": {Properties: map[string]*schema.Property{"Size": {Kind: schema.KindString}, "Unit": {Kind: schema.KindString}}},
	}}
	text, number, boolean := &schema.Property{Kind: schema.KindString}, &schema.Property{Kind: schema.KindInteger}, &schema.Property{Kind: schema.KindBoolean}
	small, large := &schema.Property{Kind: schema.KindObject, Ref: "Small"}, &schema.Property{Kind: schema.KindObject, Ref: "Large"}
	list := func(of *schema.Property) *schema.Property { return &schema.Property{Kind: schema.KindList, Elem: of} }
	union := func(of ...*schema.Property) *schema.Property {
		return &schema.Property{Kind: schema.KindUnion, Alternatives: of}
	}
	cases := []struct {
		name     string
		p        *schema.Property
		in, want string
	}{
		{"text that fits text is no number", union(number, text), `"5"`, `"5"`},
		{"a number that fits", union(text, number), `5`, `5`},
		{"text for a boolean or an object", union(boolean, small), `"true"`, `true`},
		{"text for a number or an object", union(small, number), `"5"`, `5`},
		{"a boolean for text or an object", union(small, text), `true`, `"true"`},
		{"an object before its text", union(text, small), `{"Size":"5"}`, `{"Size":5}`},
		{"the object that knows all members", union(small, large), `{"Size":5,"Unit":1}`, `{"Size":"5","Unit":"1"}`},
		{"the first object when none knows all", union(small, large), `{"Size":"5","What":"x"}`, `{"Size":5,"What":"x"}`},
		{"a list of objects, not of text", union(list(text), list(small)), `[{"Size":"5"},null]`, `[{"Size":5}]`},
		{"a list of text, not of objects", union(list(small), list(text)), `[1]`, `["1"]`},
		{"an alternative of alternatives", union(union(boolean, number), small), `"7"`, `7`},
		{"free JSON takes all", union(&schema.Property{Kind: schema.KindJSON}, number), `{"a":"5"}`, `{"a":"5"}`},
		{"what fits nothing stays", union(number, boolean), `"x"`, `"x"`},
		{"no alternatives", union(), `"x"`, `"x"`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			wrapped := object(t, `{"v":`+c.in+`}`)
			if diff := cmp.Diff(object(t, `{"v":`+c.want+`}`)["v"], coerce(typ, c.p, wrapped["v"])); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Coercing twice is coercing once, and the result is always JSON.
func TestCoerceIsIdempotent(t *testing.T) {
	names := []string{"AWS::SQS::Queue", "AWS::Lambda::Function", "AWS::EC2::SecurityGroup", "AWS::CloudWatch::Alarm", "AWS::S3::Bucket", "AWS::ECS::TaskDefinition"}
	rapid.Check(t, func(rt *rapid.T) {
		name := rapid.SampledFrom(names).Draw(rt, "type")
		typ, _ := schema.Lookup(name)
		props := drawObject(rt, typ, &typ.Definition, 3)
		once := Coerce(name, props)
		if diff := cmp.Diff(once, Coerce(name, once)); diff != "" {
			rt.Fatal(diff)
		}
		text, err := encode(once)
		if err != nil {
			rt.Fatalf("the result is no JSON: %v", err)
		}
		if _, err := decode(text); err != nil {
			rt.Fatalf("the result is no JSON object: %v", err)
		}
	})
}

// drawObject makes properties of the right shape whose scalars are written in any way.
func drawObject(rt *rapid.T, t *schema.Type, def *schema.Definition, depth int) map[string]any {
	out := map[string]any{}
	var names []string
	for name := range def.Properties {
		names = append(names, name)
	}
	if len(names) == 0 {
		return out
	}
	names = sortedStrings(names)
	for range rapid.IntRange(0, 4).Draw(rt, "members") {
		name := rapid.SampledFrom(names).Draw(rt, "member")
		out[name] = drawValue(rt, t, def.Properties[name], depth)
	}
	return out
}

func drawValue(rt *rapid.T, t *schema.Type, p *schema.Property, depth int) any {
	if p != nil && depth > 0 {
		switch p.Kind {
		case schema.KindList:
			list := []any{}
			for range rapid.IntRange(0, 2).Draw(rt, "items") {
				list = append(list, drawValue(rt, t, p.Elem, depth-1))
			}
			return list
		case schema.KindMap:
			return map[string]any{"k": drawValue(rt, t, p.Elem, depth-1)}
		case schema.KindObject:
			if d := t.Definitions[p.Ref]; d != nil {
				return drawObject(rt, t, d, depth-1)
			}
		case schema.KindUnion:
			return drawValue(rt, t, rapid.SampledFrom(p.Alternatives).Draw(rt, "alternative"), depth)
		}
	}
	return rapid.SampledFrom([]any{"5", "true", "text", " 7", "1e400", "-", "+.5", "Infinity", "0x1p4", "", json.Number("5"), json.Number("0.1"), true, false,
		nil, map[string]any{"A": "1"}, []any{"1", json.Number("2")}}).Draw(rt, "scalar")
}

func sortedStrings(names []string) []string {
	m := map[string]any{}
	for _, n := range names {
		m[n] = nil
	}
	return sortedKeys(m)
}

func TestEncodeWritesTextAsItIs(t *testing.T) {
	got, err := encode(map[string]any{"b": "<&>", "a": json.Number("1.50")})
	if err != nil || got != `{"a":1.50,"b":"<&>"}` || strings.HasSuffix(got, "\n") {
		t.Errorf("%q, %v", got, err)
	}
}
