package asl_test

import (
	"testing"

	"github.com/slipway-cdk/slipway/pkg/asl"
	"github.com/slipway-cdk/slipway/pkg/asl/asltest"
)

func TestMemoryStoreKeepsTheContract(t *testing.T) {
	asltest.RunStore(t, func(*testing.T) asl.Store { return asl.NewMemoryStore() })
}
