package xds_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"iter"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/isthmus-mesh/isthmus/internal/certs"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source"
	"github.com/isthmus-mesh/isthmus/source/supervise"
	"github.com/isthmus-mesh/isthmus/source/xds"
	"github.com/isthmus-mesh/isthmus/store"
	"github.com/isthmus-mesh/isthmus/test/testkit/authority"
	"github.com/isthmus-mesh/isthmus/test/testkit/until"
)

func TestSettingsAreValidated(t *testing.T) {
	for _, test := range []struct {
		config xds.Config
		want   string // in the error; empty if there is none
	}{
		{xds.Config{Address: "127.0.0.1:15010"}, ""},
		{xds.Config{Address: "[::1]:15010", Types: []string{"ServiceEntry", "networking.istio.io/v1/DestinationRule"}}, ""},
		{xds.Config{}, "address: missing"},
		{xds.Config{Address: "xds://127.0.0.1:15010"}, "address: \"xds://127.0.0.1:15010\" is not a host and port"},
		{xds.Config{Address: "127.0.0.1"}, "is not a host and port"},
		{xds.Config{Address: ":15010"}, "is not a host and port"},
		{xds.Config{Address: "127.0.0.1:0"}, "is not a host and port"},
		{xds.Config{Address: "127.0.0.1:1", Types: []string{"Servant"}}, "types[0]: \"Servant\" is not a kind"},
		{xds.Config{Address: "127.0.0.1:1", Types: []string{"Sidecar", "networking.istio.io/v1/Sidecar"}}, "types[1]:"},
		{xds.Config{Address: "127.0.0.1:1", TLS: certs.Client{CertFile: "c"}}, "tls.keyFile: missing"},
		{xds.Config{Address: "127.0.0.1:1", TLS: certs.Client{KeyFile: "k"}}, "tls.certFile: missing"},
	} {
		err := test.config.Validate()
		if got := errorText(err); (got == "") != (test.want == "") || !strings.Contains(got, test.want) {
			t.Errorf("%+v: %q, want %q", test.config, got, test.want)
		}
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestPlaintextBeyondLoopbackIsWarnedOf(t *testing.T) {
	warned := func(c xds.Config) bool { return len(c.Warnings()) > 0 }
	if !warned(xds.Config{Address: "istiod.istio-system:15010"}) || warned(xds.Config{Address: "localhost:15010"}) ||
		warned(xds.Config{Address: "istiod.istio-system:15012", TLS: certs.Client{CAFile: "ca.pem"}}) {
		t.Error("a warning is missing, or too much")
	}
}

func TestFilesThatAreNotThereAreFound(t *testing.T) {
	c := xds.Config{Address: "127.0.0.1:1", TLS: certs.Client{CAFile: "ca.pem"}}
	c.Resolve(t.TempDir())
	if got := errorText(c.Check()); !strings.Contains(got, "tls.caFile: ") || !filepath.IsAbs(c.TLS.CAFile) {
		t.Errorf("%q of %q", got, c.TLS.CAFile)
	}
}

// A server that demands a certificate is read over mutual TLS, and one that is not
// signed as it should be is not read. A client says that it is of the namespace that
// its certificate has.
func TestMutualTLS(t *testing.T) {
	servers, clients := authority.New(t, "servers"), authority.New(t, "clients")
	dir := t.TempDir()
	file := func(name string, text []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	pair := clients.Issue("isthmus", "spiffe://cluster.local/ns/mesh-root/sa/isthmus")
	own := servers.Issue("127.0.0.1")
	cert, err := tls.X509KeyPair(own.Cert, own.Key)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(clients.PEM)
	config := &tls.Config{Certificates: []tls.Certificate{cert}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool, MinVersion: tls.VersionTLS13}
	p := newPeer(manner{})
	defer p.close()
	p.put("ServiceEntry", "shop/cart", service("shop/cart", "10.0.0.1"))
	address := serveOver(t, p, config)

	good := certs.Client{CAFile: file("ca.pem", servers.PEM), CertFile: file("c.pem", pair.Cert), KeyFile: file("k.pem", pair.Key)}
	for _, test := range []struct {
		name  string
		tls   certs.Client
		state source.State
		text  string
	}{
		{"as it should be", good, source.StateLive, ""},
		{"no certificate", certs.Client{CAFile: good.CAFile}, source.StateListing, "certificate"},
		{"another authority", certs.Client{CAFile: file("other.pem", clients.PEM), CertFile: good.CertFile, KeyFile: good.KeyFile}, source.StateListing, "certificate"},
	} {
		s := store.NewMemory(store.Config{})
		src := xds.New(xds.Config{Address: address, TLS: test.tls}, source.Env{Name: "a", Stored: func() iter.Seq[model.Record] { return s.List(model.Filter{}) }})
		super := supervise.New("a", src, s, supervise.Config{})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- super.Run(ctx) }()
		until.NoError(t, 10*time.Millisecond, test.name, func() error {
			if status := super.Status(); status.State != test.state || !strings.Contains(status.Reason, test.text) {
				return &state{status}
			}
			return nil
		})
		cancel()
		<-ended
	}
	if seen := p.seen(); len(seen) == 0 || !strings.HasSuffix(seen[0].node, ".mesh-root~mesh-root.svc.cluster.local") {
		t.Errorf("the requests are %+v", seen)
	}
}

type state struct{ source.Status }

func (s *state) Error() string { return string(s.State) + ": " + s.Reason }

// serveOver has a peer serve on a port of loopback.
func serveOver(t *testing.T, p *peer, config *tls.Config) (address string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it does not wait
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(grpc.Creds(credentials.NewTLS(config)))
	discoveryv3.RegisterAggregatedDiscoveryServiceServer(server, p)
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	t.Cleanup(func() { server.Stop(); <-ended })
	return listener.Addr().String()
}
