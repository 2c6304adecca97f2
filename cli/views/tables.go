package views

import (
	"fmt"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/slipway-cdk/slipway/pkg/runlog"
)

// table prints rows in columns without a frame. On a terminal a row is cut at its width, elsewhere it is
// whole.
func (s *Streams) table(header []string, rows [][]string) {
	t := table.NewWriter()
	style := table.StyleDefault
	style.Options = table.OptionsNoBordersAndSeparators
	style.Box.PaddingLeft, style.Box.PaddingRight = "", "  "
	style.Format.Header = text.FormatUpper
	style.Size.WidthMax = s.Out.Width()
	t.SetStyle(style)
	t.SuppressTrailingSpaces()
	t.AppendHeader(row(header))
	for _, r := range rows {
		t.AppendRow(row(r))
	}
	for _, l := range strings.Split(t.Render(), "\n") {
		_, _ = fmt.Fprintln(s.Out, fit(strings.TrimRight(l, " "), s.Out.Width()))
	}
}

func row(cells []string) table.Row {
	r := make(table.Row, len(cells))
	for i, c := range cells {
		r[i] = Clean(c)
	}
	return r
}

// StackEntry is one stack in the output of list and synth.
type StackEntry struct {
	ID          string   `json:"id"`
	DisplayName string   `json:"displayName"`
	Name        string   `json:"name"`
	Account     string   `json:"account,omitempty"`
	Region      string   `json:"region,omitempty"`
	DependsOn   []string `json:"dependsOn"`
}

// StackNames prints one display name per line.
func (s *Streams) StackNames(list []StackEntry) {
	for _, e := range list {
		_, _ = fmt.Fprintln(s.Out, Clean(e.DisplayName))
	}
}

// StackTable prints stacks with their environments and dependencies.
func (s *Streams) StackTable(list []StackEntry) {
	var rows [][]string
	for _, e := range list {
		rows = append(rows, []string{e.DisplayName, e.Name, orAny(e.Account), orAny(e.Region), strings.Join(e.DependsOn, ", ")})
	}
	s.table([]string{"stack", "name", "account", "region", "depends on"}, rows)
}

func orAny(s string) string {
	if s == "" {
		return "(any)"
	}
	return s
}

// StateEntry is one stack record in the output of state list.
type StateEntry struct {
	Stack        string    `json:"stack"`
	Region       string    `json:"region"`
	Resources    int       `json:"resources"`
	LastModified time.Time `json:"lastModified"`
	// LockedBy is who works on the stack now, "" when nobody does.
	LockedBy string `json:"lockedBy,omitempty"`
	// Damaged: the record can't be read as one.
	Damaged bool `json:"damaged,omitempty"`
}

// StateTable prints the stacks that have a record.
func (s *Streams) StateTable(list []StateEntry) {
	if len(list) == 0 {
		s.Notice("No stack is recorded here.")
		return
	}
	var rows [][]string
	for _, e := range list {
		n := fmt.Sprint(e.Resources)
		if e.Damaged {
			n = "damaged"
		}
		lock := e.LockedBy
		if lock == "" {
			lock = "-"
		}
		rows = append(rows, []string{e.Stack, e.Region, n, moment(e.LastModified), lock})
	}
	s.table([]string{"stack", "region", "resources", "last modified", "locked by"}, rows)
}

func moment(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format("2006-01-02 15:04:05Z")
}

// RecordResource is one resource of a record in the output of state show.
type RecordResource struct{ LogicalID, Type, PhysicalID, ProvisionedBy string }

// Record prints a stack record without its property values; --json shows those.
func (s *Streams) Record(e StateEntry, resources []RecordResource, outputs map[string]any) {
	p := s.Out.palette()
	_, _ = fmt.Fprintf(s.Out, "%s (%s), last modified %s\n", p.bold("Stack "+Clean(e.Stack)), Clean(e.Region), moment(e.LastModified))
	var rows [][]string
	for _, r := range resources {
		by := r.ProvisionedBy
		if by == "" {
			by = "sdk"
		}
		rows = append(rows, []string{r.LogicalID, r.Type, r.PhysicalID, by})
	}
	if len(rows) > 0 {
		s.table([]string{"logical id", "type", "physical id", "by"}, rows)
	}
	if len(outputs) > 0 {
		_, _ = fmt.Fprintln(s.Out, "Outputs")
		writeOutputs(s.Out, outputs)
	}
}

// SandboxEntry is one resource of the simulated AWS.
type SandboxEntry struct {
	Identifier string         `json:"identifier"`
	Type       string         `json:"type"`
	Account    string         `json:"account,omitempty"`
	Region     string         `json:"region,omitempty"`
	Properties map[string]any `json:"properties"`
}

// SandboxTable prints the resources that live in the simulated AWS.
func (s *Streams) SandboxTable(list []SandboxEntry) {
	if len(list) == 0 {
		s.Notice("The sandbox is empty.")
		return
	}
	var rows [][]string
	for _, e := range list {
		rows = append(rows, []string{e.Type, e.Identifier, e.Region})
	}
	s.table([]string{"type", "identifier", "region"}, rows)
}

// EventEntry is an event in the output of events: logicalId is always there, empty for what concerns the
// whole run.
type EventEntry struct {
	runlog.Event
	LogicalID string `json:"logicalId"`
}

// EventTable prints the story of one run.
func (s *Streams) EventTable(list []runlog.Event) {
	var rows [][]string
	for _, e := range list {
		detail := e.Message
		switch {
		case e.Error != nil:
			detail = ErrorText(e.Error)
		case e.Failure != nil && e.Failure.Summary != "":
			detail = e.Failure.Summary
		case e.Counts != nil:
			detail = CountsLine(*e.Counts)
		}
		if e.Result != "" {
			detail = strings.TrimSuffix(string(e.Result)+": "+detail, ": ")
		}
		took := ""
		if e.DurationMs > 0 {
			took = Elapsed(time.Duration(e.DurationMs) * time.Millisecond)
		}
		rows = append(rows, []string{e.Time.UTC().Format("15:04:05.000"), string(e.Type), e.LogicalID, e.Action, took, e.ResourceType, detail})
	}
	s.table([]string{"time", "event", "logical id", "action", "took", "type", "detail"}, rows)
}

// RunHeading prints which run follows and how it ended.
func (s *Streams) RunHeading(h runlog.Header) {
	p := s.Out.palette()
	result := "still " + string(h.Status)
	if h.Status == runlog.StatusClosed {
		result = resultWord(p, h.Result)
	}
	_, _ = fmt.Fprintf(s.Out, "%s  %s of %s (%s), %s: %s\n", p.bold("Run "+Clean(h.RunID)), h.Command, Clean(h.Stack.Name), Clean(h.Stack.Region), moment(h.CreatedAt), result)
}

// Text prints text as data, cleaned, with a line end.
func (s *Streams) Text(format string, args ...any) {
	_, _ = fmt.Fprintln(s.Out, strings.TrimRight(CleanLines(fmt.Sprintf(format, args...)), "\n"))
}
