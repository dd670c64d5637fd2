package isthmus_test

import (
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// privateProse are the forms of private words that mean nothing else in this
// project, so that prose needs none of them: comments, messages and docs. What
// each is to be replaced with is said to whoever uses one.
var privateProse = map[string]string{
	"told": "notified, sent, given, written", "news": "changes, pending events", "heed": "handle", "heeds": "handle",
	"hear": "receive", "hears": "receives", "heard": "received", "deaf": "silent", "aloft": "in flight",
	"reign": "term", "reigns": "terms", "belief": "pending listing", "beliefs": "pending listings",
	"believe": "apply, confirm", "believed": "applied, confirmed", "believes": "applies, confirms",
	"pardon": "release", "pardons": "releases", "doubt": "suspect", "doubts": "suspicions", "doubted": "suspicious",
	"fate": "decision", "verdict": "decision", "verdicts": "decisions", "stranger": "unauthenticated, unknown", "strangers": "unauthenticated, unknown",
	"farewell": "drain, reason", "goodbye": "drain, reason", "tends": "keeps up", "attends": "keeps up",
	"mend": "fix, repair", "mends": "fixes, repairs", "mended": "fixed, repaired", "mending": "fixing, repairing",
	"relieve": "release", "relieved": "released", "thins": "drops", "vanish": "disappear", "vanishes": "disappears", "vanished": "disappeared",
	"refuse": "reject, NACK", "refuses": "rejects, NACKs", "refusing": "rejecting, NACKing", "refusal": "rejection, NACK", "refusals": "rejections, NACKs",
	"refused": "rejected, NACKed", "lest": "so that ... not",
	"entrance": "gateway", "entrances": "gateways", "standpoint": "location", "standpoints": "locations",
}

// publishedWords are uses of such a word that stand for something else: keys and
// states that other programs read, the field's own phrases, and the names of a folder.
var publishedWords = regexp.MustCompile("(?i)connection refused|refused-stream|`(refused|refusals)`|test/verdicts|\"refused\"|refused\\.[a-z]+|TYPE\\.refused|package verdicts")

// withOldProse are the places that are still to be rewritten. The list may only
// become shorter.
var withOldProse = []string{
	"test/verdicts", // is named after what it compares
}

func TestProseHasNoPrivateWords(t *testing.T) {
	t.Parallel()
	root := os.DirFS(".")
	read := 0
	err := fs.WalkDir(root, ".", func(file string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case slices.Contains(withOldProse, file) && d.IsDir():
			return fs.SkipDir
		case d.IsDir():
			return skip(root, file)
		case slices.Contains(withOldProse, file) || strings.HasPrefix(path.Base(file), "glossary"):
			return nil
		}
		for line, text := range proseOf(t, file) {
			read++
			for _, found := range privateIn(text) {
				t.Errorf("%s:%d: %q is not a word of the field; use: %s", file, line, found, privateProse[strings.ToLower(found)])
			}
		}
		return nil
	})
	if err != nil || read < 10_000 {
		t.Fatalf("read %d pieces of prose: %v; fix this test", read, err)
	}
}

var word = regexp.MustCompile(`[\p{L}\p{N}_]+`)

// privateIn returns the private words of a text. A text that is nothing but one
// word is a value, such as a state, and not prose.
func privateIn(text string) (found []string) {
	if len(strings.Fields(text)) == 1 {
		return nil
	}
	for _, w := range word.FindAllString(publishedWords.ReplaceAllString(text, ""), -1) {
		if privateProse[strings.ToLower(w)] != "" {
			found = append(found, w)
		}
	}
	return found
}

// proseOf yields the comments and string literals of a Go file and the lines of a
// page, with their lines.
func proseOf(t *testing.T, file string) func(yield func(int, string) bool) {
	t.Helper()
	return func(yield func(int, string) bool) {
		switch path.Ext(file) {
		case ".md":
			for i, line := range strings.Split(read(t, file), "\n") {
				if !yield(i+1, line) {
					return
				}
			}
		case ".go":
			goProse([]byte(read(t, file)), yield)
		}
	}
}

func goProse(text []byte, yield func(int, string) bool) {
	files := token.NewFileSet()
	file := files.AddFile("", -1, len(text))
	var s scanner.Scanner
	s.Init(file, text, nil, scanner.ScanComments)
	for {
		pos, tok, literal := s.Scan()
		if tok == token.EOF || (tok == token.COMMENT || tok == token.STRING) && !yield(file.Line(pos), literal) {
			return
		}
	}
}

func TestProseIsGuarded(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"// The client is told why.": "told", `"Mend the file"`: "Mend", `"refused"`: "", "dial: connection refused": "",
		"a state is `refused`": "", "it is refused": "refused", "isthmus_refusals_total grows": "", "recommended, retold": "",
	} {
		if got := strings.Join(privateIn(text), " "); got != want {
			t.Errorf("the private words of %q are %q, want %q", text, got, want)
		}
	}
	var seen []string
	goProse([]byte("package p // a\nconst told = `b` + \"c\""), func(_ int, text string) bool { seen = append(seen, text); return true })
	if got := strings.Join(seen, " "); got != "// a `b` \"c\"" {
		t.Errorf("the prose of a file is %q", got)
	}
}
