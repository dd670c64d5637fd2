package envoy_test

import (
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/isthmus-mesh/isthmus/test/envoy/netns"
	"github.com/isthmus-mesh/isthmus/test/envoy/proxy"
)

// TestEachAddressOfAServiceReachesIt has two records of one service, of two sources or of one, with an
// address and an endpoint each. Connections to both addresses reach the service. When the second record
// goes, its address leads to the service no longer, and no connection to the first address fails.
func TestEachAddressOfAServiceReachesIt(t *testing.T) {
	t.Parallel()
	if separately(t) {
		return
	}
	if err := netns.Answer(answering, 15001); err != nil {
		t.Fatal(err)
	}
	startEveryone(t)
	record := func(name, address, instance string) service {
		return service{Name: name, Spec: serviceSpec{
			Hosts: []string{"db.example"}, Addresses: []string{address}, Resolution: "STATIC",
			Ports: []port{{Number: 9000, Name: "tcp", Protocol: "TCP"}}, Endpoints: []endpoint{{Address: instance}},
		}}
	}
	for name, c := range map[string]struct{ sources, registry bool }{
		"two sources": {true, false}, "two sources, registry": {true, true}, "two entries": {false, false}, "two entries, registry": {false, true},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMesh(t)
			further := m.Folder
			if c.sources {
				m.Others = newFolder(t)
				further = m.Others
			}
			outsider := "10.220.0.2:9000" // answers at the second address while no service has it
			if c.registry {
				m.Envoy, outsider = "outbound: registry", closed
			}
			m.Folder.write(t, "a", record("a", "10.220.0.1", "10.200.0.1"))
			further.write(t, "b", record("b", "10.220.0.2", "10.200.0.2"))
			m.Serve("")
			p := m.connectWith(proxy.Config{Workload: "client", Delta: c.registry, Redirected: true})
			id := m.idOf("client")
			first, second := call{to: netip.MustParseAddrPort("10.220.0.1:9000"), says: inLine}, call{to: netip.MustParseAddrPort("10.220.0.2:9000"), says: inLine}
			both := []string{"10.200.0.1:9000", "10.200.0.2:9000"}
			m.mustReach(first, both...)
			m.mustReach(second, both...)
			m.mustExplain(id, "db.example", 9000, "10.220.0.1", "10.220.0.2")
			end := m.keepCalling(first, both...)
			further.remove(t, "b")
			m.mustReach(second, outsider)
			m.mustReach(first, both[0])
			m.mustExplain(id, "db.example", 9000, "10.220.0.1")
			further.write(t, "b", record("b", "10.220.0.2", "10.200.0.2"))
			m.mustReach(second, both...)
			m.mustReach(first, both...)
			end()
			m.MustBeSettled()
			p.Stop() // the next one has its port
		})
	}
}

