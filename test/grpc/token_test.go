package grpc_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/isthmus-mesh/isthmus/test/grpc/clients"
)

// TestTokenProvesAClient has clients that prove an account by a token. They call a service
// that only their namespace sees, and none that only another one sees. They verify Isthmus by the root
// of its authority: the issuing certificate of listeners is in between.
func TestTokenProvesAClient(t *testing.T) {
	each(t, func(t *testing.T, impl clients.Implementation) {
		if impl.Name == clients.Java || impl.Name == clients.Node {
			t.Skip("it sends no token")
		}
		b := startBackends(t, "one")
		isthmus := newIsthmus(t)
		const hidden = "hidden.example.com"
		isthmus.Write(reviews, b[0])
		isthmus.Write(hidden, b[0])
		isthmus.export(reviews, "cart")
		isthmus.export(hidden, "other")
		dir := filepath.Join(t.TempDir(), "ca")
		runAuthority(t, dir, "init", "--trust-domain", "mesh.example")
		token := filepath.Join(t.TempDir(), "token")
		if err := os.WriteFile(token, runAuthority(t, dir, "token", "--namespace", "cart", "--account", "web"), 0o600); err != nil {
			t.Fatal(err)
		}
		isthmus.identity = fmt.Sprintf("trustDomain: mesh.example, authority: {dir: %q}", dir)
		isthmus.configure("names: [127.0.0.1, localhost]")
		isthmus.Start()
		env := []string{
			"GRPC_EXPERIMENTAL_XDS_BOOTSTRAP_CALL_CREDS=true",
			printBootstrap(t, impl, "--address", isthmus.XDS, "--ca", filepath.Join(dir, "root.pem"), "--token-file", token, "--namespace", "cart"),
		}
		client := dialWith(t, interval, impl, env, reviews+":80", hidden+":80")
		client.AwaitAnswers(reviews+":80", "one")
		client.AwaitFailure(hidden + ":80")
		client.Stop()
	})
}

// export lets one namespace alone see a host that is written.
func (i *isthmus) export(host, namespace string) {
	i.t.Helper()
	text, err := os.ReadFile(i.manifest(host))
	i.must(err)
	i.must(os.WriteFile(i.manifest(host), fmt.Appendf(text, "  exportTo: [%s]\n", namespace), 0o600))
}

// runAuthority runs a command of an authority, and returns its output.
func runAuthority(t *testing.T, dir, command string, flags ...string) []byte {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), program, append([]string{"ca", command, "--dir", dir}, flags...)...).Output()
	if err != nil {
		t.Fatalf("isthmus ca %s: %v", command, err)
	}
	return out
}
