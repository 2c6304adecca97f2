package views

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/slipway-cdk/slipway/pkg/runlog"
)

// Live draws progress in place on a terminal: finished lines scroll up as ordinary output, and below them
// stands a block of what is in flight, redrawn at every tick.
//
// It is a small renderer of its own and not a Bubble Tea program. A deploy's view takes no input, so raw mode,
// an input reader and an event loop would only stand in the way of Ctrl-C and of a question asked later. It
// draws on the caller's goroutine with the caller's clock, which makes every frame testable, and it leaves no
// mode behind when the process is killed: each frame is one write that restores what it has changed.
//
// A frame switches automatic wrapping off while it writes. So a line is one row even where the terminal and
// we disagree about the width of a character, and moving up by the block's height is exact.
type Live struct {
	to      Stream
	palette palette
	p       *progress
	title   string
	spin    int

	pending []string // finished lines not written yet
	drawn   []int    // widths of the block's lines on the terminal now
	now     time.Time
}

// verbWidth is the width of the longest verb, "publishing".
const verbWidth = 10

// spinner is in ASCII: every terminal font has it and it is one column wide everywhere.
var spinner = [...]string{"|", "/", "-", `\`}

// NewLive draws on to. title says what is going on: "Deploying 2 stacks".
func NewLive(to Stream, title string, expect Expectation) *Live {
	return &Live{to: to, palette: to.palette(), p: newProgress(expect), title: title}
}

// Events implements Renderer.
func (l *Live) Events(list []runlog.Event) {
	for _, e := range list {
		if ln, ok := l.p.apply(e); ok {
			l.pending = append(l.pending, l.finished(ln))
		}
	}
}

// Notice shows a line above the block.
func (l *Live) Notice(text string) { l.pending = append(l.pending, l.palette.bold(Clean(text))) }

// Tick implements Renderer: it draws one frame.
func (l *Live) Tick(now time.Time) {
	l.now = now
	if l.p.started.IsZero() {
		l.p.started = now
	}
	l.spin++
	width, height := l.to.size()
	l.draw(l.block(width, height), width)
}

// Finish implements Renderer: the block goes, the finished lines stay.
func (l *Live) Finish() {
	width, _ := l.to.size()
	l.draw(nil, width)
}

// Failures are the failed operations so far, in the order in which they failed.
func (l *Live) Failures() []runlog.Event { return l.p.failures }

// finished lays out one line that stays. The name and the time come first: a narrow terminal cuts the rest.
func (l *Live) finished(ln line) string {
	mark, paint := l.style(ln.tone)
	parts := []string{paint(mark + " " + pad(ln.verb, verbWidth)), ln.name}
	if ln.took != "" {
		parts = append(parts, l.palette.dim(ln.took))
	}
	if ln.detail != "" {
		parts = append(parts, ln.detail)
	}
	if ln.kind != "" {
		parts = append(parts, l.palette.dim(ln.kind))
	}
	return strings.Join(parts, "  ")
}

func (l *Live) style(t tone) (mark string, paint func(string) string) {
	switch t {
	case toneBad:
		return "✗", l.palette.red
	case toneWarn:
		return "!", l.palette.yellow
	case toneQuiet:
		return "-", l.palette.dim
	default:
		return "✓", l.palette.green
	}
}

// block is what stands at the bottom: one line about the whole and one for each operation in flight, at most
// two thirds of the terminal and always leaving it a row.
func (l *Live) block(width, height int) []string {
	rows := max(1, min(height-1, max(height*2/3, 4)))
	flights := l.p.flights()
	ended, total := l.p.counts()

	head := fmt.Sprintf("%s %d/%d done, %d in flight", spinner[l.spin%len(spinner)], ended, total, len(flights))
	if n := len(l.p.failures); n > 0 {
		head += ", " + l.palette.red(fmt.Sprintf("%d failed", n))
	}
	if l.p.rollingBack() {
		head += ", " + l.palette.yellow("rolling back")
	}
	head += ", " + Elapsed(l.now.Sub(l.p.started)) + "  " + Clean(l.title)
	lines := []string{l.palette.bold(head)}

	room := rows - 1
	shown := flights
	if len(flights) > room {
		shown = flights[:max(0, room-1)]
	}
	name := 0
	for _, f := range shown {
		name = max(name, ansi.StringWidth(f.name))
	}
	name = min(name, max(10, width/2)) // the rest of the line stays legible beside a very long name
	for _, f := range shown {
		text := fmt.Sprintf("  %s  %s  %s", l.palette.dim(pad(Elapsed(l.now.Sub(f.since)), 7)), pad(f.verb, verbWidth), pad(fit(f.name, name), name))
		if f.message != "" {
			text += "  " + f.message
		}
		lines = append(lines, text+"  "+l.palette.dim(f.kind))
	}
	if left := len(flights) - len(shown); left > 0 && room > 0 {
		lines = append(lines, l.palette.dim(fmt.Sprintf("  and %d more", left)))
	}
	return lines
}

// draw replaces the block that is on the terminal with a new one, writing pending finished lines above it.
func (l *Live) draw(block []string, width int) {
	if len(l.pending) == 0 && len(block) == 0 && len(l.drawn) == 0 {
		return
	}
	// One column stays free: a terminal that has written its last column may wrap at the next character.
	limit := max(1, width-1)
	var b strings.Builder
	b.WriteString("\x1b[?2026h\x1b[?7l") // synchronized output where it is known; no automatic wrapping
	if n := l.rows(width); n > 0 {
		b.WriteString("\r")
		if n > 1 {
			b.WriteString(ansi.CursorUp(n - 1))
		}
		b.WriteString("\x1b[J")
	}
	for _, s := range l.pending {
		b.WriteString(fit(s, limit) + "\r\n")
	}
	l.pending, l.drawn = nil, nil
	for i, s := range block {
		if i > 0 {
			b.WriteString("\r\n")
		}
		s = fit(s, limit)
		l.drawn = append(l.drawn, ansi.StringWidth(s))
		b.WriteString(s)
	}
	b.WriteString("\x1b[?7h\x1b[?2026l")
	_, _ = io.WriteString(l.to, b.String())
}

// rows is how many rows the drawn block takes now. A terminal that became narrower has reflowed its lines.
func (l *Live) rows(width int) int {
	n := 0
	for _, w := range l.drawn {
		n += max(1, (w+width-1)/width)
	}
	return n
}
