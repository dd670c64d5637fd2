package isthmus_test

import (
	"go/ast"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
	"unicode"
)

const glossaryPage = "docs/glossary.md"

// glossaryRooms are the packages whose exported types are made of words of the glossary.
var glossaryRooms = []string{"model", "source", "store", "catalog", "push", "controller", "output"}

// plain are words that need no entry: everybody means the same by them.
const plain = `action answer at config count damage decoder delete disk drop end env error event failure filter
	id in info invalid item label list map memory metric mode name of order outcome panic plan port priority reason
	report request response row selective start state status total type update use verb write
	changed decided encoded lost process remover replaced restored retry saving single`

// unexplained are types whose names are neither, with what they are. The list
// may only become shorter: give the type a standard word, and delete it here.
var unexplained = map[string]string{}

// The words that are private, or have another meaning than most would think.
// What each is to be replaced with is said to whoever uses one.
var privateWords = map[string]string{
	"ear": "listener", "hear": "receive", "heard": "received", "deaf": "read timeout", "reign": "term", "ranking": "order",
	"belief": "a pending listing", "trust": "a baseline", "doubt": "suspicion", "pardon": "a release",
	"fate": "decision", "verdict": "decision", "aloft": "in flight", "stranger": "unauthenticated", "farewell": "drain", "goodbye": "drain",
	"heed": "handle", "tend": "keep up", "attend": "keep up", "told": "notified", "news": "pending events",
	"mend": "fix a document, repair an object", "relieve": "release", "thin": "drop", "vanish": "remove", "because": "reason",
	"refuse": "reject, or NACK if a client does", "refused": "rejected, or NACKed if by a client", "refusal": "rejection, or NACK if a client's",
	"accepted": "ACKed", "void": "empty", "apart": "by name", "entrance": "gateway", "rival": "conflicting service", "claimant": "candidate", "standpoint": "location",
}

// standardNames have such a word in a term of others.
var standardNames = []string{"TrustDomain", "TrustDomains"} // SPIFFE's

// misnamed are the exported names that have such a word today. The list may only
// become shorter: rename, and delete the line.
var misnamed []string

func TestExportedTypesAreInTheGlossary(t *testing.T) {
	t.Parallel()
	terms := map[string]bool{}
	for _, row := range tableRows(read(t, glossaryPage)) {
		for term := range strings.SplitSeq(row[0], ",") {
			terms[strings.ToLower(strings.TrimSpace(term))] = true
		}
	}
	if len(terms) < 50 {
		t.Fatalf("found %d terms in %s; fix this test", len(terms), glossaryPage)
	}
	left := maps.Clone(unexplained)
	for _, n := range exportedNames(t) {
		if !n.isType || !slices.Contains(glossaryRooms, n.dir) {
			continue
		}
		unknown := unknownWords(n.name, terms)
		_, excepted := left[n.String()]
		delete(left, n.String())
		switch {
		case len(unknown) > 0 && !excepted:
			t.Errorf("%s: %s has no entry for %q: use a word that is there, or add a line for one that the field uses, too",
				n, glossaryPage, unknown)
		case len(unknown) == 0 && excepted:
			t.Errorf("%s is explained by now: delete it from unexplained in glossary_test.go", n)
		}
	}
	for name := range left {
		t.Errorf("%s is gone: delete it from unexplained in glossary_test.go", name)
	}
}

// unknownWords are the words of a name that the glossary does not explain, unless
// it explains them together.
func unknownWords(name string, terms map[string]bool) (unknown []string) {
	words := wordsOf(name)
	if terms[strings.Join(words, " ")] {
		return nil
	}
	for _, word := range words {
		if one := strings.TrimSuffix(word, "s"); !terms[word] && !terms[one] && !slices.Contains(strings.Fields(plain), word) &&
			!slices.Contains(strings.Fields(plain), one) {
			unknown = append(unknown, word)
		}
	}
	return unknown
}

