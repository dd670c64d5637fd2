package documents

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/isthmus-mesh/isthmus/model"
)

// Set holds the documents of all files, and the file that owns each name. It is a value
// of one goroutine.
type Set struct {
	files       map[string]*Version // by place
	definitions map[model.Ref][]definition
	ignored     map[string]int // over all files, by kind
	unread      int            // files that could not be read
	// missing has the time since when files are missing that may be back in a moment.
	// Their documents stay until then, except for names that another file describes.
	missing map[string]time.Time
	missed  time.Time // time of the last one
	// owners has the file that owns each name: a file keeps a name for as long as it
	// describes the object. At the start the owner is the stored one.
	owners map[model.Ref]string
}

// definition is one document that describes an object. If several do, the document in
// the owner's file wins, so that a new file takes no name from others. Without a stored
// owner, the first file by place wins. Within a file, the first document wins. A
// rejected document counts, too: its last good version stays, so no other document
// may take over.
type definition struct {
	place string
	index int // in docs of the version; past their end for a kept name
}

// NewSet returns a set without files.
func NewSet() *Set {
	return &Set{
		files: map[string]*Version{}, definitions: map[model.Ref][]definition{}, ignored: map[string]int{},
		missing: map[string]time.Time{}, owners: map[model.Ref]string{},
	}
}

// Inherit takes the owners of names from the stored records before files are read.
func (s *Set) Inherit(stored iter.Seq[model.Record]) {
	for rec := range stored {
		if rec.Owner == (model.Ref{}) && !rec.Kind.Reserved() && rec.Place != "" {
			ref := rec.Ref
			ref.Source = ""
			s.owners[ref] = rec.Place
		}
	}
}

// Unread returns the places of stored records without a file read yet.
func (s *Set) Unread() []string {
	places := map[string]bool{}
	for _, place := range s.owners {
		if s.files[place] == nil {
			places[place] = true
		}
	}
	return sorted(places)
}

// Trouble returns why nothing can be read, if there are files and none of them could be
// read: the first file and its reason.
func (s *Set) Trouble() error {
	if s.unread == 0 || s.unread < len(s.files) {
		return nil
	}
	first := slices.Min(slices.Collect(maps.Keys(s.files)))
	return fmt.Errorf("none of its files can be read: %s: %s", first, s.files[first].trouble)
}

// Version returns the newest version of a file; nil if there is none.
func (s *Set) Version(place string) *Version { return s.files[place] }

// Places yields the places of all files.
func (s *Set) Places() iter.Seq[string] { return maps.Keys(s.files) }

// Successor returns a version that was read of a file with the names that the file
// keeps, because a part of the version cannot be understood.
func (s *Set) Successor(place string, v *Version) *Version {
	if prev := s.files[place]; prev != nil {
		return v.after(prev)
	}
	return s.recall(place, v)
}

// recall completes the first version that is read of a file. If a part of it cannot
// be understood, it keeps the names stored for the file.
func (s *Set) recall(place string, v *Version) *Version {
	if !v.vague() {
		return v
	}
	stored := &Version{}
	for ref, owner := range s.owners {
		if owner == place {
			stored.kept = append(stored.kept, ref)
		}
	}
	return v.after(stored)
}

// Moves reports whether a new version of a file lacks an old object, or has a new
// object that another file has. A missing file is waited for in any case.
func (s *Set) Moves(place string, next *Version) bool {
	prev := s.files[place]
	if next == nil || next == prev {
		return false
	}
	had, has := prev.names(), next.after(prev).names()
	for ref := range had {
		if !has[ref] {
			return true
		}
	}
	for ref := range has {
		elsewhere := func(c definition) bool { return c.place != place }
		if !had[ref] && slices.ContainsFunc(s.definitions[ref], elsewhere) {
			return true
		}
	}
	return false
}

