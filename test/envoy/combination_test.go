package envoy_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// combinations draws services of every combination of protocol, port, address,
// resolution and endpoints. No two of their endpoints are the same, so that who answers
// says which service was reached.
type combinations struct {
	*rand.Rand
	made      int // services
	endpoints int
	addresses int
}

// inSubset is the label of endpoints that are in the subset of their service.
const inSubset = "half"

// draw draws a service that Isthmus takes, and the workloads that it selects, if it does.
func (c *combinations) draw() []object {
	c.made++
	s := service{Name: fmt.Sprintf("s-%d", c.made), Created: time.Date(2026, 1, 1, 0, 0, c.IntN(100_000), 0, time.UTC)}
	s.Spec.Resolution = resolutions[c.IntN(len(resolutions))]
	s.Spec.Location = []string{"", "MESH_EXTERNAL", "MESH_INTERNAL"}[c.IntN(3)]
	s.Spec.Ports = c.ports()
	s.Spec.Hosts = c.hosts(s.Spec)
	s.Spec.Addresses = c.ownAddresses(s.Spec.Resolution)
	s.Spec.Endpoints = c.endpointsOf(s.Spec)
	if c.oneOf(10) {
		s.Namespace = "elsewhere"
	}
	if s.Namespace != "" || c.oneOf(8) {
		s.Spec.ExportTo = [][]string{nil, {"."}, {"*"}, {shop}, {"other"}, {"~"}}[c.IntN(6)]
	}
	workloads := c.selected(&s)
	return append(workloads, s)
}

// selected has a service select workloads in place of some of its endpoints. Others that
// have its label are of another namespace, or have not all of its labels.
func (c *combinations) selected(s *service) (workloads []object) {
	if s.Spec.Resolution != "STATIC" || !c.oneOf(5) || slices.ContainsFunc(s.Spec.Endpoints, func(e endpoint) bool { return e.Address == "unix://"+abstract }) {
		return nil
	}
	labels := map[string]string{"app": s.Name, "version": "v1"}
	for n, e := range append(s.Spec.Endpoints, c.anyEndpoint(s.Spec), c.anyEndpoint(s.Spec)) {
		w := workload{Name: fmt.Sprintf("%s-%d", s.Name, n), Namespace: s.Namespace, Spec: e}
		w.Spec.Labels = maps.Clone(labels)
		maps.Copy(w.Spec.Labels, e.Labels)
		switch n - len(s.Spec.Endpoints) {
		case 0:
			w.Namespace = "nowhere"
		case 1:
			w.Spec.Labels["version"] = "v2"
		}
		workloads = append(workloads, w)
	}
	s.Spec.Endpoints, s.Spec.Selector = nil, &selector{Labels: labels}
	return workloads
}

func (c *combinations) oneOf(n int) bool { return c.IntN(n) == 0 }

// ports draws numbers that many services have, and some that few have: 15001 is the
// sidecar's own, servers at 3306 speak first, and the edge listens at some.
func (c *combinations) ports() (ports []port) {
	for n := range 1 + c.IntN(3) {
		p := port{Name: fmt.Sprintf("p%d", n), Protocol: protocols[c.IntN(len(protocols))]}
		if p.Number = 2000 + c.Uint32N(400); c.oneOf(2) {
			p.Number = []uint32{80, 443, 8080, 8443, 9000, 3306, 15001, 7001}[c.IntN(8)]
		}
		if c.oneOf(3) {
			p.TargetPort = 3000 + c.Uint32N(5000)
		}
		ports = append(ports, p)
	}
	return distinct(ports)
}

// hosts draws names of the service alone, and some that others claim as well: in another
// case, or because their short form is the name of another.
func (c *combinations) hosts(s serviceSpec) (hosts []string) {
	many := 1
	if !slices.ContainsFunc(s.Ports, func(p port) bool { return carries(p) != requests && carries(p) != handshakes }) || s.Resolution == "NONE" {
		many += c.IntN(3) // else they could not be told apart
	}
	for n := range many {
		name := fmt.Sprintf("s-%d-%d", c.made, n)
		switch c.IntN(12) {
		case 0, 1:
			hosts = append(hosts, name+".shop.svc.cluster.local")
		case 2:
			hosts = append(hosts, fmt.Sprintf("s-%d-0.shop", 1+c.IntN(c.made)))
		case 3:
			hosts = append(hosts, fmt.Sprintf("S-%d-0.localhost", 1+c.IntN(c.made)))
		case 4:
			hosts = append(hosts, "*."+name+".localhost")
		case 5:
			hosts = append(hosts, fmt.Sprintf("a.s-%d-0.localhost", 1+c.IntN(c.made)))
		case 6:
			hosts = append(hosts, "*-"+name+".localhost")
		default:
			hosts = append(hosts, name+".localhost")
		}
	}
	slices.Sort(hosts)
	return slices.Compact(hosts)
}

