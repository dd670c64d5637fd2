package envoy_test

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// oracle says who should answer a call through an Envoy of the namespace shop. It follows
// docs/reference/envoy.md and knows nothing of listeners and routes but what that says.
type oracle struct {
	allow bool // what belongs to no service goes where it was going
	six   bool // the Envoy has IPv6 addresses alone
	bare  bool // nothing is redirected to it: it is called at loopback
	names bool // it answers lookups
	old   bool // who has no address has the connections to addresses of nobody
	ports map[uint32][]offered
	all   []offered // the oldest first, then by host
}

// offered is a port of a service, by one of its hosts.
type offered struct {
	service
	host      string
	port      port
	endpoints []endpoint
}

// newOracle takes what the namespace may see.
func newOracle(objects []object, allow, six bool) *oracle {
	o := &oracle{allow: allow, six: six, ports: map[uint32][]offered{}}
	own := map[string]bool{}
	var seen []service
	for _, o := range objects {
		if s, ok := o.(service); ok && s.visible() {
			seen = append(seen, s)
		}
	}
	for _, s := range seen {
		for _, host := range s.Spec.Hosts {
			own[strings.ToLower(host)] = own[strings.ToLower(host)] || cmp.Or(s.Namespace, shop) == shop
		}
	}
	for _, s := range seen {
		endpoints := s.endpoints(objects)
		for _, host := range s.Spec.Hosts {
			host, foreign := strings.ToLower(host), cmp.Or(s.Namespace, shop) != shop
			if foreign && (own[host] || strings.HasSuffix(host, "."+shop+".svc.cluster.local")) {
				continue // which is another's, or a name of the namespace shop
			}
			for _, p := range s.Spec.Ports {
				o.all = append(o.all, offered{s, host, p, endpoints})
			}
		}
	}
	slices.SortFunc(o.all, func(a, b offered) int {
		// Times that files say decide nothing.
		return cmp.Or(trueFirst(a.namespace() == shop, b.namespace() == shop), cmp.Compare(a.namespace(), b.namespace()),
			cmp.Compare(a.host, b.host), cmp.Compare(a.port.Number, b.port.Number))
	})
	for _, s := range o.all {
		o.ports[s.port.Number] = append(o.ports[s.port.Number], s)
	}
	return o
}

// What a port carries.
type content int

const (
	nothing content = iota // for which Envoys listen
	requests
	handshakes
	connections
	anything
)

func carries(p port) content {
	switch strings.ToUpper(p.Protocol) {
	case "HTTP", "HTTP2", "GRPC", "GRPC-WEB", "HTTP_PROXY":
		return requests
	case "HTTPS", "TLS":
		return handshakes
	case "TCP", "MONGO", "REDIS", "MYSQL":
		return connections
	case "UDP":
		return nothing
	}
	if slices.Contains([]uint32{25, 53, 3306, 27017}, p.Number) {
		return connections
	}
	return anything
}

// addresses are the single addresses of a service, and blocks the others.
func (s offered) addresses() (single []netip.Addr, blocks []netip.Prefix) {
	for _, text := range s.Spec.Addresses {
		if ip, err := netip.ParseAddr(text); err == nil {
			single = append(single, ip)
		} else if block := netip.MustParsePrefix(text).Masked(); block.IsSingleIP() {
			single = append(single, block.Addr())
		} else {
			blocks = append(blocks, block)
		}
	}
	return single, blocks
}

func (s offered) at(address netip.Addr) bool {
	single, _ := s.addresses()
	return slices.Contains(single, address)
}

// atSidecar is who answers a call of the workload.
func (o *oracle) atSidecar(c call) []string {
	if c.to.Port() == 15001 && !o.bare {
		return []string{closed}
	}
	services := o.ports[uint32(c.to.Port())]
	if o.bare && len(only(services, requests, handshakes, connections, anything)) == 0 {
		return []string{refused}
	}
	if o.bare {
		return o.byPort(c, services)
	}
	if alone := o.at(services, c.to.Addr()); len(alone) > 0 {
		return o.byAddress(c, alone)
	}
	if o.isInstance(c.to) {
		return []string{c.to.String()}
	}
	return o.byPort(c, services)
}

