package xds_test

import (
	"crypto/tls"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output/streams"
	"github.com/isthmus-mesh/isthmus/output/xds"
	"github.com/isthmus-mesh/isthmus/test/testkit/authority"
	"github.com/isthmus-mesh/isthmus/test/testkit/until"
	"github.com/isthmus-mesh/isthmus/test/testkit/xdsclient"
)

// often looks at certificates sooner than a test gets impatient.
var often = xds.Limits{Limits: streams.Limits{Recheck: 20 * time.Millisecond}}

// ask opens a delta stream that has everything it will have until a change.
func (r secured) ask(t *testing.T, config *tls.Config) raw {
	t.Helper()
	s := openRaw(t, r.over(config), adsDelta)
	s.say(&discoveryv3.DeltaDiscoveryRequest{Node: rawNode, TypeUrl: eds, ResourceNamesSubscribe: clustersOf(probe)})
	s.say(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: eds, ResponseNonce: s.delta().GetNonce()})
	return s
}

func mustNameTheCertificate(t *testing.T, err error, why string) {
	t.Helper()
	if status.Code(err) != codes.Unauthenticated || !strings.Contains(err.Error(), "client certificate") ||
		!strings.Contains(err.Error(), why) || !strings.Contains(err.Error(), "connect again with a new one") {
		t.Errorf("got %v, want %q", err, why)
	}
}

// awaitLooks returns once the server has looked that often at the authorities
// that clients are to be of.
func (r secured) awaitLooks(n uint64) {
	r.t.Helper()
	seen := r.looks.Load()
	r.await("a look at the authorities", func() bool { return r.looks.Load() >= seen+n })
}

// An authority is withdrawn: who came by it is sent away with the reason; the
// others notice nothing. With another certificate the client is let in again,
// over the same channel, for the old connection does not outlive its streams.
func TestWithdrawnAuthorityEndsItsStreams(t *testing.T) {
	r := newSecured(t, setup{limits: often}, true)
	withdrawn := authority.New(t, "withdrawn")
	r.rotate(t, r.ca.Issue("server"), withdrawn)
	old, next := r.ca.Client(withdrawn.Issue("client", inShop)), r.ca.Client(r.ca.Issue("client", inShop))
	var current atomic.Pointer[tls.Certificate]
	current.Store(&old.Certificates[0])
	config := old.Clone()
	config.Certificates = nil
	config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return current.Load(), nil }

	conn := r.over(config)
	leaves := openRaw(t, conn, adsDelta)
	leaves.say(&discoveryv3.DeltaDiscoveryRequest{Node: rawNode, TypeUrl: eds, ResourceNamesSubscribe: clustersOf(probe)})
	leaves.delta()
	stays := r.clients(next, "shop")["delta"]
	stays.Subscribe(eds, clusterOf(probe))
	stays.AwaitHeld(eds, clusterOf(probe))

	r.awaitLooks(2) // until now the certificate holds
	r.rotate(t, r.ca.Issue("server"))
	mustNameTheCertificate(t, leaves.end(), "unknown authority")
	current.Store(&next.Certificates[0])
	for end := time.Now().Add(until.Patience); ; {
		again := openRaw(t, conn, adsDelta)
		again.say(&discoveryv3.DeltaDiscoveryRequest{Node: rawNode, TypeUrl: eds, ResourceNamesSubscribe: clustersOf(probe)})
		err := again.wire.RecvMsg(&discoveryv3.DeltaDiscoveryResponse{})
		if err == nil {
			break
		}
		if code := status.Code(err); code != codes.Unauthenticated && code != codes.Unavailable || time.Now().After(end) {
			t.Fatalf("with its new certificate the client receives %v", err)
		}
	}
	r.put(endpoint("shop", probe, "one", "10.0.0.7"))
	stays.Await("a change, on the stream from before", leads(probe, "10.0.0.7"))
	if r.rejectedFor("certificate") == 0 {
		t.Error("nothing was counted")
	}
}

func TestExpiredCertificateEndsItsStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newSecured(t, setup{limits: often, memory: true}, true)
		end := time.Now().Add(time.Minute)
		leaves := r.ask(t, r.ca.Client(r.ca.IssueUntil(end, "client", inShop)))
		stays := r.clients(r.ca.Client(r.ca.Issue("client", inShop)), "shop")["delta"]
		stays.Subscribe(eds, clusterOf(probe))
		stays.AwaitHeld(eds, clusterOf(probe))
		mustNameTheCertificate(t, leaves.end(), "expired")
		if late := time.Since(end); late < 0 || late > 2*often.Recheck {
			t.Errorf("the stream ended %s after its certificate", late)
		}
		r.put(endpoint("shop", probe, "one", "10.0.0.7"))
		stays.Await("a change, on the stream from before", leads(probe, "10.0.0.7"))
	})
}

