package kubernetes_test

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/isthmus-mesh/isthmus/convert/kubernetes"
	"github.com/isthmus-mesh/isthmus/model"
)

// The rules once more, for all slices at once.

// seen is an endpoint in a slice.
type seen struct {
	slice *discoveryv1.EndpointSlice
	discoveryv1.Endpoint
	also  string
	ports ports
}

func (s seen) address() string { return s.Addresses[0] }

// ports are where which port is served.
type ports map[string]int32

func (p ports) String() string {
	list := []string{}
	for _, name := range slices.Sorted(maps.Keys(p)) {
		list = append(list, name+"="+strconv.Itoa(int(p[name])))
	}
	return strings.Join(list, ",")
}

func portsOf(slice *discoveryv1.EndpointSlice) ports {
	all := ports{}
	for _, p := range slice.Ports {
		all[*p.Name] = *p.Port
	}
	return all
}

func (s seen) id() string {
	if s.TargetRef != nil {
		return string(s.TargetRef.UID)
	}
	return s.address() + "/" + portsOf(s.slice).String()
}

// age orders by the change that is shown, the write, and the name.
func (s seen) age() string {
	version, _ := strconv.Atoi(s.slice.ResourceVersion)
	return fmt.Sprintf("%30s %9d %s", s.slice.Annotations[corev1.EndpointsLastChangeTriggerTime], version, s.slice.Name)
}

func holds(condition *bool, otherwise bool) bool {
	if condition == nil {
		return otherwise
	}
	return *condition
}

func (w *world) health(s seen) model.Health {
	switch {
	case holds(s.Conditions.Ready, true) || w.service.Spec.PublishNotReadyAddresses:
		return model.Healthy
	case holds(s.Conditions.Serving, true) && holds(s.Conditions.Terminating, false):
		return model.Draining
	default:
		return model.Unhealthy
	}
}

// result is what an address serves.
type result struct{ spec, hostname string }

// seen are the endpoints of all slices, by what they are. Of several in one slice the
// addresses are compared by their order.
func (w *world) seen() map[string][]seen {
	all := map[string][]seen{}
	for _, slice := range w.slices {
		endpoints := slices.Clone(slice.Endpoints)
		slices.SortStableFunc(endpoints, func(a, b discoveryv1.Endpoint) int { return strings.Compare(a.Addresses[0], b.Addresses[0]) })
		times := map[string]int{}
		for _, e := range endpoints {
			s := seen{slice: slice, Endpoint: e}
			times[s.id()]++
			id := fmt.Sprintf("%s %d", s.id(), times[s.id()])
			all[id] = append(all[id], s)
		}
	}
	return all
}

// newestOf is the newest of some, with the ports of all at its address.
func newestOf(all []seen) seen {
	slices.SortFunc(all, func(a, b seen) int { return strings.Compare(a.age(), b.age()) })
	newest := all[len(all)-1]
	newest.ports = ports{}
	for _, s := range all {
		if s.address() == newest.address() {
			maps.Copy(newest.ports, portsOf(s.slice))
		}
	}
	return newest
}

