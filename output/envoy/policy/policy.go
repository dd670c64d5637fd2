package policy

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/isthmus-mesh/isthmus/model"
)

// HostPolicy is the policy of some hosts.
type HostPolicy struct {
	// Host is the name of a host, or *.SUFFIX for all hosts with that suffix.
	Host string `json:"host"`
	Policy
	Subsets []Subset `json:"subsets"`
}

// Policy decides how clients call hosts. Where a field is nil, the defaults hold, or
// Istio's behaviour.
type Policy struct {
	ConnectTimeout   *time.Duration    `json:"connectTimeout"`
	LoadBalancer     *LoadBalancer     `json:"loadBalancer"`
	Retries          *Retries          `json:"retries"`
	OutlierDetection *OutlierDetection `json:"outlierDetection"`
	CircuitBreakers  *CircuitBreakers  `json:"circuitBreakers"`
	TCPKeepalive     *TCPKeepalive     `json:"tcpKeepalive"`
	// LocalityFailover prefers endpoints near the client, and turns to others when
	// those fail. It is on where there is outlier detection, which finds that out.
	LocalityFailover *bool        `json:"localityFailover"`
	TLS              *UpstreamTLS `json:"tls"`
	// Unaddressed decides about connections to addresses of no service, for hosts without an
	// address: see [Settings].
	Unaddressed string `json:"unaddressed"`
	// AccessLog and Tracing belong to listeners, which hosts share. So only the defaults
	// have them.
	AccessLog *AccessLog `json:"accessLog"`
	Tracing   *Tracing   `json:"tracing"`
}

// FailsOver reports whether clients use the endpoints of a host by distance. Without
// outlier detection an Envoy would not find out that near endpoints fail.
func (p *Policy) FailsOver() bool {
	return p.OutlierDetection != nil && (p.LocalityFailover == nil || *p.LocalityFailover)
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
		Unaddressed:      cmp.Or(p.Unaddressed, defaults.Unaddressed),
		AccessLog:        defaults.AccessLog,
		Tracing:          defaults.Tracing,
	}
}

func (h *HostPolicy) validate(f *faults, at string, first map[string]int) {
	name := strings.TrimPrefix(h.Host, "*.")
	switch earlier, twice := first[model.Name(h.Host)]; {
	case h.Host == "":
		f.add(at+".host", "missing; give a host, such as reviews.example.com, or a wildcard, such as *.example.com")
	case h.Host == "*":
		f.add(at+".host", "%q matches every host; set the policy for all hosts in defaults", h.Host)
	case name == "", strings.ContainsAny(name, "*/ :"), strings.HasPrefix(name, "."):
		f.add(at+".host", "%q is neither a host, such as reviews.example.com, nor a wildcard, such as *.example.com", h.Host)
	case twice:
		f.add(at+".host", "%q is also the host of hosts[%d], which counts; merge the two entries", h.Host, earlier)
	}
	if h.AccessLog != nil {
		f.add(at+".accessLog", "cannot be set for a host, since hosts share listeners; set it in defaults")
	}
	if h.Tracing != nil {
		f.add(at+".tracing", "cannot be set for a host, since hosts share listeners; set it in defaults")
	}
	validateSubsets(f, at, h.Subsets)
	if h.Unaddressed != "" && h.Unaddressed != NoUnaddressed && h.Unaddressed != AllUnaddressed {
		f.add(at+".unaddressed", unaddressedText, h.Unaddressed)
	}
	own := h.Policy
	own.AccessLog, own.Tracing = nil, nil
	own.validate(f, at)
}

func (p *Policy) validate(f *faults, at string) {
	at += "."
	if p.ConnectTimeout != nil {
		f.duration(at+"connectTimeout", *p.ConnectTimeout, "10s")
	}
	if p.LoadBalancer != nil {
		p.LoadBalancer.validate(f, at+"loadBalancer")
	}
	if p.Retries != nil {
		p.Retries.validate(f, at+"retries.")
	}
	if p.OutlierDetection != nil {
		p.OutlierDetection.validate(f, at+"outlierDetection.")
	}
	if p.CircuitBreakers != nil {
		p.CircuitBreakers.validate(f, at+"circuitBreakers.")
	}
	if p.TCPKeepalive != nil {
		p.TCPKeepalive.validate(f, at+"tcpKeepalive.")
	}
	if p.TLS != nil {
		p.TLS.validate(f, at+"tls.")
	}
	if p.AccessLog != nil {
		p.AccessLog.validate(f, at+"accessLog.")
	}
	if p.Tracing != nil {
		p.Tracing.validate(f, at+"tracing.")
	}
}

func (p *Policy) validateFailover(f *faults, at string, detection *OutlierDetection) {
	if p.LocalityFailover != nil && *p.LocalityFailover && detection == nil {
		f.add(at+".localityFailover", "needs outlierDetection, which detects failing endpoints; add it, such as outlierDetection: {}")
	}
}

// LoadBalancer chooses the endpoint of a request, by exactly one of two methods.
type LoadBalancer struct {
	Simple         string          `json:"simple"`
	ConsistentHash *ConsistentHash `json:"consistentHash"`
}

// ConsistentHash sends requests with the same hash to the same endpoint.
type ConsistentHash struct {
	HTTPHeaderName string `json:"httpHeaderName"`
	UseSourceIP    bool   `json:"useSourceIp"`
}

// simpleBalancers are the values of LoadBalancer.Simple.
var simpleBalancers = []string{"LEAST_REQUEST", "ROUND_ROBIN", "RANDOM"}

func (l *LoadBalancer) validate(f *faults, at string) {
	hash := l.ConsistentHash
	switch {
	case l.Simple == "" && hash == nil:
		f.add(at, "is empty; give simple: %s, or consistentHash", strings.Join(simpleBalancers, ", "))
	case l.Simple != "" && hash != nil:
		f.add(at, "has both simple and consistentHash; remove one of them")
	case hash == nil && !slices.Contains(simpleBalancers, l.Simple):
		f.add(at+".simple", "%q is none of %s", l.Simple, strings.Join(simpleBalancers, ", "))
	case hash != nil && (hash.HTTPHeaderName != "") == hash.UseSourceIP:
		f.add(at+".consistentHash", "needs one of httpHeaderName, such as x-user, and useSourceIp: true")
	case hash != nil && !isHeaderName(hash.HTTPHeaderName):
		f.add(at+".consistentHash.httpHeaderName", "%q is not the name of a header, such as x-user", hash.HTTPHeaderName)
	}
}

func isHeaderName(name string) bool {
	for _, r := range name {
		if r <= ' ' || r > '~' || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r) {
			return false
		}
	}
	return true
}
