package istio_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/isthmus-mesh/isthmus/test/istio/cluster"
)

// display is a registry that Isthmus mirrors, and what Envoys behind istiod have of it.
type display struct {
	*sidecars
	bridge

	port  string // of the services
	marks int    // see Settle
}

// startDisplay has Isthmus mirror a registry into a cluster of the test's own, with
// Envoys that see it.
func startDisplay(t *testing.T, namespace string) *display {
	t.Helper()
	c := startCluster(t)
	a := connect(t, c)
	s := &display{bridge: a.Bridge(startRegistry(t), namespace), port: freePort(t)}
	s.registry.Add(marker, "10.9.0.1:"+s.port)
	serve(t, a, s.bridge)
	s.sidecars = startSidecars(t, c, a, s.namespace)
	return s
}

// marker is a service that changes so that one sees what has arrived before.
const marker = "marker"

// Cluster is what istiod calls a port of a service, or the subset of it.
func (s *display) Cluster(service, subset string) string {
	return fmt.Sprintf("outbound|%s|%s|%s", s.port, subset, s.host(service))
}

// ClusterAt is what istiod calls the port of an address.
func (s *display) ClusterAt(address, service string) string {
	_, port, _ := strings.Cut(address, ":")
	return fmt.Sprintf("outbound|%s||%s", port, s.host(service))
}

// Set gives an instance other properties.
func (s *display) Set(service, address string, properties map[string]string) {
	s.registry.SetProperties(s.registry.ids[service], s.registry.instances[service][address], properties)
}

// SetStatus gives an instance another status.
func (s *display) SetStatus(service, address, status string) {
	s.registry.SetStatus(s.registry.ids[service], s.registry.instances[service][address], status)
}

// Settle waits until istiod has nothing left to push: it has allotted addresses,
// and then two changes after each other have arrived. Pushes to a client are made
// one after the other, so the first may have been pushed with something earlier, but
// not the second.
func (s *display) Settle() {
	s.t.Helper()
	await(s.t, "addresses of all services", s.allotted)
	for range 2 {
		s.marks++
		s.Set(marker, "10.9.0.1:"+s.port, map[string]string{"weight": strconv.Itoa(1 + s.marks)})
		s.Await(s.Cluster(marker, ""), []string{fmt.Sprintf("10.9.0.1:%s %d", s.port, 1+s.marks)})
	}
}

// allotted is that istiod has written what it writes about new objects.
func (s *display) allotted() error {
	objects, err := s.client.List(s.t.Context(), cluster.ServiceEntries, s.namespace, "")
	if err == nil && len(objects) < len(s.registry.ids) { // and perhaps some that are not of the registry
		err = errors.New("not all services are written")
	}
	for i := range objects {
		if list, _, _ := unstructured.NestedSlice(objects[i].Object, "status", "addresses"); len(list) == 0 {
			err = errors.Join(err, fmt.Errorf("%s has none", objects[i].GetName()))
		}
	}
	return err
}

// Follow makes changes one after the other. Envoy must come to have what they show,
// and istiod must have pushed what it should, by its own counters.
func (s *display) Follow(steps []change) {
	s.t.Helper()
	for _, step := range steps {
		s.Settle()
		before, connections := s.istiod.Pushes(s.t), s.connections()
		step.make()
		for name, want := range step.shows {
			s.Await(name, want)
		}
		s.Settle()
		pushed := s.istiod.Pushes(s.t).Since(before)
		if step.as == ofEndpoints && s.connections() > connections {
			// One was kept waiting for so long that it has connected anew, for which it
			// was sent everything. What led to pushes says the same.
			maps.DeleteFunc(pushed, func(what string, _ int) bool { return !strings.HasPrefix(what, "for ") && what != "eds" })
		}
		if err := differ(pushed, step.as); err != nil {
			s.t.Errorf("%s: %v", step.change, err)
		}
	}
	s.MustHaveRejectedNothing()
}

// Pushes are of endpoints alone, or of services, for which clusters and routes are
// sent as well, or of these for whatever reason.
const (
	ofEndpoints  = "endpoints"
	ofServices   = "services"
	ofEverything = "everything"
)

// differ says why pushes are not of a kind.
func differ(p cluster.Pushes, kind string) error {
	others := slices.DeleteFunc(slices.Sorted(maps.Keys(p)), func(what string) bool { return what == "eds" || what == "for endpoint" })
	switch {
	case p["eds"] == 0 || p["for endpoint"] == 0:
		return fmt.Errorf("istiod counted no push of endpoints, but %v", p)
	case kind == ofEndpoints && len(others) > 0:
		return fmt.Errorf("istiod should have pushed endpoints alone, and counted %v", p)
	case kind == ofServices && (p["cds"] == 0 || p["rds"] == 0 || p["for service"] == 0):
		return fmt.Errorf("istiod should have pushed clusters and routes, and counted %v", p)
	case kind == ofEverything && (p["cds"] == 0 || p["lds"] == 0 || p["rds"] == 0):
		return fmt.Errorf("istiod should have pushed clusters, listeners and routes, and counted %v", p)
	}
	return nil
}

// change is one of the registry, and what is shown to have come of it.
type change struct {
	change, as string
	make       func()
	shows      map[string][]string // endpoints by cluster; nil if it is gone
}

