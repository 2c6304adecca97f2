package state

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// samples returns the files of one name that the real cdkd has written, or skips the test.
func samples(t testing.TB, match string) []string {
	t.Helper()
	root := filepath.Join("..", "..", "..", "shared", "reference", "cdkd-samples")
	if _, err := os.Stat(root); err != nil {
		t.Skipf("cdkd's own files are not here: %v", err)
	}
	var found []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			if ok, _ := filepath.Match(match, filepath.Base(path)); ok && (match != "index.json" || strings.Contains(path, "deployments")) {
				found = append(found, path)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(found) == 0 {
		t.Fatalf("no %s among the samples", match)
	}
	return found
}

// sameFile demands that the two texts are the same file but for the order of members: the same lines, and
// the same content.
func sameFile(t *testing.T, path string, want, got []byte) {
	t.Helper()
	lines := func(data []byte) []string {
		l := strings.Split(string(data), "\n")
		for i := range l {
			l[i] = strings.TrimSuffix(l[i], ",")
		}
		slices.Sort(l)
		return l
	}
	if d := cmp.Diff(lines(want), lines(got)); d != "" {
		t.Fatalf("%s: lines (-cdkd +slipway):\n%s", path, d)
	}
	sameJSON(t, path, want, got)
}

func sameJSON(t *testing.T, what string, want, got []byte) {
	t.Helper()
	var w, g any
	if err := unmarshal(want, &w); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	if err := unmarshal(got, &g); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	if d := cmp.Diff(w, g); d != "" {
		t.Fatalf("%s (-want +got):\n%s", what, d)
	}
}

func TestEverySampleComesBackAsItWas(t *testing.T) {
	noDependencies := regexp.MustCompile(`,\s*"dependencies": \[\]`)
	type encoder interface{ Encode() ([]byte, error) }
	for match, decode := range map[string]func([]byte) (encoder, error){
		"state.json":            func(b []byte) (encoder, error) { return Decode(b) },
		"rollback-journal.json": func(b []byte) (encoder, error) { return DecodeJournal(b) },
		"exports.json":          func(b []byte) (encoder, error) { return DecodeExports(b) },
		"lock.json":             func(b []byte) (encoder, error) { v := &wrapped[LockInfo]{}; return v, v.decode(b) },
		"index.json":            func(b []byte) (encoder, error) { v := &wrapped[DeploymentIndex]{}; return v, v.decode(b) },
	} {
		t.Run(match, func(t *testing.T) {
			for _, path := range samples(t, match) {
				data, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				v, err := decode(data)
				if err != nil {
					t.Fatalf("%s: %v", path, err)
				}
				got, err := v.Encode()
				if err != nil {
					t.Fatalf("%s: %v", path, err)
				}
				// cdkd's "orphan" writes it, nothing else does; absent means the same (reference §0.8).
				data = noDependencies.ReplaceAll(data, nil)
				sameFile(t, path, data, got)
			}
		})
	}
}

type wrapped[T any] struct{ v T }

func (w *wrapped[T]) decode(data []byte) error {
	dec := json.NewDecoder(strings.NewReader(string(data)))
	dec.DisallowUnknownFields()
	return dec.Decode(&w.v)
}

func (w *wrapped[T]) Encode() ([]byte, error) { return pretty(w.v) }

func TestEverySampleHasOnlyMembersWithAField(t *testing.T) {
	for _, path := range samples(t, "state.json") {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		rec, err := Decode(data)
		if err != nil {
			t.Fatal(err)
		}
		if rec.Extra != nil {
			t.Errorf("%s: %v", path, rec.Extra)
		}
		for id, r := range rec.Resources {
			if r.Extra != nil {
				t.Errorf("%s: %s: %v", path, id, r.Extra)
			}
		}
	}
}

func TestEverySampleEventLineComesBackAsItWas(t *testing.T) {
	for _, path := range samples(t, "*.jsonl") {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		events, err := DecodeEvents(data)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		got, err := EncodeEvents(events)
		if err != nil {
			t.Fatal(err)
		}
		want := strings.SplitAfter(string(data), "\n")
		have := strings.SplitAfter(string(got), "\n")
		if len(want) != len(have) {
			t.Fatalf("%s: %d lines, want %d", path, len(have), len(want))
		}
		for i := range want {
			if len(want[i]) != len(have[i]) {
				t.Fatalf("%s: line %d is\n%swant\n%s", path, i+1, have[i], want[i])
			}
			if want[i] != "" {
				sameJSON(t, path, []byte(want[i]), []byte(have[i]))
			}
		}
	}
}
