package grpc_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/isthmus-mesh/isthmus/test/grpc/clients"
)

// TestPrintedBootstrapConnectsByTLS has Isthmus serve by TLS, as far as a language
// can: with a certificate of the client's own, or, in Java, with authorities that the
// JVM trusts. Node cannot, and no bootstrap is printed for it. A certificate provider disturbs
// no client.
func TestPrintedBootstrapConnectsByTLS(t *testing.T) {
	each(t, func(t *testing.T, impl clients.Implementation) {
		b := startBackends(t, "one")
		isthmus := newIsthmus(t)
		isthmus.Write(reviews, b[0])
		s := newSecrets(t)
		if impl.Name == clients.Node {
			mustHaveNoTLS(t, impl, isthmus, s)
			return
		}
		asks, flags := fmt.Sprintf("certFile: %q, keyFile: %q", s.server.cert, s.server.key), []string{"--address", isthmus.XDS, "--ca", s.trusted}
		var env []string
		if impl.Name == clients.Java {
			env = append(env, "JAVA_TOOL_OPTIONS=-Djavax.net.ssl.trustStore="+trustStore(t, s.trusted))
		} else {
			asks += fmt.Sprintf(", clientCAFile: %q", s.trusted)
			flags = append(flags, "--cert", s.client.cert, "--key", s.client.key)
		}
		flags = append(flags, "--workload-cert", s.client.cert, "--workload-key", s.client.key, "--workload-ca", s.trusted)
		isthmus.configure(asks)
		isthmus.Start()
		client := dialWith(t, interval, impl, append(env, printBootstrap(t, impl, flags...)), reviews+":80")
		client.AwaitAnswers(reviews+":80", "one")
		client.Stop()
	})
}

// mustHaveNoTLS is that no bootstrap is printed which a client cannot use.
func mustHaveNoTLS(t *testing.T, impl clients.Implementation, i *isthmus, s secrets) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), program, "bootstrap", "grpc", "--language", impl.Language,
		"--node", "web", "--address", i.XDS, "--ca", s.trusted).CombinedOutput()
	if err == nil || !strings.HasPrefix(string(out), "--ca: grpc-node does not support TLS") {
		t.Errorf("a bootstrap with TLS for %s: %v, %s", impl.Name, err, out)
	}
}

// secrets are the files of both sides, and the root of their authority.
type secrets struct {
	server, client pair
	trusted        string
}

// newSecrets has an authority of Isthmus sign the certificates: its issuing certificates are between them and
// the root.
func newSecrets(t *testing.T) secrets {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "ca")
	runAuthority(t, dir, "init", "--trust-domain", "mesh.example")
	text, err := os.ReadFile(filepath.Join(dir, "issuer.pem"))
	if err != nil {
		t.Fatal(err)
	}
	const end = "-----END PRIVATE KEY-----\n"
	ofWorkloads, ofServers, _ := bytes.Cut(text, []byte(end))
	workload, err := url.Parse("spiffe://mesh.example/ns/shop/sa/web")
	if err != nil {
		t.Fatal(err)
	}
	client := x509.Certificate{URIs: []*url.URL{workload}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}}
	server := x509.Certificate{DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	return secrets{issue(t, ofServers, &server), issue(t, append(ofWorkloads, end...), &client), filepath.Join(dir, "root.pem")}
}

// issue signs a certificate by an issuing certificate with its key, and writes the chain and the key.
func issue(t *testing.T, issuer []byte, template *x509.Certificate) pair {
	t.Helper()
	by, err := tls.X509KeyPair(issuer, issuer)
	if err != nil {
		t.Fatal(err)
	}
	issuing, err := x509.ParseCertificate(by.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template.NotBefore, template.NotAfter, template.KeyUsage = issuing.NotBefore, issuing.NotAfter, x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, issuing, key.Public(), by.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	encode := func(kind string, der []byte) []byte { return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}) }
	return writePair(t, append(encode("CERTIFICATE", der), encode("CERTIFICATE", issuing.Raw)...), encode("PRIVATE KEY", keyDER))
}

// trustStore is a file of authorities as a JVM reads it.
func trustStore(t *testing.T, trusted string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "trusted.jks")
	tool := exec.CommandContext(t.Context(), "keytool", "-importcert", "-noprompt", "-alias", "isthmus", "-file", trusted,
		"-keystore", file, "-storetype", "JKS", "-storepass", "changeit")
	if out, err := tool.CombinedOutput(); err != nil {
		t.Fatalf("keytool, which comes with Java: %v: %s", err, out)
	}
	return file
}

// pair is a certificate and its key in files.
type pair struct{ cert, key string }

func writePair(t *testing.T, chain, key []byte) pair {
	t.Helper()
	dir := t.TempDir()
	p := pair{filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")}
	for file, text := range map[string][]byte{p.cert: chain, p.key: key} {
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return p
}
