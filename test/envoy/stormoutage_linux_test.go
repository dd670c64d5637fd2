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
	s.calm()
	before, collections := s.replacements(), s.collections()
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
	s.fence(byAddress, s.Folder)
	s.MustShowWhatEnvoysHold()
	for kind, want := range map[string]int{
		"Cluster": s.clients[0], "Listener": 2, "RouteConfiguration": 0, "VirtualHost": 0,
		// Collections have other names with each process, so what named one is sent anew.
		"ClusterLoadAssignment": s.clients[0] + collections,
	} {
		if sent := int(s.Isthmuses[0].Metric("isthmus_push_resources_total", "."+kind+`"`)); sent != want {
			s.Errorf("%d resources of type %s were sent over delta after the restart, not %d", sent, kind, want)
		}
	}
	for name, n := range s.replacements() {
		if n != before[name] {
			s.Errorf("%s was %d and is %d after the restart", name, before[name], n)
		}
	}
	s.MustBeSettled()
}

// calm waits until Envoys have all that was done, also what waits so that more goes with it.
func (s *storm) calm() {
	s.Helper()
	for _, f := range []*folder{s.Folder, s.Others} {
		s.fence(byAddress, f)
		s.fence(byAuthority, f)
	}
	for _, i := range s.Isthmuses {
		await(s, "nothing to be on its way", i.hasNothingToSend)
	}
	s.MustShowWhatEnvoysHold()
}

// fence offers a new service in a folder, and waits until it answers. So does what was
// written there before.
func (s *storm) fence(kind string, f *folder) {
	s.Helper()
	s.fences++
	o := &stormService{
		m: s.mesh, name: fmt.Sprint("fence-", s.fences), port: port{Name: "main", Protocol: kind}, folder: f,
		offer: offer{Kind: kind, Number: 80, Address: addressV4(9, s.fences), AddressV6: addressV6(9, s.fences)},
	}
	if kind == byAddress {
		o.Number = 7990 + uint32(s.fences) //nolint:gosec // there are few
	}
	o.Host = o.name + ".example.com"
	o.grow()
	o.publish("begin")
	s.awaitAnswers(o)
}

// collections is how many load assignments over delta name collections, of all Envoys. Each
// names one for each of its localities.
func (s *storm) collections() (n int) {
	s.Helper()
	more := 0
	for _, c := range expected(s.Folder.objects()) {
		localities := map[string]bool{}
		for _, e := range c.Endpoints {
			localities[e.Locality] = true
		}
		more += max(len(localities), 1) - 1
	}
	for _, w := range s.ways {
		if !w.Delta {
			continue
		}
		held, err := s.Isthmuses[0].holds(nodeOf(w.Proxy))
		if err != nil {
			s.Fatal(err)
		}
		n += len(held["LbEndpoint"]) - more
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

// hasNothingToSend checks that every client has answered, and has nothing to wait for.
func (i *isthmus) hasNothingToSend() error {
	clients, err := i.clients()
	for _, c := range clients {
		for url, kind := range c.Types {
			if kind.Pending > 0 || kind.State == "waiting" {
				return fmt.Errorf("%s is %s, and is yet to be sent %d of type %s", c.ID, kind.State, kind.Pending, url)
			}
		}
	}
	return err
}
