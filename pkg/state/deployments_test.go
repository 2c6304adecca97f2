package state

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-cdk/slipway/pkg/objectstore"
)

func story(i int) (events []DeploymentEvent, run DeploymentRun) {
	at := start.Add(time.Duration(i) * time.Minute)
	took := int64(0)
	run = DeploymentRun{
		RunID: DeploymentRunID(at, uint32(i)), Command: "deploy", StartedAt: DeploymentTime(at),
		FinishedAt: DeploymentTime(at.Add(time.Second)), Result: "SUCCEEDED",
	}
	return []DeploymentEvent{
		{Timestamp: run.StartedAt, EventType: "RUN_STARTED", StackName: "App", Command: "deploy", Region: "eu-west-1"},
		{Timestamp: run.StartedAt, EventType: "RESOURCE_SUCCEEDED", StackName: "App", Operation: "CREATE", LogicalID: "R", DurationMs: &took},
		{Timestamp: run.FinishedAt, EventType: "RUN_FINISHED", StackName: "App", Result: "SUCCEEDED", Counts: &DeploymentCounts{}},
	}, run
}

func write(t *testing.T, s *Store, i int) DeploymentRun {
	t.Helper()
	events, run := story(i)
	if err := s.WriteDeployment(t.Context(), "App", "EU-west-1", events, run); err != nil {
		t.Fatal(err)
	}
	run.EventCount = len(events)
	return run
}

func TestADeploymentIsWrittenAsCdkdWritesIt(t *testing.T) {
	s, f, _ := newStore(t)
	run := write(t, s, 1)
	if run.RunID != "20261129T210100000Z-00000001" {
		t.Fatalf("run id %s", run.RunID)
	}
	base := "cdkd/App/eu-west-1/deployments/"
	if d := cmp.Diff([]string{base + run.RunID + ".jsonl", base + "index.json"}, f.keys); d != "" {
		t.Fatalf("keys (-want +got):\n%s", d)
	}
	const lines = `{"timestamp":"2026-11-29T21:01:00.000Z","eventType":"RUN_STARTED","stackName":"App","command":"deploy","region":"eu-west-1"}
{"timestamp":"2026-11-29T21:01:00.000Z","eventType":"RESOURCE_SUCCEEDED","stackName":"App","operation":"CREATE","logicalId":"R","durationMs":0}
{"timestamp":"2026-11-29T21:01:01.000Z","eventType":"RUN_FINISHED","stackName":"App","result":"SUCCEEDED","counts":{"created":0,"updated":0,"deleted":0}}
`
	if d := cmp.Diff(lines, body(t, s, base+run.RunID+".jsonl")); d != "" {
		t.Fatalf("(-want +got):\n%s", d)
	}
	const idx = `{
  "indexVersion": 1,
  "stackName": "App",
  "region": "eu-west-1",
  "runs": [
    {
      "runId": "20261129T210100000Z-00000001",
      "command": "deploy",
      "startedAt": "2026-11-29T21:01:00.000Z",
      "finishedAt": "2026-11-29T21:01:01.000Z",
      "result": "SUCCEEDED",
      "eventCount": 3
    }
  ],
  "lastModified": 1795986000000
}`
	if d := cmp.Diff(idx, body(t, s, base+"index.json")); d != "" {
		t.Fatalf("(-want +got):\n%s", d)
	}
	events, err := s.LoadDeploymentEvents(t.Context(), "App", "eu-west-1", run.RunID)
	if want, _ := story(1); err != nil || !cmp.Equal(want, events) {
		t.Fatalf("LoadDeploymentEvents = %+v, %v", events, err)
	}
	if _, err := s.LoadDeploymentEvents(t.Context(), "App", "eu-west-1", "none"); !IsNotFound(err) {
		t.Fatalf("LoadDeploymentEvents = %v", err)
	}
}

