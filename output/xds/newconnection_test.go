package xds_test

import (
	"errors"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/isthmus-mesh/isthmus/output/streams"
	"github.com/isthmus-mesh/isthmus/output/xds"
	"github.com/isthmus-mesh/isthmus/test/testkit/authority"
	"github.com/isthmus-mesh/isthmus/test/testkit/until"
	"github.com/isthmus-mesh/isthmus/test/testkit/xdsclient"
)

// places tells where the next connections come from.
type places struct{ current atomic.Pointer[net.TCPAddr] }

func (p *places) are(ip string) { p.current.Store(&net.TCPAddr{IP: net.ParseIP(ip), Port: 1}) }

func (p *places) from() net.Addr { return p.current.Load() }

// mustBeClosed is that the server closes a connection on which nothing was said.
func mustBeClosed(t *testing.T, conn net.Conn) {
	t.Helper()
	if _, err := io.Copy(io.Discard, conn); isTimeout(err) {
		t.Error("one more connection was let in")
	}
}

// serves reports whether a connection is served: whether a ping is answered, which
// begins no stream.
func serves(conn net.Conn) bool {
	const (
		settings = "\x00\x00\x00\x04\x00\x00\x00\x00\x00"
		ping     = "\x00\x00\x08\x06\x00\x00\x00\x00\x00eightish"
	)
	if _, err := io.WriteString(conn, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"+settings+ping); err != nil {
		return false
	}
	for {
		var head [9]byte // the length of a frame, its type, its flags and its stream
		if _, err := io.ReadFull(conn, head[:]); err != nil {
			return false
		}
		length := int64(head[0])<<16 | int64(head[1])<<8 | int64(head[2])
		if _, err := io.CopyN(io.Discard, conn, length); err != nil {
			return false
		}
		if head[3] == ping[3] && head[4] == 1 {
			return true
		}
	}
}

// Connections that say nothing take places of their own address alone, and
// leave room again when they go, or when a stream begins.
func TestConnectionsWithoutAStreamAreLimitedByAddress(t *testing.T) {
	const most = 3
	var at places
	r := newRig(t, setup{from: at.from, limits: xds.Limits{Limits: streams.Limits{NewConnections: most, Handshake: until.Patience}}})
	r.put(service("shop", probe))
	at.are("192.0.2.1")
	useful := r.dial()
	ask := func() raw {
		s := openRaw(t, useful, adsDelta)
		s.say(&discoveryv3.DeltaDiscoveryRequest{Node: rawNode, TypeUrl: eds, ResourceNamesSubscribe: clustersOf(probe)})
		s.delta()
		return s
	}
	ask()
	idle := []net.Conn{r.connect(), r.connect(), r.connect()}
	for _, conn := range []net.Conn{r.connect(), r.connect()} {
		mustBeClosed(t, conn)
	}
	for _, conn := range idle {
		if !serves(conn) {
			t.Error("a connection was closed within the limit")
		}
	}
	ask() // on the connection that has shown what it is for
	at.are("192.0.2.2")
	if !serves(r.connect()) {
		t.Error("a connection of another address was closed")
	}
	at.are("192.0.2.1")
	for _, conn := range idle {
		_ = conn.Close()
	}
	r.await("room for the address", func() bool { return serves(r.connect()) })
	if r.rejectedFor("connections") < 2 {
		t.Error("what was closed was not counted")
	}
}

// This machine may connect as often as it likes: probes and tunnels do.
func TestConnectionsOfThisMachineAreNotLimited(t *testing.T) {
	r := newRig(t, setup{limits: xds.Limits{Limits: streams.Limits{NewConnections: 1}}})
	for range 5 {
		if !serves(r.connect()) {
			t.Error("a connection was closed")
		}
	}
}

// What went wrong in a handshake the log of the server tells, for a client
// hardly can.
func TestHandshakesThatFailAreCounted(t *testing.T) {
	r := newSecured(t, setup{}, true)
	unknown := authority.New(t, "other").Issue("unknown", inShop)
	conn := r.over(r.ca.Client(unknown))
	s, err := conn.NewStream(t.Context(), streamDesc, adsDelta)
	if err == nil {
		err = s.RecvMsg(nil)
	}
	if status.Code(err) != codes.Unavailable {
		t.Errorf("got %v", err)
	}
	_ = conn.Close() // else it tries again and again
	r.await("a count of it", func() bool { return r.rejectedFor("handshake") > 0 })
	before := r.rejectedFor("handshake")
	if err := r.connect().Close(); err != nil { // as a probe does
		t.Error(err)
	}
	for _, c := range r.clients(r.ca.Client(r.ca.Issue("client", inShop)), "shop") {
		c.Subscribe(eds, clusterOf(probe))
		c.AwaitHeld(eds, clusterOf(probe))
	}
	if after := r.rejectedFor("handshake"); after > before+1 { // the client may have been trying again
		t.Errorf("%d handshakes are counted, and were %d", after, before)
	}
}

func TestRequestThatIsTooLargeIsExplained(t *testing.T) {
	r := newProbed(t)
	s := openRaw(t, r.dial(), adsDelta)
	node := xdsclient.Node("fat", "shop", "envoy")
	node.Metadata.Fields["X"] = structpb.NewStringValue(strings.Repeat("x", 33<<20))
	s.say(&discoveryv3.DeltaDiscoveryRequest{Node: node, TypeUrl: eds})
	if err := s.end(); status.Code(err) != codes.ResourceExhausted || !strings.Contains(err.Error(), "33554432") {
		t.Errorf("got %v", err)
	}
	if r.rejectedFor("size") != 1 {
		t.Error("it was not counted")
	}
}

// A connection with too many streams makes the client wait, and nobody else.
func TestStreamsOfOneConnectionAreLimited(t *testing.T) {
	r := newRig(t, setup{limits: xds.Limits{Limits: streams.Limits{StreamsPerConnection: 2}}})
	r.put(service("shop", probe))
	conn := r.dial()
	ask := func(s raw) {
		s.say(&discoveryv3.DeltaDiscoveryRequest{Node: rawNode, TypeUrl: eds, ResourceNamesSubscribe: clustersOf(probe)})
		s.delta()
	}
	first, second := openRaw(t, conn, adsDelta), openRaw(t, conn, adsDelta)
	ask(first)
	ask(second)
	third := make(chan raw, 1)
	go func() { third <- openRaw(t, conn, adsDelta) }()
	for range 10 { // others go on meanwhile
		ask(openRaw(t, r.dial(), adsDelta))
	}
	select {
	case <-third:
		t.Error("a third stream was let in")
	default:
	}
	first.stop()
	ask(awaited(t, "third stream", third))
}

func TestHeadersAreLimited(t *testing.T) {
	r := newProbed(t)
	fat := metadata.AppendToOutgoingContext(t.Context(), "x", strings.Repeat("x", 100<<10))
	s, err := r.dial().NewStream(fat, streamDesc, adsDelta)
	if err == nil {
		err = s.RecvMsg(&discoveryv3.DeltaDiscoveryResponse{})
	}
	if err == nil || status.Code(err) == codes.Unimplemented {
		t.Errorf("got %v", err)
	}
}

func isTimeout(err error) bool {
	var netErr net.Error
	return errors.As(err, &netErr) && netErr.Timeout()
}
