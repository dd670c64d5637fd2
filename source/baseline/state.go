package baseline

import (
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source"
	"github.com/isthmus-mesh/isthmus/source/hold"
	"github.com/isthmus-mesh/isthmus/source/index"
	"github.com/isthmus-mesh/isthmus/source/reading"
)

// state is the part of one system's baselines that still matters. Objects
// that a listing lacks are judged once, as if the store had contained them. Later
// losses are judged by the store's records. The state belongs to the writer of the
// source's records.
type state struct {
	name, where string
	pending     []source.Baseline // not judged yet
	with        map[string]bool   // sources
	had         index.Stock       // everything judged, whatever became of it
	marks       map[model.Ref]int // the endpoints of each judged object
	taken       map[takenObject]bool
	missing     map[model.Ref]record
	holds       *hold.Holds
	looks       map[hold.Key]look
	unread      bool // the last listing had rejections
}

// takenObject is an object that was counted already: handed over once more, it does
// not count twice. A large service is several objects, each with other endpoints, and
// counts as a service once: as the part without any endpoints.
type takenObject struct {
	ref  model.Ref
	part uint64
}

// partOf returns a hash of the endpoints of an object, in whichever order they are.
func partOf(o source.BaselineObject) (sum uint64) {
	for _, socket := range o.Endpoints {
		sum += socket
	}
	return sum
}

// record is a held object or endpoint, in the form of a record.
type record struct {
	model.Record
	socket uint64 // of an endpoint
	object string // for people
}

// look counts the listings that lacked the records of a hold, whatever else they left out.
type look struct {
	hold.Clock
	lasting bool
}

func newState(name string) *state {
	return &state{
		name: name, with: map[string]bool{}, marks: map[model.Ref]int{}, taken: map[takenObject]bool{},
		missing: map[model.Ref]record{}, holds: hold.NewHolds(), looks: map[hold.Key]look{},
	}
}

// clone returns a copy for judging, which replaces f once its judgements are stored.
func (f *state) clone() *state {
	next := *f
	next.pending, next.with = slices.Clone(f.pending), maps.Clone(f.with)
	if len(f.pending) > 0 { // else these do not change
		next.taken, next.marks = maps.Clone(f.taken), maps.Clone(f.marks)
	}
	next.missing, next.holds, next.looks = maps.Clone(f.missing), f.holds.Clone(), maps.Clone(f.looks)
	return &next
}

// released returns a copy of f without holds.
func (f *state) released() *state {
	next := newState(f.name)
	next.pending, next.with, next.where, next.had, next.taken, next.marks = f.pending, f.with, f.where, f.had, f.taken, f.marks
	return next
}

// subjects adds the objects to look up for a judgement.
func (f *state) subjects(all map[model.Ref]bool) {
	for _, b := range f.pending {
		for _, o := range b.Objects {
			all[o.Ref("")] = true
		}
	}
	if len(f.pending) > 0 { // the endpoints of all of them count
		for ref := range f.marks {
			ref.Source = ""
			all[ref] = true
		}
	}
	for _, m := range f.missing {
		ref := index.Head(m.Record)
		ref.Source = ""
		all[ref] = true
	}
}

// Facts are the inputs of a judgement beside the listed records.
type Facts struct {
	Listing bool // there is a new listing
	Unread  bool // it has rejections
	Edited  bool // people edit the registry
	Now     time.Time
}

// judge judges the pending baselines and, at a listing, the holds. Has counts the
// source's records in the store.
func (f *state) judge(name string, s presence, has index.Stock, cfg hold.Config, in Facts) {
	f.unread = in.Unread
	d := f.compare(name, s, in.Listing)
	if len(d.Missing) == 0 && len(d.Returned) == 0 {
		return
	}
	cause := hold.Nothing
	suspicion := cfg.Suspects(f.fall(d, s, has, in.Edited))
	if suspicion.Is() {
		cause = func(rec model.Record) (model.Ref, bool) { return suspicion.Cause(rec, []model.Ref{index.Head(rec)}) }
	}
	p := f.holds.Decide(nil, d, cause, cfg, !in.Unread, in.Now)
	f.explain(name, cfg, &p)
	f.holds.Apply(p, in.Now)
	f.holds.Tick(p.Lacked, in.Now)
	for ref, m := range f.missing {
		if !f.holds.Has(index.PartOf(m.Record)) {
			delete(f.missing, ref)
		}
	}
	f.look(cfg, in)
}

