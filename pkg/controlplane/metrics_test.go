package controlplane

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/slipway-cdk/slipway/pkg/run"
)

func TestWhatHasEndedIsCountedInTheFunctionsLog(t *testing.T) {
	now := time.Date(2026, 11, 29, 21, 32, 24, 236e6, time.UTC) // a minute after the run was submitted
	const id = "20261129T213124236Z-9d519276"
	for name, c := range map[string]struct {
		payload, answer string
		want            []string // metrics with their dimension and value
	}{
		"a run that was closed":          {`{"action":"close","runId":"` + id + `"}`, `{"runId":"` + id + `","result":"SUCCEEDED"}`, []string{"Runs Result=SUCCEEDED 1", "RunDuration 60"}},
		"a run that was refused":         {`{"action":"open","runId":"` + id + `"}`, `{"runId":"` + id + `","kind":"REFUSED"}`, []string{"Runs Result=FAILED 1", "RunDuration 60"}},
		"a decision":                     {`{"action":"next","runId":"` + id + `"}`, `{"runId":"` + id + `","kind":"WAVE"}`, nil},
		"an operation that has ended":    {`{"runId":"` + id + `","op":"Queue"}`, `{"op":"Queue","status":"SUCCEEDED"}`, []string{"Operations Status=SUCCEEDED 1"}},
		"an operation that is in flight": {`{"runId":"` + id + `","op":"Queue"}`, `{"op":"Queue","status":"RUNNING"}`, nil},
		"a dead run that was settled":    {`{"action":"settle","runId":"` + id + `"}`, `{"runId":"` + id + `","settled":true}`, []string{"Settled 1"}},
		"one that is not settled yet":    {`{"action":"settle","runId":"` + id + `"}`, `{"runId":"` + id + `","seconds":3}`, nil},
		"a sweep":                        {`{"action":"sweep"}`, `{"ended":[]}`, nil},
		"a run id of another form":       {`{"action":"close","runId":"r"}`, `{"result":"FAILED"}`, []string{"Runs Result=FAILED 1"}},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			f := &Function{
				Open:    func(context.Context) (*Plane, error) { return &Plane{}, nil },
				Handle:  func(*Plane, context.Context, []byte) ([]byte, error) { return []byte(c.answer), nil },
				metrics: &metrics{out: &out, plane: "slipway", now: func() time.Time { return now }},
			}
			if _, err := f.Invoke(t.Context(), []byte(c.payload)); err != nil {
				t.Fatal(err)
			}
			var got []string
			for line := range strings.Lines(out.String()) {
				got = append(got, readMetric(t, line))
			}
			if strings.Join(got, "; ") != strings.Join(c.want, "; ") {
				t.Errorf("it counts %v, want %v", got, c.want)
			}
		})
	}
}

// readMetric reads a line as CloudWatch does, and shows it as "name dimension=value number".
func readMetric(t *testing.T, line string) string {
	t.Helper()
	var envelope struct {
		AWS struct {
			Timestamp         int64
			CloudWatchMetrics []struct {
				Namespace  string
				Dimensions [][]string
				Metrics    []struct{ Name, Unit string }
			}
		} `json:"_aws"`
	}
	var members map[string]any
	if json.Unmarshal([]byte(line), &envelope) != nil || json.Unmarshal([]byte(line), &members) != nil {
		t.Fatalf("the line is %s", line)
	}
	m := envelope.AWS.CloudWatchMetrics[0]
	if envelope.AWS.Timestamp != 1795987944236 || m.Namespace != "Slipway" || m.Dimensions[0][0] != "Plane" || members["Plane"] != "slipway" || m.Metrics[0].Unit == "" {
		t.Errorf("the line is %s", line)
	}
	shown := m.Metrics[0].Name
	for _, d := range m.Dimensions[0][1:] {
		shown += " " + d + "=" + members[d].(string)
	}
	return shown + " " + strings.TrimSuffix(string(mustJSON(t, members[m.Metrics[0].Name])), "\n")
}

func mustJSON(t *testing.T, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestAFailedInvocationIsNotCounted(t *testing.T) {
	var out bytes.Buffer
	f := &Function{
		Open: func(context.Context) (*Plane, error) { return &Plane{}, nil },
		Handle: func(*Plane, context.Context, []byte) ([]byte, error) {
			return nil, &run.HandlerError{Name: run.ErrorFenced, Err: errors.New("somebody else settles it")}
		},
		metrics: &metrics{out: &out, plane: "slipway", now: time.Now},
	}
	if _, err := f.Invoke(t.Context(), []byte(`{"action":"close","runId":"r"}`)); err == nil || out.Len() != 0 {
		t.Errorf("%v: it counts %s", err, out.String())
	}
}
