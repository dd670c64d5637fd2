package envoy_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/isthmus-mesh/isthmus/test/testkit/authority"
)

// issuer is an authority of Isthmus, and a file with a token for the account web.
type issuer struct {
	t         testing.TB
	dir, file string
}

func newIssuer(t testing.TB, dir string) *issuer {
	t.Helper()
	i := &issuer{t: t, dir: filepath.Join(dir, "ca"), file: filepath.Join(dir, "token")}
	i.run("init", "--trust-domain", "mesh.example")
	return i
}

// run runs a command of the authority, and returns its output.
func (i *issuer) run(command string, flags ...string) []byte {
	i.t.Helper()
	out, err := exec.CommandContext(i.t.Context(), programs.isthmus, append([]string{"ca", command, "--dir", i.dir}, flags...)...).Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		i.t.Fatalf("isthmus ca %s %q: %v: %s", command, flags, err, exit.Stderr)
	}
	if err != nil {
		i.t.Fatal(err)
	}
	return out
}

// renew replaces the token in the file by a new one, and returns its id.
func (i *issuer) renew() (id string) {
	i.t.Helper()
	next := i.file + ".next"
	if err := os.WriteFile(next, i.run("token", "--namespace", shop, "--account", "web"), 0o600); err != nil {
		i.t.Fatal(err)
	}
	if err := os.Rename(next, i.file); err != nil {
		i.t.Fatal(err)
	}
	var issued []struct{ ID string }
	if err := json.Unmarshal(i.run("tokens", "-o", "json"), &issued); err != nil || len(issued) == 0 {
		i.t.Fatalf("%d tokens are listed: %v", len(issued), err)
	}
	return issued[len(issued)-1].ID
}

// TestTokenProvesAnEnvoy has an Envoy that proves its account by a token in a file. It goes on
// by the next token when the first one is revoked, and without Isthmus when its account is.
func TestTokenProvesAnEnvoy(t *testing.T) {
	inEachMode(t, func(t *testing.T, delta bool) {
		m := newMesh(t)
		ca, trusted := newIssuer(t, m.Dir), authority.New(t, "authority")
		control := newIdentity(t, filepath.Join(m.Dir, "control"), isthmusIdentity)
		control.issue(trusted)
		control.replace(trusted)
		first := ca.renew()
		m.Identity = fmt.Sprintf("trustDomain: mesh.example, authority: {dir: %q}", ca.dir)
		m.Flags = []string{"--ca", control.file("ca.crt"), "--token-file", ca.file}
		s := openStore(t, m, delta, 1, fmt.Sprintf("certFile: %q, keyFile: %q", control.file("tls.crt"), control.file("tls.key")))
		s.mustBeProven()

		ca.renew()
		rejected := s.rejected()
		ca.run("revoke", "--token", first)
		s.awaitRejections(rejected + 1)
		s.members[0].grow()
		s.AwaitActive("a change after the token was replaced")
		s.mustBeProven()

		account := []string{"--namespace", shop, "--account", "web"}
		ca.run("revoke", account...)
		await(t, "the stream to end", s.unconnected)
		s.members[1].grow()
		s.awaitRejections(s.rejected() + 2)
		if err := s.unconnected(); err != nil {
			t.Error(err)
		}
		if err := s.Differs(s.proxy); err == nil {
			t.Error("Envoy has taken a change although its account is revoked")
		}

		ca.run("revoke", append(account, "--undo")...)
		s.AwaitActive("a change after the revocation was taken back")
		s.load.MustNotHaveFailed()
	})
}

// unconnected says whether Isthmus has clients.
func (s *store) unconnected() error {
	clients, err := s.Isthmuses[0].clients()
	if err != nil || len(clients) > 0 {
		return fmt.Errorf("the clients are %+v: %w", clients, err)
	}
	return nil
}

// rejected is how many streams were rejected, or ended by Isthmus.
func (s *store) rejected() float64 {
	return s.Isthmuses[0].Metric("isthmus_streams_rejected_total", `output="xds"`)
}

// awaitRejections waits until so many are.
func (s *store) awaitRejections(want float64) {
	s.Helper()
	await(s, fmt.Sprintf("%.0f streams to be rejected", want), func() error {
		if n := s.rejected(); n < want {
			return fmt.Errorf("%.0f were", n)
		}
		return nil
	})
}
