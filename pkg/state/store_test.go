package state

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-cdk/slipway/pkg/diag"
	"github.com/slipway-cdk/slipway/pkg/objectstore"
)

func TestLoadReturnsWhatWasSaved(t *testing.T) {
	s, f, clk := newStore(t)
	if _, _, err := s.Load(t.Context(), "App", "eu-west-1"); !IsNotFound(err) {
		t.Fatalf("Load = %v", err)
	}
	r := rec("App", "1")
	r.Region = "EU-West-1"
	etag := save(t, s, r, "")
	if d := cmp.Diff([]string{"cdkd/App/eu-west-1/state.json"}, f.keys); d != "" {
		t.Fatalf("keys (-want +got):\n%s", d)
	}
	clk.Advance(time.Minute)
	got, gotETag, err := s.Load(t.Context(), "App", "EU-WEST-1")
	if err != nil || gotETag != etag {
		t.Fatalf("Load = %v, want ETag %s, got %s", err, etag, gotETag)
	}
	if got.Version != SchemaVersion || got.LastModified != start.UnixMilli() || got.Region != "eu-west-1" || got.Outputs["N"] != "1" {
		t.Fatalf("Load = %+v", got)
	}
	got.Outputs["N"] = "2"
	save(t, s, got, gotETag)
	if got, _, err = s.Load(t.Context(), "App", "eu-west-1"); err != nil || got.Outputs["N"] != "2" || got.LastModified == start.UnixMilli() {
		t.Fatalf("Load = %+v, %v", got, err)
	}
}

func TestAPrefixIsHonoured(t *testing.T) {
	s, f, _ := newStore(t)
	s.Prefix = "team/x/"
	save(t, s, rec("App", "1"), "")
	if _, err := s.SaveSidecar(t.Context(), &Sidecar{StackName: "App", Region: "eu-west-1"}, ""); err != nil {
		t.Fatal(err)
	}
	want := []string{"team/x/App/eu-west-1/state.json", "slipway/prefixes/team/x/stacks/App/eu-west-1/sidecar.json"}
	if d := cmp.Diff(want, f.keys); d != "" {
		t.Fatalf("keys (-want +got):\n%s", d)
	}
	refs, err := s.List(t.Context())
	if err != nil || len(refs) != 1 || refs[0] != (Ref{"App", "eu-west-1"}) {
		t.Fatalf("List = %v, %v", refs, err)
	}
}

func TestSaveNeverOverwritesSomebodyElse(t *testing.T) {
	s, _, _ := newStore(t)
	etag := save(t, s, rec("App", "1"), "")
	if _, err := s.Save(t.Context(), rec("App", "2"), ""); !IsModified(err) {
		t.Fatalf("a first save over a record: %v", err)
	}
	save(t, s, rec("App", "3"), etag)
	_, err := s.Save(t.Context(), rec("App", "4"), etag)
	if !IsModified(err) || !strings.Contains(err.Error(), "App") || !strings.Contains(err.Error(), "eu-west-1") {
		t.Fatalf("a save with an old ETag: %v", err)
	}
	if got, _, _ := s.Load(t.Context(), "App", "eu-west-1"); got.Outputs["N"] != "3" {
		t.Fatalf("the record says %v", got.Outputs["N"])
	}
	if err := s.Delete(t.Context(), "App", "eu-west-1", etag); !IsModified(err) {
		t.Fatalf("a delete with an old ETag: %v", err)
	}
	if _, err := s.Save(t.Context(), rec("Gone", "1"), etag); !IsModified(err) {
		t.Fatalf("a save over a record that is gone: %v", err)
	}
}

func TestASaveWhoseAnswerWasLostSucceeds(t *testing.T) {
	s, f, clk := newStore(t)
	s.Objects = retrying{f}
	f.after = 1
	etag, err := s.Save(t.Context(), rec("App", "1"), "")
	if err != nil || f.writes != 2 {
		t.Fatalf("first save: %v after %d writes", err, f.writes)
	}
	f.after = 3
	next, err := s.Save(t.Context(), rec("App", "2"), etag)
	if err != nil || f.writes != 4 {
		t.Fatalf("second save: %v after %d writes", err, f.writes)
	}
	// A process that was started anew repeats the save, later.
	clk.Advance(time.Minute)
	if again, err := s.Save(t.Context(), rec("App", "2"), etag); err != nil || again != next {
		t.Fatalf("repeated save = %s, %v, want %s", again, err, next)
	}
	if _, got, err := s.Load(t.Context(), "App", "eu-west-1"); err != nil || got != next {
		t.Fatalf("Load = %s, %v, want %s", got, err, next)
	}
}

