package mcp_test

import (
	"bytes"
	"context"
	"iter"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	mcpapi "istio.io/api/mcp/v1alpha1"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/isthmus-mesh/isthmus/internal/budget"
	"github.com/isthmus-mesh/isthmus/internal/mcp"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source"
	sourcemcp "github.com/isthmus-mesh/isthmus/source/mcp"
	"github.com/isthmus-mesh/isthmus/source/supervise"
	"github.com/isthmus-mesh/isthmus/store"
)

const (
	entries    = "istio/networking/v1alpha3/serviceentries"
	synthetic  = mcp.Synthetic
	sidecars   = "istio/networking/v1alpha3/sidecars"
	workloads  = "istio/networking/v1alpha3/workloadentries"
	groups     = "istio/networking/v1alpha3/workloadgroups"
	destRules  = "istio/networking/v1alpha3/destinationrules"
	sourceName = "galley"
)

// rig is a peer and what mirrors it, in a time of its own. The peer does nothing but
// what the test has it do.
type rig struct {
	*testing.T
	listener *bufconn.Listener
	server   *grpc.Server
	streams  chan *stream
	store    *store.Memory
	log      *bytes.Buffer
	stops    []func()
	memory   *budget.Budget // nil is without bound
	muted    atomic.Bool    // connections are up, and nothing arrives on them
}

// stream is one between the peer and the sink, seen from the peer.
type stream struct {
	*rig
	wire interface {
		Send(*mcp.Resources) error
		Recv() (*mcp.RequestResources, error)
	}
	requests chan *mcp.RequestResources
	over     chan struct{}
	close    func()
	why      error       // the stream ends with
	mutes    atomic.Bool // no request is read any more
	nonce    int
}

// bubble runs a test in a time of its own.
func bubble(t *testing.T, test func(r *rig)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := &rig{T: t, streams: make(chan *stream, 8), store: store.NewMemory(store.Config{}), log: &bytes.Buffer{}}
		r.serve()
		defer func() {
			for _, stop := range r.stops {
				stop()
			}
			r.server.Stop()
		}()
		test(r)
	})
}

type served struct {
	mcp.UnimplementedResourceSourceServer
	*rig
}

// EstablishResourceStream hands the stream to the test.
func (s *served) EstablishResourceStream(wire grpc.BidiStreamingServer[mcp.RequestResources, mcp.Resources]) error {
	return s.open(wire).hold(wire.Context())
}

// serve starts the peer.
func (r *rig) serve() {
	r.listener, r.server = bufconn.Listen(1<<20), grpc.NewServer()
	mcp.RegisterResourceSourceServer(r.server, &served{rig: r})
	listener, server := r.listener, r.server
	go func() { _ = server.Serve(listener) }()
}

// open takes in a stream.
func (r *rig) open(wire interface {
	Send(*mcp.Resources) error
	Recv() (*mcp.RequestResources, error)
},
) *stream {
	s := &stream{rig: r, wire: wire, requests: make(chan *mcp.RequestResources, 64), over: make(chan struct{})}
	s.close = sync.OnceFunc(func() { close(s.over) })
	go func() {
		defer close(s.requests)
		for {
			request, err := wire.Recv()
			if err != nil {
				return
			}
			if s.mutes.Load() {
				<-s.over
				return
			}
			s.requests <- request
		}
	}()
	r.streams <- s
	return s
}

func (s *stream) hold(ctx context.Context) error {
	select {
	case <-s.over:
		return s.why
	case <-ctx.Done():
		s.close()
		return nil
	}
}

// fail ends the stream with an error.
func (s *stream) fail(why error) {
	s.why = why
	s.close()
}

// mirror is a source under its supervisor.
type mirror struct {
	*rig
	*supervise.Supervisor
	stop func()
}

func (r *rig) mirror(c sourcemcp.Config) *mirror {
	r.Helper()
	if c.Listen == "" {
		c.Address = "127.0.0.1:9901"
		c.DialWith(r.dial)
	}
	if err := c.Validate(); err != nil {
		r.Fatal(err)
	}
	log := slog.New(slog.NewTextHandler(r.log, nil))
	src := c.Open(source.Env{Instance: "here", Self: "here", Name: sourceName, Log: log, Stored: r.stored, Memory: r.memory})
	m := &mirror{rig: r, Supervisor: supervise.New(sourceName, src, r.store, supervise.Config{
		Kind: "mcp", Log: log, MaxBackoff: sourcemcp.Kind().MaxBackoff,
	})}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- m.Run(ctx) }()
	m.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			r.Error(err)
		}
	})
	r.stops = append(r.stops, m.stop)
	synctest.Wait()
	return m
}

func (r *rig) stored() iter.Seq[model.Record] {
	return r.store.List(model.Filter{Source: sourceName})
}

// pass lets time go by.
func (r *rig) pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// stream is the next that the sink opens.
func (r *rig) stream() *stream {
	r.Helper()
	select {
	case s := <-r.streams:
		synctest.Wait()
		return s
	case <-time.After(time.Minute):
		r.Fatal("the sink opens no stream")
		return nil
	}
}

// request is the next of a stream.
func (s *stream) request() *mcp.RequestResources {
	s.Helper()
	select {
	case q, ok := <-s.requests:
		if !ok {
			s.Fatal("the stream has ended")
		}
		return q
	case <-time.After(time.Minute):
		s.Fatal("there is no request")
		return nil
	}
}

