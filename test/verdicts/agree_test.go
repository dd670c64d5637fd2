package verdicts

import (
	"flag"
	"os"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/isthmus-mesh/isthmus/source/file"
)

var kinds = []string{"ServiceEntry", "WorkloadEntry", "WorkloadGroup", "Sidecar"}

var theirs istio

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

// ours returns why source/file refuses a document; empty if it takes it.
func ours(t tester, text []byte) string {
	t.Helper()
	l := file.Parse("x.yaml", text)
	var reasons []string
	for _, r := range l.Refused {
		reasons = append(reasons, r.Where+": "+r.Field+": "+r.Reason)
	}
	if len(l.Objects)+len(l.Refused) != 1 {
		t.Fatalf("%d objects taken, %d refused, ignored %v:\n%s", len(l.Objects), len(l.Refused), l.Ignored, text)
	}
	return strings.Join(reasons, "\n")
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
			admitted, all := 0, 0
			rapid.Check(t, func(r *rapid.T) {
				all++
				if agree(r, render(m.document(r))) {
					admitted++
				}
			})
			t.Logf("%d documents, %d of them admitted", all, admitted)
			if !t.Failed() && (admitted < all/5 || admitted > all*4/5) {
				t.Errorf("%d of %d documents are admitted: neither verdict is tried enough", admitted, all)
			}
		})
	}
}
