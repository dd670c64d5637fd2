package envoy_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/isthmus-mesh/isthmus/test/envoy/proxy"
	"github.com/isthmus-mesh/isthmus/test/testkit/authority"
)

// partner is a namespace beside that of the caller.
const partner = "partner"

// sharedSidecars are three workloads behind sidecars, and a caller. Hosts of the caller's
// namespace give the workloads shares of their calls in different forms.
type sharedSidecars struct {
	*mesh
	inbound map[string]uint32 // port of the sidecar, by workload
	servers map[string]*proxy.Proxy
	forms   map[string]sharedForm
}

// sharedForm is a host with shares, in percent, by the workload that answers.
type sharedForm struct {
	number uint32
	want   map[string]int
}

// sharedNamespaces are the namespaces of the workloads.
var sharedNamespaces = map[string]string{"api": shop, "next": shop, "bad": partner}

// newSharedSidecars starts them with mTLS settings.
func newSharedSidecars(t *testing.T, mtls string) *sharedSidecars {
	t.Helper()
	s := &sharedSidecars{mesh: newMesh(t), inbound: map[string]uint32{}, servers: map[string]*proxy.Proxy{}, forms: map[string]sharedForm{}}
	ca, trusted := newIssuer(t, s.Dir), authority.New(t, "authority")
	control := newIdentity(t, filepath.Join(s.Dir, "control"), isthmusIdentity)
	control.issue(trusted)
	control.replace(trusted)
	s.Identity = fmt.Sprintf("trustDomain: mesh.example, authority: {dir: %q}", ca.dir)
	s.Envoy, s.Others, s.Hold = "trustDomain: mesh.example, mtls: "+mtls, newFolder(t), "share: 1"
	for name := range sharedNamespaces {
		s.inbound[name] = freePort(t)
	}
	s.publish()
	s.Serve(fmt.Sprintf("certFile: %q, keyFile: %q", control.file("tls.crt"), control.file("tls.key")))
	connect := func(namespace, account string, flags ...string) *proxy.Proxy {
		token := filepath.Join(s.Dir, account+".token")
		control.must(os.WriteFile(token, ca.run("token", "--namespace", namespace, "--account", account), 0o600))
		return s.connectWith(proxy.Config{
			Workload: account, Namespace: namespace, Delta: true, Listeners: true, Flags: append(flags, "--ca", control.file("ca.crt"), "--token-file", token),
		})
	}
	for name, namespace := range sharedNamespaces {
		workload := startBackend(t, name, name)
		s.servers[name] = connect(namespace, name, "--inbound", fmt.Sprintf("127.0.0.1:%d=%d", s.inbound[name], workload.Port), "--outbound", "1")
	}
	connect(shop, "web")
	return s
}

// publish writes the hosts and their shares.
func (s *sharedSidecars) publish() {
	s.Helper()
	at := func(workload, account, version string) endpoint {
		labels := map[string]string{"security.istio.io/tlsMode": "istio", "version": version}
		return endpoint{Address: "127.0.0.1", Ports: map[string]uint32{"http": s.inbound[workload]}, Labels: labels, Account: account}
	}
	written := map[*folder][]object{}
	add := func(f *folder, namespace, host string, number uint32, endpoints ...endpoint) {
		written[f] = append(written[f], service{Namespace: namespace, Spec: serviceSpec{
			Hosts: []string{host}, Location: "MESH_INTERNAL", Resolution: "STATIC", Endpoints: endpoints,
			Ports: []port{{Number: number, Name: "http", Protocol: "HTTP"}},
		}})
	}
	form := func(host string, want map[string]int, others []endpoint, endpoints ...endpoint) {
		number := freePort(s.T)
		s.forms[host] = sharedForm{number, want}
		add(s.Folder, shop, host, number, endpoints...)
		if others != nil {
			add(s.Others, shop, host, number, others...)
		}
	}
	add(s.Folder, partner, "bad.example.com", freePort(s.T), at("bad", "bad", "v1"))
	add(s.Folder, partner, "unnamed.example.com", freePort(s.T), at("bad", "", "v1"))
	form("host.example.com", map[string]int{"api": 60, "bad": 40}, nil, at("api", "api", "v1"))
	form("moved.example.com", map[string]int{"bad": 100}, nil, at("api", "api", "v1"))
	form("unnamed.shop.example.com", map[string]int{"api": 60, "bad": 40}, nil, at("api", "api", "v1"))
	form("whole.example.com", map[string]int{"api": 50, "bad": 50}, nil, at("api", "spiffe://mesh.example/ns/shop/sa/api", "v1"))
	form("sources.example.com", map[string]int{"api": 70, "next": 30}, []endpoint{at("next", "next", "v1")}, at("api", "api", "v1"))
	form("versions.example.com", map[string]int{"api": 50, "next": 30, "bad": 20}, nil, at("api", "api", "v1"), at("next", "next", "v2"))
	s.Folder.write(s, "shared", written[s.Folder]...)
	s.Others.write(s, "shared", written[s.Others]...)
	s.Sources = `splits:
- {host: host.example.com, namespace: shop, backends: [{source: files, weight: 60}, {host: bad.example.com, namespace: partner, weight: 40}]}
- {host: moved.example.com, namespace: shop, backends: [{source: files, weight: 0}, {host: bad.example.com, namespace: partner, weight: 1}]}
- {host: unnamed.shop.example.com, namespace: shop, backends: [{source: files, weight: 60}, {host: unnamed.example.com, namespace: partner, weight: 40}]}
- {host: whole.example.com, namespace: shop, backends: [{source: files, weight: 1}, {host: bad.example.com, namespace: partner, weight: 1}]}
- {host: sources.example.com, namespace: shop, backends: [{source: files, weight: 70}, {source: others, weight: 30}]}
- {host: versions.example.com, namespace: shop, backends: [{labels: {version: v1}, weight: 50}, {labels: {version: v2}, weight: 30}, {host: bad.example.com, namespace: partner, labels: {version: v1}, weight: 20}]}`
}

