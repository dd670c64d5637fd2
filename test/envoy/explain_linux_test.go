package envoy_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/isthmus-mesh/isthmus/test/envoy/netns"
	"github.com/isthmus-mesh/isthmus/test/envoy/proxy"
)

// explainedCalls is how many calls of each Envoy are explained, and made.
const explainedCalls = 170

// explanation is the answer of GET /api/v1/explain for one port.
type explanation struct {
	State, Reason, Address string
	Records                []struct{ Record string }
}

// TestExplanationsSayWhatEnvoysDo draws services of every combination, and asks for random
// hosts and ports where a call through an Envoy ends. A call is answered by an endpoint of
// the service if, and only if, the explanation says so.
func TestExplanationsSayWhatEnvoysDo(t *testing.T) {
	t.Parallel()
	if separately(t) {
		return
	}
	if err := netns.Answer(answering, 15001); err != nil {
		t.Fatal(err)
	}
	startEveryone(t)
	random := &combinations{Rand: rand.New(rand.NewPCG(*seed, 37))}
	m := newMesh(t)
	m.Folder.remove(t, "stays")
	var some []object
	for range 400 {
		some = append(some, random.draw()...)
	}
	m.Folder.write(t, "drawn", unique(some)...)
	m.Envoy = "outbound: registry, vhds: {from: 20}, edge: {ports: ["
	for number, protocol := range atTheEdge {
		exposed := `"*"`
		if protocol == "TCP" {
			exposed = newOracle(m.Folder.objects(), false, false).exposed(uint32(number))
		}
		m.Envoy += fmt.Sprintf("{number: %d, protocol: %s, hosts: [%s], localAddresses: allow}, ", number, protocol, exposed)
	}
	m.Envoy += "]}"
	m.Serve("")
	for _, c := range []proxy.Config{
		{Workload: "sidecar", Delta: true, Redirected: true},
		{Workload: "six", Redirected: true, IP: "::1"},
		{Workload: "bare", Delta: true, Listeners: true},
		{Workload: "edge", Delta: true},
	} {
		m.mustAgree(c, random)
	}
}

// mustAgree explains calls through an Envoy, and makes them.
func (m *mesh) mustAgree(c proxy.Config, random *combinations) {
	m.Helper()
	p := m.connectWith(c)
	m.AwaitActive("the services")
	id := m.idOf(c.Workload)
	all := everyPort(m.Folder.objects())
	reached, wrong := 0, 0
	for range explainedCalls {
		s := all[random.IntN(len(all))]
		number := s.port.Number
		switch {
		case c.Workload == "edge":
			number = uint32(atRandom(random, atTheEdge))
		case random.oneOf(8):
			number = all[random.IntN(len(all))].port.Number
		}
		e := m.explained(id, s.anyHost(), number)
		meant := meantBy(all, s.anyHost(), number, e)
		to, mark := m.asExplained(c, meant, number, e)
		if meant.ambiguous(to, e) {
			continue
		}
		got := to.made(m.Context(), mark)
		answered := slices.Contains(to.want, got)
		if answered {
			reached++
		}
		if answered != (e.State == "reached") {
			if wrong++; wrong <= 10 {
				m.Errorf("%s: %s, answered by %q (of %v): %s: %s", p.Name, to, got, to.want, e.State, e.Reason)
			}
		}
	}
	m.Logf("%s: %d of %d calls reach their service, and of %d the explanation is wrong", p.Name, reached, explainedCalls, wrong)
	if reached < explainedCalls/20 || reached > explainedCalls*19/20 {
		m.Errorf("%s: %d of %d calls reach their service, which is too few or too many to say anything", p.Name, reached, explainedCalls)
	}
	p.Stop()
	m.Proxies = nil
}

// idOf is the id of the Envoy of a workload.
func (m *mesh) idOf(workload string) (id string) {
	m.Helper()
	await(m, "the client "+workload, func() error {
		clients, err := m.Isthmuses[0].clients()
		for _, c := range clients {
			if strings.Contains(c.ID, "~"+workload+".") {
				id = c.ID
				return nil
			}
		}
		return errors.Join(err, fmt.Errorf("none of %d clients is it", len(clients)))
	})
	return id
}

