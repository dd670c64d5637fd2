package kubernetes_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/isthmus-mesh/isthmus/admin"
	"github.com/isthmus-mesh/isthmus/config"
	"github.com/isthmus-mesh/isthmus/internal/app"
	"github.com/isthmus-mesh/isthmus/test/istio/cluster"
	"github.com/isthmus-mesh/isthmus/test/testkit/probe"
)

// bridge is an Isthmus that writes to a side what it reads in a folder, in the other side,
// and in its own by another name of the API server.
type bridge struct {
	t     *testing.T
	dir   string
	admin string // address, while it runs
}

func newBridge(t *testing.T, writes *side) *bridge {
	t.Helper()
	b := &bridge{t: t, dir: t.TempDir()}
	if err := os.Mkdir(filepath.Join(b.dir, "files"), 0o755); err != nil {
		t.Fatal(err)
	}
	b.legacy("10.8.0.1")
	b.write("isthmus.yaml", fmt.Sprintf(`
instance: one
sources:
- {name: files, file: {path: files}}
- {name: near, kubernetes: {kubeconfig: near}}
- {name: far, kubernetes: {kubeconfig: far}}
outputs: {istio: {kubeconfig: %s, debounce: {quiet: 50ms, max: 500ms}, leaderElection: {enabled: false}}}
store: {dataDir: data}
admin: {listen: "127.0.0.1:0"}
`, kubeconfig(t, writes.api, cluster.Admin)))
	return b
}

func (b *bridge) write(name, text string) {
	b.t.Helper()
	if err := os.WriteFile(filepath.Join(b.dir, name), []byte(text), 0o600); err != nil {
		b.t.Fatal(err)
	}
}

// legacy has the service of the folder be at an address.
func (b *bridge) legacy(address string) {
	b.t.Helper()
	b.write("files/entry.yaml", fmt.Sprintf(`
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: legacy, namespace: files}
spec: {hosts: [legacy.one], ports: [{number: 80, name: http, protocol: HTTP}], resolution: STATIC, endpoints: [{address: %s}]}
`, address))
}

// reach gives the bridge a kubeconfig, in which a server of 127.0.0.1 is named localhost.
func (b *bridge) reach(name string, of *side) {
	b.t.Helper()
	text, err := os.ReadFile(kubeconfig(b.t, of.api, cluster.Admin))
	if err != nil {
		b.t.Fatal(err)
	}
	named := strings.Replace(string(text), "server: https://127.0.0.1:", "tls-server-name: 127.0.0.1\n    server: https://localhost:", 1)
	if named == string(text) {
		b.t.Fatalf("there is no such server in %s", text)
	}
	b.write(name, named)
}

// lose takes a kubeconfig away.
func (b *bridge) lose(name string) {
	b.t.Helper()
	if err := os.Remove(filepath.Join(b.dir, name)); err != nil {
		b.t.Fatal(err)
	}
}

// serve runs the bridge until stop.
func (b *bridge) serve() (stop func()) {
	b.t.Helper()
	c, err := config.Load(filepath.Join(b.dir, "isthmus.yaml"))
	if err != nil {
		b.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(b.t.Context()))
	a, err := app.New(ctx, c, "test", slog.New(slog.DiscardHandler))
	if err != nil {
		cancel()
		b.t.Fatal(err)
	}
	b.admin = a.AdminAddr().String()
	ended := make(chan error, 1)
	go func() { ended <- a.Run(ctx) }()
	return func() {
		b.t.Helper()
		cancel()
		if err := <-ended; err != nil {
			b.t.Error(err)
		}
	}
}

// mustList waits until all sources are listed: one that is not, and is not stored, holds up
// what is written.
func (b *bridge) mustList() {
	b.t.Helper()
	await(b.t, "all sources to be listed", func() error {
		var list []admin.Source
		if err := json.Unmarshal(probe.Get("http://"+b.admin+"/api/v1/sources"), &list); err != nil {
			return err
		}
		if len(list) != 3 {
			return fmt.Errorf("there are %d sources", len(list))
		}
		for _, s := range list {
			if s.State != "live" {
				return fmt.Errorf("%s is %s: %s", s.Name, s.State, s.Reason)
			}
		}
		return nil
	})
}

// mustName waits until an object of a namespace names an address.
func (s *side) mustName(namespace, object, address string) {
	s.t.Helper()
	await(s.t, object+" at "+address, func() error {
		o, err := s.client.Get(s.t.Context(), cluster.ServiceEntries, namespace, object)
		if err == nil && !strings.Contains(fmt.Sprint(o.Object["spec"]), address) {
			err = fmt.Errorf("it is %v", o.Object["spec"])
		}
		return err
	})
}

// A Service is not written back into the cluster that it is read from, by whatever name
// the API server is known, and be it that the kubeconfig comes later. While that is not
// known of a source, nothing of it is written, and nothing that was written of it goes.
func TestServicesAreNotWrittenBack(t *testing.T) {
	t.Parallel()
	one, two := newSide(t, "one"), newSide(t, "two")
	one.enter("here", "10.1.0.1")
	two.enter("there", "10.2.0.1")
	const there, late = "there.shop.svc.cluster.local", "late.shop.svc.cluster.local"
	b := newBridge(t, one)
	b.reach("near", one)
	b.reach("far", two)
	stop := b.serve()
	one.mustHave("legacy.one", there)
	b.mustList()
	stop()

	b.lose("near")
	b.lose("far")
	b.legacy("10.8.0.2")
	stop = b.serve()
	defer func() { stop() }()
	one.mustName("files", "legacy.one", "10.8.0.2")
	one.mustHave("legacy.one", there)

	two.enter("late", "10.2.0.2")
	b.reach("near", one)
	b.reach("far", two)
	one.mustHave("legacy.one", there, late)
	two.leave("there")
	one.mustHave("legacy.one", late)
}
