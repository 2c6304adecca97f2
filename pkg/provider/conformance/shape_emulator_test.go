//go:build emulators

package conformance

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// TestShapes compares what the direct providers answer with what is recorded of them. Each case is recorded at one emulator.
func TestShapes(t *testing.T) {
	cases, err := Cases()
	if err != nil {
		t.Fatal(err)
	}
	shapes, err := readShapes()
	if err != nil {
		t.Fatal(err)
	}
	emulator := os.Getenv("SLIPWAY_TEST_EMULATOR")
	for _, c := range cases {
		if at := recordedAt(t, c); at != emulator {
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			l := &life{lab: newLab(t), c: c}
			if err := l.prepare(); err != nil {
				t.Fatal(err)
			}
			s, err := l.shapeOf(os.Getenv("SLIPWAY_TEST_ENDPOINT"))
			if err != nil {
				t.Fatal(err)
			}
			if err := l.clear(); err != nil {
				t.Error(err)
			}
			s.Emulator = emulator
			if *update {
				shapes[c.Name] = s
				return
			}
			for _, d := range shapes[c.Name].differences(s) {
				t.Errorf("%s: run with SLIPWAY_TEST_UPDATE=1", d)
			}
		})
	}
	if *update && !t.Failed() {
		if err := writeShapes(shapes); err != nil {
			t.Fatal(err)
		}
	}
}

// recordedAt is the emulator that passes the create of a case; moto where both do, as its ids are more like those of AWS.
func recordedAt(t *testing.T, c Case) string {
	t.Helper()
	r, err := readResults("results", c.Name)
	if err != nil {
		t.Fatal(err)
	}
	for _, emulator := range slices.Backward(tried) {
		if result := r[emulator]["create"]; result == pass || strings.HasPrefix(result, "passes without") {
			return emulator
		}
	}
	return ""
}
