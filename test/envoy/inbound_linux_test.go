package envoy_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/isthmus-mesh/isthmus/test/envoy/netns"
	"github.com/isthmus-mesh/isthmus/test/envoy/proxy"
	"github.com/isthmus-mesh/isthmus/test/testkit/until"
)

// source is the address that a sidecar calls its workload from.
const source = "127.0.0.6"

// TestSidecarTakesConnectionsToItsWorkload redirects connections to a workload, which
// stands behind two services, to its sidecar. They reach the workload, whatever they
// carry, and come from the sidecar.
func TestSidecarTakesConnectionsToItsWorkload(t *testing.T) {
	t.Parallel()
	if separately(t) {
		return
	}
	const address = "127.0.1.1"
	if err := netns.Redirect(netip.MustParseAddr(address), 15006, netip.MustParseAddr(source)); err != nil {
		t.Fatal(err)
	}
	for _, number := range []uint32{8080, 7070, 7000} {
		serveRequests(t, address, number)
	}
	serveGreetings(t, address, 9090)

	m := newMesh(t)
	on := func(name string, p port) service {
		return service{Spec: serviceSpec{
			Hosts: []string{name + ".example.com"}, Resolution: "STATIC", Ports: []port{p}, Endpoints: []endpoint{{Address: address}},
		}}
	}
	m.Folder.write(t, "web", on("web", port{Number: 80, TargetPort: 8080, Name: "main", Protocol: "HTTP"}))
	m.Folder.write(t, "raw", on("raw", port{Number: 9090, Name: "main", Protocol: "TCP"}))
	m.Folder.write(t, "any", on("any", port{Number: 7070, Name: "main"}))
	m.Serve("")
	p := m.connectWith(proxy.Config{Delta: true, Redirected: true, IP: address})
	m.AwaitActive("the services")
	awaitInbound(m, p)

	calls := func(number uint32, by string) {
		t.Helper()
		await(t, fmt.Sprintf("port %d to be called through %s", number, by), func() error { return calledThrough(t.Context(), p, address, number, by) })
	}
	calls(8080, "inbound|8080||")
	calls(7070, "inbound|7070||")
	calls(7000, "InboundPassthroughCluster") // which no service has
	await(t, "the server that speaks first to be reached", func() error { return greeted(t.Context(), address, 9090) })

	// A connection that is open when another port comes stays open, and is not drained:
	// Envoy takes the new chains in place.
	const inPlace = "listener_manager.listener_in_place_updated"
	drained, err := p.Stats(t.Context(), inPlace)
	if err != nil {
		t.Fatal(err)
	}
	open, err := net.Dial("tcp", address+":9090")
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close()
	lines := bufio.NewReader(open)
	if _, err := lines.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	m.Folder.write(t, "more", on("more", port{Number: 7000, Name: "main", Protocol: "HTTP"}))
	awaitInbound(m, p)
	calls(7000, "inbound|7000||")
	if _, err := io.WriteString(open, "still there?\n"); err != nil {
		t.Fatal(err)
	}
	if answer, err := lines.ReadString('\n'); err != nil || answer != "still there?\n" {
		t.Errorf("the open connection answers %q (%v)", answer, err)
	}
	if now, err := p.Stats(t.Context(), inPlace); err != nil || now[inPlace] != drained[inPlace]+1 {
		t.Errorf("%s was %d and is %d (%v)", inPlace, drained[inPlace], now[inPlace], err)
	}
	m.Folder.remove(t, "more")
	awaitInbound(m, p)
	calls(7000, "InboundPassthroughCluster")
	m.MustBeSettled()
	if err := p.Deprecated(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestPortsThatComeDrainNothing has ports of every protocol come to a workload and go
// again. Connections to its other ports stay open past the time that Envoy drains for.
func TestPortsThatComeDrainNothing(t *testing.T) {
	t.Parallel()
	if separately(t) {
		return
	}
	const address = "127.0.1.1"
	if err := netns.Redirect(netip.MustParseAddr(address), 15006, netip.MustParseAddr(source)); err != nil {
		t.Fatal(err)
	}
	serveGreetings(t, address, 9090)
	serveGreetings(t, address, 2525) // at a port without a service
	serveRequests(t, address, 8080)
	kinds := map[uint32]string{7001: "TCP", 7002: "MYSQL", 7003: "HTTP", 7004: "TLS", 7005: ""}
	for number := range kinds {
		serveRequests(t, address, number)
	}
	m := newMesh(t)
	m.Folder.write(t, "raw", served("raw", address, 9090, "TCP"))
	m.Folder.write(t, "web", served("web", address, 8080, "HTTP"))
	m.Serve("")
	p := m.connectWith(proxy.Config{Delta: true, Redirected: true, IP: address, Drain: time.Second})
	m.AwaitActive("the services")
	awaitInbound(m, p)
	await(t, "a server to be reached that speaks first at a port of no service", func() error { return greeted(t.Context(), address, 2525) })

	raw, web := open(t, address, 9090), open(t, address, 8080)
	raw.hears(source)
	for _, number := range slices.Sorted(maps.Keys(kinds)) {
		m.Folder.write(t, "more", served("more", address, number, kinds[number]))
		awaitInbound(m, p)
		await(t, fmt.Sprintf("port %d of protocol %q to be called", number, kinds[number]), func() error {
			return calledThrough(t.Context(), p, address, number, fmt.Sprintf("inbound|%d||", number))
		})
		awaitDrained(m, p)
		raw.says("still there?")
		raw.hears("still there?")
		m.Folder.remove(t, "more")
		awaitInbound(m, p)
		awaitDrained(m, p)
		raw.says("and now?")
		raw.hears("and now?")
	}
	web.says("GET / HTTP/1.1\r\nHost: web\r\n\r") // its client has been silent until now
	web.hears("HTTP/1.1 200 OK\r")
	m.MustBeSettled()
}

// awaitDrained waits until an Envoy drains no connections.
func awaitDrained(m *mesh, p *proxy.Proxy) {
	m.Helper()
	await(m, p.Name+" to drain nothing", func() error {
		stats, err := p.Stats(m.Context(), "^listener_manager.total_(listeners|filter_chains)_draining$")
		for name, n := range stats {
			if n > 0 {
				err = fmt.Errorf("%s is %d", name, n)
			}
		}
		return err
	})
}

// talk is a connection on which lines are written and read.
type talk struct {
	*testing.T
	net.Conn
	lines *bufio.Reader
}

func open(t *testing.T, address string, number uint32) talk {
	t.Helper()
	var dialer net.Dialer
	connection, err := dialer.DialContext(t.Context(), "tcp", fmt.Sprintf("%s:%d", address, number))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close() })
	return talk{t, connection, bufio.NewReader(connection)}
}

