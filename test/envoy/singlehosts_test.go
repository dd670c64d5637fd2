package envoy_test

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/isthmus-mesh/isthmus/test/envoy/proxy"
)

// TestHostsOfALargePortComeOneByOne has hosts of a port come, change hands and go, while
// listeners cease to lead to them and do so again, and Envoy goes on to drain those from
// before. Requests to hosts that stay never fail, over new connections or old ones.
func TestHostsOfALargePortComeOneByOne(t *testing.T) {
	t.Parallel()
	const vip = "10.9.9.9"
	m := newMesh(t)
	m.Hold = "min: 1000000"
	web, api := startBackend(t, "web", "web"), startBackend(t, "api", "api")
	shared := freePort(t)
	on := func(host string, b *backend, addresses ...string) service {
		return service{Spec: serviceSpec{
			Hosts: []string{host}, Addresses: addresses, Resolution: "STATIC", Ports: []port{{Number: shared, Name: "main", Protocol: "HTTP"}},
			Endpoints: []endpoint{b.endpoint("main")},
		}}
	}
	others := func(n int) {
		var list []object
		for i := range n {
			list = append(list, on(fmt.Sprintf("other-%d.example.com", i), web))
		}
		m.Folder.write(t, "others", list...)
	}
	others(520)
	m.Folder.write(t, "second", on("api.shop.svc.cluster.local", api, vip))
	i := m.Serve("")
	p := m.connectWith(proxy.Config{Delta: true, Listeners: true})
	m.AwaitActive("the services")
	awaitAnswer := func(host, want string) {
		t.Helper()
		await(t, host+" to answer", func() error { return answers(t.Context(), shared, host, want) })
	}
	awaitHosts := func(most int) {
		t.Helper()
		await(t, "the hosts that Envoy has", func() error {
			hosts, err := p.Hosts(t.Context(), fmt.Sprintf("%d.hosts", shared))
			if err == nil && len(hosts) != most {
				err = fmt.Errorf("%d hosts, not %d", len(hosts), most)
			}
			return err
		})
	}
	awaitAnswer("other-0.example.com", "web")
	awaitHosts(522)
	stop := steadily(t, shared, "other-1.example.com", "web")

	m.Folder.write(t, "added", on("added.example.com", api))
	awaitAnswer("added.example.com", "api")
	for range 2 {
		m.Folder.write(t, "first", on("api.shop", web, vip))
		awaitAnswer(vip, "web")
		m.Folder.remove(t, "first")
		awaitAnswer(vip, "api")
	}
	m.Folder.remove(t, "added")
	awaitHosts(522)

	before := updatesOf(t, p)
	i.Kill()
	i.Serve()
	m.AwaitConnection()
	m.MustBeSettled()
	if after := updatesOf(t, p); after != before {
		t.Errorf("Envoy took %d responses of hosts when it came back, of what it has", after-before)
	}
	reach := func(n int) {
		t.Helper()
		others(n)
		m.Folder.write(t, "added", on(fmt.Sprintf("added-%d.example.com", n), api))
		awaitAnswer(fmt.Sprintf("added-%d.example.com", n), "api")
		awaitAnswer(fmt.Sprintf("other-%d.example.com", n-1), "web")
		awaitHosts(n + 3) // which Envoy has in any case: the listener from before has them until it is drained
	}
	for _, n := range []int{480, 515, 100, 530} {
		reach(n)
		m.AwaitActive(fmt.Sprintf("%d services", n))
	}
	for _, n := range []int{90, 540} {
		i.Kill()
		others(n)
		i.Serve()
		m.AwaitConnection()
		reach(n)
	}
	for range 4 {
		reach(498)
		reach(499)
	}
	stop()

	for _, name := range []string{"others", "added", "second"} {
		m.Folder.remove(t, name)
	}
	awaitHosts(1)
	m.Folder.write(t, "second", on("api.shop.svc.cluster.local", api, vip))
	reach(510)
	stop = steadily(t, shared, "other-1.example.com", "web")
	reach(200)
	reach(520)
	stop()
	m.AwaitActive("520 services")
}

// TestSingleHostsOutliveTheirNumber restarts Isthmus with other numbers of services from
// which hosts go one by one, and with none. Requests never fail, over new connections or
// over one that Envoy drains with a listener from before.
func TestSingleHostsOutliveTheirNumber(t *testing.T) {
	t.Parallel()
	m := newMesh(t)
	m.Hold, m.Envoy = "min: 1000000", "vhds: {from: 5}"
	web := startBackend(t, "web", "web")
	shared := freePort(t)
	host := func(i int) service {
		return service{Spec: serviceSpec{
			Hosts: []string{fmt.Sprintf("host-%d.example.com", i)}, Resolution: "STATIC", Ports: []port{{Number: shared, Name: "main", Protocol: "HTTP"}},
			Endpoints: []endpoint{web.endpoint("main")},
		}}
	}
	var all []object
	for i := range 8 {
		all = append(all, host(i))
	}
	m.Folder.write(t, "all", all...)
	i := m.Serve("")
	p := m.connectWith(proxy.Config{Delta: true, Listeners: true})
	m.AwaitActive("the services")
	await(t, "the hosts that Envoy has", func() error {
		hosts, err := p.Hosts(t.Context(), fmt.Sprintf("%d.hosts", shared))
		if err == nil && len(hosts) != 9 {
			err = fmt.Errorf("%d hosts, not 9", len(hosts))
		}
		return err
	})
	stop := steadily(t, shared, "host-0.example.com", "web")
	number := 5
	for n, next := range []int{0, 5, 100, 0, 8} {
		i.Kill()
		i.Configure(fmt.Sprintf("from: %d", number), fmt.Sprintf("from: %d", next))
		number = next
		i.Serve()
		m.AwaitConnection()
		m.Folder.write(t, "added", host(10+n)) // Envoy answers by it once it has taken all before
		await(t, "the added host to answer", func() error { return answers(t.Context(), shared, fmt.Sprintf("host-%d.example.com", 10+n), "web") })
		m.AwaitActive(fmt.Sprintf("hosts one by one from %d services", next))
	}
	stop()
}

// updatesOf is how many responses of hosts an Envoy has taken.
func updatesOf(t *testing.T, p *proxy.Proxy) (n uint64) {
	t.Helper()
	stats, err := p.Stats(t.Context(), `vhds.*update_success`)
	if err != nil {
		t.Fatal(err)
	}
	for _, value := range stats {
		n += value
	}
	return n
}

// steadily requests a host all the time until stop is called, over one connection and
// over new ones. No request may fail.
func steadily(t *testing.T, port uint32, host, want string) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var done sync.WaitGroup
	for _, kept := range []bool{false, true} {
		transport := &http.Transport{DisableKeepAlives: !kept, MaxConnsPerHost: 1}
		done.Go(func() {
			defer transport.CloseIdleConnections()
			tick := time.NewTicker(20 * time.Millisecond)
			defer tick.Stop()
			for n := 0; ctx.Err() == nil; n++ {
				if err := answersOver(t.Context(), transport, port, host, want); err != nil && ctx.Err() == nil {
					t.Errorf("%s did not answer request %d, over one connection: %t: %v", host, n, kept, err)
					return
				}
				<-tick.C
			}
		})
	}
	return func() {
		cancel()
		done.Wait()
	}
}
