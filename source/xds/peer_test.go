package xds_test

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/isthmus-mesh/isthmus/convert/istio"
)

// manner is how a peer speaks.
type manner struct {
	noDelta     bool // it has no delta variant
	silentDelta bool // it takes delta requests, and never answers
	// failsDelta is what a delta stream ends with once it asks for ServiceEntries under
	// their older name; nil for none.
	failsDelta func(stream int) error
	repeats    bool     // it ignores what a client says it holds
	chunk      int      // resources in a delta answer at most; all if 0
	versions   []string // of the groups that it has resources of; all if nil
	unknown    []string // kinds and types it never answers for
	marks      bool     // it marks a first state, as an Isthmus does, for who asks
	noVersions bool     // its resources have none
	withholds  bool     // it never says that something is gone: it may have it yet
	// roundTrip is what a request and its answer take together, late what answers for
	// ServiceEntries take besides, and pause what comes between two answers for a type.
	roundTrip, late, pause time.Duration
	noPings                bool // it ends connections on which there is more than one in five minutes
	noWaypoints            bool // it takes nobody who says that it is one
}

// peer is a server of MCP-over-xDS that a test steers.
type peer struct {
	discoveryv3.UnimplementedAggregatedDiscoveryServiceServer
	manner
	mu        sync.Mutex // guards the rest
	resources map[string]map[string]*anypb.Any
	changed   chan struct{} // closed at the next change
	failing   error         // what every stream ends with
	garbage   bool          // what is sent is no message of the protocol
	requests  []request
	opened    int
	sent      map[string]int // resources, by stream and type
	over      int            // the streams up to this one end
	with      error          // so
	listener  *bufconn.Listener
	conns     []*gate
	away      bool
	muted     atomic.Bool // connections are up, and nothing arrives on them
	server    *grpc.Server
}

// request is one that a peer has got.
type request struct {
	stream           int
	delta            bool
	url, nonce, nack string
	held             map[string]string
	node             string
	metadata         map[string]string
}

func newPeer(m manner) *peer {
	p := &peer{manner: m, resources: map[string]map[string]*anypb.Any{}, changed: make(chan struct{}), sent: map[string]int{}}
	p.start()
	return p
}

func (p *peer) start() {
	p.listener = bufconn.Listen(64 << 10)
	policy := keepalive.EnforcementPolicy{MinTime: 5 * time.Second, PermitWithoutStream: true}
	if p.noPings {
		policy.MinTime = 5 * time.Minute
	}
	p.server = grpc.NewServer(grpc.WaitForHandlers(true), grpc.MaxRecvMsgSize(64<<20), grpc.KeepaliveEnforcementPolicy(policy))
	discoveryv3.RegisterAggregatedDiscoveryServiceServer(p.server, p)
	listener, server := p.listener, p.server
	go func() { _ = server.Serve(listener) }()
}

// close ends it, and returns when nothing of it is under way.
func (p *peer) close() {
	p.thaw()
	p.server.Stop()
	_ = p.listener.Close()
	time.Sleep(10 * time.Millisecond) // in a bubble nobody waits once its test has returned
}

// dial connects to it, which takes a moment: what happens at the very time at which a
// source starts has happened before it reads anything.
func (p *peer) dial(ctx context.Context, _ string) (net.Conn, error) {
	time.Sleep(time.Millisecond)
	p.mu.Lock()
	listener, away := p.listener, p.away
	p.mu.Unlock()
	if away {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}
	}
	c, err := listener.DialContext(ctx)
	if err != nil {
		return nil, err
	}
	g := &gate{Conn: mute{c, &p.muted}, open: make(chan struct{})}
	close(g.open)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.conns = append(p.conns, g)
	return g, nil
}

// gate is a connection on which nothing moves while it is frozen.
type gate struct {
	net.Conn
	mu   sync.Mutex
	open chan struct{}
	lost bool // it was closed while it was frozen, and what was under way is gone
}

func (g *gate) wait() error {
	g.mu.Lock()
	open := g.open
	g.mu.Unlock()
	<-open
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.lost {
		return net.ErrClosed
	}
	return nil
}