func (t talk) says(line string) {
	t.Helper()
	if _, err := io.WriteString(t.Conn, line+"\n"); err != nil {
		t.Fatalf("the connection to %s: %v", t.RemoteAddr(), err)
	}
}

func (t talk) hears(line string) {
	t.Helper()
	if err := t.SetReadDeadline(time.Now().Add(until.Patience)); err != nil {
		t.Fatal(err)
	}
	if got, err := t.lines.ReadString('\n'); err != nil || got != line+"\n" {
		t.Fatalf("the connection to %s answers %q and not %q (%v)", t.RemoteAddr(), got, line, err)
	}
}

// awaitInbound waits until a sidecar takes connections to what its workload serves.
func awaitInbound(m *mesh, p *proxy.Proxy) {
	m.Helper()
	await(m, p.Name+" to take the ports of its workload", func() error {
		listeners, err := p.Listeners(m.Context())
		if err != nil {
			return err
		}
		want := append(m.Folder.inboundPorts(p.Network, p.IP), 15006) // its own, against loops
		slices.Sort(want)
		if got := listeners["virtualInbound"].Ports; !slices.Equal(got, want) {
			return fmt.Errorf("it takes %v, not %v", got, want)
		}
		return nil
	})
}

// serveRequests answers requests with the address that they came from.
func serveRequests(t *testing.T, address string, number uint32) {
	t.Helper()
	serveRequestsOn(t, listen(t, address, number))
}