func TestTheNewestTwentyRunsAreKept(t *testing.T) {
	s, _, _ := newStore(t)
	// The last but one closes after the last one has.
	order := []int{}
	for i := range 23 {
		order = append(order, i)
	}
	order[21], order[22] = order[22], order[21]
	var want []DeploymentRun
	for _, i := range order {
		want = append(want, write(t, s, i))
	}
	write(t, s, 22) // a repeated close
	slices.SortFunc(want, func(a, b DeploymentRun) int { return strings.Compare(b.RunID, a.RunID) })
	want = want[:KeptDeployments]
	x, _, err := s.LoadDeployments(t.Context(), "App", "eu-west-1")
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, x.Runs); d != "" {
		t.Fatalf("(-want +got):\n%s", d)
	}
	infos, err := s.Objects.List(t.Context(), "cdkd/App/eu-west-1/deployments/")
	if err != nil || len(infos) != KeptDeployments+1 {
		t.Fatalf("%d files stand, %v", len(infos), err)
	}
	for i, info := range infos[:KeptDeployments] {
		if !strings.HasSuffix(info.Key, want[KeptDeployments-1-i].RunID+".jsonl") {
			t.Fatalf("file %d is %s", i, info.Key)
		}
	}
}

func TestAMissingIndexIsDerivedFromTheEvents(t *testing.T) {
	s, _, _ := newStore(t)
	var want []DeploymentRun
	for i := range 3 {
		want = append([]DeploymentRun{write(t, s, i)}, want...)
	}
	torn, err := EncodeEvents([]DeploymentEvent{{Timestamp: "t", EventType: "RUN_STARTED", StackName: "App", Command: "destroy"}})
	if err != nil {
		t.Fatal(err)
	}
	put(t, s, "cdkd/App/eu-west-1/deployments/20301129T210100000Z-0.jsonl", string(torn)+`{"timestamp":"t","eventTy`)
	put(t, s, "cdkd/App/eu-west-1/deployments/20291129T210100000Z-0.jsonl", "no\njson\n")
	want = append([]DeploymentRun{{RunID: "20301129T210100000Z-0", Command: "destroy", StartedAt: "t", Result: "UNKNOWN", EventCount: 1}}, want...)
	const key = "cdkd/App/eu-west-1/deployments/index.json"
	for _, stands := range []string{"", "{", "null", `{"runs":[]}`} {
		if err := s.Objects.Delete(t.Context(), key, objectstore.Condition{}); err != nil {
			t.Fatal(err)
		}
		wantETag := ""
		if stands != "" {
			wantETag = put(t, s, key, stands)
		}
		x, etag, err := s.LoadDeployments(t.Context(), "App", "eu-west-1")
		if err != nil || etag != wantETag {
			t.Fatalf("%q: LoadDeployments = %s, %v, want ETag %s", stands, etag, err, wantETag)
		}
		if d := cmp.Diff(want, x.Runs); d != "" {
			t.Fatalf("%q (-want +got):\n%s", stands, d)
		}
	}
	last := write(t, s, 4)
	x, _, err := s.LoadDeployments(t.Context(), "App", "eu-west-1")
	if err != nil || len(x.Runs) != 5 || !slices.ContainsFunc(x.Runs, func(r DeploymentRun) bool { return r.RunID == last.RunID }) {
		t.Fatalf("LoadDeployments = %+v, %v", x, err)
	}
}

func TestConcurrentClosesBothEnterTheIndex(t *testing.T) {
	s, f, _ := newStore(t)
	other := &Store{Objects: f.Store, Clock: s.Clock}
	f.then = map[int]func(){2: func() { write(t, other, 2) }}
	write(t, s, 1)
	x, _, err := s.LoadDeployments(t.Context(), "App", "eu-west-1")
	if err != nil || len(x.Runs) != 2 {
		t.Fatalf("LoadDeployments = %+v, %v", x, err)
	}
}

func TestARunIDMustBeAFileName(t *testing.T) {
	s, f, _ := newStore(t)
	for _, id := range []string{"", "a/b", `a\b`} {
		if err := s.WriteDeployment(t.Context(), "App", "eu-west-1", nil, DeploymentRun{RunID: id}); err == nil {
			t.Errorf("the run id %q was accepted", id)
		}
	}
	if f.writes != 0 {
		t.Fatalf("wrote %v", f.keys)
	}
}

func TestATornLineInTheMiddleIsAnError(t *testing.T) {
	if events, err := DecodeEvents([]byte("{\"eventType\":\"A\"}\n{\"event\n{\"eventType\":\"B\"}\n")); err == nil || !strings.Contains(err.Error(), "line 2") {
		t.Fatal(fmt.Sprint(events, err))
	}
}
