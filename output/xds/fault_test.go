package xds_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"log/slog"
	"net"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"

	"github.com/isthmus-mesh/isthmus/output/envoy"
	"github.com/isthmus-mesh/isthmus/output/streams"
	"github.com/isthmus-mesh/isthmus/output/xds"
	"github.com/isthmus-mesh/isthmus/push/world"
	"github.com/isthmus-mesh/isthmus/test/testkit/until"
	"github.com/isthmus-mesh/isthmus/test/testkit/xdsclient"
)

// connect opens a bare connection.
func (r *rig) connect() net.Conn {
	r.t.Helper()
	conn, err := net.Dial("tcp", r.address)
	if err != nil {
		r.t.Fatalf("dial: %v", err)
	}
	r.t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(until.Patience))
	return conn
}

// Who never finishes a handshake is sent away, and holds nobody up.
func TestHandshakesEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := setup{memory: true, limits: xds.Limits{Limits: streams.Limits{Handshake: 5 * time.Second}}}
		plain, secure := newRig(t, s), newSecured(t, s, true)
		began, idle := time.Now(), map[string][]net.Conn{}
		for name, r := range map[string]*rig{"plaintext": plain, "TLS": secure.rig} {
			for _, text := range []string{"", "\x16\x03\x01"} { // the latter as a handshake begins
				conn, err := r.memory.Dial()
				if err != nil {
					t.Fatal(err)
				}
				go func() { _, _ = io.WriteString(conn, text) }()
				idle[name] = append(idle[name], conn)
			}
		}
		for _, c := range secure.clients(secure.ca.Client(secure.ca.Issue("client", inShop)), "") {
			c.Subscribe(eds, clusterOf(probe))
			c.AwaitHeld(eds, clusterOf(probe))
		}
		for name, conns := range idle {
			for _, conn := range conns {
				_, _ = io.Copy(io.Discard, conn)
				if took := time.Since(began); took != 5*time.Second {
					t.Errorf("%s: the connection ended after %s", name, took)
				}
			}
		}
	})
}

func TestGarbageOnThePortHarmsNobody(t *testing.T) {
	plain, secure := newProbed(t), newSecured(t, setup{}, true)
	const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
	garbage := make([]byte, 64<<10)
	_, _ = rand.Read(garbage)
	for _, r := range []*rig{plain, secure.rig} {
		for _, text := range []string{string(garbage), "GET / HTTP/1.1\r\n\r\n", preface + string(garbage), "\x00"} {
			conn := r.connect()
			_, _ = io.WriteString(conn, text)
			_ = conn.Close()
		}
	}
	c := plain.delta("client", "shop")
	c.Subscribe(eds, clusterOf(probe))
	c.AwaitHeld(eds, clusterOf(probe))
}

// faulty panics when a client's NACK is logged, or a stream begins.
type faulty struct{ slog.Handler }

func (faulty) Enabled(context.Context, slog.Level) bool { return true }

func (h faulty) WithAttrs(attrs []slog.Attr) slog.Handler {
	if attrs[0].Value.String() == "cursed" {
		panic("a stream of a cursed client")
	}
	return h
}

func (h faulty) Handle(_ context.Context, r slog.Record) error {
	if r.Message == "client NACKed a response" {
		panic("a NACK")
	}
	return nil
}

func TestPanicEndsOneStreamOnly(t *testing.T) {
	r := newRig(t, setup{log: slog.New(faulty{slog.DiscardHandler})})
	r.put(service("shop", probe))
	other := r.delta("other", "shop")
	other.Subscribe(eds, clusterOf(probe))
	other.AwaitHeld(eds, clusterOf(probe))

	sender := openRaw(t, r.dial(), adsDelta)
	sender.say(&discoveryv3.DeltaDiscoveryRequest{Node: xdsclient.Node("cursed", "shop", "envoy"), TypeUrl: eds})
	receiver := openRaw(t, r.dial(), adsDelta)
	receiver.say(&discoveryv3.DeltaDiscoveryRequest{Node: rawNode, TypeUrl: eds, ResourceNamesSubscribe: clustersOf(probe)})
	receiver.say(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: eds, ResponseNonce: receiver.delta().GetNonce(), ErrorDetail: &status.Status{}})
	for _, s := range []raw{sender, receiver} {
		if err := s.end(); grpcstatus.Code(err) != codes.Internal {
			t.Errorf("got %v", err)
		}
	}
	r.put(endpoint("shop", probe, "one", "10.0.0.1"))
	other.Await("a change", leads(probe, "10.0.0.1"))
	for cause, n := range r.server.Rejected() {
		if cause == "panic" && n != 2 {
			t.Errorf("%d panics were counted", n)
		}
	}
}

