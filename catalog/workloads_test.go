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

// What a workload serves is what the endpoints at its address say, whatever came and
// went before; and whenever that changes, the change names the workload.
func TestWorkloadsServeWhatTheirEndpointsSay(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		b := catalog.NewBuilder(order)
		for i, commit := range drawHistory(t) {
			before := b.Snapshot()
			named := map[catalog.WorkloadAddress]bool{}
			for _, c := range b.Apply(uint64(i+1), commit).Services {
				for at := range c.Workloads() {
					named[at] = true
				}
			}
			for _, at := range whereabouts {
				for _, namespace := range []string{"x", "y"} {
					was, is := served(before, namespace, at), served(b.Snapshot(), namespace, at)
					if want := servedInAll(b.Snapshot(), namespace, at); !slices.Equal(is, want) {
						t.Fatalf("%v serves %v, not %v", at, is, want)
					}
					if anywhere := (catalog.WorkloadAddress{Address: at.Address}); !slices.Equal(was, is) && !named[at] && !named[anywhere] {
						t.Fatalf("%v served %v and serves %v, and the change names only %v", at, was, is, named)
					}
				}
			}
		}
	})
}

var whereabouts = []catalog.WorkloadAddress{
	{Address: "10.0.0.1"}, {Address: "10.0.0.2"}, {Address: "fd00::1"}, {Network: "n", Address: "10.0.0.1"}, {Network: "n", Address: "fd00::1"},
}

// served is all that the ports of a workload depend on.
func served(s *catalog.Snapshot, namespace string, at catalog.WorkloadAddress) (list []string) {
	for p := range s.ServedAt(namespace, at) {
		list = append(list, describe(p.ServiceDefinition, p.Port, p.Target))
	}
	slices.Sort(list)
	return list
}

func describe(s catalog.ServiceDefinition, port model.Port, target uint32) string {
	return fmt.Sprint(s.Key, port.Number, port.Protocol, target, s.Standing)
}

// servedInAll finds the same by looking at all endpoints there are.
func servedInAll(snapshot *catalog.Snapshot, namespace string, at catalog.WorkloadAddress) (list []string) {
	for s := range snapshot.Services() {
		if s.Key.Namespace != namespace {
			continue
		}
		for _, port := range s.Ports {
			if r := s.ResolutionAt(port.Number); r != model.ResolutionStatic && r != model.ResolutionNone {
				continue
			}
			for e := range s.Endpoints(port.Number).All() {
				is := slices.ContainsFunc(append(e.Also.Slice(), e.Address), func(text string) bool {
					ip, err := netip.ParseAddr(text)
					return err == nil && ip.Unmap().String() == at.Address
				})
				if is && (e.Network == "" || e.Network == at.Network) {
					list = append(list, describe(s.ServiceDefinition, port, e.Port))
				}
			}
		}
	}
	slices.Sort(list)
	return list
}

// A change that leaves a workload's ports as they are names no workload.
func TestWhatServesNoOtherPortNamesNoWorkload(t *testing.T) {
	t.Parallel()
	b := grown(3, 3)
	change := b.Apply(2, []model.Event{weighs(0, 1, 7), weighs(1, 2, 9)})
	if len(change.Services) != 2 {
		t.Fatalf("the change is of %d services", len(change.Services))
	}
	for key, c := range change.Services {
		for at := range c.Workloads() {
			t.Errorf("another weight in %v names %v", key, at)
		}
	}
}

// One endpoint that comes among 20,000 names one workload, and none of its neighbours.
func TestOneEndpointNamesOneWorkload(t *testing.T) {
	t.Parallel()
	b := grown(20_000, 3)
	change := b.Apply(2, []model.Event{weighs(0, 20_000, 1)})
	var named []catalog.WorkloadAddress
	for _, c := range change.Services {
		named = slices.AppendSeq(named, c.Workloads())
	}
	if want := []catalog.WorkloadAddress{{Address: "10.0.78.32"}}; !slices.Equal(named, want) {
		t.Errorf("it names %v, not %v", named, want)
	}
}