// ownAddresses draws none, one or several, of either family, and blocks. Some are those
// of other services as well.
func (c *combinations) ownAddresses(resolution string) (list []string) {
	for range []int{0, 0, 1, 1, 1, 2, 3}[c.IntN(7)] {
		c.addresses++
		shared := c.oneOf(4)
		n := c.addresses
		if shared {
			n = c.IntN(8)
		}
		blocks := resolution == "STATIC" || resolution == "NONE" // else they may be none
		switch kind := c.IntN(6); {
		case kind == 0 && blocks && shared:
			list = append(list, []string{"127.140.0.0/16", "127.140.3.0/24", "127.140.3.64/26", "2001:db8:2::/64", "2001:db8:2:0:8000::/65"}[c.IntN(5)])
		case kind == 0 && blocks:
			list = append(list, fmt.Sprintf("127.150.%d.%d/28", n/16, n%16*16))
		case kind == 1 && blocks:
			list = append(list, fmt.Sprintf("127.130.%d.%d/32", n/256, n%256))
		case kind == 2:
			list = append(list, fmt.Sprintf("2001:db8:1::%x", n+1))
		default:
			list = append(list, fmt.Sprintf("127.130.%d.%d", n/256, n%256))
		}
	}
	return list
}

// endpointsOf draws none, one or several, at ports of their own, of either family, or a
// unix socket.
func (c *combinations) endpointsOf(s serviceSpec) (list []endpoint) {
	many := c.IntN(4)
	switch {
	case s.Resolution == "NONE":
		return nil
	case s.Resolution == "STATIC" && len(s.Ports) == 1 && c.oneOf(20):
		return []endpoint{{Address: "unix://" + abstract}}
	case s.Resolution == "DNS_ROUND_ROBIN":
		many = min(many, 1)
	}
	// Without endpoints, the host itself is resolved.
	if s.Resolution != "STATIC" && slices.ContainsFunc(s.Hosts, func(h string) bool { return strings.Contains(h, "*") || !strings.HasSuffix(h, ".localhost") }) {
		many = max(many, 1)
	}
	for range many {
		list = append(list, c.anyEndpoint(s))
	}
	return list
}

func (c *combinations) anyEndpoint(s serviceSpec) endpoint {
	c.endpoints++
	e := endpoint{Address: fmt.Sprintf("10.%d.%d.%d", 160+c.endpoints>>16, c.endpoints>>8&255, c.endpoints&255)}
	switch {
	case s.Resolution == "STATIC" && c.oneOf(8):
		e.Address = fmt.Sprintf("2001:db8:e::%x", c.endpoints)
	case s.Resolution != "STATIC" && c.oneOf(2): // whose ports alone tell it from others
		e.Address, e.Ports = fmt.Sprintf("e-%d.localhost", c.endpoints), map[string]uint32{}
		for n, p := range s.Ports {
			e.Ports[p.Name] = uint32(10_000 + 3*c.endpoints%9_900 + n)
		}
	case c.oneOf(3):
		e.Ports = map[string]uint32{s.Ports[0].Name: 9000 + c.Uint32N(100)}
	}
	if c.oneOf(4) {
		e.Locality, e.Weight = fmt.Sprintf("r%d/z", c.IntN(2)), 1+c.Uint32N(3)
	}
	if c.oneOf(2) {
		e.Labels = map[string]string{inSubset: "yes"}
	}
	return e
}

// unclaimed is an address that no service has.
func unclaimed(six bool) netip.Addr {
	if six {
		return netip.MustParseAddr("2001:db8:ffff::1")
	}
	return netip.MustParseAddr("127.200.0.1")
}