func TestExportedNamesAreNotPrivateWords(t *testing.T) {
	t.Parallel()
	found := map[string]bool{}
	for _, n := range exportedNames(t) {
		word, use := privateWord(n.name)
		if word == "" || found[n.String()] || slices.Contains(standardNames, n.name) {
			continue
		}
		found[n.String()] = true
		if !slices.Contains(misnamed, n.String()) {
			t.Errorf("%s: %q is not a word of the field; use: %s", n, word, use)
		}
	}
	for _, name := range misnamed {
		if !found[name] {
			t.Errorf("%s is gone: delete it from misnamed in glossary_test.go", name)
		}
	}
}

func privateWord(name string) (word, use string) {
	for _, word := range wordsOf(name) {
		for _, form := range []string{word, strings.TrimSuffix(word, "s"), strings.TrimSuffix(word, "ed")} {
			if use := privateWords[form]; use != "" {
				return word, use
			}
		}
	}
	return "", ""
}

func TestGlossaryIsGuarded(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{"EndOfSnapshot": "end of snapshot", "EndpointID": "endpoint id", "DNSName": "dns name", "InUseError": "in use error", "UID": "uid"} {
		if got := strings.Join(wordsOf(name), " "); got != want {
			t.Errorf("the words of %s are %q, want %q", name, got, want)
		}
	}
	terms := map[string]bool{"hold": true, "end of snapshot": true}
	for name, want := range map[string]string{"Hold": "", "Holds": "", "HoldConfig": "", "EndOfSnapshot": "", "HoldBin": "bin", "SnapshotHold": "snapshot"} {
		if got := strings.Join(unknownWords(name, terms), " "); got != want {
			t.Errorf("unknown words of %s: %q, want %q", name, got, want)
		}
	}
	for name, want := range map[string]string{"Mend": "mend", "MendedObject": "mended", "Strangers": "strangers", "RefusedTotal": "refused", "Recommend": "", "Year": ""} {
		if got, _ := privateWord(name); got != want {
			t.Errorf("the private word of %s is %q, want %q", name, got, want)
		}
	}
}

// wordsOf splits a name at its capitals: EndpointID is "endpoint", "id".
func wordsOf(name string) (words []string) {
	runes := []rune(name)
	start := 0
	for i := 1; i <= len(runes); i++ {
		ends := i == len(runes) || unicode.IsUpper(runes[i]) &&
			(!unicode.IsUpper(runes[i-1]) || i+1 < len(runes) && unicode.IsLower(runes[i+1]))
		if ends {
			words = append(words, strings.ToLower(string(runes[start:i])))
			start = i
		}
	}
	return words
}

// exported is an exported name of a package: a type, function, method, field,
// constant or variable.
type exported struct {
	dir, name string
	isType    bool
}

func (n exported) String() string { return n.dir + "." + n.name }

// exportedNames are those of every package of the module but its tests.
func exportedNames(t *testing.T) (names []exported) {
	t.Helper()
	root := os.DirFS(".")
	err := fs.WalkDir(root, ".", func(file string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && file == "test":
			return fs.SkipDir
		case d.IsDir():
			return skip(root, file)
		case !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go"):
			return nil
		}
		parsed, err := parse(token.NewFileSet(), root, file)
		if err == nil && !ast.IsGenerated(parsed) {
			names = append(names, namesIn(path.Dir(file), parsed)...)
		}
		return err
	})
	if err != nil || len(names) == 0 {
		t.Fatalf("found no names: %v", err)
	}
	return names
}

func namesIn(dir string, file *ast.File) (names []exported) {
	add := func(isType bool, ids ...*ast.Ident) {
		for _, id := range ids {
			if id.IsExported() {
				names = append(names, exported{dir, id.Name, isType})
			}
		}
	}
	for _, decl := range file.Decls {
		if f, ok := decl.(*ast.FuncDecl); ok {
			add(false, f.Name)
			continue
		}
		ast.Inspect(decl, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.TypeSpec:
				add(true, n.Name)
			case *ast.ValueSpec:
				add(false, n.Names...)
			case *ast.Field:
				add(false, n.Names...)
			}
			return true
		})
	}
	return names
}
