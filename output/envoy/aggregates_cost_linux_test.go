package envoy

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output/envoy/policy"
	"github.com/isthmus-mesh/isthmus/output/envoy/reach"
	"github.com/isthmus-mesh/isthmus/push/world"
)

// BenchmarkAggregates measures what one service more costs where all services are sent
// whole: to put together the resource for Envoys of some namespaces, and how long it is.
func BenchmarkAggregates(b *testing.B) {
	const services = 28_000
	for _, of := range []struct {
		name, role, resource string
		row                  world.Row
		port                 model.Port
	}{
		{"edge-routes", "router", "http.80", RouteType, model.Port{Number: 80, Name: "http", Protocol: "HTTP"}},
		{"edge-handshakes", "router", "0.0.0.0_443", ListenerType, model.Port{Number: 443, Name: "tls", Protocol: "TLS"}},
		{"sidecar-handshakes", "sidecar", "0.0.0.0_443", ListenerType, model.Port{Number: 443, Name: "tls", Protocol: "TLS"}},
	} {
		for _, namespaces := range []int{1, 10} {
			b.Run(fmt.Sprintf("%s/%d-namespaces", of.name, namespaces), func(b *testing.B) {
				settings := NewTranslator()
				settings.Edge.Ports = []policy.EdgePort{{Number: 80, Protocol: policy.EdgeHTTP, Hosts: []string{"*"}}, {Number: 443, Protocol: policy.EdgeTLS, Hosts: []string{"*"}}}
				builder, step := catalog.NewBuilder([]string{"s"}), settings.Begin(nil)
				var events []model.Event
				for i := range services {
					events = append(events, model.Upsert{Record: withPort(i, of.port)})
				}
				change := builder.Apply(1, events)
				step(builder.Snapshot(), change, true, "root")
				revision, size, before := uint64(1), 0, used(b)
				for b.Loop() {
					revision++
					event := model.Event(model.Upsert{Record: withPort(services, of.port)})
					if revision%2 == 1 {
						event = model.Delete{Record: withPort(services, of.port)}
					}
					change := builder.Apply(revision, []model.Event{event})
					w := step(builder.Snapshot(), change, true, "root").World
					for n := range namespaces {
						size = encodedFor(b, w, sharedName{of.row, of.resource}, world.Client{
							Kind: reach.KindEnvoy, Namespace: fmt.Sprintf("ns-%d", n), Proxy: world.Proxy{Role: of.role}, Addresses: []string{"10.9.9.9"},
						})
					}
				}
				b.ReportMetric(float64(size), "bytes")
				b.ReportMetric((used(b)-before).Seconds()*1e3/float64(b.N), "cpu-ms/op")
			})
		}
	}
}

// used is the processor time of this process.
func used(tb testing.TB) time.Duration {
	tb.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// encodedFor is how long a resource of a client is.
func encodedFor(tb testing.TB, w world.World, of sharedName, c world.Client) int {
	tb.Helper()
	subject, ok := w.Find(w.View(of.row, c), of.row, of.name)
	if !ok {
		tb.Fatalf("there is no %s", of.name)
	}
	e := subject.Encode()
	return e.Size()
}

// withPort is one of many services, without an address of its own.
func withPort(i int, port model.Port) model.Record {
	host := fmt.Sprintf("service-%d.ns-%d.svc.cluster.local", i, i%500)
	return model.Record{
		Ref:  model.Ref{Kind: model.KindService, Key: model.Key{Source: "s", Namespace: fmt.Sprintf("ns-%d", i%500), Name: host}},
		Spec: model.Service{Hosts: model.ListOf(host), Resolution: model.ResolutionStatic, Ports: model.ListOf(port)},
	}
}
