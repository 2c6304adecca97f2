package state

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// pair is what a process finds: a record and a sidecar.
type pair struct {
	rec     *Record
	etag    string
	digest  string
	sidecar *Sidecar
	scETag  string
}

func load(t *testing.T, s *Store) pair {
	t.Helper()
	var p pair
	var err error
	if p.rec, p.etag, err = s.Load(t.Context(), "App", "eu-west-1"); err != nil && !IsNotFound(err) {
		t.Fatal(err)
	}
	if p.sidecar, p.scETag, err = s.LoadSidecar(t.Context(), "App", "eu-west-1"); err != nil && !IsNotFound(err) {
		t.Fatal(err)
	}
	if p.digest, err = Digest(p.rec); err != nil {
		t.Fatal(err)
	}
	return p
}

// saving is what the n-th run saves over p: a record, parameters and an old half that all say n.
func (p pair) saving(n string) Save {
	sc := &Sidecar{}
	if p.sidecar != nil {
		same := *p.sidecar
		sc = &same
	}
	if p.rec != nil {
		sc.Cleanup = append(append([]OldHalf{}, p.sidecar.Pending(p.rec)...), OldHalf{LogicalID: "R", Resource: p.rec.Resources["R"], RunID: n})
	}
	return Save{
		Record: rec("App", n), StateETag: p.etag, Was: p.digest, Sidecar: sc, SidecarETag: p.scETag,
		Next: Generation{RunID: n, Parameters: map[string]string{"N": n}, NoEcho: map[string]string{"Secret": "hmac" + n}, TemplateDigest: "t" + n},
	}
}

// check demands that whatever stands fits together: the generation is that of the record, and no old half is
// what the record still holds.
func (p pair) check(t *testing.T) {
	t.Helper()
	g := p.sidecar.For(p.digest)
	if p.rec == nil {
		if g != nil {
			t.Fatalf("without a record there is the generation %+v", g)
		}
		return
	}
	n, _ := p.rec.Outputs["N"].(string)
	if g == nil || g.RunID != n || g.Parameters["N"] != n || g.NoEcho["Secret"] != "hmac"+n || g.TemplateDigest != "t"+n {
		t.Fatalf("beside record %s the generation is %+v", n, g)
	}
	if !p.sidecar.Bound(p.digest) {
		t.Fatal("For knows it and Bound does not")
	}
	for _, h := range p.sidecar.Pending(p.rec) {
		if h.Resource.PhysicalID == "p"+n {
			t.Fatalf("the live resource of record %s awaits its deletion", n)
		}
	}
}

func TestASidecarFollowsItsRecord(t *testing.T) {
	s, f, _ := newStore(t)
	for i := 1; i <= 4; i++ {
		p := load(t, s)
		p.check(t)
		saved, err := s.SaveWithSidecar(t.Context(), p.saving(fmt.Sprint(i)))
		if err != nil {
			t.Fatal(err)
		}
		now := load(t, s)
		now.check(t)
		if saved.StateETag != now.etag || saved.SidecarETag != now.scETag || saved.Digest != now.digest {
			t.Fatalf("saved %+v, stands %s %s %s", saved, now.etag, now.scETag, now.digest)
		}
		if d := cmp.Diff(now.sidecar, saved.Sidecar); d != "" {
			t.Fatalf("(-stands +saved):\n%s", d)
		}
	}
	want := []string{"slipway/stacks/App/eu-west-1/sidecar.json", "cdkd/App/eu-west-1/state.json"}
	if d := cmp.Diff(append(want, want...), f.keys[:4]); d != "" {
		t.Fatalf("order of writes (-want +got):\n%s", d)
	}
	p := load(t, s)
	var old []string
	for _, h := range p.sidecar.Pending(p.rec) {
		old = append(old, h.Resource.PhysicalID)
	}
	if d := cmp.Diff([]string{"p1", "p2", "p3"}, old); d != "" {
		t.Fatalf("old halves (-want +got):\n%s", d)
	}
}

