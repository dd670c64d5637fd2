package model

import (
	"cmp"
	"fmt"
	"iter"
	"strings"
)

// Path lists the Isthmuses that a record came through before this one. The Isthmus that
// read it from its registry is the first. It is empty for records from a registry of this
// Isthmus. The names are separated by commas, which none of them contains.
type Path string

// MostPath bounds the names of a path.
const MostPath = 64

// ParsePath reads a path that another Isthmus sent.
func ParsePath(text string) (Path, error) {
	if text == "" {
		return "", nil
	}
	if n := Path(text).Len(); n > MostPath {
		return "", fmt.Errorf("it has %d names, and at most %d are allowed", n, MostPath)
	}
	for name := range Path(text).Names() {
		if !IsPathName(name) {
			return "", fmt.Errorf("%q is no name of an Isthmus", name)
		}
	}
	return Path(text), nil
}

// IsPathName reports whether a path may have a name: 1 to 63 letters, digits, dashes,
// underscores and dots.
func IsPathName(name string) bool {
	return name != "" && len(name) <= 63 && !strings.ContainsFunc(name, func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '-' && c != '_' && c != '.'
	})
}

// Names yields the names, the first Isthmus first.
func (p Path) Names() iter.Seq[string] {
	return func(yield func(string) bool) {
		if p == "" {
			return
		}
		for name := range strings.SplitSeq(string(p), ",") {
			if !yield(name) {
				return
			}
		}
	}
}

// Len counts the names.
func (p Path) Len() int {
	if p == "" {
		return 0
	}
	return 1 + strings.Count(string(p), ",")
}

// Has reports whether a name is in the path.
func (p Path) Has(name string) bool {
	for n := range p.Names() {
		if n == name {
			return true
		}
	}
	return false
}

// Last returns the name of the Isthmus that passed the record on; empty if none did.
func (p Path) Last() string { return string(p[strings.LastIndexByte(string(p), ',')+1:]) }

// Compare orders paths by their length, then by their names.
func (p Path) Compare(o Path) int { return cmp.Or(cmp.Compare(p.Len(), o.Len()), cmp.Compare(p, o)) }

// Via returns the path of a record that an Isthmus of this name passes on.
func (p Path) Via(name string) Path {
	if p == "" {
		return Path(name)
	}
	return p + "," + Path(name)
}