func serveRequestsOn(t *testing.T, listener net.Listener) {
	t.Helper()
	server := &http.Server{
		ReadHeaderTimeout: until.Patience,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			from, _, _ := net.SplitHostPort(r.RemoteAddr)
			_, _ = io.WriteString(w, from)
		}),
	}
	var served sync.WaitGroup
	served.Go(func() { _ = server.Serve(listener) })
	t.Cleanup(func() { _ = server.Close(); served.Wait() })
}

func listen(t *testing.T, address string, number uint32) net.Listener {
	t.Helper()
	var config net.ListenConfig
	listener, err := config.Listen(t.Context(), "tcp", fmt.Sprintf("%s:%d", address, number))
	if err != nil {
		t.Fatal(err)
	}
	return listener
}

// serveGreetings says where a connection comes from before it has said anything, and
// then repeats what it says.
func serveGreetings(t *testing.T, address string, number uint32) {
	t.Helper()
	serveGreetingsOn(t, listen(t, address, number))
}

func serveGreetingsOn(t *testing.T, listener net.Listener) {
	t.Helper()
	var served sync.WaitGroup
	served.Go(func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			served.Go(func() {
				defer connection.Close()
				from, _, _ := net.SplitHostPort(connection.RemoteAddr().String())
				_, _ = fmt.Fprintln(connection, from)
				_, _ = io.Copy(connection, connection)
			})
		}
	})
	t.Cleanup(func() { _ = listener.Close(); served.Wait() })
}

// calledThrough checks that a request arrives from the sidecar, which counts it for a
// cluster.
func calledThrough(ctx context.Context, p *proxy.Proxy, address string, number uint32, cluster string) error {
	const counter = "upstream_rq_total"
	name := "cluster." + cluster + ";." + counter // which says where the name ends
	before, err := p.Stats(ctx, counter)
	if err != nil {
		return err
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: until.Patience}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://%s:%d/", address, number), http.NoBody)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	from, err := io.ReadAll(response.Body)
	if err != nil || string(from) != source || response.StatusCode != http.StatusOK {
		return fmt.Errorf("%d: a request from %q (%w)", response.StatusCode, from, err)
	}
	after, err := p.Stats(ctx, counter)
	if err == nil && after[name] <= before[name] {
		err = fmt.Errorf("%s is still %d", name, after[name])
	}
	return err
}

// greeted checks that a server is heard through the sidecar before anything is said.
func greeted(ctx context.Context, address string, number uint32) error {
	var dialer net.Dialer
	connection, err := dialer.DialContext(ctx, "tcp", fmt.Sprintf("%s:%d", address, number))
	if err != nil {
		return err
	}
	defer connection.Close()
	if err := connection.SetDeadline(time.Now().Add(until.Patience)); err != nil {
		return err
	}
	from, err := bufio.NewReader(connection).ReadString('\n')
	if err == nil && from != source+"\n" {
		err = fmt.Errorf("a connection from %q", from)
	}
	return err
}