// TestEveryCrashPointIsSafe lets a process die before and after each write of each save, and then others
// come, which may die as well. Whatever stands in between always fits together, and a run that is repeated
// gets through.
func TestEveryCrashPointIsSafe(t *testing.T) {
	for writes := range 6 {
		for _, after := range []bool{false, true} {
			for _, secondDies := range []int{0, 1, 2} {
				name := fmt.Sprintf("write %d, after %v, then %d", writes+1, after, secondDies)
				t.Run(name, func(t *testing.T) {
					s, f, clk := newStore(t)
					if after {
						f.after = writes + 1
					} else {
						f.before = writes + 1
					}
					for run := 1; run <= 3; run++ {
						for attempt := 0; ; attempt++ {
							p := load(t, s)
							p.check(t)
							clk.Advance(time.Second)
							// Each attempt is another run with another content: nothing is simply repeated.
							_, err := s.SaveWithSidecar(t.Context(), p.saving(fmt.Sprintf("%d.%d", run, attempt)))
							load(t, s).check(t)
							if err == nil {
								break
							}
							if !errors.Is(err, errCrash) || attempt > 3 {
								t.Fatal(err)
							}
							if attempt == 0 && secondDies > 0 {
								f.before = f.writes + secondDies
							}
						}
					}
					if f.writes < 7 {
						t.Fatalf("%d writes: nothing has crashed", f.writes)
					}
				})
			}
		}
	}
}

func TestASaveThatIsRepeatedAsItWasSucceeds(t *testing.T) {
	for _, breaks := range []func(*faulty, int){
		func(f *faulty, n int) { f.after = n + 1 }, func(f *faulty, n int) { f.after = n + 2 },
		func(f *faulty, n int) { f.before = n + 1 }, func(f *faulty, n int) { f.before = n + 2 },
	} {
		s, f, clk := newStore(t)
		if _, err := s.SaveWithSidecar(t.Context(), load(t, s).saving("1")); err != nil {
			t.Fatal(err)
		}
		save := load(t, s).saving("2")
		breaks(f, f.writes)
		saved, err := s.SaveWithSidecar(t.Context(), save)
		if !errors.Is(err, errCrash) {
			t.Fatalf("SaveWithSidecar = %v", err)
		}
		clk.Advance(time.Minute)
		// As the same process would, with what it was told stands, and as a new one would, with what it has planned.
		again := save
		again.Sidecar, again.SidecarETag = saved.Sidecar, saved.SidecarETag
		for _, repeated := range []Save{again, save} {
			if _, err := s.SaveWithSidecar(t.Context(), repeated); err != nil {
				t.Fatalf("repeated: %v", err)
			}
			p := load(t, s)
			p.check(t)
			if p.rec.Outputs["N"] != "2" {
				t.Fatalf("the record says %v", p.rec.Outputs["N"])
			}
		}
	}
}

func TestTheSDKsOwnRetryIsNoConflict(t *testing.T) {
	for n := 1; n <= 4; n++ {
		s, f, _ := newStore(t)
		s.Objects = retrying{f}
		f.after = n
		for i := 1; i <= 2; i++ {
			if _, err := s.SaveWithSidecar(t.Context(), load(t, s).saving(fmt.Sprint(i))); err != nil {
				t.Fatalf("write %d: %v", n, err)
			}
			load(t, s).check(t)
		}
		if f.writes < 5 {
			t.Fatalf("%d writes: the fault did not happen", f.writes)
		}
	}
}

func TestARecordOfAnotherToolIsNotBound(t *testing.T) {
	s, _, _ := newStore(t)
	if _, err := s.SaveWithSidecar(t.Context(), load(t, s).saving("1")); err != nil {
		t.Fatal(err)
	}
	p := load(t, s)
	save(t, s, rec("App", "cdkd"), p.etag)
	p = load(t, s)
	if p.sidecar.Bound(p.digest) {
		t.Fatal("it is bound")
	}
	if _, err := s.SaveWithSidecar(t.Context(), p.saving("2")); err != nil {
		t.Fatal(err)
	}
	p = load(t, s)
	p.check(t)
	if p.sidecar.Previous != nil {
		t.Fatalf("a generation for a record that it never knew: %+v", p.sidecar.Previous)
	}
	// Written anew without a change, by whomever, it still is the same record.
	p.rec.LastModified = 0
	save(t, s, p.rec, p.etag)
	load(t, s).check(t)
}

