package views

import (
	"fmt"
	"io"
	"strings"

	"github.com/slipway-cdk/slipway/pkg/diag"
)

// Diagnostics prints problems on Err in one shape: what happened, why, where, what next.
func (s *Streams) Diagnostics(list diag.Diagnostics) {
	for _, d := range list {
		s.diagnostic(d)
	}
}

func (s *Streams) diagnostic(d diag.Diagnostic) {
	p := s.Err.palette()
	head := p.red("Error: ")
	if d.Severity == diag.Warning {
		head = p.yellow("Warning: ")
	}
	summary := strings.TrimSpace(CleanLines(d.Summary))
	first, rest, _ := strings.Cut(summary, "\n")
	var b strings.Builder
	b.WriteString(head + p.bold(first) + "\n")
	if rest != "" {
		b.WriteString(indent(rest, "  ") + "\n")
	}
	part := func(label, text string) {
		text = strings.TrimSpace(CleanLines(text))
		if text == "" {
			return
		}
		first, rest, _ := strings.Cut(text, "\n")
		b.WriteString("  " + p.dim(pad(label+":", 7)) + first + "\n")
		if rest != "" {
			b.WriteString(indent(rest, "         ") + "\n")
		}
	}
	part("why", d.Detail)
	part("where", d.Where())
	part("next", d.Next)
	_, _ = io.WriteString(s.Err, b.String())
}

// Notice prints one line of information on Err.
func (s *Streams) Notice(format string, args ...any) {
	_, _ = fmt.Fprintln(s.Err, fit(Clean(fmt.Sprintf(format, args...)), s.Err.Width()))
}

// Working tells a person who waits at a terminal what for. A log gets nothing: it is read afterwards.
func (s *Streams) Working(on string) {
	if s.Live {
		s.Notice("%s…", on)
	}
}

// Passthrough returns a writer for the output of a program that slipway runs (a CDK app): lines go to Err as
// they come, without control characters.
func (s *Streams) Passthrough() io.Writer { return &lineCleaner{to: s.Err} }

type lineCleaner struct {
	to   io.Writer
	rest []byte
}

func (c *lineCleaner) Write(p []byte) (int, error) {
	c.rest = append(c.rest, p...)
	for {
		i := strings.IndexByte(string(c.rest), '\n')
		if i < 0 {
			return len(p), nil
		}
		line := CleanLines(strings.TrimRight(string(c.rest[:i]), "\r"))
		c.rest = c.rest[i+1:]
		if _, err := io.WriteString(c.to, line+"\n"); err != nil {
			return len(p), err
		}
	}
}

// Note prints one piece of information in the shape of a diagnostic: what, and where.
func (s *Streams) Note(summary, where string) {
	p := s.Err.palette()
	_, _ = fmt.Fprintln(s.Err, p.cyan("Info: ")+Clean(summary))
	if where = Clean(where); where != "" {
		_, _ = fmt.Fprintln(s.Err, "  "+p.dim(pad("where:", 7))+where)
	}
}
