package isthmus_test

import (
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"
)

// Rights are worked out in one place, by the server that every listener has in common: no other code
// makes a server with TLS, or turns a proof into anything by itself.
func TestRightsHaveOnePlace(t *testing.T) {
	t.Parallel()
	places := map[string][]string{
		"grpc.NewServer(":     {"output/streams/server.go", "demo/answer.go", "demo/backend.go"}, // demo has the called services
		"credentials.NewTLS(": {"output/streams/server.go", "internal/certs/client.go"},
		"tls.NewListener(":    {"admin/server.go"}, // where the admin token alone counts
		"tls.Listen(":         {},
		"ServeTLS(":           {},
		"identity.Proof":      {"output/streams/identity.go"},
		".Prove(":             {"output/streams/identity.go"},
	}
	root := os.DirFS(".")
	err := fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (skip(root, name) != nil || name == "test" || name == "identity"):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		text, err := fs.ReadFile(root, name)
		for call, allowed := range places {
			if strings.Contains(string(text), call) && !slices.Contains(allowed, name) {
				t.Errorf("%s has %s; serve through output/streams, and ask identity.Rights", name, call)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
