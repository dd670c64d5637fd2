package istio_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/isthmus-mesh/isthmus/test/istio/cluster"
	"github.com/isthmus-mesh/isthmus/test/testkit/until"
)

// addressesOf are so many endpoints, in the order of their numbers.
func addressesOf(count int) (list []string) {
	for i := range count {
		list = append(list, fmt.Sprintf("10.3.%d.%d:80", i/250, i%250))
	}
	return list
}

// workloads are how many WorkloadEntries there are in a namespace.
func (a *api) workloads(namespace string) int {
	a.t.Helper()
	objects, err := a.client.List(a.t.Context(), cluster.WorkloadEntries, namespace, managedBy)
	if err != nil {
		a.t.Fatal(err)
	}
	return len(objects)
}

// TestKilledMovesBetweenTheFormsLoseNoEndpoint kills an Isthmus again and again while it
// moves a service of 250 endpoints from one form to the other, and back. An istiod that
// pushes at once says at no moment that one of them is not there, and the move comes
// to its end.
func TestKilledMovesBetweenTheFormsLoseNoEndpoint(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	api, registry := connect(t, c), startRegistry(t)
	b := api.Bridge(registry, "killed-moves")
	b.alone = true // nobody waits for the lease of who was killed
	addresses := addressesOf(250)
	registry.Add("large", addresses...)
	registry.Add("small", addresses[:3]...)
	all := once(addresses...)
	i := serve(t, api, b)
	s := watchEndpoints(t, startPromptIstiod(t, c), b.namespace, "outbound|80||"+b.host("large"))
	inline := 4
	api.AwaitForm(b, "large", inline, 0)
	s.Await(all)
	s.Mark()
	amid := 0
	for _, step := range []struct {
		form            string
		kills           []int // after so many writes
		entries, others int
	}{{"workloadEntries", []int{20, 150, 255}, 1, 250}, {"inline", []int{2, 6, 60, 150}, inline, 0}} {
		if err := i.Terminate(t.Context()); err != nil {
			t.Fatal(err)
		}
		before := len(api.own(b.namespace))
		b.form = step.form
		i = serve(t, api, b)
		for _, after := range step.kills {
			await(t, fmt.Sprintf("%d writes", after), func() error {
				if done := len(api.own(b.namespace)) - before; done < after {
					return fmt.Errorf("there were %d", done)
				}
				return nil
			})
			i.Kill()
			there := api.workloads(b.namespace)
			if there > 0 && there < 253 {
				amid++
			}
			t.Logf("to %s: killed with %d WorkloadEntries", step.form, there)
			i.Restart()
		}
		api.AwaitForm(b, "large", step.entries, step.others)
		api.AwaitForm(b, "small", 1, step.others*3/250)
		s.Await(all)
	}
	t.Logf("%d states", s.MustNeverLack(all))
	if amid == 0 {
		t.Error("it was never killed in the midst of a move")
	}
}

// TestServicesMoveBetweenTheFormsBySize has a service grow beyond 1,000 endpoints, and
// shrink below 500. On both ways istiod has at every moment all endpoints that stay.
func TestServicesMoveBetweenTheFormsBySize(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	api, registry := connect(t, c), startRegistry(t)
	b := api.Bridge(registry, "by-size")
	b.form, b.qps = "auto", 1000
	addresses := addressesOf(1001)
	registry.Add("large", addresses[:1000]...)
	registry.Add("small", addresses[:3]...)
	serve(t, api, b)
	s := watchEndpoints(t, startPromptIstiod(t, c), b.namespace, "outbound|80||"+b.host("large"))
	s.Await(once(addresses[:1000]...))
	inline := api.objectsOf(b, "large")
	api.AwaitForm(b, "large", inline, 0)

	s.Mark()
	registry.Add("large", addresses[1000])
	api.awaitWorkloads(b.namespace, 1001)
	api.AwaitForm(b, "large", 1, 1001)
	s.Await(once(addresses...))
	s.MustNeverLack(once(addresses[:1000]...))

	for left := 1001; left > 500; left = max(left-300, 500) { // more at once is not believed
		registry.Remove("large", addresses[max(left-300, 500):left]...)
		api.awaitWorkloads(b.namespace, max(left-300, 500))
	}
	s.Await(once(addresses[:500]...))
	s.Mark()
	registry.Remove("large", addresses[499])
	api.awaitWorkloads(b.namespace, 0)
	s.Await(once(addresses[:499]...))
	t.Logf("%d states", s.MustNeverLack(once(addresses[:499]...)))
	api.AwaitForm(b, "small", 1, 0)
}

// awaitWorkloads waits until there are so many WorkloadEntries, as long as their number
// changes. It does not look often: that they are many is what makes it slow.
func (a *api) awaitWorkloads(namespace string, want int) {
	a.t.Helper()
	for now := a.workloads(namespace); now != want; {
		before := now
		until.NoError(a.t, 500*time.Millisecond, fmt.Sprintf("%d WorkloadEntries", want), func() error {
			if now = a.workloads(namespace); now == before {
				return fmt.Errorf("there are %d", now)
			}
			return nil
		})
	}
}

// objectsOf are how many ServiceEntries a service has.
func (a *api) objectsOf(b bridge, service string) (n int) {
	a.t.Helper()
	objects, err := a.client.List(a.t.Context(), cluster.ServiceEntries, b.namespace, managedBy)
	if err != nil {
		a.t.Fatal(err)
	}
	for i := range objects {
		if objects[i].GetAnnotations()["isthmus.io/service"] == b.host(service) {
			n++
		}
	}
	return n
}
