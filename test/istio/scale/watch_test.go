package scale_test

import (
	"slices"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"

	"github.com/isthmus-mesh/isthmus/test/istio/cluster"
)

// change is one of an instance, on its way to an object.
type change struct {
	host, address string
	there         bool   // afterwards
	object        string // that has the address, once it is known
	made          time.Time
	took          time.Duration // until an object had it
}

// spectator watches the objects that are written.
type spectator struct {
	watch watch.Interface
	done  chan struct{}
	end   string // what the API server said last, once done

	mu     sync.Mutex
	ports  map[string]string // by object
	bytes  map[string]int    // of the object as the API server shows it
	open   map[string][]*change
	events int // objects written
	moved  int // objects whose ports have changed
}

// watchObjects lists and follows the objects until the benchmark ends.
func watchObjects(b testing.TB, c *cluster.Cluster) *spectator {
	b.Helper()
	config, err := c.API.Config(cluster.Admin)
	if err != nil {
		b.Fatal(err)
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		b.Fatal(err)
	}
	entries := client.Resource(cluster.ServiceEntries) // of all namespaces
	list, err := entries.List(b.Context(), metav1.ListOptions{})
	if err != nil {
		b.Fatal(err)
	}
	s := &spectator{done: make(chan struct{}), ports: map[string]string{}, bytes: map[string]int{}, open: map[string][]*change{}}
	for i := range list.Items {
		s.note(&list.Items[i])
	}
	s.watch, err = entries.Watch(b.Context(), metav1.ListOptions{ResourceVersion: list.GetResourceVersion()})
	if err != nil {
		b.Fatal(err)
	}
	go s.follow()
	b.Cleanup(func() { s.watch.Stop(); <-s.done })
	return s
}

func (s *spectator) follow() {
	defer close(s.done)
	for event := range s.watch.ResultChan() {
		now := time.Now()
		if event.Type == watch.Error {
			s.end = textOf(event.Object)
		}
		object, ok := event.Object.(*unstructured.Unstructured)
		if !ok || event.Type == watch.Deleted || event.Type == watch.Error {
			continue
		}
		s.mu.Lock()
		s.events++
		before, known := s.ports[object.GetName()]
		if s.note(object) != before && known {
			s.moved++
		}
		s.settle(object, now)
		s.mu.Unlock()
	}
}

// note keeps what an object is compared with, and returns its ports.
func (s *spectator) note(object *unstructured.Unstructured) string {
	ports, _, _ := unstructured.NestedSlice(object.Object, "spec", "ports")
	s.ports[object.GetName()] = textOf(ports)
	s.bytes[object.GetName()] = len(textOf(object.Object))
	return s.ports[object.GetName()]
}

// settle ends the changes that an object shows.
func (s *spectator) settle(object *unstructured.Unstructured, now time.Time) {
	hosts, _, _ := unstructured.NestedStringSlice(object.Object, "spec", "hosts")
	if len(hosts) == 0 || len(s.open[hosts[0]]) == 0 {
		return
	}
	addresses := addressesOf(object)
	s.open[hosts[0]] = slices.DeleteFunc(s.open[hosts[0]], func(c *change) bool {
		if addresses[c.address] != c.there || !c.there && c.object != object.GetName() {
			return false
		}
		c.object, c.took = object.GetName(), now.Sub(c.made)
		return true
	})
}

func addressesOf(object *unstructured.Unstructured) map[string]bool {
	endpoints, _, _ := unstructured.NestedSlice(object.Object, "spec", "endpoints")
	addresses := make(map[string]bool, len(endpoints))
	for _, e := range endpoints {
		endpoint, _ := e.(map[string]any)
		address, _ := endpoint["address"].(string)
		addresses[address] = true
	}
	return addresses
}

// expect has a change looked out for.
func (s *spectator) expect(c *change) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open[c.host] = append(s.open[c.host], c)
}

// awaitAll waits until every change has been seen. How long that takes is for the
// figures to say: on a busy machine a source rests for minutes between its rounds.
func (s *spectator) awaitAll(b testing.TB) {
	b.Helper()
	again := time.NewTicker(5 * time.Millisecond)
	defer again.Stop()
	for began := time.Now(); s.unseen() > 0; {
		if time.Since(began) > patience {
			b.Fatalf("%d changes have not been written", s.unseen())
		}
		select {
		case <-s.done:
			b.Fatalf("%d changes were to be seen when the watch ended: %s", s.unseen(), s.end)
		case <-again.C:
		}
	}
}

func (s *spectator) unseen() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, list := range s.open {
		n += len(list)
	}
	return n
}

// counts are the objects written, and those whose ports changed, so far.
func (s *spectator) counts() (events, moved int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.events, s.moved
}
