package source

import (
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
	marks       numbers         // the endpoints of each object that was judged
	taken       map[takenObject]bool
	missing     map[model.Ref]baselineRecord
	holds       *holds
	looks       map[holdKey]look
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

// look counts the listings that lacked what is held, whatever else they left out.
type look struct {
	clock
	lasting bool
}

func newBaselineState(name string) *baselineState {
	return &baselineState{
		name: name, with: map[string]bool{}, marks: numbers{}, taken: map[takenObject]bool{},
		missing: map[model.Ref]baselineRecord{}, holds: newHolds(), looks: map[holdKey]look{},
	}
}

// clone returns a copy to judge by, which takes the place of f once the store has
// what was decided.
func (f *baselineState) clone() *baselineState {
	next := *f
	next.pending, next.with = slices.Clone(f.pending), maps.Clone(f.with)
	if len(f.pending) > 0 { // else nothing is taken in
		next.taken, next.marks = maps.Clone(f.taken), maps.Clone(f.marks)
	}
	next.missing, next.holds, next.looks = maps.Clone(f.missing), f.holds.clone(), maps.Clone(f.looks)
	return &next
}

// released returns f with nothing held any more.
func (f *baselineState) released() *baselineState {
	next := newBaselineState(f.name)
	next.pending, next.with, next.where, next.had, next.taken, next.marks = f.pending, f.with, f.where, f.had, f.taken, f.marks
	return next
}

// subjects are the objects of which something has to be known.
func (f *baselineState) subjects(all map[model.Ref]bool) {
	for _, b := range f.pending {
		for _, o := range b.Objects {
			all[o.subject("")] = true
		}
	}
	if len(f.pending) > 0 { // it is judged by what all of them have
		for ref := range f.marks {
			ref.Source = ""
			all[ref] = true
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
	edited  bool // people edit the registry
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
	cause := nobody
	suspicion := cfg.suspects(f.fall(d, s, has, in.edited))
	if suspicion.is() {
		cause = func(rec model.Record) (model.Ref, bool) { return suspicion.cause(rec, []model.Ref{head(rec)}) }
	}
	p := f.holds.decide(&reading{whole: !in.unread, source: source}, d, cause, cfg, in.now)
	f.explain(source, cfg, &p)
	f.holds.apply(p, in.now)
	f.holds.tick(p.lacked, in.now)
	for ref, m := range f.missing {
		if !f.holds.has(partOf(m.Record)) {
			delete(f.missing, ref)
		}
	}
	f.look(cfg, in)
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
			f.count(m.Record)
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
			f.count(model.Record{Ref: ref})
		}
		for _, socket := range o.Endpoints {
			endpoint := ref
			endpoint.Kind, endpoint.Name = model.KindEndpoint, ref.Name+"/"+strconv.FormatUint(socket, 16)
			by := s.by(ref, socket)
			switch {
			case len(by) == 0:
				lack(baselineRecord{Record: model.Record{Ref: endpoint, Owner: ref}, socket: socket, object: o.Object})
			case slices.Contains(by, source) && !seen[endpoint] && !again:
				f.count(model.Record{Ref: endpoint, Owner: ref})
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

// count takes a record for one that the source had.
func (f *baselineState) count(rec model.Record) {
	f.had.add(rec.Ref, +1)
	f.marks[head(rec)] += endpointsIn(rec.Kind)
}

// fall says what a listing leaves of a source that has so much in the store. What was
// let go counts as having been here.
func (f *baselineState) fall(d difference, s presence, has stock, edited bool) fall {
	left := f.had
	for ref := range f.missing {
		left.add(ref, -1)
	}
	for _, is := range d.Returned {
		left.add(is.ref, +1)
	}
	next := fall{services: map[model.Ref]number{}, total: f.had.endpoints}
	if left.endpoints == 0 && !edited {
		next.replaced = f.had.endpoints
	}
	lacks := map[model.Ref]bool{}
	for _, rec := range d.Missing {
		if !f.holds.has(partOf(rec)) {
			lacks[head(rec)] = true
		}
	}
	for object, had := range f.marks {
		next.services[object] = number{had, s.endpoints(object), lacks[object]}
	}
	none := left.endpoints+has.endpoints == 0
	if f.had.endpoints > 0 {
		next.nothing = left.stored == 0 || none
	} else {
		next.nothing = left.stored == 0 || f.had.services > 0 && left.services+has.services == 0 && none
	}
	return next
}
