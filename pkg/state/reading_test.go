package state

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestTheOrderInsideUnknownMembersDoesNotMatter(t *testing.T) {
	for name, place := range map[string]func(r *Record, extra map[string]json.RawMessage){
		"of a record":             func(r *Record, extra map[string]json.RawMessage) { r.Extra = extra },
		"of a resource":           func(r *Record, extra map[string]json.RawMessage) { r.Resources["R"].Extra = extra },
		"of an orphan":            func(r *Record, extra map[string]json.RawMessage) { r.Orphans[0].Extra = extra },
		"of an orphan's resource": func(r *Record, extra map[string]json.RawMessage) { r.Orphans[0].Resource.Extra = extra },
	} {
		t.Run(name, func(t *testing.T) {
			digest := func(unknown string) string {
				r := rec("App", "1")
				r.Resources = map[string]*Resource{"R": {PhysicalID: "r", ResourceType: "AWS::SNS::Topic"}}
				r.Orphans = []Orphan{{LogicalID: "O", Resource: &Resource{PhysicalID: "o", ResourceType: "AWS::SNS::Topic"}}}
				place(r, map[string]json.RawMessage{"unknown": json.RawMessage(unknown)})
				d, err := Digest(r)
				if err != nil {
					t.Fatal(err)
				}
				return d
			}
			if digest(`{"a":1,"b":2}`) != digest(`{"b":2,"a":1}`) {
				t.Error("two orders are two digests")
			}
			if digest(`{"a":1,"b":2}`) == digest(`{"a":1,"b":3}`) {
				t.Error("two values are one digest")
			}
		})
	}
}

func TestWhatCannotBeEncodedHasNoDigest(t *testing.T) {
	r := rec("App", "1")
	r.Orphans = []Orphan{{LogicalID: "O"}}
	if d, err := Digest(r); err == nil || d != "" || !strings.Contains(err.Error(), "App") {
		t.Errorf("Digest = %q, %v", d, err)
	}
}

func TestADamagedRecordIsRefusedWhereverItIsRead(t *testing.T) {
	for name, into := range map[string]any{"a record": &Record{}, "a resource": &Resource{}} {
		if err := json.Unmarshal([]byte(`{"version":8,"resources":[],"properties":[]}`), into); !IsDamaged(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAPreviewSaysThatItIsOne(t *testing.T) {
	data := []byte(fmt.Sprintf(`{"version":%d,"stackName":"App","resources":[],"outputs":{},"lastModified":1}`, SchemaVersion))
	_, found, err := DecodeLenient(data)
	if err != nil || len(found) != 1 || found[0].Next != nextUnread {
		t.Errorf("%+v, %v", found, err)
	}
	var damaged *DamagedError
	if err := Check(data); !errors.As(err, &damaged) || damaged.Diagnostics[0].Next != nextRestore {
		t.Errorf("the refusal is %v", err)
	}
}

func TestTheIndexIsBelievedWhereItStands(t *testing.T) {
	s, _, _ := newStore(t)
	put(t, s, "cdkd/App/eu-west-1/deployments/index.json",
		`{"indexVersion":1,"stackName":"App","region":"eu-west-1","runs":[{"runId":"20301129T210100000Z-0","command":"deploy"}],"lastModified":1}`)
	x, etag, err := s.LoadDeployments(t.Context(), "App", "eu-west-1")
	if err != nil || etag == "" || len(x.Runs) != 1 || x.Runs[0].RunID != "20301129T210100000Z-0" {
		t.Errorf("LoadDeployments = %+v, %q, %v", x, etag, err)
	}
}

func TestADerivedIndexKeepsTheNewestTwentyRuns(t *testing.T) {
	s, _, _ := newStore(t)
	for i := range KeptDeployments + 2 {
		events, run := story(i)
		body, err := EncodeEvents(events)
		if err != nil {
			t.Fatal(err)
		}
		put(t, s, "cdkd/App/eu-west-1/deployments/"+run.RunID+".jsonl", string(body))
	}
	x, _, err := s.LoadDeployments(t.Context(), "App", "eu-west-1")
	if err != nil {
		t.Fatal(err)
	}
	_, newest := story(KeptDeployments + 1)
	if len(x.Runs) != KeptDeployments || x.Runs[0].RunID != newest.RunID {
		t.Errorf("%d runs, the first is %s", len(x.Runs), x.Runs[0].RunID)
	}
}
