package feature_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"github.com/spiffe/go-spiffe/v2/spiffeid"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/isthmus-mesh/isthmus/authority"
	testca "github.com/isthmus-mesh/isthmus/test/testkit/authority"
	"github.com/isthmus-mesh/isthmus/test/testkit/xdsclient"
)

// proven is an Isthmus that takes tokens and serves certificates, and the secrets that it and its
// client have: none may be shown or saved.
type proven struct {
	*isthmus
	dataDir string
	keys    [][]byte // in PEM form
	token   string
}

const provenClient = "proven-1"

func startProven(t *testing.T) *proven {
	t.Helper()
	files, b, dir := newRegistry(t, "files"), startBackends(t, "one"), t.TempDir()
	files.Write("shop.yaml", service{Host: reviews, Endpoints: endpoints(b[0])})
	ca, folder := testca.New(t, "listener"), filepath.Join(dir, "authority")
	own, err := authority.Create(folder, spiffeid.RequireTrustDomainFromString("cluster.local"), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	pair, p := ca.Issue("127.0.0.1"), &proven{dataDir: filepath.Join(dir, "data")}
	for name, text := range map[string][]byte{"tls.crt": pair.Cert, "tls.key": pair.Key} {
		files.must(os.WriteFile(filepath.Join(dir, name), text, 0o600))
	}
	p.keys = append(p.keys, pair.Key)
	for _, name := range []string{authority.RootKeyFile, authority.IssuerFile, authority.TokenKeyFile} {
		text, err := os.ReadFile(filepath.Join(folder, name))
		files.must(err)
		for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
			if block.Type == "PRIVATE KEY" {
				p.keys = append(p.keys, pem.EncodeToMemory(block))
			}
		}
	}
	p.token, _, err = own.Issue(authority.Grant{Namespace: "shop", Account: "web", TTL: time.Hour}, time.Now())
	files.must(err)
	secured := fmt.Sprintf("%q, tls: {certFile: %q, keyFile: %q}}", loopback, filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"))
	p.isthmus = startWith(t, strings.Replace(saving(loopback, p.dataDir, files), fmt.Sprintf("xds: {listen: %q}", loopback), "xds: {listen: "+secured, 1)+
		fmt.Sprintf("identity: {authority: {dir: %q}}\n", folder), files)
	p.beRejected(ca)
	p.beServed(ca)
	return p
}

// connect connects a client with a token.
func (p *proven) connect(ca *testca.Authority, token string) *xdsclient.Client {
	p.t.Helper()
	conn, err := grpc.NewClient("passthrough:///"+p.XDS, grpc.WithTransportCredentials(credentials.NewTLS(ca.Client())), grpc.WithPerRPCCredentials(bearer(token)))
	if err != nil {
		p.t.Fatal(err)
	}
	p.clients = append(p.clients, func() { _ = conn.Close() })
	return xdsclient.NewDelta(p.t, conn, xdsclient.Config{Node: xdsclient.Node(provenClient, "shop", "envoy"), Ledger: &xdsclient.Ledger{}})
}

// beRejected has the log tell of a token.
func (p *proven) beRejected(ca *testca.Authority) {
	p.t.Helper()
	c := p.connect(ca, p.token+"x")
	c.Subscribe(xdsclient.CDS)
	if err := c.AwaitEnd(); !strings.Contains(err.Error(), "signature") {
		p.t.Errorf("a token with another signature: got %v", err)
	}
}

// beServed has a client be sent a certificate with its key.
func (p *proven) beServed(ca *testca.Authority) {
	p.t.Helper()
	c := p.connect(ca, p.token)
	c.Subscribe(xdsclient.CDS)
	c.Subscribe(xdsclient.SDS, "default", "ROOTCA")
	c.AwaitHeld(xdsclient.CDS, cluster(reviews))
	c.AwaitHeld(xdsclient.SDS, "default", "ROOTCA")
	c.Read(func(s *xdsclient.State) {
		held, _ := s.Get(xdsclient.SDS, "default")
		secret, _ := held.Content.(*tlsv3.Secret)
		p.keys = append(p.keys, secret.GetTlsCertificate().GetPrivateKey().GetInlineBytes())
	})
}

// bearer sends a token with each stream.
type bearer string

func (b bearer) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"authorization": "Bearer " + string(b)}, nil
}

