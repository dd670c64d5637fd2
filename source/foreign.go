package source

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/isthmus-mesh/isthmus/model"
)

// foreign is what one other system has of a source, as far as it matters still.
// What a listing lacks of it is judged as if the store had had it, once: what
// has been listed since is the business of the store. It belongs to whoever
// writes the source's records.
type foreign struct {
	name, where string
	waiting     []Baseline         // not judged yet
	with        map[string]bool    // sources
	had         stock              // what was judged, whatever has become of it
	serving     map[model.Ref]bool // objects that had an endpoint left
	missing     map[model.Ref]foreignRecord
	holds       *holds
	causes      map[model.Ref]*foreignCause
	unread      bool // the last listing left something out
}

// foreignRecord is an object or an endpoint that is held, in the form of a record.
type foreignRecord struct {
	model.Record
	socket uint64 // of an endpoint
	object string // for people
}

// foreignCause is why something is held.
type foreignCause struct {
	reason  string
	since   time.Time
	records int       // when it was looked at last
	equal   int       // listings that lacked just these, whatever they left out
	alike   time.Time // since when
	lasting bool
}

func newForeign(name string) *foreign {
	return &foreign{
		name: name, with: map[string]bool{}, serving: map[model.Ref]bool{},
		missing: map[model.Ref]foreignRecord{}, holds: newHolds(), causes: map[model.Ref]*foreignCause{},
	}
}

