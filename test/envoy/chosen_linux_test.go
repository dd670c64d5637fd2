package envoy_test

import (
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/isthmus-mesh/isthmus/test/envoy/netns"
	"github.com/isthmus-mesh/isthmus/test/envoy/proxy"
	"github.com/isthmus-mesh/isthmus/test/testkit/authority"
)

// highway is a service without an address, at the port that all such services have.
func highway(host, label string, instances ...string) service {
	s := service{Name: host, Spec: serviceSpec{
		Hosts: []string{host}, Location: "MESH_INTERNAL", Resolution: "STATIC", Ports: []port{{Number: 7070, Name: "highway", Protocol: "TCP"}},
	}}
	for _, address := range instances {
		e := endpoint{Address: address, Account: "api"}
		if label != "" {
			e.Labels = map[string]string{"security.istio.io/tlsMode": label}
		}
		s.Spec.Endpoints = append(s.Spec.Endpoints, e)
	}
	return s
}

// TestChosenInstancesAreCalledByMutualTLS has a workload with a certificate of the mesh call
// instances that it chooses itself. Instances with a sidecar are called by mutual TLS; instances
// without one, and addresses of no service, are called in plaintext.
func TestChosenInstancesAreCalledByMutualTLS(t *testing.T) {
	t.Parallel()
	if separately(t) {
		return
	}
	if err := netns.Answer(answering, 15001); err != nil {
		t.Fatal(err)
	}
	m := newMesh(t)
	pairs := filepath.Join(m.Dir, "pairs")
	if err := os.Mkdir(pairs, 0o755); err != nil {
		t.Fatal(err)
	}
	ca, trusted := newIssuer(t, m.Dir), authority.New(t, "authority")
	control, web := newIdentity(t, filepath.Join(m.Dir, "control"), isthmusIdentity), newIdentity(t, filepath.Join(m.Dir, "web"), proxyIdentity)
	for _, side := range []*identity{control, web} {
		side.issue(trusted)
		side.replace(trusted)
	}
	web.must(os.Symlink(filepath.Join(web.path, "now"), filepath.Join(pairs, "web")))
	issued := trusted.Issue("api", "spiffe://mesh.example/ns/"+shop+"/sa/api")
	api, err := tls.X509KeyPair(issued.Cert, issued.Key)
	web.must(err)
	startEveryoneAs(t, &api)

	m.Identity = fmt.Sprintf("trustDomain: mesh.example, authority: {dir: %q}, files: {dir: %q}", ca.dir, pairs)
	m.Envoy = "trustDomain: mesh.example, mtls: {mode: PERMISSIVE}"
	m.Folder.write(t, "services", highway("cart.example", "istio", "10.200.0.1"), highway("orders.example", "istio", "10.200.0.2", "10.200.0.22"), highway("stock.example", "", "10.200.0.3"))
	m.Serve(fmt.Sprintf("certFile: %q, keyFile: %q", control.file("tls.crt"), control.file("tls.key")))
	token := filepath.Join(m.Dir, "web.token")
	web.must(os.WriteFile(token, ca.run("token", "--namespace", shop, "--account", "web"), 0o600))
	p := m.connectWith(proxy.Config{Workload: "web", Delta: true, Redirected: true, Flags: []string{"--ca", control.file("ca.crt"), "--token-file", token}})
	handshakes := func() (n uint64) {
		stats, err := p.Stats(t.Context(), `^cluster\.outbound\|7070\|\*\|.*ssl\.handshake$`)
		web.must(err)
		for _, of := range stats {
			n += of
		}
		return n
	}
	for _, c := range []struct {
		to      string
		secured bool
	}{
		{"10.200.0.1", true}, {"10.200.0.2", true}, {"10.200.0.22", true}, {"10.200.0.3", false}, {"10.202.0.1", false},
	} {
		before := handshakes()
		m.mustBeAnswered(call{to: netip.MustParseAddrPort(c.to + ":7070"), says: inLine}, c.to+":7070")
		if n := handshakes() - before; (n > 20) != c.secured || !c.secured && n > 0 {
			t.Errorf("21 connections to %s, or more, made %d handshakes", c.to, n)
		}
	}
	m.MustBeSettled()
}

