package grpc_test

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	rig "github.com/isthmus-mesh/isthmus/test/rig/process"
	"github.com/isthmus-mesh/isthmus/test/testkit/calls"
)

// isthmus is the program, run as users run it, on a folder of manifests.
type isthmus struct {
	*process // the one that runs now

	t         *testing.T
	XDS       string // address, the same after every start
	Watch     string // address of outputs.watch; empty without one
	config    string // file
	manifests string // folder
	envoy     string // the keys of outputs.xds.envoy
	identity  string // the keys of identity
	splits    string // a list
	sources   string // more of them, after the folder
}

// newIsthmus describes an Isthmus that is not started yet, with no manifests.
func newIsthmus(t *testing.T) *isthmus {
	t.Helper()
	dir := t.TempDir()
	i := &isthmus{
		t: t, XDS: freeAddress(t),
		config: filepath.Join(dir, "isthmus.yaml"), manifests: filepath.Join(dir, "manifests"),
	}
	i.must(os.Mkdir(i.manifests, 0o755))
	i.configure("")
	return i
}

// configure writes the configuration, with what is said of TLS.
func (i *isthmus) configure(tls string) {
	i.t.Helper()
	watch := ""
	if i.Watch != "" {
		watch = fmt.Sprintf("watch: {listen: %q}", i.Watch)
	}
	if tls != "" {
		tls = "tls: {" + tls + "}, "
	}
	i.must(os.WriteFile(i.config, fmt.Appendf(nil, `
sources:
- name: files
  file: {path: %q}
%s
splits: [%s]
identity: {%s}
outputs:
  xds: {listen: %q, %senvoy: {%s}}
  %s
admin: {listen: "127.0.0.1:0"}
log: {format: text}
`, i.manifests, i.sources, i.splits, i.identity, i.XDS, tls, i.envoy, watch), 0o600))
}

// Start starts it, again if it was killed, and waits until it serves.
func (i *isthmus) Start() {
	i.t.Helper()
	i.process, _ = startProcess(i.t, "isthmus", io.Discard, nil, program, "serve", "--config", i.config)
	await(i.t, "isthmus to serve", func() error {
		if i.Gone() {
			i.t.Fatalf("isthmus has ended: %v", i.err)
		}
		if log := i.log.String(); !strings.Contains(log, "msg=serving") {
			return fmt.Errorf("its log says %q", log)
		}
		return nil
	})
}

// endpoint is a backend as a manifest has it.
type endpoint struct {
	*calls.Backend

	weight int    // 0 if it has none
	zone   string // empty if it is in none
	of     string // the value of its label version
}

// Write has a host be served by backends, on port 80.
func (i *isthmus) Write(host string, backends ...*calls.Backend) {
	i.t.Helper()
	endpoints := make([]endpoint, len(backends))
	for n, b := range backends {
		endpoints[n].Backend = b
	}
	i.WriteEndpoints(host, endpoints...)
}

// WriteEndpoints is the same with all that a manifest says of them.
func (i *isthmus) WriteEndpoints(host string, endpoints ...endpoint) {
	i.t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "apiVersion: networking.istio.io/v1\nkind: ServiceEntry\n")
	fmt.Fprintf(&b, "metadata: {name: %s, namespace: shop}\nspec:\n  hosts: [%s]\n", nameOf(host), host)
	fmt.Fprintf(&b, "  ports: [{number: 80, name: grpc, protocol: GRPC}]\n  resolution: STATIC\n")
	if len(endpoints) > 0 {
		b.WriteString("  endpoints:\n")
	}
	for _, e := range endpoints {
		fmt.Fprintf(&b, "  - {address: %s, ports: {grpc: %d}, weight: %d, locality: %q, labels: {version: %q}}\n", e.Addr.IP, e.Addr.Port, e.weight, e.zone, e.of)
	}
	draft := filepath.Join(i.manifests, ".draft")
	i.must(os.WriteFile(draft, []byte(b.String()), 0o600))
	i.must(os.Rename(draft, i.manifest(host)))
}

// Remove removes the service of a host.
func (i *isthmus) Remove(host string) {
	i.t.Helper()
	i.must(os.Remove(i.manifest(host)))
}

// manifest is the file of a host.
func (i *isthmus) manifest(host string) string {
	return filepath.Join(i.manifests, nameOf(host)+".yaml")
}

func nameOf(host string) string {
	name, _, _ := strings.Cut(host, ".")
	return name
}

func (i *isthmus) must(err error) {
	i.t.Helper()
	if err != nil {
		i.t.Fatal(err)
	}
}

func freeAddress(t *testing.T) string {
	t.Helper()
	address, err := rig.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	return address
}

// startBackends starts backends on free ports.
func startBackends(t *testing.T, names ...string) []*calls.Backend {
	t.Helper()
	backends := make([]*calls.Backend, len(names))
	for i, name := range names {
		var err error
		if backends[i], err = calls.Listen(t, name, "127.0.0.1:0"); err != nil {
			t.Fatal(err)
		}
	}
	return backends
}