// at are the services that are called at an address of their own, unless its owner takes
// requests. These are routed by the host that they name, and nothing else has the address.
func (o *oracle) at(services []offered, address netip.Addr) (list []offered) {
	given := map[string]bool{}
	for _, s := range byName(services) { // of one name in several spellings the owner has its address
		if name := strings.ToLower(s.host); o.allots(s) == address && carries(s.port) != requests && carries(s.port) != nothing && !given[name] {
			given[name] = true
			list = append(list, s)
		}
	}
	for _, s := range services {
		if kind := carries(s.port); kind != nothing && s.at(address) {
			list = append(list, s)
		}
	}
	if len(list) > 0 && carries(list[0].port) == requests {
		return nil
	}
	return only(list, handshakes, connections, anything)
}

// hasRest reports whether a service without addresses has the connections to those of nobody.
func (o *oracle) hasRest(s offered) bool { return o.bare || o.old || s.Spec.Resolution == "NONE" }

// isInstance reports whether an address and port are those of an endpoint at which Envoys listen:
// the service has no address, and either nothing else lets a connection there pass, or its server
// may speak first. Where the first service with the endpoint takes requests there is no listener.
func (o *oracle) isInstance(to netip.AddrPort) bool {
	if o.bare {
		return false
	}
	var first *offered
	for _, s := range o.all {
		kind := carries(s.port)
		if kind == nothing || s.Spec.Resolution != "STATIC" || len(s.Spec.Addresses) > 0 || kind != requests && (o.old || o.allow && !s.speaksFirst()) {
			continue
		}
		here := slices.ContainsFunc(s.endpoints, func(e endpoint) bool {
			at, _ := e.at(s.port)
			ip, err := netip.ParseAddr(at.Address)
			return err == nil && netip.AddrPortFrom(ip, uint16(at.Port)) == to
		})
		if here && (first == nil || s.namespace() == first.namespace() && len(s.host) < len(first.host)) {
			first = &s
		}
	}
	return first != nil && carries(first.port) != requests
}

// allots returns the address that a name is given: of 241.0.0.0/8 or 2001:2:0:f0f1::/64, by the
// SHA-256 of the name in lower case.
func (o *oracle) allots(s offered) (address netip.Addr) {
	needs := slices.ContainsFunc(s.Spec.Ports, func(p port) bool { return carries(p) == connections || carries(p) == anything })
	if !o.names || o.bare || !needs || s.Spec.Resolution != "STATIC" || len(s.Spec.Addresses) > 0 || strings.Contains(s.host, "*") {
		return address
	}
	sum := sha256.Sum256([]byte(strings.ToLower(s.host)))
	if !o.six {
		return netip.AddrFrom4([4]byte{241, sum[5], sum[6], sum[7]})
	}
	of := netip.MustParseAddr("2001:2:0:f0f1::").As16()
	copy(of[8:], sum[:8])
	return netip.AddrFrom16(of)
}

// byAddress is who answers at such a listener.
func (o *oracle) byAddress(c call, services []offered) []string {
	several := len(only(services, handshakes)) > 1 // then they are kept apart by name
	services = o.together(services, several, false)
	if c.says == inHTTP || c.says == inHTTP2 {
		if first := only(services, anything); len(first) > 0 {
			return routedTo(first[0].reached(c)) // whatever host they name
		}
	}
	if several {
		if s, found := named(c.host, only(services, handshakes)); found && c.says == inTLS {
			return s.reached(c)
		}
		services = only(services, connections, anything)
	}
	return o.first(c, services)
}

