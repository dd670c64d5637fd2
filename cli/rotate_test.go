package cli_test

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/isthmus-mesh/isthmus/app"
	"github.com/isthmus-mesh/isthmus/authority"
	"github.com/isthmus-mesh/isthmus/cli"
	"github.com/isthmus-mesh/isthmus/config"
	testca "github.com/isthmus-mesh/isthmus/test/testkit/authority"
	"github.com/isthmus-mesh/isthmus/test/testkit/until"
	"github.com/isthmus-mesh/isthmus/test/testkit/xdsclient"
)

// trusting is an Isthmus that serves the certificates of an authority.
type trusting struct {
	*testing.T
	ca    *testca.Authority // of the listener, and of clients
	dir   string            // of the served authority
	admin string
	xds   string
}

// newTrusting starts an Isthmus with an authority in dir/ca.
func newTrusting(t *testing.T, ca *testca.Authority, dir string) *trusting {
	t.Helper()
	return startTrusting(t, ca, dir, "clientCAFile: ca.crt", "trustDomain: cluster.local, authority: {dir: ca}")
}

// startTrusting starts an Isthmus with more settings of TLS, and settings of identity.
func startTrusting(t *testing.T, ca *testca.Authority, dir, tls, identity string) *trusting {
	t.Helper()
	write := func(name string, text []byte) {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	pair := ca.Issue("server")
	write("tls.crt", pair.Cert)
	write("tls.key", pair.Key)
	write("ca.crt", ca.PEM)
	write("registry/x.yaml", []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: other}\n"))
	write("isthmus.yaml", fmt.Appendf(nil, `
sources: [{name: files, file: {path: registry}}]
outputs: {xds: {listen: "127.0.0.1:0", tls: {certFile: tls.crt, keyFile: tls.key, %s}}}
identity: {%s}
admin: {listen: "127.0.0.1:0"}
`, tls, identity))
	c, err := config.Load(filepath.Join(dir, "isthmus.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	a, err := app.New(t.Context(), c, "test", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- a.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return &trusting{T: t, ca: ca, dir: filepath.Join(dir, "ca"), admin: a.AdminAddr().String(), xds: a.Addr("xds").String()}
}

// connect connects a client that asks for its certificate and the roots.
func (s *trusting) connect(id string) *xdsclient.Client {
	s.Helper()
	return s.holdsRoots(s.dial(id), id)
}

// dial connects with the certificate of an account.
func (s *trusting) dial(account string) *grpc.ClientConn {
	s.Helper()
	tls := s.ca.Client(s.ca.Issue("client", "spiffe://cluster.local/ns/shop/sa/"+account))
	conn, err := grpc.NewClient("passthrough:///"+s.xds, grpc.WithTransportCredentials(credentials.NewTLS(tls)))
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { _ = conn.Close() })
	return conn
}

// holdsRoots opens a stream of a node that asks for its certificate and the roots.
func (s *trusting) holdsRoots(conn *grpc.ClientConn, id string) *xdsclient.Client {
	s.Helper()
	c := xdsclient.NewDelta(s, conn, xdsclient.Config{Node: xdsclient.Node(id, "shop", "envoy"), Ledger: &xdsclient.Ledger{}, Deadline: until.Patience})
	c.Subscribe(xdsclient.SDS, "default", "ROOTCA")
	c.AwaitHeld(xdsclient.SDS, "default", "ROOTCA")
	return c
}

// awaitRoots waits until a client has so many roots, and returns them.
func awaitRoots(c *xdsclient.Client, n int) (roots []*x509.Certificate) {
	c.Await(fmt.Sprintf("%d roots", n), func(state *xdsclient.State) bool {
		held, _ := state.Get(xdsclient.SDS, "ROOTCA")
		secret, _ := held.Content.(*tlsv3.Secret)
		text := secret.GetValidationContext().GetTrustedCa().GetInlineBytes()
		roots = nil
		for {
			block, rest := pem.Decode(text)
			if block == nil {
				return len(roots) == n
			}
			root, err := x509.ParseCertificate(block.Bytes)
			if err != nil {
				return false
			}
			roots, text = append(roots, root), rest
		}
	})
	return roots
}

// rotate takes a step, and expects an exit status and a text of the output, which it returns.
func (s *trusting) rotate(status int, want, step string, admins ...string) string {
	s.Helper()
	args := []string{"ca", "rotate", step, "--dir", s.dir}
	for _, at := range admins {
		args = append(args, "--admin", at)
	}
	var out bytes.Buffer
	if got := cli.Main(s.Context(), "test", args, nil, &out, &out); got != status || !strings.Contains(out.String(), want) {
		s.Errorf("%s: status %d and %q, not %d and %q", step, got, out.String(), status, want)
	}
	return out.String()
}

// passDay has the step sign be long ago.
func (s *trusting) passDay() {
	s.Helper()
	record := filepath.Join(s.dir, authority.RotationFile)
	text, err := os.ReadFile(record)
	if err != nil {
		s.Fatal(err)
	}
	past := regexp.MustCompile(`"since": "[^"]*"`).ReplaceAll(text, []byte(`"since": "2026-01-01T00:00:00Z"`))
	if err := os.WriteFile(record, past, 0o600); err != nil {
		s.Fatal(err)
	}
}

// await waits until the admin API shows a text about the authority.
func (s *trusting) await(text string) {
	s.Helper()
	until.NoError(s, 20*time.Millisecond, "the authority to be shown", func() error {
		if shown := s.ask("/api/v1/authority"); !strings.Contains(shown, text) {
			return fmt.Errorf("it does not show %q: %s", text, shown)
		}
		return nil
	})
}

func (s *trusting) ask(path string) string {
	s.Helper()
	request, err := http.NewRequestWithContext(s.Context(), http.MethodGet, "http://"+s.admin+path, http.NoBody)
	if err != nil {
		s.Fatal(err)
	}
	request.Close = true
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		s.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		s.Fatal(err)
	}
	return string(text)
}

// copyTo replaces the authority of another Isthmus by a copy.
func (s *trusting) copyTo(other *trusting) {
	s.Helper()
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		s.Fatal(err)
	}
	for _, entry := range entries {
		text, err := os.ReadFile(filepath.Join(s.dir, entry.Name()))
		if err == nil {
			err = os.WriteFile(filepath.Join(other.dir, entry.Name()), text, 0o600)
		}
		if err != nil {
			s.Fatal(err)
		}
	}
}

