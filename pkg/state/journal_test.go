package state

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func segment(runID, reason string) Segment {
	return Segment{RunID: runID, Reason: reason, Operations: []CompletedOperation{{
		LogicalID: "R", ChangeType: ChangeCreate, ResourceType: "AWS::SQS::Queue", PhysicalID: "p" + runID, Properties: map[string]any{},
	}}}
}

func TestSegmentsAreAppendedNewestLast(t *testing.T) {
	s, _, _ := newStore(t)
	if _, _, err := s.LoadJournal(t.Context(), "App", "eu-west-1"); !IsNotFound(err) {
		t.Fatalf("LoadJournal = %v", err)
	}
	for _, id := range []string{"1", "2"} {
		if err := s.AppendSegment(t.Context(), "App", "EU-west-1", segment(id, ReasonNoRollback)); err != nil {
			t.Fatal(err)
		}
	}
	// A run that reports again replaces what it reported.
	if err := s.AppendSegment(t.Context(), "App", "eu-west-1", segment("1", ReasonRollbackClean)); err != nil {
		t.Fatal(err)
	}
	j, etag, err := s.LoadJournal(t.Context(), "App", "eu-west-1")
	if err != nil {
		t.Fatal(err)
	}
	want := []Segment{segment("2", ReasonNoRollback), segment("1", ReasonRollbackClean)}
	want[0].Timestamp, want[1].Timestamp = start.UnixMilli(), start.UnixMilli()
	if d := cmp.Diff(&Journal{JournalVersion: 1, StackName: "App", Region: "eu-west-1", Segments: want}, j); d != "" {
		t.Fatalf("(-want +got):\n%s", d)
	}
	j.Segments = j.Segments[:1]
	next, err := s.ReplaceJournal(t.Context(), j, etag)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.ReplaceJournal(t.Context(), &Journal{StackName: "App", Region: "eu-west-1", Segments: want}, etag); !IsModified(err) {
		t.Fatalf("ReplaceJournal with an old ETag = %v", err)
	}
	if err := s.DeleteJournal(t.Context(), "App", "eu-west-1", etag); !IsModified(err) {
		t.Fatalf("DeleteJournal with an old ETag = %v", err)
	}
	j.Segments = nil
	if _, err := s.ReplaceJournal(t.Context(), j, next); err != nil {
		t.Fatal(err)
	}
	if body(t, s, s.JournalKey("App", "eu-west-1")) != "" {
		t.Fatal("a journal without segments stands")
	}
	for _, etag := range []string{"", next} {
		if err := s.DeleteJournal(t.Context(), "App", "eu-west-1", etag); err != nil {
			t.Fatalf("DeleteJournal of nothing = %v", err)
		}
	}
}

func TestAnAppendedSegmentWithoutOperationsCanBeRead(t *testing.T) {
	s, _, _ := newStore(t)
	if err := s.AppendSegment(t.Context(), "App", "eu-west-1", Segment{RunID: "1", Reason: ReasonInterrupted}); err != nil {
		t.Fatal(err)
	}
	j, _, err := s.LoadJournal(t.Context(), "App", "eu-west-1")
	if err != nil || len(j.Segments) != 1 || j.Segments[0].FailedOperations != nil {
		t.Fatalf("LoadJournal = %+v, %v", j, err)
	}
}

func TestAJournalThatCannotBeTrustedIsRefused(t *testing.T) {
	for _, data := range []string{
		"", "null", "[]", "{}", `{"journalVersion":1}`, `{"journalVersion":1,"segments":null}`, `{"journalVersion":1,"segments":{}}`,
		`{"journalVersion":1,"segments":[null]}`, `{"journalVersion":1,"segments":[{}]}`,
		`{"journalVersion":1,"segments":[{"operations":null}]}`, `{"journalVersion":1,"segments":[{"operations":[null]}]}`,
		`{"journalVersion":1,"segments":[{"operations":[{"logicalId":"R"}]}]}`,
		`{"journalVersion":1,"segments":[{"operations":[],"failedOperations":[{}]}]}`,
		`{"journalVersion":1,"segments":[{"operations":[{"logicalId":"R","changeType":"UPDATE","resourceType":"T","previousState":{}}]}]}`,
	} {
		s, _, _ := newStore(t)
		put(t, s, s.JournalKey("App", "eu-west-1"), data)
		if j, _, err := s.LoadJournal(t.Context(), "App", "eu-west-1"); !IsDamaged(err) {
			t.Errorf("LoadJournal of %s = %+v, %v", data, j, err)
		}
		if err := s.AppendSegment(t.Context(), "App", "eu-west-1", segment("1", ReasonInterrupted)); !IsDamaged(err) {
			t.Errorf("AppendSegment to %s = %v", data, err)
		}
		if got := body(t, s, s.JournalKey("App", "eu-west-1")); got != data {
			t.Errorf("%s became %s", data, got)
		}
	}
	for _, version := range []string{"2", "0", `"1"`, "null"} {
		_, err := DecodeJournal([]byte(`{"journalVersion":` + version + `,"segments":[]}`))
		var v *VersionError
		if !errors.As(err, &v) {
			t.Errorf("version %s: %v", version, err)
		}
	}
}

func TestUnknownMembersOfAJournalSurvive(t *testing.T) {
	const data = `{"journalVersion":1,"stackName":"App","region":"r","segments":[{"timestamp":1,"reason":"interrupted","initialDeploy":true,` +
		`"new":1,"operations":[{"logicalId":"R","changeType":"CREATE","resourceType":"T","properties":{},"x":{"y":1.0}}],` +
		`"failedOperations":[{"logicalId":"R","changeType":"CREATE","resourceType":"T","z":null}]}],"future":[]}`
	j, err := DecodeJournal([]byte(data))
	if err != nil {
		t.Fatal(err)
	}
	got, err := j.Encode()
	if err != nil {
		t.Fatal(err)
	}
	sameJSON(t, "journal", []byte(data), got)
}
