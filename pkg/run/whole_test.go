//go:build mutants

package run_test

import (
	"fmt"
	"os"
	"testing"
	"testing/synctest"

	"github.com/slipway-cdk/slipway/pkg/sim"
)

// mutantSeeds is how many simulated histories judge each mutant of this package; the simulation's own tests play many
// more, but not for every mutant. They come last: what the other tests find, they find sooner.
const mutantSeeds = 25

func TestMain(m *testing.M) {
	if err := sim.Prepare(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func TestWholeHistoriesKeepTheInvariants(t *testing.T) {
	for seed := range uint64(mutantSeeds) {
		synctest.Test(t, func(t *testing.T) {
			if r := sim.Run(seed+1, sim.Options{}); r.Violation != "" {
				t.Errorf("seed %d: %s: %s", r.Seed, r.Violation, r.Why)
			}
		})
		if t.Failed() {
			return
		}
	}
}
