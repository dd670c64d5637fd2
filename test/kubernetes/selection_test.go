package kubernetes_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/isthmus-mesh/isthmus/admin"
	"github.com/isthmus-mesh/isthmus/app"
	"github.com/isthmus-mesh/isthmus/config"
	"github.com/isthmus-mesh/isthmus/test/istio/cluster"
	"github.com/isthmus-mesh/isthmus/test/testkit/probe"
	"github.com/isthmus-mesh/isthmus/test/testkit/until"
)

// bridge is an Isthmus that writes to a side what it reads in a folder, in the other side,
// and in its own by another name of the API server.
type bridge struct {
	t     *testing.T
	dir   string
	admin string // address, while it runs
	log   said
}

// said is a log that may be read while it is written.
type said struct {
	mu   sync.Mutex
	text strings.Builder
}

// Write implements [io.Writer].
func (s *said) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *said) has(text string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Contains(s.text.String(), text)
}

func newBridge(t *testing.T, writes *side, elects bool) *bridge {
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
outputs: {istio: {kubeconfig: %s, debounce: {quiet: 50ms, max: 500ms}, leaderElection: {enabled: %t}}}
store: {dataDir: data}
admin: {listen: "127.0.0.1:0"}
`, kubeconfig(t, writes.api, cluster.Admin), elects))
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
func (b *bridge) reach(name string, of *side) { b.reachAs(name, of, cluster.Admin) }

// reachAs is reach as a user.
func (b *bridge) reachAs(name string, of *side, user string) {
	b.t.Helper()
	text, err := os.ReadFile(kubeconfig(b.t, of.api, user))
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

func (b *bridge) config() *config.Config {
	b.t.Helper()
	c, err := config.Load(filepath.Join(b.dir, "isthmus.yaml"))
	if err != nil {
		b.t.Fatal(err)
	}
	return c
}

// mustRehearse plans the writes, under an assumption about each of some sources. It must
// not create the marker.
func (b *bridge) mustRehearse(writes *side, assumed ...string) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), until.Patience)
	defer cancel()
	r, err := app.Rehearse(ctx, b.config(), slog.New(slog.DiscardHandler))
	if err != nil {
		b.t.Fatal(err)
	}
	if len(r.Actions) == 0 || len(r.Warnings) != len(assumed) {
		b.t.Errorf("the plan is %+v, the warnings are %q", r.Actions, r.Warnings)
	}
	for i, name := range assumed {
		if !strings.HasPrefix(r.Warnings[i], "source "+name+": the Lease istio-system/isthmus ") {
			b.t.Errorf("the warnings are %q", r.Warnings)
		}
	}
	if _, err := writes.client.Get(ctx, cluster.Leases, cluster.RootNamespace, "isthmus"); !apierrors.IsNotFound(err) {
		b.t.Errorf("the rehearsal created the marker: %v", err)
	}
}

// serve runs the bridge until stop.
func (b *bridge) serve() (stop func()) {
	b.t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(b.t.Context()))
	a, err := app.New(ctx, b.config(), "test", slog.New(slog.NewTextHandler(&b.log, nil)))
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
// A cluster with a restored backup of the marker is another one. A rehearsal creates none.
func TestServicesAreNotWrittenBack(t *testing.T) {
	t.Parallel()
	one, two := newSide(t, "one"), newSide(t, "two")
	one.enter("here", "10.1.0.1")
	two.enter("there", "10.2.0.1")
	if err := two.client.Apply(t.Context(), cluster.Leases, object(t, restoredLease)); err != nil {
		t.Fatal(err)
	}
	const there, late = "there.shop.svc.cluster.local", "late.shop.svc.cluster.local"
	b := newBridge(t, one, false)
	b.reach("near", one)
	b.reach("far", two)
	b.mustRehearse(one, "near", "far")
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

const restoredLease = `
apiVersion: coordination.k8s.io/v1
kind: Lease
metadata: {namespace: istio-system, name: isthmus}
`

const mayFindTheMarker = `
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  resourceNames: [isthmus]
  verbs: [get]
`

// A source without the right to get the marker is unknown, and the log names the rule.
// Nothing that was written of it is deleted, and nothing more is written. Once the right is
// given, no restart is needed, whether the source reads the written cluster or not.
func TestRightToTheMarkerIsGivenLater(t *testing.T) {
	t.Parallel()
	one, two := newSide(t, "one"), newSide(t, "two")
	one.enter("here", "10.1.0.1")
	two.enter("there", "10.2.0.1")
	for _, s := range []*side{one, two} {
		s.allow(mayReadIstio + mayFindTheMarker)
	}
	const there, late = "there.shop.svc.cluster.local", "late.shop.svc.cluster.local"
	b := newBridge(t, one, true) // the election takes the marker over
	b.reachAs("near", one, "reader")
	b.reachAs("far", two, "reader")
	stop := b.serve()
	one.mustHave("legacy.one", there)
	b.mustList()
	stop()

	for _, s := range []*side{one, two} {
		s.allow(mayReadIstio)
		s.awaitMarker(false)
	}
	stop = b.serve()
	defer func() { stop() }()
	b.mustList()
	two.leave("there")
	two.enter("late", "10.2.0.2")
	b.legacy("10.8.0.2")
	one.mustName("files", "legacy.one", "10.8.0.2")
	one.mustHave("legacy.one", there)
	for _, source := range []string{"near", "far"} {
		if !b.log.has("source="+source) || !b.log.has("allow the verb get on leases of the group coordination.k8s.io, resourceNames [isthmus], in the namespace istio-system") {
			t.Errorf("of %s the log has no missing rule:\n%s", source, b.log.text.String())
		}
	}
	for _, s := range []*side{one, two} {
		s.allow(mayReadIstio + mayFindTheMarker)
	}
	one.mustHave("legacy.one", late)
}

// allow gives the user reader rights in a cluster, beside those to read it.
func (s *side) allow(more string) {
	s.t.Helper()
	if err := s.client.Apply(s.t.Context(), clusterRoles, object(s.t, clusterRole, more)); err != nil {
		s.t.Fatal(err)
	}
	if err := s.client.Apply(s.t.Context(), bindings, object(s.t, roleBinding)); err != nil {
		s.t.Fatal(err)
	}
}

// awaitMarker waits until the reader may get the marker, or may not.
func (s *side) awaitMarker(want bool) {
	s.t.Helper()
	await(s.t, "the right to get the marker", func() error {
		may, err := s.client.Allows(s.t.Context(), cluster.Access{
			User: "reader", Verb: "get", Group: "coordination.k8s.io", Resource: "leases", Name: "isthmus", Namespace: "istio-system",
		})
		if err == nil && may != want {
			err = fmt.Errorf("it is %t", may)
		}
		return err
	})
}
