package envoy_test

import (
	"context"
	"net"
	"strconv"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/anypb"
	mcpapi "istio.io/api/mcp/v1alpha1"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/isthmus-mesh/isthmus/internal/mcp"
)

// serviceEntries is the collection in which a registry has its services. It sends every
// other collection at once, and empty.
const serviceEntries = "istio/networking/v1alpha3/serviceentries"

// registry is a source of MCP v1 that Isthmus dials. It may be used from any goroutine.
type registry struct {
	mcp.UnimplementedResourceSourceServer

	Address string

	mu        sync.Mutex
	resources []*mcpapi.Resource
	asked     int           // streams on which services were requested
	sent      int           // responses with services
	nacked    int           // of these
	changed   chan struct{} // closed at each change of the resources
	sends     chan struct{} // closed unless services are kept back
}

// startRegistry starts a registry without services. It serves until the test ends.
func startRegistry(t *testing.T) *registry {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &registry{Address: listener.Addr().String(), changed: make(chan struct{}), sends: make(chan struct{})}
	close(r.sends)
	server := grpc.NewServer()
	mcp.RegisterResourceSourceServer(server, r)
	var served sync.WaitGroup
	served.Go(func() { _ = server.Serve(listener) })
	t.Cleanup(func() { server.Stop(); served.Wait() })
	return r
}

// Publish replaces all services.
func (r *registry) Publish(resources ...*mcpapi.Resource) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.resources = resources
	close(r.changed)
	r.changed = make(chan struct{})
}

// KeepBack has the registry send no services on later streams until it is told to.
func (r *registry) KeepBack() (send func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	sends := make(chan struct{})
	r.sends = sends
	return func() { close(sends) }
}

// Asked counts the streams on which services were requested.
func (r *registry) Asked() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.asked
}

// NACKed counts the responses with services that were NACKed.
func (r *registry) NACKed() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.nacked
}

// EstablishResourceStream implements the service.
func (r *registry) EstablishResourceStream(wire grpc.BidiStreamingServer[mcp.RequestResources, mcp.Resources]) error {
	ctx, end := context.WithCancel(wire.Context())
	defer end()
	requests := make(chan *mcp.RequestResources)
	go func() {
		defer end()
		for {
			request, err := wire.Recv()
			if err != nil {
				return
			}
			select {
			case requests <- request:
			case <-ctx.Done():
				return
			}
		}
	}()
	return r.serve(ctx, wire, requests)
}

// serve waits for
//   - a request, of which the first for a collection is answered,
//   - services to be sent no longer kept back,
//   - a change of the services, once they were sent,
//   - the end of the stream.
func (r *registry) serve(ctx context.Context, wire grpc.BidiStreamingServer[mcp.RequestResources, mcp.Resources], requests <-chan *mcp.RequestResources) error {
	var due, changed <-chan struct{}
	for {
		select {
		case request := <-requests:
			switch {
			case request.GetErrorDetail() != nil:
				r.noteNACK(request.GetCollection())
			case request.GetResponseNonce() != "":
			case request.GetCollection() == serviceEntries:
				due = r.begin()
			default:
				if err := wire.Send(&mcp.Resources{Collection: request.GetCollection(), Nonce: "empty"}); err != nil {
					return err
				}
			}
			continue
		case <-due:
			due = nil
		case <-changed:
		case <-ctx.Done():
			return nil
		}
		var response *mcp.Resources
		response, changed = r.next()
		if err := wire.Send(response); err != nil {
			return err
		}
	}
}

// begin notes a request for services, and returns what is closed once they may be sent.
func (r *registry) begin() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked++
	return r.sends
}

// next is the response with all services, and what is closed once they change.
func (r *registry) next() (*mcp.Resources, <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sent++
	return &mcp.Resources{Collection: serviceEntries, Nonce: strconv.Itoa(r.sent), Resources: r.resources}, r.changed
}

func (r *registry) noteNACK(collection string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if collection == serviceEntries {
		r.nacked++
	}
}

// carried is a service of HTTP as MCP carries it, in the namespace of the Envoys.
func carried(t *testing.T, host string, endpoints ...endpoint) *mcpapi.Resource {
	t.Helper()
	spec := &networking.ServiceEntry{
		Hosts: []string{host}, Resolution: networking.ServiceEntry_STATIC,
		Ports: []*networking.ServicePort{{Number: 80, Name: "http", Protocol: "HTTP"}},
	}
	for _, e := range endpoints {
		spec.Endpoints = append(spec.Endpoints, &networking.WorkloadEntry{Address: e.Address, Ports: e.Ports})
	}
	body, err := anypb.New(spec)
	if err != nil {
		t.Fatal(err)
	}
	return &mcpapi.Resource{Metadata: &mcpapi.Metadata{Name: shop + "/" + nameOf(host)}, Body: body}
}