func (g *gate) Read(b []byte) (int, error) {
	n, err := g.Conn.Read(b)
	if lost := g.wait(); lost != nil {
		return 0, lost
	}
	return n, err
}

func (g *gate) Write(b []byte) (int, error) {
	if lost := g.wait(); lost != nil {
		return 0, lost
	}
	return g.Conn.Write(b)
}

func (g *gate) Close() error {
	g.mu.Lock()
	select {
	case <-g.open:
	default:
		g.lost = true
	}
	g.mu.Unlock()
	g.thaw()
	return g.Conn.Close()
}

func (g *gate) freeze() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.open = make(chan struct{})
}

func (g *gate) thaw() {
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-g.open:
	default:
		close(g.open)
	}
}

// mute is a connection that stays up, and on which nothing arrives in either direction once it is mute.
type mute struct {
	net.Conn
	is *atomic.Bool
}

func (m mute) Read(b []byte) (int, error) {
	for {
		if n, err := m.Conn.Read(b); err != nil || !m.is.Load() {
			return n, err
		}
	}
}

func (m mute) Write(b []byte) (int, error) {
	if m.is.Load() {
		return len(b), nil
	}
	return m.Conn.Write(b)
}

// freeze has nothing move any more on the connections there are, which stay.
func (p *peer) freeze() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, g := range p.conns {
		g.freeze()
	}
	p.away = true
}

func (p *peer) thaw() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, g := range p.conns {
		g.thaw()
	}
	p.away = false
}

func (p *peer) frozen() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.away
}

// cut breaks the connections.
func (p *peer) cut() {
	p.mu.Lock()
	conns := p.conns
	p.conns = nil
	p.mu.Unlock()
	for _, g := range conns {
		_ = g.Close()
	}
}

// change changes what it holds, and shows that to every stream.
func (p *peer) change(do func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	do()
	close(p.changed)
	p.changed = make(chan struct{})
}

// put has it hold a resource of a kind.
func (p *peer) put(kind, name string, body *anypb.Any) {
	p.change(func() { p.set(kind, name, body) })
}

func (p *peer) set(kind, name string, body *anypb.Any) {
	if p.resources[kind] == nil {
		p.resources[kind] = map[string]*anypb.Any{}
	}
	p.resources[kind][name] = body
}

func (p *peer) remove(kind, name string) {
	p.change(func() { delete(p.resources[kind], name) })
}

// fail has every stream end with an error; nil ends that.
func (p *peer) fail(err error) {
	p.change(func() {
		if p.failing = err; err != nil {
			p.over, p.with = p.opened, err
		}
	})
}

// of is what it holds of a type.
func (p *peer) of(url string) map[string]*anypb.Any {
	kind, known := istio.ByURL(url)
	version := strings.Split(url, "/")[1]
	if !known || p.versions != nil && !slices.Contains(p.versions, version) {
		return nil
	}
	return p.resources[kind.Name]
}

func (p *peer) answers(url string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	kind, _ := istio.ByURL(url)
	return !slices.Contains(p.unknown, kind.Name) && !slices.Contains(p.unknown, url)
}

// lag is how long a request for a type waits for its answer.
func (p *peer) lag(k *asked) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	lag := p.roundTrip
	if strings.HasSuffix(k.url, "/ServiceEntry") {
		lag += p.late
	}
	if !k.first {
		lag = max(lag, p.pause)
	}
	return lag
}

// asked is one type on a stream.
type asked struct {
	url     string
	sent    map[string]string
	waiting bool // for an ACK
	first   bool
	seen    string    // the state that was sent last
	at      time.Time // of the last request
	marks   bool      // its first state is to be marked, until its end was
}

