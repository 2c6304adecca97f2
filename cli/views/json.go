package views

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"unicode/utf8"
)

// WriteJSON writes v as one indented JSON document. Control characters that JSON itself allows in a string
// (DEL and C1) are written as escapes: the value is the same and a terminal stays unharmed.
func WriteJSON(w io.Writer, v any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("encoding the JSON document: %w", err)
	}
	_, err := w.Write(escapeControls(b.Bytes()))
	return err
}

// writeJSONLine writes v as one line of newline-delimited JSON.
func writeJSONLine(w io.Writer, v any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("encoding a JSON line: %w", err)
	}
	_, err := w.Write(escapeControls(b.Bytes()))
	return err
}

// WriteStored writes a stored JSON document byte for byte. Only on a terminal are its control characters
// written as escapes.
func WriteStored(s Stream, body []byte) error {
	if s.Terminal {
		body = escapeControls(body)
	}
	if _, err := s.Write(body); err != nil {
		return err
	}
	if len(body) > 0 && body[len(body)-1] != '\n' && s.Terminal {
		_, err := io.WriteString(s, "\n")
		return err
	}
	return nil
}

// escapeControls replaces DEL, C1 and the C0 characters that are not white space, which stand inside strings
// only if they stand in a JSON document at all.
func escapeControls(doc []byte) []byte {
	var out []byte
	kept := 0
	for i := 0; i < len(doc); {
		r, n := utf8.DecodeRune(doc[i:])
		if r == 0x7f || r >= 0x80 && r <= 0x9f || r < 0x20 && r != '\n' && r != '\t' && r != '\r' {
			out = append(out, doc[kept:i]...)
			out = fmt.Appendf(out, `\u%04x`, r)
			kept = i + n
		}
		i += n
	}
	if out == nil {
		return doc
	}
	return append(out, doc[kept:]...)
}
