package grpc_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/isthmus-mesh/isthmus/test/grpc/clients"
	"github.com/isthmus-mesh/isthmus/test/testkit/authority"
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

// secrets are the files of both sides, and their authority's.
type secrets struct {
	server, client pair
	trusted        string
}

func newSecrets(t *testing.T) secrets {
	t.Helper()
	ca := authority.New(t, "authority")
	trusted := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(trusted, ca.PEM, 0o600); err != nil {
		t.Fatal(err)
	}
	return secrets{writePair(t, ca.Issue("isthmus")), writePair(t, ca.Issue("web", "spiffe://mesh.example/ns/shop/sa/web")), trusted}
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

func writePair(t *testing.T, issued authority.Pair) pair {
	t.Helper()
	dir := t.TempDir()
	p := pair{filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")}
	for file, text := range map[string][]byte{p.cert: issued.Cert, p.key: issued.Key} {
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return p
}
