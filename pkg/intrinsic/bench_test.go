package intrinsic_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/slipway-cdk/slipway/pkg/intrinsic"
	"github.com/slipway-cdk/slipway/pkg/template"
)

// large builds a template of n resources, each of which refers to a few earlier ones.
func large(n int) []byte {
	var b strings.Builder
	b.WriteString(`{"Conditions": {"C": {"Fn::Equals": [1, 1]}}, "Resources": {`)
	for i := range n {
		if i > 0 {
			b.WriteString(",")
		}
		fmt.Fprintf(&b, `"R%d": {"Type": "AWS::SQS::Queue", "Properties": {"QueueName": {"Fn::Sub": "${AWS::StackName}-%d"}, "Tags": [{"Key": "a", "Value": {"Fn::If": ["C", "x", "y"]}}]`, i, i)
		if i > 1 {
			fmt.Fprintf(&b, `, "RedrivePolicy": {"deadLetterTargetArn": {"Fn::GetAtt": ["R%d", "Arn"]}, "maxReceiveCount": 3, "other": {"Fn::Join": ["", ["x", {"Ref": "R%d"}]]}}`, i/2, i-1)
		}
		b.WriteString(`}}`)
	}
	b.WriteString(`}}`)
	return []byte(b.String())
}

func planLarge(tb testing.TB, data []byte) int {
	tmpl, err := template.Parse(data)
	if err != nil {
		tb.Fatal(err)
	}
	if ds := template.Validate(tmpl); ds.HasErrors() {
		tb.Fatal(ds)
	}
	pseudo := intrinsic.PseudoFor("123456789012", "eu-west-1", "Large")
	conditions, ds := intrinsic.EvaluateConditions(tmpl, nil, pseudo)
	if ds.HasErrors() {
		tb.Fatal(ds)
	}
	edges := 0
	for _, refs := range template.Dependencies(tmpl, conditions) {
		edges += len(refs)
	}
	scope := &intrinsic.Scope{Template: tmpl, Conditions: conditions, Pseudo: pseudo, Resources: map[string]intrinsic.Resource{}}
	for i, id := range tmpl.Order {
		if i%2 == 0 {
			scope.Resources[id] = intrinsic.Resource{Type: "AWS::SQS::Queue", PhysicalID: "https://sqs.eu-west-1.amazonaws.com/123456789012/" + id}
		}
	}
	r := intrinsic.NewResolver(scope)
	for _, id := range tmpl.Order {
		if _, err := r.ResolveProperties(tmpl.Resources[id].Properties, "Properties"); err != nil {
			tb.Fatal(err)
		}
	}
	return edges
}

func TestATemplateOf10000ResourcesKeepsEveryEdge(t *testing.T) {
	const n = 10000
	if got, want := planLarge(t, large(n)), 2*(n-2); got != want {
		t.Fatalf("%d edges, want %d", got, want)
	}
}

// BenchmarkPlan reads, checks and resolves a whole template.
func BenchmarkPlan(b *testing.B) {
	for _, n := range []int{500, 1000, 2000, 5000, 10000} {
		data := large(n)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				planLarge(b, data)
			}
		})
	}
}
