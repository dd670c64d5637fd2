package source

import (
	"maps"
	"slices"

	"github.com/isthmus-mesh/isthmus/model"
)

// applicant is a listed service with a larger footprint than the stored one of its name.
type applicant struct {
	ref  model.Ref
	asks footprint
	more footprint // than the stored one, which stays if this one is rejected
}

// bound rejects the services of a reading that do not fit into their namespace.
// Stored services stay, so that no other object displaces a served one. New and
// growing services are accepted in the order of names as long as they fit.
func (k *sink) bound(r *reading) {
	applicants := map[string][]applicant{}
	grown := map[string]footprint{}
	for _, ref := range r.objects {
		rec := r.records[r.at[ref]]
		asks, had := footprintOf(rec.Spec), k.index.stands[ref].footprint
		if asks.within(had) {
			continue
		}
		a := applicant{ref, asks, asks.minus(had)}
		applicants[ref.Namespace] = append(applicants[ref.Namespace], a)
		grown[ref.Namespace] = grown[ref.Namespace].plus(a.more)
	}
	maps.DeleteFunc(applicants, func(namespace string, _ []applicant) bool {
		return k.index.inAll[namespace].plus(grown[namespace]).within(mostOfNamespace)
	})
	rejected, full := map[model.Ref]string{}, map[string]footprint{}
	if len(applicants) > 0 {
		freed := k.freedBy(r)
		for namespace, list := range applicants {
			slices.SortFunc(list, func(a, b applicant) int { return a.ref.Compare(b.ref) })
			sum := k.index.inAll[namespace].minus(freed[namespace])
			var out []applicant
			for _, a := range list {
				if after := sum.plus(a.more); after.within(mostOfNamespace) {
					sum = after
				} else {
					out = append(out, a)
				}
			}
			for _, a := range out {
				rejected[a.ref], full[namespace] = noRoom(a.asks, namespace), sum
			}
		}
		r.without(rejected)
	}
	k.filled(full, r.whole)
}

// freedBy returns by how much a reading reduces the footprint of each namespace: by
// services that go, and by smaller ones. Held services do not go yet.
func (k *sink) freedBy(r *reading) map[string]footprint {
	less := map[string]footprint{}
	look := func(ref model.Ref) {
		was := k.index.stands[ref]
		if i, listed := r.at[ref]; listed {
			if asks := footprintOf(r.records[i].Spec); asks.within(was.footprint) {
				less[ref.Namespace] = less[ref.Namespace].plus(was.minus(asks))
			}
			return
		}
		rec := model.Record{Ref: ref, Place: was.place}
		if r.gone(rec) && !k.holds.has(partOf(rec)) {
			less[ref.Namespace] = less[ref.Namespace].plus(was.footprint)
		}
	}
	if r.whole {
		for ref := range k.index.stands {
			look(ref)
		}
		return less
	}
	for ref := range k.concerned(r) {
		look(ref)
	}
	return less
}

// without rejects objects of a reading with all their owned records. Records that
// were reported one by one are not part of the object.
func (r *reading) without(rejected map[model.Ref]string) {
	if len(rejected) == 0 {
		return
	}
	single := make(map[model.Ref]bool, len(r.deltas))
	for _, ref := range r.deltas {
		single[ref] = true
	}
	records := r.records
	r.records = make([]model.Record, 0, len(records))
	clear(r.at)
	for _, rec := range records {
		reason, is := rejected[head(rec)]
		if is && !single[rec.Ref] {
			if rec.Ref == head(rec) {
				r.turnAway(rec, reason, false)
			}
			continue
		}
		r.at[rec.Ref] = len(r.records)
		r.records = append(r.records, rec)
	}
	r.objects = slices.DeleteFunc(r.objects, func(ref model.Ref) bool { _, is := rejected[ref]; return is })
}
