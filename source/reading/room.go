package reading

import (
	"maps"
	"slices"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source/index"
)

// applicant is a listed service with a larger footprint than the stored one of its name.
type applicant struct {
	ref  model.Ref
	asks index.Footprint
	more index.Footprint // than the stored one, which stays if this one is rejected
}

// Bound rejects the services of a reading that do not fit into their namespace.
// Stored services stay, so that no other object displaces a served one. New and
// growing services are accepted in the order of names as long as they fit. The result
// is the footprint of each namespace with rejected services, as far as they fit.
func Bound(r *Reading, x *index.Index, held func(model.Record) bool) (full map[string]index.Footprint) {
	applicants := map[string][]applicant{}
	grown := map[string]index.Footprint{}
	for _, ref := range r.Objects {
		rec := r.Records[r.at[ref]]
		stood, _ := x.Find(ref)
		asks, had := index.FootprintOf(rec.Spec), stood.Footprint
		if asks.Within(had) {
			continue
		}
		a := applicant{ref, asks, asks.Minus(had)}
		applicants[ref.Namespace] = append(applicants[ref.Namespace], a)
		grown[ref.Namespace] = grown[ref.Namespace].Plus(a.more)
	}
	maps.DeleteFunc(applicants, func(namespace string, _ []applicant) bool {
		return x.Namespace(namespace).Plus(grown[namespace]).FitsNamespace()
	})
	full = map[string]index.Footprint{}
	if len(applicants) == 0 {
		return full
	}
	rejected, freed := map[model.Ref]string{}, freedBy(r, x, held)
	for namespace, list := range applicants {
		slices.SortFunc(list, func(a, b applicant) int { return a.ref.Compare(b.ref) })
		sum := x.Namespace(namespace).Minus(freed[namespace])
		var out []applicant
		for _, a := range list {
			if after := sum.Plus(a.more); after.FitsNamespace() {
				sum = after
			} else {
				out = append(out, a)
			}
		}
		for _, a := range out {
			rejected[a.ref], full[namespace] = index.NoRoom(a.asks, namespace), sum
		}
	}
	reject(r, rejected)
	return full
}

// freedBy returns by how much a reading reduces the footprint of each namespace: by
// services that go, and by smaller ones. Held services do not go yet.
func freedBy(r *Reading, x *index.Index, held func(model.Record) bool) map[string]index.Footprint {
	less := map[string]index.Footprint{}
	look := func(ref model.Ref) {
		was, _ := x.Find(ref)
		if i, listed := r.at[ref]; listed {
			if asks := index.FootprintOf(r.Records[i].Spec); asks.Within(was.Footprint) {
				less[ref.Namespace] = less[ref.Namespace].Plus(was.Minus(asks))
			}
			return
		}
		rec := model.Record{Ref: ref, Place: was.Place}
		if r.gone(rec) && !held(rec) {
			less[ref.Namespace] = less[ref.Namespace].Plus(was.Footprint)
		}
	}
	if r.Whole {
		for ref := range x.Objects() {
			look(ref)
		}
		return less
	}
	for ref := range r.Concerned(x) {
		look(ref)
	}
	return less
}

// reject rejects objects of a reading with all their owned records. Records that
// were reported one by one are not part of the object.
func reject(r *Reading, rejected map[model.Ref]string) {
	if len(rejected) == 0 {
		return
	}
	single := make(map[model.Ref]bool, len(r.singles))
	for _, ref := range r.singles {
		single[ref] = true
	}
	records := r.Records
	r.Records = make([]model.Record, 0, len(records))
	clear(r.at)
	for _, rec := range records {
		reason, is := rejected[index.Head(rec)]
		if is && !single[rec.Ref] {
			if rec.Ref == index.Head(rec) {
				r.turnAway(rec, reason, false)
			}
			continue
		}
		r.at[rec.Ref] = len(r.Records)
		r.Records = append(r.Records, rec)
	}
	r.Objects = slices.DeleteFunc(r.Objects, func(ref model.Ref) bool { _, is := rejected[ref]; return is })
}
