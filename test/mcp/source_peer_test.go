package mcp_test

import (
	"context"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	mcp "istio.io/api/mcp/v1alpha1"
	networking "istio.io/api/networking/v1alpha3"
)

const (
	entries   = "istio/networking/v1alpha3/serviceentries"
	synthetic = "istio/networking/v1alpha3/synthetic/serviceentries"
	trigger   = "$triggerCollection"
)

// stream is one between the peer and Isthmus, seen from the peer.
type stream struct {
	t    *testing.T
	wire interface {
		Send(*mcp.Resources) error
		Recv() (*mcp.RequestResources, error)
	}
	end   context.CancelFunc
	nonce int
	first map[string]*mcp.RequestResources // by collection
}

// dialled is a peer that Isthmus dials.
type dialled struct {
	mcp.UnimplementedResourceSourceServer
	address string
	streams chan *stream
	t       *testing.T
	server  *grpc.Server
}

// EstablishResourceStream implements the service.
func (d *dialled) EstablishResourceStream(wire mcp.ResourceSource_EstablishResourceStreamServer) error {
	ctx, end := context.WithCancel(wire.Context())
	defer end()
	select {
	case d.streams <- &stream{t: d.t, wire: wire, end: end, first: map[string]*mcp.RequestResources{}}:
		<-ctx.Done()
	case <-ctx.Done():
	}
	return nil
}

// listen starts a peer that Isthmus dials.
func listen(t *testing.T) *dialled {
	t.Helper()
	d := &dialled{t: t, address: freeAddress(t), streams: make(chan *stream)}
	d.start()
	t.Cleanup(func() { d.server.Stop() })
	return d
}

// start starts it, again after it was stopped.
func (d *dialled) start() {
	d.t.Helper()
	var l net.Listener
	await(d.t, "the address to be free: a process that is being started has a copy of what was open", func() (err error) {
		l, err = net.Listen("tcp", d.address)
		return err
	})
	d.server = grpc.NewServer()
	mcp.RegisterResourceSourceServer(d.server, d)
	server := d.server
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(l) })
	d.t.Cleanup(serving.Wait)
	d.t.Cleanup(server.Stop)
}

// accept is the next stream, when its collections have been asked for.
func (d *dialled) accept(collections int) *stream {
	d.t.Helper()
	s := <-d.streams
	s.asked(collections)
	return s
}

// dial opens a stream to an Isthmus that listens, as Galley does.
func dial(t *testing.T, address string, collections int) *stream {
	t.Helper()
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	end := func() { cancel(); _ = conn.Close() }
	t.Cleanup(end)
	var wire mcp.ResourceSink_EstablishResourceStreamClient
	await(t, "isthmus to listen", func() error {
		wire, err = mcp.NewResourceSinkClient(conn).EstablishResourceStream(ctx)
		return err
	})
	s := &stream{t: t, wire: wire, end: end, first: map[string]*mcp.RequestResources{}}
	if err := wire.Send(&mcp.Resources{Collection: trigger}); err != nil {
		t.Fatal(err)
	}
	s.asked(collections)
	q := s.receive()
	if q.GetCollection() != trigger || q.GetErrorDetail().GetCode() != int32(codes.Unimplemented) {
		t.Errorf("the trigger is answered by %v", q)
	}
	return s
}

func (s *stream) receive() *mcp.RequestResources {
	s.t.Helper()
	q, err := s.wire.Recv()
	if err != nil {
		s.t.Fatal(err)
	}
	return q
}

func (s *stream) asked(collections int) {
	s.t.Helper()
	for range collections {
		q := s.receive()
		s.first[q.GetCollection()] = q
	}
}

// send sends an answer, and expects an ACK, or a NACK with a code.
func (s *stream) send(a *mcp.Resources, code codes.Code) {
	s.t.Helper()
	s.nonce++
	a.Nonce = strconv.Itoa(s.nonce)
	if err := s.wire.Send(a); err != nil {
		s.t.Fatal(err)
	}
	q := s.receive()
	if q.GetCollection() != a.GetCollection() || q.GetResponseNonce() != a.GetNonce() || q.GetErrorDetail().GetCode() != int32(code) {
		s.t.Errorf("answer %s of %s is answered by %v, want code %v", a.GetNonce(), a.GetCollection(), q, code)
	}
}

func (s *stream) full(collection string, resources ...*mcp.Resource) {
	s.t.Helper()
	s.send(&mcp.Resources{Collection: collection, Resources: resources}, codes.OK)
}

// entry is a resource that is a ServiceEntry with endpoints.
func entry(t *testing.T, name, version string, addresses ...string) *mcp.Resource {
	t.Helper()
	_, host, _ := strings.Cut(name, "/")
	spec := &networking.ServiceEntry{
		Hosts: []string{host + ".example"}, Resolution: networking.ServiceEntry_STATIC,
		Ports: []*networking.ServicePort{{Number: 80, Name: "http", Protocol: "HTTP"}},
	}
	for _, a := range addresses {
		spec.Endpoints = append(spec.Endpoints, &networking.WorkloadEntry{Address: a})
	}
	return resource(t, name, version, spec)
}

func resource(t *testing.T, name, version string, spec proto.Message) *mcp.Resource {
	t.Helper()
	body, err := anypb.New(spec)
	if err != nil {
		t.Fatal(err)
	}
	return &mcp.Resource{Metadata: &mcp.Metadata{Name: name, Version: version}, Body: body}
}
