// Package plain makes foreign text safe to display. The text of a client or a registry must
// not move an operator's cursor, hide a word, or forge a line. Unprintable characters are
// shown by their number, as in Go's strings. These are control characters, also beyond
// ASCII, marks that change the direction of writing, spaces that look like others, and
// bytes that are no text.
package plain

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Text returns s as one line.
func Text(s string) string { return escape(s, "") }

// Lines returns s with its lines and tabs unchanged.
func Lines(s string) string { return escape(s, "\n\t") }

func escape(s, keep string) string {
	if !strings.ContainsFunc(s, func(r rune) bool { return unfit(r, keep) }) {
		return s
	}
	var b strings.Builder
	for i, r := range s {
		switch {
		case !unfit(r, keep):
			b.WriteRune(r)
		case r == utf8.RuneError && !strings.HasPrefix(s[i:], string(utf8.RuneError)):
			fmt.Fprintf(&b, `\x%02x`, s[i])
		default:
			quoted := strconv.QuoteRune(r)
			b.WriteString(quoted[1 : len(quoted)-1])
		}
	}
	return b.String()
}

// unfit reports whether a character is shown by its number. The replacement character is
// checked by the caller.
func unfit(r rune, keep string) bool {
	return r == utf8.RuneError || !strconv.IsPrint(r) && !strings.ContainsRune(keep, r)
}

// JSON returns equal JSON text, in which unprintable characters of strings are escaped.
func JSON(text []byte) []byte { return escapeJSON(text, utf8.MaxRune) }

// JSONForYAML is [JSON] for a reader of YAML, which does not support surrogate pairs:
// characters beyond 16 bits stay unescaped.
func JSONForYAML(text []byte) []byte { return escapeJSON(text, 0xffff) }

func escapeJSON(text []byte, upTo rune) []byte {
	var out []byte
	done := 0
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRune(text[i:])
		if r >= 0x7f && r <= upTo && r != utf8.RuneError && !strconv.IsPrint(r) {
			out = appendEscaped(append(out, text[done:i]...), r)
			done = i + size
		}
		i += size
	}
	if done == 0 {
		return text
	}
	return append(out, text[done:]...)
}

func appendEscaped(b []byte, r rune) []byte {
	if r < 0x10000 {
		return fmt.Appendf(b, `\u%04x`, r)
	}
	high, low := utf16.EncodeRune(r)
	return fmt.Appendf(b, `\u%04x\u%04x`, high, low)
}

// JSONWriter returns a writer that applies [JSON] to each write. A write has to end where a
// value does.
func JSONWriter(w io.Writer) io.Writer { return jsonWriter{w} }

type jsonWriter struct{ io.Writer }

// Write implements [io.Writer].
func (w jsonWriter) Write(p []byte) (int, error) {
	if _, err := w.Writer.Write(JSON(p)); err != nil {
		return 0, err
	}
	return len(p), nil
}