func (bearer) RequireTransportSecurity() bool { return true }

// TestKeysAreShownNowhere asks for every documented address of the admin API while a client has a
// certificate, and reads the log at its most talkative and all saved files. None has a private key,
// nor the token of the client.
func TestKeysAreShownNowhere(t *testing.T) {
	t.Parallel()
	p := startProven(t)
	said := map[string][]byte{}
	for _, path := range documentedPaths(t) {
		code, body, err := p.get(path)
		if err != nil || code != http.StatusOK {
			t.Errorf("%s: %d, %v: %s", path, code, err, body)
		}
		said[path] = []byte(body)
	}
	for path, has := range map[string]string{
		"/api/v1/clients/" + provenClient + "/resources?content": `"default"`, "/api/v1/clients": "spiffe://cluster.local/ns/shop/sa/web",
	} {
		if !bytes.Contains(said[path], []byte(has)) {
			t.Errorf("%s does not have %s, which shows nothing: %s", path, has, said[path])
		}
	}
	p.Stop()
	said["the log"] = []byte(p.log.String())
	saved := 0
	err := filepath.WalkDir(p.dataDir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		saved++
		said[path], err = os.ReadFile(path)
		return err
	})
	if err != nil || saved == 0 {
		t.Fatalf("%d saved files: %v", saved, err)
	}
	secrets := map[string]string{"the token": p.token, "the signature of the token": p.token[strings.LastIndexByte(p.token, '.')+1:]}
	for i, key := range p.keys {
		for form, text := range formsOf(t, key) {
			secrets[fmt.Sprintf("key %d %s", i, form)] = text
		}
	}
	for from, text := range said {
		for what, secret := range secrets {
			if bytes.Contains(text, []byte(secret)) {
				t.Errorf("%s has %s", from, what)
			}
		}
	}
}

// documentedPath is an address of the admin API in its reference that only reads.
var documentedPath = regexp.MustCompile("(?m)^\\| `GET (/[^`]*)`")

// documentedPaths returns the addresses, with questions that have the most to show.
func documentedPaths(t *testing.T) (paths []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "reference", "admin.md"))
	if err != nil {
		t.Fatal(err)
	}
	more := map[string]string{
		"/readyz": "?verbose", "/api/v1/clients/ID/resources": "?content", "/api/v1/explain": "?client=" + provenClient + "&host=" + reviews,
	}
	for _, found := range documentedPath.FindAllStringSubmatch(string(text), -1) {
		path := found[1] + more[found[1]]
		delete(more, found[1])
		paths = append(paths, strings.NewReplacer("HOST", reviews, "/ID/", "/"+provenClient+"/").Replace(path))
	}
	if len(paths) < 10 || len(more) > 0 {
		t.Fatalf("the reference has the addresses %q, and lacks %v", paths, more)
	}
	return paths
}

// formsOf returns the texts that would give a private key away.
func formsOf(t *testing.T, key []byte) map[string]string {
	t.Helper()
	block, _ := pem.Decode(key)
	if block == nil {
		t.Fatal("a key is not in PEM form")
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	scalar, err := parsed.(*ecdsa.PrivateKey).Bytes()
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(key)), "\n")
	return map[string]string{
		"in PEM form": lines[1], "as bytes": string(scalar), "in hexadecimal": hex.EncodeToString(scalar),
		"in JSON": base64.StdEncoding.EncodeToString(key)[:120], "in base64": base64.StdEncoding.EncodeToString(scalar)[:40],
	}
}
