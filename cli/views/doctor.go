package views

import (
	"fmt"

	"github.com/slipway-cdk/slipway/pkg/doctor"
)

// DoctorDocument is the JSON document of doctor.
type DoctorDocument struct {
	// OK: nothing has failed.
	OK     bool           `json:"ok"`
	Checks []doctor.Check `json:"checks"`
}

// NewDoctorDocument makes the document of checks.
func NewDoctorDocument(checks []doctor.Check) DoctorDocument {
	d := DoctorDocument{OK: true, Checks: checks}
	for _, c := range checks {
		d.OK = d.OK && c.Verdict != doctor.Failed
	}
	return d
}

// Checks prints what was looked at, a line for each.
func (s *Streams) Checks(checks []doctor.Check) {
	for _, c := range checks {
		s.Text("%-8s %s: %s", c.Verdict, c.Name, c.Detail)
		if c.Next != "" {
			_, _ = fmt.Fprintf(s.Out, "         next: %s\n", Clean(c.Next))
		}
	}
}
