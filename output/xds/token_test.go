package xds_test

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"github.com/spiffe/go-spiffe/v2/spiffeid"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/isthmus-mesh/isthmus/authority"
	"github.com/isthmus-mesh/isthmus/identity"
	"github.com/isthmus-mesh/isthmus/internal/certs"
	"github.com/isthmus-mesh/isthmus/output"
	"github.com/isthmus-mesh/isthmus/output/envoy/wire"
	"github.com/isthmus-mesh/isthmus/secrets"
	testca "github.com/isthmus-mesh/isthmus/test/testkit/authority"
	"github.com/isthmus-mesh/isthmus/test/testkit/until"
	"github.com/isthmus-mesh/isthmus/test/testkit/xdsclient"
)

const sds = xdsclient.SDS

// vouched is a secured rig that takes the tokens of an authority, and serves its certificates.
type vouched struct {
	secured
	own *authority.Authority
}

func newVouched(t *testing.T) vouched {
	t.Helper()
	return newVouchedWith(t, setup{}, 24*time.Hour)
}

// newVouchedWith has certificates that are valid for ttl, and takes the tokens of more issuers.
func newVouchedWith(t *testing.T, s setup, ttl time.Duration, more ...identity.Issuer) vouched {
	t.Helper()
	r := vouched{secured: secured{dir: t.TempDir()}}
	r.ca = testca.New(t, "ca")
	r.rotate(t, r.ca.Issue("server"))
	dir := filepath.Join(r.dir, "authority")
	var err error
	if r.own, err = authority.Create(dir, spiffeid.RequireTrustDomainFromString("cluster.local"), time.Now()); err != nil {
		t.Fatal(err)
	}
	files, err := certs.New(certs.Files{CertFile: r.path("tls.crt"), KeyFile: r.path("tls.key"), ClientCAFile: r.path("ca.crt"), Optional: true}, nil)
	if err != nil {
		t.Fatal(err)
	}
	verifier, err := identity.New(identity.Config{JWT: more, Authority: identity.Authority{Dir: dir, TTL: identity.DefaultTTL}}, "istio-system", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- verifier.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	s.tls, s.clientCAs, s.identity = files.TLS(), files.ClientCAs, verifier
	s.secrets = secrets.NewKeeper(r.own.Issuer(ttl), nil, slog.New(slog.DiscardHandler))
	r.rig = newRig(t, s)
	r.put(only(service("shop", "own.example"), "."), service("shop", probe))
	return r
}

// token issues a token.
func (r vouched) token(namespace, account string, addresses ...string) (text, id string) {
	r.t.Helper()
	text, entry, err := r.own.Issue(authority.Grant{Namespace: namespace, Account: account, Addresses: addresses, TTL: time.Hour}, time.Now())
	if err != nil {
		r.t.Fatalf("token: %v", err)
	}
	return text, entry.ID
}

// bearer sends a token with each stream.
type bearer string

func (b bearer) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"authorization": "Bearer " + string(b)}, nil
}

func (b bearer) RequireTransportSecurity() bool { return false }

// with connects a client that sends a token, says that it is a node in a namespace, and shows a
// certificate if there is one.
func (r vouched) with(token, claim string, shows ...string) *xdsclient.Client {
	r.t.Helper()
	config := r.ca.Client()
	if len(shows) > 0 {
		config = r.ca.Client(r.ca.Issue("client", shows...))
	}
	options := []grpc.DialOption{grpc.WithTransportCredentials(credentials.NewTLS(config))}
	if token != "" {
		options = append(options, grpc.WithPerRPCCredentials(bearer(token)))
	}
	return xdsclient.NewDelta(r.t, r.dial(options...), xdsclient.Config{Node: xdsclient.Node("web-1", claim, "envoy"), Ledger: r.ledger, Deadline: until.Patience})
}