// The root is rotated without a restart, while clients are connected. No step is taken before
// each client of each Isthmus is ready for it. The roots are sent twice more, and certificates
// not at all.
func TestARootIsRotatedOnceEveryClientTrustsTheNext(t *testing.T) {
	t.Parallel()
	ca, dir, copied := testca.New(t, "ca"), t.TempDir(), t.TempDir()
	createAuthority(t, dir)
	if err := os.CopyFS(filepath.Join(copied, "ca"), os.DirFS(filepath.Join(dir, "ca"))); err != nil {
		t.Fatal(err)
	}
	one, other := newTrusting(t, ca, dir), newTrusting(t, ca, copied)
	web, mute := one.connect("web"), one.connect("mute")
	elsewhere := other.connect("elsewhere")

	mute.Hold()
	one.rotate(0, "the next root is trusted since", "begin")
	one.rotate(2, "--admin: missing; name the admin API of each Isthmus", "sign")
	awaitRoots(web, 2)
	one.rotate(1, "1 of 2 clients have not accepted the next root:\n  spiffe://cluster.local/ns/shop/sa/mute: mute (waiting", "sign", one.admin)
	one.rotate(1, other.admin+": it does not serve the next root", "sign", one.admin, other.admin)
	mute.Release()
	one.rotate(1, other.admin+": it does not serve the next root", "sign", one.admin, other.admin)
	one.copyTo(other)
	roots := awaitRoots(elsewhere, 2)
	signing := func(root *x509.Certificate) string { return `"signing": "` + authority.Fingerprint(root) + `"` }
	one.await(signing(roots[0]))

	one.rotate(1, "but not everywhere:\n"+other.admin+": it signs with another root", "sign", one.admin, other.admin)
	one.await(signing(roots[1]))
	one.rotate(1, "it is not known yet that every Isthmus signs with the new root", "finish", one.admin)
	one.copyTo(other)
	one.rotate(0, "waits for the certificates of the old root to expire", "sign", one.admin, other.admin)
	one.rotate(1, "certificates of the old root are valid until", "finish", one.admin, other.admin)

	one.passDay()
	one.rotate(0, "one root is trusted", "finish", one.admin, other.admin)
	for _, c := range []*xdsclient.Client{web, mute} {
		if last := awaitRoots(c, 1); !last[0].Equal(roots[1]) {
			t.Error("the old root is left")
		}
		c.Read(func(state *xdsclient.State) {
			if n := state.Received(xdsclient.SDS, "ROOTCA"); n != 3 {
				t.Errorf("the roots came %d times", n)
			}
			if n := state.Received(xdsclient.SDS, "default"); n != 1 {
				t.Errorf("the certificate came %d times", n)
			}
		})
	}

	if err := os.Remove(filepath.Join(other.dir, authority.RootFile)); err != nil {
		t.Fatal(err)
	}
	other.await(`"problem": "the authority in `)
	if status := other.ask("/api/v1/status"); !strings.Contains(status, "its folder cannot be read, and the keys before stay in use") {
		t.Errorf("the status is %s", status)
	}
}

// One account with many made-up names that never accepts the next root is listed once, and
// prevents nothing: it is revoked.
func TestAnAccountThatNeverAcceptsARootIsRevoked(t *testing.T) {
	t.Parallel()
	ca, dir := testca.New(t, "ca"), t.TempDir()
	createAuthority(t, dir)
	s := newTrusting(t, ca, dir)
	web, conn := s.connect("web"), s.dial("mute")
	const many = 30
	var mute []*xdsclient.Client
	for i := range many {
		c := s.holdsRoots(conn, fmt.Sprintf("node-%d", i))
		c.Hold()
		mute = append(mute, c)
	}
	s.rotate(0, "the next root is trusted since", "begin")
	awaitRoots(web, 2)

	out := s.rotate(1, "30 of 31 clients have not accepted the next root:\n  spiffe://cluster.local/ns/shop/sa/mute: 30 streams, such as node-", "sign", s.admin)
	if n := strings.Count(out, "node-"); n != 1 {
		t.Errorf("%d names are printed", n)
	}
	_, step, named := strings.Cut(out, "to end them: isthmus ")
	if t.Failed() || !named {
		t.FailNow()
	}
	step, _, _ = strings.Cut(step, "\n")
	var revoked bytes.Buffer
	if status := cli.Main(t.Context(), "test", strings.Fields(step), nil, &revoked, &revoked); status != 0 {
		t.Fatalf("%s: %s", step, revoked.String())
	}
	for _, c := range mute {
		if err := c.AwaitEnd(); !strings.Contains(err.Error(), "revoked") {
			t.Errorf("a stream of the account ended with %v", err)
		}
	}
	s.rotate(0, "the new root signs since", "sign", s.admin)
}

// createAuthority makes the authority of cluster.local in the folder ca of a folder.
func createAuthority(t *testing.T, dir string) {
	t.Helper()
	domain, err := authority.TrustDomain("cluster.local")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := authority.Create(filepath.Join(dir, "ca"), domain, time.Now()); err != nil {
		t.Fatal(err)
	}
}
