package admin_test

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/isthmus-mesh/isthmus/admin"
	"github.com/isthmus-mesh/isthmus/config"
	"github.com/isthmus-mesh/isthmus/internal/certs"
	"github.com/isthmus-mesh/isthmus/test/testkit/authority"
	"github.com/isthmus-mesh/isthmus/test/testkit/until"
)

const (
	sources   = "/api/v1/sources"
	release   = "/api/v1/sources/legacy/release"
	theSecret = "s3cret-of-the-test"
)

// pod is a listener on all addresses of a machine that this test cannot have:
// connections are real, but for the addresses at their ends.
type pod struct {
	net.Listener
	peer, own atomic.Pointer[net.TCPAddr]
}

func newPod(t *testing.T) *pod {
	t.Helper()
	p := &pod{Listener: loopback(t)}
	p.from("203.0.113.9", "192.0.2.7")
	return p
}

// from says between which addresses the next connections are.
func (p *pod) from(peer, own string) {
	p.peer.Store(&net.TCPAddr{IP: net.ParseIP(peer), Port: 40000})
	p.own.Store(&net.TCPAddr{IP: net.ParseIP(own), Port: 8080})
}

func (p *pod) Accept() (net.Conn, error) {
	conn, err := p.Listener.Accept()
	return between{conn, p.peer.Load(), p.own.Load()}, err
}

// Addr is what such a listener says of itself.
func (p *pod) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv6unspecified, Port: 8080} }

type between struct {
	net.Conn
	peer, own net.Addr
}

func (b between) RemoteAddr() net.Addr { return b.peer }
func (b between) LocalAddr() net.Addr  { return b.own }

// asking asks a server in a certain way.
type asking struct {
	t       *testing.T
	base    string
	address string
	trusts  *tls.Config
}

// ask makes a connection of its own and returns the status and the body.
func (a asking) ask(method, path, host string, header ...string) (int, string) {
	a.t.Helper()
	transport := &http.Transport{TLSClientConfig: a.trusts, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "tcp", a.address)
	}}
	defer transport.CloseIdleConnections()
	request, err := http.NewRequestWithContext(a.t.Context(), method, a.base+path, http.NoBody)
	if err != nil {
		a.t.Fatal(err)
	}
	request.Host = host
	for i := 0; i < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	response, err := (&http.Client{Transport: transport, Timeout: until.Patience}).Do(request)
	if err != nil {
		a.t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		a.t.Fatal(err)
	}
	return response.StatusCode, string(body)
}

// wants reports an answer that is not as it should be.
func (a asking) wants(status int, says, method, path, host string, header ...string) {
	a.t.Helper()
	if got, body := a.ask(method, path, host, header...); got != status || !strings.Contains(body, says) {
		a.t.Errorf("%s %s at %q with %q: %d %s; want %d, %q", method, path, host, header, got, body, status, says)
	}
}

var bearer = []string{"Authorization", "Bearer " + theSecret}

func onLoopback(t *testing.T, access admin.Access) asking {
	t.Helper()
	return asking{t: t, base: "http://isthmus", address: heldOn(t, loopback(t), access)}
}

func inPod(t *testing.T, access admin.Access) (asking, *pod) {
	t.Helper()
	p := newPod(t)
	heldOn(t, p, access)
	a := asking{t: t, base: "http://isthmus", address: p.Listener.Addr().String()}
	if access.TLS != nil {
		a.base = "https://isthmus"
	}
	return a, p
}

// A page in a browser can have its own name lead to loopback.
func TestNamesThatAnybodyCanHaveReachNothing(t *testing.T) {
	a := onLoopback(t, admin.Access{AllowedHosts: []string{"Isthmus.Example", "mesh.example:8443", "192.0.2.5", "[2001:db8::5]:80"}})
	for _, host := range []string{
		"evil.example", "evil.example:8080", "localhost.evil.example", "evil.localhost", "mesh.example", "mesh.example:80",
		"notisthmus.example", "isthmus.example.evil", "0.0.0.0:8080", "192.0.2.1", "[2001:db8::5]:81", "[::2]", "127.0.0.1.evil.example", "127.1",
	} {
		for _, path := range []string{sources, "/api/v1/clients", "/metrics", "/livez", "/readyz", "/nothing"} {
			a.wants(http.StatusForbidden, `"`+host+`"`, http.MethodGet, path, host)
		}
		a.wants(http.StatusForbidden, "admin.allowedHosts", http.MethodPost, release, host, "Content-Type", "application/json")
	}
	for _, host := range []string{
		"localhost", "localhost:8080", "LOCALHOST:1", "localhost.:8080", "127.0.0.1", "127.0.0.1:8080", "127.8.9.1:8080", "[::1]", "[::1]:8080",
		"isthmus.example", "ISTHMUS.example:1234", "isthmus.example.", "mesh.example:8443", "192.0.2.5:80", "[2001:db8::5]:80",
	} {
		a.wants(http.StatusOK, `"state": "held"`, http.MethodGet, sources, host)
	}
}

