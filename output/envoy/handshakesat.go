package envoy

import (
	"slices"

	"github.com/isthmus-mesh/isthmus/catalog"
)

// handshakesAt are the services of TLS at each address. Several are kept apart by their
// hosts, and one has all connections.
type handshakesAt map[string]*handshakesOf

type handshakesOf struct {
	services []catalog.ServiceDefinition
	viewers  []string // namespaces that may see others of them than anybody else
}

func handshakesByAddress(services []catalog.ServiceDefinition, index *catalog.PortServices, cluster string) handshakesAt {
	all := handshakesAt{}
	for _, s := range services {
		if port, _ := s.Port(index.Number); trafficOf(port) != tlsOnly {
			continue
		}
		for address := range addressesAsked(s, cluster) {
			if all[address] == nil {
				all[address] = &handshakesOf{viewers: []string{nobody}}
			}
			here := all[address]
			here.services, here.viewers = append(here.services, s), append(here.viewers, special(index, s.Key.Host)...)
		}
	}
	for _, here := range all {
		slices.Sort(here.viewers)
		here.viewers = slices.Compact(here.viewers)
	}
	return all
}

// several reports whether there are several services at an address, whoever sees them.
func (h handshakesAt) several(address string) bool {
	return h[address] != nil && len(h[address].services) > 1
}

// special lists the namespaces that services of a host are in, or are exported to. All
// others mean the same service by it.
func special(index *catalog.PortServices, host string) (list []string) {
	for s := range index.Between(host, host+"\x00") {
		namespaces, _ := seenFrom(s)
		list = append(list, s.Key.Namespace)
		list = append(list, namespaces...)
	}
	return list
}

// aloneAt lists the namespaces that see a service of TLS at an address and no other there.
// The empty one stands for all that are not special.
func (c contest) aloneAt(s catalog.ServiceDefinition, address string) (list []string) {
	for _, n := range c.secure[address].viewers {
		v := catalog.Viewer{Namespace: n}
		another := func(t catalog.ServiceDefinition) bool { return t.Key != s.Key && c.index.Means(v, t) }
		if !c.index.Means(v, s) || slices.ContainsFunc(c.secure[address].services, another) {
			continue
		}
		if n == nobody {
			n = ""
		}
		list = append(list, n)
	}
	return list
}
