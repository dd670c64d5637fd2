package file

import (
	"crypto/sha256"

	"github.com/isthmus-mesh/isthmus/convert/istio"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source"
)

// version is the result of one reading of a file. It never changes after it was made,
// so that "the same pointer" means "the same content".
type version struct {
	sum     [sha256.Size]byte
	size    int
	trouble string // why the file could not be read; empty if it could
	docs    []doc
	ignored map[string]int
	// held are names of an earlier version that may be in the part of this one that
	// cannot be understood.
	held []model.Ref
}

// doc is one object of a file, valid or not. Its records are made when it is listed:
// the store has them, and keeping them here, too, would double their memory.
type doc struct {
	object    istio.Reading
	where     string // for people, where it begins: "shop.yaml:12"
	rejection *source.Rejection
}

// ref names the record of the object; zero if the object's name is unknown.
func (d *doc) ref() model.Ref { return d.object.Ref }

// unreadable returns the version of a file that exists but cannot be read. Its
// rejection names no object, so every record stored under the place stays.
func unreadable(place, trouble, remedy string) *version {
	return &version{trouble: trouble, docs: []doc{{rejection: &source.Rejection{
		Place: place, Where: place, Reason: trouble + ": " + remedy,
	}}}}
}

// vague reports whether some object of the file is not known by name.
func (v *version) vague() bool {
	for i := range v.docs {
		if !known(v.docs[i].ref()) {
			return true
		}
	}
	return false
}

// blank reports whether a version lists nothing, like a missing file. A nil version
// is a missing file.
func (v *version) blank() bool {
	return v == nil || len(v.docs) == 0 && len(v.ignored) == 0
}

// same reports whether v and o are readings of the same content.
func (v *version) same(o *version) bool {
	return v != nil && o != nil && v.trouble == o.trouble && v.size == o.size && v.sum == o.sum
}

// names returns the set of names that a version describes.
func (v *version) names() map[model.Ref]bool {
	names := map[model.Ref]bool{}
	for ref := range v.refs() {
		names[ref] = true
	}
	return names
}

// after returns v as the successor of prev. While a part of a file cannot be
// understood, the file keeps its earlier names. So a slip in one file does not pass
// its names to another file.
func (v *version) after(prev *version) *version {
	if prev == nil || !v.vague() {
		return v
	}
	has := v.names()
	next := *v
	for ref := range prev.refs() {
		if !has[ref] {
			has[ref] = true
			next.held = append(next.held, ref)
		}
	}
	return &next
}
