package views

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/slipway-cdk/slipway/pkg/runlog"
)

// RunEntry is one run in the output of runs list.
type RunEntry struct {
	RunID   string         `json:"runId"`
	Command runlog.Command `json:"command"`
	// Stacks are the names of the stacks that it is about.
	Stacks []string      `json:"stacks"`
	Region string        `json:"region,omitempty"`
	Status runlog.Status `json:"status"`
	// Result is empty while the run goes on.
	Result     runlog.Result  `json:"result,omitempty"`
	CreatedAt  time.Time      `json:"createdAt"`
	StartedAt  time.Time      `json:"startedAt,omitzero"`
	FinishedAt time.Time      `json:"finishedAt,omitzero"`
	Counts     runlog.Counts  `json:"counts"`
	Error      *ErrorDocument `json:"error,omitempty"`
}

// NewRunEntry describes a run from its header.
func NewRunEntry(h runlog.Header) RunEntry {
	e := RunEntry{
		RunID: h.RunID, Command: h.Command, Stacks: []string{}, Region: h.Stack.Region, Status: h.Status, Result: h.Result,
		CreatedAt: h.CreatedAt, StartedAt: h.StartedAt, FinishedAt: h.FinishedAt, Counts: h.Counts,
	}
	if h.Result != "" && h.Result != runlog.ResultSucceeded {
		e.Error = failureOf(h)
	}
	return e
}

// OperationDocument is one operation of a stack's run.
type OperationDocument struct {
	Operation  string          `json:"operation"`
	LogicalID  string          `json:"logicalId"`
	Type       string          `json:"type"`
	Action     string          `json:"action"`
	Status     runlog.OpStatus `json:"status"`
	Attempt    int             `json:"attempt"`
	PhysicalID string          `json:"physicalId,omitempty"`
	DurationMs int64           `json:"durationMs"`
	Reason     string          `json:"reason,omitempty"`
	Error      *runlog.OpError `json:"error,omitempty"`
}

// StackRunDocument is a stack's own run with its operations, in the order in which they began.
type StackRunDocument struct {
	RunEntry
	Phase      string              `json:"phase,omitempty"`
	Operations []OperationDocument `json:"operations"`
}

// NewStackRunDocument describes a stack's run from its header and its journal.
func NewStackRunDocument(h runlog.Header, ops []runlog.Op) StackRunDocument {
	d := StackRunDocument{RunEntry: NewRunEntry(h), Phase: h.Phase, Operations: []OperationDocument{}}
	if h.Stack.Name != "" {
		d.Stacks = []string{h.Stack.Name}
	}
	ops = slices.Clone(ops)
	slices.SortStableFunc(ops, func(a, b runlog.Op) int {
		return cmp.Or(a.StartedAt.Compare(b.StartedAt), cmp.Compare(a.OpID, b.OpID))
	})
	for _, op := range ops {
		o := OperationDocument{
			Operation: op.OpID, LogicalID: op.LogicalID, Type: op.Type, Action: op.Action, Status: op.Status,
			Attempt: op.Attempt, PhysicalID: op.PhysicalID, Reason: op.Reason, Error: op.Error,
		}
		if op.Status.Ended() && op.FinishedAt.After(op.StartedAt) {
			o.DurationMs = op.FinishedAt.Sub(op.StartedAt).Milliseconds()
		}
		d.Operations = append(d.Operations, o)
	}
	return d
}

// RunDetailDocument is what runs show prints with --json.
type RunDetailDocument struct {
	RunEntry
	Runs []StackRunDocument `json:"runs"`
	// Next says how to go on, where there is something to do.
	Next string `json:"next,omitempty"`
}

// CancelDocument is what cancel prints with --json.
type CancelDocument struct {
	RunID       string `json:"runId"`
	CancelledBy string `json:"cancelledBy"`
}

// StartedDocument is what a command prints with --detach and --json.
type StartedDocument struct {
	Result string       `json:"result"` // STARTED
	Runs   []StartedRun `json:"runs"`
}

// StartedRun is a run that goes on by itself.
type StartedRun struct {
	RunID   string         `json:"runId"`
	Command runlog.Command `json:"command"`
	Stacks  []string       `json:"stacks"`
}

