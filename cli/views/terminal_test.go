package views

import (
	"strconv"
	"strings"
	"testing"

	"github.com/mattn/go-runewidth"
)

// terminal is a small emulator of what a frame uses: printing, CR, LF, cursor up, erase below, SGR and private
// modes. It measures characters with another library than the renderer, wraps as terminals do unless that is
// switched off, and counts rows that a wrap has made.
type terminal struct {
	t             *testing.T
	width, height int
	lines         []string // everything ever on the terminal; the last `height` are on the screen
	row           int
	col           int
	noWrap        bool
	wrapped       int
	escapes       int
}

func newTerminal(t *testing.T, width, height int) *terminal {
	return &terminal{t: t, width: width, height: height, lines: []string{""}}
}

func (v *terminal) stream() Stream {
	return Stream{Writer: v, Terminal: true, Size: func() (int, int) { return v.width, v.height }}
}

func (v *terminal) Write(p []byte) (int, error) {
	s := string(p)
	for s != "" {
		if strings.HasPrefix(s, "\x1b[") {
			end := strings.IndexFunc(s[2:], func(r rune) bool { return r >= '@' && r <= '~' })
			if end < 0 {
				v.t.Fatalf("an escape sequence is split over two writes: %q", s)
			}
			v.escape(s[2:2+end], s[2+end])
			s = s[3+end:]
			continue
		}
		r := []rune(s)[0]
		s = s[len(string(r)):]
		switch r {
		case '\r':
			v.col = 0
		case '\n':
			v.col = 0 // the line discipline turns LF into CR LF
			v.feed()
		default:
			v.put(r)
		}
	}
	return len(p), nil
}

func (v *terminal) escape(param string, final byte) {
	v.escapes++
	switch {
	case final == 'A':
		n := 1
		if param != "" {
			n, _ = strconv.Atoi(param)
		}
		top := max(0, len(v.lines)-v.height)
		v.row = max(top, v.row-n)
	case final == 'J' && (param == "" || param == "0"):
		v.lines = v.lines[:v.row+1]
		v.lines[v.row] = cutColumns(v.lines[v.row], v.col)
	case final == 'm', strings.HasPrefix(param, "?2026"):
	case param == "?7" && final == 'l':
		v.noWrap = true
	case param == "?7" && final == 'h':
		v.noWrap = false
	default:
		v.t.Fatalf("the emulator does not know ESC[%s%c", param, final)
	}
}

func (v *terminal) feed() {
	v.row++
	if v.row == len(v.lines) {
		v.lines = append(v.lines, "")
	}
}

func (v *terminal) put(r rune) {
	w := runewidth.RuneWidth(r)
	if w == 0 {
		v.lines[v.row] += string(r)
		return
	}
	if v.col+w > v.width {
		if v.noWrap {
			v.wrapped++ // text is lost: the renderer should have cut it
			return
		}
		v.wrapped++
		v.col = 0
		v.feed()
	}
	v.lines[v.row] = cutColumns(v.lines[v.row], v.col) + string(r)
	v.col += w
}

// cutColumns is the first n columns of s.
func cutColumns(s string, n int) string {
	col := 0
	for i, r := range s {
		if w := runewidth.RuneWidth(r); col+w > n {
			return s[:i]
		} else {
			col += w
		}
	}
	return s
}

// screen is what is visible, without blank lines at the end.
func (v *terminal) screen() []string {
	return v.lines[max(0, len(v.lines)-v.height):]
}

// text is everything that was ever visible.
func (v *terminal) text() string { return strings.TrimRight(strings.Join(v.lines, "\n"), "\n ") + "\n" }
