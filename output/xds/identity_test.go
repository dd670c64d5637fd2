package xds_test

import (
	"crypto/tls"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	"github.com/isthmus-mesh/isthmus/identity"
	"github.com/isthmus-mesh/isthmus/internal/certs"
	"github.com/isthmus-mesh/isthmus/test/testkit/authority"
	"github.com/isthmus-mesh/isthmus/test/testkit/until"
	"github.com/isthmus-mesh/isthmus/test/testkit/xdsclient"
)

const inShop = "spiffe://cluster.local/ns/shop/sa/cart"

// secured is a rig whose listener has certificates, and what signs them.
type secured struct {
	*rig
	ca    *authority.Authority
	dir   string
	looks *atomic.Uint64 // at the authorities of clients, of streams that go on
}

// newSecured serves a service that only the namespace shop sees, and one for
// everybody.
func newSecured(t *testing.T, s setup, demand bool) secured {
	t.Helper()
	r := secured{ca: authority.New(t, "ca"), dir: t.TempDir(), looks: new(atomic.Uint64)}
	r.rotate(t, r.ca.Issue("server"))
	files := certs.Files{CertFile: r.path("tls.crt"), KeyFile: r.path("tls.key")}
	if demand {
		files.ClientCAFile = r.path("ca.crt")
	}
	keeper, err := certs.New(files, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	s.tls = keeper.TLS()
	if demand {
		s.clientCAs = func() *certs.Authorities {
			r.looks.Add(1)
			return keeper.ClientCAs()
		}
	}
	r.rig = newRig(t, s)
	r.put(only(service("shop", "own.example"), "."), service("shop", probe))
	return r
}

func (r secured) path(name string) string { return filepath.Join(r.dir, name) }

func (r secured) rotate(t *testing.T, pair authority.Pair, others ...*authority.Authority) {
	t.Helper()
	authorities := slices.Clone(r.ca.PEM)
	for _, other := range others {
		authorities = append(authorities, other.PEM...)
	}
	for name, text := range map[string][]byte{"tls.crt": pair.Cert, "tls.key": pair.Key, "ca.crt": authorities} {
		if err := os.WriteFile(r.path(name)+".new", text, 0o600); err != nil {
			t.Error(err)
		}
		if err := os.Rename(r.path(name)+".new", r.path(name)); err != nil {
			t.Error(err)
		}
	}
}

func (r secured) over(config *tls.Config) *grpc.ClientConn {
	r.t.Helper()
	return r.dial(grpc.WithTransportCredentials(credentials.NewTLS(config)))
}

// clients connects one of each variant that shows a certificate and claims a namespace.
func (r secured) clients(config *tls.Config, claim string) map[string]*xdsclient.Client {
	r.t.Helper()
	return map[string]*xdsclient.Client{
		"sotw":  xdsclient.NewSotW(r.t, r.over(config), xdsclient.Config{Node: xdsclient.Node("sotw", claim, "envoy"), Ledger: r.ledger, Deadline: until.Patience}),
		"delta": xdsclient.NewDelta(r.t, r.over(config), xdsclient.Config{Node: xdsclient.Node("delta", claim, "envoy"), Ledger: r.ledger, Deadline: until.Patience}),
	}
}

func TestProvenClientIsInTheNamespaceOfItsCertificate(t *testing.T) {
	r := newSecured(t, setup{}, true)
	for _, claim := range []string{"", "shop"} {
		for _, c := range r.clients(r.ca.Client(r.ca.Issue("client", inShop)), claim) {
			c.Subscribe(cds)
			c.AwaitHeld(cds, clustersOf("own.example", probe)...)
		}
	}
	for _, shown := range r.engine.Clients() {
		if !shown.Proven || shown.Identity != inShop || shown.Client.Namespace != "shop" {
			t.Errorf("shown as %+v", shown)
		}
	}
}

func TestClaimCannotWidenWhatIsProven(t *testing.T) {
	r := newSecured(t, setup{}, true)
	for variant, c := range r.clients(r.ca.Client(r.ca.Issue("client", inShop)), "bank") {
		c.Subscribe(cds)
		if err := c.AwaitEnd(); status.Code(err) != codes.PermissionDenied || !strings.Contains(err.Error(), `"bank"`) || !strings.Contains(err.Error(), inShop) {
			t.Errorf("%s: got %v", variant, err)
		}
	}
	for cause, n := range r.server.Rejected() {
		if want := map[string]uint64{"identity": 2}[cause]; n != want {
			t.Errorf("%d rejected for %s, want %d", n, cause, want)
		}
	}
}

func TestCertificateWithoutAnIdentityIsRejected(t *testing.T) {
	r := newSecured(t, setup{demands: identity.Demands{TrustDomains: []string{"cluster.local"}}}, true)
	tests := map[string][]string{
		"no URI":                  nil,
		"two identities":          {inShop, "spiffe://cluster.local/ns/bank/sa/cart"},
		"an identity and a page":  {inShop, "https://shop.example"},
		"a page":                  {"https://shop.example/ns/shop/sa/cart"},
		"a domain alone":          {"spiffe://cluster.local"},
		"another path":            {"spiffe://cluster.local/sa/cart/ns/shop"},
		"a longer path":           {inShop + "/more"},
		"an empty segment":        {"spiffe://cluster.local/ns//sa/cart"},
		"no DNS label":            {"spiffe://cluster.local/ns/shop.bank/sa/cart"},
		"capitals":                {"spiffe://cluster.local/ns/Shop/sa/cart"},
		"a way up":                {"spiffe://cluster.local/ns/../sa/cart"},
		"an escaped slash":        {"spiffe://cluster.local/ns/shop%2Fbank/sa/cart"},
		"another domain":          {"spiffe://elsewhere/ns/shop/sa/cart"},
		"a port":                  {"spiffe://cluster.local:1/ns/shop/sa/cart"},
		"a query beside the path": {inShop + "?ns=bank"},
	}
	for name, uris := range tests {
		t.Run(name, func(t *testing.T) {
			for variant, c := range r.clients(r.ca.Client(r.ca.Issue("client", uris...)), "") {
				c.Subscribe(cds)
				if err := c.AwaitEnd(); status.Code(err) != codes.PermissionDenied {
					t.Errorf("%s: got %v", variant, err)
				}
			}
		})
	}
}

func TestWithoutClientCertificatesNothingIsProven(t *testing.T) {
	r := newSecured(t, setup{}, false)
	for _, c := range r.clients(r.ca.Client(r.ca.Issue("not asked for", "spiffe://cluster.local/ns/bank/sa/x")), "shop") {
		c.Subscribe(cds)
		c.AwaitHeld(cds, clustersOf("own.example", probe)...)
	}
	for _, shown := range r.engine.Clients() {
		if shown.Proven || !strings.Contains(shown.Identity, "shop") {
			t.Errorf("shown as %+v", shown)
		}
	}
}

func TestClientWithoutACertificateIsNotLetIn(t *testing.T) {
	r := newSecured(t, setup{}, true)
	unknown := authority.New(t, "other").Issue("unknown", inShop)
	for name, config := range map[string]*tls.Config{"none": r.ca.Client(), "of an unknown authority": r.ca.Client(unknown)} {
		stream, err := r.over(config).NewStream(t.Context(), &grpc.StreamDesc{ServerStreams: true}, adsDelta)
		if err == nil {
			err = stream.RecvMsg(nil)
		}
		if status.Code(err) != codes.Unavailable {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// Certificates change, while clients come and go, and while one stays.
func TestCertificateIsRotatedUnderLoad(t *testing.T) {
	const rotations, clientsEach = 8, 4
	r := newSecured(t, setup{}, true)
	config := r.ca.Client(r.ca.Issue("client", inShop))
	stays := r.clients(config, "shop")["delta"]
	stays.Subscribe(eds, clusterOf(probe))
	stays.AwaitHeld(eds, clusterOf(probe))
	var pairs [rotations]authority.Pair
	for i := range pairs {
		pairs[i] = r.ca.Issue("server")
	}
	var rotating sync.WaitGroup
	rotating.Go(func() {
		for _, pair := range pairs {
			r.rotate(t, pair)
		}
	})
	for i := range clientsEach {
		for _, c := range r.clients(config, "shop") {
			c.Subscribe(eds, clusterOf(probe))
			c.AwaitHeld(eds, clusterOf(probe))
			if i%2 == 0 {
				c.Close()
			}
		}
	}
	rotating.Wait()
	r.put(endpoint("shop", probe, "one", "10.0.0.9"))
	stays.Await("a change after the rotations, on the stream from before", leads(probe, "10.0.0.9"))
	for _, c := range r.clients(config, "shop") {
		c.Subscribe(eds, clusterOf(probe))
		c.Await("a stream after them", leads(probe, "10.0.0.9"))
	}
}