// NewStartedDocument describes a run that was started.
func NewStartedDocument(runID string, command runlog.Command, stacks []string) StartedDocument {
	return StartedDocument{Result: "STARTED", Runs: []StartedRun{{RunID: runID, Command: command, Stacks: stacks}}}
}

// AddCounts adds up what runs have done.
func AddCounts(a, b runlog.Counts) runlog.Counts { return addCounts(a, b) }

// RunSummary says in a few words what a run is.
func RunSummary(h runlog.Header) string {
	text := string(h.Command)
	if h.Stack.Name != "" {
		text += " of " + Clean(h.Stack.Name)
	}
	return text + ", " + strings.ToLower(stateOf(NewRunEntry(h)))
}

// stateOf is a run's result, or where it stands.
func stateOf(e RunEntry) string {
	switch e.Status {
	case runlog.StatusClosed:
		return string(e.Result)
	case runlog.StatusNew:
		return "WAITING"
	case runlog.StatusSettling:
		return "SETTLING"
	default:
		return "RUNNING"
	}
}

// RunTable prints runs, one a line.
func (s *Streams) RunTable(list []RunEntry) {
	if len(list) == 0 {
		s.Notice("No run is recorded here.")
		return
	}
	var rows [][]string
	for _, e := range list {
		took := "-"
		if !e.FinishedAt.IsZero() && !e.StartedAt.IsZero() {
			took = Elapsed(e.FinishedAt.Sub(e.StartedAt))
		}
		rows = append(rows, []string{e.RunID, string(e.Command), strings.Join(e.Stacks, ", "), moment(e.CreatedAt), took, stateOf(e), CountsLine(e.Counts)})
	}
	s.table([]string{"run", "command", "stacks", "asked for", "took", "state", "changes"}, rows)
}

// RunDetail prints one run with its stacks and operations.
func (s *Streams) RunDetail(d RunDetailDocument) {
	p := s.Out.palette()
	_, _ = fmt.Fprintf(s.Out, "%s  %s, asked for %s: %s\n", p.bold("Run "+Clean(d.RunID)), d.Command, moment(d.CreatedAt), s.state(d.RunEntry))
	s.cause(d.RunEntry, "")
	for _, r := range d.Runs {
		if r.RunID != d.RunID {
			_, _ = fmt.Fprintf(s.Out, "\n%s (%s)  %s: %s\n", p.bold("Stack "+Clean(strings.Join(r.Stacks, ", "))), Clean(r.Region), s.state(r.RunEntry), CountsLine(r.Counts))
			_, _ = fmt.Fprintf(s.Out, "  %s\n", p.dim("run "+Clean(r.RunID)))
			s.cause(r.RunEntry, "  ")
		}
		var rows [][]string
		for _, o := range r.Operations {
			took, detail := "", o.Reason
			if o.DurationMs > 0 {
				took = Elapsed(time.Duration(o.DurationMs) * time.Millisecond)
			}
			if o.Error != nil {
				detail = ErrorText(o.Error)
			}
			if o.Attempt > 1 {
				detail = strings.TrimSuffix(fmt.Sprintf("attempt %d: %s", o.Attempt, detail), ": ")
			}
			rows = append(rows, []string{"  " + string(o.Status), o.Action, o.LogicalID, took, o.Type, detail})
		}
		if len(rows) > 0 {
			s.table([]string{"  status", "action", "logical id", "took", "type", "detail"}, rows)
		}
	}
	if d.Next != "" {
		_, _ = fmt.Fprintf(s.Out, "\n%s\n", d.Next)
	}
}

func (s *Streams) state(e RunEntry) string {
	if e.Status == runlog.StatusClosed {
		return resultWord(s.Out.palette(), e.Result)
	}
	return s.Out.palette().cyan(stateOf(e))
}

// cause prints why a run has failed.
func (s *Streams) cause(e RunEntry, margin string) {
	if e.Error == nil {
		return
	}
	_, _ = fmt.Fprintln(s.Out, margin+s.Out.palette().red(Clean(e.Error.Summary)))
	if e.Error.Detail != "" {
		_, _ = fmt.Fprintln(s.Out, indent(strings.TrimSpace(CleanLines(e.Error.Detail)), margin+"  "))
	}
}
