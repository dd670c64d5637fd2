package envoy_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// call is one that a test makes through an Envoy.
type call struct {
	to   netip.AddrPort
	says string
	host string   // of the authority, or in the handshake
	bare bool     // it goes to the Envoy itself, which finds no other address that it was meant for
	want []string // the outcomes, of which it should have one
}

func (c call) String() string { return fmt.Sprintf("%s to %s for %q", c.says, c.to, c.host) }

// What a caller says first.
const (
	inHTTP  = "HTTP/1.1"
	inHTTP2 = "HTTP/2"
	inTLS   = "TLS"
	inLine  = "a line"
)

// abstract is the unix socket on which every endpoint may be.
const abstract = "@everyone"

// The outcomes of calls that nobody answers: the connection is closed, or there is none.
// Others are the endpoint that answers, and the status of a response that is the Envoy's
// own.
const (
	closed  = "closed"
	refused = "refused"
)

// ofWorkload are calls of every service at every address that it may be called at, in
// what it may be spoken to in. Some say something else.
func (o *oracle) ofWorkload() (calls []call) {
	for n, s := range o.all {
		if o.bare && s.port.Number == 15001 {
			continue // it is for Envoys themselves, and nothing is redirected there
		}
		for _, to := range o.reachable(n, s) {
			for _, says := range s.spoken(n) {
				c := call{to: to, says: says, bare: o.bare}
				switch {
				case says == inTLS:
					c.host = s.anyHost()
				case says != inLine:
					c.host = s.anyName(n)
				}
				c.want = o.atSidecar(c)
				if at := c.to.Addr(); at == o.allots(s) && slices.ContainsFunc(c.want, func(to string) bool { return strings.Contains(to, at.String()) }) {
					c.want = []string{closed, "status 503"} // it is passed on to where nobody is
				}
				calls = append(calls, c)
			}
		}
	}
	return calls
}

// reachable are the addresses at which a service is called.
func (o *oracle) reachable(n int, s offered) (list []netip.AddrPort) {
	number := uint16(s.port.Number)
	if o.bare {
		return []netip.AddrPort{netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), number)}
	}
	single, blocks := s.addresses()
	for _, block := range blocks {
		single = append(single, block.Addr().Next().Next())
	}
	for _, ip := range single {
		if ip.Is6() == o.six {
			list = append(list, netip.AddrPortFrom(ip, number))
		}
	}
	if len(list) == 0 || carries(s.port) == requests || n%4 == 0 {
		list = append(list, netip.AddrPortFrom(unclaimed(o.six), number))
	}
	if ip := o.allots(s); ip.IsValid() && carries(s.port) != nothing {
		list = append(list, netip.AddrPortFrom(ip, number))
	}
	for _, to := range s.instances() {
		if to.Addr().Is6() == o.six {
			list = append(list, to)
		}
	}
	return list
}

// instances are the addresses and ports of the endpoints that clients may choose among.
func (s offered) instances() (list []netip.AddrPort) {
	for _, e := range s.endpoints {
		at, _ := e.at(s.port)
		if ip, err := netip.ParseAddr(at.Address); err == nil && s.Spec.Resolution == "STATIC" {
			list = append(list, netip.AddrPortFrom(ip, uint16(at.Port)))
		}
	}
	return list
}

// spoken is what is said to a service first.
func (s offered) spoken(n int) []string {
	request := []string{inHTTP, inHTTP2}[n%2]
	if n%5 == 0 {
		return []string{request, inTLS, inLine}
	}
	switch carries(s.port) {
	case requests, nothing:
		return []string{request}
	case handshakes:
		return []string{inTLS}
	case connections:
		return []string{inLine}
	default:
		return []string{inLine, request}
	}
}

// anyHost is the host, or one that is meant by it.
func (s offered) anyHost() string { return strings.Replace(s.host, "*", "any", 1) }

// anyName is an authority by which a service may be called.
func (s offered) anyName(n int) string {
	if strings.Contains(s.host, "*") {
		return s.anyHost()
	}
	names := s.names()
	return names[n%len(names)]
}

// fromElsewhere are calls of every host at ports of the edge.
func (o *oracle) fromElsewhere(ports map[uint16]string) (calls []call) {
	for number, protocol := range ports {
		to := netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), number)
		if protocol == "TCP" {
			calls = append(calls, call{to: to, says: inLine})
			continue
		}
		for n, host := range o.hosts() {
			c := call{to: to, says: inTLS, host: host}
			switch {
			case protocol != "TLS" && n%2 == 0:
				c.says = inHTTP2
			case protocol != "TLS":
				c.says, c.host = inHTTP, strings.ToUpper(c.host)+[]string{"", ".", ":8080"}[n%3]
			}
			calls = append(calls, c)
		}
	}
	for n, c := range calls {
		calls[n].want = o.atEdge(c, ports[c.to.Port()])
	}
	return calls
}

// hosts are those of all services, each once, or some that are meant by them.
func (o *oracle) hosts() (list []string) {
	for _, s := range o.all {
		list = append(list, s.anyHost())
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// lookups are hosts that have addresses in the family of the Envoy, with those: what a
// sidecar answers that is asked for names. A host that another service has as a name is
// left out, and so are wildcards.
// reaches reports whether calls to an address reach a service at each of its ports, and at one at
// least that needs an address.
func (o *oracle) reaches(s offered, ip netip.Addr) (needs bool) {
	for _, s.port = range s.Spec.Ports {
		kind := carries(s.port)
		if kind == nothing || s.port.Number == 15001 {
			continue
		}
		c := call{to: netip.AddrPortFrom(ip, uint16(s.port.Number)), says: inLine}
		switch kind {
		case requests:
			c.says, c.host = inHTTP, s.host
		case handshakes:
			c.says, c.host = inTLS, s.host
		default:
			needs = true
		}
		if got := o.atSidecar(c); !slices.Equal(got, s.reached(c)) && !slices.Equal(got, routedTo(s.reached(c))) {
			return false
		}
	}
	return needs
}

func (o *oracle) lookups() map[string][]string {
	want := map[string][]string{}
	all := byName(o.all)
	for _, s := range all {
		owner, found := authorized(s.host, all, offered.names)
		if !found || owner.host != s.host || strings.Contains(s.host, "*") {
			continue
		}
		var own []string
		single, _ := s.addresses()
		for _, ip := range single {
			if ip.Is6() == o.six {
				own = append(own, ip.String())
			}
		}
		slices.Sort(own)
		if own = slices.Compact(own); len(own) == 0 && o.allots(s).IsValid() && o.reaches(s, o.allots(s)) {
			own = []string{o.allots(s).String()}
		}
		if len(own) > 0 {
			want[s.host] = own
		}
	}
	return want
}
