package envoy_test

import (
	"crypto/tls"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/isthmus-mesh/isthmus/test/envoy/netns"
	"github.com/isthmus-mesh/isthmus/test/envoy/proxy"
	"github.com/isthmus-mesh/isthmus/test/testkit/authority"
)

// Variables of the environment that say how long everything changes, and how long
// Isthmus is gone. By default both are short:
//
//	ISTHMUS_STORM=5m ISTHMUS_OUTAGE=1m go -C test/envoy test -run Storm -v -timeout 20m .
const (
	stormVariable  = "ISTHMUS_STORM"
	outageVariable = "ISTHMUS_OUTAGE"
)

// durationOf is what a variable says.
func durationOf(t *testing.T, variable string, otherwise time.Duration) time.Duration {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return otherwise
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatalf("%s: %v", variable, err)
	}
	return d
}

// TestStormFailsNoCall has four sidecars, in both variants of the protocol and with and
// without redirected connections, and one Envoy at the edge, whose callers never stop while
// everything about the services changes at random. Over delta hosts and the endpoints of
// larger services go one by one. Calls to services that were there all along are answered.
// Whenever it is quiet, each Envoy holds what Isthmus says that it holds. Then Isthmus is
// killed for a while and started again, and nothing is sent anew.
func TestStormFailsNoCall(t *testing.T) {
	t.Parallel()
	if separately(t) {
		return
	}
	redirectStorm(t)
	m := newMesh(t)
	m.Others = newFolder(t)
	s := newStorm(m)
	s.connect()
	for _, o := range s.services {
		s.awaitAnswers(o)
	}
	var loads []*stormLoad
	for _, w := range s.ways {
		if w.workload != "" {
			await(s, "the workload of "+w.Name+" to answer", func() error { return answered(t.Context(), w.workload) })
		}
		loads = append(loads, startStormLoad(t, s, w))
	}
	s.rage(durationOf(t, stormVariable, 25*time.Second))
	s.outage(durationOf(t, outageVariable, 8*time.Second))
	s.rage(5 * time.Second)
	for _, l := range loads {
		l.MustNotHaveFailed()
	}
	figures.add(t, "%d changes", s.changes)
}

// stormFamily is addresses of one family. The sidecars of each variant of the protocol
// have one of their own, so that both may listen.
type stormFamily struct {
	services          string // the block of their addresses
	redirected, bound string // the workloads beside sidecars
	loopback, source  string
}

func stormFamilies() map[bool]stormFamily {
	return map[bool]stormFamily{
		true:  {"127.128.0.0/16", "127.0.1.1", "127.0.1.2", "127.0.0.1", source},
		false: {"2001:db8::/32", "fd00::1", "fd00::2", "::1", "::6"},
	}
}

