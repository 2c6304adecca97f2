package sim

import (
	"bytes"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// mutants is how many histories are played of each mutant at most.
var mutants = flag.Int("mutants", 0, "play up to this many histories of every mutant in testdata/mutants, and fail if one keeps all invariants")

// patches lists the mutants: the product with one documented bug each.
func patches(t *testing.T) []string {
	t.Helper()
	list, err := filepath.Glob("testdata/mutants/*.patch")
	if err != nil || len(list) < 12 {
		t.Fatalf("%d mutants, %v", len(list), err)
	}
	return list
}

// root is the directory of the module.
func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestTheMutantsStillApply(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("there is no git to apply them with")
	}
	dir := root(t)
	for _, patch := range patches(t) {
		body, err := os.ReadFile(patch)
		if err != nil {
			t.Fatal(err)
		}
		if head := strings.SplitN(string(body), "\n", 3); !strings.HasPrefix(head[0], "Bug: ") || !strings.HasPrefix(head[1], "Caught by: ") {
			t.Errorf("%s does not say what its bug is and what catches it", patch)
		}
		apply := exec.Command("git", "apply", "--check", filepath.Join(dir, "pkg", "sim", patch))
		apply.Dir = dir
		if out, err := apply.CombinedOutput(); err != nil {
			t.Errorf("%s does not apply: %s", patch, out)
		}
	}
}

func TestMutants(t *testing.T) {
	if *mutants == 0 {
		return // a matter of many minutes: make sim-mutants
	}
	fmt.Printf("%-26s %-10s %-8s %-62s %s\n", "mutant", "seed", "history", "invariant", "seconds")
	for _, patch := range patches(t) {
		name := strings.TrimSuffix(filepath.Base(patch), ".patch")
		began := time.Now()
		found, err := hunt(t, patch)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		fmt.Printf("%-26s %-10s %-8s %-62s %.0f\n", name, found.seed, found.history, found.invariant, time.Since(began).Seconds())
		if found.seed == "" {
			t.Errorf("%s keeps every invariant in %d histories", name, *mutants)
		}
	}
}

// copySources copies what the simulation is built from, and nothing that tools have left beside it.
func copySources(from, to string) error {
	for _, part := range []string{"go.mod", "go.sum", "pkg", "statemachine"} {
		err := filepath.WalkDir(filepath.Join(from, part), func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			below, err := filepath.Rel(from, path)
			switch {
			case err != nil:
				return err
			case strings.HasPrefix(d.Name(), ".") && d.IsDir():
				return filepath.SkipDir
			case d.IsDir():
				return os.MkdirAll(filepath.Join(to, below), 0o750)
			case !d.Type().IsRegular():
				return nil
			}
			body, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			return os.WriteFile(filepath.Join(to, below), body, 0o600)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// caught is the first history that a mutant breaks.
type caught struct{ seed, history, invariant string }

var firstViolation = regexp.MustCompile(`(?m)^violated by seed (\d+), history (\d+): (.*)$`)

// hunt plays the histories of a mutant in a copy of the tree.
func hunt(t *testing.T, patch string) (caught, error) {
	from, to := root(t), t.TempDir()
	if err := copySources(from, to); err != nil {
		return caught{}, err
	}
	apply := exec.Command("git", "apply", filepath.Join(from, "pkg", "sim", patch))
	apply.Dir = to
	if out, err := apply.CombinedOutput(); err != nil {
		return caught{}, fmt.Errorf("applying it: %w: %s", err, out)
	}
	play := exec.Command("go", "test", "./pkg/sim", "-run", "^TestHistories$", "-timeout", "60m", "-args",
		"-seeds", strconv.Itoa(*mutants), "-seed", "1", "-brief")
	play.Dir = to
	var out bytes.Buffer
	play.Stdout, play.Stderr = &out, &out
	err := play.Run()
	if m := firstViolation.FindStringSubmatch(out.String()); m != nil {
		return caught{m[1], m[2], m[3]}, nil
	}
	if err != nil {
		return caught{}, fmt.Errorf("playing it: %w: %.2000s", err, out.String())
	}
	return caught{}, nil
}
