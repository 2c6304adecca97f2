package events

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/eventbridge"

	"github.com/slipway-cdk/slipway/pkg/provider/direct"
	"github.com/slipway-cdk/slipway/pkg/provider/providertest"
	"github.com/slipway-cdk/slipway/pkg/schema"
)

func TestEveryMemberOfATargetIsSentAndReadBack(t *testing.T) {
	typ, _ := schema.Lookup("AWS::Events::Rule")
	given := map[string]any{"Targets": providertest.Sample(typ, "Targets")}
	var in eventbridge.PutTargetsInput
	if err := direct.Into(given, &in, targetNames, "Targets"); err != nil {
		t.Fatal(err)
	}
	live := direct.From(typ.Name, map[string]any{"Targets": in.Targets}, targetNames)
	if !direct.Same(typ.Name, "Targets", live["Targets"], given["Targets"]) {
		t.Errorf("given %v\nread  %v", given["Targets"], live["Targets"])
	}
}

func TestARulesNameIsTakenOutOfItsID(t *testing.T) {
	for _, c := range []struct {
		id       string
		recorded map[string]any
		bus      string
		name     string
	}{
		{"arn:aws:events:eu-west-1:123456789012:rule/tick", nil, "", "tick"},
		{"arn:aws:events:eu-west-1:123456789012:rule/shop/tick", nil, "shop", "tick"},
		{"arn:aws:events:eu-west-1:123456789012:rule/aws.partner/example.com/1/tick", nil, "aws.partner/example.com/1", "tick"},
		{"shop|tick", nil, "shop", "tick"},
		{"tick", map[string]any{"EventBusName": "shop"}, "shop", "tick"},
	} {
		r := &call{}
		r.PhysicalID, r.Previous = c.id, c.recorded
		bus, name := ruleName(r)
		got := ""
		if bus != nil {
			got = *bus
		}
		if got != c.bus || *name != c.name {
			t.Errorf("%s: bus %q, name %q", c.id, got, *name)
		}
	}
}