// redirectStorm has connections to addresses of services come to the redirected sidecar
// of their family, and those to its workload, too.
func redirectStorm(t *testing.T) {
	t.Helper()
	for _, f := range stormFamilies() {
		workload := netip.MustParseAddr(f.redirected)
		err := errors.Join(
			netns.RedirectWithin(netip.MustParsePrefix(f.services), 15001, netip.Addr{}),
			netns.RedirectWithin(netip.PrefixFrom(workload, workload.BitLen()), 15006, netip.MustParseAddr(f.source)),
		)
		for _, address := range []string{f.redirected, f.bound, f.source} {
			if ip := netip.MustParseAddr(address); ip.Is6() {
				err = errors.Join(err, netns.AddAddress(ip))
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// storm is services that change at random. It belongs to one goroutine.
type storm struct {
	*mesh
	random   *rand.Rand
	services []*stormService
	ways     []way
	clients  []int // of each Isthmus
	leavers  stormLeavers
	changes  int
	fences   int
}

// newStorm offers services, behind an Isthmus that does not run yet.
func newStorm(m *mesh) *storm {
	s := &storm{mesh: m, random: rand.New(rand.NewPCG(*seed, 33))}
	s.leavers.t = m.T
	m.Cleanup(s.leavers.wait)
	pair := authority.New(m.T, "ca").Issue("server")
	certificate, err := tls.X509KeyPair(pair.Cert, pair.Key)
	if err != nil {
		m.Fatal(err)
	}
	for n := range 20 {
		o := &stormService{m: m, name: fmt.Sprintf("offer-%d", n), index: uint32(n), folder: m.Folder}
		o.offer = offer{Kind: []string{byAuthority, byAddress, byHandshake, byContent}[n%4], Address: addressV4(0, n+1), AddressV6: addressV6(0, n+1)}
		o.resolution = []string{"STATIC", "STATIC", "DNS"}[n%3]
		switch o.Kind {
		case byAuthority:
			o.Number = 80 + uint32(n)/10
		case byAddress, byContent:
			o.Number = 7000 + uint32(n)
		case byHandshake: // all at one address, so that nothing else tells them apart
			o.Number, o.Address, o.AddressV6, o.certificate = 443, addressV4(0, 200), addressV6(0, 200), &certificate
		}
		o.port = port{Name: "main", Protocol: o.Kind}
		o.Host = o.name + ".example.com"
		o.known = o.offer
		for range 2 {
			o.grow()
		}
		o.publish("begin")
		s.services = append(s.services, o)
	}
	for delta, f := range stormFamilies() {
		serveRequests(m.T, "["+f.redirected+"]", 8080)
		serveRequests(m.T, "["+f.loopback+"]", 8085)
		name := fmt.Sprintf("inbound-%t", delta)
		m.Folder.write(m, name, inboundOffer(name+"-redirected", f.redirected, 8080), inboundOffer(name+"-bound", f.bound, 8085))
	}
	return s
}

func addressV4(group, n int) string { return fmt.Sprintf("127.128.%d.%d", group, n) }
func addressV6(group, n int) string { return fmt.Sprintf("2001:db8::%d:%d", group, n) }

// inboundOffer is a service that a workload serves.
func inboundOffer(name, address string, target uint32) service {
	return service{Name: name, Spec: serviceSpec{
		Hosts: []string{name + ".example.com"}, Resolution: "STATIC", Endpoints: []endpoint{{Address: address}},
		Ports: []port{{Number: 6000, TargetPort: target, Name: "main", Protocol: "HTTP"}},
	}}
}

// collected is how many endpoints a service has at most that go together over delta.
const collected = 2

// Where the edge is called.
const edgeHTTP, edgeTLS = 9080, 9443

// ofStorm is outputs.xds.envoy. Calls to services that are gone would go to their own
// address otherwise, for ever.
func ofStorm(delta bool) string {
	if !delta {
		return "outbound: registry"
	}
	return fmt.Sprintf(`outbound: registry, vhds: {from: 1}, leds: {above: %d},
    edge: {ports: [{number: %d, hosts: ["*"], localAddresses: allow}, {number: %d, protocol: TLS, hosts: ["*"], localAddresses: allow}]},
    defaults: {outlierDetection: {}, localityFailover: false}`, collected, edgeHTTP, edgeTLS)
}

// connect starts an Isthmus for each variant of the protocol, with two sidecars each. So
// what is sent over delta can be counted. That one has the edge as well.
func (s *storm) connect() {
	s.Helper()
	for _, delta := range []bool{true, false} {
		s.Envoy = ofStorm(delta)
		i := s.Serve("")
		mode := map[bool]string{true: "delta", false: "sotw"}[delta]
		f := stormFamilies()[delta]
		redirected := proxy.Config{Delta: delta, Redirected: true, Workload: mode + "-redirected", IP: f.redirected}
		bound := proxy.Config{Delta: delta, Listeners: true, Workload: mode + "-bound", IP: f.bound, Flags: []string{"--inbound", "8085,8086,8087"}}
		toService := func(o offer) string { return net.JoinHostPort(o.at(delta), fmt.Sprint(o.Number)) }
		toLoopback := func(o offer) string { return net.JoinHostPort(f.loopback, fmt.Sprint(o.Number)) }
		s.ways = append(s.ways,
			way{s.connectTo([]*isthmus{i}, redirected), toService, net.JoinHostPort(f.redirected, "8080")},
			way{s.connectTo([]*isthmus{i}, bound), toLoopback, net.JoinHostPort(f.bound, "8085")})
		s.clients = append(s.clients, 2)
		if delta {
			s.ways = append(s.ways, way{s.connectTo([]*isthmus{i}, proxy.Config{Delta: true, Workload: "edge"}), toEdge, ""})
			s.clients[0]++
		}
	}
}

// toEdge is where a service is called from elsewhere.
func toEdge(o offer) string {
	switch o.Kind {
	case byHandshake:
		return fmt.Sprint("127.0.0.1:", edgeTLS)
	case byAddress:
		return ""
	default:
		return fmt.Sprint("127.0.0.1:", edgeHTTP)
	}
}

// waysTo yields the Envoys through which a service is called.
func (s *storm) waysTo(o *stormService) iter.Seq[way] {
	return func(yield func(way) bool) {
		for _, w := range s.ways {
			if w.takes(o.offer) && !yield(w) {
				return
			}
		}
	}
}

// awaitAnswers waits until a service is called as it now is.
func (s *storm) awaitAnswers(o *stormService) {
	s.Helper()
	for w := range s.waysTo(o) {
		await(s, w.Name+": "+o.name+" to answer", func() error { return w.called(s.Context(), anew(), o.name, o.offer) })
	}
}

// rage changes services for a while, and looks at what Envoys hold whenever it is quiet.
func (s *storm) rage(d time.Duration) {
	s.Helper()
	const between = 10 * time.Second
	for end := time.Now().Add(d); time.Now().Before(end) && !s.Failed(); {
		quiet := time.Now().Add(between)
		for time.Now().Before(quiet) && time.Now().Before(end) && !s.Failed() {
			for range 1 + s.random.IntN(4) {
				s.change(s.services[s.random.IntN(len(s.services))])
				s.changes++
			}
			<-time.After(time.Duration(s.random.IntN(250)) * time.Millisecond) // so that changes come neither one by one nor all at once
		}
		s.leavers.wait()
		s.MustShowWhatEnvoysHold()
		s.MustBeSettled()
	}
}