func TestASaveNeedsAStackAndARegion(t *testing.T) {
	s, f, _ := newStore(t)
	for _, r := range []*Record{{StackName: "App"}, {Region: "eu-west-1"}} {
		if _, err := s.Save(t.Context(), r, ""); err == nil {
			t.Errorf("%+v was saved", r)
		}
	}
	if f.writes != 0 {
		t.Fatalf("wrote %v", f.keys)
	}
}

func TestDelete(t *testing.T) {
	s, _, _ := newStore(t)
	etag := save(t, s, rec("App", "1"), "")
	for range 2 {
		if err := s.Delete(t.Context(), "App", "eu-west-1", etag); err != nil {
			t.Fatal(err)
		}
		if _, _, err := s.Load(t.Context(), "App", "eu-west-1"); !IsNotFound(err) {
			t.Fatalf("Load = %v", err)
		}
	}
}

func TestADamagedRecordIsNamedWithItsStack(t *testing.T) {
	s, _, _ := newStore(t)
	put(t, s, s.StateKey("App", "eu-west-1"), `{"version":8,"resources":[],"outputs":{}}`)
	_, _, err := s.Load(t.Context(), "App", "eu-west-1")
	if !IsDamaged(err) {
		t.Fatalf("Load = %v", err)
	}
	if ds := diag.From(err); len(ds) != 1 || ds[0].Stack != "App" || ds[0].Path != "resources" {
		t.Fatalf("diagnostics %+v", ds)
	}
	r, etag, warnings, err := s.LoadLenient(t.Context(), "App", "eu-west-1")
	if err != nil || r.StackName != "App" || etag == "" || len(warnings) != 1 || warnings[0].Stack != "App" {
		t.Fatalf("LoadLenient = %+v, %s, %+v, %v", r, etag, warnings, err)
	}
	put(t, s, s.StateKey("App", "eu-west-1"), stateWith("version", "11"))
	var v *VersionError
	if _, _, err := s.Load(t.Context(), "App", "eu-west-1"); !errors.As(err, &v) || v.Version != "11" {
		t.Fatalf("Load = %v", err)
	}
}

func TestTheKeyDecidesWhoseRecordItIs(t *testing.T) {
	s, f, _ := newStore(t)
	put(t, s, s.StateKey("App", "eu-west-1"), stateWith("stackName", `"Other"`, "region", `"us-east-1"`))
	r, etag, err := s.Load(t.Context(), "App", "eu-west-1")
	if err != nil {
		t.Fatal(err)
	}
	save(t, s, r, etag)
	if last := f.keys[len(f.keys)-1]; last != "cdkd/App/eu-west-1/state.json" {
		t.Fatalf("it was saved as %s", last)
	}
}

func TestAVersion1RecordMovesToItsRegion(t *testing.T) {
	s, _, _ := newStore(t)
	legacy := `{"version":1,"stackName":"Old","region":"eu-west-1","resources":{"R":` + okResource + `},"outputs":{}}`
	put(t, s, "cdkd/Old/state.json", legacy)
	if _, _, err := s.Load(t.Context(), "Old", "us-east-1"); !IsNotFound(err) {
		t.Fatalf("it was found in another region: %v", err)
	}
	refs, err := s.List(t.Context())
	if err != nil || len(refs) != 1 || refs[0] != (Ref{"Old", "eu-west-1"}) {
		t.Fatalf("List = %v, %v", refs, err)
	}
	r, etag, err := s.Load(t.Context(), "Old", "eu-west-1")
	if err != nil || etag != "" || r.LegacyETag == "" || r.Version != 1 {
		t.Fatalf("Load = %+v, %q, %v", r, etag, err)
	}
	etag = save(t, s, r, etag)
	if body(t, s, "cdkd/Old/state.json") != "" || r.LegacyETag != "" {
		t.Fatal("the old key still stands")
	}
	if r, got, err := s.Load(t.Context(), "Old", "eu-west-1"); err != nil || got != etag || r.Version != SchemaVersion {
		t.Fatalf("Load = %+v, %s, %v", r, got, err)
	}
}