// ambiguous is whether who answers does not tell which service was called: all have the same
// unix socket; services without endpoints have those of any address, or of loopback; and hosts
// of one object have the same.
func (s offered) ambiguous(c call, e explanation) bool {
	sibling := func(host string) bool { return strings.HasSuffix(e.Reason, " of "+strings.ToLower(host)) }
	bare := len(s.endpoints) == 0 && s.Spec.Resolution != "STATIC"
	return slices.Contains(c.want, abstract) || e.State != "reached" && bare || slices.ContainsFunc(s.Spec.Hosts, sibling)
}

func atRandom(random *combinations, ports map[uint16]string) uint16 {
	var list []uint16
	for number := range ports {
		list = append(list, number)
	}
	slices.Sort(list)
	return list[random.IntN(len(list))]
}

// everyPort is every port of every host, visible or not.
func everyPort(objects []object) (all []offered) {
	for _, o := range objects {
		if s, ok := o.(service); ok {
			endpoints := s.endpoints(objects)
			for _, host := range s.Spec.Hosts {
				for _, p := range s.Spec.Ports {
					all = append(all, offered{s, strings.ToLower(host), p, endpoints})
				}
			}
		}
	}
	return all
}

// explained asks about a call of a connected Envoy, until that has the newest resources.
func (m *mesh) explained(id, host string, number uint32) (e explanation) {
	m.Helper()
	query := url.Values{"client": {id}, "host": {host}, "port": {fmt.Sprint(number)}}
	await(m, "an explanation", func() error {
		var list []explanation
		if err := m.Isthmuses[0].ask("/api/v1/explain?"+query.Encode(), &list); err != nil {
			return err
		}
		if e = list[0]; e.State == "behind" {
			return errors.New(e.Reason)
		}
		return nil
	})
	return e
}

// meantBy is the service that an explanation is about, with the port; without the port it is
// any of its ports.
func meantBy(all []offered, host string, number uint32, e explanation) (best offered) {
	for _, s := range all {
		if len(e.Records) == 0 || !strings.HasSuffix(e.Records[0].Record, "/"+s.Name) || !strings.EqualFold(s.anyHost(), host) {
			continue
		}
		if best.Name == "" || s.port.Number == number {
			best = s
		}
	}
	return best
}

// asExplained is the call that an application makes, with the endpoints that may answer. An
// edge calls a service at any of its ports.
func (m *mesh) asExplained(c proxy.Config, s offered, number uint32, e explanation) (call, int) {
	to := call{host: s.anyHost(), says: inHTTP}
	switch carries(s.port) {
	case handshakes:
		to.says = inTLS
	case connections:
		to.says, to.host = inLine, ""
	case requests, anything, nothing:
	}
	ip, port, mark := unclaimed(c.IP != ""), uint16(number), netns.Redirected
	switch {
	case c.Workload == "edge":
		ip, mark = netip.MustParseAddr("127.0.0.1"), netns.Direct
		to.says, to.host = map[string]string{"HTTP": inHTTP, "TLS": inTLS, "TCP": inLine}[atTheEdge[uint16(number)]], s.anyHost()
	case c.Listeners:
		ip, mark, to.bare = netip.MustParseAddr("127.0.0.1"), netns.Direct, true
	case e.Address != "":
		ip = netip.MustParseAddr(e.Address)
		for _, instance := range s.instances() { // one that the application chooses has a port of its own
			if instance.Addr() == ip {
				port = instance.Port()
			}
		}
	}
	to.to = netip.AddrPortFrom(ip, port)
	for _, p := range s.Spec.Ports {
		if c.Workload == "edge" && s.Spec.Resolution == "NONE" || c.Workload != "edge" && p.Number != number {
			continue
		}
		s.port = p
		to.want = append(to.want, s.reached(to)...)
	}
	to.want = slices.DeleteFunc(to.want, func(outcome string) bool { return outcome == closed })
	return to, mark
}
