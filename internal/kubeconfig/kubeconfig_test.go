package kubeconfig_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/isthmus-mesh/isthmus/internal/kubeconfig"
)

// One API server has one spelling, as far as its address says so.
func TestServerIsSpelledAlike(t *testing.T) {
	t.Parallel()
	for host, want := range map[string]string{
		"https://api.here":            "https://api.here:443",
		"https://API.here:443/":       "https://api.here:443",
		"https://api.here:6443":       "https://api.here:6443",
		"http://127.0.0.1":            "http://127.0.0.1:80",
		"127.0.0.1:8080":              "http://127.0.0.1:8080",
		"https://[FD00::1]:6443":      "https://[fd00::1]:6443",
		"https://rancher/k8s/c-1/":    "https://rancher:443/k8s/c-1",
		"https://localhost:6443":      "https://localhost:6443", // who that is does not follow from it
		"https://user@bad host:6443/": "",
	} {
		got, err := kubeconfig.Server(&rest.Config{Host: host})
		if got != want || (err != nil) != (want == "") {
			t.Errorf("%s is %q, %v; want %q", host, got, err, want)
		}
	}
}

// A kubeconfig and a context of it name an API server, and an error names the field.
func TestContextNamesAnAPIServer(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	const text = `
apiVersion: v1
kind: Config
clusters: [{name: one, cluster: {server: "https://one"}}, {name: two, cluster: {server: "https://TWO/"}}]
contexts: [{name: one, context: {cluster: one}}, {name: two, context: {cluster: two}}]
current-context: one
`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for context, want := range map[string]string{"": "https://one:443", "two": "https://two:443"} {
		target, err := kubeconfig.Load(file, context, "isthmus")
		if err != nil {
			t.Fatal(err)
		}
		if got, err := kubeconfig.Server(target); err != nil || got != want {
			t.Errorf("context %q: %q, %v; want %q", context, got, err, want)
		}
	}
	for _, test := range []struct{ file, context, want string }{{file, "three", "context: "}, {file + ".absent", "", "kubeconfig: "}} {
		if _, err := kubeconfig.Load(test.file, test.context, "isthmus"); err == nil || !strings.HasPrefix(err.Error(), test.want) {
			t.Errorf("%+v: %v", test, err)
		}
	}
}
