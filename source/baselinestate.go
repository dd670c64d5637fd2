package source

import (
	"iter"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/isthmus-mesh/isthmus/model"
)

// baselineState is what one other system has of a source, as far as it matters still.
// What a listing lacks of it is judged as if the store had had it, once: what
// has been listed since is the business of the store. It belongs to whoever
// writes the source's records.
type baselineState struct {
	name, where string
	pending     []Baseline      // not judged yet
	with        map[string]bool // sources
	had         stock           // what was judged, whatever has become of it
	taken       map[takenObject]bool
	serving     map[model.Ref]bool // objects that had an endpoint left
	missing     map[model.Ref]baselineRecord
	holds       *holds
	causes      map[model.Ref]*baselineCause
	unread      bool // the last listing left something out
}

// takenObject is one that counts in what the source had: handed over once more, it
// does not count twice. A large service is several objects, with other endpoints each,
// and counts as a service once: in the part without any endpoints.
type takenObject struct {
	ref  model.Ref
	part uint64
}

// part stands for the endpoints of an object, in whichever order they are.
func (o BaselineObject) part() (sum uint64) {
	for _, socket := range o.Endpoints {
		sum += socket
	}
	return sum
}

// baselineRecord is an object or an endpoint that is held, in the form of a record.
type baselineRecord struct {
	model.Record
	socket uint64 // of an endpoint
	object string // for people
}

// baselineCause is why something is held.
type baselineCause struct {
	reason  string
	since   time.Time
	records int       // when it was looked at last
	equal   int       // listings that lacked just these, whatever they left out
	alike   time.Time // since when
	lasting bool
}

func newBaselineState(name string) *baselineState {
	return &baselineState{
		name: name, with: map[string]bool{}, serving: map[model.Ref]bool{},
		taken: map[takenObject]bool{}, missing: map[model.Ref]baselineRecord{}, holds: newHolds(), causes: map[model.Ref]*baselineCause{},
	}
}

// clone returns a copy to judge by, which takes the place of f once the store has
// what was decided.
func (f *baselineState) clone() *baselineState {
	next := *f
	next.pending, next.with, next.serving = slices.Clone(f.pending), maps.Clone(f.with), maps.Clone(f.serving)
	if len(f.pending) > 0 { // else nothing is taken in
		next.taken = maps.Clone(f.taken)
	}
	next.missing, next.holds, next.causes = maps.Clone(f.missing), f.holds.clone(), maps.Clone(f.causes)
	for cause, c := range next.causes {
		own := *c
		next.causes[cause] = &own
	}
	return &next
}

// released returns f with nothing held any more.
func (f *baselineState) released() *baselineState {
	next := newBaselineState(f.name)
	next.pending, next.with, next.where, next.had, next.taken = f.pending, f.with, f.where, f.had, f.taken
	return next
}

// subjects are the objects of which something has to be known.
func (f *baselineState) subjects(all map[model.Ref]bool) {
	for _, b := range f.pending {
		for _, o := range b.Objects {
			all[o.subject("")] = true
		}
	}
	for _, m := range f.missing {
		ref := head(m.Record)
		ref.Source = ""
		all[ref] = true
	}
}

// facts are what a baseline is judged by, beside what is listed.
type facts struct {
	listing bool // it is a new one
	unread  bool // it left something out
	now     time.Time
}

// judge decides about what is pending, and, at a listing, about what is held. has
// is what the store has of the source.
func (f *baselineState) judge(source string, s presence, has stock, cfg Hold, in facts) {
	f.unread = in.unread
	d := f.compare(source, s, in.listing)
	if len(d.Missing) == 0 && len(d.Returned) == 0 {
		return
	}
	decisions := cfg.judge(f.census(d, has), d.Missing)
	p := f.holds.decide(&reading{whole: !in.unread, source: source}, d, decisions, cfg, in.now)
	f.holds.apply(p, in.now)
	for _, is := range d.Returned {
		f.serving[is.object] = true
	}
	for ref, m := range f.missing {
		if f.holds.of(partOf(m.Record)) == nil {
			delete(f.missing, ref)
		}
	}
	f.explain(source, cfg, in.listing, in.now)
}

