package laws_test

import (
	"maps"
	"slices"

	"github.com/isthmus-mesh/isthmus/model"
)

// whereabouts is the place of an endpoint: a host, a namespace and its exports, an address, and some
// ports. A service is at its hosts alone, and a workload at the services that select it.
type whereabouts struct {
	hosts     []string
	services  []model.Ref
	namespace string
	exportTo  []string
	address   string
	ports     []uint32
}

// coveredBy reports whether something else is where this is, for all who see it.
func (w whereabouts) coveredBy(o whereabouts) bool {
	within := func(all, some []string) bool {
		return !slices.ContainsFunc(some, func(s string) bool { return !slices.Contains(all, s) })
	}
	seen := func(namespace string) bool {
		return len(o.exportTo) == 0 || slices.Contains(o.exportTo, "*") || slices.Contains(o.exportTo, namespace) || namespace == o.namespace && slices.Contains(o.exportTo, ".")
	}
	visible := true
	for _, namespace := range []string{"a", "b", "any other"} {
		sees := len(w.exportTo) == 0 || slices.Contains(w.exportTo, "*") || slices.Contains(w.exportTo, namespace) || namespace == w.namespace && slices.Contains(w.exportTo, ".")
		visible = visible && (!sees || seen(namespace))
	}
	ports := !slices.ContainsFunc(w.ports, func(n uint32) bool { return !slices.Contains(o.ports, n) })
	return within(o.hosts, w.hosts) && slices.Equal(w.services, o.services) && w.address == o.address && ports && (w.namespace == o.namespace || visible)
}

// each has one host and one port at a time: several new records may replace one.
func (w whereabouts) each() (list []whereabouts) {
	for i := range max(len(w.hosts), 1) {
		for n := range max(len(w.ports), 1) {
			one := w
			one.hosts, one.ports = w.hosts[min(i, len(w.hosts)):min(i+1, len(w.hosts))], w.ports[min(n, len(w.ports)):min(n+1, len(w.ports))]
			list = append(list, one)
		}
	}
	return list
}

// where is where a record of an object is. By are the objects that select workloads.
func where(by map[model.Ref]object, ref, owner model.Ref, o object) whereabouts {
	w := whereabouts{namespace: ref.Namespace}
	service, _ := o.record.Spec.(model.Service)
	for host := range service.Hosts.All() {
		w.hosts = append(w.hosts, nameOf(host))
	}
	w.exportTo = service.ExportTo.Slice()
	if ref.Kind == model.KindWorkload {
		w.services = servicesOf(by, ref, owner, o.record.Spec)
		slices.SortFunc(w.services, model.Ref.Compare)
		w.address = addressOf(o.record.Spec)
	}
	if ref.Kind == model.KindEndpoint {
		w.address = addressOf(o.owned[ref].Spec)
		for port := range service.Ports.All() {
			w.ports = append(w.ports, max(port.TargetPort, port.Number*btoi32(port.TargetPort == 0)))
		}
	}
	return w
}

func btoi32(b bool) uint32 { return uint32(btoi(b)) } //nolint:gosec // 0 or 1

// moved returns the missing records that are listed under another name, and the new records that
// are no gain therefore.
func (m *mirror) moved(before map[model.Ref]object, missing []model.Ref) (former, by map[model.Ref]bool) {
	former, by = map[model.Ref]bool{}, map[model.Ref]bool{}
	was := map[model.Ref]bool{}
	for ref, o := range before {
		for _, part := range o.parts(ref) {
			was[part] = true
		}
	}
	at := func(ref model.Ref, w whereabouts) (list []model.Ref) {
		for other, now := range m.objects {
			for _, part := range now.parts(other) {
				if part.Kind == ref.Kind && !was[part] && !slices.Contains(missing, part) && w.coveredBy(where(before, part, other, now)) {
					list = append(list, part)
				}
			}
		}
		return list
	}
	explains := func(ref, owner model.Ref, o object) bool {
		var all []model.Ref
		for _, w := range where(before, ref, owner, o).each() {
			some := at(ref, w)
			if len(some) == 0 {
				return false
			}
			all = append(all, some...)
		}
		for _, part := range all {
			by[part] = true
		}
		return true
	}
	owns, lost := map[model.Ref]bool{}, map[model.Ref]bool{} // by service
	for ref, o := range m.objects {
		for part := range o.owned {
			if slices.Contains(missing, part) {
				owns[ref], former[part] = true, explains(part, ref, o)
				lost[ref] = lost[ref] || !former[part]
			}
		}
		if ref.Kind == model.KindWorkload && slices.Contains(missing, ref) {
			former[ref] = explains(ref, model.Ref{}, o)
			for _, service := range servicesOf(before, ref, model.Ref{}, o.record.Spec) {
				lost[service] = lost[service] || !former[ref]
			}
		}
	}
	for ref, o := range m.objects {
		if ref.Kind == model.KindService && slices.Contains(missing, ref) {
			former[ref] = !lost[ref] && (owns[ref] || explains(ref, model.Ref{}, o))
		}
	}
	maps.DeleteFunc(former, func(_ model.Ref, is bool) bool { return !is })
	return former, by
}
