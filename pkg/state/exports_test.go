package state

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// stack saves a record with outputs and imports.
func stack(t *testing.T, s *Store, name, region string, outputs map[string]any, imports ...Import) {
	t.Helper()
	r := &Record{StackName: name, Region: region, Outputs: outputs, Imports: imports}
	_, etag, err := s.Load(t.Context(), name, region)
	if err != nil && !IsNotFound(err) {
		t.Fatal(err)
	}
	save(t, s, r, etag)
}

func index(t *testing.T, s *Store) map[string]string {
	t.Helper()
	x, err := DecodeExports([]byte(body(t, s, s.ExportsKey("eu-west-1"))))
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for name, e := range x.Exports {
		got[name] = fmt.Sprintf("%v of %s in %s", e.Value, e.ProducerStack, e.ProducerRegion)
	}
	return got
}

func wantIndex(t *testing.T, s *Store, want map[string]string) {
	t.Helper()
	if d := cmp.Diff(want, index(t, s)); d != "" {
		t.Fatalf("index (-want +got):\n%s", d)
	}
}

func updateExports(t *testing.T, s *Store, name, region string, outputs map[string]any) {
	t.Helper()
	if err := s.UpdateExports(t.Context(), "EU-west-1", name, region, outputs); err != nil {
		t.Fatal(err)
	}
}

func TestTheIndexSaysWhatTheStacksPutOut(t *testing.T) {
	s, f, clk := newStore(t)
	updateExports(t, s, "A", "eu-west-1", map[string]any{"X": "1", "Y": "2"})
	if f.keys[0] != "cdkd/_index/eu-west-1/exports.json" {
		t.Fatalf("key %s", f.keys[0])
	}
	updateExports(t, s, "B", "us-west-2", map[string]any{"Z": "3"})
	wantIndex(t, s, map[string]string{"X": "1 of A in eu-west-1", "Y": "2 of A in eu-west-1", "Z": "3 of B in us-west-2"})
	updateExports(t, s, "A", "eu-west-1", map[string]any{"Y": "4"})
	wantIndex(t, s, map[string]string{"Y": "4 of A in eu-west-1", "Z": "3 of B in us-west-2"})
	// The stack of the same name in another region is another stack.
	updateExports(t, s, "A", "us-west-2", nil)
	writes, before := f.writes, body(t, s, s.ExportsKey("eu-west-1"))
	clk.Advance(time.Minute)
	updateExports(t, s, "A", "eu-west-1", map[string]any{"Y": "4"})
	if f.writes != writes || body(t, s, s.ExportsKey("eu-west-1")) != before {
		t.Fatal("an unchanged index was written")
	}
	updateExports(t, s, "A", "eu-west-1", nil)
	updateExports(t, s, "B", "us-west-2", nil)
	wantIndex(t, s, map[string]string{})
}

func TestConcurrentUpdatesOfTheIndexAreMerged(t *testing.T) {
	s, f, _ := newStore(t)
	updateExports(t, s, "A", "eu-west-1", map[string]any{"X": "1"})
	other := &Store{Objects: f.Store, Clock: s.Clock}
	f.then = map[int]func(){
		2: func() { updateExports(t, other, "B", "eu-west-1", map[string]any{"Y": "2"}) },
		3: func() { updateExports(t, other, "C", "eu-west-1", map[string]any{"Z": "3"}) },
	}
	updateExports(t, s, "A", "eu-west-1", map[string]any{"X": "4"})
	wantIndex(t, s, map[string]string{"X": "4 of A in eu-west-1", "Y": "2 of B in eu-west-1", "Z": "3 of C in eu-west-1"})
	if f.writes != 4 {
		t.Fatalf("%d writes", f.writes)
	}
}

func TestOfTwoFirstWritesOfTheIndexNoneIsLost(t *testing.T) {
	s, f, _ := newStore(t)
	other := &Store{Objects: f.Store, Clock: s.Clock}
	f.then = map[int]func(){1: func() { updateExports(t, other, "B", "eu-west-1", map[string]any{"Y": "2"}) }}
	updateExports(t, s, "A", "eu-west-1", map[string]any{"X": "1"})
	wantIndex(t, s, map[string]string{"X": "1 of A in eu-west-1", "Y": "2 of B in eu-west-1"})
}