// A workload behind several services serves the ports of each, its address may be
// written in any form, and the same address in another network is another workload.
func TestWorkloadIsFoundByNetworkAndAddress(t *testing.T) {
	t.Parallel()
	b := catalog.NewBuilder(order)
	at := func(name, address, network string) model.Record {
		r := endpoint("a", name, address, 1)
		spec, _ := r.Spec.(model.Endpoint)
		spec.Network = network
		r.Spec = spec
		return r
	}
	b.Apply(1, upserts(
		service("a", "s", "s.example"), service("a", "t", "t.example"),
		at("s/1", "FD00::1", ""), at("t/1", "fd00:0::1", "n"), at("t/2", "10.0.0.1", "n"), at("s/2", "10.0.0.10", "n"),
	))
	namespace := ref(model.KindService, "a", "s").Namespace
	for _, test := range []struct {
		at   catalog.WorkloadAddress
		want []string
	}{
		{catalog.WorkloadAddress{Network: "n", Address: "fd00::1"}, []string{"s.example", "t.example"}},
		{catalog.WorkloadAddress{Network: "n", Address: "FD00:0:0::1"}, []string{"s.example", "t.example"}},
		{catalog.WorkloadAddress{Network: "m", Address: "fd00::1"}, []string{"s.example"}},
		{catalog.WorkloadAddress{Address: "fd00::1"}, []string{"s.example"}},
		{catalog.WorkloadAddress{Network: "n", Address: "10.0.0.1"}, []string{"t.example"}},
		{catalog.WorkloadAddress{Network: "n", Address: "::ffff:10.0.0.1"}, []string{"t.example"}},
		{catalog.WorkloadAddress{Address: "10.0.0.1"}, nil},
		{catalog.WorkloadAddress{Network: "n", Address: "10.0.0"}, nil},
	} {
		var hosts []string
		for p := range b.Snapshot().ServedAt(namespace, test.at) {
			hosts = append(hosts, p.Key.Host)
		}
		slices.Sort(hosts)
		if hosts = slices.Compact(hosts); !slices.Equal(hosts, test.want) {
			t.Errorf("%v stands behind %q, not %q", test.at, hosts, test.want)
		}
		for range b.Snapshot().ServedAt("another", test.at) {
			t.Errorf("%v is found in another namespace", test.at)
		}
	}
}

// A workload with two addresses is found by either, and by neither once it is gone or has
// another one.
func TestWorkloadIsFoundByEachOfItsAddresses(t *testing.T) {
	t.Parallel()
	b := catalog.NewBuilder(order)
	at := func(also ...string) model.Record {
		r := endpoint("a", "s/1", "10.0.0.1", 1)
		spec, _ := r.Spec.(model.Endpoint)
		spec.Also = model.ListOf(also...)
		r.Spec = spec
		return r
	}
	found := func() (list []string) {
		for _, address := range []string{"10.0.0.1", "fd00::1", "fd00::2"} {
			for range b.Snapshot().ServedAt(at().Namespace, catalog.WorkloadAddress{Address: address}) {
				list = append(list, address)
			}
		}
		return list
	}
	for i, step := range []struct {
		events []model.Event
		want   []string
	}{
		{upserts(service("a", "s", "s.example"), at("FD00::1", "10.0.0.1")), []string{"10.0.0.1", "fd00::1"}},
		{upserts(at("fd00::2")), []string{"10.0.0.1", "fd00::2"}},
		{upserts(at()), []string{"10.0.0.1"}},
		{upserts(at("fd00::1")), []string{"10.0.0.1", "fd00::1"}},
		{[]model.Event{model.Delete{Record: at("fd00::1")}}, nil},
	} {
		b.Apply(uint64(i+1), step.events)
		if got := found(); !slices.Equal(got, step.want) {
			t.Errorf("step %d: it is found at %q, not %q", i, got, step.want)
		}
	}
}

// BenchmarkServedAt finds what one of 470,000 workloads serves.
func BenchmarkServedAt(b *testing.B) {
	sizes := tail(manyServices, manyEndpoints)
	snapshot := grown(sizes...).Snapshot()
	last := sizes[0] - 1 // whose address no other service has
	at := catalog.WorkloadAddress{Address: fmt.Sprintf("10.%d.%d.%d", last>>16, last>>8&255, last&255)}
	namespace := ref(model.KindService, "a", "s").Namespace
	b.ReportAllocs()
	found := 0
	for b.Loop() {
		for range snapshot.ServedAt(namespace, at) {
			found++
		}
	}
	if found == 0 {
		b.Fatal("nobody is there")
	}
}
