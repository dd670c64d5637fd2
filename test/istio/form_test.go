package istio_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/isthmus-mesh/isthmus/test/istio/cluster"
)

// once are addresses that are endpoints once each.
func once(addresses ...string) map[string]int {
	all := map[string]int{}
	for _, address := range addresses {
		host, _, _ := strings.Cut(address, ":")
		all[host] = 1
	}
	return all
}

// TestIstiodUnitesBothForms shows on what a move from one form to the other relies:
// WorkloadEntries that nothing selects are nothing, a ServiceEntry goes from endpoints
// to a selector by one write without a state between, and the endpoints of all ServiceEntries
// of a host are united, whichever form each has.
func TestIstiodUnitesBothForms(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	api := connect(t, c)
	namespace := api.NewNamespace("united")
	entry := func(name, rest string) {
		api.Apply(cluster.ServiceEntries, fmt.Sprintf(`
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: %s, namespace: %s}
spec: {hosts: [orders.example], location: MESH_INTERNAL, resolution: STATIC, ports: [{number: 80, name: http, protocol: HTTP}], %s}
`, name, namespace, rest))
	}
	workload := func(address string) {
		api.Apply(cluster.WorkloadEntries, fmt.Sprintf(`
apiVersion: networking.istio.io/v1
kind: WorkloadEntry
metadata: {name: orders-%s, namespace: %s, labels: {isthmus.io/service: orders.example}}
spec: {address: %[1]s, ports: {http: 80}}
`, address, namespace))
	}
	const one, two, three = "10.1.0.1", "10.1.0.2", "10.1.0.3"
	selector := "workloadSelector: {labels: {isthmus.io/service: orders.example}}"
	s := watchEndpoints(t, startPromptIstiod(t, c), namespace, "outbound|80||orders.example")

	entry("orders", "endpoints: [{address: 10.1.0.1}, {address: 10.1.0.2}]")
	s.Await(once(one, two))
	s.Mark()
	workload(one)
	workload(two)
	workload(three)
	entry("orders-1", "endpoints: [{address: 10.1.0.4}]") // what is written later, and seen
	s.Await(once(one, two, "10.1.0.4"))                   // WorkloadEntries that nothing selects: no endpoints
	entry("orders", selector)
	s.Await(once(one, two, three, "10.1.0.4")) // a selector, beside a ServiceEntry with endpoints
	entry("orders-1", "endpoints: [{address: 10.1.0.1}]")
	s.Await(map[string]int{one: 2, two: 1, three: 1}) // in both forms: there twice
	entry("orders", "endpoints: [{address: 10.1.0.1}, {address: 10.1.0.2}]")
	s.Await(map[string]int{one: 2, two: 1})
	s.MustNeverLack(once(one, two))
}

// TestIstiodTakesThePortsOfTheOldestForm shows why a service in the second form, of which
// some endpoints serve some ports only, has one object more: with the selector alone,
// a ServiceEntry of some ports that is older would take the others away.
func TestIstiodTakesThePortsOfTheOldestForm(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	api := connect(t, c)
	namespace := api.NewNamespace("oldest")
	entry := func(name, ports, rest string) {
		api.Apply(cluster.ServiceEntries, fmt.Sprintf(`
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: %s, namespace: %s}
spec: {hosts: [orders.example], location: MESH_INTERNAL, resolution: STATIC, ports: [%s], %s}
`, name, namespace, ports, rest))
	}
	const (
		http = "{number: 80, name: http, protocol: HTTP}"
		both = http + ", {number: 90, name: grpc, protocol: GRPC}"
	)
	istiod := startPromptIstiod(t, c)
	on80 := watchEndpoints(t, istiod, namespace, "outbound|80||orders.example")
	on90 := watchEndpoints(t, istiod, namespace, "outbound|90||orders.example")
	entry("some", http, "endpoints: [{address: 10.1.0.2}]")
	created, err := api.client.Get(t.Context(), cluster.ServiceEntries, namespace, "some")
	if err != nil {
		t.Fatal(err)
	}
	api.Apply(cluster.WorkloadEntries, fmt.Sprintf(`
apiVersion: networking.istio.io/v1
kind: WorkloadEntry
metadata: {name: orders-1, namespace: %s, labels: {isthmus.io/service: orders.example}}
spec: {address: 10.1.0.1, ports: {http: 80, grpc: 90}}
`, namespace))
	await(t, "an object that is younger", func() error { // times of creation are in seconds
		entry("orders", both, "workloadSelector: {labels: {isthmus.io/service: orders.example}}")
		now, err := api.client.Get(t.Context(), cluster.ServiceEntries, namespace, "orders")
		if err != nil {
			return err
		}
		if then := created.GetCreationTimestamp(); !then.Before(new(now.GetCreationTimestamp())) {
			return errors.Join(errors.New("it is as old"), api.client.Delete(t.Context(), cluster.ServiceEntries, namespace, "orders"))
		}
		return nil
	})
	on80.Await(once("10.1.0.1", "10.1.0.2"))
	on90.Await(once())
	entry("definition", both, "endpoints: []")
	on90.Await(once("10.1.0.1"))
	on80.Await(once("10.1.0.1", "10.1.0.2"))
}

