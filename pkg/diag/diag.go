// Package diag describes problems in one shape, so that every part of Slipway reports them alike and
// the command line prints them alike.
//
// A diagnostic says what happened (Summary), why (Detail), where (Stack, LogicalID, Path) and what to do
// next (Next). It never holds a property value: a message can name a property, not quote its content.
package diag

import (
	"errors"
	"strings"
)

// Severity tells whether a diagnostic stops the work.
type Severity string

const (
	// Error stops the work before anything is touched.
	Error Severity = "error"
	// Warning is shown and the work goes on.
	Warning Severity = "warning"
)

// Diagnostic is one problem and its place.
type Diagnostic struct {
	Severity  Severity `json:"severity"`
	Summary   string   `json:"summary"`
	Detail    string   `json:"detail,omitempty"`
	Stack     string   `json:"stack,omitempty"`
	LogicalID string   `json:"logicalId,omitempty"`
	// Path is the position inside the resource or the document, dotted: "Properties.Tags.0.Key".
	Path string `json:"path,omitempty"`
	// Next is one sentence that says what to do about it.
	Next string `json:"next,omitempty"`
}

// Error renders the diagnostic on one line: "stack/logicalId.path: summary: detail".
func (d Diagnostic) Error() string {
	var b strings.Builder
	if w := d.Where(); w != "" {
		b.WriteString(w)
		b.WriteString(": ")
	}
	b.WriteString(d.Summary)
	if d.Detail != "" {
		b.WriteString(": ")
		b.WriteString(d.Detail)
	}
	return b.String()
}

// Where names the place, as far as it is known: "Stack/LogicalID Properties.X".
func (d Diagnostic) Where() string {
	var parts []string
	switch {
	case d.Stack != "" && d.LogicalID != "":
		parts = append(parts, d.Stack+"/"+d.LogicalID)
	case d.Stack != "":
		parts = append(parts, d.Stack)
	case d.LogicalID != "":
		parts = append(parts, d.LogicalID)
	}
	if d.Path != "" {
		parts = append(parts, d.Path)
	}
	return strings.Join(parts, " ")
}

// Diagnostics is a list of problems. As an error it is the list of its errors.
type Diagnostics []Diagnostic

// HasErrors reports whether any entry stops the work.
func (ds Diagnostics) HasErrors() bool {
	for _, d := range ds {
		if d.Severity == Error {
			return true
		}
	}
	return false
}

// Err returns the list as an error if it holds an error, and nil otherwise.
func (ds Diagnostics) Err() error {
	if ds.HasErrors() {
		return ds
	}
	return nil
}

// Error renders every error of the list, one per line.
func (ds Diagnostics) Error() string {
	var lines []string
	for _, d := range ds {
		if d.Severity == Error {
			lines = append(lines, d.Error())
		}
	}
	return strings.Join(lines, "\n")
}

// Errorf is the shorthand for a list of one error.
func Errorf(summary, detail string) Diagnostics {
	return Diagnostics{{Severity: Error, Summary: summary, Detail: detail}}
}

// InStack returns a copy in which every entry without a stack names this one.
func (ds Diagnostics) InStack(stack string) Diagnostics {
	out := make(Diagnostics, len(ds))
	for i, d := range ds {
		if d.Stack == "" {
			d.Stack = stack
		}
		out[i] = d
	}
	return out
}

// From turns any error into diagnostics: a Diagnostic or Diagnostics found in its chain as it is,
// anything else as one error whose summary is its text.
func From(err error) Diagnostics {
	if err == nil {
		return nil
	}
	var list Diagnostics
	if errors.As(err, &list) {
		return list
	}
	var one Diagnostic
	if errors.As(err, &one) {
		return Diagnostics{one}
	}
	return Diagnostics{{Severity: Error, Summary: err.Error()}}
}
