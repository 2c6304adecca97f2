// Package events_test holds the sample payloads of the functions to what the functions read and to what the
// state machines send.
package events_test

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/slipway-cdk/slipway/pkg/run"
	"github.com/slipway-cdk/slipway/pkg/trigger"
	"github.com/slipway-cdk/slipway/statemachine"
)

// samples says what each sample is read into, and which state sends it.
var samples = map[string]struct {
	into    func() any
	machine []byte
	state   string
}{
	"planner-admit.json":     {func() any { return &run.PlannerInput{} }, statemachine.Run, "Admit upload"},
	"planner-open.json":      {func() any { return &run.PlannerInput{} }, statemachine.Run, "Open run"},
	"planner-next.json":      {func() any { return &run.PlannerInput{} }, statemachine.Run, "Plan next wave"},
	"planner-unstarted.json": {func() any { return &run.PlannerInput{} }, statemachine.Run, "Note why it did not start"},
	"planner-close.json":     {func() any { return &run.PlannerInput{} }, statemachine.Run, "Close run"},
	"provisioner.json":       {func() any { return &run.ProvisionInput{} }, statemachine.Run, "Provision resource"},
	"publisher.json":         {func() any { return &run.PublishInput{} }, statemachine.Run, "Publish asset"},
	"janitor.json":           {func() any { return &run.SettleInput{} }, statemachine.Settle, "Settle run"},
	"janitor-sweep.json":     {into: func() any { return &run.SettleInput{} }}, // sent by a schedule
	// Sent by EventBridge.
	"trigger-object-created.json":  {into: func() any { return &trigger.Event{} }},
	"trigger-not-in-an-inbox.json": {into: func() any { return &trigger.Event{} }},
}

func TestEverySampleIsKnown(t *testing.T) {
	files, err := filepath.Glob("*.json")
	if err != nil {
		t.Fatal(err)
	}
	if want := slices.Sorted(maps.Keys(samples)); !slices.Equal(files, want) {
		t.Errorf("the samples are %v, want %v", files, want)
	}
}

func TestSamplesAreWhatTheFunctionsRead(t *testing.T) {
	for file, sample := range samples {
		t.Run(file, func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			into := sample.into()
			dec := json.NewDecoder(bytes.NewReader(data))
			dec.DisallowUnknownFields()
			if err := dec.Decode(into); err != nil {
				t.Fatal(err)
			}
			if _, err := dec.Token(); err != io.EOF {
				t.Fatalf("something follows: %v", err)
			}
			// Nothing of the sample is lost: every member of it has a value that the type keeps.
			again, err := json.Marshal(into)
			if err != nil {
				t.Fatal(err)
			}
			if got, want := keys(t, again), keys(t, data); !slices.Equal(got, want) {
				t.Errorf("the input type keeps %v of %v", got, want)
			}
		})
	}
}

func TestSamplesAreWhatTheStateMachinesSend(t *testing.T) {
	for file, sample := range samples {
		t.Run(file, func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if sample.state == "" {
				return
			}
			var machine any
			if err := json.Unmarshal(sample.machine, &machine); err != nil {
				t.Fatal(err)
			}
			payload := payloadOf(machine, sample.state)
			if payload == nil {
				t.Fatalf("no state %q sends a payload", sample.state)
			}
			var want []string
			for k := range payload {
				want = append(want, strings.TrimSuffix(k, ".$"))
			}
			slices.Sort(want)
			if got := keys(t, data); !slices.Equal(got, want) {
				t.Errorf("the sample has %v, state %q sends %v", got, sample.state, want)
			}
		})
	}
}

// payloadOf finds the payload of a state, however deep the state is.
func payloadOf(v any, state string) map[string]any {
	m, ok := v.(map[string]any)
	if !ok {
		return nil
	}
	for name, child := range m {
		if name == state {
			if s, ok := child.(map[string]any); ok {
				if p, ok := s["Parameters"].(map[string]any); ok {
					if payload, ok := p["Payload"].(map[string]any); ok {
						return payload
					}
				}
			}
		}
		if found := payloadOf(child, state); found != nil {
			return found
		}
	}
	return nil
}

func keys(t *testing.T, data []byte) []string {
	t.Helper()
	m := map[string]any{}
	if err := json.Unmarshal(data, &m); err != nil {
		t.Fatal(err)
	}
	return slices.Sorted(maps.Keys(m))
}