// AwaitForm waits until a service has so many objects of each kind.
func (a *api) AwaitForm(b bridge, service string, serviceEntries, workloadEntries int) {
	a.t.Helper()
	await(a.t, "the form of "+service, func() error {
		of := func(objects []unstructured.Unstructured, err error) (int, error) {
			return len(slices.DeleteFunc(objects, func(o unstructured.Unstructured) bool {
				return o.GetAnnotations()["isthmus.io/service"] != b.host(service)
			})), err
		}
		entries, err := of(a.client.List(a.t.Context(), cluster.ServiceEntries, b.namespace, managedBy))
		workloads, also := of(a.client.List(a.t.Context(), cluster.WorkloadEntries, b.namespace, managedBy))
		if err = errors.Join(err, also); err == nil && (entries != serviceEntries || workloads != workloadEntries) {
			err = fmt.Errorf("there are %d ServiceEntries and %d WorkloadEntries", entries, workloads)
		}
		return err
	})
}

// TestMovesBetweenTheFormsLoseNoEndpoint has a service of 250 endpoints go from one
// form to the other and back, by the configuration of an Isthmus that is started
// anew. An istiod that pushes at once says at no moment that one of them is not there.
func TestMovesBetweenTheFormsLoseNoEndpoint(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	api, registry := connect(t, c), startRegistry(t)
	b := api.Bridge(registry, "moves")
	var addresses []string
	for i := range 250 {
		addresses = append(addresses, fmt.Sprintf("10.3.0.%d:80", i))
	}
	registry.Add("large", addresses...)
	registry.Add("small", addresses[:3]...)
	all, few := once(addresses...), once(addresses[:3]...)
	i := serve(t, api, b)
	istiod := startPromptIstiod(t, c)
	large := watchEndpoints(t, istiod, b.namespace, "outbound|80||"+b.host("large"))
	small := watchEndpoints(t, istiod, b.namespace, "outbound|80||"+b.host("small"))
	inline := 4
	api.AwaitForm(b, "large", inline, 0)
	large.Await(all)
	small.Await(few)
	for _, step := range []struct {
		form            string
		entries, others int
	}{{"workloadEntries", 1, 1}, {"inline", inline, 0}, {"auto", inline, 0}} {
		large.Mark()
		small.Mark()
		if err := i.Terminate(t.Context()); err != nil {
			t.Fatal(err)
		}
		b.form = step.form
		i = serve(t, api, b)
		api.AwaitForm(b, "large", step.entries, step.others*250)
		api.AwaitForm(b, "small", 1, step.others*3)
		large.Await(all)
		small.Await(few)
		states := large.MustNeverLack(all)
		small.MustNeverLack(few)
		t.Logf("to %s: %d states", step.form, states)
	}
}

