package kubernetes_test

import (
	"fmt"
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
	also string
}

func (s seen) address() string { return s.Addresses[0] }

func (s seen) ports() string {
	list := []string{}
	for _, p := range s.slice.Ports {
		list = append(list, *p.Name+"="+strconv.Itoa(int(*p.Port)))
	}
	slices.Sort(list)
	return strings.Join(list, ",")
}

func (s seen) id() string {
	if s.TargetRef != nil {
		return string(s.TargetRef.UID)
	}
	return s.address() + "/" + s.ports()
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

func (w *world) served() map[string]result {
	newest := map[string]map[discoveryv1.AddressType]seen{} // by id
	for _, slice := range w.slices {
		for _, e := range slice.Endpoints {
			s := seen{slice: slice, Endpoint: e}
			family := newest[s.id()]
			if family == nil {
				family = map[discoveryv1.AddressType]seen{}
				newest[s.id()] = family
			}
			if old, has := family[slice.AddressType]; !has || s.age() >= old.age() {
				family[slice.AddressType] = s
			}
		}
	}
	first := discoveryv1.AddressType(w.service.Spec.IPFamilies[0])
	main := map[string]seen{}
	ready := false
	for id, family := range newest {
		s, has := family[first]
		other, both := family[discoveryv1.AddressType(w.service.Spec.IPFamilies[1])]
		if !has {
			s, both = other, false
		}
		if both && other.ports() == s.ports() {
			s.also = other.address()
		}
		main[id] = s
		ready = ready || w.health(s) == model.Healthy
	}
	return w.results(main, ready)
}

func (w *world) results(main map[string]seen, ready bool) map[string]result {
	order := []model.Health{model.Healthy, model.Draining, model.Unhealthy}
	best := map[string]seen{}
	for _, s := range main {
		name := s.address() + "/" + s.ports()
		old, has := best[name]
		mine, its := slices.Index(order, w.health(s)), 0
		if has {
			its = slices.Index(order, w.health(old))
		}
		if !has || mine < its || mine == its && (s.age() > old.age() || s.age() == old.age() && s.id() < old.id()) {
			best[name] = s
		}
	}
	out := map[string]result{}
	for name, s := range best {
		if spec, ok := w.specOf(s, ready); ok {
			out[name] = result{fmt.Sprintf("%+v", spec), holdsText(s.Hostname)}
		}
	}
	return out
}

func holdsText(p *string) string {
	if p == nil {
		return ""
	}
	return *p
}

func (w *world) specOf(s seen, ready bool) (spec model.Endpoint, ok bool) {
	spec = model.Endpoint{Address: s.address(), Network: "n1", Node: *s.NodeName, Health: w.health(s)}
	if s.also != "" {
		spec.Also = model.ListOf(s.also)
	}
	if spec.Health == model.Draining && !ready {
		spec.Health = model.Healthy
	}
	all := map[string]uint32{}
	for _, p := range w.service.Spec.Ports {
		for _, in := range s.slice.Ports {
			if *in.Name == p.Name {
				all[p.Name] = uint32(*in.Port)
			}
		}
	}
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
	return spec, len(all) > 0
}
