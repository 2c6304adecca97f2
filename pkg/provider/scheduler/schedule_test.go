package scheduler

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/scheduler"

	"github.com/slipway-cdk/slipway/pkg/provider/direct"
	"github.com/slipway-cdk/slipway/pkg/provider/providertest"
	"github.com/slipway-cdk/slipway/pkg/schema"
)

func TestEveryMemberOfATargetIsSentAndReadBack(t *testing.T) {
	typ, _ := schema.Lookup("AWS::Scheduler::Schedule")
	for _, name := range []string{"Target", "FlexibleTimeWindow"} {
		given := map[string]any{name: providertest.Sample(typ, name)}
		var in scheduler.CreateScheduleInput
		if err := direct.Into(given, &in, nil); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if live := direct.From(typ.Name, in, nil); !direct.Same(typ.Name, name, live[name], given[name]) {
			t.Errorf("given %v\nread  %v", given[name], live[name])
		}
	}
}