// follow serves a stream: take reads a request, give sends what is due of a type.
func (p *peer) follow(ctx context.Context, id int, requests <-chan func(map[string]*asked), give func(*asked) error) error {
	types := map[string]*asked{}
	for {
		p.mu.Lock()
		changed, failing := p.changed, p.failing
		if id <= p.over {
			failing = p.with
		}
		p.mu.Unlock()
		if failing != nil {
			return failing
		}
		var due <-chan time.Time
		for _, url := range slices.Sorted(maps.Keys(types)) {
			k := types[url]
			if k.waiting || !p.answers(url) {
				continue
			}
			if left := time.Until(k.at.Add(p.lag(k))); left > 0 {
				due = time.After(min(left, 10*time.Millisecond))
				continue
			}
			if err := give(k); err != nil {
				return err
			}
		}
		select {
		case <-due:
		case <-ctx.Done():
			return ctx.Err()
		case take := <-requests:
			take(types)
			if p.rejects(id) {
				return status.Error(codes.InvalidArgument, "invalid node type")
			}
		case <-changed:
		}
		time.Sleep(time.Millisecond) // no two answers are of one instant
	}
}

// rejects reports whether it does not take who asks on a stream.
func (p *peer) rejects(stream int) bool {
	return p.noWaypoints && slices.ContainsFunc(p.seen(), func(q request) bool {
		return q.stream == stream && strings.HasPrefix(q.node, "waypoint~")
	})
}

func (p *peer) note(r request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.requests = append(p.requests, r)
}

func (p *peer) seen() []request {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.requests)
}

func (p *peer) count(stream int, url string, n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sent[fmt.Sprint(stream, url)] += n
}

// sentOn is how many resources of a type were sent on a stream.
func (p *peer) sentOn(stream int, url string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.sent[fmt.Sprint(stream, url)]
}

func (p *peer) stream() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.opened++
	return p.opened
}

// DeltaAggregatedResources serves the delta variant.
func (p *peer) DeltaAggregatedResources(s discoveryv3.AggregatedDiscoveryService_DeltaAggregatedResourcesServer) error {
	if p.noDelta {
		return status.Error(codes.Unimplemented, "not here")
	}
	id, nonce := p.stream(), 0
	requests := make(chan func(map[string]*asked))
	go receive(s.Context(), requests, func() (func(map[string]*asked), error) {
		m, err := s.Recv()
		return func(types map[string]*asked) {
			p.note(request{
				stream: id, delta: true, url: m.GetTypeUrl(), nonce: m.GetResponseNonce(), nack: m.GetErrorDetail().GetMessage(),
				held: m.GetInitialResourceVersions(), node: m.GetNode().GetId(), metadata: texts(m.GetNode().GetMetadata().AsMap()),
			})
			k := types[m.GetTypeUrl()]
			switch {
			case k == nil:
				k = &asked{url: m.GetTypeUrl(), first: true, sent: map[string]string{}, at: time.Now(), marks: p.asksForMarks(id)}
				types[k.url] = k
				if !p.repeats {
					maps.Copy(k.sent, m.GetInitialResourceVersions())
				}
			case slices.Contains(m.GetResourceNamesUnsubscribe(), "*"):
				delete(types, k.url)
			case m.GetResponseNonce() == strconv.Itoa(nonce) || k.waiting:
				k.waiting, k.at = false, time.Now()
			}
		}, err
	})
	err := p.follow(s.Context(), id, requests, func(k *asked) error {
		if err := p.fails(id, k.url); err != nil {
			return err
		}
		m := p.deltaOf(id, k)
		if m == nil {
			return nil
		}
		p.count(id, k.url, len(m.GetResources()))
		nonce++
		m.Nonce, k.waiting, k.first = strconv.Itoa(nonce), true, false
		return s.Send(m)
	})
	if errors.Is(err, io.EOF) {
		return nil // which is how a stream ends without an error
	}
	return err
}

// fails is what a delta stream ends with for a type.
func (p *peer) fails(id int, url string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.failsDelta == nil || url != "networking.istio.io/v1alpha3/ServiceEntry" {
		return nil
	}
	return p.failsDelta(id)
}

