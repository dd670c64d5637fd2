package envoy

import (
	"fmt"
	"iter"
	"net/netip"
	"time"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/push"
)

// DNS has sidecars answer lookups of the hosts that they may call. docs/design/0031 says
// which address a host is given.
type DNS struct {
	Port int `json:"port"` // of loopback, where applications ask
	// Upstream are the nameservers for all other names, ADDRESS or ADDRESS:PORT. If it
	// is empty they are those of the Envoy's machine.
	Upstream []string      `json:"upstream"`
	TTL      time.Duration `json:"ttl"` // of answers
}

// SetDefaults gives it what it has if nothing is said.
func (d *DNS) SetDefaults() { *d = DNS{Port: 15053, TTL: leastTTL} }

// The times that an answer may be kept. Envoy takes none that is shorter.
const (
	leastTTL = 30 * time.Second
	mostTTL  = 24 * time.Hour
)

const nameserverPort = 53

func (d *DNS) validate(f *faults) {
	if d == nil {
		return
	}
	f.within("dns.port", d.Port, 1, highestPort, "such as 15053")
	for i, text := range d.Upstream {
		at := fmt.Sprintf("dns.upstream[%d]", i)
		switch server, ok := nameserver(text); {
		case !ok:
			f.add(at, "%q is no address of a nameserver; give such as 10.0.0.2 or 10.0.0.2:53", text)
		case server.Addr().IsLoopback() && int(server.Port()) == d.Port:
			f.add(at, "%q is where the Envoy itself listens; give the nameserver that knows all other names", text)
		}
	}
	if d.TTL < leastTTL || d.TTL > mostTTL || d.TTL%time.Second != 0 {
		f.add("dns.ttl", "%s is not whole seconds from %s to %s; give such as 60s", d.TTL, leastTTL, mostTTL)
	}
}

// nameserver reads the address of one.
func nameserver(text string) (netip.AddrPort, bool) {
	at, err := netip.ParseAddrPort(text)
	if err != nil {
		ip, err := netip.ParseAddr(text)
		if err != nil {
			return netip.AddrPort{}, false
		}
		at = netip.AddrPortFrom(ip, nameserverPort)
	}
	return at, at.Port() != 0 && !at.Addr().IsUnspecified() && at.Addr().Zone() == ""
}

// dnsListenerName is the name of the listener that answers lookups.
const dnsListenerName = "dns"

// sharedByAll are the listeners and routes that any service may be part of.
func (s *settings) sharedByAll() []sharedName {
	names := s.edgeNames()
	if s.dns != nil {
		names = append(names, sharedName{ListenerType, dnsListenerName})
	}
	return names
}

// findDNSListener returns the listener that answers lookups.
func findDNSListener(w *World, v View) (push.Subject, bool) {
	if w.settings.dns == nil || w.definitions == nil || v.proxy.unprivileged && w.settings.dns.Port < push.FirstUnprivilegedPort {
		return nil, false
	}
	v.single = false // it says nothing of routes
	return dnsListener{proxySlot{ListenerType, dnsListenerName, v}, w.definitions}, true
}

// dnsListener answers lookups of the hosts that a view sees.
type dnsListener struct {
	proxySlot
	services *definitions
}

// Refers implements [push.Referrer].
func (dnsListener) Refers(string) iter.Seq[string] { return nothing }

// Encode implements [push.Subject].
func (l dnsListener) Encode() push.Encoded {
	hosts := &pieces{}
	hosts.add(l.table())
	return l.encode(hosts)
}

// table is what is answered, by host.
func (l dnsListener) table() *fragments {
	a := answering{view: l.view, ports: map[uint32]*catalog.PortServices{}, reaches: map[uint32]arrivals{}}
	for index := range l.services.byPort {
		a.ports[index.Number] = index
	}
	all, table := l.services.names, &fragments{}
	for h := range all.named {
		if !a.sees(h.ServiceDefinition) {
			continue
		}
		domains := h.domainsFor(h.ownFor(l.view.Namespace))
		if h.contested {
			domains = h.wonBy(all.claims, l.view.Namespace, a.sees)
		}
		if addresses, names := a.answers(h, domains); len(names) > 0 {
			table.add(h.fragmentOf(names, addresses, l.view.settings.dns.TTL))
		}
	}
	return table
}