// TestWorkloadEntriesAreKept has others delete and change the objects of endpoints, and
// then the service go. What somebody else has beside them stays.
func TestWorkloadEntriesAreKept(t *testing.T) {
	t.Parallel()
	api, registry := connect(t, shared), startRegistry(t)
	b := api.Bridge(registry, "kept")
	b.form = "workloadEntries"
	registry.Add("reviews", "10.0.0.1:80", "10.0.0.2:80", "10.0.0.3:80")
	registry.Add("other", "10.0.1.1:80", "10.0.1.2:80", "10.0.1.3:80") // for a registry that loses everything is not believed
	api.Apply(cluster.WorkloadEntries, fmt.Sprintf(`
apiVersion: networking.istio.io/v1
kind: WorkloadEntry
metadata: {name: theirs, namespace: %s}
spec: {address: 10.9.0.1}
`, b.namespace))
	serve(t, api, b)
	api.AwaitForm(b, "reviews", 1, 3)
	workloads := func() map[string]string {
		objects, err := api.client.List(t.Context(), cluster.WorkloadEntries, b.namespace, managedBy)
		if err != nil {
			t.Fatal(err)
		}
		all := map[string]string{}
		for _, o := range objects {
			all[o.GetName()] = fmt.Sprint(o.Object["spec"], o.GetLabels(), o.GetAnnotations())
		}
		return all
	}
	before := workloads()
	name := slices.Sorted(maps.Keys(before))[0]
	for what, interfere := range map[string]func(){
		"a deletion": func() {
			if err := api.client.Delete(t.Context(), cluster.WorkloadEntries, b.namespace, name); err != nil {
				t.Error(err)
			}
		},
		"a weight": func() {
			api.Edit(cluster.WorkloadEntries, b.namespace, name, func(o map[string]any) { o["spec"].(map[string]any)["weight"] = int64(7) })
		},
		"another label": func() {
			api.Edit(cluster.WorkloadEntries, b.namespace, name, func(o map[string]any) {
				o["metadata"].(map[string]any)["labels"].(map[string]any)["isthmus.io/service"] = "other"
			})
		},
	} {
		writes := len(api.own(b.namespace))
		interfere()
		await(t, what+" to be undone", func() error {
			if now := workloads(); len(api.own(b.namespace)) == writes || !maps.Equal(now, before) {
				return fmt.Errorf("there are %v", now)
			}
			return nil
		})
	}
	writes := len(api.own(b.namespace))
	registry.Remove("reviews", "10.0.0.2:80")
	api.AwaitForm(b, "reviews", 1, 2)
	if now := api.own(b.namespace)[writes:]; len(now) != 1 || now[0].Resource != "workloadentries" {
		t.Errorf("for an instance that goes it wrote %+v", now)
	}
	registry.Drop("reviews")
	api.AwaitForm(b, "reviews", 0, 0)
	api.Spec(cluster.WorkloadEntries, b.namespace, "theirs")
}

// TestWorkloadEntriesOfOthersAreHandedOver has somebody else's ServiceEntry select
// objects of somebody else, and hands all of them over at once.
func TestWorkloadEntriesOfOthersAreHandedOver(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	api, registry := connect(t, c), startRegistry(t)
	b := api.Bridge(registry, "theirs")
	registry.Add("orders", "10.1.0.1:80", "10.1.0.2:80")
	both := once("10.1.0.1", "10.1.0.2")
	const labels = "{app.kubernetes.io/managed-by: isthmus, isthmus.io/instance: %s, service: orders}"
	apply := func(labels string) {
		for i := range both {
			api.Apply(cluster.WorkloadEntries, fmt.Sprintf(`
apiVersion: networking.istio.io/v1
kind: WorkloadEntry
metadata: {name: orders-%[1]s, namespace: %[2]s, labels: %[3]s}
spec: {address: %[1]s, labels: {serviceCenterInstanceId: "1"}}
`, i, b.namespace, labels))
		}
		api.Apply(cluster.ServiceEntries, fmt.Sprintf(`
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: %[1]s, namespace: %[2]s, labels: %[3]s}
spec: {hosts: [%[1]s], location: MESH_INTERNAL, resolution: STATIC, ports: [{number: 80, name: grpc-80, protocol: GRPC}], workloadSelector: {labels: {service: orders}}}
`, b.host("orders"), b.namespace, labels))
	}
	apply("{service: orders}")
	s := watchEndpoints(t, startPromptIstiod(t, c), b.namespace, "outbound|80||"+b.host("orders"))
	s.Await(both)
	b.form = "workloadEntries"
	serve(t, api, b).AwaitRejection(b.host("orders"), "hand it over")
	s.Mark()
	apply(fmt.Sprintf(labels, b.namespace))
	api.AwaitForm(b, "orders", 1, 2)
	await(t, "the objects that were handed over to go", func() error {
		objects, err := api.client.List(t.Context(), cluster.WorkloadEntries, b.namespace, "")
		if err == nil && len(objects) != 2 {
			err = errThere(objects)
		}
		return err
	})
	s.Await(both)
	s.MustNeverLack(both)
}
