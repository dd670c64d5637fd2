package source_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source"
)

// reference is what the store must hold, kept the slow and obvious way: the
// last good version of every object.
type reference struct {
	objects map[model.Ref]lastGood
	marked  bool
}

type lastGood struct {
	place, host string
	weights     map[string]uint32 // by the name of the owned endpoint
	stale       string
}

func newReference() *reference { return &reference{objects: map[model.Ref]lastGood{}} }

func (m *reference) replace(l source.Listing) {
	m.marked = m.marked || l.Places == nil
	m.apply(l.Objects, l.Refused, func(ref model.Ref, have lastGood) bool {
		return l.Places == nil || slices.Contains(l.Places, have.place)
	}, func(place string) bool {
		return l.Places == nil || slices.Contains(l.Places, place)
	}, nil)
}

func (m *reference) change(c source.Change) {
	refused := slices.DeleteFunc(slices.Clone(c.Refused), func(f source.Refusal) bool {
		return f.Ref == (model.Ref{}) && f.Place == "" // says nothing about any record
	})
	m.apply(c.Upserts, refused,
		func(ref model.Ref, _ lastGood) bool { return slices.Contains(c.Deletes, ref) },
		func(string) bool { return false }, c.Deletes)
}

func (m *reference) apply(
	objects []source.Object, refused []source.Refusal,
	gone func(model.Ref, lastGood) bool, read func(place string) bool, deleted []model.Ref,
) {
	refs, places, at := map[model.Ref]string{}, map[string]string{}, map[model.Ref]string{}
	refuse := func(ref model.Ref, reason, place string) {
		if refs[ref] == "" {
			refs[ref], at[ref] = reason, place
		}
	}
	for _, f := range refused {
		if f.Ref == (model.Ref{}) {
			places[f.Place] = cmp.Or(places[f.Place], f.Reason)
		} else {
			refuse(f.Ref, f.Reason, f.Place)
		}
	}
	listed := map[model.Ref]bool{}
	for _, o := range objects {
		ref := o.Record.Ref
		switch {
		case ref.Name == "" || listed[ref]:
		case poisoned(o):
			refuse(ref, "poisoned", o.Record.Place)
		default:
			listed[ref] = true
			m.objects[ref] = goodOf(o)
		}
	}
	for ref, have := range m.objects {
		reason := refs[ref]
		if reason == "" && !slices.Contains(deleted, ref) {
			reason = places[have.place]
		}
		switch {
		case listed[ref]:
		case reason != "":
			have.stale = reason
			if at[ref] != "" && read(have.place) && places[have.place] == "" {
				have.place = at[ref] // where it is now
			}
			m.objects[ref] = have
		case gone(ref, have):
			delete(m.objects, ref)
		}
	}
}

func poisoned(o source.Object) bool {
	names := map[string]bool{}
	for _, rec := range o.Owned {
		if names[rec.Name] {
			return true
		}
		names[rec.Name] = true
	}
	return false
}

func goodOf(o source.Object) lastGood {
	g := lastGood{place: o.Record.Place, host: hostOf(o.Record), weights: map[string]uint32{}}
	for _, rec := range o.Owned {
		g.weights[rec.Name] = weightOf(rec)
	}
	return g
}

func hostOf(rec model.Record) string {
	spec, _ := rec.Spec.(model.Service)
	return spec.Hosts.At(0)
}

func weightOf(rec model.Record) uint32 {
	spec, _ := rec.Spec.(model.Endpoint)
	return spec.Weight
}

// lines is the reference, one line per record, sorted.
func (m *reference) lines() (lines []string) {
	if m.marked {
		lines = append(lines, "mark")
	}
	for ref, o := range m.objects {
		stale := o.stale
		lines = append(lines, fmt.Sprintf("%s in %s at %s stale %q", ref.Name, o.place, o.host, stale))
		for _, name := range slices.Sorted(maps.Keys(o.weights)) {
			lines = append(lines, fmt.Sprintf("%s of %s weighs %d", name, ref.Name, o.weights[name]))
		}
	}
	slices.Sort(lines)
	return lines
}

// linesOf is the same of what a store holds.
func linesOf(s source.Store) (lines []string) {
	for rec := range s.List(model.Filter{Source: "reg"}) {
		switch rec.Kind {
		case model.KindSource:
			lines = append(lines, "mark")
		case model.KindEndpoint:
			lines = append(lines, fmt.Sprintf("%s of %s weighs %d", rec.Name, rec.Owner.Name, weightOf(rec)))
		default:
			stale := rec.Status.Stale
			if len(stale) > 8 { // one of the supervisor's own
				stale = "poisoned"
			}
			lines = append(lines, fmt.Sprintf("%s in %s at %s stale %q", rec.Name, rec.Place, hostOf(rec), stale))
		}
	}
	slices.Sort(lines)
	return lines
}