// subjects are the objects of which something has to be known.
func (f *foreign) subjects(all map[model.Ref]bool) {
	for _, b := range f.waiting {
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

// judge decides about what waits, and, at a listing, about what is held. listing
// says that there is a new one, and unread that it left something out; has is what
// the store has of the source.
func (f *foreign) judge(source string, s said, has stock, cfg Hold, listing, unread bool, now time.Time) {
	f.unread = unread
	var d difference
	if listing {
		for _, ref := range slices.SortedFunc(maps.Keys(f.missing), model.Ref.Compare) {
			if m := f.missing[ref]; m.said(s) {
				d.Returned = append(d.Returned, ref)
			} else {
				d.Missing = append(d.Missing, m.Record)
			}
		}
	}
	for _, b := range f.waiting {
		d.Missing = append(d.Missing, f.take(source, b, s)...)
	}
	f.waiting = nil
	if len(d.Missing) == 0 && len(d.Returned) == 0 {
		return
	}
	fates := cfg.judge(f.census(d, has), d.Missing)
	v := f.holds.rule(&reading{whole: !unread, source: source}, d, fates, cfg, now)
	f.holds.apply(v)
	for _, ref := range d.Returned {
		f.serving[head(f.missing[ref].Record)] = true
	}
	for ref := range f.missing {
		if _, held := f.holds.of[ref]; !held {
			delete(f.missing, ref)
		}
	}
	f.explain(source, cfg, listing, now)
}

// said reports whether somebody speaks of it.
func (m foreignRecord) said(s said) bool {
	if m.Kind == model.KindEndpoint {
		return len(s.by(m.Owner, m.socket)) > 0
	}
	return s.has(m.Ref)
}

// take takes in a baseline and returns what of it is missing. An endpoint that
// others speak of, and the source does not, is none of its own.
func (f *foreign) take(source string, b Baseline, s said) (missing []model.Record) {
	f.where, f.with[source] = b.Where, true
	for _, name := range b.With {
		f.with[name] = true
	}
	lack := func(m foreignRecord) {
		if _, known := f.missing[m.Ref]; !known {
			f.missing[m.Ref] = m
			f.had.add(m.Ref, +1)
			missing = append(missing, m.Record)
		}
	}
	seen := map[model.Ref]bool{}
	for _, o := range b.Objects {
		ref := o.subject(source)
		switch there := s.has(ref); {
		case !there:
			lack(foreignRecord{Record: model.Record{Ref: ref}, object: o.Object})
		case !seen[ref]:
			f.had.add(ref, +1)
		}
		seen[ref] = true
		for _, socket := range o.Endpoints {
			endpoint := ref
			endpoint.Kind, endpoint.Name = model.KindEndpoint, ref.Name+"/"+strconv.FormatUint(socket, 16)
			by := s.by(ref, socket)
			switch {
			case len(by) == 0:
				lack(foreignRecord{Record: model.Record{Ref: endpoint, Owner: ref}, socket: socket, object: o.Object})
			case slices.Contains(by, source) && !seen[endpoint]:
				f.had.add(endpoint, +1)
				f.serving[ref] = true
			}
			seen[endpoint] = true
		}
	}
	return missing
}

// census is what must be known to judge, of a source that has so much in the
// store. What was let go counts as having been here.
func (f *foreign) census(d difference, has stock) census {
	looked := make(map[model.Ref]bool, len(d.Missing)+len(d.Returned))
	for _, ref := range d.Returned {
		looked[ref] = true
	}
	after := f.had
	for _, rec := range d.Missing {
		looked[rec.Ref] = true
		after.add(rec.Ref, -1)
	}
	c := census{total: f.had.endpoints, before: f.had}
	for ref := range f.holds.of {
		if !looked[ref] {
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
	c.cause = func(ref model.Ref) (model.Ref, bool) {
		m, held := f.holds.of[ref]
		if !held {
			return model.Ref{}, false
		}
		return m.hold.cause, true
	}
	return c
}

func none(model.Kind) iter.Seq[model.Record] { return func(func(model.Record) bool) {} }

// explain says why each thing is held, and how far that has come.
func (f *foreign) explain(source string, cfg Hold, listing bool, now time.Time) {
	maps.DeleteFunc(f.causes, func(cause model.Ref, _ *foreignCause) bool { return f.holds.by[cause] == nil })
	for cause, one := range f.holds.by {
		c := f.causes[cause]
		if c == nil {
			c = &foreignCause{since: now.UTC().Round(0)}
			f.causes[cause] = c
		}
		if one.records > c.records {
			c.reason = fmt.Sprintf("the first listing of source %s since the start lacks %s; it is kept until %s",
				source, f.lack(cause, one), cfg.Terms(source))
		}
		switch {
		case one.records != c.records:
			c.equal, c.alike = 1, now
		case listing:
			c.equal++
		}
		c.records, c.lasting = one.records, cfg.Confirms(c.equal, c.alike, now)
	}
}

// lack says how much is held for a cause.
func (f *foreign) lack(cause model.Ref, one *hold) string {
	switch {
	case cause != (model.Ref{}):
		object := describe(cause)
		for ref := range one.objects {
			for _, m := range f.missing {
				if head(m.Record) == ref {
					object = m.object
					break
				}
			}
		}
		return fmt.Sprintf("all %d endpoints of %s", one.endpoints, object)
	case one.endpoints == 0:
		return fmt.Sprintf("all %d objects %s", len(one.objects), f.where)
	}
	return fmt.Sprintf("%d of the %d endpoints %s", one.endpoints, f.had.endpoints, f.where)
}

// kept counts the endpoints that are held, and those whose loss is still suspected.
func (f *foreign) kept() (endpoints, suspected int) {
	for cause, one := range f.holds.by {
		endpoints += one.endpoints
		if !f.causes[cause].lasting {
			suspected += one.endpoints
		}
	}
	return endpoints, suspected
}

// judgement is what was decided.
func (f *foreign) judgement() model.Judgement {
	j := model.Judgement{Baseline: f.name, With: slices.Sorted(maps.Keys(f.with))}
	items := map[model.Ref]map[model.Ref]*model.HeldItem{} // cause → object
	for ref, m := range f.missing {
		cause, object := f.holds.of[ref].hold.cause, head(m.Record)
		if items[cause] == nil {
			items[cause] = map[model.Ref]*model.HeldItem{}
		}
		item := items[cause][object]
		if item == nil {
			item = &model.HeldItem{Kind: object.Kind, Namespace: object.Namespace, Name: object.Name}
			items[cause][object] = item
		}
		if m.Kind == model.KindEndpoint {
			item.Endpoints = append(item.Endpoints, m.socket)
		} else {
			item.Whole = true
		}
	}
	for _, cause := range slices.SortedFunc(maps.Keys(items), model.Ref.Compare) {
		c := f.causes[cause]
		drop := model.HeldDrop{Reason: c.reason, Since: c.since, Lasting: c.lasting}
		if f.unread {
			drop.Reason += "; no listing confirms it from which something is refused: see isthmus sources"
		}
		for _, object := range slices.SortedFunc(maps.Keys(items[cause]), model.Ref.Compare) {
			item := items[cause][object]
			slices.Sort(item.Endpoints)
			drop.Items = append(drop.Items, *item)
		}
		j.Held = append(j.Held, drop)
	}
	slices.SortStableFunc(j.Held, func(a, b model.HeldDrop) int { return cmp.Compare(a.Reason, b.Reason) })
	return j
}
