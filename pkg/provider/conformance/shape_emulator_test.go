//go:build emulators

package conformance

import (
	"os"
	"strings"
	"testing"
)

// TestShapes compares what the direct providers answer with what is recorded of them, where the emulator passes the create.
func TestShapes(t *testing.T) {
	cases, err := Cases()
	if err != nil {
		t.Fatal(err)
	}
	recorded, err := readShapes()
	if err != nil {
		t.Fatal(err)
	}
	emulator := os.Getenv("SLIPWAY_TEST_EMULATOR")
	for _, c := range cases {
		r, err := readResults("results", c.Name)
		if err != nil {
			t.Fatal(err)
		}
		if result := r[emulator]["create"]; result != pass && !strings.HasPrefix(result, "passes without") {
			continue
		}
		for _, d := range c.Differs {
			if d.Emulator == emulator && d.Check == "create" {
				c = c.less(d.Properties)
			}
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
			if *update {
				if recorded[c.Name] == nil {
					recorded[c.Name] = map[string]shape{}
				}
				recorded[c.Name][emulator] = s
				return
			}
			for _, d := range s.differences(map[string]shape{emulator: recorded[c.Name][emulator]}) {
				t.Errorf("%s: run with SLIPWAY_TEST_UPDATE=1", d)
			}
		})
	}
	if *update && !t.Failed() {
		if err := recorded.write(); err != nil {
			t.Fatal(err)
		}
	}
}