func TestTheIndexGivesUpAfterFiveAttempts(t *testing.T) {
	s, f, _ := newStore(t)
	updateExports(t, s, "A", "eu-west-1", map[string]any{"X": "1"})
	other := &Store{Objects: f.Store, Clock: s.Clock}
	f.then = map[int]func(){}
	for n := 2; n < 20; n++ {
		f.then[n] = func() { updateExports(t, other, "B", "eu-west-1", map[string]any{"Y": fmt.Sprint(n)}) }
	}
	err := s.UpdateExports(t.Context(), "eu-west-1", "A", "eu-west-1", map[string]any{"X": "2"})
	if err == nil || f.writes != 1+exportAttempts || !strings.Contains(err.Error(), "exports index of eu-west-1") {
		t.Fatalf("%d writes, %v", f.writes, err)
	}
}

func TestManyStacksUpdateTheIndexAtOnce(t *testing.T) {
	s, _, _ := newStore(t)
	var wg sync.WaitGroup
	want := map[string]string{}
	var mu sync.Mutex
	for i := range 8 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			name := fmt.Sprint("S", i)
			err := errors.New("not tried")
			for tries := 0; err != nil && tries < 20; tries++ {
				err = s.UpdateExports(t.Context(), "eu-west-1", name, "eu-west-1", map[string]any{name: "v"})
			}
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				t.Error(err)
			}
			want[name] = "v of " + name + " in eu-west-1"
		}()
	}
	wg.Wait()
	wantIndex(t, s, want)
}

func TestAMissingOrDamagedIndexIsRebuilt(t *testing.T) {
	for _, damaged := range []string{"", "-", "null", "[]", "{}", `{"indexVersion":1}`, `{"indexVersion":1,"exports":[]}`, `{"indexVersion":1,"exports":{"X":null}}`} {
		s, _, _ := newStore(t)
		stack(t, s, "A", "eu-west-1", map[string]any{"X": "1"})
		stack(t, s, "B", "eu-west-1", map[string]any{"Y": "2"})
		stack(t, s, "W", "us-west-2", map[string]any{"W": "3"})
		put(t, s, s.StateKey("Broken", "eu-west-1"), "{")
		if damaged != "" {
			put(t, s, s.ExportsKey("eu-west-1"), damaged)
		}
		updateExports(t, s, "B", "eu-west-1", map[string]any{"Y": "4"})
		wantIndex(t, s, map[string]string{"X": "1 of A in eu-west-1", "Y": "4 of B in eu-west-1"})
	}
}

func TestAnIndexOfTheFutureIsLeftAlone(t *testing.T) {
	s, f, _ := newStore(t)
	put(t, s, s.ExportsKey("eu-west-1"), `{"indexVersion":2,"exports":{}}`)
	writes := f.writes
	var v *VersionError
	if err := s.UpdateExports(t.Context(), "eu-west-1", "A", "eu-west-1", map[string]any{"X": "1"}); !errors.As(err, &v) || f.writes != writes {
		t.Fatalf("UpdateExports = %v", err)
	}
	// A lookup does without it.
	stack(t, s, "A", "eu-west-1", map[string]any{"X": "1"})
	if e, err := s.LookupExport(t.Context(), "eu-west-1", "X", Ref{}); err != nil || e.Value != "1" {
		t.Fatalf("LookupExport = %+v, %v", e, err)
	}
}

