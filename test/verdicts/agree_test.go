package verdicts

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/isthmus-mesh/isthmus/convert/istio"
)

// kinds are the kinds of Istio that Isthmus reads.
var kinds = read()

func read() (names []string) {
	for _, of := range istio.Understood() {
		if !of.IsSMI() {
			names = append(names, of.Name)
		}
	}
	return names
}

var theirs judge

func TestMain(m *testing.M) {
	flag.Parse()
	if f := flag.Lookup("rapid.checks"); f.Value.String() == f.DefValue {
		_ = f.Value.Set("2500") // documents of each kind
	}
	var err error
	if theirs, err = definitions(kinds...); err != nil {
		println(err.Error())
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// ours returns why Isthmus rejects a document; empty if it takes it. It comes to
// the same in every form that the document has.
func ours(t tester, text []byte) string {
	t.Helper()
	readings := slices.Collect(istio.Read(text))
	if len(readings) != 1 || readings[0].Ignored {
		t.Fatalf("%d objects, the first ignored: %+v\n%s", len(readings), readings[0], text)
	}
	sameInAllForms(t, text, readings[0])
	return reasons(readings[0])
}

func reasons(r istio.Reading) string {
	var all []string
	for _, p := range r.Problems {
		all = append(all, fmt.Sprintf("x.yaml:%d: %s: %s", p.Line, p.Field, p.Reason))
	}
	return strings.Join(all, "\n")
}

// tester is a test, or one of the documents that rapid tries.
type tester interface {
	Helper()
	Fatalf(format string, args ...any)
}

// agree compares the two verdicts on a document and returns that of both.
func agree(t tester, text []byte) (admitted bool) {
	t.Helper()
	our, their := ours(t, text), theirs.judge(text)
	if (our == "") != (their == nil) {
		t.Fatalf("verdicts differ\nours:  %s\nIstio: %v\n\n%s", or(our, "taken"), orNil(their), short(text))
	}
	return their == nil
}

func or(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

func orNil(err error) string {
	if err == nil {
		return "admitted"
	}
	return err.Error()
}

func short(text []byte) string {
	if len(text) > 4000 {
		return string(text[:4000]) + "…"
	}
	return string(text)
}

// Whatever a document says, both verdicts are the same.
func TestVerdictsAgree(t *testing.T) {
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			m := newMaker(theirs[kind])
			admitted, all, before := 0, 0, forms
			rapid.Check(t, func(r *rapid.T) {
				all++
				if agree(r, render(m.document(r))) {
					admitted++
				}
			})
			json, message, same := forms.json-before.json, forms.message-before.message, forms.same-before.same
			t.Logf("%d documents, %d of them admitted; %d judged as JSON, %d as a message, %d of these say all", all, admitted, json, message, same)
			if !t.Failed() && (admitted < all/5 || admitted > all*4/5) {
				t.Errorf("%d of %d documents are admitted: neither judgement is tried enough", admitted, all)
			}
			if !t.Failed() && (json < all*4/5 || message < all/3 || same < all/10) {
				t.Errorf("of %d documents %d are judged as JSON, %d as a message, %d as one that says all: too few", all, json, message, same)
			}
		})
	}
}
