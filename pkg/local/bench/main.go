// Command bench measures what people wait for: the start of the command, and a whole deploy, redeploy and
// destroy of a 200-resource stack against the instant sandbox, each as a process of its own. It prints one
// line per measure with the median and the slowest of its rounds, and the bound that the project holds
// itself to where there is one. It exits 1 when a median is above its bound.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/slipway-cdk/slipway/examples/gen"
)

func main() {
	slipway := flag.String("slipway", "bin/slipway", "the command to measure")
	rounds := flag.Int("rounds", 5, "rounds of the deploy; the start is measured four times as often")
	flag.Parse()
	if err := run(*slipway, *rounds); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(slipway string, rounds int) error {
	bin, err := filepath.Abs(slipway)
	if err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "slipway-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	spec, err := gen.Stack200(filepath.Join(work, "assembly"))
	if err != nil {
		return err
	}
	var b bench
	fmt.Printf("%-44s %10s %10s %10s\n", "measure", "median", "slowest", "bound")
	if err := b.measure("slipway --help", 4*rounds, 50*time.Millisecond, func(int) []string { return []string{"--help"} }, bin); err != nil {
		return err
	}
	state := func(i int) string { return filepath.Join(work, "state"+strconv.Itoa(i)) }
	local := func(command string) func(int) []string {
		return func(i int) []string {
			return []string{command, "--all", "--yes", "--local", "--local-dir", state(i), "--app", spec.Dir, "--json"}
		}
	}
	if err := b.measure("deploy, 200 resources", rounds, 5*time.Second, local("deploy"), bin); err != nil {
		return err
	}
	if err := b.measure("deploy again, no changes", rounds, 0, local("deploy"), bin); err != nil {
		return err
	}
	if err := b.measure("destroy, 200 resources", rounds, 0, local("destroy"), bin); err != nil {
		return err
	}
	if b.missed > 0 {
		return fmt.Errorf("%d of the measures are above their bound", b.missed)
	}
	return nil
}

type bench struct{ missed int }

// measure runs a command n times and prints how long it took. bound 0 means that there is none.
func (b *bench) measure(name string, n int, bound time.Duration, args func(i int) []string, bin string) error {
	var times []time.Duration
	for i := range n {
		cmd := exec.Command(bin, args(i)...)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		began := time.Now()
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("%s: %w\n%s", name, err, stderr.String())
		}
		times = append(times, time.Since(began))
	}
	slices.Sort(times)
	median, limit := times[len(times)/2], ""
	if bound > 0 {
		limit = "< " + bound.String()
		if median >= bound {
			b.missed++
		}
	}
	fmt.Printf("%-44s %10s %10s %10s\n", name, round(median), round(times[len(times)-1]), limit)
	return nil
}

func round(d time.Duration) time.Duration { return d.Round(100 * time.Microsecond) }
