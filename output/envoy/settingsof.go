package envoy

import (
	"cmp"
	"slices"
	"strings"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/push"
)

// NewSettings returns those that there are if nothing is said.
func NewSettings() *Settings {
	return &Settings{Outbound: AllowOutbound, TrustDomain: "cluster.local", ClusterDomain: "cluster.local", VHDS: VHDS{From: 500}}
}

// Domain is the one in which services are NAME.NAMESPACE.svc.DOMAIN.
func (s *Settings) Domain() string { return s.ClusterDomain }

// Begin returns what makes the steps of one output as the settings have it. It is
// [Step] otherwise.
func (s *Settings) Begin() func(now *catalog.Snapshot, c catalog.Change, complete bool, root string) push.Update {
	prepared := s.prepare()
	var known *definitions
	step := func(now *catalog.Snapshot, c catalog.Change, complete bool, root string) push.Update {
		known = known.after(now, c, prepared)
		return prepared.step(now, c, complete, root, known)
	}
	if s.LEDS.Above > 0 {
		spread := newSteps(step, s.LEDS)
		// The members of a collection are the same for all, have no priorities, and are not
		// avoided by edges.
		spread.whole = func(s *catalog.Service, port uint32) bool {
			return len(prepared.edge) > 0 && s.Endpoints(port).Counts().Local > 0 || prepared.of(s.Key.Host).failsOver() || prepared.networks != nil && s.Endpoints(port).Counts().Networked > 0
		}
		return spread.step
	}
	return step
}

// settings are Settings that are ready to be asked. A policy is always the same pointer,
// so that subjects which hold it are equal.
type settings struct {
	registry bool        // only services are reached
	edge     []*EdgePort // the same pointers for as long as the process runs
	dns      *DNS        // nil if lookups are not answered
	defaults *Policy
	// policies are those of Settings.Hosts, complete. By name and by suffix is which
	// of them is the first.
	policies         []*Policy
	byName, bySuffix map[string]int

	subsets map[*Policy][]*subset
	// bySource is each policy that says nothing of its load balancer, with one by the
	// address that a call comes from.
	bySource map[*Policy]*Policy

	trustDomain, domain string

	large int // as VHDS.From, and more than any port has if there are no single hosts

	failover bool            // some host has it
	networks *networks       // nil if none has gateways
	passes   bool            // some Envoy is a gateway to this network
	secrets  map[string]bool // by name: those that some host needs
}

// asIstio are the settings if nothing is said.
var asIstio = NewSettings().prepare()

func (s *Settings) prepare() *settings {
	p := &settings{
		registry: s.Outbound == RegistryOutbound, dns: s.DNS, defaults: &s.Defaults,
		byName: map[string]int{}, bySuffix: map[string]int{},
		subsets: map[*Policy][]*subset{}, bySource: map[*Policy]*Policy{}, trustDomain: s.TrustDomain, domain: s.ClusterDomain, secrets: map[string]bool{}, networks: networksOf(s.Networks), large: s.VHDS.large(),
	}
	for i := range s.Edge.Ports {
		p.edge = append(p.edge, &s.Edge.Ports[i])
	}
	p.passes = slices.ContainsFunc(p.edge, func(p *EdgePort) bool { return p.Protocol == edgeAutoPassthrough })
	p.note(p.defaults)
	for at, entry := range s.Hosts {
		policy := entry.over(&s.Defaults)
		p.subsets[policy] = subsetsOf(entry.Subsets)
		p.note(policy)
		p.policies = append(p.policies, policy)
		names, name := p.byName, strings.ToLower(entry.Host)
		if suffix, wildcard := strings.CutPrefix(name, "*"); wildcard {
			names, name = p.bySuffix, suffix
		}
		if _, earlier := names[name]; !earlier {
			names[name] = at
		}
	}
	return p
}

// note remembers what some host has.
func (s *settings) note(p *Policy) {
	s.failover = s.failover || p.failsOver()
	if p.LoadBalancer == nil {
		bySource := *p
		bySource.LoadBalancer = &LoadBalancer{ConsistentHash: &ConsistentHash{UseSourceIP: true}}
		s.bySource[p] = &bySource
	}
	for name := range p.TLS.secrets() {
		s.secrets[name] = true
	}
}

// over completes a policy by another one. Each part is taken as a whole.
func (p Policy) over(defaults *Policy) *Policy {
	return &Policy{
		ConnectTimeout:   cmp.Or(p.ConnectTimeout, defaults.ConnectTimeout),
		LoadBalancer:     cmp.Or(p.LoadBalancer, defaults.LoadBalancer),
		Retries:          cmp.Or(p.Retries, defaults.Retries),
		OutlierDetection: cmp.Or(p.OutlierDetection, defaults.OutlierDetection),
		CircuitBreakers:  cmp.Or(p.CircuitBreakers, defaults.CircuitBreakers),
		TCPKeepalive:     cmp.Or(p.TCPKeepalive, defaults.TCPKeepalive),
		LocalityFailover: cmp.Or(p.LocalityFailover, defaults.LocalityFailover),
		TLS:              cmp.Or(p.TLS, defaults.TLS),
		AccessLog:        defaults.AccessLog,
		Tracing:          defaults.Tracing,
	}
}

// of returns the policy of a host: that of the first entry that matches, completed by
// the defaults. It is never nil, and not to be changed.
func (s *settings) of(host string) *Policy {
	if len(s.policies) == 0 {
		return s.defaults
	}
	host = strings.ToLower(host)
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
		return s.defaults
	}
	return s.policies[first]
}
