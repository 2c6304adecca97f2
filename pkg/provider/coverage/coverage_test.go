package coverage_test

import (
	"slices"
	"testing"

	"github.com/slipway-cdk/slipway/pkg/provider/coverage"
	"github.com/slipway-cdk/slipway/pkg/provider/services"
)

// The providers themselves say what they can set: the data must say the same of every property there is.
func TestTheDataSaysWhatTheProvidersSay(t *testing.T) {
	data, unhandled := coverage.Load(), services.Unhandled()
	var types []string
	for _, c := range services.Coverage() {
		types = append(types, c.Type)
		properties := slices.Clone(c.Handled)
		for name := range c.Unhandled {
			properties = append(properties, name)
		}
		slices.Sort(properties)
		if got, want := data.Unhandled(c.Type, properties), unhandled(c.Type, properties); !slices.Equal(got, want) {
			t.Errorf("%s: unhandled are %v, the provider says %v: run go test ./pkg/provider/conformance -update", c.Type, got, want)
		}
	}
	if !slices.Equal(data.Types(), types) {
		t.Errorf("the types are %v, want %v: run go test ./pkg/provider/conformance -update", data.Types(), types)
	}
	if got := data.Unhandled("AWS::Athena::WorkGroup", []string{"Name"}); got != nil {
		t.Errorf("a type without a direct provider: %v", got)
	}
}