func TestTokenProvesANamespace(t *testing.T) {
	t.Parallel()
	r := newVouched(t)
	token, _ := r.token("shop", "cart", "127.0.0.0/8")
	for _, c := range []*xdsclient.Client{r.with(token, ""), r.with(token, "shop"), r.with(token, "shop", inShop), r.with("", "shop", inShop)} {
		c.Subscribe(cds)
		c.AwaitHeld(cds, clustersOf("own.example", probe)...)
	}
	for _, shown := range r.engine.Clients() {
		if !shown.Proven || shown.Identity != inShop || shown.Client.Account != inShop {
			t.Errorf("shown as %+v", shown)
		}
	}
}

func TestBadProofsAreRejected(t *testing.T) {
	t.Parallel()
	r := newVouched(t)
	token, _ := r.token("shop", "cart")
	distant, _ := r.token("shop", "cart", "192.0.2.0/24")
	revoked, id := r.token("shop", "cart")
	if _, err := r.own.RevokeToken(id, time.Now()); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		client *xdsclient.Client
		code   codes.Code
		reason string
	}{
		"no proof":                         {r.with("", "shop"), codes.Unauthenticated, "proves no identity"},
		"no token":                         {r.with("nonsense", "shop"), codes.Unauthenticated, "token"},
		"another address":                  {r.with(distant, ""), codes.Unauthenticated, "127.0.0.1"},
		"a node of another namespace":      {r.with(token, "bank"), codes.PermissionDenied, `"bank"`},
		"a certificate of another account": {r.with(token, "", "spiffe://cluster.local/ns/shop/sa/till"), codes.Unauthenticated, "sa/till"},
	} {
		test.client.Subscribe(cds)
		if err := test.client.AwaitEnd(); status.Code(err) != test.code || !strings.Contains(err.Error(), test.reason) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	for { // it takes effect within a second or so
		c := r.with(revoked, "")
		c.Subscribe(cds)
		if err := c.AwaitEnd(); strings.Contains(err.Error(), "is revoked") {
			return
		}
	}
}

// A revoked account loses its streams, however it proves itself, and others do not.
func TestRevocationEndsStreams(t *testing.T) {
	t.Parallel()
	r := newVouched(t)
	token, _ := r.token("shop", "cart")
	other, _ := r.token("shop", "till")
	byToken, byCertificate, stays := r.with(token, ""), r.with("", "", inShop), r.with(other, "")
	for _, c := range []*xdsclient.Client{byToken, byCertificate, stays} {
		c.Subscribe(cds)
		c.AwaitHeld(cds, clustersOf("own.example", probe)...)
	}
	id := spiffeid.RequireFromString(inShop)
	if _, err := r.own.RevokeAccount(id, time.Now()); err != nil {
		t.Fatal(err)
	}
	for _, c := range []*xdsclient.Client{byToken, byCertificate} {
		if err := c.AwaitEnd(); status.Code(err) != codes.Unauthenticated || !strings.Contains(err.Error(), "revoked") {
			t.Errorf("got %v", err)
		}
	}
	r.put(service("shop", "new.example"))
	stays.AwaitHeld(cds, clustersOf("own.example", "new.example", probe)...)
}

// A client gets the certificate of its own identity and the authorities, and nothing of
// others, whatever it asks for. People are shown no key.
func TestSecretsAreForTheirIdentityAlone(t *testing.T) {
	t.Parallel()
	r := newVouched(t)
	token, _ := r.token("shop", "cart")
	const inBank = "spiffe://cluster.local/ns/shop/sa/till"
	other, _ := r.token("shop", "till")
	own, foreign := r.with(token, ""), r.with(other, "")
	for _, c := range []*xdsclient.Client{own, foreign} {
		c.Subscribe(sds, "default", "ROOTCA", inShop, inBank)
	}
	own.AwaitHeld(sds, "default", "ROOTCA", inShop)
	foreign.AwaitHeld(sds, "default", "ROOTCA", inBank)
	for c, identity := range map[*xdsclient.Client]string{own: inShop, foreign: inBank} {
		if got := identityIn(t, c, "default"); got != identity {
			t.Errorf("the certificate of %s is that of %s", identity, got)
		}
	}
	for _, shown := range r.engine.Clients() {
		for _, name := range []string{"default", inShop, inBank} {
			if read := r.engine.Read(shown.Client, wire.SecretURL, name); read != nil && strings.Contains(string(read.Body), "PRIVATE") {
				t.Errorf("the key of %s can be read", name)
			}
		}
	}
	unproven := newRig(t, setup{secrets: secrets.NewKeeper(r.own.Issuer(24*time.Hour), nil, slog.New(slog.DiscardHandler))})
	unproven.put(service("shop", probe))
	c := xdsclient.NewDelta(t, unproven.dial(), xdsclient.Config{Node: xdsclient.Node("web-1", "shop", "envoy"), Ledger: unproven.ledger, Deadline: until.Patience})
	c.Subscribe(sds, "default", "ROOTCA", inShop)
	c.Subscribe(cds)
	c.AwaitHeld(cds, clustersOf(probe)...)
	c.AwaitHeld(sds)
}