func TestAVersion1RecordWithoutRegionBelongsToWhoeverAsks(t *testing.T) {
	s, _, _ := newStore(t)
	put(t, s, "cdkd/Old/state.json", `{"stackName":"Old","resources":{},"outputs":{}}`)
	r, _, err := s.Load(t.Context(), "Old", "us-east-1")
	if err != nil || r.Region != "us-east-1" {
		t.Fatalf("Load = %+v, %v", r, err)
	}
}

func TestADeleteDoesNotBringAVersion1RecordBack(t *testing.T) {
	s, f, _ := newStore(t)
	put(t, s, "cdkd/Old/state.json", `{"stackName":"Old","region":"eu-west-1","resources":{},"outputs":{}}`)
	r, _, err := s.Load(t.Context(), "Old", "eu-west-1")
	if err != nil {
		t.Fatal(err)
	}
	f.before = f.writes + 2 // the removal of the old key
	etag := save(t, s, r, "")
	if body(t, s, "cdkd/Old/state.json") == "" {
		t.Fatal("the fault did not happen")
	}
	if err := s.Delete(t.Context(), "Old", "eu-west-1", etag); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Load(t.Context(), "Old", "eu-west-1"); !IsNotFound(err) {
		t.Fatalf("Load = %v", err)
	}
	// One of another region stays.
	put(t, s, "cdkd/Old/state.json", `{"stackName":"Old","region":"us-east-1","resources":{},"outputs":{}}`)
	if err := s.Delete(t.Context(), "Old", "eu-west-1", ""); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Load(t.Context(), "Old", "us-east-1"); err != nil {
		t.Fatalf("Load = %v", err)
	}
}

func TestListNamesEveryStack(t *testing.T) {
	s, _, _ := newStore(t)
	for _, key := range []string{
		"cdkd/B/us-east-1/state.json", "cdkd/B/eu-west-1/state.json", "cdkd/A/eu-west-1/state.json", "cdkd/A~Kid/eu-west-1/state.json",
		"cdkd/C/eu-west-1/lock.json", "cdkd/_index/eu-west-1/exports.json", "cdkd/A/eu-west-1/deployments/state.json",
		"cdkd2/D/eu-west-1/state.json", "other/state.json", "cdkd/state.json", "cdkd/E/eu-west-1/rollback-journal.json",
	} {
		put(t, s, key, stateWith())
	}
	put(t, s, "cdkd/B/state.json", stateWith("region", `"EU-WEST-1"`)) // hidden by the new key
	put(t, s, "cdkd/F/state.json", stateWith("region", ``))
	got, err := s.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := []Ref{{"A", "eu-west-1"}, {"A~Kid", "eu-west-1"}, {"B", "eu-west-1"}, {"B", "us-east-1"}, {"F", ""}}
	if d := cmp.Diff(want, got); d != "" {
		t.Fatalf("(-want +got):\n%s", d)
	}
}

func TestAFailingStoreIsNeitherNotFoundNorModified(t *testing.T) {
	s, f, _ := newStore(t)
	etag := save(t, s, rec("App", "1"), "")
	f.down = true
	_, _, loadErr := s.Load(t.Context(), "App", "eu-west-1")
	_, saveErr := s.Save(t.Context(), rec("App", "2"), etag)
	_, _, _, lenientErr := s.LoadLenient(t.Context(), "App", "eu-west-1")
	for _, err := range []error{loadErr, saveErr, lenientErr, s.Delete(t.Context(), "App", "eu-west-1", etag)} {
		if !errors.Is(err, errCrash) || IsNotFound(err) || IsModified(err) || errors.Is(err, objectstore.ErrNotFound) {
			t.Errorf("error is %v", err)
		}
		if err != nil && !strings.Contains(err.Error(), "App") {
			t.Errorf("the error does not name the stack: %v", err)
		}
	}
}
