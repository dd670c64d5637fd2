package documents

import (
	"crypto/sha256"
	"iter"
	"strconv"

	"github.com/isthmus-mesh/isthmus/convert/istio"
	"github.com/isthmus-mesh/isthmus/model"
)

// Version is one reading of a file. It never changes after it was made, so that "the
// same pointer" means "the same content". A nil version is a missing file.
type Version struct {
	sum     [sha256.Size]byte
	size    int
	trouble string // why the file could not be read; empty if it could
	docs    []doc
	ignored map[string]int
	// kept are names of an earlier version that may be in the part of this one that
	// cannot be understood.
	kept []model.Ref
}

// doc is one object of a file, valid or not, or valid without effect. Its records are made when it is listed:
// the store has them, and keeping them here, too, would double their memory.
type doc struct {
	object    istio.Reading
	where     string // for people, where it begins: "shop.yaml:12"
	rejection *model.Rejection
}

// ref names the record of the object; zero if the object's name is unknown.
func (d *doc) ref() model.Ref { return d.object.Ref }

func known(ref model.Ref) bool { return ref != (model.Ref{}) }

// Parse reads the text of the file at place. Memory bounds the bytes for each of its documents.
func Parse(place string, text []byte, o istio.Options, memory int64) *Version {
	v := &Version{sum: sha256.Sum256(text), size: len(text), ignored: map[string]int{}}
	for object := range istio.ReadWithin(text, o, memory) {
		if object.Ignored {
			v.ignored[object.Kind]++
			continue
		}
		d := doc{where: where(place, object.Line)}
		if faults := object.Faults(); len(faults) > 0 {
			rejection := object.Rejection(place, where(place, faults[0].Line))
			d.rejection = &rejection
			object.Problems, object.Rejected = nil, nil // the rejection contains them
		}
		d.object = object
		v.docs = append(v.docs, d)
	}
	return v
}

// where returns a line of a file, for people.
func where(place string, line int) string { return place + ":" + strconv.Itoa(line) }

// Unreadable returns the version of a file that exists but cannot be read. Its
// rejection names no object, so every record stored under the place stays.
func Unreadable(place, reason, remedy string) *Version {
	v := Rejected(place, reason+": "+remedy)
	v.trouble = reason
	return v
}

// Rejected returns the version of a place that is not read, with the reason.
func Rejected(place, reason string) *Version {
	return &Version{trouble: reason, docs: []doc{{rejection: &model.Rejection{Place: place, Where: place, Reason: reason}}}}
}

// Trouble returns why the file could not be read; empty if it could.
func (v *Version) Trouble() string { return v.trouble }

// Blank reports whether a version lists nothing, like a missing file.
func (v *Version) Blank() bool {
	return v == nil || len(v.docs) == 0 && len(v.ignored) == 0
}

// Empty reports whether the file was read and has no text.
func (v *Version) Empty() bool { return v != nil && v.trouble == "" && v.size == 0 }

// Reads reports whether v is a reading of a text.
func (v *Version) Reads(text []byte) bool {
	return v != nil && v.trouble == "" && v.size == len(text) && v.sum == sha256.Sum256(text)
}

// Same reports whether v and o are readings of the same content.
func (v *Version) Same(o *Version) bool {
	return v != nil && o != nil && v.trouble == o.trouble && v.size == o.size && v.sum == o.sum
}

// refs yields the names that a version describes.
func (v *Version) refs() iter.Seq2[model.Ref, int] {
	return func(yield func(model.Ref, int) bool) {
		if v == nil {
			return
		}
		for i := range v.docs {
			if ref := v.docs[i].ref(); known(ref) && !yield(ref, i) {
				return
			}
		}
		for i, ref := range v.kept {
			if !yield(ref, len(v.docs)+i) {
				return
			}
		}
	}
}

// names returns the set of names that a version describes.
func (v *Version) names() map[model.Ref]bool {
	names := map[model.Ref]bool{}
	for ref := range v.refs() {
		names[ref] = true
	}
	return names
}

// vague reports whether some object of the file is not known by name.
func (v *Version) vague() bool {
	for i := range v.docs {
		if !known(v.docs[i].ref()) {
			return true
		}
	}
	return false
}

// after returns v as the successor of prev. While a part of a file cannot be
// understood, the file keeps its earlier names. So a slip in one file does not pass
// its names to another file.
func (v *Version) after(prev *Version) *Version {
	if prev == nil || !v.vague() {
		return v
	}
	has := v.names()
	next := *v
	for ref := range prev.refs() {
		if !has[ref] {
			has[ref] = true
			next.kept = append(next.kept, ref)
		}
	}
	return &next
}
