package mcp_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/isthmus-mesh/isthmus/internal/certs"
	"github.com/isthmus-mesh/isthmus/output/mcp"
	"github.com/isthmus-mesh/isthmus/output/streams"
	"github.com/isthmus-mesh/isthmus/push/world"
)

// Bad settings are reported with the field at fault, and exposed ones are warned of.
func TestSettings(t *testing.T) {
	sink := func(address string) []mcp.Sink { return []mcp.Sink{{Address: address}} }
	for name, test := range map[string]struct {
		config  mcp.Config
		err     string // empty if the settings are valid
		warning string
	}{
		"loopback":           {mcp.Config{Listen: "127.0.0.1:15013"}, "", ""},
		"a socket":           {mcp.Config{Listen: "unix:///run/mcp.sock"}, "", ""},
		"only sinks":         {mcp.Config{Sinks: sink("localhost:9901")}, "", ""},
		"nothing":            {mcp.Config{}, "listen: missing, and no sinks are named", ""},
		"no port":            {mcp.Config{Listen: "127.0.0.1"}, "listen: ", "INSECURE"},
		"plaintext":          {mcp.Config{Listen: ":15013"}, "plaintext and not loopback", "INSECURE"},
		"insecure":           {mcp.Config{Listen: ":15013", Insecure: true}, "", "INSECURE: outputs.mcp is plaintext"},
		"no authorities":     {mcp.Config{Listen: ":15013", TLS: streams.TLS{CertFile: "c", KeyFile: "k"}}, "", "demands no certificates"},
		"half of a pair":     {mcp.Config{Listen: ":15013", TLS: streams.TLS{CertFile: "c"}}, "tls.keyFile: missing", "demands"},
		"tls without listen": {mcp.Config{Sinks: sink("localhost:9901"), TLS: streams.TLS{CertFile: "c"}}, "listen: missing, so tls has no effect", ""},
		"plaintext sink":     {mcp.Config{Sinks: sink("pilot:9901")}, `sinks[0].address: "pilot:9901" would be dialled in plaintext`, "pilot:9901"},
		"insecure sink":      {mcp.Config{Sinks: sink("pilot:9901"), Insecure: true}, "", "pilot:9901 in plaintext"},
		"sink without port":  {mcp.Config{Sinks: sink("pilot")}, "sinks[0].address: ", "pilot"},
		"sink of port 0":     {mcp.Config{Sinks: sink("localhost:0")}, "sinks[0].address: ", ""},
		"half of a sink's pair": {
			mcp.Config{Sinks: []mcp.Sink{{Address: "pilot:9901", TLS: certs.Client{CertFile: "c"}}}}, "sinks[0].tls.keyFile: ", "",
		},
		"debounce": {mcp.Config{Listen: "127.0.0.1:1", Debounce: world.Debounce{Quiet: -time.Second}}, "debounce.quiet: must not be below zero", ""},
	} {
		err, warnings := test.config.Validate(), strings.Join(test.config.Warnings(), "\n")
		if (err == nil) != (test.err == "") || !strings.Contains(fmt.Sprint(err), test.err) {
			t.Errorf("%s: %v", name, err)
		}
		if (warnings == "") != (test.warning == "") || !strings.Contains(warnings, test.warning) {
			t.Errorf("%s is warned of: %s", name, warnings)
		}
	}
}

// Files that are not there are found before anything is served, and relative paths
// start from the folder of the configuration.
func TestFilesThatAreNotThere(t *testing.T) {
	c := mcp.Config{
		Listen: ":15013", TLS: streams.TLS{CertFile: "cert.pem", KeyFile: "key.pem"},
		Sinks: []mcp.Sink{{Address: "pilot:9901", TLS: certs.Client{CAFile: "ca.pem"}}},
	}
	dir := t.TempDir()
	c.Resolve(dir)
	err := fmt.Sprint(c.Check())
	for _, want := range []string{"tls.certFile: ", "sinks[0].tls.caFile: ", filepath.Join(dir, "ca.pem")} {
		if !strings.Contains(err, want) {
			t.Errorf("%q does not say %q", err, want)
		}
	}
	if c.String() != "on :15013, to pilot:9901" {
		t.Errorf("it goes %s", c.String())
	}
}
