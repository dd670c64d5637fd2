package mcp_test

import (
	"context"
	"errors"
	"maps"
	"net"
	"slices"
	"strconv"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	mcpapi "istio.io/api/mcp/v1alpha1"

	"github.com/isthmus-mesh/isthmus/internal/mcp"
)

// peer is a source that keeps the rules: one answer of a collection in flight, the
// newest state behind it, and increments to who wants them.
type peer struct {
	mcp.UnimplementedResourceSourceServer
	listener *bufconn.Listener
	server   *grpc.Server

	mu          sync.Mutex
	collections map[string]map[string]*mcpapi.Resource
	watches     map[*watch]bool
	fault       int  // none if negative
	forgetful   bool // has restarted since, and resumes nothing
	changed     chan struct{}
}

func newPeer() *peer {
	p := &peer{
		listener: bufconn.Listen(256 << 10), server: grpc.NewServer(), fault: -1,
		collections: map[string]map[string]*mcpapi.Resource{}, watches: map[*watch]bool{}, changed: make(chan struct{}),
	}
	mcp.RegisterResourceSourceServer(p.server, p)
	go func() { _ = p.server.Serve(p.listener) }()
	return p
}

// set changes what the peer has, and tells its streams.
func (p *peer) set(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
	close(p.changed)
	p.changed = make(chan struct{})
}

func (p *peer) dial(ctx context.Context, _ string) (net.Conn, error) {
	p.mu.Lock()
	fault := p.fault
	p.mu.Unlock()
	if fault == 1 {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}
	}
	return p.listener.DialContext(ctx)
}

// disconnect ends every stream.
func (p *peer) disconnect() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for w := range p.watches {
		w.end()
	}
}

// watch is one stream.
type watch struct {
	wire grpc.BidiStreamingServer[mcp.RequestResources, mcp.Resources]
	ctx  context.Context //nolint:containedctx // it is the stream's own
	end  context.CancelFunc
	by   map[string]*watched
}

// watched is a collection on a stream.
type watched struct {
	incremental bool
	known       map[string]string // versions at the sink; nil if that is not known
	sent        map[string]string
	pending     string // nonce
	nonce       int
	resends     bool // everything, once, since nothing is known
}

// EstablishResourceStream implements the service.
func (p *peer) EstablishResourceStream(wire grpc.BidiStreamingServer[mcp.RequestResources, mcp.Resources]) error {
	ctx, end := context.WithCancel(wire.Context())
	defer end()
	w := &watch{wire: wire, ctx: ctx, end: end, by: map[string]*watched{}}
	p.mu.Lock()
	p.watches[w] = true
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.watches, w)
	}()
	requests := make(chan *mcp.RequestResources)
	go func() {
		defer close(requests)
		for {
			q, err := wire.Recv()
			if err != nil {
				return
			}
			select {
			case requests <- q:
			case <-ctx.Done():
				return
			}
		}
	}()
	for {
		p.mu.Lock()
		changed, fault := p.changed, p.fault
		p.mu.Unlock()
		if fault == 0 {
			return status.Error(codes.Unavailable, "out of order")
		}
		if err := p.push(w); err != nil {
			return err
		}
		select {
		case q, open := <-requests:
			if !open {
				return nil
			}
			p.take(w, q)
		case <-changed:
		case <-ctx.Done():
			return status.Error(codes.Canceled, "disconnected")
		}
	}
}

// take takes a request.
func (p *peer) take(w *watch, q *mcp.RequestResources) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := w.by[q.GetCollection()]
	switch {
	case c == nil:
		c = &watched{incremental: q.GetIncremental(), resends: true}
		if c.incremental && !p.forgetful && len(q.GetInitialResourceVersions()) > 0 {
			c.known, c.resends = maps.Clone(q.GetInitialResourceVersions()), true
		}
		w.by[q.GetCollection()] = c
	case c.pending != "" && c.pending == q.GetResponseNonce():
		c.pending, c.known = "", c.sent
		if q.GetErrorDetail() != nil {
			c.known = nil
		}
	}
}

// push sends what has changed of every collection of which nothing is in flight.
func (p *peer) push(w *watch) error {
	for _, name := range slices.Sorted(maps.Keys(w.by)) {
		if a := p.next(w, name, w.by[name]); a != nil {
			if err := w.wire.Send(a); err != nil {
				return err
			}
		}
	}
	return nil
}

func (p *peer) next(w *watch, name string, c *watched) *mcp.Resources {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c.pending != "" || p.fault >= 0 || w.ctx.Err() != nil {
		return nil
	}
	versions := map[string]string{}
	for n, r := range p.collections[name] {
		versions[n] = r.GetMetadata().GetVersion()
	}
	if !c.resends && maps.Equal(versions, c.known) {
		return nil
	}
	a := &mcp.Resources{Collection: name, Incremental: c.incremental && c.known != nil}
	for n, r := range p.collections[name] {
		if !a.Incremental || c.known[n] != versions[n] {
			a.Resources = append(a.Resources, r)
		}
	}
	for n := range c.known {
		if _, has := versions[n]; a.Incremental && !has {
			a.RemovedResources = append(a.RemovedResources, n)
		}
	}
	c.nonce++
	c.pending, c.sent, c.resends = strconv.Itoa(c.nonce), versions, false
	a.Nonce = c.pending
	return a
}