// compare returns the missing records of pending baselines and, at a listing, of the
// holds. No baseline is pending afterwards.
func (f *state) compare(name string, s presence, listing bool) (d reading.Difference) {
	if listing {
		for _, ref := range slices.SortedFunc(maps.Keys(f.missing), model.Ref.Compare) {
			if m := f.missing[ref]; m.isPresent(s) {
				d.Returned = append(d.Returned, index.PartOf(m.Record))
			} else {
				d.Missing = append(d.Missing, m.Record)
			}
		}
	}
	for _, b := range f.pending {
		d.Missing = append(d.Missing, f.take(name, b, s)...)
	}
	f.pending = nil
	return d
}

// isPresent reports whether a source lists the record.
func (m record) isPresent(s presence) bool {
	if m.Kind == model.KindEndpoint {
		return len(s.by(m.Owner, m.socket)) > 0
	}
	return s.has(m.Ref)
}

// take adds a baseline and returns its missing records. An endpoint that only other
// sources list does not belong to this one.
func (f *state) take(name string, b source.Baseline, s presence) (missing []model.Record) {
	f.where, f.with[name] = b.Where, true
	for _, name := range b.With {
		f.with[name] = true
	}
	lack := func(m record) {
		if _, known := f.missing[m.Ref]; !known {
			f.missing[m.Ref] = m
			f.count(m.Record)
			missing = append(missing, m.Record)
		}
	}
	seen := map[model.Ref]bool{}
	for _, o := range b.Objects {
		ref := o.Ref(name)
		known, again := f.note(takenObject{ref: ref}), f.note(takenObject{ref, partOf(o)})
		switch there := s.has(ref); {
		case !there:
			lack(record{Record: model.Record{Ref: ref}, object: o.Object})
		case !known:
			f.count(model.Record{Ref: ref})
		}
		for _, socket := range o.Endpoints {
			endpoint := ref
			endpoint.Kind, endpoint.Name = model.KindEndpoint, ref.Name+"/"+strconv.FormatUint(socket, 16)
			by := s.by(ref, socket)
			switch {
			case len(by) == 0:
				lack(record{Record: model.Record{Ref: endpoint, Owner: ref}, socket: socket, object: o.Object})
			case slices.Contains(by, name) && !seen[endpoint] && !again:
				f.count(model.Record{Ref: endpoint, Owner: ref})
			}
			seen[endpoint] = true
		}
	}
	return missing
}

// note marks an object as counted, and reports whether it was before.
func (f *state) note(is takenObject) (again bool) {
	again = f.taken[is]
	f.taken[is] = true
	return again
}

// count adds a record to the source's former records.
func (f *state) count(rec model.Record) {
	f.had.Add(rec.Ref, +1)
	f.marks[index.Head(rec)] += index.EndpointsIn(rec.Kind)
}

// fall returns the loss of a source after a listing. Has counts the source's records
// in the store. Released records count as former ones.
func (f *state) fall(d reading.Difference, s presence, has index.Stock, edited bool) hold.Fall {
	left := f.had
	for ref := range f.missing {
		left.Add(ref, -1)
	}
	for _, is := range d.Returned {
		left.Add(is.Ref, +1)
	}
	next := hold.Fall{Services: map[model.Ref]hold.Number{}, Total: f.had.Endpoints}
	if left.Endpoints == 0 && !edited {
		next.Replaced = f.had.Endpoints
	}
	lacks := map[model.Ref]bool{}
	for _, rec := range d.Missing {
		if !f.holds.Has(index.PartOf(rec)) {
			lacks[index.Head(rec)] = true
		}
	}
	for object, had := range f.marks {
		next.Services[object] = hold.Number{Mark: had, Now: s.endpoints(object), Lacks: lacks[object]}
	}
	none := left.Endpoints+has.Endpoints == 0
	if f.had.Endpoints > 0 {
		next.Nothing = left.Stored == 0 || none
	} else {
		next.Nothing = left.Stored == 0 || f.had.Services > 0 && left.Services+has.Services == 0 && none
	}
	return next
}
