package policy

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/isthmus-mesh/isthmus/model"
)

// Prepared is [Settings] in the form that lookups need. It is immutable. A policy and a
// port of the edge always have the same pointers, so that subjects which hold them are equal.
type Prepared struct {
	RegistryOnly bool        // connections to destinations outside of the catalog end
	unaddressed  bool        // hosts without an address take connections to addresses of no service
	Edge         []*EdgePort // in the order of the settings
	DNS          *DNS        // nil if sidecars do not answer lookups
	Defaults     *Policy
	TrustDomain  string
	Domain       string    // in which services are NAME.NAMESPACE.svc.DOMAIN
	LargePort    int       // services that a port must have for its hosts to go one by one
	FailsOver    bool      // some host has locality failover
	Gateway      bool      // some Envoy is a gateway to this network
	Networks     *Networks // nil if no network has gateways
	Mesh         *Mesh     // nil if no port takes mutual TLS
	// Addressing is the settings by which a listener is of one service or of another. Conflicts of
	// equal ones are equal.
	Addressing string
	// SecretNames are the names of the secrets with files that some host needs, in order.
	SecretNames []string

	// policies are those of Settings.Hosts, complete. By name and by suffix are the indexes
	// of the first that matches.
	policies         []*Policy
	byName, bySuffix map[string]int

	subsets map[*Policy][]*Selector
	// bySource has, for each policy without a load balancer, the same one with a load
	// balancer by the source address.
	bySource map[*Policy]*Policy
}

// Prepare returns the prepared settings. Each call makes other pointers.
func (s *Settings) Prepare() *Prepared {
	p := &Prepared{
		RegistryOnly: s.Outbound == RegistryOutbound, unaddressed: s.Unaddressed == AllUnaddressed, DNS: s.DNS, Defaults: &s.Defaults,
		TrustDomain: s.TrustDomain, Domain: model.Name(s.ClusterDomain), LargePort: s.VHDS.large(), Networks: networksOf(s.Networks), Mesh: s.MTLS.mesh(),
		byName: map[string]int{}, bySuffix: map[string]int{}, subsets: map[*Policy][]*Selector{}, bySource: map[*Policy]*Policy{},
	}
	p.Addressing = s.Unaddressed + fmt.Sprint(s.DNS)
	for i := range s.Edge.Ports {
		p.Edge = append(p.Edge, &s.Edge.Ports[i])
	}
	p.Gateway = slices.ContainsFunc(p.Edge, func(p *EdgePort) bool { return p.Protocol == EdgeAutoPassthrough })
	secrets := map[string]bool{}
	p.note(p.Defaults, secrets)
	for at, entry := range s.Hosts {
		policy := entry.over(&s.Defaults)
		p.subsets[policy] = selectorsOf(entry.Subsets)
		if entry.Unaddressed != "" {
			p.Addressing += " " + entry.Host + " " + entry.Unaddressed
		}
		p.note(policy, secrets)
		p.policies = append(p.policies, policy)
		names, name := p.byName, model.Name(entry.Host)
		if suffix, wildcard := strings.CutPrefix(name, "*"); wildcard {
			names, name = p.bySuffix, suffix
		}
		if _, earlier := names[name]; !earlier {
			names[name] = at
		}
	}
	p.SecretNames = slices.Sorted(maps.Keys(secrets))
	return p
}

// Istio is the default settings, prepared. They are Istio's behaviour.
var Istio = New().Prepare()

// OrIstio returns the settings, or [Istio] for nil.
func (s *Prepared) OrIstio() *Prepared {
	if s == nil {
		return Istio
	}
	return s
}

// note takes a policy of some host into account.
func (s *Prepared) note(p *Policy, secrets map[string]bool) {
	s.FailsOver = s.FailsOver || p.FailsOver()
	if p.LoadBalancer == nil {
		bySource := *p
		bySource.LoadBalancer = &LoadBalancer{ConsistentHash: &ConsistentHash{UseSourceIP: true}}
		s.bySource[p] = &bySource
	}
	for name := range p.TLS.FileSecrets() {
		secrets[name] = true
	}
}