// deltaOf is what a stream lacks of a type; nil if nothing.
func (p *peer) deltaOf(id int, k *asked) *discoveryv3.DeltaDiscoveryResponse {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.silentDelta || id <= p.over {
		return nil
	}
	m := &discoveryv3.DeltaDiscoveryResponse{TypeUrl: k.url}
	now := p.of(k.url)
	for _, name := range slices.Sorted(maps.Keys(now)) {
		version := versionOf(now[name])
		if k.sent[name] == version || p.chunk > 0 && len(m.GetResources()) >= p.chunk {
			continue
		}
		k.sent[name] = version
		if p.noVersions {
			version = ""
		}
		m.Resources = append(m.Resources, &discoveryv3.Resource{Name: name, Version: version, Resource: now[name]})
	}
	for name := range k.sent {
		if now[name] == nil && !p.withholds {
			delete(k.sent, name)
			m.RemovedResources = append(m.RemovedResources, name)
		}
	}
	if p.garbage {
		m.TypeUrl = string([]byte{0xff})
	}
	left := slices.ContainsFunc(slices.Collect(maps.Keys(now)), func(name string) bool { return k.sent[name] != versionOf(now[name]) })
	switch {
	case k.marks && left:
		m.SystemVersionInfo = "1;first-state=partial"
	case k.marks:
		m.SystemVersionInfo, k.marks = "1;first-state=complete", false
	case !k.first && len(m.GetResources())+len(m.GetRemovedResources()) == 0:
		return nil
	}
	return m
}

// asksForMarks reports whether who has opened a stream asks for marks, of a peer that has them.
func (p *peer) asksForMarks(stream int) bool {
	return p.marks && slices.ContainsFunc(p.seen(), func(q request) bool {
		return q.stream == stream && q.metadata["ISTHMUS_MARK_FIRST_STATE"] == "true"
	})
}

// StreamAggregatedResources serves the state-of-the-world variant.
func (p *peer) StreamAggregatedResources(s discoveryv3.AggregatedDiscoveryService_StreamAggregatedResourcesServer) error {
	id, nonce := p.stream(), 0
	requests := make(chan func(map[string]*asked))
	go receive(s.Context(), requests, func() (func(map[string]*asked), error) {
		m, err := s.Recv()
		return func(types map[string]*asked) {
			p.note(request{
				stream: id, url: m.GetTypeUrl(), nonce: m.GetResponseNonce(), nack: m.GetErrorDetail().GetMessage(),
				node: m.GetNode().GetId(), metadata: texts(m.GetNode().GetMetadata().AsMap()),
			})
			if k := types[m.GetTypeUrl()]; k == nil {
				types[m.GetTypeUrl()] = &asked{url: m.GetTypeUrl(), first: true, at: time.Now()}
			} else {
				k.waiting, k.at = false, time.Now()
			}
		}, err
	})
	return p.follow(s.Context(), id, requests, func(k *asked) error {
		m := &discoveryv3.DiscoveryResponse{TypeUrl: k.url}
		p.mu.Lock()
		now, over := p.of(k.url), id <= p.over
		for _, name := range slices.Sorted(maps.Keys(now)) {
			m.VersionInfo += versionOf(now[name])
			m.Resources = append(m.Resources, now[name])
		}
		p.mu.Unlock()
		if over || !k.first && m.GetVersionInfo() == k.seen {
			return nil
		}
		nonce++
		k.seen, m.Nonce, k.waiting, k.first = m.GetVersionInfo(), strconv.Itoa(nonce), true, false
		return s.Send(m)
	})
}

func receive(ctx context.Context, out chan<- func(map[string]*asked), next func() (func(map[string]*asked), error)) {
	for {
		take, err := next()
		if err != nil {
			return
		}
		select {
		case out <- take:
		case <-ctx.Done():
			return
		}
	}
}

func versionOf(a *anypb.Any) string {
	h := fnv.New64a()
	_, _ = h.Write([]byte(a.GetTypeUrl()))
	_, _ = h.Write(a.GetValue())
	return strconv.FormatUint(h.Sum64(), 36)
}

func texts(m map[string]any) map[string]string {
	out := map[string]string{}
	for k, v := range m {
		out[k] = fmt.Sprint(v)
	}
	return out
}

func encode(m proto.Message) *anypb.Any {
	out := &anypb.Any{}
	if err := anypb.MarshalFrom(out, m, proto.MarshalOptions{Deterministic: true}); err != nil {
		panic(err)
	}
	return out
}
