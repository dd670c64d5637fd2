package vhost

import (
	"iter"
	"slices"
	"strings"
	"sync"
	"unique"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/output/envoy/names"
	"github.com/isthmus-mesh/isthmus/output/envoy/wire"
	"github.com/isthmus-mesh/isthmus/push/world"
)

// Host is the virtual host of a service at a port. It is the same for all viewers
// but those in the namespace in which the service is known by its bare name, and those
// to whom an older service has one of its domains.
type Host struct {
	// The fields that a route configuration is written from are together in memory.
	usual Fragment // of viewers of other namespaces; empty until it is asked for
	own   *Fragment
	home  unique.Handle[string]

	// InConflict says that another service is a candidate for one of the domains, so that
	// the owner depends on the viewer.
	InConflict bool
	// selective says that it depends on the viewer whether the host means the service:
	// the service is not exported to all, or others have its host.
	selective bool
	unrouted  bool // there is no virtual host, but the service may hide others of its host

	catalog.ServiceDefinition
	Number uint32
	In     Key
	name   string // the bare name of a service that is named as Kubernetes names them

	mu   sync.Mutex           // guards the fragments while they are made
	rest map[string]*Fragment // of viewers to whom some domains are another's, by those left
}

// NewHost makes the virtual host of a service at a port.
func NewHost(s catalog.ServiceDefinition, number uint32, in Key) *Host {
	name, home, ok := names.ShortName(s.Key.Host, in.Domain)
	if !ok {
		name, home = "", ""
	}
	return &Host{ServiceDefinition: s, Number: number, In: in, name: name, home: unique.Make(home)}
}

// Home is the namespace in which the service is known by its bare name; empty if it has none.
func (h *Host) Home() string { return h.home.Value() }

// OwnFor reports whether viewers of a namespace know the service by its bare name.
func (h *Host) OwnFor(namespace string) bool { return namespace != "" && h.Home() == namespace }

// plain reports whether all viewers without a scope see the host with all of its domains.
func (h *Host) plain() bool { return !h.selective && !h.InConflict }

// fragmentFor is the virtual host as viewers of a namespace see it if they see no other
// service with one of its domains.
func (h *Host) fragmentFor(namespace string) *Fragment {
	own := h.OwnFor(namespace)
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case own && h.own == nil:
		h.own = NewFragment(h.VirtualHost(h.DomainsFor(true)))
	case !own && h.usual.text == nil:
		h.usual = *NewFragment(h.VirtualHost(h.DomainsFor(false)))
	}
	if own {
		return h.own
	}
	return &h.usual
}

// VirtualHost is the virtual host with some domains.
func (h *Host) VirtualHost(domains []string) *routev3.VirtualHost {
	p := h.In.Settings.OrIstio().For(h.Key.Host, h.Traffic.Affinity)
	return wire.VirtualHost(names.Listener(h.Key.Host, h.Number), domains, wire.Target{Cluster: names.Cluster(h.Key.Host, h.Number), Policy: p})
}

// FragmentOf is the virtual host with some of its domains.
func (h *Host) FragmentOf(domains []string) *Fragment {
	key := strings.Join(domains, "\n")
	h.mu.Lock()
	defer h.mu.Unlock()
	f := h.rest[key]
	if f == nil {
		if h.rest == nil {
			h.rest = map[string]*Fragment{}
		}
		f = NewFragment(h.VirtualHost(domains))
		h.rest[key] = f
	}
	return f
}

// DomainsFor lists the domains of a virtual host, each once.
func (h *Host) DomainsFor(own bool) []string {
	var list []string
	var seen map[string]struct{} // of a long list
	isThere := func(domain string) bool {
		if len(list) < fewDomains {
			return slices.Contains(list, domain)
		}
		if seen == nil {
			seen = make(map[string]struct{}, 2*len(list))
			for _, d := range list {
				seen[d] = struct{}{}
			}
		}
		_, is := seen[domain]
		seen[domain] = struct{}{}
		return is
	}
	for domain := range DomainsOf(h.ServiceDefinition, h.In.Domain, h.In.Cluster, own) {
		if domain != AnyDomain && !isThere(domain) {
			list = append(list, domain)
		}
	}
	return list
}

// fewDomains are as many as are compared faster than looked up.
const fewDomains = 8

// VersionOf returns the version of an encoded resource.
func VersionOf(body []byte) world.Version { return world.VersionOf([]byte(wire.Translator), body) }

// LongestHost is that of a host in DNS. Nothing longer is worth an empty listener.
const LongestHost = 253

// AnyDomain matches requests that name no other domain.
const AnyDomain = "*"

// DomainsOf yields the authorities by which viewers may call a service; own are those of
// its own namespace, and its addresses are those in a cluster.
func DomainsOf(s catalog.ServiceDefinition, domain, cluster string, own bool) iter.Seq[string] {
	return func(yield func(string) bool) {
		host := s.Key.Host
		if !yield(host) || !yield(host+".") {
			return
		}
		for short := range names.ShortNames(host, domain) {
			if (own || strings.ContainsRune(short, '.')) && !yield(short) {
				return
			}
		}
		for address := range s.OwnAddressesIn(cluster) {
			if !yield(Authority(address)) {
				return
			}
		}
	}
}

// Authority writes an address as requests name it.
func Authority(address string) string {
	if strings.ContainsRune(address, ':') {
		return "[" + address + "]"
	}
	return address
}

// LocalDomain is a domain, with the namespace in which a bare name is valid; empty for a
// domain that is valid everywhere.
type LocalDomain struct{ Domain, Home string }
