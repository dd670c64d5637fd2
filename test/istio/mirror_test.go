package istio_test

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/isthmus-mesh/isthmus/test/istio/cluster"
)

// The labels by which an Isthmus knows its objects.
const (
	managedBy     = "app.kubernetes.io/managed-by=isthmus"
	instanceLabel = "isthmus.io/instance"
)

// Mirrored are the addresses that an instance has written in a namespace, by
// service.
func (a *api) Mirrored(namespace, instance string) (map[string][]string, error) {
	objects, err := a.client.List(a.t.Context(), cluster.ServiceEntries, namespace, managedBy+","+instanceLabel+"="+instance)
	if err != nil {
		return nil, err
	}
	services := map[string][]string{}
	for i := range objects {
		hosts, _, _ := unstructured.NestedStringSlice(objects[i].Object, "spec", "hosts")
		for _, host := range hosts {
			service := strings.TrimSuffix(host, "."+namespace+".example")
			services[service] = append(services[service], addresses(&objects[i])...)
		}
	}
	for _, list := range services {
		slices.Sort(list)
	}
	return services, nil
}

// addresses are the endpoints of a ServiceEntry, each with the port that it
// has for each port of the service.
func addresses(entry *unstructured.Unstructured) []string {
	ports, _, _ := unstructured.NestedSlice(entry.Object, "spec", "ports")
	endpoints, _, _ := unstructured.NestedSlice(entry.Object, "spec", "endpoints")
	list := []string{} // a service without endpoints is one, too
	for _, e := range endpoints {
		endpoint, _ := e.(map[string]any)
		for _, p := range ports {
			port, _ := p.(map[string]any)
			list = append(list, fmt.Sprintf("%s:%d", endpoint["address"], targetPort(port, endpoint)))
		}
	}
	return list
}

// targetPort is which port of an endpoint serves a port of its service.
func targetPort(port, endpoint map[string]any) any {
	own, _ := endpoint["ports"].(map[string]any)
	name, _ := port["name"].(string)
	for _, number := range []any{own[name], port["targetPort"]} {
		if number != nil {
			return number
		}
	}
	return port["number"]
}

// AwaitMirror waits until an instance has written what is registered, and
// nothing else.
func (a *api) AwaitMirror(b bridge) {
	a.t.Helper()
	a.awaitServices(b, b.registry.Services())
}

func (a *api) awaitServices(b bridge, want map[string][]string) {
	a.t.Helper()
	b = b.withDefaults()
	await(a.t, "what is registered in the API server", func() error {
		got, err := a.Mirrored(b.namespace, b.instance)
		if err != nil {
			return err
		}
		if diff := cmp.Diff(want, got); diff != "" {
			return fmt.Errorf("what is registered (-) is not what was written (+):\n%s", diff)
		}
		return nil
	})
}

// AwaitMirrorBut is AwaitMirror but for a service that cannot be written.
func (a *api) AwaitMirrorBut(b bridge, service string) {
	a.t.Helper()
	want := b.registry.Services()
	delete(want, service)
	a.awaitServices(b, want)
}

// Settle waits until what is registered was written, and then until something
// registered after that was. By then what is registered must still be what was
// written, to the last endpoint.
func (a *api) Settle(b bridge) {
	a.t.Helper()
	a.AwaitMirror(b)
	a.awaitMarker(b)
	b = b.withDefaults()
	got, err := a.Mirrored(b.namespace, b.instance)
	if err != nil {
		a.t.Fatal(err)
	}
	if diff := cmp.Diff(b.registry.Services(), got); diff != "" {
		a.t.Errorf("after it was quiet what is registered (-) is not what was written (+):\n%s", diff)
	}
}

// awaitMarker registers something and waits until it was written.
func (a *api) awaitMarker(b bridge) {
	a.t.Helper()
	b = b.withDefaults()
	marker := "marker-" + strconv.Itoa(a.markers)
	a.markers++
	b.registry.Add(marker, "10.0.0.1:80")
	await(a.t, "a marker in the API server", func() error {
		got, err := a.Mirrored(b.namespace, b.instance)
		if err == nil && len(got[marker]) == 0 {
			err = fmt.Errorf("there are %v", slices.Sorted(maps.Keys(got)))
		}
		return err
	})
}

// MustHaveDeleted is that exactly these services' objects were deleted in a
// namespace since the beginning, each once, by whomever.
func (a *api) MustHaveDeleted(namespace string, services ...string) {
	a.t.Helper()
	got := a.deleted(namespace)
	slices.Sort(services)
	if !slices.Equal(got, services) {
		a.t.Errorf("deleted were %q, and should have been %q", got, services)
	}
}

// MustHaveDeletedAtMost is for services that may have gone before they were written, or whose
// writer was killed.
func (a *api) MustHaveDeletedAtMost(namespace string, services ...string) {
	a.t.Helper()
	for _, service := range a.deleted(namespace) {
		if !slices.Contains(services, service) {
			a.t.Errorf("%q was deleted; only %q should have been", service, services)
		}
	}
}

// deleted are the services whose objects were deleted, by whomever.
func (a *api) deleted(namespace string) (services []string) {
	for _, w := range a.Writes(namespace) {
		if strings.HasPrefix(w.Verb, "delete") && w.Changed() {
			services = append(services, strings.TrimSuffix(w.Name, "."+namespace+".example"))
		}
	}
	slices.Sort(services)
	return services
}