func (w *world) served(before mirror) map[string]result {
	newest := map[string]map[discoveryv1.AddressType]seen{} // by id
	for id, all := range w.seen() {
		newest[id] = map[discoveryv1.AddressType]seen{}
		for _, family := range []discoveryv1.AddressType{discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6} {
			of := slices.DeleteFunc(slices.Clone(all), func(s seen) bool { return s.slice.AddressType != family })
			if len(of) > 0 {
				newest[id][family] = newestOf(of)
			}
		}
	}
	first := discoveryv1.AddressType(w.service.Spec.IPFamilies[0])
	main := map[string]seen{}
	ready, known := false, false
	for id, family := range newest {
		s, has := family[first]
		other, both := family[discoveryv1.AddressType(w.service.Spec.IPFamilies[1])]
		if !has {
			s, both = other, false
		}
		if both && other.ports.String() == s.ports.String() {
			s.also = other.address()
		}
		main[id] = s
		serves := w.health(s) == model.Healthy && len(w.of(s.ports)) > 0
		ready, known = ready || serves, known || serves && !w.awaits(s)
	}
	out := map[string]result{}
	maps.DeleteFunc(main, func(_ string, s seen) bool { // a new endpoint waits for its pod
		_, had := before[endpointRef(s.name())]
		return known && w.awaits(s) && (!had || w.shown[s.name()] != s.id())
	})
	w.shown = map[string]string{}
	for id, s := range main {
		if s.ports = w.won(id, main); len(s.ports) > 0 {
			w.shown[main[id].name()] = s.id()
			out[main[id].name()] = result{fmt.Sprintf("%+v", w.specOf(s, ready)), holdsText(s.Hostname)}
		}
	}
	return out
}

func endpointRef(name string) model.Ref {
	ref := shop.Ref()
	ref.Kind, ref.Name = model.KindEndpoint, ref.Name+"/"+name
	return ref
}

func (w *world) awaits(s seen) bool { return s.TargetRef != nil && w.awaited[string(s.TargetRef.UID)] }

func (s seen) name() string { return s.address() + "/" + s.ports.String() }

// won are the ports of the Service at which an endpoint is served: those that no better one
// of the same address serves at the same number.
func (w *world) won(id string, main map[string]seen) ports {
	s := main[id]
	won := ports{}
	for name, number := range w.of(s.ports) {
		won[name] = int32(number)
		for otherID, other := range main {
			if at, has := other.ports[name]; has && uint32(at) == number && other.address() == s.address() && w.better(other, otherID, s, id) {
				delete(won, name)
			}
		}
	}
	return won
}

func (w *world) better(a seen, aID string, b seen, bID string) bool {
	rank := func(s seen) string {
		worse := slices.Index([]model.Health{model.Healthy, model.Draining, model.Unhealthy}, w.health(s)) * 4
		if holds(s.Conditions.Terminating, false) {
			worse += 2
		}
		if !holds(s.Conditions.Serving, true) {
			worse++
		}
		return fmt.Sprintf("%03d %s", 100-worse, s.age())
	}
	if first, second := rank(a), rank(b); first != second {
		return first > second
	}
	return aID < bID
}

func holdsText(p *string) string {
	if p == nil {
		return ""
	}
	return *p
}

// of are the ports of the Service among those that are served.
func (w *world) of(served ports) map[string]uint32 {
	all := map[string]uint32{}
	for _, p := range w.service.Spec.Ports {
		if number, has := served[p.Name]; has {
			all[p.Name] = uint32(number)
		}
	}
	return all
}

func (w *world) specOf(s seen, ready bool) model.Endpoint {
	spec := model.Endpoint{Address: s.address(), Network: "n1", Node: *s.NodeName, Health: w.health(s)}
	if s.also != "" {
		spec.Also = model.ListOf(s.also)
	}
	if spec.Health == model.Draining && !ready {
		spec.Health = model.Healthy
	}
	all := w.of(s.ports)
	spec.Ports, spec.Exact = model.MapOf(all), len(all) < len(w.service.Spec.Ports)
	node, known := w.nodes[*s.NodeName]
	spec.Locality = node
	if s.Zone != nil {
		spec.Locality.Zone = *s.Zone
	}
	if !known {
		spec.Locality.Region = w.Region(spec.Locality.Zone)
	}
	labels := map[string]string{kubernetes.ClusterLabel: "east"}
	if s.TargetRef != nil {
		if pod, known := w.pods[kubernetes.Name{Namespace: shop.Namespace, Name: s.TargetRef.Name}]; known {
			spec.ServiceAccount = pod.Account
			app, _ := pod.Labels.Get("app")
			labels["app"] = app
		}
	}
	spec.Labels = model.MapOf(labels)
	return spec
}
