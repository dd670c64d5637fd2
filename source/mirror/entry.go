package mirror

import (
	"iter"

	"github.com/isthmus-mesh/isthmus/model"
)

// Entry is the outcome of one key. Without an object and a rejection, the registry has
// nothing to store under the key.
type Entry struct {
	Ref    model.Ref // of the record that the object becomes, without source
	Places []string  // places at which the record may be stored

	Object   *model.Object    // nil unless the object, or a part of it, is valid
	Rejected *model.Rejection // of the object or of a part of it; nil if there is none
	Ignored  string           // the counted kind of an object that is not read
	// PassedOn says that the object is an echo that another Isthmus has passed on. The
	// registry has no object of its own there, so the loss is no drop.
	PassedOn bool
}

// IsEmpty reports whether there is nothing to store.
func (e Entry) IsEmpty() bool { return e.Object == nil && e.Rejected == nil }

// AddTo adds the outcome to a listing that has the places. Ignored objects are counted
// if the listing counts any.
func (e Entry) AddTo(l *model.Listing) {
	if e.Object != nil {
		l.Objects = append(l.Objects, *e.Object)
	}
	if e.Rejected != nil {
		l.Rejected = append(l.Rejected, *e.Rejected)
	}
	if e.Ignored != "" && l.Ignored != nil {
		l.Ignored[e.Ignored]++
	}
	if e.PassedOn {
		l.Removed = append(l.Removed, e.Places...)
	}
}

// ListingOf returns a listing of the entries' places, for a complete answer: the
// supervisor judges the missing records.
func ListingOf(entries iter.Seq[Entry]) (l model.Listing) {
	for e := range entries {
		l.Places = append(l.Places, e.Places...)
		e.AddTo(&l)
	}
	return l
}

// ChangeOf returns the change of the entries, for objects that a registry reports one by
// one: an entry without an outcome is deleted.
func ChangeOf(entries iter.Seq[Entry]) model.Change {
	var l model.Listing
	var deletes []model.Ref
	for e := range entries {
		if e.IsEmpty() {
			deletes = append(deletes, e.Ref)
		} else {
			e.AddTo(&l)
		}
	}
	return model.Change{Upserts: l.Objects, Deletes: deletes, Rejected: l.Rejected}
}

// IsEmpty reports whether a change has no effect.
func IsEmpty(c model.Change) bool {
	return len(c.Upserts)+len(c.Deletes)+len(c.OwnedUpserts)+len(c.OwnedDeletes)+len(c.Rejected) == 0
}

// Keep adds rejections to a listing for stored records of parts that cannot be read, so
// that the records stay. Reject returns the rejection of a record, without its Ref and
// Place, and whether there is one. Owned records stay with their owners.
func Keep(l *model.Listing, stored iter.Seq[model.Record], reject func(model.Record) (model.Rejection, bool)) {
	for rec := range stored {
		if rec.Owner != (model.Ref{}) {
			continue
		}
		if f, is := reject(rec); is {
			f.Ref, f.Place = rec.Ref, rec.Place
			f.Ref.Source = ""
			l.Rejected = append(l.Rejected, f)
		}
	}
}
