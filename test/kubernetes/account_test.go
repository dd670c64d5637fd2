package kubernetes_test

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/isthmus-mesh/isthmus/model"
)

// world is what the API server has of a namespace, and what follows from that by itself.
type world struct {
	services map[string]*corev1.Service
	slices   map[string]*discoveryv1.EndpointSlice
}

func newWorld() *world {
	return &world{services: map[string]*corev1.Service{}, slices: map[string]*discoveryv1.EndpointSlice{}}
}

// with is the world after an object was written.
func (w *world) with(u *unstructured.Unstructured) (*world, error) {
	next := &world{services: maps.Clone(w.services), slices: maps.Clone(w.slices)}
	switch u.GetKind() {
	case "Service":
		s := &corev1.Service{}
		next.services[u.GetName()] = s
		return next, runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, s)
	case "EndpointSlice":
		s := &discoveryv1.EndpointSlice{}
		next.slices[u.GetName()] = s
		return next, runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, s)
	}
	return next, nil
}

// without is the world after an object was deleted.
func (w *world) without(resource, name string) *world {
	next := &world{services: maps.Clone(w.services), slices: maps.Clone(w.slices)}
	switch resource {
	case services.Resource:
		delete(next.services, name)
	case slicesOf.Resource:
		delete(next.slices, name)
	}
	return next
}

// podOf is what an address is of, by its last part: each has one address of each family.
func podOf(address string) string { return address[strings.LastIndexAny(address, ".:")+1:] }

// stand is an endpoint in a slice, with the only port of that.
type stand struct {
	pod, address, port string
	number             uint32
	ready, ending      bool
}

// stands yields the endpoints in slices of a Service.
func (w *world) stands(service string) iter.Seq[stand] {
	return func(yield func(stand) bool) {
		for _, s := range w.slices {
			if s.Labels[discoveryv1.LabelServiceName] != service {
				continue
			}
			for i := range s.Endpoints {
				if !yield(standOf(s, &s.Endpoints[i])) {
					return
				}
			}
		}
	}
}

func standOf(s *discoveryv1.EndpointSlice, e *discoveryv1.Endpoint) stand {
	is := func(condition *bool, otherwise bool) bool {
		if condition == nil {
			return otherwise
		}
		return *condition
	}
	one := stand{
		pod: podOf(e.Addresses[0]), address: e.Addresses[0], number: uint32(*s.Ports[0].Port), ready: is(e.Conditions.Ready, true),
		ending: is(e.Conditions.Serving, true) && is(e.Conditions.Terminating, false),
	}
	if s.Ports[0].Name != nil {
		one.port = *s.Ports[0].Name
	}
	return one
}

// serves is the port of a Service that slices call so; zero if there is none.
func (w *world) serves(service, port string) uint32 {
	s := w.services[service]
	if s == nil || s.Spec.Type == corev1.ServiceTypeExternalName {
		return 0
	}
	for _, p := range s.Spec.Ports {
		if p.Name == port {
			return uint32(p.Port)
		}
	}
	return 0
}

// agreed are the pods of a Service of which all slices say the same, and how many serve
// a port of it.
func (w *world) agreed(service string) map[string]stand {
	all, differ := map[string]stand{}, map[string]bool{}
	for s := range w.stands(service) {
		s.address = ""
		if other, twice := all[s.pod]; twice && (other.port != s.port || other.number != s.number) {
			differ[s.pod] = true
		} else if twice {
			s.ready = s.ready && other.ready
		}
		all[s.pod] = s
	}
	maps.DeleteFunc(all, func(pod string, s stand) bool { return differ[pod] || w.serves(service, s.port) == 0 })
	return all
}

// served is an endpoint of a Service as Isthmus has it, at one of its ports.
type served struct {
	addresses    []string
	port, number uint32
	healthy      bool
}

// servedIn is what records say of the Services of a namespace, by their names.
func servedIn(records map[model.Ref]model.Record, namespace string) map[string][]served {
	all := map[string][]served{}
	for _, r := range records {
		owner, e := r, model.Endpoint{}
		if r.Kind == model.KindEndpoint {
			e, _ = r.Spec.(model.Endpoint)
			owner = records[r.Owner]
		}
		name, is := strings.CutPrefix(owner.Name, "service:")
		if !is || owner.Namespace != namespace || strings.Contains(name, ":") { // the last are host names of pods
			continue
		}
		if r.Kind == model.KindService {
			all[name] = append(all[name], []served{}...)
			continue
		}
		all[name] = append(all[name], servedBy(owner, e)...)
	}
	return all
}

// servedBy is where an endpoint serves each port of its Service.
func servedBy(owner model.Record, e model.Endpoint) (list []served) {
	service, _ := owner.Spec.(model.Service)
	for port := range service.Ports.All() {
		number, has := e.Ports.Get(port.Name)
		if !has && e.Exact {
			continue
		}
		list = append(list, served{
			addresses: append([]string{e.Address}, e.Also.Slice()...), port: port.Number,
			number: cmp.Or(number, port.TargetPort, port.Number), healthy: e.Health == model.Healthy,
		})
	}
	return list
}

// differs says how what is served differs from what follows from the objects. Where
// slices contradict each other, either will do.
func (w *world) differs(has map[string][]served) error {
	for _, name := range slices.Sorted(maps.Keys(has)) {
		if w.services[name] == nil {
			return fmt.Errorf("%s is served, and there is no such Service", name)
		}
	}
	for name, s := range w.services {
		endpoints, there := has[name]
		if !there {
			return fmt.Errorf("%s is not served", name)
		}
		if s.Spec.Type == corev1.ServiceTypeExternalName {
			for _, e := range endpoints {
				if !slices.Equal(e.addresses, []string{s.Spec.ExternalName}) {
					return fmt.Errorf("%s is another name of %s, and has %v", name, s.Spec.ExternalName, e)
				}
			}
			continue
		}
		if err := w.lacks(name, endpoints); err != nil {
			return err
		}
		for _, e := range endpoints {
			if e.healthy && !w.mayServe(name, e) {
				return fmt.Errorf("%s has %v, which no slice says", name, e)
			}
		}
	}
	return nil
}

// lacks says what is not served of a Service that is ready by all slices.
func (w *world) lacks(service string, endpoints []served) error {
	for pod, s := range w.agreed(service) {
		port := w.serves(service, s.port)
		if (s.ready || w.services[service].Spec.PublishNotReadyAddresses) && !slices.ContainsFunc(endpoints, func(e served) bool {
			return e.healthy && e.port == port && e.number == s.number && podOf(e.addresses[0]) == pod
		}) {
			return fmt.Errorf("%s lacks pod %s at port %d: there is %v", service, pod, port, endpoints)
		}
	}
	return nil
}

// mayServe reports whether some slice has an address, and one that it serves the port
// there. Endpoints that end serve as long as no other does.
func (w *world) mayServe(service string, e served) bool {
	address, port, ready := false, false, false
	for s := range w.stands(service) {
		if s.address == e.addresses[0] {
			ready = ready || s.ready || w.services[service].Spec.PublishNotReadyAddresses
			address = address || ready || s.ending
		}
		port = port || w.serves(service, s.port) == e.port && s.number == e.number
	}
	return address && port && (ready || !w.anyReady(service))
}

// anyReady reports whether a pod is ready by all slices that have it.
func (w *world) anyReady(service string) bool {
	for _, s := range w.agreed(service) {
		if s.ready {
			return true
		}
	}
	return false
}