// Apply takes new versions of some files, nil for files that are gone. It returns the
// places with a changed listing, in order. These are the files themselves, and files
// that share a name with them: its ownership may have changed.
func (s *Set) Apply(changes map[string]*Version) []string {
	affected, touched := map[string]bool{}, map[model.Ref]bool{}
	for place, next := range changes {
		affected[place] = true
		for _, v := range []*Version{s.files[place], next} {
			for ref := range v.refs() {
				touched[ref] = true
			}
		}
		s.withdraw(place, s.files[place], affected)
		s.count(s.files[place], -1)
		s.count(next, +1)
		delete(s.files, place)
		delete(s.missing, place)
		if next != nil {
			s.files[place] = next
		}
	}
	for place, next := range changes {
		s.submit(place, next, affected)
	}
	for ref := range touched {
		s.settle(ref)
	}
	return sorted(affected)
}

func sorted(set map[string]bool) []string { return slices.Sorted(maps.Keys(set)) }

func (s *Set) count(v *Version, by int) {
	if v == nil {
		return
	}
	if v.trouble != "" {
		s.unread += by
	}
	for kind, n := range v.ignored {
		if s.ignored[kind] += by * n; s.ignored[kind] == 0 {
			delete(s.ignored, kind)
		}
	}
}

func (s *Set) withdraw(place string, v *Version, affected map[string]bool) {
	for ref := range v.refs() {
		left := slices.DeleteFunc(s.definitions[ref], func(c definition) bool { return c.place == place })
		if len(left) == 0 {
			delete(s.definitions, ref)
			continue
		}
		s.definitions[ref] = left
		for _, c := range left {
			affected[c.place] = true
		}
	}
}

func (s *Set) submit(place string, v *Version, affected map[string]bool) {
	for ref, i := range v.refs() {
		for _, c := range s.definitions[ref] {
			affected[c.place] = true
		}
		definitions := slices.Concat(s.present(ref), []definition{{place, i}})
		s.order(ref, definitions)
		s.definitions[ref] = definitions
	}
}

// settle updates the owner of a name. A file that is missing for a moment owns the
// name again when it is back.
func (s *Set) settle(ref model.Ref) {
	definitions := s.definitions[ref]
	switch {
	case len(definitions) == 0:
		delete(s.owners, ref)
	case !s.IsMissing(s.owners[ref]):
		s.owners[ref] = definitions[0].place
	}
}

// order orders the definitions of a name, the winner first.
func (s *Set) order(ref model.Ref, definitions []definition) {
	others := func(c definition) int {
		if c.place == s.owners[ref] {
			return 0
		}
		return 1
	}
	slices.SortFunc(definitions, func(a, b definition) int {
		return cmp.Or(cmp.Compare(others(a), others(b)), cmp.Compare(a.place, b.place), cmp.Compare(a.index, b.index))
	})
}

// IsMissing reports whether a file is missing, but not counted as gone yet.
func (s *Set) IsMissing(place string) bool {
	_, missing := s.missing[place]
	return missing
}

// MissingSince returns since when a file is missing, and whether it is.
func (s *Set) MissingSince(place string) (since time.Time, missing bool) {
	since, missing = s.missing[place]
	return since, missing
}

// Missing yields the missing files, each with the time since when it is.
func (s *Set) Missing() iter.Seq2[string, time.Time] { return maps.All(s.missing) }

// LastMissed returns when a file went missing last.
func (s *Set) LastMissed() time.Time { return s.missed }

// Miss notes missing files, and passes names on to other files that describe them as
// well. It returns the places with a changed listing.
func (s *Set) Miss(places []string, now time.Time) []string {
	var fresh []string
	for _, place := range places {
		if !s.IsMissing(place) {
			s.missing[place], s.missed = now, now
			fresh = append(fresh, place)
		}
	}
	affected := map[string]bool{}
	for _, place := range fresh {
		for ref := range s.files[place].refs() {
			left := s.present(ref)
			if len(left) == 0 {
				continue
			}
			s.definitions[ref] = left
			affected[place] = true
			for _, c := range left {
				affected[c.place] = true
			}
		}
	}
	return sorted(affected)
}

// FindAgain restarts the wait for a missing file that is back, but not ready to be read.
func (s *Set) FindAgain(place string, now time.Time) {
	if s.IsMissing(place) {
		s.missing[place] = now
	}
}

// present returns the definitions of a name by files that are not missing.
func (s *Set) present(ref model.Ref) []definition {
	if len(s.missing) == 0 {
		return s.definitions[ref]
	}
	return slices.DeleteFunc(slices.Clone(s.definitions[ref]), func(c definition) bool { return s.IsMissing(c.place) })
}
