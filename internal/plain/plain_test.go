package plain_test

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/isthmus-mesh/isthmus/internal/plain"
)

func TestText(t *testing.T) {
	for in, want := range map[string]string{
		"outbound|80||a.example":   "outbound|80||a.example",
		"größe \\ \"'":             "größe \\ \"'",
		"\x1b[31mred\x1b[0m":       `\x1b[31mred\x1b[0m`,
		"\u009b31m":                `\u009b31m`,
		"a\nb\tc\rd":               `a\nb\tc\rd`,
		"user\u202etxt.exe":        `user\u202etxt.exe`,
		"zero\u200bwidth\u00a0":    `zero\u200bwidth\u00a0`,
		"\x7f\x00\a":               `\x7f\x00\a`,
		"half \xc3":                `half \xc3`,
		"\xff\xfe whole \ufffd":    `\xff\xfe whole �`,
		"tag \U000e0001":           `tag \U000e0001`,
		"a line\u2028and another.": `a line\u2028and another.`,
	} {
		if got := plain.Text(in); got != want {
			t.Errorf("%q is shown as %q, want %q", in, got, want)
		}
	}
	if got := plain.Lines("a\n\tb\x1b\r"); got != "a\n\tb\\x1b\\r" {
		t.Errorf("lines are shown as %q", got)
	}
}

// Whatever the text is, it is shown in characters that print, and JSON still
// says the same.
func FuzzPlain(f *testing.F) {
	f.Add("\x1b[2J\u009b\u202e\xff\U000e0001")
	f.Fuzz(func(t *testing.T, s string) {
		shown := plain.Text(s)
		if !utf8.ValidString(shown) || strings.ContainsFunc(shown, func(r rune) bool { return !strconv.IsPrint(r) }) {
			t.Errorf("%q is shown as %q", s, shown)
		}
		text, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		safe := plain.JSON(text)
		if strings.ContainsFunc(string(safe), func(r rune) bool { return !strconv.IsPrint(r) }) {
			t.Errorf("%q is written as %q", s, safe)
		}
		var was, is string
		if err := json.Unmarshal(text, &was); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(safe, &is); err != nil || is != was {
			t.Errorf("%q reads as %q, error %v", safe, is, err)
		}
	})
}
