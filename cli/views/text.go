package views

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/charmbracelet/x/ansi"

	"github.com/slipway-cdk/slipway/pkg/runlog"
)

// Clean makes foreign text safe for one line of a terminal: escape sequences and control characters go,
// line ends and tabs become blanks, and the characters that reorder text (Unicode bidirectional controls,
// UAX #9) go too, because they can make a line read as something that it is not.
func Clean(s string) string {
	return strings.ReplaceAll(strings.Trim(CleanLines(s), "\n"), "\n", " ")
}

// CleanLines is Clean for text of several lines: line ends stay, tabs become four blanks.
func CleanLines(s string) string {
	if plainASCII(s) {
		return s
	}
	s = strings.ToValidUTF8(s, "\uFFFD")
	s = strings.ReplaceAll(s, "\r\n", "\n")
	s = ansi.Strip(s)
	var b strings.Builder
	b.Grow(len(s))
	for _, r := range s {
		switch {
		case r == '\n':
			b.WriteRune(r)
		case r == '\t':
			b.WriteString("    ")
		case r == '\u2028' || r == '\u2029' || r == '\r':
			b.WriteRune('\n')
		case unicode.IsControl(r), isBidiControl(r):
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

func plainASCII(s string) bool {
	for i := range len(s) {
		if s[i] < 0x20 || s[i] > 0x7e {
			return false
		}
	}
	return true
}

func isBidiControl(r rune) bool {
	return r >= '\u202a' && r <= '\u202e' || r >= '\u2066' && r <= '\u2069' ||
		r == '\u200e' || r == '\u200f' || r == '\u061c'
}

// fit cuts a line to width columns, counting wide characters as two and escapes as none; the cut is shown
// by "…". Width 0 means no limit.
func fit(s string, width int) string {
	if width <= 0 {
		return s
	}
	return ansi.Truncate(s, width, "…")
}

// pad fills s with blanks up to width columns.
func pad(s string, width int) string {
	if n := width - ansi.StringWidth(s); n > 0 {
		return s + strings.Repeat(" ", n)
	}
	return s
}

// indent puts the prefix before every line of s.
func indent(s, prefix string) string {
	return prefix + strings.ReplaceAll(strings.TrimRight(s, "\n"), "\n", "\n"+prefix)
}

// Elapsed writes a duration for people: "0.4 s", "12 s", "3m 05s", "1h 02m".
func Elapsed(d time.Duration) string {
	switch {
	case d < 0:
		return "0.0 s"
	case d < 10*time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm %02ds", int(d.Minutes()), int(d.Seconds())%60)
	default:
		return fmt.Sprintf("%dh %02dm", int(d.Hours()), int(d.Minutes())%60)
	}
}

// plural counts a noun: "1 stack", "2 stacks".
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// value writes a JSON value on one line, without control characters, cut to limit columns (0: no limit).
func value(v any, limit int) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return "(not a JSON value)"
	}
	return fit(Clean(b.String()), limit)
}

// CountsLine writes counts as words: "3 created, 1 failed". Zeros are left out; with nothing to say it is
// "no changes".
func CountsLine(c runlog.Counts) string {
	var parts []string
	add := func(n int, word string) {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, word))
		}
	}
	add(c.Created, "created")
	add(c.Updated, "updated")
	add(c.Replaced, "replaced")
	add(c.Deleted, "deleted")
	add(c.Failed, "failed")
	add(c.Skipped, "skipped")
	if len(parts) == 0 {
		parts = append(parts, "no changes")
	}
	add(c.Unchanged, "unchanged")
	return strings.Join(parts, ", ")
}

// addCounts sums two counts.
func addCounts(a, b runlog.Counts) runlog.Counts {
	a.Created += b.Created
	a.Updated += b.Updated
	a.Replaced += b.Replaced
	a.Deleted += b.Deleted
	a.Unchanged += b.Unchanged
	a.Failed += b.Failed
	a.Skipped += b.Skipped
	return a
}