// TestWhoIsDialledAnswersWhileServicesChange calls instances without pause while other instances come
// and go, their port becomes crowded and is crowded no longer, and a service gains an address, which
// may be written as an IPv4-mapped one. The machine that is dialled answers.
func TestWhoIsDialledAnswersWhileServicesChange(t *testing.T) {
	t.Parallel()
	if separately(t) {
		return
	}
	if err := netns.Answer(answering, 15001); err != nil {
		t.Fatal(err)
	}
	startEveryone(t)
	crowd := func(n int) (list []string) {
		for i := range n {
			list = append(list, fmt.Sprintf("10.210.%d.%d", i/200, 1+i%200))
		}
		return list
	}
	for name, registry := range map[string]bool{"default": false, "registry": true} {
		t.Run(name, func(t *testing.T) {
			m := newMesh(t)
			m.Envoy, m.Hold = "dns: {}", "min: 1000000" // a crowd that goes is meant
			if registry {
				m.Envoy += ", outbound: registry"
			}
			write := func(s service) { m.Folder.write(m, s.Name, s) }
			cart, orders := highway("cart.example", "", "10.200.0.1"), highway("orders.example", "", "10.200.0.2", "2001:db8:200::2")
			write(cart)
			write(orders)
			m.Serve("")
			p := m.connectWith(proxy.Config{Workload: "client", Delta: true, Redirected: true, IP: "127.0.0.1,::1"})
			all := []string{"10.200.0.1:7070", "10.200.0.2:7070", "[2001:db8:200::2]:7070"}
			for _, to := range all {
				m.mustBeAnswered(call{to: netip.MustParseAddrPort(to), says: inLine}, to)
			}
			nobodys := func(to string) string { // the outcome of a call to an address of no service
				if registry {
					return closed
				}
				return to
			}
			nobody := "10.202.0.1:7070"
			another := call{to: netip.MustParseAddrPort("10.200.0.22:7070"), says: inLine}
			newcomer := call{to: netip.MustParseAddrPort("10.210.0.1:7070"), says: inLine}
			end := make(chan struct{})
			var calling sync.WaitGroup
			const pace = 2 * time.Millisecond // the Envoy has changes to take, too
			for _, to := range append(all, nobody) {
				calling.Go(func() {
					again := time.NewTicker(pace)
					defer again.Stop()
					for calls := 1; ; calls++ {
						select { // the end, or the next call
						case <-end:
							t.Logf("%d calls to %s", calls, to)
							return
						case <-again.C:
						}
						want := to
						if to == nobody {
							want = nobodys(to)
						}
						if got := (call{to: netip.MustParseAddrPort(to), says: inLine}).made(t.Context(), netns.Redirected); got != want && t.Context().Err() == nil {
							t.Errorf("call %d to %s is answered by %s", calls, to, got)
							return
						}
					}
				})
			}
			for round := range 2 {
				write(highway("orders.example", "", "10.200.0.2", "2001:db8:200::2", "10.200.0.22"))
				m.mustBeAnswered(another, another.to.String())
				write(orders)
				m.mustBeAnswered(another, nobodys(another.to.String()))
				write(highway("others.example", "", crowd(20)...))
				m.mustBeAnswered(newcomer, newcomer.to.String())
				write(highway("cart.example", "", append(crowd(1), "10.200.0.1")...))
				m.AwaitActive("an instance that two services have")
				write(highway("others.example", "", crowd(300)...))
				m.AwaitActive("more instances than Envoys listen at")
				m.Folder.remove(t, "others.example")
				write(cart)
				m.mustBeAnswered(newcomer, nobodys(newcomer.to.String()))
				addressed := highway("stock.example", "", "10.200.0.3")
				write(addressed)
				m.AwaitActive("a service without an address")
				addressed.Spec.Addresses = []string{[]string{"", "::ffff:"}[round] + "10.220.0.1"}
				write(addressed)
				m.mustBeAnswered(call{to: netip.MustParseAddrPort("10.220.0.1:7070"), says: inLine}, "10.200.0.3:7070")
				m.Folder.remove(t, "stock.example")
				m.AwaitActive("the service is gone")
			}
			close(end)
			calling.Wait()
			m.MustBeSettled()
			if listeners, err := p.Listeners(t.Context()); err != nil || registry != (listeners["10.200.0.2_7070"].Version != "") {
				t.Errorf("the Envoy listens at %v (%v)", slices.Sorted(maps.Keys(listeners)), err)
			}
			p.Stop() // the next one has its port
		})
	}
}

