package xds_test

import (
	"context"
	"crypto/tls"
	"slices"
	"strings"
	"testing"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/spiffe/go-spiffe/v2/spiffeid"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	"github.com/isthmus-mesh/isthmus/authority"
	"github.com/isthmus-mesh/isthmus/push"
	"github.com/isthmus-mesh/isthmus/push/session"
	"github.com/isthmus-mesh/isthmus/secrets"
	"github.com/isthmus-mesh/isthmus/test/testkit/until"
	"github.com/isthmus-mesh/isthmus/test/testkit/xdsclient"
)

// byToken are the options of a connection with a token of an account of the namespace shop.
func (r issued) byToken(account string) []grpc.DialOption {
	r.t.Helper()
	text, _, err := r.own.Issue(authority.Grant{Namespace: "shop", Account: account, TTL: time.Hour}, time.Now())
	if err != nil {
		r.t.Fatalf("token: %v", err)
	}
	return []grpc.DialOption{grpc.WithTransportCredentials(credentials.NewTLS(r.trusting())), grpc.WithPerRPCCredentials(bearer(text))}
}

// owner connects with a token, and returns the certificate that it is sent.
func (r issued) owner(t *testing.T) (*xdsclient.Client, tls.Certificate) {
	t.Helper()
	c := xdsclient.NewDelta(r.t, r.dial(r.byToken("cart")...), xdsclient.Config{Node: xdsclient.Node("web-1", "shop", "envoy"), Ledger: r.ledger, Deadline: until.Patience})
	c.Subscribe(sds, "default", "ROOTCA")
	c.AwaitHeld(sds, "default", "ROOTCA")
	leaf := r.secrets.Leaf(inShop)
	pair, err := tls.X509KeyPair(leaf.Chain, leaf.Key)
	if err != nil {
		t.Fatal(err)
	}
	return c, pair
}

// streamsOf is the number of streams of the only identity; -1 unless there is one.
func streamsOf(list []secrets.Out) int {
	if len(list) != 1 {
		return -1
	}
	return list[0].Streams
}

// A client whose proof is the certificate that it was sent reads where the listener takes that, and
// is sent no certificate, whoever else holds it. It ends with its account.
func TestOwnLeafYieldsNoLeaf(t *testing.T) {
	t.Parallel()
	r := newIssuedWith(t, time.Hour, true, setup{})
	owner, leaf := r.owner(t)
	thief := r.connect(r.trusting(leaf), "shop")
	thief.Subscribe(sds, "default", "ROOTCA", inShop)
	thief.Subscribe(cds)
	thief.AwaitHeld(cds, clustersOf("own.example", probe)...)
	thief.AwaitHeld(sds, "ROOTCA")
	if out := r.secrets.All(); len(out) != 1 || out[0].Streams != 1 {
		t.Errorf("certificates are renewed for %+v", out)
	}
	owner.Close()
	r.await("no stream that is sent certificates", func() bool { return streamsOf(r.secrets.All()) == 0 })
	r.put(service("shop", "new.example"))
	thief.AwaitHeld(cds, clustersOf("own.example", "new.example", probe)...)
	if _, err := r.own.RevokeAccount(spiffeid.RequireFromString(inShop), time.Now()); err != nil {
		t.Fatal(err)
	}
	if err := thief.AwaitEnd(); status.Code(err) != codes.Unauthenticated || !strings.Contains(err.Error(), "revoked") {
		t.Errorf("its stream ends with %v", err)
	}
}

func TestOwnLeafIsNoProofByDefault(t *testing.T) {
	t.Parallel()
	r := newIssuedWith(t, time.Hour, false, setup{})
	_, leaf := r.owner(t)
	thief := r.connect(r.trusting(leaf), "shop")
	thief.Subscribe(cds)
	if err := thief.AwaitEnd(); status.Code(err) != codes.PermissionDenied || !strings.Contains(err.Error(), "tls.acceptOwnLeaves") {
		t.Errorf("its stream ends with %v", err)
	}
}

// A stream that a client does not read stays after its proof, and no certificate is renewed for it.
func TestUnreadStreamOfARevokedAccountHoldsNoLeaf(t *testing.T) {
	t.Parallel()
	r := newIssuedWith(t, time.Hour, false, setup{engine: push.Config{Patience: time.Millisecond}})
	r.put(bigService("big.example", 3000)...)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	stream, err := discoveryv3.NewAggregatedDiscoveryServiceClient(r.dial(r.byToken("cart")...)).DeltaAggregatedResources(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for n, typeURL := range []string{eds, cds} { // the second response waits behind the first
		_ = stream.Send(&discoveryv3.DeltaDiscoveryRequest{Node: xdsclient.Node("stuck", "shop", "envoy"), TypeUrl: typeURL, ResourceNamesSubscribe: clustersOf("big.example")})
		r.await("a response that is not read", func() bool {
			all := r.engine.Clients()
			return len(all) == 1 && len(all[0].Types) == n+1 && !slices.ContainsFunc(all[0].Types, func(s session.TypeStatus) bool { return s.State != session.Waiting }) && streamsOf(r.secrets.All()) == 1
		})
	}
	if _, err := r.own.RevokeAccount(spiffeid.RequireFromString(inShop), time.Now()); err != nil {
		t.Fatal(err)
	}
	r.await("no stream that is sent certificates", func() bool { return streamsOf(r.secrets.All()) == 0 })
}
