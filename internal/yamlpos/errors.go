package yamlpos

import (
	"bytes"
	"regexp"
	"strconv"
	"strings"
)

var parserError = regexp.MustCompile(`^yaml: (?:line (\d+): )?(.*)$`)

// problem converts an error of the YAML parser into a problem with a line of the file. The
// parser counts lines from the document's first line. It is one short when the fault is in
// the sequence of tokens, and gives no line at all for a few.
func (p part) problem(err error) *Problem {
	found := parserError.FindStringSubmatch(strings.SplitN(err.Error(), "\n", 2)[0])
	if found == nil {
		return &Problem{Line: p.line, Reason: "not YAML: " + err.Error()}
	}
	reason := found[2]
	line, convErr := strconv.Atoi(found[1])
	switch {
	case convErr != nil:
		line = p.search(reason)
	case grammatical(reason):
		line++
	case strings.Contains(reason, "tab character"):
		line = p.firstTab(line)
	}
	last := p.line + bytes.Count(bytes.TrimRight(p.text, "\n"), []byte("\n"))
	line = min(p.line+line-1, last)
	return &Problem{Line: line, Reason: "not YAML: " + reason + ": " + remedy(reason)}
}

// grammatical reports whether the fault is in the sequence of tokens, not in a token.
func grammatical(reason string) bool {
	rest, ok := strings.CutPrefix(reason, "did not find expected ")
	if !ok {
		return false
	}
	for _, what := range []string{"key", "node content", "'-' indicator", "',' or", "<"} {
		if strings.HasPrefix(rest, what) {
			return true
		}
	}
	return false
}

// search finds the line of a fault for which the parser gives none; 1 if it is unknown.
func (p part) search(reason string) int {
	at := -1
	if name, ok := strings.CutPrefix(reason, "unknown anchor '"); ok {
		name, _, _ = strings.Cut(name, "'")
		at = bytes.Index(p.text, []byte("*"+name))
	} else if strings.Contains(reason, "control characters") {
		at = bytes.IndexFunc(p.text, func(r rune) bool { return r < ' ' && !strings.ContainsRune("\t\r\n", r) || r == 0x7f })
	}
	return 1 + bytes.Count(p.text[:max(at, 0)], []byte("\n"))
}

// firstTab finds the first line from the given one on that is indented with a tab.
func (p part) firstTab(from int) int {
	for i, line := range bytes.Split(p.text, []byte("\n")) {
		indent := line[:len(line)-len(bytes.TrimLeft(line, " \t"))]
		if i+1 >= from && bytes.IndexByte(indent, '\t') >= 0 {
			return i + 1
		}
	}
	return from
}

// remedies are the fixes for the parser's errors, by the prefix of the error.
var remedies = [...]struct{ prefix, remedy string }{
	{"found a tab character", "indent with spaces"},
	{"found character that cannot start any token", "indent with spaces, or quote the value"},
	{"mapping values are not allowed", "check the indentation here, or quote the value if it contains a colon"},
	{"did not find expected key", "check the indentation from here on"},
	{"did not find expected '-'", "check the indentation from here on"},
	{"did not find expected ','", "add the comma or the closing bracket"},
	{"did not find expected <document start>", "put --- between two documents"},
	{"more text", "put --- between two documents"},
	{"could not find expected ':'", "add the colon after the key"},
	{"found unexpected end of stream", "close what is opened here"},
	{"found unknown escape", "write two backslashes, or use single quotes"},
	{"unknown anchor", "define the anchor earlier in the same document"},
	{"control characters", "remove the character"},
}

func remedy(reason string) string {
	for _, r := range remedies {
		if strings.HasPrefix(reason, r.prefix) {
			return r.remedy
		}
	}
	return "correct the document"
}
