package xds_test

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"

	"github.com/isthmus-mesh/isthmus/output/streams"
	"github.com/isthmus-mesh/isthmus/output/xds"
	"github.com/isthmus-mesh/isthmus/push/session"
	"github.com/isthmus-mesh/isthmus/test/testkit/xdsclient"
)

// timed runs a test in a bubble, in which hours pass at once, over connections
// that go through memory. What it opens it has to close before it returns.
func timed(t *testing.T, s setup, test func(t *testing.T, r *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s.memory = true
		r := newRig(t, s)
		r.put(service("shop", probe))
		test(t, r)
	})
}

func TestSilentStreamEnds(t *testing.T) {
	timed(t, setup{}, func(t *testing.T, r *rig) {
		begin := time.Now()
		s := openRaw(t, r.dial(), adsDelta)
		err := s.end()
		if status.Code(err) != codes.DeadlineExceeded || !strings.Contains(err.Error(), "no request came within 30s") {
			t.Errorf("got %v", err)
		}
		if took := time.Since(begin); took != 30*time.Second {
			t.Errorf("after %s", took)
		}
		if r.rejectedFor("silent") != 1 {
			t.Error("it was not counted")
		}
	})
}

// What is said late on a stream that has begun is in time.
func TestStreamThatHasBegunMayBeSilent(t *testing.T) {
	timed(t, setup{}, func(t *testing.T, r *rig) {
		s := openRaw(t, r.dial(), adsDelta)
		s.say(&discoveryv3.DeltaDiscoveryRequest{Node: rawNode, TypeUrl: eds, ResourceNamesSubscribe: clustersOf(probe)})
		s.say(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: eds, ResponseNonce: s.delta().GetNonce()})
		time.Sleep(24 * time.Hour)
		r.put(endpoint("shop", probe, "one", "10.0.0.1"))
		s.delta()
	})
}

func TestPoint65_FrequentPingsAreNormal(t *testing.T) {
	timed(t, setup{}, func(t *testing.T, r *rig) {
		conn := r.dial(grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 10 * time.Second, Timeout: time.Second, PermitWithoutStream: true}))
		s := openRaw(t, conn, adsDelta)
		s.say(&discoveryv3.DeltaDiscoveryRequest{Node: rawNode, TypeUrl: eds, ResourceNamesSubscribe: clustersOf(probe)})
		s.say(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: eds, ResponseNonce: s.delta().GetNonce()})
		time.Sleep(time.Hour)
		r.put(endpoint("shop", probe, "one", "10.0.0.1"))
		s.delta()
	})
}

// stalled is a stream of a client that has asked for what does not fit into the
// transport, and does not read it.
func stalled(t *testing.T, r *rig) raw {
	t.Helper()
	conn := r.dial(grpc.WithInitialWindowSize(64 << 10)) // else it grows with what the machine can do
	r.put(bigService("big.example", 1000)...)
	synctest.Wait() // before that there is no assignment
	s := openRaw(t, conn, adsDelta)
	s.say(&discoveryv3.DeltaDiscoveryRequest{Node: rawNode, TypeUrl: eds, ResourceNamesSubscribe: clustersOf("big.example")})
	synctest.Wait()
	return s
}

// only returns how the only client stands with the only type it asked for.
func (r *rig) onlyStatus() session.TypeStatus {
	r.t.Helper()
	clients := r.engine.Clients()
	if len(clients) != 1 || len(clients[0].Types) != 1 {
		r.t.Fatalf("the clients are %+v", clients)
	}
	return clients[0].Types[0]
}

