package views

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"unicode"

	"pgregory.net/rapid"

	"github.com/slipway-cdk/slipway/pkg/diag"
)

func TestCleanRemovesWhatATerminalWouldObey(t *testing.T) {
	for in, want := range map[string]string{
		"plain text":                      "plain text",
		"a\x1b[31mred\x1b[0m b":           "ared b",
		"title\x1b]0;owned\x07!":          "title!",
		"two\nlines\r\nand\ttab":          "two lines and    tab",
		"c1 \u009b31m here":               "c1 31m here",
		"bidi \u202eevil\u2066":           "bidi evil",
		"bad \xff utf-8":                  "bad \uFFFD utf-8",
		"日本語 ＋ é":                         "日本語 ＋ é",
		"two  blanks":                     "two  blanks",
		"bell \a null \x00 del \x7f done": "bell  null  del  done",
	} {
		if got := Clean(in); got != want {
			t.Errorf("Clean(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestCleanLeavesNoControlCharacterWhatever(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := rapid.OneOf(rapid.String(), rapid.Map(rapid.SliceOf(rapid.SampledFrom([]string{"\x1b", "[", "31m", "\u009b", "]0;", "\a", "x", "\n", "\x1b\\", "\x1b]"})), func(l []string) string {
			return strings.Join(l, "")
		})).Draw(t, "in")
		for _, r := range Clean(in) {
			if unicode.IsControl(r) || isBidiControl(r) {
				t.Fatalf("Clean(%q) keeps %q", in, r)
			}
		}
	})
}

func TestJSONIsHarmlessOnATerminalAndKeepsItsValue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := map[string]string{"a": rapid.String().Draw(t, "value")}
		var b bytes.Buffer
		if err := WriteJSON(&b, in); err != nil {
			t.Fatal(err)
		}
		var out map[string]string
		if err := json.Unmarshal(b.Bytes(), &out); err != nil {
			t.Fatal(err)
		}
		if want := strings.ToValidUTF8(in["a"], "\uFFFD"); out["a"] != want {
			t.Fatalf("%q came back as %q", want, out["a"])
		}
		for _, r := range b.String() {
			if unicode.IsControl(r) && r != '\n' {
				t.Fatalf("%q is in the document", r)
			}
		}
	})
}

func TestWriteStoredKeepsTheBytesUnlessOnATerminal(t *testing.T) {
	stored := "{\n  \"a\": \"\u009b31m <b>\"\n}"
	var b bytes.Buffer
	if err := WriteStored(Stream{Writer: &b}, []byte(stored)); err != nil || b.String() != stored {
		t.Errorf("stored bytes came out as %q (%v)", b.String(), err)
	}
	b.Reset()
	if err := WriteStored(Stream{Writer: &b, Terminal: true}, []byte(stored)); err != nil || b.String() != "{\n  \"a\": \"\\u009b31m <b>\"\n}\n" {
		t.Errorf("on a terminal they came out as %q (%v)", b.String(), err)
	}
}

func TestDiagnosticsHaveOneShape(t *testing.T) {
	s, out, errs := buffers()
	s.Diagnostics(diag.Diagnostics{
		{Severity: diag.Error, Summary: "the app failed\nwith two lines", Detail: "exit code 3\nand a \x1b[31mtrace", Stack: "web", LogicalID: "Api", Path: "Properties.X", Next: "Correct it."},
		{Severity: diag.Warning, Summary: "only a warning"},
	})
	golden(t, "diagnostics.golden", errs.String())
	if out.Len() > 0 {
		t.Errorf("problems went to standard output: %q", out.String())
	}
}

func TestPassthroughCleansWholeLines(t *testing.T) {
	s, _, errs := buffers()
	w := s.Passthrough()
	for _, chunk := range []string{"one \x1b[3", "1mred\ntwo", "\r\nthree"} {
		if n, err := io.WriteString(w, chunk); err != nil || n != len(chunk) {
			t.Fatalf("wrote %d of %d: %v", n, len(chunk), err)
		}
	}
	if got := errs.String(); got != "one red\ntwo\n" {
		t.Errorf("passed on: %q", got)
	}
}

func TestAsk(t *testing.T) {
	for in, want := range map[string]bool{"y\n": true, "YES\n": true, "n\n": false, "\n": false, "": false, "yep\n": false} {
		s, out, _ := buffers()
		s.In = strings.NewReader(in)
		got, err := s.Ask(t.Context(), "Deploy?")
		if err != nil || got != want {
			t.Errorf("answer %q: %v, %v", in, got, err)
		}
		if out.Len() > 0 {
			t.Error("the question went to standard output")
		}
	}
	s, _, _ := buffers()
	r, w := io.Pipe()
	defer func() { _ = w.Close() }()
	s.In = r
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Ask(ctx, "Deploy?"); !errors.Is(err, context.Canceled) {
		t.Errorf("an interrupted question gives %v", err)
	}
}

func TestStreamsOfFilesAreNoTerminal(t *testing.T) {
	f, err := os.Create(t.TempDir() + "/out")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	s := NewStreams(f, f, f, func(string) string { return "" })
	if s.Out.Terminal || s.Out.Color || s.Live || s.InTerminal || s.Out.Width() != 0 {
		t.Errorf("a file is taken for a terminal: %+v", s)
	}
}
