package catalog

import "github.com/isthmus-mesh/isthmus/model"

// pair is one label as an index key.
type pair struct{ namespace, name, value string }

// selection joins the services that select by label with the workloads that carry the
// labels, within a namespace and across sources. Both sides are indexed by label. A
// workload then costs the services that may select it and not all services of its
// namespace.
type selection struct {
	workloads map[model.Ref]*Instance
	labelled  map[pair]map[model.Ref]*Instance
	selectors map[pair]map[model.Ref]*serviceRecord // by one label of the selector
	confined  map[*Instance]model.List[string]      // hosts that workloads may serve, if not all
}

func newSelection() *selection {
	return &selection{map[model.Ref]*Instance{}, map[pair]map[model.Ref]*Instance{}, map[pair]map[model.Ref]*serviceRecord{}, map[*Instance]model.List[string]{}}
}

// put adds a workload, replaces it, or with a nil instance removes it.
func (s *selection) put(ref model.Ref, instance *Instance) {
	if before := s.workloads[ref]; before != nil {
		delete(s.workloads, ref)
		for name, value := range before.Labels.All() {
			drop(s.labelled, pair{ref.Namespace, name, value}, ref)
		}
	}
	if instance != nil {
		s.workloads[ref] = instance
		for name, value := range instance.Labels.All() {
			add(s.labelled, pair{ref.Namespace, name, value}, ref, instance)
		}
	}
}

// mayServe reports whether a workload may be an endpoint of a host.
func (s *selection) mayServe(instance *Instance, host string) bool {
	only, confined := s.confined[instance]
	return !confined || model.HostWithin(host, only)
}

// serving returns an instance if it may be an endpoint of a host; nil otherwise.
func (s *selection) serving(instance *Instance, host string) *Instance {
	if instance == nil || !s.mayServe(instance, host) {
		return nil
	}
	return instance
}

// putSelector makes a service known to the workloads; dropSelector undoes it. A service is
// indexed under one label of its selector, the one with the fewest other services. A label
// which many services share then costs no look-up.
func (s *selection) putSelector(r *serviceRecord) {
	first := true
	for name, value := range r.spec.WorkloadSelector.All() {
		key := pair{r.ref.Namespace, name, value}
		if first || len(s.selectors[key]) < len(s.selectors[r.foundBy]) {
			r.foundBy, first = key, false
		}
	}
	if !first {
		add(s.selectors, r.foundBy, r.ref, r)
	}
}

func (s *selection) dropSelector(r *serviceRecord) { drop(s.selectors, r.foundBy, r.ref) }

// selecting calls yield for every service that selects the workload.
func (s *selection) selecting(instance *Instance, yield func(*serviceRecord)) {
	for name, value := range instance.Labels.All() {
		for _, r := range s.selectors[pair{instance.Record.Namespace, name, value}] {
			if instance.Labels.Includes(r.spec.WorkloadSelector) {
				yield(r)
			}
		}
	}
}

// selected calls yield for every workload that the service selects.
func (s *selection) selected(r *serviceRecord, yield func(*Instance)) {
	var fewest map[model.Ref]*Instance
	first := true
	for name, value := range r.spec.WorkloadSelector.All() {
		if with := s.labelled[pair{r.ref.Namespace, name, value}]; first || len(with) < len(fewest) {
			fewest, first = with, false
		}
	}
	for _, instance := range fewest {
		if instance.Labels.Includes(r.spec.WorkloadSelector) {
			yield(instance)
		}
	}
}

func add[K, R comparable, V any](index map[K]map[R]V, key K, ref R, value V) {
	if index[key] == nil {
		index[key] = map[R]V{}
	}
	index[key][ref] = value
}

func drop[K, R comparable, V any](index map[K]map[R]V, key K, ref R) {
	delete(index[key], ref)
	if len(index[key]) == 0 {
		delete(index, key)
	}
}
