package mcp_test

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/isthmus-mesh/isthmus/identity"
	"github.com/isthmus-mesh/isthmus/internal/certs"
	"github.com/isthmus-mesh/isthmus/internal/mcp"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source"
	sourcemcp "github.com/isthmus-mesh/isthmus/source/mcp"
	"github.com/isthmus-mesh/isthmus/source/supervise"
	"github.com/isthmus-mesh/isthmus/store"
	"github.com/isthmus-mesh/isthmus/test/testkit/authority"
	"github.com/isthmus-mesh/isthmus/test/testkit/until"
	"github.com/isthmus-mesh/isthmus/test/testkit/verifier"
)

// listening is a configuration that listens in memory. Each run binds anew.
func (r *rig) listening(collections ...string) sourcemcp.Config {
	c := sourcemcp.Config{Listen: "127.0.0.1:9902", Collections: collections}
	c.BindWith(func(context.Context, string) (net.Listener, error) {
		r.listener = bufconn.Listen(1 << 20)
		return r.listener, nil
	})
	return c
}

// dials opens a stream to the sink, as a source does that dials.
func (r *rig) dials() *stream {
	r.Helper()
	conn, err := grpc.NewClient("passthrough:///sink", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(r.dial))
	if err != nil {
		r.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	end := func() { cancel(); _ = conn.Close() }
	r.stops = append(r.stops, end)
	wire, err := mcp.NewResourceSinkClient(conn).EstablishResourceStream(ctx)
	if err != nil {
		r.Fatal(err)
	}
	s := r.open(wire)
	<-r.streams
	s.close = end
	return s
}

func TestASourceMayDial(t *testing.T) {
	bubble(t, func(r *rig) {
		m := r.mirror(r.listening(entries))
		r.pass(6 * time.Second)
		m.is(source.StateListing, "no source has connected to 127.0.0.1:9902 yet")
		r.pass(time.Second)
		s := r.dials()
		if err := s.wire.Send(&mcp.Resources{Collection: mcp.TriggerCollection}); err != nil {
			t.Fatal(err)
		}
		s.asked(1)
		trigger := s.request()
		if d := trigger.GetErrorDetail(); trigger.GetCollection() != mcp.TriggerCollection || d.GetCode() != int32(codes.Unimplemented) {
			t.Errorf("the trigger is answered by %v", trigger)
		}
		s.acked(s.full(entries, entry("shop/cart", "1", "10.0.0.1")))
		r.holds("Service shop/cart", "Endpoint shop/cart/10.0.0.1")
		m.is(source.StateLive, "")

		other := r.dials()
		if _, open := <-other.requests; open {
			t.Error("another source is asked for something")
		}
		if _, err := other.wire.Recv(); status.Code(err) != codes.ResourceExhausted || !strings.Contains(err.Error(), "another source") {
			t.Errorf("another source is answered by %v", err)
		}
		s.acked(s.full(entries, entry("shop/cart", "2", "10.0.0.2")))
		r.holds("Service shop/cart", "Endpoint shop/cart/10.0.0.2")

		s.close()
		r.pass(time.Second)
		m.is(source.StateStale, "has ended the stream")
		s = r.dials() // the next one may be another
		s.asked(1)
		s.acked(s.full(entries, entry("shop/cart", "3", "10.0.0.3")))
		r.holds("Service shop/cart", "Endpoint shop/cart/10.0.0.3")
		if n := m.Status().Notices; len(n) != 1 || !strings.Contains(n[0].Text, "was turned away") {
			t.Errorf("the notices are %v", n)
		}
	})
}

// dial opens a connection in memory.
func (r *rig) dial(ctx context.Context, _ string) (net.Conn, error) {
	conn, err := r.listener.DialContext(ctx)
	return mute{conn, &r.muted}, err
}

// mute is a connection that stays up, and on which nothing arrives in either direction once it is mute.
type mute struct {
	net.Conn
	is *atomic.Bool
}

// Read implements [net.Conn].
func (m mute) Read(b []byte) (int, error) {
	for {
		if n, err := m.Conn.Read(b); err != nil || !m.is.Load() {
			return n, err
		}
	}
}

// Write implements [net.Conn].
func (m mute) Write(b []byte) (int, error) {
	if m.is.Load() {
		return len(b), nil
	}
	return m.Conn.Write(b)
}

// A source that is gone without a word keeps no other one away for long.
func TestASourceThatIsGoneMakesRoom(t *testing.T) {
	bubble(t, func(r *rig) {
		m := r.mirror(r.listening(entries))
		s := r.dials()
		s.asked(1)
		s.acked(s.full(entries, entry("shop/cart", "1", "10.0.0.1")))
		r.muted.Store(true)
		r.pass(25 * time.Second)
		m.is(source.StateStale, "has ended the stream")
		r.holds("Service shop/cart", "Endpoint shop/cart/10.0.0.1")
		r.muted.Store(false)
		s = r.dials()
		s.asked(1)
		s.acked(s.full(entries, entry("shop/cart", "2", "10.0.0.2")))
		m.is(source.StateLive, "")
	})
}

// files writes what an authority issues, and returns where.
func files(t *testing.T, ca []byte, pair authority.Pair) sourcemcp.TLS {
	t.Helper()
	dir := t.TempDir()
	c := sourcemcp.TLS{CAFile: filepath.Join(dir, "ca"), CertFile: filepath.Join(dir, "cert"), KeyFile: filepath.Join(dir, "key")}
	for path, text := range map[string][]byte{c.CAFile: ca, c.CertFile: pair.Cert, c.KeyFile: pair.Key} {
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// run runs a source over loopback until the test ends.
func run(t *testing.T, c sourcemcp.Config) (*supervise.Supervisor, *store.Memory) {
	t.Helper()
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	s := store.NewMemory(store.Config{})
	super := supervise.New(sourceName, c.OpenProven(source.Env{Instance: "here", Name: sourceName}, verifier.New(t, identity.Config{})), s, supervise.Config{MaxBackoff: time.Second})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- super.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return super, s
}

func reaches(t *testing.T, super *supervise.Supervisor, state source.State, reason string) {
	t.Helper()
	until.NoError(t, 10*time.Millisecond, string(state), func() error {
		if s := super.Status(); s.State != state || !strings.Contains(s.Reason, reason) {
			return status.Errorf(codes.Unknown, "it is %s: %s", s.State, s.Reason)
		}
		return nil
	})
}

// Over TLS a source has to be the one that the authorities vouch for, and is shown a
// certificate if there is one.
func TestADialledSourceIsVerified(t *testing.T) {
	t.Parallel()
	ca, other := authority.New(t, "ca"), authority.New(t, "other")
	p := newPeer()
	p.set(func() { p.collections[entries] = nil })
	p.server.Stop()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	shown := files(t, ca.PEM, ca.Issue("source"))
	keeper, err := certs.New(certs.Files{CertFile: shown.CertFile, KeyFile: shown.KeyFile, ClientCAFile: shown.CAFile}, nil)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(grpc.Creds(credentials.NewTLS(keeper.TLS())))
	mcp.RegisterResourceSourceServer(server, p)
	done := make(chan struct{})
	go func() { defer close(done); _ = server.Serve(listener) }()
	t.Cleanup(func() { server.Stop(); <-done })
	for _, c := range []struct {
		name   string
		tls    sourcemcp.TLS
		state  source.State
		reason string
	}{
		{"right", files(t, ca.PEM, ca.Issue("sink")), source.StateLive, ""},
		{"a peer of another authority", files(t, other.PEM, ca.Issue("sink")), source.StateListing, "certificate signed by unknown authority"},
		{"a sink of another authority", files(t, ca.PEM, other.Issue("sink")), source.StateListing, "certificate"},
		{"plaintext", sourcemcp.TLS{}, source.StateListing, "the source 127.0.0.1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			super, _ := run(t, sourcemcp.Config{Address: listener.Addr().String(), Collections: []string{entries}, TLS: c.tls})
			reaches(t, super, c.state, c.reason)
		})
	}
}

// bound has a configuration listen on a free port of loopback, and returns where.
func bound(c *sourcemcp.Config) <-chan net.Addr {
	c.Listen = "127.0.0.1:0"
	addresses := make(chan net.Addr, 1)
	c.BindWith(func(ctx context.Context, address string) (net.Listener, error) {
		var l net.ListenConfig
		listener, err := l.Listen(ctx, "tcp", address)
		if err == nil {
			addresses <- listener.Addr()
		}
		return listener, err
	})
	return addresses
}

// dialsIn opens a stream to a sink that listens, and waits until it is asked for something.
func dialsIn(t *testing.T, address string, creds credentials.TransportCredentials) (grpc.BidiStreamingClient[mcp.Resources, mcp.RequestResources], error) {
	t.Helper()
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(creds))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	stream, err := mcp.NewResourceSinkClient(conn).EstablishResourceStream(t.Context())
	if err == nil {
		_, err = stream.Recv()
	}
	return stream, err
}

// A source that dials has to be one that the authorities vouch for, and that the
// configuration means: a certificate of any other workload is not enough.
func TestASourceThatDialsIsVerified(t *testing.T) {
	t.Parallel()
	const (
		inRoot   = "spiffe://cluster.local/ns/istio-system/sa/galley"
		registry = "spiffe://cluster.local/ns/registry/sa/nacos"
		workload = "spiffe://cluster.local/ns/shop/sa/cart"
	)
	ca, other := authority.New(t, "ca"), authority.New(t, "other")
	for name, c := range map[string]struct {
		identities []string
		taken      string
		rejected   []string
	}{
		"of the root namespace": {nil, inRoot, []string{registry, workload}},
		"named":                 {[]string{"spiffe://other.example/ns/registry/sa/*", "spiffe://*/ns/registry/sa/*"}, registry, []string{inRoot, workload}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := sourcemcp.Config{Collections: []string{entries}, TLS: files(t, ca.PEM, ca.Issue("sink"))}
			config.TLS.Identities = c.identities
			config.Hurry(time.Hour, time.Hour) // a listener without a connection is opened anew after a while
			at := bound(&config)
			super, s := run(t, config)
			address := (<-at).String()
			for name, creds := range map[string]credentials.TransportCredentials{
				"plaintext": insecure.NewCredentials(), "no certificate": credentials.NewTLS(ca.Client()),
				"another authority": credentials.NewTLS(ca.Client(other.Issue("source", c.taken))),
			} {
				if _, err := dialsIn(t, address, creds); err == nil {
					t.Errorf("%s: it is taken for the source", name)
				}
			}
			for _, id := range c.rejected {
				if _, err := dialsIn(t, address, credentials.NewTLS(ca.Client(ca.Issue("source", id)))); status.Code(err) != codes.PermissionDenied || !strings.Contains(err.Error(), id) {
					t.Errorf("%s: %v", id, err)
				}
			}
			if _, err := dialsIn(t, address, credentials.NewTLS(ca.Client(ca.Issue("source")))); status.Code(err) != codes.PermissionDenied {
				t.Errorf("without an identity: %v", err)
			}
			if n := super.StreamsRejected()["identity"]; int(n) != len(c.rejected)+1 {
				t.Errorf("%d streams are counted as rejected, not %d", n, len(c.rejected)+1)
			}
			stream, err := dialsIn(t, address, credentials.NewTLS(ca.Client(ca.Issue("source", c.taken))))
			if err != nil {
				t.Fatal(err)
			}
			if err := stream.Send(&mcp.Resources{Collection: entries, Nonce: "1", Resources: many(entry("shop/cart", "1", "10.0.0.1"))}); err != nil {
				t.Fatal(err)
			}
			reaches(t, super, source.StateLive, "")
			n := 0
			for range s.List(model.Filter{Source: sourceName, Kind: model.KindService}) {
				n++
			}
			if n != 1 {
				t.Errorf("%d services are stored", n)
			}
		})
	}
}