// TestEnvoySeesEachChangeAsTheLeastPush follows changes in the registry to what
// Envoys behind istiod have. A change of instances is a push of endpoints, and one of
// the objects that a service consists of is not.
func TestEnvoySeesEachChangeAsTheLeastPush(t *testing.T) {
	t.Parallel()
	s := startDisplay(t, "shown")
	s.Apply(cluster.DestinationRules, fmt.Sprintf(`
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: orders, namespace: %s}
spec: {host: %s, subsets: [{name: canary, labels: {stage: canary}}]}
`, s.namespace, s.host("orders")))
	one, two, three := "10.1.0.1:"+s.port, "10.1.0.2:"+s.port, "10.1.0.3:"+freePort(t)
	shows := func(canary []string, all ...string) map[string][]string {
		return map[string][]string{s.Cluster("orders", ""): all, s.Cluster("orders", "canary"): canary}
	}
	none := []string{}
	s.Follow([]change{
		{"a service comes", ofServices, func() { s.registry.Add("orders", one) }, shows(none, one+" 1")},
		{"an instance comes", ofEndpoints, func() { s.registry.Add("orders", two) }, shows(none, one+" 1", two+" 1")},
		{"its weight changes", ofEndpoints, func() { s.Set("orders", two, fieldsOf("weight", "7")) }, shows(none, one+" 1", two+" 7")},
		{"its label changes", ofEndpoints, func() { s.Set("orders", two, fieldsOf("weight", "7", "stage", "canary")) }, shows([]string{two + " 7"}, one+" 1", two+" 7")},
		{"it is out of service", ofEndpoints, func() { s.SetStatus("orders", two, "OUTOFSERVICE") }, shows(none, one+" 1")},
		{"it serves again", ofEndpoints, func() { s.SetStatus("orders", two, "UP") }, shows([]string{two + " 7"}, one+" 1", two+" 7")},
		{"it goes", ofEndpoints, func() { s.registry.Remove("orders", two) }, shows(none, one+" 1")},
		{"the last instance goes", ofEndpoints, func() { s.registry.Remove("orders", one) }, shows(none, none...)},
		{"an instance comes back", ofEndpoints, func() { s.registry.Add("orders", two) }, shows(none, two+" 1")},
		{"an object comes, for an instance with a port of its own", ofServices, func() { s.registry.Add("orders", three) }, map[string][]string{
			s.Cluster("orders", ""): {two + " 1"}, s.ClusterAt(three, "orders"): {three + " 1"},
		}},
		{"that object goes", ofServices, func() { s.registry.Remove("orders", three) }, map[string][]string{
			s.Cluster("orders", ""): {two + " 1"}, s.ClusterAt(three, "orders"): {},
		}},
		{"the service goes", ofServices, func() { s.registry.Drop("orders") }, map[string][]string{
			s.Cluster("orders", ""): nil, s.Cluster("orders", "canary"): nil, s.ClusterAt(three, "orders"): nil,
		}},
	})
}

// TestWorkloadEntriesArePushedAsEndpoints is about the other form that endpoints
// may have for istiod: objects of their own, as the earlier bridge wrote them.
func TestWorkloadEntriesArePushedAsEndpoints(t *testing.T) {
	t.Parallel()
	s := startDisplay(t, "workloads")
	workload := func(number, weight int) {
		s.Apply(cluster.WorkloadEntries, fmt.Sprintf(`
apiVersion: networking.istio.io/v1
kind: WorkloadEntry
metadata: {name: orders-%[1]d, namespace: %[2]s}
spec: {address: 10.1.0.%[1]d, labels: {service: orders}, weight: %[3]d}
`, number, s.namespace, weight))
	}
	one, two := "10.1.0.1:"+s.port, "10.1.0.2:"+s.port
	shows := func(all ...string) map[string][]string { return map[string][]string{s.Cluster("orders", ""): all} }
	s.Follow([]change{
		{"a service with a WorkloadEntry comes", ofServices, func() {
			workload(1, 1)
			s.Apply(cluster.ServiceEntries, fmt.Sprintf(`
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: orders, namespace: %s}
spec:
  hosts: [%s]
  ports: [{number: %s, name: grpc, protocol: GRPC}]
  location: MESH_INTERNAL
  resolution: STATIC
  workloadSelector: {labels: {service: orders}}
`, s.namespace, s.host("orders"), s.port))
		}, shows(one + " 1")},
		{"another comes", ofEndpoints, func() { workload(2, 1) }, shows(one+" 1", two+" 1")},
		{"its weight changes", ofEndpoints, func() { workload(2, 7) }, shows(one+" 1", two+" 7")},
		{"it goes", ofEndpoints, func() {
			if err := s.client.Delete(t.Context(), cluster.WorkloadEntries, s.namespace, "orders-2"); err != nil {
				t.Error(err)
			}
		}, shows(one + " 1")},
	})
}

// fieldsOf are properties, each a name and a value.
func fieldsOf(list ...string) map[string]string {
	properties := map[string]string{}
	for i := 0; i < len(list); i += 2 {
		properties[list[i]] = list[i+1]
	}
	return properties
}
