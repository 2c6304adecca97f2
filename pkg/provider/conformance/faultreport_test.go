package conformance

import (
	"os"
	"testing"
)

// TestFaultReport keeps docs/provider-faults.md in step with what the fault runs have measured.
func TestFaultReport(t *testing.T) {
	cases, err := Cases()
	if err != nil {
		t.Fatal(err)
	}
	want, err := faultReport("faults", cases)
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(docs+"provider-faults.md", []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if have, err := os.ReadFile(docs + "provider-faults.md"); err != nil || string(have) != want {
		t.Errorf("docs/provider-faults.md is not what has been measured (%v): run go test ./pkg/provider/conformance -update", err)
	}
}

// TestNoFaultLeavesAFailureOnRecord: what a fault run finds is mended, or explained where it is the emulator's.
func TestNoFaultLeavesAFailureOnRecord(t *testing.T) {
	cases, err := Cases()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range faultCases(cases) {
		r, err := readFaults("faults", c.Name)
		if err != nil {
			t.Fatal(err)
		}
		if r.Type == "" {
			continue
		}
		for _, f := range faultColumns {
			if cell := r.Cells[f.name]; cell.Result != pass || cell.Create == 0 || cell.Delete == 0 {
				t.Errorf("%s, %s: %+v is on record", c.Type, f.name, cell)
			}
		}
	}
}
