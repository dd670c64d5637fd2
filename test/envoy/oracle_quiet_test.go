package envoy_test

import (
	"net/netip"
	"slices"
	"strings"
)

// together are the services, given from the oldest, that have one listener together.
// Where something is read of connections, a server that speaks first would wait for
// ever; and where one has connections, nothing is read. The older has the listener.
func (o *oracle) together(services []offered, byName, blocks bool) (list []offered) {
	var first, read bool
	taken := map[netip.Prefix]bool{} // the zero prefix is for what nobody has
	for _, s := range services {
		kind, reads := carries(s.port), s.isRead(byName)
		if first && kind != connections && (kind != handshakes || byName) || read && s.speaksFirst() {
			continue
		}
		list = append(list, s)
		read = read || reads
		if kind == requests || kind == handshakes && byName {
			continue
		}
		took := (!blocks || len(s.Spec.Addresses) > 0 || o.hasRest(s)) && s.takes(taken, blocks)
		first = first || took && s.speaksFirst()
	}
	return list
}

// isRead reports whether connections have to be read to find those of a service. Those
// of a host that no handshake can name are not looked for.
func (s offered) isRead(byName bool) bool {
	switch carries(s.port) {
	case requests, anything:
		return true
	case handshakes:
		return byName && !strings.Contains(strings.TrimPrefix(s.host, "*."), "*")
	default:
		return false
	}
}

// speaksFirst reports whether the server of a service may speak before its client.
func (s offered) speaksFirst() bool {
	protocol := strings.ToUpper(s.port.Protocol)
	return slices.Contains([]string{"MYSQL", "MONGO"}, protocol) || protocol == "" && carries(s.port) == connections
}

// takes reports whether a service has connections that no older one has: those to its
// blocks, or all that are left.
func (s offered) takes(taken map[netip.Prefix]bool, blocks bool) (took bool) {
	wanted := []netip.Prefix{{}}
	if _, own := s.addresses(); blocks && len(own) > 0 {
		wanted = own
	}
	for _, b := range wanted {
		took = took || !taken[b]
		taken[b] = true
	}
	return took
}
