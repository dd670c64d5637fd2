package world

import (
	"hash/maphash"
	"log/slog"
	"slices"
)

// Reader asks worlds and encodes what they contain, for all streams of an engine. It
// survives panics of the producers' code. Each resource is encoded once per revision. The
// methods may be called from any goroutine.
type Reader struct {
	*Panics
	Issued Issued // versions
	Names  Issued // names, of types that are sent name by name

	cache *cache
}

// NewReader returns a reader. Frame returns the bytes that the protocol writes before the
// body of a resource, see [Resource].Heads.
func NewReader(frame func(Encoded) [Modes][]byte, log *slog.Logger) *Reader {
	panics := NewPanics(log)
	return &Reader{Panics: panics, cache: newCache(frame, panics)}
}

// Find asks a world for a name. bad reports that the look-up panicked.
func (r *Reader) Find(w World, v View, row Row, name string) (subject Subject, found, bad bool) {
	ok := r.Attempt(PanicResource, name, func() { subject, found = w.Find(v, row, name) })
	return subject, found && ok, !ok
}

// Encoded returns a subject's encoded form, or the last good one. It returns nil if
// encoding panicked and there is none.
func (r *Reader) Encoded(subject Subject, name string) (res *Resource) {
	r.Attempt(PanicResource, name, func() { res = r.cache.get(subject, name) })
	return res
}

// EncodedSince returns the encoded form of a subject for a subscriber that holds some
// version; nil after a panic. The last good form of a subject will not do for an increment,
// which continues another version.
func (r *Reader) EncodedSince(subject Subject, name string, from Version) *Resource {
	inc, ok := subject.(Incremental)
	if !ok {
		return r.Encoded(subject, name)
	}
	var sent Subject
	if !r.Attempt(PanicResource, name, func() { sent = inc.Since(from) }) {
		return nil
	}
	if res := r.Encoded(sent, name); res != nil && res.Version == inc.Revision() {
		return res
	}
	return nil
}

// Once returns a resource as encoded for one message. Subscribers keep it under the label
// that they all share.
func (r *Reader) Once(subject Subject, res *Resource) *Resource {
	u, ok := subject.(Unrepeatable)
	if !ok {
		return res
	}
	own := *res
	if !r.Attempt(PanicResource, res.Name, func() { own.Encoded = u.EncodeOnce() }) {
		return res
	}
	own.Heads = r.cache.frame(own.Encoded)
	return &own
}

// Resource returns the encoded resource of a name in a view; nil if there is none.
func (r *Reader) Resource(w World, v View, row Row, name string) *Resource {
	subject, ok, _ := r.Find(w, v, row, name)
	if !ok {
		return nil
	}
	return r.Encoded(subject, name)
}

// Empty returns the empty resource of a name; nil if there is none.
func (r *Reader) Empty(spec *TypeSpec, name string) (res *Resource) {
	if spec.Empty != nil {
		r.Attempt(PanicResource, name, func() {
			if empty := spec.Empty(name); empty.Body != nil {
				res = r.cache.resource(empty)
			}
		})
	}
	return res
}

// RefersTo lists the names that a subject refers to; none if that panicked.
func (r *Reader) RefersTo(subject Subject, to string) (names []string) {
	if referrer, refers := subject.(Referrer); refers {
		r.Attempt(PanicResource, to, func() { names = slices.Collect(referrer.Refers(to)) })
	}
	return names
}

// Seed returns the seed of the hashes in labels: see [Label].Hash.
func (r *Reader) Seed() maphash.Seed { return r.cache.seed }

// SlotsOf returns the slots of a subject and of the forms in which it is sent; none if that
// panicked.
func (r *Reader) SlotsOf(subject Subject, name string) (slots []any) {
	r.Attempt(PanicResource, name, func() {
		if inc, ok := subject.(Incremental); ok {
			slots = []any{inc.Slot(), inc.Since(Version{}).Slot()}
		} else {
			slots = []any{subject.Slot()}
		}
	})
	return slots
}

// Forget drops the encodings of removed subjects.
func (r *Reader) Forget(slots []any) { r.cache.forget(slots) }

// Sweep drops the encodings that were not used since the last sweep. A subject that is
// asked for again is encoded again, to the same bytes.
func (r *Reader) Sweep() { r.cache.sweep() }

// Kept returns the number of encodings in memory.
func (r *Reader) Kept() int { return r.cache.len() }

// NoteName remembers that a resource was sent name by name.
func (r *Reader) NoteName(spec *TypeSpec, res *Resource) {
	if !res.noted.Load() {
		r.Names.Add(nameKey(spec, res.Name))
		res.noted.Store(true)
	}
}

// HasSent reports whether a resource of a name was ever sent name by name.
func (r *Reader) HasSent(spec *TypeSpec, name string) bool {
	key := nameKey(spec, name)
	return r.Names.Knows(&key)
}

// nameKey is a name of a type in [Issued].
func nameKey(spec *TypeSpec, name string) Version { return VersionOf([]byte(spec.Name), []byte(name)) }
