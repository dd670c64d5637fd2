package policy

import (
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/isthmus-mesh/isthmus/model"
)

// DNS lets sidecars answer lookups of the hosts that they may call. See docs/design/0031 for
// the address of a host.
type DNS struct {
	Port int `json:"port"` // of loopback, where applications ask
	// Upstream are the nameservers for all other names, ADDRESS or ADDRESS:PORT. If it
	// is empty, the nameservers of the Envoy's machine are asked.
	Upstream []string      `json:"upstream"`
	TTL      time.Duration `json:"ttl"` // of answers
	Allot    Allot         `json:"allot"`
}

// Allot decides which names without an address are given one, for their TCP ports.
type Allot struct {
	// Static is for services with endpoints that have addresses.
	Static bool `json:"static"`
	// Hosts are of services with endpoints that have names, HOST or *.SUFFIX. An answer for such a
	// host takes its other ports from the nameservers.
	Hosts []string `json:"hosts"`
}

// On reports whether some names are given an address.
func (a Allot) On() bool { return a.Static || len(a.Hosts) > 0 }

// Allots reports whether a host is one of Allot.Hosts.
func (d *DNS) Allots(host string) bool {
	return model.HostWithin(host, model.ListOf(d.Allot.Hosts...))
}

// SetDefaults sets the defaults.
func (d *DNS) SetDefaults() { *d = DNS{Port: 15053, TTL: LeastTTL, Allot: Allot{Static: true}} }

// LeastTTL is the shortest time to live of an answer. Envoy accepts none below it.
const LeastTTL = 30 * time.Second

const (
	mostTTL        = 24 * time.Hour
	nameserverPort = 53
)

func (d *DNS) validate(f *faults) {
	if d == nil {
		return
	}
	f.within("dns.port", d.Port, 1, highestPort, "a number such as 15053")
	for i, text := range d.Upstream {
		at := fmt.Sprintf("dns.upstream[%d]", i)
		switch server, ok := nameserver(text); {
		case !ok:
			f.add(at, "%q is not the address of a nameserver; give one, such as 10.0.0.2 or 10.0.0.2:53", text)
		case server.Addr().IsLoopback() && int(server.Port()) == d.Port:
			f.add(at, "%q is the address of the Envoy's own DNS listener; give the nameserver for all other names", text)
		}
	}
	for i, host := range d.Allot.Hosts {
		if name := strings.TrimPrefix(host, "*."); name == "" || strings.ContainsAny(name, "*/ :") || strings.HasPrefix(name, ".") {
			f.add(fmt.Sprintf("dns.allot.hosts[%d]", i), "%q is neither a host, such as db.example.com, nor a wildcard, such as *.db.example.com", host)
		}
	}
	if d.TTL < LeastTTL || d.TTL > mostTTL || d.TTL%time.Second != 0 {
		f.add("dns.ttl", "%s is not a number of whole seconds from %s to %s, such as 60s", d.TTL, LeastTTL, mostTTL)
	}
}

// Nameservers lists the valid addresses of Upstream.
func (d *DNS) Nameservers() (list []netip.AddrPort) {
	for _, text := range d.Upstream {
		if server, ok := nameserver(text); ok {
			list = append(list, server)
		}
	}
	return list
}

// nameserver parses the address of a nameserver.
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
