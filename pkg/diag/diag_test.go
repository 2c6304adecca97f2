package diag

import (
	"errors"
	"fmt"
	"testing"
)

func TestADiagnosticNamesItsPlaceOnOneLine(t *testing.T) {
	cases := []struct {
		name string
		d    Diagnostic
		want string
	}{
		{"everything", Diagnostic{Stack: "Web", LogicalID: "Queue", Path: "Properties.Name", Summary: "unknown property", Detail: "did you mean QueueName?"}, "Web/Queue Properties.Name: unknown property: did you mean QueueName?"},
		{"a stack alone", Diagnostic{Stack: "Web", Summary: "is locked"}, "Web: is locked"},
		{"a resource without its stack", Diagnostic{LogicalID: "Queue", Summary: "cycle"}, "Queue: cycle"},
		{"a path alone", Diagnostic{Path: "Outputs.Url", Summary: "unresolved"}, "Outputs.Url: unresolved"},
		{"no place", Diagnostic{Summary: "no app"}, "no app"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got := c.d.Error(); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestOnlyErrorsMakeAListAnError(t *testing.T) {
	warned := Diagnostics{{Severity: Warning, Summary: "careful"}}
	if warned.Err() != nil {
		t.Error("a warning is an error")
	}
	failed := append(warned, Diagnostic{Severity: Error, Summary: "no"}, Diagnostic{Severity: Error, Summary: "nor this"})
	if got := failed.Err().Error(); got != "no\nnor this" {
		t.Errorf("got %q", got)
	}
}

func TestFromFindsDiagnosticsInAnErrorChain(t *testing.T) {
	list := Diagnostics{{Severity: Error, Summary: "one"}, {Severity: Error, Summary: "two"}}
	if got := From(fmt.Errorf("planning: %w", list)); len(got) != 2 || got[1].Summary != "two" {
		t.Errorf("a list was not found: %v", got)
	}
	if got := From(fmt.Errorf("planning: %w", list[0])); len(got) != 1 || got[0].Summary != "one" {
		t.Errorf("a single one was not found: %v", got)
	}
	if got := From(errors.New("plain")); len(got) != 1 || got[0].Severity != Error || got[0].Summary != "plain" {
		t.Errorf("a plain error became %v", got)
	}
	if From(nil) != nil {
		t.Error("nil became something")
	}
}

func TestInStackFillsInOnlyWhatIsMissing(t *testing.T) {
	in := Diagnostics{{Summary: "a"}, {Summary: "b", Stack: "Other"}}
	out := in.InStack("Web")
	if out[0].Stack != "Web" || out[1].Stack != "Other" {
		t.Errorf("got %v", out)
	}
	if in[0].Stack != "" {
		t.Error("the input was changed")
	}
}