// TestEachPortOfAServiceHasItsResolution has two records of one host: brokers with resolution NONE, which
// clients dial by the addresses of the brokers, and an API with endpoints. Connections to brokers go to the
// dialled address, and connections to the API go to its endpoints, also while the record of the brokers goes
// and comes.
func TestEachPortOfAServiceHasItsResolution(t *testing.T) {
	t.Parallel()
	if separately(t) {
		return
	}
	if err := netns.Answer(answering, 15001); err != nil {
		t.Fatal(err)
	}
	startEveryone(t)
	for name, c := range map[string]struct {
		brokers, api string // names of the records, by which one source orders them
		sources      bool
		resolution   string   // of the API
		addresses    []string // of the brokers; the API has the first of them
	}{
		"NONE first":         {"a", "b", false, "DNS", nil},
		"NONE last":          {"b", "a", false, "STATIC", nil},
		"two sources":        {"b", "a", true, "STATIC", nil},
		"addresses":          {"a", "b", false, "STATIC", []string{"10.220.0.1", "10.220.0.2"}},
		"NONE last, address": {"b", "a", false, "DNS", []string{"10.220.0.1"}},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMesh(t)
			m.Envoy = "outbound: registry" // else connections to any address pass through
			further := m.Folder
			if c.sources {
				m.Others = newFolder(t)
				further = m.Others
			}
			brokers := service{Name: c.brokers, Spec: serviceSpec{
				Hosts: []string{"kafka.example"}, Addresses: c.addresses, Resolution: "NONE", Ports: []port{{Number: 9093, Name: "brokers", Protocol: "TCP"}},
			}}
			api := service{Name: c.api, Spec: serviceSpec{
				Hosts: []string{"kafka.example"}, Resolution: c.resolution, Ports: []port{{Number: 8443, Name: "api", Protocol: "TLS"}},
				Endpoints: []endpoint{{Address: "10.200.0.1"}, {Address: "10.200.0.2"}},
			}}
			answers := []string{"10.200.0.1:8443", "10.200.0.2:8443"}
			if c.resolution == "DNS" {
				api.Spec.Endpoints, answers = []endpoint{{Address: "localhost"}}, []string{"127.0.0.1:8443"}
			}
			dialled, toAPI := []string{"10.201.0.1:9093", "10.200.0.1:9093"}, call{to: netip.MustParseAddrPort("10.202.0.1:8443"), says: inTLS, host: "kafka.example"}
			explained := []string{""} // any address leads the same way
			if c.addresses != nil {
				api.Spec.Addresses, dialled, explained = c.addresses[:1], nil, c.addresses
				for _, address := range c.addresses {
					dialled = append(dialled, address+":9093")
				}
				toAPI.to = netip.MustParseAddrPort(c.addresses[0] + ":8443")
			}
			m.Folder.write(t, "brokers", brokers)
			further.write(t, "api", api)
			m.Serve("")
			p := m.connectWith(proxy.Config{Workload: "client", Delta: c.sources, Redirected: true})
			id := m.idOf("client")
			inUse := func() {
				t.Helper()
				for _, broker := range dialled {
					m.mustReach(call{to: netip.MustParseAddrPort(broker), says: inLine}, broker)
				}
				m.mustReach(toAPI, answers...)
				for _, address := range c.addresses { // of a record, and so of the service
					m.mustReach(call{to: netip.MustParseAddrPort(address + ":8443"), says: inTLS, host: "kafka.example"}, answers...)
				}
				m.mustExplain(id, "kafka.example", 9093, explained...)
				m.mustExplain(id, "kafka.example", 8443, explained...)
			}
			inUse()
			end := m.keepCalling(toAPI, answers...)
			m.Folder.remove(t, "brokers")
			for _, broker := range dialled {
				m.mustReach(call{to: netip.MustParseAddrPort(broker), says: inLine}, closed)
			}
			m.mustReach(toAPI, answers...)
			m.Folder.write(t, "brokers", brokers)
			inUse()
			end()
			m.MustBeSettled()
			p.Stop() // the next one has its port
		})
	}
}

// mustReach waits for a series of calls with the wanted answers, each at least once and no other answer.
// One more series has them, too.
func (m *mesh) mustReach(c call, want ...string) {
	m.Helper()
	series := func() error {
		var seen []string
		for range 20 {
			got := c.made(m.Context(), netns.Redirected)
			if !slices.Contains(want, got) {
				return fmt.Errorf("%s is answered by %s, not by any of %s", c, got, want)
			}
			if !slices.Contains(seen, got) {
				seen = append(seen, got)
			}
		}
		if len(seen) < len(want) {
			return fmt.Errorf("%s is answered by %s alone, not by each of %s", c, seen, want)
		}
		return nil
	}
	await(m, fmt.Sprintf("%s, answered by %s", c, want), series)
	if err := series(); err != nil {
		m.Errorf("later, %v", err)
	}
}

// keepCalling makes a call again and again until the returned function is called. Each has one of the
// wanted answers.
func (m *mesh) keepCalling(c call, want ...string) (end func()) {
	over := make(chan struct{})
	var calling sync.WaitGroup
	calling.Go(func() {
		again := time.NewTicker(2 * time.Millisecond) // the Envoy has changes to take, too
		defer again.Stop()
		for calls := 1; ; calls++ {
			select { // the end, or the next call
			case <-over:
				m.Logf("%s: %d calls during changes", c, calls)
				return
			case <-again.C:
			}
			if got := c.made(m.Context(), netns.Redirected); !slices.Contains(want, got) {
				if m.Context().Err() == nil {
					m.Errorf("call %d during changes, %s, is answered by %s, not by any of %s", calls, c, got, want)
				}
				return
			}
		}
	})
	end = sync.OnceFunc(func() { close(over); calling.Wait() })
	m.Cleanup(end)
	return end
}

// mustExplain asks for an explanation, which says that a call reaches its service at one of some addresses.
func (m *mesh) mustExplain(id, host string, number uint32, addresses ...string) {
	m.Helper()
	if e := m.explained(id, host, number); e.State != "reached" || !slices.Contains(addresses, e.Address) {
		m.Errorf("%s:%d is explained as %s at %q, not as reached at one of %q: %s", host, number, e.State, e.Address, addresses, e.Reason)
	}
}