// byPort is who answers at the listener that the services of a port share.
func (o *oracle) byPort(c call, services []offered) []string {
	var here []offered
	var block netip.Prefix
	var within *offered
	for _, s := range services {
		single, blocks := s.addresses()
		kind := carries(s.port)
		if !o.bare && kind != requests && len(single) > 0 && len(blocks) == 0 || kind == nothing {
			continue
		}
		if kind == connections && len(single)+len(blocks) == 0 && !o.hasRest(s) {
			continue
		}
		here = append(here, s)
	}
	here = o.together(here, true, !o.bare)
	for _, s := range only(here, connections, anything) {
		_, blocks := s.addresses()
		if o.bare { // a connection does not say which address it was meant for
			blocks = nil
		}
		for _, b := range blocks {
			if b.Bits() > 0 && b.Contains(c.to.Addr()) && (within == nil || b.Bits() > block.Bits()) {
				block, within = b, &s
			}
		}
	}
	if (c.says == inHTTP || c.says == inHTTP2) && len(only(here, requests, anything)) > 0 {
		return o.routed(c, only(services, requests, anything), within)
	}
	if s, found := named(c.host, only(here, handshakes)); found && c.says == inTLS {
		return s.reached(c)
	}
	if within != nil {
		return within.reached(c)
	}
	here = slices.DeleteFunc(only(here, connections, anything), func(s offered) bool {
		single, blocks := s.addresses()
		all := slices.ContainsFunc(blocks, func(b netip.Prefix) bool { return b.Bits() == 0 })
		return len(blocks)+len(single) > 0 && !all && !o.bare || len(blocks)+len(single) == 0 && !o.hasRest(s)
	})
	return o.first(c, here)
}

func only(services []offered, kinds ...content) (list []offered) {
	for _, s := range services {
		if slices.Contains(kinds, carries(s.port)) {
			list = append(list, s)
		}
	}
	return list
}

func (o *oracle) first(c call, services []offered) []string {
	switch {
	case len(services) > 0:
		return services[0].reached(c)
	case o.allow && !o.bare:
		return []string{c.to.String()}
	default:
		return []string{closed}
	}
}

// routed is who answers a request that is routed by its authority. A name that names the
// namespace of its service goes first; an address does not say whose it is. A request to a
// block of addresses that names no service is that of the block.
func (o *oracle) routed(c call, services []offered, block *offered) []string {
	if _, err := netip.ParseAddr(strings.Trim(c.host, "[]")); err != nil {
		services = byName(services)
	}
	if s, found := authorized(c.host, services, offered.names); found {
		return routedTo(s.reached(c))
	}
	switch {
	case block != nil:
		return routedTo(block.reached(c))
	case o.allow && o.bare:
		return []string{"status 503"}
	case o.allow:
		return []string{c.to.String()}
	default:
		return []string{"status 502"}
	}
}

// byName puts services in the order in which they have names.
func byName(services []offered) []offered {
	services = slices.Clone(services)
	slices.SortStableFunc(services, func(a, b offered) int {
		return cmp.Or(trueFirst(a.namespace() == shop, b.namespace() == shop), trueFirst(a.named(), b.named()))
	})
	return services
}

// named reports whether a host names the namespace of its service.
func (s offered) named() bool {
	return strings.HasSuffix(s.host, "."+s.namespace()+".svc.cluster.local")
}

func trueFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	default:
		return 1
	}
}

func routedTo(outcomes []string) []string {
	if slices.Equal(outcomes, []string{closed}) {
		return []string{"status 503"}
	}
	return outcomes
}

// names are the authorities of a service in the mesh.
func (s offered) names() []string {
	list := []string{s.host, s.host + "."}
	if rest, ok := strings.CutSuffix(s.host, ".svc.cluster.local"); ok {
		name, namespace, _ := strings.Cut(rest, ".")
		list = append(list, rest, rest+".svc")
		if namespace == shop {
			list = append(list, name)
		}
	}
	single, _ := s.addresses()
	for _, ip := range single {
		if ip.Is6() {
			list = append(list, "["+ip.String()+"]")
		} else {
			list = append(list, ip.String())
		}
	}
	return list
}

// authorized is the service that an authority means: by its very name, else by the
// longest wildcard. Of several the oldest has a name.
func authorized(authority string, services []offered, names func(offered) []string) (best offered, found bool) {
	name := strings.ToLower(authority)
	if colon := strings.LastIndexByte(name, ':'); colon > strings.LastIndexByte(name, ']') {
		name = name[:colon]
	}
	longest := 0
	for _, s := range services {
		for _, own := range names(s) {
			own = strings.ToLower(own)
			suffix, wild := strings.CutPrefix(own, "*")
			switch {
			case own == name && longest < 1000:
				best, found, longest = s, true, 1000
			case wild && strings.HasSuffix(name, suffix) && len(name) > len(suffix) && len(suffix) > longest:
				best, found, longest = s, true, len(suffix)
			}
		}
	}
	return best, found
}

