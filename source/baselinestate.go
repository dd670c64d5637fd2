package source

import (
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/isthmus-mesh/isthmus/model"
)

// baselineState is the part of one system's baselines that still matters. Objects
// that a listing lacks are judged once, as if the store had contained them. Later
// losses are judged by the store's records. The state belongs to the writer of the
// source's records.
type baselineState struct {
	name, where string
	pending     []Baseline      // not judged yet
	with        map[string]bool // sources
	had         stock           // everything judged, whatever became of it
	marks       numbers         // the endpoints of each judged object
	taken       map[takenObject]bool
	missing     map[model.Ref]baselineRecord
	holds       *holds
	looks       map[holdKey]look
	unread      bool // the last listing had rejections
}

// takenObject is an object that was counted already: handed over once more, it does
// not count twice. A large service is several objects, each with other endpoints, and
// counts as a service once: as the part without any endpoints.
type takenObject struct {
	ref  model.Ref
	part uint64
}

// part returns a hash of the endpoints of an object, in whichever order they are.
func (o BaselineObject) part() (sum uint64) {
	for _, socket := range o.Endpoints {
		sum += socket
	}
	return sum
}

// baselineRecord is a held object or endpoint, in the form of a record.
type baselineRecord struct {
	model.Record
	socket uint64 // of an endpoint
	object string // for people
}

// look counts the listings that lacked the records of a hold, whatever else they left out.
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

// clone returns a copy for judging, which replaces f once its judgements are stored.
func (f *baselineState) clone() *baselineState {
	next := *f
	next.pending, next.with = slices.Clone(f.pending), maps.Clone(f.with)
	if len(f.pending) > 0 { // else these do not change
		next.taken, next.marks = maps.Clone(f.taken), maps.Clone(f.marks)
	}
	next.missing, next.holds, next.looks = maps.Clone(f.missing), f.holds.clone(), maps.Clone(f.looks)
	return &next
}

// released returns a copy of f without holds.
func (f *baselineState) released() *baselineState {
	next := newBaselineState(f.name)
	next.pending, next.with, next.where, next.had, next.taken, next.marks = f.pending, f.with, f.where, f.had, f.taken, f.marks
	return next
}

// subjects adds the objects to look up for a judgement.
func (f *baselineState) subjects(all map[model.Ref]bool) {
	for _, b := range f.pending {
		for _, o := range b.Objects {
			all[o.subject("")] = true
		}
	}
	if len(f.pending) > 0 { // the endpoints of all of them count
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

// facts are the inputs of a judgement beside the listed records.
type facts struct {
	listing bool // there is a new listing
	unread  bool // it has rejections
	edited  bool // people edit the registry
	now     time.Time
}

// judge judges the pending baselines and, at a listing, the holds. Has counts the
// source's records in the store.
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

// compare returns the missing records of pending baselines and, at a listing, of the
// holds. No baseline is pending afterwards.
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

// isPresent reports whether a source lists the record.
func (m baselineRecord) isPresent(s presence) bool {
	if m.Kind == model.KindEndpoint {
		return len(s.by(m.Owner, m.socket)) > 0
	}
	return s.has(m.Ref)
}

// take adds a baseline and returns its missing records. An endpoint that only other
// sources list does not belong to this one.
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

// note marks an object as counted, and reports whether it was before.
func (f *baselineState) note(is takenObject) (again bool) {
	again = f.taken[is]
	f.taken[is] = true
	return again
}

// count adds a record to the source's former records.
func (f *baselineState) count(rec model.Record) {
	f.had.add(rec.Ref, +1)
	f.marks[head(rec)] += endpointsIn(rec.Kind)
}

// fall returns the loss of a source after a listing. Has counts the source's records
// in the store. Released records count as former ones.
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
