package envoy_test

import (
	"errors"
	"fmt"
	"time"
)

// outage kills each Isthmus for a while. Nothing that Envoys hold is sent over delta
// later, and none changes what it has.
func (s *storm) outage(d time.Duration) {
	s.Helper()
	before := s.replacements()
	for _, i := range s.Isthmuses {
		i.Kill()
	}
	<-time.After(d)
	for n, i := range s.Isthmuses {
		i.Serve()
		await(s, "Envoys to be back", func() error { return i.hasClients(s.clients[n]) })
	}
	// Whatever was to be sent has been sent when a new service answers. It is a cluster and a
	// load assignment for each Envoy, and a listener for each of two sidecars.
	fence := &stormService{
		m: s.mesh, name: "fence", port: port{Name: "main", Protocol: "TCP"}, folder: s.Folder,
		offer: offer{Kind: byAddress, Host: "fence.example.com", Number: 7999, Address: addressV4(9, 9), AddressV6: addressV6(9, 9)},
	}
	fence.grow()
	fence.publish("begin")
	s.awaitAnswers(fence)
	s.MustShowWhatEnvoysHold()
	for kind, want := range map[string][2]int{
		"Cluster": {s.clients[0], s.clients[0]}, "Listener": {2, 2}, "RouteConfiguration": {}, "VirtualHost": {},
		// Those with collections, which have other names with each process.
		"ClusterLoadAssignment": {s.clients[0] * (1 + s.ofAtLeast(collected+1)), s.clients[0] * (1 + s.ofAtLeast(collected))},
	} {
		if sent := int(s.Isthmuses[0].Metric("isthmus_push_resources_total", "."+kind+`"`)); sent < want[0] || sent > want[1] {
			s.Errorf("%d resources of type %s were sent over delta after the restart, not %v", sent, kind, want)
		}
	}
	for name, n := range s.replacements() {
		if n != before[name] {
			s.Errorf("%s was %d and is %d after the restart", name, before[name], n)
		}
	}
	s.MustBeSettled()
}

// ofAtLeast is how many load assignments have so many endpoints.
func (s *storm) ofAtLeast(endpoints int) (n int) {
	for _, c := range expected(append(s.Folder.objects(), s.Others.objects()...)) {
		if c.Type == "EDS" && len(c.Endpoints) >= endpoints {
			n++
		}
	}
	return n
}

// replacements is how often Envoys changed or removed what they had, by Envoy and type.
func (s *storm) replacements() map[string]uint64 {
	s.Helper()
	all := map[string]uint64{}
	for _, w := range s.ways {
		for _, last := range []string{
			"cluster_modified", "cluster_removed", "listener_modified", "listener_removed", "listener_in_place_updated",
		} {
			stats, err := w.Stats(s.Context(), last+"$")
			if err != nil || len(stats) == 0 {
				s.Fatalf("%s has no counter %s (%v)", w.Name, last, err)
			}
			for _, n := range stats {
				all[w.Name+" "+last] += n
			}
		}
	}
	return all
}

// hasClients checks that so many are connected, and ask for listeners and routes, too.
func (i *isthmus) hasClients(count int) error {
	clients, err := i.clients()
	if err != nil || len(clients) != count {
		return errors.Join(err, fmt.Errorf("%d are connected, not %d", len(clients), count))
	}
	for _, c := range clients {
		if len(c.Types) < 4 {
			return fmt.Errorf("%s asks for %d types", c.ID, len(c.Types))
		}
	}
	return nil
}