// scope is a Sidecar resource for all workloads of the namespace.
type scope []string

func (s scope) manifest() any {
	return manifest("Sidecar", "scope", "", map[string]any{"egress": []any{map[string]any{"hosts": []string(s)}}})
}

// TestOneInstanceMoreCostsOneListener has sidecars take 1,000 services without addresses of 10
// instances each, all at one port. One instance that comes, and goes, costs at most its own listener,
// however many there are.
func TestOneInstanceMoreCostsOneListener(t *testing.T) {
	t.Parallel()
	if separately(t) {
		return
	}
	for name, c := range map[string]struct {
		envoy     string
		scoped    int // services that the workload sees; 0 is all
		listeners int // at instances
	}{
		"default, unscoped":  {"", 0, 0},
		"registry, unscoped": {"outbound: registry", 0, 250},
		"registry, scoped":   {"outbound: registry", 20, 200},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMesh(t)
			m.Envoy = c.envoy
			made := func(n, instances int) service {
				s := highway(fmt.Sprintf("s-%04d.example", n), "")
				for i := range instances {
					s.Spec.Endpoints = append(s.Spec.Endpoints, endpoint{Address: fmt.Sprintf("10.%d.%d.%d", 100+n/250, n%250, 1+i)})
				}
				return s
			}
			for n := range 1000 {
				m.Folder.write(t, fmt.Sprintf("s-%04d", n), made(n, 10))
			}
			if c.scoped > 0 {
				var hosts scope
				for n := range c.scoped {
					hosts = append(hosts, fmt.Sprintf("./s-%04d.example", n))
				}
				m.Folder.write(t, "scope", hosts)
			}
			m.Serve("")
			p := m.connectWith(proxy.Config{Delta: true, Redirected: true})
			settled := func(what string, instances, listeners int) map[string]uint64 {
				await(t, what, func() error {
					all, err := p.Listeners(t.Context())
					has, failed := p.Endpoints(t.Context(), clusterName("s-0003.example", 7070))
					at := 0
					for name, l := range all {
						if strings.HasPrefix(name, "10.") && l.Version != "" {
							at++
						}
					}
					if at != listeners || len(has) != instances {
						err = fmt.Errorf("%d listeners at instances, and %d of the service, not %d and %d", at, len(has), listeners, instances)
					}
					return errors.Join(err, failed)
				})
				return m.statsOf(p)
			}
			one := min(c.listeners, 1)
			before := settled("the services", 10, c.listeners)
			m.Folder.write(t, "s-0003", made(3, 9))
			gone := settled("an instance that leaves", 9, c.listeners-one)
			m.Folder.write(t, "s-0003", made(3, 10))
			come := settled("an instance that comes", 10, c.listeners)
			if come["added"]-before["added"] != uint64(one) || come["removed"]-before["removed"] != uint64(one) {
				t.Errorf("listeners of one instance that leaves and comes: before %v, gone %v, come %v", before, gone, come)
			}
			if come["modified"] != before["modified"] || gone["bytes"]-before["bytes"] > 10_000 || come["bytes"]-gone["bytes"] > 10_000 {
				t.Errorf("one instance costs more than its own: before %v, gone %v, come %v", before, gone, come)
			}
			figures.add(t, "%d listeners at instances, %.1f MB in use, %d bytes for one that leaves, %d for one that comes", c.listeners, float64(before["allocated"])/1e6, gone["bytes"]-before["bytes"], come["bytes"]-gone["bytes"])
			if err := p.Rejected(t.Context()); err != nil {
				t.Error(err)
			}
			p.Stop() // the next one has its port
		})
	}
}

// statsOf returns an Envoy's memory, the bytes that it received, and the numbers of listeners that it
// added, modified and removed.
func (m *mesh) statsOf(p *proxy.Proxy) map[string]uint64 {
	m.Helper()
	all, err := p.Stats(m.Context(), `^(server\.memory_allocated|cluster\.xds\.upstream_cx_rx_bytes_total|listener_manager\.listener_(added|modified|removed))$`)
	if err != nil || len(all) != 5 {
		m.Fatal(all, err)
	}
	short := map[string]uint64{"allocated": all["server.memory_allocated"], "bytes": all["cluster.xds.upstream_cx_rx_bytes_total"]}
	for _, of := range []string{"added", "modified", "removed"} {
		short[of] = all["listener_manager.listener_"+of]
	}
	return short
}