// TestSidecarsTakeAnyPortsOfTheirWorkloads has sidecars of several workloads take what
// these serve, while services of every protocol come, go and change. What changes for
// one workload changes nothing for the sidecars of others.
func TestSidecarsTakeAnyPortsOfTheirWorkloads(t *testing.T) {
	t.Parallel()
	if separately(t) {
		return
	}
	random := rand.New(rand.NewPCG(*seed, 16))
	addresses := []string{"127.0.1.1", "127.0.1.2", "fd00::3", "127.0.1.4"}
	m := newMesh(t)
	for n := range 20 {
		m.Folder.write(t, fmt.Sprintf("some-%d", n), drawServed(random, n, addresses)...)
	}
	m.Folder.write(t, "quiet", served("quiet", "127.0.1.4", 8080, "HTTP"))
	m.Serve("")
	for n, address := range addresses {
		c := proxy.Config{Delta: n%2 == 0, Redirected: true, IP: address, Workload: fmt.Sprintf("sidecar-%d", n)}
		switch n {
		case 1:
			c.Flags = []string{"--interception", "TPROXY"}
		case 2:
			c.Network = "here"
		}
		m.connectWith(c)
	}
	m.AwaitActive("the services")
	for round := range 8 {
		for range 4 {
			n := random.IntN(20)
			m.Folder.write(t, fmt.Sprintf("some-%d", n), drawServed(random, n, addresses[:3])...)
		}
		m.AwaitActive("the services as they are now")
		for n := range addresses {
			awaitInbound(m, m.Proxies[n])
		}
		if round == 0 { // from here on no service of the last workload is drawn again
			for n := range 20 {
				m.Folder.write(t, fmt.Sprintf("some-%d", n), drawServed(random, n, addresses[:3])...)
			}
			m.AwaitActive("services of other workloads")
			awaitInbound(m, m.Proxies[3])
		}
	}
	before := inboundOf(m, 3)
	m.Folder.write(t, "one", served("one", addresses[0], 4321, "HTTP"))
	m.AwaitActive("one more service")
	awaitInbound(m, m.Proxies[0])
	if after := inboundOf(m, 3); after.Updated != before.Updated || after.Version != before.Version {
		t.Errorf("the sidecar of another workload was sent another listener: %+v became %+v", before, after)
	}
}

func inboundOf(m *mesh, n int) proxy.Listener {
	m.Helper()
	listeners, err := m.Proxies[n].Listeners(m.Context())
	l, found := listeners["virtualInbound"]
	if err != nil || !found {
		m.Fatal(errors.Join(err, errors.New("it has no inbound listener")))
	}
	return l
}

func served(name, address string, number uint32, protocol string) service {
	return service{Name: name, Spec: serviceSpec{
		Hosts: []string{name + ".localhost"}, Resolution: "STATIC",
		Ports: []port{{Number: number, Name: "main", Protocol: protocol}}, Endpoints: []endpoint{{Address: address}},
	}}
}

// drawServed draws services of workloads that are at some addresses.
func drawServed(random *rand.Rand, file int, addresses []string) (list []object) {
	for n := range 1 + random.IntN(3) {
		s := service{Name: fmt.Sprintf("s-%d-%d", file, n), Spec: serviceSpec{
			Hosts: []string{fmt.Sprintf("s-%d-%d.localhost", file, n)}, Resolution: "STATIC",
		}}
		for p := range 1 + random.IntN(3) {
			s.Spec.Ports = append(s.Spec.Ports, port{
				Number: []uint32{80, 443, 8080, 9000, 15001, 3306}[random.IntN(6)], Name: fmt.Sprintf("p%d", p),
				Protocol: protocols[random.IntN(len(protocols))], TargetPort: []uint32{0, 0, 8080, 15006, 65535}[random.IntN(5)],
			})
		}
		s.Spec.Ports = distinct(s.Spec.Ports)
		for _, at := range random.Perm(len(addresses))[:random.IntN(len(addresses)+1)] {
			e := endpoint{Address: addresses[at], Network: []string{"", "", "here", "there"}[random.IntN(4)]}
			if random.IntN(3) == 0 {
				e.Ports = map[string]uint32{"p0": uint32(10_000 + random.IntN(5))}
			}
			s.Spec.Endpoints = append(s.Spec.Endpoints, e)
		}
		list = append(list, s)
	}
	return list
}
