package sim

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slipway-cdk/slipway/pkg/objectstore"
	"github.com/slipway-cdk/slipway/pkg/objectstore/objectstoretest"
	"github.com/slipway-cdk/slipway/pkg/runlog"
	"github.com/slipway-cdk/slipway/pkg/runlog/runlogtest"
)

var (
	seeds    = flag.Int("seeds", 0, "play this many histories, from -seed on")
	seed     = flag.Uint64("seed", 0, "the first seed; 0 draws one")
	faultsUp = flag.Int("faults", 0, "with one seed: the most faults; -1 is none")
	keep     = flag.Int("keep", 1, "stop after so many violations")
	brief    = flag.Bool("brief", false, "only name the first violation")
	verbose  = flag.Bool("tell", false, "with one seed: tell the whole history, whatever comes of it")
)

func TestMain(m *testing.M) {
	flag.Parse()
	debug.SetGCPercent(1000) // histories are short-lived
	if err := Prepare(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// play plays one history in a bubble.
func play(t *testing.T, seed uint64, opts Options) (r Result) {
	synctest.Test(t, func(*testing.T) { r = Run(seed, opts) })
	return r
}

// playAll plays histories on all cores and reports them. It stops at the first violations.
func playAll(t *testing.T, first uint64, n int) (*Report, *Coverage) {
	report, coverage := &Report{}, NewCoverage()
	var mu sync.Mutex
	var next atomic.Int64
	var failed []Result
	t.Run("histories", func(t *testing.T) {
		for range runtime.GOMAXPROCS(0) {
			t.Run("worker", func(t *testing.T) {
				t.Parallel()
				for {
					i := next.Add(1) - 1
					if i >= int64(n) {
						return
					}
					mu.Lock()
					enough := len(failed) >= *keep
					mu.Unlock()
					if enough {
						return
					}
					r := play(t, first+uint64(i), Options{Coverage: coverage, Faults: *faultsUp})
					mu.Lock()
					report.Add(r)
					if r.Violation != "" {
						failed = append(failed, r)
					}
					mu.Unlock()
				}
			})
		}
	})
	for i, r := range failed {
		if *brief {
			fmt.Printf("violated by seed %d, history %d: %s\n", r.Seed, r.Seed-first+1, r.Violation)
			t.Fail()
			continue
		}
		if i > 0 {
			t.Errorf("seed %d: %s: %s", r.Seed, r.Violation, r.Why)
			continue
		}
		explain(t, r)
	}
	return report, coverage
}

// explain tells a failure with the fewest faults.
func explain(t *testing.T, r Result) {
	small, opts := Shrink(r, func(seed uint64, opts Options) Result { return play(t, seed, opts) })
	dir := t.ArtifactDir()
	file := filepath.Join(dir, fmt.Sprintf("seed-%d.txt", r.Seed))
	if err := os.WriteFile(file, []byte(r.History()), 0o600); err != nil {
		t.Error(err)
	}
	t.Errorf("seed %d does not keep the invariant\n  %s\n  %s\nthe fewest faults that still break it: %d of them (-faults %d without %v)\n  %s\n  %s\n\n%s",
		r.Seed, r.Violation, r.Why, opts.Faults-len(opts.Skip), opts.Faults, sortedNumbers(opts.Skip), small.Violation, small.Why, small.History())
}

func sortedNumbers(m map[int]bool) []int {
	var out []int
	for n := range 1000 {
		if m[n] {
			out = append(out, n)
		}
	}
	return out
}

func TestHistories(t *testing.T) {
	if *seeds == 0 {
		playAll(t, 1, 120)
		return
	}
	first := *seed
	if first == 0 {
		first = rand.Uint64() >> 20
	}
	fmt.Printf("first seed    %d\n", first)
	if *seeds == 1 {
		r := play(t, first, Options{Faults: *faultsUp})
		if r.Violation != "" && *faultsUp == 0 && !*verbose {
			explain(t, r)
		} else if r.Violation != "" || *verbose {
			fmt.Print(r.History())
		}
		if r.Violation != "" {
			t.Errorf("%s: %s", r.Violation, r.Why)
		}
		return
	}
	began := time.Now()
	report, coverage := playAll(t, first, *seeds)
	report.Write(os.Stdout, coverage.Sites())
	for _, short := range report.Shortfalls(coverage.Sites()) {
		t.Error(short)
	}
	fmt.Printf("\n%d histories in %s\n", report.Seeds, time.Since(began).Round(time.Second))
}

func TestOneSeedIsOneHistory(t *testing.T) {
	n := runtime.GOMAXPROCS(0)
	defer runtime.GOMAXPROCS(n)
	for seed := range uint64(10) {
		runtime.GOMAXPROCS(1)
		one := play(t, seed, Options{}).History()
		runtime.GOMAXPROCS(2)
		for range 2 {
			if two := play(t, seed, Options{}).History(); one != two {
				t.Fatalf("seed %d is played in two ways: %s", seed, difference(one, two))
			}
		}
	}
}

func difference(a, b string) string {
	i := 0
	for i < len(a) && i < len(b) && a[i] == b[i] {
		i++
	}
	from := max(0, i-1500)
	return fmt.Sprintf("\n%s\n\nand\n\n%s", a[from:min(len(a), i+300)], b[from:min(len(b), i+300)])
}

func TestTheStoresOfTheSimulationKeepTheContracts(t *testing.T) {
	t.Run("objects", func(t *testing.T) {
		objectstoretest.Run(t, func(*testing.T) objectstore.Store { return newMemory(time.Now) })
	})
	t.Run("run log", func(t *testing.T) {
		runlogtest.Run(t, func(*testing.T) runlog.Store { return newLog() })
	})
}