func TestProbesAndMetricsBeyondLoopbackAreForAnyone(t *testing.T) {
	a, _ := inPod(t, admin.Access{})
	for _, host := range []string{"10.0.0.7:8080", "isthmus-admin.mesh.svc:8080", "evil.example"} {
		for path, says := range map[string]string{"/livez": "", "/readyz": "", "/metrics": `isthmus_source_held{source="legacy"} 13`} {
			a.wants(http.StatusOK, says, http.MethodGet, path, host)
		}
	}
	for _, path := range []string{sources, "/api/v1/services", "/api/v1/clients", "/api/v1/config", "/", "/nothing", "//livez", "/livez/../api/v1/sources", "/metrics/"} {
		for _, host := range []string{"192.0.2.7:8080", "localhost", "evil.example"} {
			a.wants(http.StatusForbidden, "set admin.tls and admin.tokenFile, or admin.insecure: true", http.MethodGet, path, host)
		}
	}
	a.wants(http.StatusForbidden, "kubectl exec", http.MethodPost, release, "localhost", "Content-Type", "application/json")
}

// A verbose /readyz has the errors of registries: beyond loopback it needs what the API needs.
func TestVerboseReadinessBeyondLoopbackNeedsWhatTheAPINeeds(t *testing.T) {
	const verbose, details = "/readyz?verbose", "source legacy: held"
	a, p := inPod(t, admin.Access{})
	for _, path := range []string{verbose, "/readyz?verbose=1", "/readyz?a=b&verbose"} {
		a.wants(http.StatusForbidden, "admin.tls and admin.tokenFile", http.MethodGet, path, "10.0.0.7:8080")
	}
	p.from("127.0.0.1", "127.0.0.1")
	a.wants(http.StatusOK, details, http.MethodGet, verbose, "localhost")

	a, _ = inPod(t, admin.Access{Insecure: true, Token: func() (string, error) { return theSecret, nil }})
	a.wants(http.StatusOK, "ok", http.MethodGet, "/readyz", "localhost")
	a.wants(http.StatusForbidden, "needs the token", http.MethodGet, verbose, "localhost")
	a.wants(http.StatusOK, details, http.MethodGet, verbose, "localhost", bearer...)
	onLoopback(t, admin.Access{}).wants(http.StatusOK, details, http.MethodGet, verbose, "localhost")
}

// What a request says of who forwarded it proves nothing.
func TestNobodyCanSayToBeOnThisMachine(t *testing.T) {
	a, p := inPod(t, admin.Access{})
	for _, header := range []string{"X-Forwarded-For", "X-Real-IP", "X-Client-IP", "True-Client-IP", "X-Envoy-External-Address"} {
		a.wants(http.StatusForbidden, "beyond loopback", http.MethodGet, sources, "localhost", header, "127.0.0.1")
	}
	a.wants(http.StatusForbidden, "beyond loopback", http.MethodGet, sources, "localhost", "Forwarded", "for=127.0.0.1", "X-Forwarded-Host", "localhost")
	p.from("127.0.0.6", "192.0.2.7") // as a proxy of a mesh hands over what it took in
	a.wants(http.StatusForbidden, "beyond loopback", http.MethodGet, sources, "localhost")
	p.from("192.0.2.7", "127.0.0.1")
	a.wants(http.StatusForbidden, "beyond loopback", http.MethodGet, sources, "localhost")
}

// This is how kubectl exec and kubectl port-forward come.
func TestWhatComesFromThisMachineIsAnsweredAsOnLoopback(t *testing.T) {
	a, p := inPod(t, admin.Access{})
	for _, ends := range [][2]string{{"127.0.0.1", "127.0.0.1"}, {"::1", "::1"}, {"::ffff:127.0.0.1", "::ffff:127.0.0.1"}} {
		p.from(ends[0], ends[1])
		a.wants(http.StatusOK, `"held"`, http.MethodGet, sources, "localhost:8080")
		a.wants(http.StatusForbidden, "admin.allowedHosts", http.MethodGet, sources, "evil.example")
	}
	a.wants(http.StatusForbidden, "admin.allowedHosts", http.MethodPost, release, "evil.example", "Content-Type", "application/json")
	a.wants(http.StatusOK, `"released": 13`, http.MethodPost, release, "127.0.0.1:8080", "Content-Type", "application/json")
}

func TestInsecureLetsInWhoAsksByAName(t *testing.T) {
	a, _ := inPod(t, admin.Access{Insecure: true, AllowedHosts: []string{"isthmus.mesh.svc"}})
	for _, host := range []string{"isthmus.mesh.svc:8080", "localhost", "192.0.2.7:8080"} { // the last is where the connection went to
		a.wants(http.StatusOK, `"held"`, http.MethodGet, sources, host)
	}
	for _, host := range []string{"evil.example", "192.0.2.8:8080"} {
		a.wants(http.StatusForbidden, "admin.allowedHosts", http.MethodGet, sources, host)
	}
}

