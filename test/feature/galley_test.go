package feature_test

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/anypb"
	mcpapi "istio.io/api/mcp/v1alpha1"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/isthmus-mesh/isthmus/internal/mcp"
	"github.com/isthmus-mesh/isthmus/test/testkit/until"
)

// galley is a source of MCP v1 that serves synthetic ServiceEntries, as a registry's
// bridge does. Isthmus dials it.
type galley struct {
	mcp.UnimplementedResourceSourceServer
	t       *testing.T
	address string
	streams chan grpc.BidiStreamingServer[mcp.RequestResources, mcp.Resources]
	wire    grpc.BidiStreamingServer[mcp.RequestResources, mcp.Resources]
	nonce   int
}

// newGalley starts one, until the test ends.
func newGalley(t *testing.T) *galley {
	t.Helper()
	l, err := net.Listen("tcp", loopback)
	if err != nil {
		t.Fatal(err)
	}
	g := &galley{t: t, address: l.Addr().String(), streams: make(chan grpc.BidiStreamingServer[mcp.RequestResources, mcp.Resources])}
	server := grpc.NewServer()
	mcp.RegisterResourceSourceServer(server, g)
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(l) })
	t.Cleanup(serving.Wait)
	t.Cleanup(server.Stop)
	return g
}

// EstablishResourceStream hands the stream to the test.
func (g *galley) EstablishResourceStream(wire grpc.BidiStreamingServer[mcp.RequestResources, mcp.Resources]) error {
	select {
	case g.streams <- wire:
		<-wire.Context().Done()
	case <-wire.Context().Done():
	}
	return nil
}

// start starts an Isthmus that reads it, and has answered its first request.
func (g *galley) start(state ...*mcpapi.Resource) *isthmus {
	g.t.Helper()
	i := startWith(g.t, fmt.Sprintf("sources:\n- name: galley\n  required: true\n  mcp: {address: %q, incremental: true, collections: [%s]}\noutputs:\n  xds: {listen: %q}\nadmin: {listen: %q}\n",
		g.address, mcp.Synthetic, loopback, loopback))
	ctx, cancel := context.WithTimeout(g.t.Context(), until.Patience)
	defer cancel()
	select {
	case g.wire = <-g.streams:
	case <-ctx.Done():
		g.t.Fatal("nobody has dialled the source")
	}
	if q, err := g.wire.Recv(); err != nil || q.GetCollection() != mcp.Synthetic {
		g.t.Fatalf("the first request is %v, %v", q, err)
	}
	g.full(state...)
	return i
}

// full sends a full state, which is ACKed.
func (g *galley) full(state ...*mcpapi.Resource) {
	g.t.Helper()
	g.send(&mcp.Resources{Collection: mcp.Synthetic, Resources: state})
}

// change sends an increment, which is ACKed.
func (g *galley) change(removed []string, changed ...*mcpapi.Resource) {
	g.t.Helper()
	g.send(&mcp.Resources{Collection: mcp.Synthetic, Incremental: true, Resources: changed, RemovedResources: removed})
}

func (g *galley) send(a *mcp.Resources) {
	g.t.Helper()
	g.nonce++
	a.Nonce = strconv.Itoa(g.nonce)
	if err := g.wire.Send(a); err != nil {
		g.t.Fatal(err)
	}
	if q, err := g.wire.Recv(); err != nil || q.GetResponseNonce() != a.GetNonce() || q.GetErrorDetail() != nil {
		g.t.Fatalf("answer %s is answered by %v, %v", a.GetNonce(), q, err)
	}
}

// synthetic is a ServiceEntry as a bridge makes it. All its versions follow from a
// revision, whether or not anything else has changed.
func synthetic(t *testing.T, name string, revision int, hosts, addresses []string) *mcpapi.Resource {
	t.Helper()
	spec := &networking.ServiceEntry{
		Hosts: hosts, Resolution: networking.ServiceEntry_STATIC, Ports: []*networking.ServicePort{{Number: 80, Name: "http", Protocol: "HTTP"}},
	}
	for _, a := range addresses {
		spec.Endpoints = append(spec.Endpoints, &networking.WorkloadEntry{Address: a})
	}
	body, err := anypb.New(spec)
	if err != nil {
		t.Fatal(err)
	}
	version := strconv.Itoa(revision)
	return &mcpapi.Resource{
		Metadata: &mcpapi.Metadata{
			Name: name, Version: version,
			Annotations: map[string]string{mcp.ServiceVersion: "service " + version, mcp.EndpointsVersion: "endpoints " + version},
		},
		Body: body,
	}
}

// of is a synthetic ServiceEntry of one host, which its name is not part of.
func (g *galley) of(namespace, name string, revision int, addresses ...string) *mcpapi.Resource {
	g.t.Helper()
	return synthetic(g.t, namespace+"/"+name+"-entry", revision, []string{name + ".example"}, addresses)
}
