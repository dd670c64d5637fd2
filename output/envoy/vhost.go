package envoy

import (
	"slices"
	"strings"
	"sync"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/output/envoy/names"
	"github.com/isthmus-mesh/isthmus/output/envoy/wire"
)

// portHost is the virtual host of a service at a port. It is the same for all viewers
// but those in the namespace in which the service is known by its bare name, and those
// to whom an older service has one of its domains.
type portHost struct {
	catalog.ServiceDefinition
	number uint32
	in     hostsIn
	// The bare name of a service that is named as Kubernetes names them, and the
	// namespace in which it is known by that; empty if there is none.
	name, home string
	// contested says that another service claims one of its domains, so that viewers
	// differ in who has it.
	contested bool

	usual, own lazily
	mu         sync.Mutex
	rest       map[string]*fragment // of viewers to whom some domains are another's, by those left
}

func newPortHost(s catalog.ServiceDefinition, number uint32, in hostsIn) *portHost {
	h := &portHost{ServiceDefinition: s, number: number, in: in}
	if name, home, ok := shortName(s.Key.Host, in.domain); ok {
		h.name, h.home = name, home
	}
	return h
}

// ownFor reports whether viewers of a namespace know the service by its bare name.
func (h *portHost) ownFor(namespace string) bool { return h.home != "" && h.home == namespace }

// fragmentFor is the virtual host as viewers of a namespace see it if they see no other
// service with one of its domains.
func (h *portHost) fragmentFor(namespace string) *fragment {
	own := h.ownFor(namespace)
	is := &h.usual
	if own {
		is = &h.own
	}
	return is.get(func() *routev3.VirtualHost {
		return h.virtualHost(h.domainsFor(own))
	})
}

// virtualHost is the virtual host with some domains.
func (h *portHost) virtualHost(domains []string) *routev3.VirtualHost {
	p := h.in.settings.OrIstio().For(h.Key.Host, h.Traffic.Affinity)
	return wire.VirtualHost(names.Listener(h.Key.Host, h.number), domains, wire.Target{Cluster: names.Cluster(h.Key.Host, h.number), Policy: p})
}

// fragmentOf is the virtual host with some of its domains.
func (h *portHost) fragmentOf(domains []string) *fragment {
	key := strings.Join(domains, "\n")
	h.mu.Lock()
	defer h.mu.Unlock()
	f := h.rest[key]
	if f == nil {
		if h.rest == nil {
			h.rest = map[string]*fragment{}
		}
		f = newFragment(h.virtualHost(domains))
		h.rest[key] = f
	}
	return f
}

// domainsFor lists the domains of a virtual host, each once whatever its case.
func (h *portHost) domainsFor(own bool) []string {
	var list []string
	var seen map[string]struct{} // of a long list
	isThere := func(domain string) bool {
		if len(list) < fewDomains {
			return slices.ContainsFunc(list, func(d string) bool { return strings.EqualFold(d, domain) })
		}
		if seen == nil {
			seen = make(map[string]struct{}, 2*len(list))
			for _, d := range list {
				seen[strings.ToLower(d)] = struct{}{}
			}
		}
		key := strings.ToLower(domain)
		_, is := seen[key]
		seen[key] = struct{}{}
		return is
	}
	for domain := range domainsOf(h.ServiceDefinition, h.in.domain, h.in.cluster, own) {
		if domain != anyDomain && !isThere(domain) {
			list = append(list, domain)
		}
	}
	return list
}

// fewDomains are as many as are compared faster than looked up.
const fewDomains = 8
