package xds_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/stats"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output/envoy"
	"github.com/isthmus-mesh/isthmus/output/envoy/policy"
	"github.com/isthmus-mesh/isthmus/test/testkit/until"
	"github.com/isthmus-mesh/isthmus/test/testkit/xdsclient"
)

// wireBytes counts the bytes of responses as they come over the wire.
type wireBytes struct{ bytes atomic.Int64 }

func (*wireBytes) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context   { return ctx }
func (*wireBytes) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }
func (*wireBytes) HandleConn(context.Context, stats.ConnStats)                       {}
func (c *wireBytes) HandleRPC(_ context.Context, s stats.RPCStats) {
	if in, ok := s.(*stats.InPayload); ok {
		c.bytes.Add(int64(in.WireLength))
	}
}

// ofMany is one of many services with requests at port 80.
func ofMany(i int) model.Record {
	host := fmt.Sprintf("service-%d.ns-%d.svc.cluster.local", i, i%500)
	return model.Record{
		Ref: model.Ref{Kind: model.KindService, Key: model.Key{Source: "s", Namespace: fmt.Sprintf("ns-%d", i%500), Name: host}},
		Spec: model.Service{
			Hosts: model.ListOf(host), Resolution: model.ResolutionStatic, Addresses: model.ListOf(fmt.Sprintf("10.%d.%d.%d", i>>16, i>>8&255, i&255)),
			Ports: model.ListOf(model.Port{Number: 80, Name: "http", Protocol: "HTTP"}),
		},
	}
}

// virtualHosts is the type of single hosts.
const virtualHosts = "type.googleapis.com/envoy.config.route.v3.VirtualHost"

// One service more at a large port is one virtual host for a client that takes them one by
// one.
func TestServiceAtALargePortIsAFewBytes(t *testing.T) {
	const services, most = 2000, 1000
	r, client, counts := hostsOfMany(t, services)
	all := counts.bytes.Load()
	r.apply(model.Upsert{Record: ofMany(services)})
	awaitSingle(client, services+1)
	if got := counts.bytes.Load() - all; got > most {
		t.Errorf("one service more is %d bytes", got)
	}
	r.apply(model.Delete{Record: ofMany(7)})
	awaitSingle(client, services)
}

// One service more for an edge on delta streams is a cluster and a virtual host.
func TestServiceAtAnEdgeIsAFewBytes(t *testing.T) {
	const services, most = 7500, 10_000
	settings := envoy.NewTranslator()
	settings.Edge.Ports = []policy.EdgePort{{Number: 8080, Protocol: "HTTP", Hosts: []string{"*"}}}
	r, client, counts := rigOf(t, settings, "router~10.9.9.9~it.ns-7~ns-7.svc.cluster.local", services, true)
	client.Subscribe(cds, "*")
	client.Subscribe(lds, "*")
	client.Subscribe(rds, "http.8080.hosts")
	client.Subscribe(virtualHosts, "*")
	awaitSingle(client, services)
	client.Await("a listener that leads to single hosts", func(s *xdsclient.State) bool {
		l, _ := s.Get(lds, "0.0.0.0_8080")
		return strings.Contains(fmt.Sprint(l.Content), "http.8080.hosts")
	})
	client.Await("all clusters", func(s *xdsclient.State) bool { return len(s.Names(cds)) >= services })
	all := counts.bytes.Load()
	r.apply(model.Upsert{Record: ofMany(services)})
	awaitSingle(client, services+1)
	client.Await("its cluster", func(s *xdsclient.State) bool { return len(s.Names(cds)) >= services+1 })
	if got := counts.bytes.Load() - all; got > most {
		t.Errorf("one service more is %d bytes", got)
	}
	r.apply(model.Delete{Record: ofMany(7)})
	awaitSingle(client, services)
}

// hostsOfMany is as portOfMany, with the hosts one by one.
func hostsOfMany(t xdsclient.TB, services int) (*rig, *xdsclient.Client, *wireBytes) {
	r, client, counts := rigOfMany(t, services, true)
	client.Subscribe(rds, "80.hosts")
	client.Subscribe(virtualHosts, "*")
	awaitSingle(client, services)
	return r, client, counts
}

func awaitSingle(c *xdsclient.Client, services int) {
	c.Await(fmt.Sprintf("%d hosts", services), func(s *xdsclient.State) bool { return len(s.Names(virtualHosts)) == services })
}