// Who does not read for a day is still there, is shown as what it is, and then
// gets the newest, once.
func TestPoint68_SendingHasNoTimeLimit(t *testing.T) {
	timed(t, setup{}, func(t *testing.T, r *rig) {
		s := stalled(t, r)
		begin := time.Now()
		for i := range 24 {
			time.Sleep(time.Hour)
			r.put(endpoint("shop", "big.example", "0", fmt.Sprintf("10.2.0.%d", i)))
		}
		synctest.Wait() // else the last may come after what is read here
		shown := r.onlyStatus()
		if shown.State != session.Waiting || !strings.Contains(shown.Reason, "does not read") || !shown.Since.Equal(begin) {
			t.Errorf("shown as %+v", shown)
		}
		const most = 3 // the first, what was under way after it, and the newest
		for range most {
			m := s.delta()
			s.say(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: eds, ResponseNonce: m.GetNonce()})
			if len(m.GetResources()) != 1 {
				t.Errorf("got %d resources", len(m.GetResources()))
			}
		}
		synctest.Wait()
		if shown := r.onlyStatus(); shown.State != session.ACKed || r.engine.Counts()[0].Responses != most {
			t.Errorf("then shown as %+v, after %+v", shown, r.engine.Counts())
		}
	})
}

// lost is a connection whose client's machine loses its power: nothing comes of
// it any more, not even its end.
type lost struct {
	net.Conn
	power <-chan struct{}
	hung  context.Context //nolint:containedctx // it is the connection's own
	hang  func()
}

func (l lost) Read(b []byte) (int, error) {
	n, err := l.Conn.Read(b)
	select {
	case <-l.power:
		<-l.hung.Done()
		return 0, net.ErrClosed
	default:
		return n, err
	}
}

// Close tells the server nothing.
func (l lost) Close() error {
	l.hang()
	return nil
}

func TestPoint72_RequestsAreReadWhileSending(t *testing.T) {
	timed(t, setup{}, func(t *testing.T, r *rig) {
		s := stalled(t, r)
		s.say(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: cds}) // whose answer waits behind the assignment
		synctest.Wait()
		for i, hosts := range [][]string{{probe}, {"a.example", "b.example"}, {"c.example"}} {
			s.say(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: eds, ResourceNamesSubscribe: clustersOf(hosts...)})
			synctest.Wait()
			if shown, want := r.stand("raw", eds), []int{2, 4, 5}[i]; shown.Subscribed != want {
				t.Errorf("%d names are asked for, and %d were taken in", want, shown.Subscribed)
			}
		}
		if shown := r.stand("raw", cds); !strings.Contains(shown.Reason, "does not read") {
			t.Errorf("nothing is being sent: clusters are shown with %+v", shown)
		}
	})
}

// A client NACKs everything for an hour, in which something changes each
// second. It gets each change once at most, and nothing when nothing
// changes; the others get all.
func TestClientThatNACKsEverythingCostsNobodyAnything(t *testing.T) {
	const changes = 3600
	for _, mode := range []string{"delta", "state of the world"} {
		t.Run(mode, func(t *testing.T) {
			timed(t, setup{}, func(t *testing.T, r *rig) {
				nackReason := func(xdsclient.Resource) string { return "I do not like it" }
				c := xdsclient.Config{Node: xdsclient.Node("refuser", "shop", "envoy"), NACK: nackReason}
				open := map[string]func(xdsclient.Config) *xdsclient.Client{"delta": r.deltaWith, "state of the world": r.sotwWith}[mode]
				nacker, other := open(c), r.delta("other", "shop")
				defer nacker.Close()
				defer other.Close()
				for _, client := range []*xdsclient.Client{nacker, other} {
					client.Subscribe(cds)
					client.Subscribe(eds, clusterOf(probe))
				}
				for i := range changes {
					time.Sleep(time.Second)
					address := fmt.Sprintf("10.0.%d.%d", i/250, i%250)
					r.put(endpoint("shop", probe, "one", address))
					other.Await("change", leads(probe, address))
				}
				synctest.Wait()
				before := r.engine.Counts()
				time.Sleep(24 * time.Hour)
				if diff := cmp.Diff(before, r.engine.Counts()); diff != "" {
					t.Errorf("sent although nothing changed: %s", diff)
				}
				nacker.Read(func(s *xdsclient.State) {
					if n := s.Responses(eds); n > changes+2 || n < changes/2 {
						t.Errorf("%d responses to %d changes", n, changes)
					}
				})
				mustBeShownAsNACKing(t, r)
			})
		})
	}
}

