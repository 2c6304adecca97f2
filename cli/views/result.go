package views

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/slipway-cdk/slipway/pkg/diag"
	"github.com/slipway-cdk/slipway/pkg/plan"
	"github.com/slipway-cdk/slipway/pkg/runlog"
)

// ErrorDocument is a failure in a JSON document.
type ErrorDocument struct {
	Summary   string `json:"summary"`
	Detail    string `json:"detail,omitempty"`
	LogicalID string `json:"logicalId,omitempty"`
}

// RunDocument is one stack's run in a JSON document.
type RunDocument struct {
	RunID      string         `json:"runId"`
	Stack      string         `json:"stack"`
	Region     string         `json:"region"`
	Command    runlog.Command `json:"command"`
	Result     runlog.Result  `json:"result"`
	Waves      int            `json:"waves"`
	DurationMs int64          `json:"durationMs"`
	Counts     runlog.Counts  `json:"counts"`
	Outputs    map[string]any `json:"outputs"`
	Error      *ErrorDocument `json:"error,omitempty"`
}

// ResultDocument is what deploy and destroy print with --json.
type ResultDocument struct {
	Result runlog.Result `json:"result"`
	Runs   []RunDocument `json:"runs"`
	// Plan is there on a dry run, and when approval is what was missing.
	Plan []plan.StackView `json:"plan,omitempty"`
	// Error and Diagnostics are there when the deployment failed outside of any stack's run.
	Error       *ErrorDocument   `json:"error,omitempty"`
	Diagnostics diag.Diagnostics `json:"diagnostics,omitempty"`
}

// FailureDocument is what any other command prints with --json when it fails.
type FailureDocument struct {
	Error       ErrorDocument    `json:"error"`
	Diagnostics diag.Diagnostics `json:"diagnostics"`
}

// DiffDocument is what diff prints with --json.
type DiffDocument struct {
	Differences bool             `json:"differences"`
	Stacks      []plan.StackView `json:"stacks"`
	Diagnostics diag.Diagnostics `json:"diagnostics,omitempty"`
}

// Outcome is one stack's run as it ended.
type Outcome struct {
	Header  runlog.Header
	Outputs map[string]any
}

// NewRunDocument describes a run from its header.
func NewRunDocument(o Outcome) RunDocument {
	h := o.Header
	d := RunDocument{
		RunID: h.RunID, Stack: h.Stack.Name, Region: h.Stack.Region, Command: h.Command, Result: h.Result,
		Waves: h.Waves, DurationMs: Duration(h).Milliseconds(), Counts: h.Counts, Outputs: o.Outputs,
	}
	if d.Outputs == nil {
		d.Outputs = map[string]any{}
	}
	if h.Result != runlog.ResultSucceeded {
		d.Error = failureOf(h)
	}
	return d
}

// failureOf is a run's first cause: its failure, or the first error among its diagnostics.
func failureOf(h runlog.Header) *ErrorDocument {
	if h.Failure != nil && h.Failure.Summary != "" {
		return &ErrorDocument{Summary: h.Failure.Summary, Detail: h.Failure.Detail, LogicalID: h.Failure.LogicalID}
	}
	return FirstError(h.Diagnostics)
}

// FirstError is the first error of a list, or nil.
func FirstError(list diag.Diagnostics) *ErrorDocument {
	for _, d := range list {
		if d.Severity == diag.Error {
			return &ErrorDocument{Summary: d.Summary, Detail: d.Detail, LogicalID: d.LogicalID}
		}
	}
	return nil
}

// Duration is how long a run took, from its start (or its request, when it never started) to its end.
func Duration(h runlog.Header) time.Duration {
	start := h.StartedAt
	if start.IsZero() {
		start = h.CreatedAt
	}
	if start.IsZero() || h.FinishedAt.Before(start) {
		return 0
	}
	return h.FinishedAt.Sub(start)
}

// Failures repeats failed operations on Err, so that they need not be looked for among the finished lines.
func (s *Streams) Failures(list []runlog.Event) {
	if len(list) == 0 {
		return
	}
	p := s.Err.palette()
	_, _ = fmt.Fprintln(s.Err, p.red(plural(len(list), "operation")+" failed:"))
	for _, e := range list {
		name := Clean(e.LogicalID)
		if e.Stack != "" && e.Type == runlog.OpFail {
			name = Clean(e.Stack) + "/" + name
		}
		_, _ = fmt.Fprintf(s.Err, "  %s %s\n", p.red("FAILED "+Clean(cmp.Or(e.Action, "publish"))), strings.TrimSpace(name+"  "+Clean(e.ResourceType)))
		if e.Error != nil {
			_, _ = fmt.Fprintln(s.Err, indent(strings.TrimSpace(CleanLines(errorLines(e.Error))), "    "))
		}
	}
}

func errorLines(err *runlog.OpError) string {
	text := err.Message
	if code := cmp.Or(err.Code, string(err.Kind)); code != "" {
		text = code + ": " + text
	}
	if err.RequestID != "" {
		text += " (request " + err.RequestID + ")"
	}
	return text
}

// Result prints how every stack ended, with its outputs, and the whole deployment in one line. Data goes to
// Out, what went wrong to Err.
func (s *Streams) Result(root runlog.Header, list []Outcome) {
	p := s.Out.palette()
	var total runlog.Counts
	if len(list) > 0 {
		_, _ = fmt.Fprintln(s.Out)
	}
	for _, o := range list {
		h := o.Header
		total = addCounts(total, h.Counts)
		_, _ = fmt.Fprintf(s.Out, "%s %s  %s in %s: %s\n", p.bold("Stack "+Clean(h.Stack.Name)), p.dim("("+Clean(h.Stack.Region)+")"),
			resultWord(p, h.Result), Elapsed(Duration(h)), CountsLine(h.Counts))
		if h.Command == runlog.CommandDeploy {
			writeOutputs(s.Out, o.Outputs)
		}
	}
	if len(list) > 1 {
		_, _ = fmt.Fprintf(s.Out, "%s  %s in %s: %s\n", p.bold(plural(len(list), "stack")), resultWord(p, root.Result), Elapsed(Duration(root)), CountsLine(total))
	}
}

func resultWord(p palette, r runlog.Result) string {
	switch r {
	case runlog.ResultSucceeded:
		return p.green(string(r))
	case runlog.ResultPartial:
		return p.yellow(string(r))
	case runlog.ResultFailed:
		return p.red(string(r))
	default:
		return "UNKNOWN"
	}
}

func writeOutputs(w io.Writer, outputs map[string]any) {
	for _, name := range slices.Sorted(maps.Keys(outputs)) {
		text := value(outputs[name], 0)
		if v, ok := outputs[name].(string); ok {
			text = Clean(v)
		}
		_, _ = fmt.Fprintf(w, "  %s = %s\n", Clean(name), text)
	}
}
