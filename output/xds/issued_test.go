package xds_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spiffe/go-spiffe/v2/spiffeid"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	"github.com/isthmus-mesh/isthmus/authority"
	"github.com/isthmus-mesh/isthmus/identity"
	"github.com/isthmus-mesh/isthmus/output/streams"
	"github.com/isthmus-mesh/isthmus/secrets"
	testca "github.com/isthmus-mesh/isthmus/test/testkit/authority"
	"github.com/isthmus-mesh/isthmus/test/testkit/until"
	"github.com/isthmus-mesh/isthmus/test/testkit/xdsclient"
)

// issued is a rig with a listener. An authority issues its certificate.
type issued struct {
	*rig
	own    *authority.Authority
	issuer *authority.Issuer

	secrets *secrets.Keeper
}

func newIssued(t *testing.T) issued {
	t.Helper()
	return newIssuedWith(t, 10*time.Second, true, setup{})
}

func newIssuedWith(t *testing.T, ttl time.Duration, ownLeaves bool, s setup) issued {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "authority")
	own, err := authority.Create(dir, spiffeid.RequireTrustDomainFromString("cluster.local"), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	r := issued{own: own, issuer: own.Issuer(ttl)}
	var settings streams.TLS
	settings.SetDefaults()
	settings.TakeTokens()
	settings.HaveAuthority()
	settings.AcceptOwnLeaves = ownLeaves
	keeper, err := settings.Certificates("127.0.0.1:0", r.issuer, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	verifier, err := identity.New(identity.Config{Authority: identity.Authority{Dir: dir, TTL: identity.DefaultTTL}}, "istio-system", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	verifier.Disown(r.issuer, nil)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- verifier.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	var o streams.Options
	o.Secure(keeper, settings, verifier)
	r.secrets = secrets.NewKeeper(r.issuer, nil, slog.New(slog.DiscardHandler))
	s.tls, s.clientCAs, s.identity, s.demands, s.secrets = o.TLS, o.ClientCAs, verifier, o.Demands, r.secrets
	r.rig = newRig(t, s)
	r.put(only(service("shop", "own.example"), "."), service("shop", probe))
	return r
}

// trusting trusts the authority's root, and shows a certificate if there is one.
func (r issued) trusting(shows ...tls.Certificate) *tls.Config {
	roots := x509.NewCertPool()
	roots.AddCert(r.own.Root())
	return &tls.Config{RootCAs: roots, ServerName: "localhost", Certificates: shows}
}

// workload returns the certificate of a workload.
func (r issued) workload(id string) tls.Certificate {
	r.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		r.t.Fatalf("key: %v", err)
	}
	chain, err := r.own.Sign(id, &key.PublicKey, time.Now(), time.Hour)
	if err != nil {
		r.t.Fatalf("%s: %v", id, err)
	}
	pair := tls.Certificate{PrivateKey: key}
	for block, rest := pem.Decode(chain); block != nil; block, rest = pem.Decode(rest) {
		pair.Certificate = append(pair.Certificate, block.Bytes)
	}
	return pair
}

func (r issued) connect(config *tls.Config, claim string) *xdsclient.Client {
	r.t.Helper()
	conn := r.dial(grpc.WithTransportCredentials(credentials.NewTLS(config)))
	return xdsclient.NewDelta(r.t, conn, xdsclient.Config{Node: xdsclient.Node("web-1", claim, "envoy"), Ledger: r.ledger, Deadline: until.Patience})
}

// serial returns the serial number of the certificate that the listener shows now.
func (r issued) serial() string {
	r.t.Helper()
	conn, err := tls.Dial("tcp", r.address, r.trusting())
	if err != nil {
		r.t.Fatalf("handshake: %v", err)
	}
	defer conn.Close()
	return conn.ConnectionState().PeerCertificates[0].SerialNumber.String()
}

// answer returns why the listener rejects a handshake with a certificate.
func (r issued) answer(shown tls.Certificate) error {
	config := r.trusting()
	config.NextProtos = []string{"h2"}
	config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &shown, nil }
	conn, err := tls.Dial("tcp", r.address, config)
	if err != nil {
		return err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(until.Patience))
	_, err = conn.Read(make([]byte, 1)) // a rejection of TLS 1.3 comes after the handshake
	return err
}

func TestRenewingTheListenersCertificateEndsNoStream(t *testing.T) {
	t.Parallel()
	r := newIssued(t)
	stays := r.connect(r.trusting(r.workload(inShop)), "shop")
	stays.Subscribe(eds, clusterOf(probe))
	stays.AwaitHeld(eds, clusterOf(probe))
	first := r.serial()
	r.await("another certificate", func() bool { return r.serial() != first })
	r.put(endpoint("shop", probe, "one", "10.0.0.7"))
	stays.Await("a change, on the stream from before", leads(probe, "10.0.0.7"))
	again := r.connect(r.trusting(r.workload(inShop)), "shop")
	again.Subscribe(cds)
	again.AwaitHeld(cds, clustersOf("own.example", probe)...)
}

// TestOnlyWorkloadsOfTheAuthorityAreClients attacks a listener with certificates that its
// authority has signed for servers, and that others have signed.
func TestOnlyWorkloadsOfTheAuthorityAreClients(t *testing.T) {
	t.Parallel()
	r := newIssued(t)
	own, err := r.issuer.IssueServer([]string{"localhost"}, time.Now().Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	pair := testca.New(t, "other").Issue("client", inShop)
	foreign, err := tls.X509KeyPair(pair.Cert, pair.Key)
	if err != nil {
		t.Fatal(err)
	}
	for name, shown := range map[string]tls.Certificate{"the listener's own": own, "a foreign authority's": foreign} {
		if err := r.answer(shown); err == nil || !strings.Contains(err.Error(), "remote error: tls: ") {
			t.Errorf("%s certificate: %v", name, err)
		}
	}
	if err := r.answer(r.workload(inShop)); err != nil {
		t.Errorf("a workload's certificate: %v", err)
	}
	nobody := r.connect(r.trusting(), "shop")
	nobody.Subscribe(cds)
	if err := nobody.AwaitEnd(); status.Code(err) != codes.Unauthenticated {
		t.Errorf("a client without proof: %v", err)
	}
	revoked := r.connect(r.trusting(r.workload(inShop)), "shop")
	revoked.Subscribe(cds)
	revoked.AwaitHeld(cds, clustersOf("own.example", probe)...)
	if _, err := r.own.RevokeAccount(spiffeid.RequireFromString(inShop), time.Now()); err != nil {
		t.Fatal(err)
	}
	if err := revoked.AwaitEnd(); status.Code(err) != codes.Unauthenticated {
		t.Errorf("a client of a revoked account: %v", err)
	}
}