func mustBeShownAsNACKing(t *testing.T, r *rig) {
	t.Helper()
	for _, client := range r.engine.Clients() {
		for _, shown := range client.Types {
			nacking := client.ID == "refuser"
			if (shown.State == session.NACKed) != nacking || nacking != strings.Contains(shown.Reason, "I do not like it") {
				t.Errorf("%s is shown with %+v", client.ID, shown)
			}
			if age := time.Since(shown.Since); age < 24*time.Hour {
				t.Errorf("%s stands so for %s only", client.ID, age)
			}
		}
	}
}

func TestPoint68_DeadConnectionIsFound(t *testing.T) {
	timed(t, setup{}, func(t *testing.T, r *rig) {
		power := make(chan struct{})
		conn := r.dial(grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			conn, err := r.memory.DialContext(ctx)
			hung, hang := context.WithCancel(context.Background())
			return lost{conn, power, hung, hang}, err
		}))
		s := openRaw(t, conn, adsDelta)
		s.say(&discoveryv3.DeltaDiscoveryRequest{Node: rawNode, TypeUrl: eds, ResourceNamesSubscribe: clustersOf(probe)})
		s.delta()
		close(power)
		time.Sleep(time.Minute)
		if n := r.engine.Len(); n != 0 {
			t.Errorf("%d clients are there", n)
		}
	})
}

// A connection that is too old ends, and the client comes back on a new one.
func TestPoint69_ConnectionsEndAtTheirAge(t *testing.T) {
	const age = time.Hour
	timed(t, setup{maxAge: age}, func(t *testing.T, r *rig) {
		begin := time.Now()
		s := openRaw(t, r.dial(), adsDelta)
		s.say(&discoveryv3.DeltaDiscoveryRequest{Node: rawNode, TypeUrl: eds, ResourceNamesSubscribe: clustersOf(probe)})
		s.delta()
		if err := s.end(); status.Code(err) != codes.Unavailable {
			t.Errorf("got %v", err)
		}
		if took := time.Since(begin); took < age*9/10 || took > age*11/10+time.Minute {
			t.Errorf("after %s", took)
		}
	})
}

// A connection on which nothing is asked ends, and leaves a word.
func TestConnectionWithoutAStreamEnds(t *testing.T) {
	timed(t, setup{}, func(t *testing.T, r *rig) {
		conn, err := r.memory.Dial()
		if err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		_, _ = io.WriteString(conn, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00") // a handshake, and empty settings
		_, _ = io.Copy(io.Discard, conn)
		if took := time.Since(begin); took < 30*time.Second || took > 2*time.Minute {
			t.Errorf("after %s", took)
		}
		if r.rejectedFor("handshake") != 1 {
			t.Error("it was not counted")
		}
	})
}

// A client that asks all the time is kept waiting, which is counted, and ends
// with what it asked for last.
func TestRequestsOfAStreamAreSlowed(t *testing.T) {
	const burst, asked = 3, 8
	timed(t, setup{limits: xds.Limits{Limits: streams.Limits{Requests: streams.Rate{PerSecond: 1, Burst: burst}}}}, func(t *testing.T, r *rig) {
		begin := time.Now()
		s := openRaw(t, r.dial(), adsDelta)
		for _, name := range numbered(asked - 1) {
			s.say(&discoveryv3.DeltaDiscoveryRequest{Node: rawNode, TypeUrl: cds, ResourceNamesSubscribe: []string{name}})
		}
		s.say(&discoveryv3.DeltaDiscoveryRequest{Node: rawNode, TypeUrl: eds, ResourceNamesSubscribe: clustersOf(probe)})
		for s.delta().GetTypeUrl() != eds {
		}
		if took := time.Since(begin); took != (asked-burst)*time.Second {
			t.Errorf("%d requests were taken in within %s", asked, took)
		}
		if diff := cmp.Diff(map[string]uint64{"requests": asked - burst, "refusals": 0}, maps.Collect(r.server.Delayed())); diff != "" {
			t.Errorf("-want +delayed:\n%s", diff)
		}
	})
}