// Of returns the policy of a host, a [model.Name]: that of the first entry that matches, completed by
// the defaults. It is never nil, and not to be changed.
func (s *Prepared) Of(host string) *Policy {
	if len(s.policies) == 0 {
		return s.Defaults
	}
	first := len(s.policies)
	if at, ok := s.byName[host]; ok {
		first = at
	}
	for i := range len(host) {
		if host[i] != '.' {
			continue
		}
		if at, ok := s.bySuffix[host[i:]]; ok {
			first = min(first, at)
		}
	}
	if first == len(s.policies) {
		return s.Defaults
	}
	return s.policies[first]
}

// For returns the policy of a host, given the affinity that its registry declares. A configured load
// balancer takes precedence over the affinity.
func (s *Prepared) For(host string, affinity model.Affinity) *Policy {
	if affinity == model.ClientIP {
		return s.BySource(s.Of(host))
	}
	return s.Of(host)
}

// BySource returns a policy with a load balancer by the source address, unless the policy
// has a load balancer already.
func (s *Prepared) BySource(p *Policy) *Policy {
	if bySource := s.bySource[p]; bySource != nil {
		return bySource
	}
	return p
}

// TakesUnaddressed reports whether a host without an address takes connections to addresses of no
// service.
func (s *Prepared) TakesUnaddressed(host string) bool {
	if own := s.Of(host).Unaddressed; own != "" {
		return own == AllUnaddressed
	}
	return s.unaddressed
}

// MayChoose reports whether connections to instances of a host that clients choose may be secured.
func (s *Prepared) MayChoose(host string) bool { return s.Mesh != nil || s.Of(host).TLS.On() }

// Subsets lists the subsets of a policy.
func (s *Prepared) Subsets(p *Policy) []*Selector { return s.subsets[p] }

// Subset returns the subset of a name; the empty name stands for all endpoints.
func (s *Prepared) Subset(p *Policy, name string) (*Selector, bool) {
	if name == "" {
		return nil, true
	}
	for _, of := range s.subsets[p] {
		if of.Name == name {
			return of, true
		}
	}
	return nil, false
}

// SubsetFold is [Prepared.Subset] for a name in lower case.
func (s *Prepared) SubsetFold(p *Policy, name string) (*Selector, bool) {
	if name == "" {
		return nil, true
	}
	for _, of := range s.subsets[p] {
		if strings.ToLower(of.Name) == name {
			return of, true
		}
	}
	return nil, false
}

// EdgePort returns the configured port of a number.
func (s *Prepared) EdgePort(number uint32) (*EdgePort, bool) {
	i := slices.IndexFunc(s.Edge, func(p *EdgePort) bool { return p.Port() == number })
	if i < 0 {
		return nil, false
	}
	return s.Edge[i], true
}

// AllowsLocal reports whether each port of the edge that exposes a host allows its endpoints
// at local addresses. Only listeners of an Envoy's own bootstrap reach a host that no port
// exposes, and these are the operator's.
func (s *Prepared) AllowsLocal(host string) bool {
	return !slices.ContainsFunc(s.Edge, func(p *EdgePort) bool { return p.Exposes(host) && p.LocalAddresses != AllowLocal })
}

// PassesThrough reports whether other networks may call a host through a gateway.
func (s *Prepared) PassesThrough(host string) bool {
	return slices.ContainsFunc(s.Edge, func(p *EdgePort) bool { return p.Protocol == EdgeAutoPassthrough && p.Exposes(host) })
}

// TakesRequestsAtEdge reports whether some port of the edge takes HTTP.
func (s *Prepared) TakesRequestsAtEdge() bool {
	return slices.ContainsFunc(s.Edge, func(p *EdgePort) bool { return p.Protocol == EdgeHTTP })
}