// named is the service that a handshake means. Only whole labels can be wildcards there.
func named(host string, services []offered) (offered, bool) {
	return authorized(host, services, func(s offered) []string {
		if name := strings.TrimSuffix(s.host, "."); !strings.Contains(strings.TrimPrefix(name, "*."), "*") {
			return []string{name}
		}
		return nil
	})
}

// reached are the endpoints, any of which may answer.
func (s offered) reached(c call) (outcomes []string) {
	if s.Spec.Resolution == "NONE" && c.bare {
		return []string{closed} // nothing says where it was going
	}
	if s.Spec.Resolution == "NONE" {
		return []string{netip.AddrPortFrom(c.to.Addr(), uint16(cmp.Or(s.port.TargetPort, s.port.Number))).String()}
	}
	endpoints := s.endpoints
	if len(endpoints) == 0 && s.Spec.Resolution != "STATIC" {
		endpoints = []endpoint{{Address: s.host}}
	}
	for _, e := range endpoints {
		at, _ := e.at(s.port)
		ip, err := netip.ParseAddr(at.Address)
		switch {
		case at.Address == abstract:
			outcomes = append(outcomes, abstract)
		case err != nil:
			outcomes = append(outcomes, fmt.Sprint("127.0.0.1:", at.Port), fmt.Sprint("[::1]:", at.Port))
		default:
			outcomes = append(outcomes, netip.AddrPortFrom(ip, uint16(at.Port)).String())
		}
	}
	if len(outcomes) == 0 {
		return []string{closed}
	}
	return outcomes
}

// atEdge is who answers a call from elsewhere, at a port that takes some protocol.
func (o *oracle) atEdge(c call, protocol string) []string {
	if protocol == "TCP" {
		if s, found := o.edgeTCP(uint32(c.to.Port())); found {
			return s.reached(c)
		}
		return []string{closed}
	}
	kinds := map[string][]content{"HTTP": {requests, anything}, "TLS": {handshakes}}[protocol]
	services := o.outside(uint32(c.to.Port()), kinds)
	if protocol == "TLS" {
		if s, found := named(c.host, services); found {
			return s.reached(c)
		}
		return []string{closed}
	}
	hosts := func(s offered) []string { return []string{s.host, strings.TrimSuffix(s.host, ".") + "."} }
	if s, found := authorized(c.host, services, hosts); found {
		return routedTo(s.reached(c))
	}
	return []string{"status 404"}
}

// exposed is the one host behind a TCP port of the edge: that of the oldest service which
// may be there.
func (o *oracle) exposed(number uint32) string {
	if s, found := o.edgeTCP(number); found {
		return s.host
	}
	return "none.example"
}

func (o *oracle) edgeTCP(number uint32) (offered, bool) {
	for _, s := range only(o.ports[number], connections, anything) {
		if s.Spec.Resolution != "NONE" && !strings.HasPrefix(s.host, "*") {
			return s, true
		}
	}
	return offered{}, false
}

// outside are the services that are called from elsewhere, each at one of its ports: that
// of the same number, else the lowest of a protocol, else the lowest.
func (o *oracle) outside(number uint32, kinds []content) (list []offered) {
	best := map[string]int{}
	for _, s := range o.all {
		if s.Spec.Resolution == "NONE" || !slices.Contains(kinds, carries(s.port)) {
			continue
		}
		key := s.host + "/" + s.Namespace
		if i, other := best[key]; other {
			if rank(s.port, number) < rank(list[i].port, number) {
				list[i] = s
			}
			continue
		}
		best[key] = len(list)
		list = append(list, s)
	}
	return list
}

func rank(p port, number uint32) int {
	switch {
	case p.Number == number:
		return 0
	case carries(p) != anything:
		return 1
	default:
		return 2
	}
}
