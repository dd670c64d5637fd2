package catalog_test

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
)

// A service without an address is found at the address and port of each endpoint that it has now,
// whatever came and went before; and whenever that changes, the change names the workload, or the
// service is another one.
func TestServicesWithoutAddressesAreFoundAtTheirInstances(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		b := catalog.NewBuilder(order)
		for i, commit := range drawHistory(t) {
			before := b.Snapshot()
			change := b.Apply(uint64(i+1), commit)
			for _, number := range []uint32{80, 81, 82, 8080} {
				for _, address := range []string{"10.0.0.1", "10.0.0.2", "fd00::1", "FD00::1", "h"} {
					was, is := instancesAt(before, address, number), instancesAt(b.Snapshot(), address, number)
					if want := instancesAmongAll(b.Snapshot(), address, number); !slices.Equal(is, want) {
						t.Fatalf("%v are at %s:%d, not %v", is, address, number, want)
					}
					if !slices.Equal(was, is) && !namesWorkload(change, address) {
						t.Fatalf("%v were at %s:%d and %v are, and the change does not say so", was, address, number, is)
					}
				}
			}
		}
	})
}

func instancesAt(s *catalog.Snapshot, address string, number uint32) (keys []catalog.ServiceKey) {
	for at := range s.InstancesAt(address, number) {
		keys = append(keys, at.Key)
	}
	slices.SortFunc(keys, compareKeys)
	return slices.Compact(keys)
}

// instancesAmongAll finds the same by looking at all endpoints there are.
func instancesAmongAll(s *catalog.Snapshot, address string, number uint32) (keys []catalog.ServiceKey) {
	for service := range s.Services() {
		if service.Traffic.ClusterLocal || service.Base.Addresses.Len() > 0 {
			continue
		}
		for _, port := range service.Ports {
			for e := range service.Endpoints(port.Number).All() {
				if e.Port == number && service.ResolutionAt(port.Number) == model.ResolutionStatic && slices.ContainsFunc(append(e.Also.Slice(), e.Address), func(text string) bool {
					ip, err := netip.ParseAddr(text)
					return err == nil && ip.String() == address
				}) {
					keys = append(keys, service.Key)
				}
			}
		}
	}
	slices.SortFunc(keys, compareKeys)
	return slices.Compact(keys)
}

// namesWorkload reports whether a change names the workload of an address, or a service is
// defined otherwise than before.
func namesWorkload(c catalog.Change, address string) bool {
	for _, s := range c.Services {
		if s.Old == nil || s.New == nil || s.Old.Definition != s.New.Definition {
			return true
		}
		for at := range s.Workloads() {
			if at.Address == address {
				return true
			}
		}
	}
	return false
}

// The endpoints of a service of names, and those that nobody connects to, are at no address.
func TestInstancesAreAtAddressesThatOthersConnectTo(t *testing.T) {
	t.Parallel()
	b := catalog.NewBuilder([]string{"s"})
	b.Apply(1, headlessWith("10.0.0.1", "0.0.0.0", "::", "127.0.0.1", "::1", "h.example", "unix:///s"))
	found, _ := b.Snapshot().Service(catalog.ServiceKey{Namespace: "default", Host: "h.example"})
	var got []string
	for e := range found.Endpoints(80).All() {
		got = slices.AppendSeq(got, e.Connectable())
	}
	if !slices.Equal(got, []string{"10.0.0.1"}) {
		t.Errorf("the instances are at %v", got)
	}
	for address, want := range map[string]int{"10.0.0.1": 1, "0.0.0.0": 0, "::": 0, "127.0.0.1": 0, "::1": 0} {
		if got := instancesAt(b.Snapshot(), address, 80); len(got) != want {
			t.Errorf("%v are at %s", got, address)
		}
	}
}

// A port is crowded while its services have too many instances together. Its index is another when
// that begins or ends, and when a service of a crowded port asks for another share; else it stays
// the same, and the change says so.
func TestCrowdedPorts(t *testing.T) {
	t.Parallel()
	b := catalog.NewBuilder([]string{"s"})
	addresses := func(n int) (list []string) {
		for i := range n {
			list = append(list, fmt.Sprintf("10.0.%d.%d", 1+i/200, 1+i%200))
		}
		return list
	}
	key := catalog.ServiceKey{Namespace: "default", Host: "h.example"}
	has := 0
	const most = catalog.MostInstances
	for step, c := range []struct {
		n     int
		share int // 0 if the port is not crowded
		other bool
	}{{3, 0, true}, {most, 0, false}, {most + 1, most + 1, true}, {most + 9, most + 1, false}, {most, 0, true}, {0, 0, false}} {
		before := b.Snapshot().Port(80)
		events := headlessWith(addresses(c.n)...)
		for _, gone := range headlessWith(addresses(max(c.n, has))...)[1+c.n:] {
			events = append(events, model.Delete{Record: gone.(model.Upsert).Record})
		}
		change := b.Apply(uint64(step+1), events)
		now := b.Snapshot().Port(80)
		if share, crowded := now.Asked(key); crowded != (c.share > 0) || share != c.share {
			t.Errorf("with %d endpoints: crowded %t, share %d, want %d", c.n, crowded, share, c.share)
		}
		if same := before == now; same == c.other {
			t.Errorf("from %d to %d endpoints the services of the port stay the same: %t", has, c.n, same)
		}
		if told := len(b.Snapshot().Crowded(change)) > 0; step > 0 && told != c.other {
			t.Errorf("from %d to %d endpoints the change names the port: %t", has, c.n, told)
		}
		if b.Snapshot().HasInstances() != (c.n > 0) {
			t.Errorf("with %d endpoints there are instances: %t", c.n, b.Snapshot().HasInstances())
		}
		has = c.n
	}
}

// Services of a crowded port ask for shares that few changes of their endpoints alter, and the
// numbers of a port are those of its services after any history.
func TestCrowdsAreTheSumsOfTheirServices(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		b := catalog.NewBuilder(order)
		for i, commit := range drawHistory(t) {
			b.Apply(uint64(i+1), commit)
			some := false
			for s := range b.Snapshot().Services() {
				for _, port := range s.Ports {
					some = some || s.ChosenAt("", port.Number) && !port.IsHTTP() && !port.IsUDP() && s.Endpoints(port.Number).Counts().Total > 0
				}
			}
			if b.Snapshot().HasInstances() != some {
				t.Fatalf("instances that clients choose: %t, want %t", b.Snapshot().HasInstances(), some)
			}
		}
	})
}

// headlessWith has a headless service with endpoints.
func headlessWith(addresses ...string) []model.Event {
	r := service("s", "shop", "h.example")
	r.Namespace = "default"
	r.Spec = model.Service{
		Hosts: model.ListOf("h.example"), Resolution: model.ResolutionStatic, Traffic: model.Traffic{Headless: true},
		Ports: model.ListOf(model.Port{Number: 80, Name: "main", Protocol: "TCP"}),
	}
	events := []model.Event{model.Upsert{Record: r}}
	for _, address := range addresses {
		e := model.Record{Ref: model.Ref{Kind: model.KindEndpoint, Key: r.Key}, Owner: r.Ref, Spec: model.Endpoint{Address: address}}
		e.Name += "/" + address
		events = append(events, model.Upsert{Record: e})
	}
	return events
}
