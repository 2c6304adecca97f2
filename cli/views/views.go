// Package views owns every byte that the slipway command prints: plans, progress, results, tables, JSON
// documents, diagnostics and questions. It computes nothing that the engine decides and knows no flags; a
// command hands it contract types and says which shape is wanted.
//
// Data goes to Streams.Out, progress and problems to Streams.Err. Colour and cursor moves are used on a
// terminal only, and a status is always also a word. Every text that comes from a template, an app or a lock
// file loses its control characters here (Clean), so no caller has to remember it.
package views

import (
	"io"
	"os"

	"golang.org/x/term"
)

// Default terminal size for a terminal that does not tell its own.
const (
	defaultWidth  = 80
	defaultHeight = 24
)

// Stream is one output and what it can show.
type Stream struct {
	io.Writer
	// Terminal: a person reads it and cursor moves work.
	Terminal bool
	// Color: SGR colours are wanted.
	Color bool
	// Size returns the terminal's columns and rows. It is asked at every frame, so a resize needs no signal.
	Size func() (width, height int)
}

// Width is the number of columns that a line may take: 0 (no limit) when nobody watches a terminal.
func (s Stream) Width() int {
	if !s.Terminal {
		return 0
	}
	w, _ := s.size()
	return w
}

func (s Stream) size() (width, height int) {
	if s.Size != nil {
		width, height = s.Size()
	}
	if width <= 0 {
		width = defaultWidth
	}
	if height <= 0 {
		height = defaultHeight
	}
	return width, height
}

func (s Stream) palette() palette { return palette{on: s.Color} }

// Streams is where a command reads and writes.
type Streams struct {
	Out, Err Stream
	In       io.Reader
	// InTerminal: a person can answer a question.
	InTerminal bool
	// Live: progress may be drawn in place on Err. False without a terminal, in CI and on a dumb terminal.
	Live bool
	// Verbose shows what is normally left out: skipped detail, full values.
	Verbose bool
}

// NewStreams describes the process's own streams. getenv reads the environment: NO_COLOR turns colours off
// (https://no-color.org), CI and TERM=dumb turn drawing in place off.
func NewStreams(in, out, errs *os.File, getenv func(string) string) *Streams {
	dumb := getenv("TERM") == "dumb"
	stream := func(f *os.File) Stream {
		fd := int(f.Fd())
		terminal := term.IsTerminal(fd)
		return Stream{
			Writer:   f,
			Terminal: terminal,
			Color:    terminal && !dumb && getenv("NO_COLOR") == "",
			Size: func() (int, int) {
				w, h, err := term.GetSize(fd)
				if err != nil {
					return 0, 0
				}
				return w, h
			},
		}
	}
	s := &Streams{Out: stream(out), Err: stream(errs), In: in, InTerminal: term.IsTerminal(int(in.Fd()))}
	s.Live = s.Err.Terminal && !dumb && !isSet(getenv("CI"))
	return s
}

// isSet reads a switch from the environment the way CI systems set it: any value but "", "0" and "false".
func isSet(v string) bool { return v != "" && v != "0" && v != "false" }

// palette paints text, or leaves it alone when colours are off.
type palette struct{ on bool }

func (p palette) paint(code, s string) string {
	if !p.on || s == "" {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

func (p palette) bold(s string) string   { return p.paint("1", s) }
func (p palette) dim(s string) string    { return p.paint("2", s) }
func (p palette) red(s string) string    { return p.paint("31", s) }
func (p palette) green(s string) string  { return p.paint("32", s) }
func (p palette) yellow(s string) string { return p.paint("33", s) }
func (p palette) cyan(s string) string   { return p.paint("36", s) }

// Help prints a command's help as data: asked for, it is what the command is for.
func (s *Streams) Help(text string) { _, _ = io.WriteString(s.Out, text) }
