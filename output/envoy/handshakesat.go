package envoy

import (
	"github.com/isthmus-mesh/isthmus/catalog"
)

// handshakesAt counts the services of TLS at each address, by the namespaces that see
// them; the empty one stands for all. Several are kept apart by their hosts, and one has
// all connections.
type handshakesAt map[string]map[string]int

func handshakesByAddress(services []catalog.ServiceDefinition, number uint32, cluster string) handshakesAt {
	counts := handshakesAt{}
	for _, s := range services {
		if port, _ := s.Port(number); trafficOf(port) != tlsOnly {
			continue
		}
		namespaces, all := seenFrom(s)
		if all {
			namespaces = []string{""}
		}
		for address := range addressesAsked(s, cluster) {
			if counts[address] == nil {
				counts[address] = map[string]int{}
			}
			for _, n := range namespaces {
				counts[address][n]++
			}
		}
	}
	return counts
}

// several reports whether somebody may see several services at an address.
func (h handshakesAt) several(address string) bool {
	sum := 0
	for _, n := range h[address] {
		sum += n
	}
	return sum > 1
}

// yieldAlone yields what a service asks for where it is the only one at the address, once
// for each namespace that sees no other there.
func (h handshakesAt) yieldAlone(s catalog.ServiceDefinition, w want, yield func(want) bool) bool {
	counts := h[w.listener]
	namespaces, all := seenFrom(s)
	if all {
		return counts[""] > 1 || yield(w)
	}
	for _, n := range namespaces {
		if w.only = n; counts[""]+counts[n] == 1 && !yield(w) {
			return false
		}
	}
	return true
}
