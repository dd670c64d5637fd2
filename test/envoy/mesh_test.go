package envoy_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/isthmus-mesh/isthmus/test/envoy/proxy"
	"github.com/isthmus-mesh/isthmus/test/testkit/until"
)

// shop is the namespace of services, and of Envoys.
const shop = "shop"

// mesh is a folder, Isthmuses that read it, and Envoys that take what they serve.
type mesh struct {
	*testing.T
	Dir       string
	Folder    *folder
	Others    *folder // a second source, if there is one
	Sources   string  // more of them, as the configuration lists them
	Isthmuses []*isthmus
	Proxies   []*proxy.Proxy
	Secrets   string   // a folder for mutual TLS; plaintext if empty
	Hold      string   // when a drop is suspicious; the default if empty
	Envoy     string   // the keys of outputs.xds.envoy
	Identity  string   // the keys of identity
	Flags     []string // more of them for the bootstraps of all Envoys
	Subset    subset   // that Envoy says some hosts have
}

// newMesh makes a mesh in which nothing runs yet.
func newMesh(t *testing.T) *mesh {
	t.Helper()
	dir := filepath.Join(logs, strings.ReplaceAll(t.Name(), "/", "-"))
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(closeIdle)
	return &mesh{T: t, Dir: dir, Folder: newFolder(t)}
}

// Serve adds an Isthmus and starts it. All read the same folder.
func (m *mesh) Serve(tls string) *isthmus {
	m.Helper()
	i := newIsthmus(m.T, fmt.Sprintf("isthmus-%d", len(m.Isthmuses)), m, tls)
	i.Serve()
	m.Isthmuses = append(m.Isthmuses, i)
	return i
}

// Connect adds an Envoy that takes its clusters from any Isthmus.
func (m *mesh) Connect(delta bool) *proxy.Proxy {
	m.Helper()
	return m.connectWith(proxy.Config{Delta: delta})
}

// connectWith adds an Envoy whose bootstrap says more than others' do.
func (m *mesh) connectWith(c proxy.Config) *proxy.Proxy {
	m.Helper()
	return m.connectTo(m.Isthmuses, c)
}

// connectTo adds an Envoy of some Isthmuses.
func (m *mesh) connectTo(isthmuses []*isthmus, c proxy.Config) *proxy.Proxy {
	m.Helper()
	for _, i := range isthmuses {
		c.ControlPlanes = append(c.ControlPlanes, i.XDS)
	}
	c.Program, c.Isthmus, c.Dir, c.Namespace, c.Secrets = programs.envoy, programs.isthmus, m.Dir, cmp.Or(c.Namespace, shop), m.Secrets
	c.Flags = slices.Concat(m.Flags, c.Flags)
	c.Workload = cmp.Or(c.Workload, map[bool]string{true: "delta", false: "sotw"}[c.Delta])
	ctx, cancel := context.WithTimeout(m.Context(), until.Patience)
	defer cancel()
	p, err := proxy.Start(ctx, c)
	if err != nil {
		m.Fatal(err)
	}
	m.Cleanup(p.Stop)
	m.Proxies = append(m.Proxies, p)
	return p
}

// Differs says in what an Envoy differs from what it should hold.
func (m *mesh) Differs(p *proxy.Proxy) error {
	got, err := p.Clusters(m.Context())
	if err != nil {
		return err
	}
	want := m.Folder.expected()
	if !p.Redirected && !p.Config.Listeners { // a sidecar has no route to a subset
		maps.Copy(want, m.Subset.expected(m.Folder.objects()))
	}
	if err := want.resolvedAt(p.Config.IP).differs(ofServices(got)); err != nil {
		return fmt.Errorf("%s: %w", p.Name, err)
	}
	return nil
}

// AwaitActive waits until every Envoy works with what the folder says, and has
// rejected nothing and waits for nothing.
func (m *mesh) AwaitActive(what string) {
	m.Helper()
	for _, p := range m.Proxies {
		await(m, what+" in Envoy", func() error { return m.Differs(p) })
	}
	m.MustBeSettled()
}

// MustBeSettled is that nothing was rejected and nothing is left warming.
func (m *mesh) MustBeSettled() {
	m.Helper()
	for _, p := range m.Proxies {
		await(m, "nothing to be warming", func() error { return p.Unsettled(m.Context()) })
		if err := p.Rejected(m.Context()); err != nil {
			m.Errorf("%s has rejected something: %v", p.Name, err)
		}
	}
	for _, i := range m.Isthmuses {
		if !i.Running() {
			continue
		}
		if err := i.Rejected(); err != nil {
			m.Errorf("%s: %v", i.Name, err)
		}
	}
}

// connectedTo is the Isthmus that the only Envoy is connected to, with both
// types of resources asked for.
func (m *mesh) connectedTo() (*isthmus, error) {
	for _, i := range m.Isthmuses {
		if !i.Running() {
			continue
		}
		clients, err := i.clients()
		if err != nil {
			return nil, err
		}
		if len(clients) == 1 && len(clients[0].Types) >= 2 {
			return i, nil
		}
	}
	return nil, errors.New("Envoy is connected to none")
}

// AwaitConnection waits until the only Envoy is connected.
func (m *mesh) AwaitConnection() (at *isthmus) {
	m.Helper()
	await(m, "Envoy to connect", func() (err error) {
		at, err = m.connectedTo()
		return err
	})
	return at
}
