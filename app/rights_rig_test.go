package app_test

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	random "math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"

	"github.com/isthmus-mesh/isthmus/app"
	"github.com/isthmus-mesh/isthmus/config"
	"github.com/isthmus-mesh/isthmus/internal/mcp"
	testca "github.com/isthmus-mesh/isthmus/test/testkit/authority"
	"github.com/isthmus-mesh/isthmus/test/testkit/instance"
	"github.com/isthmus-mesh/isthmus/test/testkit/until"
)

// guarded is an Isthmus that demands proofs, and the proofs of all identities.
type guarded struct {
	*app.App
	ca     *testca.Authority
	proofs map[who]proof // a certificate and a token each
}

// proof is a certificate, a token, both or none.
type proof struct {
	certificates []testca.Pair
	token        string
}

// GetRequestMetadata implements [credentials.PerRPCCredentials].
func (p proof) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	if p.token == "" {
		return nil, nil
	}
	return map[string]string{"authorization": "Bearer " + p.token}, nil
}

// RequireTransportSecurity implements [credentials.PerRPCCredentials].
func (proof) RequireTransportSecurity() bool { return true }

// kinds returns the proofs of one identity, by kind.
func (p proof) kinds() map[string]proof {
	return map[string]proof{"certificate": {p.certificates, ""}, "token": {nil, p.token}, "both": p}
}

const guardedOutputs = `
outputs:
  xds: &secured {listen: "127.0.0.1:0", tls: {certFile: tls.crt, keyFile: tls.key, clientCAFile: ca.crt}}
  mcp: *secured
  watch: *secured
`

// guard starts an Isthmus with the exported services. Trust is its settings of trust domains.
// Sources are further ones, and admin is further settings of the admin API. More are further
// authorities of clients.
func guard(t *testing.T, trust, sources, admin string, more ...*x509.Certificate) *guarded {
	t.Helper()
	g := &guarded{ca: testca.New(t, "ca"), proofs: map[who]proof{}}
	server := g.ca.Issue("server")
	files := map[string][]byte{"ca.crt": slices.Clone(g.ca.PEM), "tls.crt": server.Cert, "tls.key": server.Key, "admin.token": []byte(adminToken)}
	for _, one := range more {
		files["ca.crt"] = append(files["ca.crt"], pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: one.Raw})...)
	}
	for name, service := range exported {
		files["registry/"+name+".yaml"] = fmt.Appendf(nil, "apiVersion: networking.istio.io/v1\nkind: ServiceEntry\nmetadata: {name: %s, namespace: %s}\n"+
			"spec: {hosts: [%s.example], ports: [{number: 80, name: http, protocol: HTTP}], resolution: STATIC, endpoints: [{address: 10.1.0.1}]%s}\n",
			name, service.namespace, name, service.exportTo)
	}
	text := "sources:\n- {name: files, file: {path: registry}}\n" + sources + guardedOutputs +
		"admin: {listen: \"127.0.0.1:0\"" + admin + "}\nidentity:\n  trustDomain: cluster.local\n" + trust + "  jwt:\n"
	for _, domain := range domains {
		issuer := testca.NewIssuer(t, "https://"+domain)
		files[domain] = issuer.Keys()
		text += fmt.Sprintf("  - {issuer: %q, keysFile: %s, trustDomain: %[2]s}\n", "https://"+domain, domain)
		for _, namespace := range namespaces {
			w := who{domain, namespace}
			g.proofs[w] = proof{[]testca.Pair{g.ca.Issue("client", w.String())}, issuer.Token(namespace, account)}
		}
	}
	files["isthmus.yaml"] = []byte(text)
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "registry"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c, err := config.Load(filepath.Join(dir, "isthmus.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	g.App = instance.Run(t, c)
	return g
}

// rareAddress returns an address of loopback where another process hardly begins to listen
// meanwhile.
func rareAddress(t *testing.T) string {
	t.Helper()
	at := fmt.Sprintf("127.%d.%d.%d:0", 1+random.IntN(250), random.IntN(250), 1+random.IntN(250)) //nolint:gosec // nothing is secret
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

func (g *guarded) dial(t *testing.T, address string, p proof) *grpc.ClientConn {
	t.Helper()
	soon := backoff.Config{BaseDelay: 20 * time.Millisecond, MaxDelay: 20 * time.Millisecond}
	conn, err := grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(credentials.NewTLS(g.ca.Client(p.certificates...))),
		grpc.WithPerRPCCredentials(p), grpc.WithConnectParams(grpc.ConnectParams{Backoff: soon, MinConnectTimeout: until.Patience}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// registers has a registry dial a source, and returns the error that it is answered with. A
// registry that is taken stays until the test ends.
func (g *guarded) registers(t *testing.T, address string, p proof, options ...grpc.CallOption) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), until.Patience)
	t.Cleanup(cancel)
	stream, err := mcp.NewResourceSinkClient(g.dial(t, address, p)).EstablishResourceStream(ctx, options...)
	if err != nil {
		return err
	}
	_, err = stream.Recv()
	return err
}

// asks asks the admin API for the status, and returns the code and the text of the answer.
func (g *guarded) asks(t *testing.T, scheme string, p proof) (code int, text []byte) {
	t.Helper()
	return g.get(t, scheme, "/api/v1/status", p)
}

// get asks the admin API for a path.
func (g *guarded) get(t *testing.T, scheme, path string, p proof) (code int, text []byte) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, scheme+"://"+g.AdminAddr().String()+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	if p.token != "" {
		request.Header.Set("Authorization", "Bearer "+p.token)
	}
	security := g.ca.Client(p.certificates...)
	security.NextProtos = nil
	client := http.Client{Transport: &http.Transport{TLSClientConfig: security, DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if text, err = io.ReadAll(response.Body); err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, text
}
