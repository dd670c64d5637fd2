package cli_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	"github.com/isthmus-mesh/isthmus/cli"
	testca "github.com/isthmus-mesh/isthmus/test/testkit/authority"
	"github.com/isthmus-mesh/isthmus/test/testkit/until"
	"github.com/isthmus-mesh/isthmus/test/testkit/xdsclient"
)

const (
	ownWeb      = "spiffe://cluster.local/ns/shop/sa/web"
	ownOdd      = "spiffe://cluster.local/ns/shop/sa/WEB_1" // not a name that Kubernetes accepts
	foreignWeb  = "spiffe://other.example/ns/shop/sa/web"
	foreignTill = "spiffe://other.example/ns/shop/sa/till"
)

// sold is a service for clients to be sent.
const sold = `apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: cart, namespace: shop}
spec:
  hosts: [cart.shop.example]
  ports: [{number: 80, name: http, protocol: HTTP}]
  resolution: STATIC
  endpoints: [{address: 192.0.2.1}]
`

// writeIn writes a file of a folder at once.
func writeIn(t *testing.T, dir, name, text string) {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

// asks connects a client that asks for clusters, and shows a certificate with an identity if
// there is one.
func (s *trusting) asks(identity ...string) *xdsclient.Client {
	s.Helper()
	tls := s.ca.Client()
	if len(identity) > 0 {
		tls = s.ca.Client(s.ca.Issue("client", identity...))
	}
	conn, err := grpc.NewClient("passthrough:///"+s.xds, grpc.WithTransportCredentials(credentials.NewTLS(tls)))
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { _ = conn.Close() })
	c := xdsclient.NewDelta(s, conn, xdsclient.Config{Node: xdsclient.Node("web-1", "shop", "envoy"), Ledger: &xdsclient.Ledger{}, Deadline: until.Patience})
	c.Subscribe(xdsclient.CDS)
	return c
}

// served connects clients that are served.
func (s *trusting) served(identities ...string) map[string]*xdsclient.Client {
	s.Helper()
	all := map[string]*xdsclient.Client{}
	for _, one := range identities {
		all[one] = s.asks(one)
		all[one].AwaitHeld(xdsclient.CDS, "outbound|80||cart.shop.example")
	}
	return all
}

// mustEnd waits for the end of a client's stream by a revocation.
func (s *trusting) mustEnd(c *xdsclient.Client, identity string) {
	s.Helper()
	err := c.AwaitEnd()
	if code := status.Code(err); code != codes.Unauthenticated && code != codes.PermissionDenied || !strings.Contains(err.Error(), "account "+identity+" is revoked") {
		s.Errorf("the stream of %s ended with %v", identity, err)
	}
}

// revoke runs the command, and expects texts of its outputs.
func (s *trusting) revoke(wantOut, wantErr string, flags ...string) {
	s.Helper()
	var out, errs bytes.Buffer
	got := cli.Main(s.Context(), "test", append([]string{"ca", "revoke", "--dir", s.dir}, flags...), nil, &out, &errs)
	if got != 0 || !strings.Contains(out.String(), wantOut) || !strings.Contains(errs.String(), wantErr) || wantErr == "" && errs.Len() > 0 {
		s.Errorf("revoke %q: status %d, %q and %q, not %q and %q", flags, got, out.String(), errs.String(), wantOut, wantErr)
	}
}

// awaitHealth waits until the probe shows a text, or no more.
func (s *trusting) awaitHealth(text string, shown bool) {
	s.Helper()
	until.NoError(s, 20*time.Millisecond, "the health", func() error {
		if got := s.ask("/readyz?verbose"); strings.Contains(got, text) != shown {
			return fmt.Errorf("it shows %q: %t: %s", text, !shown, got)
		}
		return nil
	})
}

const unreadable = "error: identity: revocations: they cannot be read: "

// The command ends the streams of accounts of any trust domain and name, and of no others. They stay
// ended if the list disappears, until there is another one.
func TestAnyIdentityIsRevokedByTheCommand(t *testing.T) {
	t.Parallel()
	ca, dir := testca.New(t, "ca"), t.TempDir()
	createAuthority(t, dir)
	writeIn(t, dir, "registry/shop.yaml", sold)
	s := newTrusting(t, ca, dir)
	all := s.served(ownWeb, ownOdd, foreignWeb, foreignTill)

	s.revoke(ownWeb+": revoked since", "", "--namespace", "shop", "--account", "web")
	s.mustEnd(all[ownWeb], ownWeb)
	if !all[foreignWeb].IsConnected() {
		t.Error("the account of the same name in another trust domain has lost its stream")
	}
	for _, id := range []string{foreignWeb, ownOdd} {
		s.revoke(id+": revoked since", "", "--id", id)
		s.mustEnd(all[id], id)
	}
	if !all[foreignTill].IsConnected() {
		t.Error("an account that is not revoked has lost its stream")
	}

	list := filepath.Join(s.dir, "revoked.json")
	if err := os.Remove(list); err != nil {
		t.Fatal(err)
	}
	s.awaitHealth(unreadable+"open "+list+": no such file or directory; the last ones stay in effect", true)
	s.awaitHealth("; next: repair the file, or restore it from a backup", true)
	s.mustEnd(s.asks(foreignWeb), foreignWeb)
	s.revoke(foreignTill+": revoked since", "warning: "+list+" is missing, and with it all earlier revocations: restore it from your backup", "--id", foreignTill)
	s.mustEnd(all[foreignTill], foreignTill)
	s.awaitHealth(unreadable, false)
	s.served(foreignWeb) // the new list counts alone
}

// A list of revocations needs neither an authority nor an issuer of tokens. It demands no proofs of
// clients.
func TestAListRevokesClientCertificates(t *testing.T) {
	t.Parallel()
	ca, dir := testca.New(t, "ca"), t.TempDir()
	writeIn(t, dir, "registry/shop.yaml", sold)
	writeIn(t, dir, "lists/revoked.json", "{}")
	s := startTrusting(t, ca, dir, "clientCAFile: ca.crt", "revocations: lists/revoked.json")
	all := s.served(ownWeb, ownOdd, foreignWeb)
	writeIn(t, dir, "lists/revoked.json", fmt.Sprintf(`{"accounts": [{"id": %q}, {"id": %q}]}`, ownOdd, foreignWeb))
	for _, id := range []string{ownOdd, foreignWeb} {
		s.mustEnd(all[id], id)
		s.mustEnd(s.asks(id), id)
	}
	if !all[ownWeb].IsConnected() {
		t.Error("an account that is not revoked has lost its stream")
	}
	if err := os.Remove(filepath.Join(dir, "lists", "revoked.json")); err != nil {
		t.Fatal(err)
	}
	s.awaitHealth(unreadable, true)
	s.mustEnd(s.asks(foreignWeb), foreignWeb)

	writeIn(t, dir, "lists/revoked.json", "{}")
	open := startTrusting(t, ca, dir, "", "revocations: lists/revoked.json")
	open.asks().AwaitHeld(xdsclient.CDS, "outbound|80||cart.shop.example")
}