// Connections that say nothing keep no source away, and are closed, counted and logged.
func TestSilentConnectionsKeepNoSourceAway(t *testing.T) {
	bubble(t, func(r *rig) {
		m := r.mirror(r.listening(entries))
		var silent []net.Conn
		defer func() {
			for _, conn := range silent {
				conn.Close()
			}
		}()
		for range 40 {
			conn, err := r.listener.DialContext(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			silent = append(silent, conn)
		}
		s := r.dials()
		s.asked(1)
		s.acked(s.full(entries, entry("shop/cart", "1", "10.0.0.1")))
		r.holds("Service shop/cart", "Endpoint shop/cart/10.0.0.1")
		r.pass(11 * time.Second)
		if n := m.StreamsRejected()["handshake"]; n != 40 {
			t.Errorf("%d silent connections are counted", n)
		}
		if text := r.log.String(); !strings.Contains(text, "it opened no stream in 10s") {
			t.Errorf("the log has nothing of silent connections:\n%s", text)
		}
		m.is(source.StateLive, "")

		// Nor do they hold up the next stream, and their count outlives the run.
		for range 3 {
			conn, err := r.listener.DialContext(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			silent = append(silent, conn)
		}
		s.close()
		r.pass(2 * time.Second)
		s = r.dials()
		s.asked(1)
		s.acked(s.full(entries, entry("shop/cart", "2", "10.0.0.2")))
		m.is(source.StateLive, "")
		if n := m.StreamsRejected()["handshake"]; n != 40 {
			t.Errorf("%d silent connections are counted after another run", n)
		}
	})
}

// A listener beyond loopback that demands no identity is warned of at each start.
func TestListenersThatDemandNothingAreWarnedOf(t *testing.T) {
	t.Parallel()
	pair := sourcemcp.TLS{CertFile: "cert.pem", KeyFile: "key.pem"}
	proven := pair
	proven.CAFile = "ca.pem"
	for want, c := range map[string]sourcemcp.Config{
		"INSECURE: it is plaintext": {Listen: "0.0.0.0:9902", Insecure: true},
		"demands no certificate":    {Listen: "0.0.0.0:9902", TLS: pair},
		"":                          {Listen: "0.0.0.0:9902", TLS: proven},
	} {
		if got := strings.Join(c.Warnings(), "\n"); !strings.Contains(got, want) || (want == "") != (got == "") {
			t.Errorf("the warning is %q, not %q", got, want)
		}
	}
}