// portOfMany connects a sidecar to a rig with many services at port 80, and awaits
// their routes.
func portOfMany(t xdsclient.TB, services int, delta bool) (*rig, *xdsclient.Client, *wireBytes) {
	r, client, counts := rigOfMany(t, services, delta)
	client.Subscribe(rds, "80")
	awaitHosts(client, services)
	return r, client, counts
}

// rigOfMany connects a sidecar to a rig with many services at port 80.
func rigOfMany(t xdsclient.TB, services int, delta bool) (*rig, *xdsclient.Client, *wireBytes) {
	return rigOf(t, envoy.NewTranslator(), "sidecar~10.9.9.9~it.ns-7~ns-7.svc.cluster.local", services, delta)
}

// rigOf is the same with settings, for any Envoy.
func rigOf(t xdsclient.TB, settings *envoy.Translator, id string, services int, delta bool) (*rig, *xdsclient.Client, *wireBytes) {
	r := newRig(t, setup{sources: []string{"s"}})
	r.step = settings.Begin(nil)
	var events []model.Event
	for i := range services {
		events = append(events, model.Upsert{Record: ofMany(i)})
	}
	r.apply(events...)
	counts := &wireBytes{}
	node := xdsclient.Node(id, "ns-7", "envoy")
	node.UserAgentVersionType = &corev3.Node_UserAgentBuildVersion{UserAgentBuildVersion: &corev3.BuildVersion{Version: &typev3.SemanticVersion{MajorNumber: 1, MinorNumber: 40}}}
	config := xdsclient.Config{
		Node: node, Ledger: r.ledger, Deadline: until.Patience,
	}
	conn := r.dial(grpc.WithStatsHandler(counts), grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(1<<28)))
	connect := xdsclient.NewSotW
	if delta {
		connect = xdsclient.NewDelta
	}
	return r, connect(t, conn, config), counts
}

// awaitHosts waits until the routes of port 80 lead to that many services.
func awaitHosts(c *xdsclient.Client, services int) {
	c.Await(fmt.Sprintf("routes to %d services", services), func(s *xdsclient.State) bool {
		is, _ := s.Get(rds, "80")
		m, _ := is.Content.(*routev3.RouteConfiguration)
		return len(m.GetVirtualHosts()) == services+1
	})
}

// A route configuration in pieces reaches clients of either variant whole.
func TestRoutesInPiecesReachClients(t *testing.T) {
	for _, delta := range []bool{false, true} {
		r, client, _ := portOfMany(t, 700, delta)
		r.apply(model.Upsert{Record: ofMany(700)})
		awaitHosts(client, 701)
		r.apply(model.Delete{Record: ofMany(3)})
		awaitHosts(client, 700)
		client.Read(func(s *xdsclient.State) {
			is, _ := s.Get(rds, "80")
			m, _ := is.Content.(*routev3.RouteConfiguration)
			own := 0
			for _, host := range m.GetVirtualHosts() {
				for _, domain := range host.GetDomains() {
					if domain == "service-7" || domain == "service-507" {
						own++
					}
				}
			}
			if own != 2 {
				t.Errorf("%d services of the client's own namespace have their bare names, not 2", own)
			}
		})
		client.Close()
	}
}

// BenchmarkAddedService measures what a client receives when one more service comes to
// a port of many.
func BenchmarkAddedService(b *testing.B) {
	for _, services := range []int{500, 28_000} {
		b.Run(fmt.Sprintf("%d-services", services), func(b *testing.B) {
			r, client, counts := portOfMany(b, services, true)
			before, added := counts.bytes.Load(), services
			for b.Loop() {
				r.apply(model.Upsert{Record: ofMany(added)})
				added++
				awaitHosts(client, added)
			}
			b.ReportMetric(float64(counts.bytes.Load()-before)/float64(added-services), "bytes/service")
		})
	}
}

// BenchmarkAddedSingleHost is the same for a client that takes hosts one by one.
func BenchmarkAddedSingleHost(b *testing.B) {
	const services = 28_000
	r, client, counts := hostsOfMany(b, services)
	before, added := counts.bytes.Load(), services
	for b.Loop() {
		r.apply(model.Upsert{Record: ofMany(added)})
		added++
		awaitSingle(client, added)
	}
	b.ReportMetric(float64(counts.bytes.Load()-before)/float64(added-services), "bytes/service")
}
