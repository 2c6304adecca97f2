package local

import (
	"path/filepath"
	"testing"

	"github.com/slipway-cdk/slipway/pkg/asl"
	"github.com/slipway-cdk/slipway/pkg/asl/asltest"
	"github.com/slipway-cdk/slipway/pkg/localdb"
)

func TestExecutionsKeepTheContractOfTheStore(t *testing.T) {
	asltest.RunStore(t, func(t *testing.T) asl.Store {
		db, err := localdb.Open(filepath.Join(t.TempDir(), "slipway.db"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := db.Close(); err != nil {
				t.Error(err)
			}
		})
		return &executions{db: db}
	})
}
