package source

import (
	"iter"

	"github.com/isthmus-mesh/isthmus/model"
)

// decision says whether a missing record is held, and for which cause: a service
// that lost all its endpoints or, if zero, the source as a whole.
type decision struct {
	held  bool
	cause model.Ref
	// before says that it is held for no other reason than that it was before:
	// what is missing now would not be suspicious by itself.
	before bool
}

// judge decides which of the missing records are held, in their order.
//
// If the source as a whole has lost too much, or everything it had, however
// little that was, everything missing is. Else it
// is what is missing of each service that has lost all its endpoints, and what
// was held before: nothing stops being held because the rest has grown. New
// endpoints do not make up for those that are missing.
//
// Workloads are endpoints of the services of their own source that select
// them. A missing object of which anything is held is held with all it owns,
// so that no service stays without its endpoints, nor they without it.
func (h Hold) judge(c census, missing []model.Record) []decision {
	decisions := make([]decision, len(missing))
	lost := 0
	for _, rec := range missing {
		lost += endpointsIn(rec.Kind)
	}
	if h.Suspicious(lost+c.silent, c.total) || h.watchesAll() && c.everything() {
		for i := range decisions {
			decisions[i].held = true
		}
		return decisions
	}
	owners, workloads := h.emptied(c, missing), h.deselected(c, missing)
	held := map[model.Ref]model.Ref{} // objects of which something is held → cause
	for i, rec := range missing {
		f := &decisions[i]
		if owners[head(rec)] {
			*f = decision{held: true, cause: head(rec)}
		} else if by, ok := workloads[rec.Ref]; ok {
			*f = decision{held: true, cause: by}
		} else if by, ok := c.cause(partOf(rec)); ok {
			*f = decision{held: true, cause: by, before: true}
		}
		if f.held {
			held[head(rec)] = f.cause
		}
	}
	closeOver(missing, decisions, held)
	return decisions
}

// closeOver holds what belongs to a missing object of which something is held.
func closeOver(missing []model.Record, decisions []decision, held map[model.Ref]model.Ref) {
	if len(held) == 0 {
		return
	}
	objects := map[model.Ref]bool{} // that are missing
	for _, rec := range missing {
		if rec.Owner == (model.Ref{}) {
			objects[rec.Ref] = true
		}
	}
	for i, rec := range missing {
		if by, ok := held[head(rec)]; ok && !decisions[i].held && objects[head(rec)] {
			decisions[i] = decision{held: true, cause: by}
		}
	}
}

// emptied returns the services that own more than Min endpoints, all missing.
func (h Hold) emptied(c census, missing []model.Record) map[model.Ref]bool {
	lost := map[model.Ref]int{}
	for _, rec := range missing {
		if rec.Kind == model.KindEndpoint && rec.Owner.Kind == model.KindService {
			lost[rec.Owner]++
		}
	}
	services := map[model.Ref]bool{}
	for service, n := range lost {
		if h.SuspiciousAlone(n) {
			services[service] = true
		}
	}
	if len(services) == 0 {
		return nil
	}
	for rec := range c.survives {
		if rec.Kind == model.KindEndpoint {
			delete(services, rec.Owner)
		}
	}
	return services
}

// deselected returns the missing records for which a service that selects more
// than Min workloads, all missing, is the cause: the workloads, and the service
// if it is missing itself.
func (h Hold) deselected(c census, missing []model.Record) map[model.Ref]model.Ref {
	gone := map[model.Ref]bool{}
	workloads := 0
	for _, rec := range missing {
		gone[rec.Ref] = true
		if rec.Kind == model.KindWorkload {
			workloads++
		}
	}
	if workloads <= h.Min {
		return nil
	}
	stored := byLabel(c.stored(model.KindWorkload))
	causes := map[model.Ref]model.Ref{}
	for rec := range c.stored(model.KindService) {
		lost, all := stored.selectedBy(rec), true
		for _, ref := range lost {
			_, held := c.cause(part{ref, ref})
			all = all && (gone[ref] || held)
		}
		if !all || !h.SuspiciousAlone(len(lost)) {
			continue
		}
		for _, ref := range append(lost, rec.Ref) {
			if _, taken := causes[ref]; gone[ref] && !taken {
				causes[ref] = rec.Ref
			}
		}
	}
	return causes
}

// labelled finds workloads by one of their labels.
type labelled map[label][]model.Record

type label struct{ namespace, name, value string }

func byLabel(workloads iter.Seq[model.Record]) labelled {
	found := labelled{}
	for rec := range workloads {
		spec, _ := rec.Spec.(model.Workload)
		for name, value := range spec.Endpoint.Labels.All() {
			l := label{rec.Namespace, name, value}
			found[l] = append(found[l], rec)
		}
	}
	return found
}

// selectedBy names the workloads that a service selects.
func (l labelled) selectedBy(service model.Record) (refs []model.Ref) {
	for _, rec := range l.recordsOf(service) {
		refs = append(refs, rec.Ref)
	}
	return refs
}

// recordsOf returns the workloads that a service selects.
func (l labelled) recordsOf(service model.Record) (found []model.Record) {
	spec, _ := service.Spec.(model.Service)
	for name, value := range spec.WorkloadSelector.All() {
		for _, rec := range l[label{service.Namespace, name, value}] {
			if workload, _ := rec.Spec.(model.Workload); workload.Endpoint.Labels.Includes(spec.WorkloadSelector) {
				found = append(found, rec)
			}
		}
		break // any of the labels leads to all that have all of them
	}
	return found
}

// endpointsIn is how many endpoints a record of that kind counts for.
func endpointsIn(kind model.Kind) int {
	if kind == model.KindEndpoint || kind == model.KindWorkload {
		return 1
	}
	return 0
}