// tokenIn writes a token into a file and returns what reads it as it is then.
func tokenIn(t *testing.T, token string) (write func(string), read func() (string, error)) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "token")
	write = func(token string) {
		if err := os.WriteFile(path, []byte(token), 0o600); err != nil {
			t.Error(err)
		}
	}
	write(token)
	return write, config.Admin{TokenFile: path}.Token
}

func tlsOf(t *testing.T, ca *authority.Authority) *tls.Config {
	t.Helper()
	dir, pair := t.TempDir(), ca.Issue("admin")
	files := certs.Files{CertFile: filepath.Join(dir, "tls.crt"), KeyFile: filepath.Join(dir, "tls.key")}
	for path, text := range map[string][]byte{files.CertFile: pair.Cert, files.KeyFile: pair.Key} {
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	keeper, err := certs.New(files, nil)
	if err != nil {
		t.Fatal(err)
	}
	return keeper.HTTP()
}

func TestTLSAndTokenOpenTheAPIBeyondLoopback(t *testing.T) {
	write, token := tokenIn(t, theSecret+"\n")
	ca := authority.New(t, "ca")
	a, p := inPod(t, admin.Access{TLS: tlsOf(t, ca), Token: token, AllowedHosts: []string{"isthmus.example"}})
	a.trusts = ca.Client()
	a.trusts.NextProtos = nil
	for _, peer := range []string{"203.0.113.9", "127.0.0.1"} { // a token is wanted of everybody
		p.from(peer, "127.0.0.1")
		a.wants(http.StatusOK, `"held"`, http.MethodGet, sources, "isthmus.example", bearer...)
		a.wants(http.StatusForbidden, "admin.allowedHosts", http.MethodGet, sources, "evil.example", bearer...)
		for _, wrong := range []string{"", "Bearer", "Bearer ", "Bearer " + theSecret + "x", "Bearer " + theSecret[1:], "Basic " + theSecret, theSecret} {
			a.wants(http.StatusForbidden, "Authorization: Bearer TOKEN", http.MethodGet, sources, "isthmus.example", "Authorization", wrong)
		}
		a.wants(http.StatusOK, "ok", http.MethodGet, "/livez", "10.0.0.7")
		a.wants(http.StatusOK, "isthmus_", http.MethodGet, "/metrics", "10.0.0.7")
	}
	write("another")
	a.wants(http.StatusForbidden, "Bearer", http.MethodGet, sources, "isthmus.example", bearer...)
	a.wants(http.StatusOK, `"held"`, http.MethodGet, sources, "isthmus.example", "Authorization", "Bearer another")
	write(" \n")
	for _, nothing := range []string{"", "Bearer ", "Bearer another"} {
		a.wants(http.StatusForbidden, "fix the file; the log of Isthmus has the reason", http.MethodGet, sources, "isthmus.example", "Authorization", nothing)
	}
}

func TestHalfOfTLSAndTokenOpensNothingBeyondLoopback(t *testing.T) {
	_, token := tokenIn(t, theSecret)
	a, p := inPod(t, admin.Access{Token: token})
	a.wants(http.StatusForbidden, "set admin.tls beside admin.tokenFile", http.MethodGet, sources, "localhost", bearer...)
	a.wants(http.StatusOK, "isthmus_", http.MethodGet, "/metrics", "10.0.0.7")
	p.from("127.0.0.1", "127.0.0.1")
	a.wants(http.StatusForbidden, "Bearer TOKEN", http.MethodGet, sources, "localhost")
	a.wants(http.StatusOK, `"held"`, http.MethodGet, sources, "localhost", bearer...)

	ca := authority.New(t, "ca")
	b, q := inPod(t, admin.Access{TLS: tlsOf(t, ca)})
	b.trusts = ca.Client()
	b.trusts.NextProtos = nil
	b.wants(http.StatusForbidden, "set admin.tokenFile beside admin.tls", http.MethodGet, sources, "localhost")
	b.wants(http.StatusOK, "isthmus_", http.MethodGet, "/metrics", "10.0.0.7")
	q.from("127.0.0.1", "127.0.0.1")
	b.wants(http.StatusOK, `"held"`, http.MethodGet, sources, "localhost")
}

// Probes and the scraper of a machine bear no token.
func TestTokenOnLoopbackIsForTheAPIAlone(t *testing.T) {
	_, token := tokenIn(t, theSecret)
	a := onLoopback(t, admin.Access{Token: token})
	a.wants(http.StatusForbidden, "Bearer TOKEN", http.MethodGet, sources, "localhost")
	a.wants(http.StatusOK, `"held"`, http.MethodGet, sources, "localhost", bearer...)
	a.wants(http.StatusOK, "isthmus_", http.MethodGet, "/metrics", "localhost:8080")
}