// measure makes calls, each of which has to be answered, and compares the shares of the answers.
func (s *sharedSidecars) measure(host string) error {
	const calls = 100
	form, got := s.forms[host], map[string]int{}
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	for range calls {
		by, err := callHostOver(s.Context(), transport, form.number, host)
		if err != nil {
			return fmt.Errorf("%s: %w", host, err)
		}
		got[by]++
	}
	for name := range sharedNamespaces {
		if off := math.Abs(float64(got[name] - form.want[name])); off > 4 {
			return fmt.Errorf("%s: %v answers %v, want %v", host, name, got, form.want)
		}
	}
	return nil
}

// awaitTaken waits until all Envoys have taken what Isthmus has for them.
func (s *sharedSidecars) awaitTaken() {
	s.Helper()
	await(s, "all Envoys to take their configuration", func() error {
		clients, err := s.Isthmuses[0].clients()
		if err != nil || len(clients) != len(s.Proxies) {
			return errors.Join(err, fmt.Errorf("%d clients", len(clients)))
		}
		for _, c := range clients {
			for kind, of := range c.Types {
				if of.Pending > 0 || of.Held == 0 && of.Subscribed > 0 {
					return fmt.Errorf("%s of %s: %+v", kind, c.ID, of)
				}
			}
		}
		return nil
	})
	s.MustBeSettled()
}

// serves calls the sidecar of a workload in plaintext.
func (s *sharedSidecars) serves(ctx context.Context, workload string) error {
	return answers(ctx, s.inbound[workload], "bad.example.com", workload)
}

// TestSharesHoldInEveryMode has Envoys with nothing but a bootstrap and a token call hosts that are
// divided in every form, some with endpoints of another namespace. Whatever the modes of the
// namespaces, no call fails, and each workload answers its share under its own account.
func TestSharesHoldInEveryMode(t *testing.T) {
	t.Parallel()
	modes := []struct {
		settings string
		rejects  map[string]bool // plaintext, by namespace
	}{
		{"{mode: DISABLE}", nil},
		{"{mode: PERMISSIVE}", nil},
		{"{mode: STRICT}", map[string]bool{shop: true, partner: true}},
		{"{mode: DISABLE, namespaces: {partner: STRICT}}", map[string]bool{partner: true}},
		{"{mode: STRICT, namespaces: {partner: DISABLE}}", map[string]bool{shop: true}},
	}
	s := newSharedSidecars(t, modes[0].settings)
	for i, mode := range modes {
		if i > 0 {
			control := s.Isthmuses[0]
			control.Configure("mtls: "+modes[i-1].settings, "mtls: "+mode.settings)
			control.Kill()
			control.Serve()
		}
		s.awaitTaken()
		for _, name := range slices.Sorted(maps.Keys(sharedNamespaces)) {
			rejects := mode.rejects[sharedNamespaces[name]]
			await(t, fmt.Sprintf("%s of mode %s to reject plaintext: %t", name, mode.settings, rejects), func() error {
				if err := s.serves(t.Context(), name); (err != nil) != rejects {
					return errors.Join(errors.New("it does not"), err)
				}
				return nil
			})
		}
		for host := range s.forms {
			await(t, host+" to be shared in mode "+mode.settings, func() error { return s.measure(host) })
			if err := s.measure(host); err != nil {
				t.Errorf("mode %s: %v", mode.settings, err)
			}
		}
	}
	s.MustBeSettled()
}