// compare returns what is missing of what is pending and, at a listing, of what is
// held. Nothing is pending then.
func (f *baselineState) compare(source string, s presence, listing bool) (d difference) {
	if listing {
		for _, ref := range slices.SortedFunc(maps.Keys(f.missing), model.Ref.Compare) {
			if m := f.missing[ref]; m.isPresent(s) {
				d.Returned = append(d.Returned, partOf(m.Record))
			} else {
				d.Missing = append(d.Missing, m.Record)
			}
		}
	}
	for _, b := range f.pending {
		d.Missing = append(d.Missing, f.take(source, b, s)...)
	}
	f.pending = nil
	return d
}

// isPresent reports whether somebody speaks of it.
func (m baselineRecord) isPresent(s presence) bool {
	if m.Kind == model.KindEndpoint {
		return len(s.by(m.Owner, m.socket)) > 0
	}
	return s.has(m.Ref)
}

// take takes in a baseline and returns what of it is missing. An endpoint that
// others speak of, and the source does not, is none of its own.
func (f *baselineState) take(source string, b Baseline, s presence) (missing []model.Record) {
	f.where, f.with[source] = b.Where, true
	for _, name := range b.With {
		f.with[name] = true
	}
	lack := func(m baselineRecord) {
		if _, known := f.missing[m.Ref]; !known {
			f.missing[m.Ref] = m
			f.had.add(m.Ref, +1)
			missing = append(missing, m.Record)
		}
	}
	seen := map[model.Ref]bool{}
	for _, o := range b.Objects {
		ref := o.subject(source)
		known, again := f.note(takenObject{ref: ref}), f.note(takenObject{ref, o.part()})
		switch there := s.has(ref); {
		case !there:
			lack(baselineRecord{Record: model.Record{Ref: ref}, object: o.Object})
		case !known:
			f.had.add(ref, +1)
		}
		for _, socket := range o.Endpoints {
			endpoint := ref
			endpoint.Kind, endpoint.Name = model.KindEndpoint, ref.Name+"/"+strconv.FormatUint(socket, 16)
			by := s.by(ref, socket)
			switch {
			case len(by) == 0:
				lack(baselineRecord{Record: model.Record{Ref: endpoint, Owner: ref}, socket: socket, object: o.Object})
			case slices.Contains(by, source) && !seen[endpoint] && !again:
				f.had.add(endpoint, +1)
				f.serving[ref] = true
			}
			seen[endpoint] = true
		}
	}
	return missing
}

// note notes that an object counts, and reports whether it does already.
func (f *baselineState) note(is takenObject) (again bool) {
	again = f.taken[is]
	f.taken[is] = true
	return again
}

// census is what must be known to judge, of a source that has so much in the
// store. What was let go counts as having been here.
func (f *baselineState) census(d difference, has stock) census {
	looked := make(map[model.Ref]bool, len(d.Missing)+len(d.Returned))
	for _, is := range d.Returned {
		looked[is.ref] = true
	}
	after := f.had
	for _, rec := range d.Missing {
		looked[rec.Ref] = true
		after.add(rec.Ref, -1)
	}
	c := census{total: f.had.endpoints, before: f.had}
	for ref := range f.missing {
		if f.holds.of(partOf(f.missing[ref].Record)) != nil && !looked[ref] {
			c.silent += endpointsIn(ref.Kind)
			c.before.add(ref, -1)
			after.add(ref, -1)
		}
	}
	after.endpoints, after.services = after.endpoints+has.endpoints, after.services+has.services
	c.after = after
	c.survives = func(yield func(model.Record) bool) {
		for ref := range f.serving {
			if !yield(model.Record{Ref: model.Ref{Kind: model.KindEndpoint}, Owner: ref}) {
				return
			}
		}
	}
	c.stored = none
	c.cause = func(is part) (model.Ref, bool) {
		if one := f.holds.of(is); one != nil {
			return one.cause, true
		}
		return model.Ref{}, false
	}
	return c
}

func none(model.Kind) iter.Seq[model.Record] { return func(func(model.Record) bool) {} }