func TestOfTwoWritersOneStopsBeforeTheRecord(t *testing.T) {
	s, f, _ := newStore(t)
	if _, err := s.SaveWithSidecar(t.Context(), load(t, s).saving("1")); err != nil {
		t.Fatal(err)
	}
	a, b := load(t, s), load(t, s)
	if _, err := s.SaveWithSidecar(t.Context(), a.saving("2")); err != nil {
		t.Fatal(err)
	}
	before := f.writes
	if _, err := s.SaveWithSidecar(t.Context(), b.saving("3")); !IsModified(err) {
		t.Fatalf("the second writer: %v", err)
	}
	if f.writes != before+1 {
		t.Fatalf("the loser has written %v", f.keys[before:])
	}
	p := load(t, s)
	p.check(t)
	if p.rec.Outputs["N"] != "2" {
		t.Fatalf("the record says %v", p.rec.Outputs["N"])
	}
	// A record that changes between the two writes is not overwritten, and the sidecar does not claim it.
	p = load(t, s)
	f.then = map[int]func(){f.writes + 2: func() {
		put(t, &Store{Objects: f.Store}, s.StateKey("App", "eu-west-1"), stateWith("outputs", `{"N":"foreign"}`))
	}}
	if _, err := s.SaveWithSidecar(t.Context(), p.saving("4")); !IsModified(err) {
		t.Fatalf("over a record that changed: %v", err)
	}
	if p = load(t, s); p.rec.Outputs["N"] != "foreign" || p.sidecar.Bound(p.digest) {
		t.Fatalf("the record says %v, bound %v", p.rec.Outputs["N"], p.sidecar.Bound(p.digest))
	}
}

func TestASidecarOfTheFuture(t *testing.T) {
	s, _, _ := newStore(t)
	key := s.SidecarKey("App", "eu-west-1")
	put(t, s, key, `{"version":2}`)
	var v *VersionError
	if _, _, err := s.LoadSidecar(t.Context(), "App", "eu-west-1"); !errors.As(err, &v) {
		t.Fatalf("LoadSidecar = %v", err)
	}
	for _, damaged := range []string{"", "null", "[]", "{", `{"version":1,"cleanup":{}}`, `{"version":1,"cleanup":[null]}`, `{"version":1,"next":[]}`,
		`{"version":1,"cleanup":[{"logicalId":"R","resource":{"physicalId":"p"}}]}`, `{}`} {
		put(t, s, key, damaged)
		if c, _, err := s.LoadSidecar(t.Context(), "App", "eu-west-1"); !IsDamaged(err) && !errors.As(err, &v) {
			t.Errorf("LoadSidecar of %s = %+v, %v", damaged, c, err)
		}
	}
	put(t, s, key, `{"version":1,"stackName":"App","region":"eu-west-1","next":{"stateDigest":"d","x":1},"lastModified":1,"future":{"a":[]},`+
		`"cleanup":[{"logicalId":"R","resource":`+okResource+`,"y":2}]}`)
	c, etag, err := s.LoadSidecar(t.Context(), "App", "eu-west-1")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.SaveSidecar(t.Context(), c, etag); err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal([]byte(body(t, s, key)), &got); err != nil {
		t.Fatal(err)
	}
	if got["future"] == nil || got["next"].(map[string]any)["x"] == nil || got["cleanup"].([]any)[0].(map[string]any)["y"] == nil {
		t.Fatalf("unknown members were lost: %v", got)
	}
	if err := s.DeleteSidecar(t.Context(), "App", "eu-west-1", `"another"`); !errors.Is(err, ErrModified) {
		t.Fatalf("DeleteSidecar of another one = %v", err)
	}
	_, etag, err = s.LoadSidecar(t.Context(), "App", "eu-west-1")
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := s.DeleteSidecar(t.Context(), "App", "eu-west-1", etag); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := s.LoadSidecar(t.Context(), "App", "eu-west-1"); !IsNotFound(err) {
		t.Fatalf("LoadSidecar = %v", err)
	}
}

func TestNoSidecarKnowsNothing(t *testing.T) {
	var c *Sidecar
	if c.Bound("d") || c.For("d") != nil || c.Pending(nil) != nil {
		t.Fatal("it knows something")
	}
	if (&Sidecar{}).Bound("") {
		t.Fatal("an empty sidecar is bound to no record")
	}
}
