package envoy_test

import (
	"path/filepath"
	"strconv"
	"testing"

	"github.com/isthmus-mesh/isthmus/test/testkit/guide"
)

// TestNewcomerCallsThroughEnvoy does what docs/getting-started.md says of Envoy. A
// machine has one admin port of the page and one Envoy without an id, so the test has
// others.
func TestNewcomerCallsThroughEnvoy(t *testing.T) {
	t.Parallel()
	free := func() string { return strconv.Itoa(int(freePort(t))) }
	n := guide.Begin(t, filepath.Join("..", "..", "docs", "getting-started.md"),
		map[string]string{"isthmus": programs.isthmus, "envoy": programs.envoy}, free,
		"bootstrap envoy ", "bootstrap envoy --admin-port 0 ", "envoy -c", "envoy --use-dynamic-base-id -c")
	n.Follow("Envoy")
}

// TestNewcomerCallsByMutualTLS follows docs/getting-started.md to mutual TLS, in an empty
// folder.
func TestNewcomerCallsByMutualTLS(t *testing.T) {
	t.Parallel()
	free := func() string { return strconv.Itoa(int(freePort(t))) }
	n := guide.Open(t, filepath.Join("..", "..", "docs", "getting-started.md"),
		map[string]string{"isthmus": programs.isthmus, "envoy": programs.envoy}, free)
	n.Follow("Mutual TLS")
}
