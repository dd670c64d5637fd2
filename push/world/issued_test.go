package world

import (
	"strconv"
	"testing"
)

// The versions that were issued last are remembered, and no more than the bound. No version
// at all is none of them.
func TestIssuedVersionsAreBounded(t *testing.T) {
	t.Parallel()
	var m Issued
	at := func(n int) Version { return VersionOf([]byte(strconv.Itoa(n))) }
	const more = 100
	for n := range mostIssued + more {
		m.Add(at(n))
		m.Add(at(n)) // as it is for every client that is sent it
	}
	if len(m.has) != mostIssued || len(m.order) != mostIssued {
		t.Errorf("%d versions are remembered, in a ring of %d; want %d", len(m.has), len(m.order), mostIssued)
	}
	for n, want := range map[int]bool{0: false, more - 1: false, more: true, mostIssued + more - 1: true} {
		if v := at(n); m.Knows(&v) != want {
			t.Errorf("version %d of %d is known: %t", n, mostIssued+more, !want)
		}
	}
	if m.Knows(nil) || m.Knows(&Version{}) {
		t.Error("no version is known")
	}
}