// asked are the first requests of a stream, by collection.
func (s *stream) asked(n int) map[string]*mcp.RequestResources {
	s.Helper()
	all := map[string]*mcp.RequestResources{}
	for range n {
		q := s.request()
		if q.GetResponseNonce() != "" || q.GetErrorDetail() != nil {
			s.Errorf("a first request answers something: %v", q)
		}
		all[q.GetCollection()] = q
	}
	return all
}

// send sends an answer with a nonce of its own.
func (s *stream) send(a *mcp.Resources) (nonce string) {
	s.Helper()
	s.nonce++
	a.Nonce = string(rune('a'+s.nonce/26)) + string(rune('a'+s.nonce%26))
	if err := s.wire.Send(a); err != nil {
		s.Fatal(err)
	}
	synctest.Wait()
	return a.GetNonce()
}

// full sends all there is of a collection.
func (s *stream) full(collection string, resources ...*mcpapi.Resource) (nonce string) {
	s.Helper()
	return s.send(&mcp.Resources{Collection: collection, Resources: resources, SystemVersionInfo: "v"})
}

// acked expects the ACK of an answer.
func (s *stream) acked(nonce string) *mcp.RequestResources {
	s.Helper()
	q := s.request()
	if q.GetResponseNonce() != nonce || q.GetErrorDetail() != nil {
		s.Errorf("answered by %v, want an ACK of %s", q, nonce)
	}
	return q
}

// nacked expects the NACK of an answer.
func (s *stream) nacked(nonce string, code uint32, reason string) {
	s.Helper()
	q := s.request()
	if d := q.GetErrorDetail(); q.GetResponseNonce() != nonce || d.GetCode() != int32(code) || !strings.Contains(d.GetMessage(), reason) {
		s.Errorf("answered by %v, want a NACK of %s with code %d and %q", q, nonce, code, reason)
	}
}

// silent expects no request.
func (s *stream) silent() {
	s.Helper()
	synctest.Wait()
	select {
	case q, open := <-s.requests:
		if open {
			s.Errorf("there is a request: %v", q)
		}
	default:
	}
}

// entry is a resource that is a ServiceEntry with endpoints.
func entry(name, version string, addresses ...string) *mcpapi.Resource {
	_, host, _ := strings.Cut(name, "/")
	return entrySpec(name, version, host+".example", 80, addresses)
}

func entrySpec(name, version, host string, port uint32, addresses []string) *mcpapi.Resource {
	spec := &networking.ServiceEntry{
		Hosts: []string{host}, Resolution: networking.ServiceEntry_STATIC,
		Ports: []*networking.ServicePort{{Number: port, Name: "http", Protocol: "HTTP"}},
	}
	for _, a := range addresses {
		spec.Endpoints = append(spec.Endpoints, &networking.WorkloadEntry{Address: a, Ports: map[string]uint32{"http": port}})
	}
	return resource(name, version, spec)
}

func resource(name, version string, spec proto.Message) *mcpapi.Resource {
	body, err := anypb.New(spec)
	if err != nil {
		panic(err)
	}
	return &mcpapi.Resource{Metadata: &mcpapi.Metadata{Name: name, Version: version}, Body: body}
}

// garbage is a resource of which the body is nothing.
func garbage(name string) *mcpapi.Resource {
	r := entry(name, "x")
	r.Body.Value = []byte{0xff, 0xff}
	return r
}

// holds expects what is stored: services with their endpoints, and others by name.
func (r *rig) holds(want ...string) {
	r.Helper()
	synctest.Wait()
	var holds model.Holds
	for rec := range r.store.List(model.Filter{Kind: model.KindHold}) {
		holds.Add(rec)
	}
	var got []string
	for rec := range r.stored() {
		if rec.Kind.Reserved() {
			continue
		}
		text := string(rec.Kind) + " " + rec.Namespace + "/" + rec.Name
		if e, ok := rec.Spec.(model.Endpoint); ok && e.Health != model.Healthy {
			text += " " + string(e.Health)
		}
		if rec.Status.Stale != "" {
			text += " (stale)"
		}
		if _, held := holds.Of(rec.Ref, rec.Owner); held {
			text += " (held)"
		}
		got = append(got, text)
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		r.Errorf("stored:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// is checks the state of the source.
func (m *mirror) is(state source.State, reason string) {
	m.Helper()
	synctest.Wait()
	if s := m.Status(); s.State != state || !strings.Contains(s.Reason, reason) {
		m.Errorf("the source is %s: %s; want %s: %s", s.State, s.Reason, state, reason)
	}
}

// rejects checks what stands rejected: an object and a reason each.
func (m *mirror) rejects(want ...string) {
	m.Helper()
	synctest.Wait()
	rejected := m.Status().Rejected
	if len(rejected) != len(want)/2 {
		m.Fatalf("rejected are %v, want %q", rejected, want)
	}
	for i, f := range rejected {
		if f.Object != want[2*i] || !strings.Contains(f.Field+": "+f.Reason, want[2*i+1]) {
			m.Errorf("rejected is %+v, want %q: %q", f, want[2*i], want[2*i+1])
		}
	}
}

func many(resources ...*mcpapi.Resource) []*mcpapi.Resource { return resources }
