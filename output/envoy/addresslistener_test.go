package envoy

import (
	"fmt"
	"net/netip"
	"runtime"
	"testing"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/push/world"
)

// webAndData is a service of HTTP and TCP with an address of its own.
func webAndData(i int) model.Event {
	host := fmt.Sprintf("service-%d.ns-%d.svc.cluster.local", i, i%500)
	return model.Upsert{Record: model.Record{
		Ref: model.Ref{Kind: model.KindService, Key: model.Key{Source: "s", Namespace: fmt.Sprintf("ns-%d", i%500), Name: host}},
		Spec: model.Service{
			Hosts: model.ListOf(host), Resolution: model.ResolutionStatic,
			Addresses: model.ListOf(netip.AddrFrom4([4]byte{10, 200, byte(i >> 8), byte(i)}).String()),
			Ports:     model.ListOf(model.Port{Number: 80, Name: "http", Protocol: "HTTP"}, model.Port{Number: 9000, Name: "tcp", Protocol: "TCP"}),
		},
	}}
}

// sentTo makes what sidecars of some namespaces are sent, each resource once for all views
// that share it.
func sentTo(w world.World, namespaces int) map[any]world.Encoded {
	sent := map[any]world.Encoded{}
	for i := range namespaces {
		for _, r := range []world.Row{ListenerType, RouteType} {
			view := w.View(r, sidecarIn(fmt.Sprintf("ns-%d", i)))
			for name := range w.Names(view, r) {
				subject, ok := w.Find(view, r, name)
				if !ok {
					continue
				}
				if slot := subject.Slot(); sent[slot].Name == "" {
					sent[slot] = subject.Encode()
				}
			}
		}
	}
	return sent
}

// memoryOfViews is what a catalog of services of HTTP and TCP takes with all that sidecars
// of some namespaces are sent of listeners and routes.
func memoryOfViews(services, namespaces int) (bytes uint64, resources int) {
	empty := heap()
	c := combined(many(services, webAndData))
	sent := sentTo(c.publish(), namespaces)
	bytes = heap() - empty
	runtime.KeepAlive(sent)
	runtime.KeepAlive(c)
	return bytes, len(sent)
}

// Sidecars of all namespaces share the listeners of addresses that say the same to them.
func TestManyNamespacesShareTheirListeners(t *testing.T) {
	const services, namespaces = 1000, 50
	one, resources := memoryOfViews(services, 1)
	all, more := memoryOfViews(services, namespaces)
	if all > 2*one {
		t.Errorf("%.1f MB with one namespace, and %.1f MB with %d", mega(one), mega(all), namespaces)
	}
	if each := (more - resources) / (namespaces - 1); each > 10 {
		t.Errorf("each further namespace has %d resources of its own", each)
	}
}

// A listener depends on who looks where that decides which services it leads to: by what
// they are exported to, by handshakes that are distinguished by SNI, and by age.
func TestListenersOfAddressesAreThoseOfTheirServices(t *testing.T) {
	service := func(name, protocol, exportTo string) model.Event {
		e := asking("n", 0, 1, 1, 1, protocol).(model.Upsert) //nolint:forcetypeassert // it is one
		spec := e.Record.Spec.(model.Service)                 //nolint:forcetypeassert // it is one
		spec.Hosts, spec.ExportTo = model.ListOf(name+".com"), model.ListOf(exportTo)
		e.Record.Name, e.Record.Spec = name, spec
		return e
	}
	for name, test := range map[string]struct {
		events []model.Event
		shared bool // by namespaces a and b
	}{
		"the same":              {[]model.Event{service("a", "TCP", "*")}, true},
		"two of TLS":            {[]model.Event{service("a", "TLS", "*"), service("b", "TLS", "*")}, true},
		"one that b sees alone": {[]model.Event{service("a", "TCP", "b"), service("b", "TCP", "*")}, false},
		"handshakes of b":       {[]model.Event{service("a", "TLS", "*"), service("b", "TLS", "b")}, false},
		"no difference":         {[]model.Event{service("a", "TCP", "*"), service("b", "TCP", "b")}, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := combined(test.events).publish()
			find := func(namespace string) world.Subject {
				subject, ok := w.Find(w.View(ListenerType, sidecarIn(namespace)), ListenerType, "10.1.0.0_1000")
				if !ok {
					t.Fatal("there is no listener")
				}
				return subject
			}
			a, b := find("a"), find("b")
			if same := a == b && a.Slot() == b.Slot(); same != test.shared {
				t.Errorf("shared: %t\n%+v\n%+v", same, a, b)
			}
			if first, second := a.Encode(), b.Encode(); (first.Version == second.Version) != test.shared {
				t.Errorf("the versions are %v and %v", first.Version, second.Version)
			}
		})
	}
}

// BenchmarkMemoryOfViews measures what a catalog takes with what sidecars of many namespaces
// are sent of listeners and routes.
func BenchmarkMemoryOfViews(b *testing.B) {
	for _, of := range []struct{ services, namespaces int }{{2_000, 1}, {2_000, 200}, {10_000, 1}, {10_000, 50}, {10_000, 500}} {
		b.Run(fmt.Sprintf("%d-services/%d-namespaces", of.services, of.namespaces), func(b *testing.B) {
			bytes, resources := uint64(0), 0
			for b.Loop() {
				bytes, resources = memoryOfViews(of.services, of.namespaces)
			}
			b.ReportMetric(mega(bytes), "MB")
			b.ReportMetric(float64(resources), "resources")
		})
	}
}
