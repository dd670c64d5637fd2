package hostile

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/anypb"
	mcpapi "istio.io/api/mcp/v1alpha1"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/isthmus-mesh/isthmus/internal/mcp"
)

// peers are servers that sources of the program read, each of which harms it in a way
// of its own. Before the attack begins and after it is over they hold nothing.
type peers struct {
	begun, over chan struct{}

	sent    atomic.Int64 // messages
	streams atomic.Int64
}

// harm is what a peer says on a stream; says is how it writes a message of resources
// in its protocol.
type harm struct {
	name string
	do   func(p *peers, s grpc.ServerStream, says says) error
}

// says makes a message of resources: the whole, or an increment.
type says func(i int, increment bool, resources ...*mcpapi.Resource) []byte

var harms = []harm{
	{"states that are huge", hugeStates(20_000)},
	{"states that are not quite as huge", hugeStates(12_000)}, // a message may be that large
	{"increments without end", func(p *peers, s grpc.ServerStream, says says) error {
		return p.repeat(s, func(i int) []byte { return says(i, true, named(fmt.Sprintf("shop/endless-%d", i), 4<<10)) })
	}},
	{"nothing, many times in a message", func(p *peers, s grpc.ServerStream, says says) error {
		// A resource that is a tag and a length is many times that in memory.
		text := append(says(0, false), strings.Repeat(emptyResource(says), size(16<<20, 1<<20))...)
		return p.repeat(s, func(int) []byte { return text })
	}},
	{"tiny messages", func(p *peers, s grpc.ServerStream, says says) error {
		return p.repeat(s, func(i int) []byte { return says(i, true) })
	}},
	{"one nonce again and again", func(p *peers, s grpc.ServerStream, says says) error {
		return p.repeat(s, func(i int) []byte { return says(7, false, named("shop/again", 10+i%2)) })
	}},
	{"garbage", func(p *peers, s grpc.ServerStream, says says) error {
		random := rand.New(rand.NewPCG(*seed, uint64(p.streams.Load()))) //nolint:gosec // nothing is secret
		good := says(0, false, named("shop/garbage", 100))
		return p.repeat(s, func(i int) []byte {
			if i%2 == 0 {
				return noise(random, 4<<10)
			}
			return garbled(random, good)
		})
	}},
	{"a state that does not end", func(p *peers, s grpc.ServerStream, _ says) error {
		// Cases: the program gives up; the attack is over.
		select {
		case <-s.Context().Done():
		case <-p.over:
		}
		return nil
	}},
}

func hugeStates(services int) func(*peers, grpc.ServerStream, says) error {
	return func(p *peers, s grpc.ServerStream, says says) error {
		var list []*mcpapi.Resource
		for i := range size(services, services/40) {
			list = append(list, named(fmt.Sprintf("shop/huge-%d-%d", services, i), 1<<10))
		}
		return p.repeat(s, func(i int) []byte { return says(i, false, list...) })
	}
}