func TestLookupExport(t *testing.T) {
	s, _, _ := newStore(t)
	stack(t, s, "A", "eu-west-1", map[string]any{"X": "1", "Both": "west"})
	stack(t, s, "B", "us-west-2", map[string]any{"Far": "2"})
	stack(t, s, "0", "us-west-2", map[string]any{"Both": "far"})
	want := func(name string, self Ref, value, producer, region string) {
		t.Helper()
		e, err := s.LookupExport(t.Context(), "eu-west-1", name, self)
		if err != nil || e.Value != value || e.ProducerStack != producer || e.ProducerRegion != region {
			t.Fatalf("LookupExport(%s) = %+v, %v", name, e, err)
		}
	}
	want("X", Ref{"C", "eu-west-1"}, "1", "A", "eu-west-1")
	want("Far", Ref{"C", "eu-west-1"}, "2", "B", "us-west-2")
	want("Both", Ref{"C", "eu-west-1"}, "west", "A", "eu-west-1")
	want("Both", Ref{"A", "EU-west-1"}, "far", "0", "us-west-2")
	if _, err := s.LookupExport(t.Context(), "eu-west-1", "X", Ref{"A", "eu-west-1"}); !IsNotFound(err) {
		t.Fatalf("a stack imports its own export: %v", err)
	}
	if _, err := s.LookupExport(t.Context(), "eu-west-1", "None", Ref{}); !IsNotFound(err) || !strings.Contains(err.Error(), "None") {
		t.Fatalf("LookupExport = %v", err)
	}
	if got := index(t, s)["Far"]; got != "2 of B in us-west-2" {
		t.Fatalf("what was found by searching is not in the index: %q", got)
	}
	// The record decides, not the index.
	stack(t, s, "A", "eu-west-1", map[string]any{"X": "new"})
	want("X", Ref{"C", "eu-west-1"}, "new", "A", "eu-west-1")
	stack(t, s, "B", "us-west-2", map[string]any{})
	if _, err := s.LookupExport(t.Context(), "eu-west-1", "Far", Ref{}); !IsNotFound(err) {
		t.Fatalf("an export that only the index knows: %v", err)
	}
}

func TestALookupThatCouldNotReadEverythingSaysSo(t *testing.T) {
	s, _, _ := newStore(t)
	stack(t, s, "A", "eu-west-1", map[string]any{"X": "1"})
	put(t, s, s.StateKey("Broken", "eu-west-1"), stateWith("outputs", `"x"`))
	if e, err := s.LookupExport(t.Context(), "eu-west-1", "X", Ref{}); err != nil || e.Value != "1" {
		t.Fatalf("LookupExport = %+v, %v", e, err)
	}
	if _, err := s.LookupExport(t.Context(), "eu-west-1", "Y", Ref{}); !IsDamaged(err) || IsNotFound(err) || !strings.Contains(err.Error(), "Broken") {
		t.Fatalf("LookupExport = %v", err)
	}
}

func TestImporters(t *testing.T) {
	s, f, _ := newStore(t)
	stack(t, s, "Net", "eu-west-1", map[string]any{"Vpc": "v", "Cidr": "c"})
	stack(t, s, "Web", "eu-west-1", nil, Import{"Net", "eu-west-1", "Vpc"}, Import{"Other", "eu-west-1", "Vpc"})
	stack(t, s, "Db", "us-west-2", nil, Import{"Net", "EU-WEST-1", "Cidr"}, Import{"Net", "us-west-2", "Vpc"})
	stack(t, s, "Alone", "eu-west-1", nil)
	got := func(names ...string) []Importer {
		t.Helper()
		list, err := s.Importers(t.Context(), "Net", "EU-west-1", names)
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	web, db := Importer{"Web", "eu-west-1", "Vpc"}, Importer{"Db", "us-west-2", "Cidr"}
	for _, c := range []struct {
		names []string
		want  []Importer
	}{{nil, []Importer{db, web}}, {[]string{"Vpc"}, []Importer{web}}, {[]string{"Cidr", "Nope"}, []Importer{db}}, {[]string{"Nope"}, nil}} {
		if d := cmp.Diff(c.want, got(c.names...)); d != "" {
			t.Errorf("%v (-want +got):\n%s", c.names, d)
		}
	}
	// Damage elsewhere in a record does not matter, damage that can hide an importer does.
	put(t, s, s.StateKey("Broken", "eu-west-1"), stateWith("resources", `[]`))
	got()
	for _, data := range []string{stateWith("imports", `{}`), stateWith("imports", `[null]`), "{", stateWith("version", "99")} {
		put(t, s, s.StateKey("Broken", "eu-west-1"), data)
		if list, err := s.Importers(t.Context(), "Net", "eu-west-1", nil); err == nil || !strings.Contains(err.Error(), "Broken") {
			t.Errorf("Importers beside %s = %v, %v", data, list, err)
		}
	}
	f.down = true
	if _, err := s.Importers(t.Context(), "Net", "eu-west-1", nil); !errors.Is(err, errCrash) && err == nil {
		t.Fatalf("Importers = %v", err)
	}
}
