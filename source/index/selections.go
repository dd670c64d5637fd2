package index

import (
	"iter"
	"slices"

	"github.com/isthmus-mesh/isthmus/model"
)

// selections count the listed workloads of each service that selects them. Workloads
// that no service of their source selects count together for each namespace.
type selections struct {
	services  map[model.Ref]model.Labels // services with a selector
	by        map[label]map[model.Ref]model.Labels
	workloads map[model.Ref]*selected
	listed    map[model.Ref]int // by service
	held      map[model.Ref]int
	repeated  int             // listed workloads that count for a further service
	unsettled map[string]bool // namespaces with a changed selector of a service
}

// selected is a workload with the services that select it.
type selected struct {
	labels   model.Labels
	services []model.Ref
	held     bool
}

type label struct{ namespace, name, value string }

func newSelections() *selections {
	return &selections{
		services: map[model.Ref]model.Labels{}, by: map[label]map[model.Ref]model.Labels{},
		workloads: map[model.Ref]*selected{}, listed: map[model.Ref]int{}, held: map[model.Ref]int{}, unsettled: map[string]bool{},
	}
}

// set adds or updates a stored record.
func (s *selections) set(rec model.Record) {
	switch spec := rec.Spec.(type) {
	case model.Service:
		s.selects(rec.Ref, spec.WorkloadSelector)
	case model.Workload:
		w := s.workloads[rec.Ref]
		if w == nil {
			w = &selected{}
			s.workloads[rec.Ref] = w
		} else if w.labels.Equal(spec.Endpoint.Labels) {
			return
		}
		s.count(w, -1)
		w.labels, w.services = spec.Endpoint.Labels, nil
		if !s.unsettled[rec.Namespace] {
			w.services = s.of(rec.Namespace, w.labels)
			s.count(w, +1)
		}
	}
}

// unset drops a record that is not stored any more.
func (s *selections) unset(ref model.Ref) {
	if w := s.workloads[ref]; w != nil {
		s.count(w, -1)
		delete(s.workloads, ref)
	}
	s.selects(ref, model.Labels{})
}

// hold marks a workload as held, or not.
func (s *selections) hold(ref model.Ref, held bool) {
	if w := s.workloads[ref]; w != nil && w.held != held {
		s.count(w, -1)
		w.held = held
		s.count(w, +1)
	}
}

func (s *selections) count(w *selected, by int) {
	counts := s.listed
	if w.held {
		counts = s.held
	}
	for _, service := range w.services {
		if counts[service] += by; counts[service] == 0 {
			delete(counts, service)
		}
	}
	if !w.held && len(w.services) > 0 {
		s.repeated += by * (len(w.services) - 1)
	}
}

// selects sets the labels that a service selects. The workloads of its namespace are
// counted again before the numbers are read, once for all changed services.
func (s *selections) selects(service model.Ref, labels model.Labels) {
	old := s.services[service]
	if old.Equal(labels) {
		return
	}
	if key, some := firstLabel(service.Namespace, old); some {
		delete(s.by[key], service)
		delete(s.services, service)
	}
	if key, some := firstLabel(service.Namespace, labels); some {
		if s.by[key] == nil {
			s.by[key] = map[model.Ref]model.Labels{}
		}
		s.by[key][service], s.services[service] = labels, labels
	}
	s.unsettled[service.Namespace] = true
}

func firstLabel(namespace string, labels model.Labels) (_ label, some bool) {
	for name, value := range labels.All() {
		return label{namespace, name, value}, true
	}
	return label{}, false
}

// settle updates the counts.
func (s *selections) settle() {
	if len(s.unsettled) == 0 {
		return
	}
	for ref, w := range s.workloads {
		if s.unsettled[ref.Namespace] {
			s.count(w, -1)
			w.services = s.of(ref.Namespace, w.labels)
			s.count(w, +1)
		}
	}
	clear(s.unsettled)
}

// of returns the services that workloads with these labels count for.
func (s *selections) of(namespace string, labels model.Labels) (services []model.Ref) {
	for name, value := range labels.All() {
		for service, selector := range s.by[label{namespace, name, value}] {
			if labels.Includes(selector) {
				services = append(services, service)
			}
		}
	}
	if slices.SortFunc(services, model.Ref.Compare); len(services) == 0 {
		services = []model.Ref{{Kind: model.KindWorkload, Key: model.Key{Namespace: namespace}}}
	}
	return services
}

// Labelled finds workloads by one of their labels.
type Labelled map[label][]model.Record

// ByLabel indexes workloads by their labels.
func ByLabel(workloads iter.Seq[model.Record]) Labelled {
	found := Labelled{}
	for rec := range workloads {
		spec, _ := rec.Spec.(model.Workload)
		for name, value := range spec.Endpoint.Labels.All() {
			l := label{rec.Namespace, name, value}
			found[l] = append(found[l], rec)
		}
	}
	return found
}

// RecordsOf returns the workloads that a service selects.
func (l Labelled) RecordsOf(service model.Record) (found []model.Record) {
	spec, _ := service.Spec.(model.Service)
	first, _ := firstLabel(service.Namespace, spec.WorkloadSelector)
	for _, rec := range l[first] {
		if workload, _ := rec.Spec.(model.Workload); workload.Endpoint.Labels.Includes(spec.WorkloadSelector) {
			found = append(found, rec)
		}
	}
	return found
}
