package views

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/slipway-cdk/slipway/pkg/runlog"
)

// The heartbeat of a silent deploy comes after 10 seconds, then after twice the time each, up to 5 minutes:
// enough for a CI system that kills silent jobs (the usual limit is 10 minutes), and no flood in its log.
const (
	firstHeartbeat = 10 * time.Second
	maxHeartbeat   = 5 * time.Minute
)

// heartbeatNames is how many operations a heartbeat names.
const heartbeatNames = 3

// Plain prints one line per change, for logs: no escapes, no redrawing.
type Plain struct {
	to    io.Writer
	title string
	p     *progress

	spoke time.Time     // when the last line was printed
	wait  time.Duration // silence that the next heartbeat breaks
}

// NewPlain prints on to.
func NewPlain(to io.Writer, title string, expect Expectation) *Plain {
	return &Plain{to: to, title: title, p: newProgress(expect), wait: firstHeartbeat}
}

// Events implements Renderer.
func (v *Plain) Events(list []runlog.Event) {
	for _, e := range list {
		ln, ok := v.p.apply(e)
		if !ok {
			continue
		}
		v.print(ln)
		v.spoke, v.wait = time.Time{}, firstHeartbeat
	}
}

// Tick implements Renderer: it breaks a long silence.
func (v *Plain) Tick(now time.Time) {
	if v.spoke.IsZero() {
		v.spoke = now
		return
	}
	if now.Sub(v.spoke) < v.wait {
		return
	}
	v.spoke = now
	v.wait = min(v.wait*2, maxHeartbeat)
	v.heartbeat(now)
}

// Notice prints a line among the others.
func (v *Plain) Notice(text string) { _, _ = fmt.Fprintln(v.to, Clean(text)) }

// Finish implements Renderer.
func (v *Plain) Finish() {}

// Failures are the failed operations so far, in the order in which they failed.
func (v *Plain) Failures() []runlog.Event { return v.p.failures }

func (v *Plain) print(ln line) {
	var b strings.Builder
	fmt.Fprintf(&b, "%s  %s %s", ln.at.UTC().Format(time.TimeOnly), ln.verb, ln.name)
	if ln.kind != "" {
		b.WriteString(" (" + ln.kind + ")")
	}
	if ln.took != "" {
		b.WriteString(" in " + ln.took)
	}
	if ln.detail != "" {
		b.WriteString(": " + ln.detail)
	}
	_, _ = fmt.Fprintln(v.to, b.String())
}

func (v *Plain) heartbeat(now time.Time) {
	ended, total := v.p.counts()
	flights := v.p.flights()
	var names []string
	for i, f := range flights {
		if i == heartbeatNames {
			names = append(names, fmt.Sprintf("and %d more", len(flights)-i))
			break
		}
		names = append(names, fmt.Sprintf("%s %s (%s)", f.verb, f.name, Elapsed(now.Sub(f.since))))
	}
	text := fmt.Sprintf("%s  %s: still working, %d/%d done", now.UTC().Format(time.TimeOnly), v.title, ended, total)
	if len(names) > 0 {
		text += "; " + strings.Join(names, ", ")
	}
	_, _ = fmt.Fprintln(v.to, text)
}