// identityIn returns the identity in a certificate that a client holds.
func identityIn(t *testing.T, c *xdsclient.Client, name string) string {
	t.Helper()
	var identity string
	c.Read(func(s *xdsclient.State) {
		held, _ := s.Get(sds, name)
		identity = leafIn(t, held.Content).URIs[0].String()
	})
	return identity
}

// quick is an issuer with windows of a second.
type quick struct{ *authority.Issuer }

func (q quick) Issue(identity string, now time.Time) (*secrets.Leaf, error) {
	leaf, err := q.Issuer.Issue(identity, now)
	if err == nil {
		leaf.Window = secrets.WindowOf(identity, time.Second, now)
	}
	return leaf, err
}

// A client is sent the certificate of each window, whether or not the catalog changes meanwhile.
func TestRenewedCertificateIsSent(t *testing.T) {
	t.Parallel()
	own, err := authority.Create(filepath.Join(t.TempDir(), "authority"), spiffeid.RequireTrustDomainFromString("cluster.local"), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	s := openSiteWith(t, output.Env{Certificates: quick{own.Issuer(24 * time.Hour)}}, true, nil)
	s.put()
	c := s.proven(inShop)
	c.Subscribe(sds, "default", "ROOTCA")
	c.AwaitHeld(sds, "default", "ROOTCA")
	var serials []string
	for round := range 4 {
		if round%2 == 1 {
			s.put(upserts(service("shop", fmt.Sprintf("s%d.example", round)))...)
		}
		c.Await("another certificate", func(state *xdsclient.State) bool {
			held, _ := state.Get(sds, "default")
			serial := leafIn(t, held.Content).SerialNumber.String()
			if slices.Contains(serials, serial) {
				return false
			}
			serials = append(serials, serial)
			return true
		})
	}
	c.Read(func(state *xdsclient.State) {
		if n := state.Received(sds, "ROOTCA"); n != 1 {
			t.Errorf("the authorities came %d times", n)
		}
	})
}

// proven connects an Envoy that proves an identity by a certificate.
func (s *site) proven(identity string) *xdsclient.Client {
	s.t.Helper()
	conn, err := grpc.NewClient("passthrough:///"+s.out.Report().Addr.String(),
		grpc.WithTransportCredentials(credentials.NewTLS(s.ca.Client(s.ca.Issue("client", identity)))))
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = conn.Close() })
	return xdsclient.NewDelta(s.t, conn, xdsclient.Config{Node: xdsclient.Node("web-1", "shop", "envoy"), Ledger: &xdsclient.Ledger{}, Deadline: until.Patience})
}

// leafIn returns the certificate in a secret.
func leafIn(t *testing.T, content proto.Message) *x509.Certificate {
	t.Helper()
	secret, _ := content.(*tlsv3.Secret)
	certificate := secret.GetTlsCertificate()
	if !strings.Contains(string(certificate.GetPrivateKey().GetInlineBytes()), "PRIVATE KEY") {
		t.Error("the certificate has no key")
	}
	block, _ := pem.Decode(certificate.GetCertificateChain().GetInlineBytes())
	leaf, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return leaf
}
