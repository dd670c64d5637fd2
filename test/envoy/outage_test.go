package envoy_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/isthmus-mesh/isthmus/test/envoy/proxy"
)

const (
	outage = 20 * time.Second // without any Isthmus
	frost  = 6 * time.Second  // longer than Envoy's pings go unanswered
)

// store is a small mesh under load, with an Envoy of one mode.
type store struct {
	*mesh
	members []*member
	proxy   *proxy.Proxy
	load    *load
	book    book
	fences  int
}

// openStore starts Isthmuses, an Envoy and load on four services.
func openStore(t *testing.T, m *mesh, delta bool, isthmuses int, tls string) *store {
	t.Helper()
	s := &store{mesh: m}
	for n := range 4 {
		s.members = append(s.members, newMember(m, &s.book, fmt.Sprintf("store-%d", n), 2))
	}
	for range isthmuses {
		m.Serve(tls)
	}
	s.proxy = m.Connect(delta)
	m.AwaitActive("every service")
	s.load = startLoad(t, &s.book, s.proxy, 20*time.Millisecond)
	return s
}

// replaced is how often Envoy changed or removed a cluster: what is sent again
// unchanged does not count.
func (s *store) replaced() uint64 {
	s.Helper()
	stats, err := s.proxy.Stats(s.Context(), `^cluster_manager\.cluster_(modified|removed)$`)
	if err != nil {
		s.Fatal(err)
	}
	return stats["cluster_manager.cluster_modified"] + stats["cluster_manager.cluster_removed"]
}

// fence adds a service and waits until it is active: whatever was to be sent
// before has been sent. It is a cluster and a load assignment.
func (s *store) fence() {
	s.Helper()
	s.fences++
	host := fmt.Sprintf("fence-%d.example.com", s.fences)
	s.Folder.write(s, host, static(host, endpoint{Address: "192.0.2.3"}))
	s.AwaitActive(host)
}

// TestOutageFailsNoRequest takes the only Isthmus away in every way. Envoy goes
// on with what it has, and is sent the difference when Isthmus is back.
func TestOutageFailsNoRequest(t *testing.T) {
	inEachMode(t, func(t *testing.T, delta bool) {
		s := openStore(t, newMesh(t), delta, 1, "")
		i, replaced := s.Isthmuses[0], s.replaced()
		back := func(what string, atLeast, atMost float64) {
			t.Helper()
			s.AwaitConnection()
			s.AwaitActive(what)
			if sent := i.Metric("isthmus_push_resources_total", ""); delta && (sent < atLeast || sent > atMost) {
				t.Errorf("%s: since the start %.0f resources were sent, not the %.0f to %.0f that changed", what, sent, atLeast, atMost)
			}
			if n := s.replaced(); n != replaced {
				t.Errorf("%s: Envoy has replaced %d clusters that did not change", what, n-replaced)
			}
		}

		// Killed, while one service grows and another shrinks.
		i.Kill()
		s.members[0].grow()
		gone := s.members[1].drop(0, 1)
		s.members[1].publish("shrink")
		<-time.After(outage)
		began := time.Now()
		i.Serve()
		back("what changed during the outage", 2, 2)
		figures.add(t, "changes of an outage of %s are active %s after the start", outage, time.Since(began).Round(time.Millisecond))
		gone[0].Stop()

		// Frozen, while one grows.
		if err := i.Freeze(); err != nil {
			t.Fatal(err)
		}
		s.members[2].grow()
		<-time.After(frost)
		began = time.Now()
		if err := i.Thaw(); err != nil {
			t.Fatal(err)
		}
		back("what changed while frozen", 3, 4) // on the stream of before, too, if that is not known to be dead yet
		figures.add(t, "changes while frozen for %s are active %s later", frost, time.Since(began).Round(time.Millisecond))

		// Ended and started again, and nothing has changed.
		if err := i.Terminate(t.Context()); err != nil {
			t.Fatal(err)
		}
		i.Serve()
		s.AwaitConnection()
		s.fence()
		back("a service after a restart", 2, 2)

		// The same without anything remembered.
		i.Kill()
		i.Forget()
		i.Serve()
		s.AwaitConnection()
		s.fence()
		back("a service after a restart without the folder", 2, 2)
		s.MustShowWhatEnvoysHold()
		s.load.MustNotHaveFailed()
	})
}
