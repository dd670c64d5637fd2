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

// A headless service is found at the addresses of the endpoints that it has now, by who
// sees it, whatever came and went before; and whenever that changes, the change names the
// workload, or the service is another one.
func TestHeadlessServicesAreFoundAtTheirEndpoints(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		b := catalog.NewBuilder(order)
		for i, commit := range drawHistory(t) {
			before := b.Snapshot()
			change := b.Apply(uint64(i+1), commit)
			for _, number := range []uint32{80, 81, 82} {
				for _, namespace := range []string{"", "x", "y"} {
					v := catalog.Viewer{Namespace: namespace}
					for _, address := range []string{"10.0.0.1", "10.0.0.2", "fd00::1", "FD00::1", "h"} {
						was, is := headlessAt(before, v, number, address), headlessAt(b.Snapshot(), v, number, address)
						if want := headlessAmongAll(b.Snapshot(), v, number, address); !slices.Equal(is, want) {
							t.Fatalf("%v are at %s:%d for %q, not %v", is, address, number, namespace, want)
						}
						if !slices.Equal(was, is) && !namesWorkload(change, address) {
							t.Fatalf("%v were at %s:%d and %v are, and the change does not say so", was, address, number, is)
						}
					}
				}
			}
		}
	})
}

func headlessAt(s *catalog.Snapshot, v catalog.Viewer, number uint32, address string) []catalog.ServiceKey {
	keys := keysOf(s.HeadlessAt(v, number, address))
	slices.SortFunc(keys, compareKeys)
	return slices.Compact(keys)
}

// headlessAmongAll finds the same by looking at all endpoints there are.
func headlessAmongAll(s *catalog.Snapshot, v catalog.Viewer, number uint32, address string) (keys []catalog.ServiceKey) {
	for service := range s.Visible(v) {
		if !service.Traffic.Headless || service.Traffic.ClusterLocal || service.Resolution != model.ResolutionStatic || service.Addresses.Len() > 0 {
			continue
		}
		for e := range service.Endpoints(number).All() {
			if slices.ContainsFunc(append(e.Also.Slice(), e.Address), func(text string) bool {
				ip, err := netip.ParseAddr(text)
				return err == nil && ip.String() == address
			}) {
				keys = append(keys, service.Key)
				break
			}
		}
	}
	slices.SortFunc(keys, compareKeys)
	return keys
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
func TestHeadlessServicesAreAtAddressesThatOthersConnectTo(t *testing.T) {
	t.Parallel()
	b := catalog.NewBuilder([]string{"s"})
	b.Apply(1, headlessWith("10.0.0.1", "0.0.0.0", "::", "127.0.0.1", "::1", "h.example", "unix:///s"))
	found, _ := b.Snapshot().Service(catalog.ServiceKey{Namespace: "default", Host: "h.example"})
	if got := slices.Collect(found.EndpointAddresses(80)); !slices.Equal(got, []string{"10.0.0.1"}) {
		t.Errorf("the endpoints are at %v", got)
	}
	for address, want := range map[string]int{"10.0.0.1": 1, "0.0.0.0": 0, "::": 0, "127.0.0.1": 0, "::1": 0} {
		if got := headlessAt(b.Snapshot(), catalog.Viewer{}, 80, address); len(got) != want {
			t.Errorf("%v are at %s", got, address)
		}
	}
}

// A port with too many endpoints for an address each is in the index of the port. That one
// is another when a service crosses the number, and else the same, and the change says so.
func TestLargeHeadlessServicesAreAtNoAddress(t *testing.T) {
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
	for step, n := range []int{3, catalog.LargeHeadless, catalog.LargeHeadless + 1, catalog.LargeHeadless + 9, catalog.LargeHeadless, 0} {
		before := b.Snapshot().Port(80)
		events := headlessWith(addresses(n)...)
		for _, gone := range headlessWith(addresses(max(n, has))...)[1+n:] {
			events = append(events, model.Delete{Record: gone.(model.Upsert).Record})
		}
		change := b.Apply(uint64(step+1), events)
		large, was := n > catalog.LargeHeadless, has > catalog.LargeHeadless
		now := b.Snapshot().Port(80)
		if now.IsLarge(key) != large || change.Services[key].Resized() != (large != was) {
			t.Errorf("with %d endpoints: large %t, resized %t", n, now.IsLarge(key), change.Services[key].Resized())
		}
		if same := before == now; before != nil && same != (large == was) {
			t.Errorf("from %d to %d endpoints the services of the port stay the same: %t", has, n, same)
		}
		if got := headlessAt(b.Snapshot(), catalog.Viewer{}, 80, "10.0.1.1"); len(got) > 0 != (n > 0 && !large) {
			t.Errorf("with %d endpoints %v are at the first", n, got)
		}
		has = n
	}
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