// emptyResource is one as it is on the wire: its tag, and that it has no bytes.
func emptyResource(says says) string {
	text := says(0, false, &mcpapi.Resource{})
	without := says(0, false)
	for i := range without {
		if text[i] != without[i] {
			return string([]byte{text[i], 0})
		}
	}
	return string([]byte{text[len(without)], 0})
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// repeat says messages until the stream ends. What the program answers is not read.
func (p *peers) repeat(s grpc.ServerStream, text func(i int) []byte) error {
	for i := 0; !isClosed(p.over); i++ {
		if err := s.SendMsg(text(i)); err != nil {
			return err
		}
		p.sent.Add(1)
	}
	return nil
}

// named is a ServiceEntry with an annotation of so many bytes.
func named(name string, size int) *mcpapi.Resource {
	body, _ := anypb.New(&networking.ServiceEntry{
		Hosts: []string{strings.ReplaceAll(name, "/", ".") + ".example.com"}, Resolution: networking.ServiceEntry_STATIC,
		Ports:     []*networking.ServicePort{{Number: port, Name: "http", Protocol: "HTTP"}},
		Endpoints: []*networking.WorkloadEntry{{Address: "10.9.0.1"}},
	})
	return &mcpapi.Resource{
		Metadata: &mcpapi.Metadata{Name: name, Version: "1", Annotations: map[string]string{"a": strings.Repeat("x", size)}}, Body: body,
	}
}

// saysMCP writes the messages of MCP.
func saysMCP(i int, increment bool, resources ...*mcpapi.Resource) []byte {
	return marshal(&mcp.Resources{Collection: collection, Nonce: fmt.Sprint(i), Incremental: increment, Resources: resources})
}

// entriesURL is the one type that a peer speaks: it is asked for no other, which would be
// waited for as long as there is nothing of this one.
const entriesURL = "networking.istio.io/v1/ServiceEntry"

// saysXDS writes those of the delta variant, where everything is an increment.
func saysXDS(i int, _ bool, resources ...*mcpapi.Resource) []byte {
	m := &discoveryv3.DeltaDiscoveryResponse{TypeUrl: entriesURL, Nonce: fmt.Sprint(i), SystemVersionInfo: fmt.Sprint(i)}
	for _, r := range resources {
		body := &anypb.Any{TypeUrl: "type.googleapis.com/istio.mcp.v1alpha1.Resource", Value: marshal(r)}
		m.Resources = append(m.Resources, &discoveryv3.Resource{Name: r.GetMetadata().GetName(), Version: fmt.Sprint(i), Resource: body})
	}
	return marshal(m)
}

// protocols are those that sources read over gRPC.
var protocols = map[string]struct {
	method, source string
	says           says
}{
	"mcp": {mcpStream, "mcp: {address: %q, incremental: true, collections: [" + collection + "]}", saysMCP},
	"xds": {delta, "xds: {address: %q, types: [" + entriesURL + "]}", saysXDS},
}

// withPeers has a source for each kind of harm that a peer of a protocol may do.
func withPeers(protocol string) func(t *testing.T) setup {
	return func(t *testing.T) setup {
		t.Helper()
		p, spoken := &peers{begun: make(chan struct{}), over: make(chan struct{})}, protocols[protocol]
		var sources strings.Builder
		for i, h := range harms {
			fmt.Fprintf(&sources, "- name: peer-%d\n  "+spoken.source+"\n", i, p.serve(t, spoken.method, spoken.says, h))
		}
		return setup{peers: p, sources: sources.String()}
	}
}

// serve has one peer serve until the test ends.
func (p *peers) serve(t *testing.T, method string, says says, h harm) (address string) {
	t.Helper()
	return serveStreams(t, method, func(s grpc.ServerStream) error { return p.speak(s, says, h) })
}

// serveStreams serves the streams of one method until the test ends. Their first request is
// received already.
func serveStreams(t *testing.T, method string, speak func(grpc.ServerStream) error) (address string) {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(grpc.ForceServerCodec(bytesCodec{}), grpc.UnknownServiceHandler(func(_ any, s grpc.ServerStream) error {
		if called, _ := grpc.MethodFromServerStream(s); called != method {
			<-s.Context().Done() // another variant of the protocol, which is answered nothing
			return nil
		}
		var request []byte
		if err := s.RecvMsg(&request); err != nil {
			return err
		}
		return speak(s)
	}))
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(listener) })
	t.Cleanup(func() { server.Stop(); serving.Wait() })
	return listener.Addr().String()
}

// speak says on a stream that there is nothing, and does harm while the attack goes on.
func (p *peers) speak(s grpc.ServerStream, says says, h harm) error {
	if !isClosed(p.begun) || isClosed(p.over) {
		if err := s.SendMsg(says(0, false)); err != nil {
			return err
		}
	}
	// Cases: the attack; the program does not follow any more.
	select {
	case <-p.begun:
	case <-s.Context().Done():
		return nil
	}
	if !isClosed(p.over) {
		p.streams.Add(1)
		return h.do(p, s, says)
	}
	<-s.Context().Done()
	return nil
}

// hostilePeers has the peers of sources do harm while another source goes on.
func hostilePeers(t *testing.T, r *room) string {
	r.beside(t, func(ctx context.Context) error {
		close(r.peers.begun)
		defer close(r.peers.over)
		return r.haveBeenBusy(ctx, size(8*time.Second, 2*time.Second))
	})
	return fmt.Sprintf("%d peers of sources, each with harm of its own: %d messages on %d streams", len(harms), r.peers.sent.Load(), r.peers.streams.Load())
}

// haveBeenBusy returns when some time is over, in which every peer has done some harm
// and some changes were followed: what peers do is not begun again.
func (r *room) haveBeenBusy(ctx context.Context, least time.Duration) error {
	p, begun, again := r.peers, time.Now(), time.NewTicker(10*time.Millisecond)
	defer again.Stop()
	for {
		streams, sent := p.streams.Load(), p.sent.Load()
		if time.Since(begun) >= least && r.followed.Load() >= fewest && int(streams) >= len(harms) && int(sent) >= 10*len(harms) {
			return nil
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return fmt.Errorf("%d streams of %d peers were opened, %d messages sent, and %d changes followed", streams, len(harms), sent, r.followed.Load())
		}
	}
}