// A client that does not read cannot get the reason, and its connection ends all the same.
func TestWithdrawnClientThatNeverReadsIsSentAway(t *testing.T) {
	r := newSecured(t, setup{limits: often}, true)
	withdrawn := authority.New(t, "withdrawn")
	r.rotate(t, r.ca.Issue("server"), withdrawn)
	r.put(bigService("big.example", 300)...)
	config := r.ca.Client(withdrawn.Issue("client", inShop))
	s := openRaw(t, r.over(config), adsDelta)
	s.say(&discoveryv3.DeltaDiscoveryRequest{Node: rawNode, TypeUrl: eds, ResourceNamesSubscribe: clustersOf("big.example")})
	r.await("the stream", func() bool { return r.engine.Len() == 1 })
	r.rotate(t, r.ca.Issue("server"))
	r.await("its end", func() bool { return r.engine.Len() == 0 })
}

// A file that holds no authority is no withdrawal: an error is never an empty list.
func TestUnreadableAuthoritiesEndNoStream(t *testing.T) {
	r := newSecured(t, setup{limits: often}, true)
	stays := r.clients(r.ca.Client(r.ca.Issue("client", inShop)), "shop")["delta"]
	stays.Subscribe(eds, clusterOf(probe))
	stays.AwaitHeld(eds, clusterOf(probe))
	for i, spoiled := range []string{"", "no certificate"} {
		if err := os.WriteFile(r.path("ca.crt"), []byte(spoiled), 0o600); err != nil {
			t.Fatal(err)
		}
		r.awaitLooks(3)
		address := fmt.Sprintf("10.0.0.%d", i+1)
		r.put(endpoint("shop", probe, "one", address))
		stays.Await("a change, on the stream from before", leads(probe, address))
	}
}

// The server's certificate and the authorities change again and again while 200
// streams are being sent changes: none is lost, and nothing is lost or sent twice.
func TestRotationLosesNoStreamAndNoChange(t *testing.T) {
	const streams, rotations = 200, 6
	r := newSecured(t, setup{limits: often}, true)
	config, other := r.ca.Client(r.ca.Issue("client", inShop)), authority.New(t, "other")
	fleet := make([]*xdsclient.Client, streams)
	for i := range fleet {
		c := xdsclient.Config{Node: xdsclient.Node(fmt.Sprint("client-", i), "shop", "envoy"), Ledger: r.ledger, Deadline: until.Patience}
		open := xdsclient.NewDelta
		if i%2 == 0 {
			open = xdsclient.NewSotW
		}
		fleet[i] = open(t, r.over(config), c)
		fleet[i].Subscribe(eds, clusterOf(probe))
	}
	for _, c := range fleet {
		c.AwaitHeld(eds, clusterOf(probe))
	}
	var pairs [rotations]authority.Pair
	for i := range pairs {
		pairs[i] = r.ca.Issue("server")
	}
	done := make(chan struct{})
	var rotating sync.WaitGroup
	rotating.Go(func() {
		defer close(done)
		for i, pair := range pairs {
			r.rotate(t, pair, []*authority.Authority{other}[:i%2]...)
			r.awaitLooks(2) // so that each is seen
		}
	})
	weight := changeUntil(r.rig, done)
	rotating.Wait()
	for _, c := range fleet {
		c.Await("the last change", func(s *xdsclient.State) bool { return weightOf(s, clusterOf(probe)) == weight })
		responses := 0
		c.Read(func(s *xdsclient.State) { responses = s.Responses(eds) })
		if responses > int(weight)+1 {
			t.Errorf("%d responses to %d changes", responses, weight)
		}
	}
	if n := r.engine.Len(); n != streams {
		t.Errorf("%d streams of %d are left", n, streams)
	}
}

// changeUntil changes the weight of an endpoint until it is asked to stop, and
// returns the last.
func changeUntil(r *rig, done <-chan struct{}) (weight uint32) {
	e := endpoint("shop", probe, "one", "")
	for {
		weight++
		e.Spec = model.Endpoint{Address: "10.0.0.1", Weight: weight}
		r.put(e)
		select {
		case <-done:
			return weight
		case <-time.After(5 * time.Millisecond):
		}
	}
}