// Thousands of streams come and go, over connections that come and go, and leave
// nothing behind: what is held after the first of them is held after the last.
// BenchmarkChurn of test/scale does this for as long as it is asked to.
func TestPoint8_StreamsLeaveNothingBehind(t *testing.T) {
	const rounds, connections, streams = 4, 20, 50
	r := newProbed(t, "a.example")
	round := func() {
		var all sync.WaitGroup
		for range connections {
			conn := r.dial()
			all.Go(func() {
				defer conn.Close()
				for i := range streams {
					comeAndGo(t, conn, i)
				}
			})
		}
		all.Wait()
		r.await("end of all streams", func() bool { return r.engine.Len() == 0 })
	}
	round()
	round() // the pools of the transport are not full after the first
	goroutines, before := atRest(), heap()
	for range rounds {
		round()
	}
	// The server notices the end of a connection some time after the client, and its
	// buffers go with it.
	now, after := 0, uint64(0)
	defer func() {
		t.Logf("there were %d goroutines and %d bytes, and are %d and %d", goroutines, before, now, after)
	}()
	r.await("end of what the connections had", func() bool {
		now = runtime.NumGoroutine()
		return now <= goroutines+10
	})
	r.await(fmt.Sprintf("heap as it was before %d streams", rounds*connections*streams), func() bool {
		after = heap()
		return after <= before+1<<20
	})
}

// comeAndGo opens a stream of either variant, receives what it is sent first, and
// ends it in one of three ways.
func comeAndGo(t *testing.T, conn *grpc.ClientConn, i int) {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	wire, err := conn.NewStream(ctx, streamDesc, []string{adsSotw, adsDelta}[i%2])
	if err != nil {
		t.Error(err)
		return
	}
	s := raw{t, wire, stop}
	if i%2 == 0 {
		s.say(&discoveryv3.DiscoveryRequest{Node: rawNode, TypeUrl: cds})
	} else {
		s.say(&discoveryv3.DeltaDiscoveryRequest{Node: rawNode, TypeUrl: cds})
	}
	switch i % 3 {
	case 0:
		_ = s.wire.CloseSend()
		_ = s.end()
	case 1:
		_ = s.wire.RecvMsg(&discoveryv3.DeltaDiscoveryResponse{})
	}
}

// atRest counts the goroutines once their number does not fall any more.
func atRest() int {
	least := runtime.NumGoroutine()
	for same := 0; same < 20; same++ {
		<-time.After(5 * time.Millisecond)
		if now := runtime.NumGoroutine(); now < least {
			least, same = now, 0
		}
	}
	return least
}

// A fault in the translation for one client ends its stream, and is counted; one
// in a resource ends none.
func TestPanicInTheTranslationEndsOneStream(t *testing.T) {
	r := newProbed(t, "a.example", "b.example")
	other := r.delta("other", "shop")
	other.Subscribe(eds, clusterOf("a.example"), clusterOf("b.example"))
	other.AwaitHeld(eds, clustersOf("a.example", "b.example")...)
	r.curse(clusterOf("b.example"))
	poor := openRaw(t, r.dial(), adsDelta)
	poor.say(&discoveryv3.DeltaDiscoveryRequest{Node: xdsclient.Node("poor", "cursed", "envoy"), TypeUrl: eds, ResourceNamesSubscribe: clustersOf("a.example")})
	if err := poor.end(); grpcstatus.Code(err) != codes.Internal {
		t.Errorf("got %v", err)
	}
	if n := r.rejectedFor("panic"); n != 1 {
		t.Errorf("%d streams are counted", n)
	}
	r.put(endpoint("shop", "a.example", "one", "10.0.0.9"))
	r.curse(clusterOf("b.example"))
	other.Await("a change", leads("a.example", "10.0.0.9"))
	other.AwaitHeld(eds, clustersOf("a.example", "b.example")...)
}

// curse publishes the world as it is, with a fault for one name, and for every
// client of the namespace "cursed". It returns when that is the world: the engine
// looks at a world before it takes it, and takes one after the other. So when it
// looks at the second, it has taken the first.
func (r *rig) curse(name string) {
	for range 2 {
		met := make(chan struct{})
		w := cursed{envoy.NewWorld(r.builder.Snapshot(), true, rootNamespace), name, sync.OnceFunc(func() { close(met) })}
		r.producer.Publish(world.Update{World: w, Changed: []world.Changed{{Row: envoy.EndpointType, Name: name}}})
		awaited(r.t, "look at the world", met)
	}
}

type cursed struct {
	world.World
	name string
	met  func()
}

func (w cursed) View(r world.Row, c world.Client) world.View {
	if c.Namespace == "cursed" {
		panic("a cursed client")
	}
	return w.World.View(r, c)
}

func (w cursed) Find(v world.View, r world.Row, name string) (world.Subject, bool) {
	if name == w.name {
		w.met()
		panic("a cursed resource")
	}
	return w.World.Find(v, r, name)
}
