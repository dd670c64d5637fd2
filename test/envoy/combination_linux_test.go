package envoy_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/isthmus-mesh/isthmus/test/envoy/netns"
	"github.com/isthmus-mesh/isthmus/test/envoy/proxy"
)

// drawn is how many services there are.
const drawn = 1500

// atTheEdge are the ports of the edge and what they take.
var atTheEdge = map[uint16]string{80: "HTTP", 8081: "HTTP", 443: "TLS", 8444: "TLS", 9000: "TCP", 2042: "TCP"}

// TestEveryCombinationAnswers has a sidecar and an edge take services of every
// combination, and calls each of them in every way there is. Whoever should
// answer does, and nobody else.
func TestEveryCombinationAnswers(t *testing.T) {
	t.Parallel()
	if separately(t) {
		return
	}
	if err := netns.Answer(answering, 15001); err != nil {
		t.Fatal(err)
	}
	startEveryone(t)
	random := &combinations{Rand: rand.New(rand.NewPCG(*seed, 29))}
	m := newMesh(t)
	allow, names, all := random.oneOf(2), random.oneOf(2), random.oneOf(4)
	m.Subset = subset{name: "half", domain: "shop.svc.cluster.local", labels: map[string]string{inSubset: "yes"}}
	m.Folder.remove(t, "stays")
	var some []object
	for range drawn {
		some = append(some, random.draw()...)
	}
	m.Folder.write(t, "drawn", unique(some)...)
	m.Envoy = fmt.Sprintf("outbound: %s, vhds: {from: 20}, hosts: [%s], edge: {ports: [", map[bool]string{true: "allow", false: "registry"}[allow], m.Subset)
	for number, protocol := range atTheEdge {
		exposed := `"*"`
		if protocol == "TCP" {
			exposed = newOracle(m.Folder.objects(), allow, false).exposed(uint32(number))
		}
		m.Envoy += fmt.Sprintf("{number: %d, protocol: %s, hosts: [%s], localAddresses: allow}, ", number, protocol, exposed)
	}
	m.Envoy += "]}"
	if names {
		m.Envoy += ", dns: {}"
	}
	if all {
		m.Envoy += ", unaddressed: all"
	}
	m.Logf("outbound allowed: %t, lookups: %t, unaddressed all: %t", allow, names, all)
	if err := m.Serve("").Rejected(); err != nil {
		t.Fatal(err)
	}
	six := random.oneOf(2) // which of the sidecars has IPv6 addresses alone
	for _, delta := range []bool{true, false} {
		mode := map[bool]string{true: "delta", false: "sotw"}[delta]
		sidecar := proxy.Config{Workload: "sidecar-" + mode, Delta: delta, Redirected: true}
		if delta == six {
			sidecar.IP = "::1"
		}
		o := newOracle(m.Folder.objects(), allow, delta == six)
		o.names, o.old = names, all
		m.combined(sidecar, netns.Redirected, o.ofWorkload(), func(p *proxy.Proxy) {
			m.mustHaveHosts(p, delta)
			if names {
				m.mustAnswer(o.lookups(), o.six)
			}
		})
		m.combined(proxy.Config{Workload: "edge-" + mode, Delta: delta}, netns.Direct, newOracle(m.Folder.objects(), allow, false).fromElsewhere(atTheEdge), nil)
	}
	bare := newOracle(m.Folder.objects(), allow, false)
	bare.bare = true
	m.combined(proxy.Config{Workload: "bare", Delta: true, Listeners: true}, netns.Direct, bare.ofWorkload(), func(p *proxy.Proxy) {
		m.mustHaveHosts(p, true)
	})
}

// combined has one Envoy take the services, and makes all calls through it. Then it may
// be looked at.
func (m *mesh) combined(c proxy.Config, mark int, calls []call, look func(*proxy.Proxy)) {
	m.Helper()
	began := time.Now()
	p := m.connectWith(c)
	m.AwaitActive("every combination")
	active := time.Since(began)
	failed := callAll(m.Context(), calls, mark)
	for _, f := range failed[:min(len(failed), 20)] {
		m.Errorf("%s: %s", p.Name, f)
	}
	m.Logf("%s: %d calls, %d not answered as they should be; active after %s, all after %s", p.Name, len(calls), len(failed), active, time.Since(began))
	if look != nil {
		look(p)
	}
	m.MustBeSettled()
	p.Stop()
	m.Proxies = nil
}

// mustHaveHosts is that an Envoy takes the hosts of large ports one by one, or does not.
// Which ports these are depends on what is drawn: a listener on loopback may be that of
// an older service whose connections are no requests.
func (m *mesh) mustHaveHosts(p *proxy.Proxy, want bool) {
	m.Helper()
	routes, err := p.Routes(m.Context())
	if err != nil {
		m.Error(err)
	}
	held := 0
	for name := range routes {
		if !strings.HasSuffix(name, ".hosts") {
			continue
		}
		hosts, err := p.Hosts(m.Context(), name)
		if err != nil {
			m.Error(err)
		}
		held += len(hosts)
	}
	if held > 20 != want {
		m.Errorf("%s has %d hosts one by one", p.Name, held)
	}
}

// mustAnswer is that a sidecar answers lookups of hosts with the addresses of theirs.
func (m *mesh) mustAnswer(lookups map[string][]string, six bool) {
	m.Helper()
	at, network := "127.0.0.1:15053", "ip4"
	if six {
		at, network = "[::1]:15053", "ip6"
	}
	resolver := resolverAt(at)
	for host, want := range lookups {
		found, err := resolver.LookupNetIP(m.Context(), network, host+".")
		var got []string
		for _, ip := range found {
			got = append(got, ip.Unmap().String())
		}
		slices.Sort(got)
		if err != nil || !slices.Equal(got, want) {
			m.Errorf("%s is %v, not %v (%v)", host, got, want, err)
		}
	}
	m.Logf("%d hosts were looked up", len(lookups))
}

// unique leaves out hosts that their namespace has already: services of two objects
// would be one.
func unique(objects []object) (list []object) {
	seen := map[string]bool{}
	for _, o := range objects {
		s, ok := o.(service)
		if !ok {
			list = append(list, o)
			continue
		}
		s.Spec.Hosts = slices.DeleteFunc(s.Spec.Hosts, func(host string) bool {
			name := s.Namespace + "/" + strings.ToLower(host)
			had := seen[name]
			seen[name] = true
			return had
		})
		if len(s.Spec.Hosts) > 0 {
			list = append(list, s)
		}
	}
	slices.SortStableFunc(list, func(a, b object) int { return strings.Compare(namespaceOf(a), namespaceOf(b)) })
	return list
}

func namespaceOf(o object) string {
	if s, ok := o.(service); ok {
		return s.Namespace
	}
	return o.(workload).Namespace
}

// callAll makes all calls, some of them at a time, and says which had another outcome
// than they should.
func callAll(ctx context.Context, calls []call, mark int) (failed []string) {
	next := make(chan call)
	var mu sync.Mutex
	var callers sync.WaitGroup
	for range 16 {
		callers.Go(func() {
			for c := range next {
				if got := c.made(ctx, mark); !slices.Contains(c.want, got) {
					mu.Lock()
					failed = append(failed, fmt.Sprintf("%s: %s, not %v", c, got, c.want))
					mu.Unlock()
				}
			}
		})
	}
	for _, c := range calls {
		next <- c
	}
	close(next)
	callers.Wait()
	return failed
}
