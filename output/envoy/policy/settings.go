package policy

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/isthmus-mesh/isthmus/model"
)

// Settings are the settings of the resources that Envoys get, and gRPC clients as far as
// gRPC supports them. A process has one of them, which never changes.
type Settings struct {
	// Outbound decides about connections to destinations outside of the catalog:
	// [AllowOutbound] or [RegistryOutbound].
	Outbound string `json:"outbound"`
	// Unaddressed decides about connections to addresses of no service, at a TCP port of a service
	// without an address: [NoUnaddressed] or [AllUnaddressed]. Hosts may have another value.
	Unaddressed string `json:"unaddressed"`
	Edge        Edge   `json:"edge"`
	LEDS        LEDS   `json:"leds"`
	// Networks are the networks with endpoints behind gateways.
	Networks []Network `json:"networks"`
	// DNS lets sidecars answer lookups; nil lets them answer none.
	DNS  *DNS `json:"dns"`
	VHDS VHDS `json:"vhds"`
	MTLS MTLS `json:"mtls"`
	// Defaults hold for every host, and Hosts for some: the first entry that matches.
	Defaults Policy       `json:"defaults"`
	Hosts    []HostPolicy `json:"hosts"`
	// TrustDomain is the trust domain of the service accounts of endpoints.
	TrustDomain string `json:"trustDomain"`
	// ClusterDomain is the domain in which names may be short, NAME.NAMESPACE.svc.DOMAIN.
	ClusterDomain string `json:"clusterDomain"`
}

// The values of [Settings].Outbound, for connections to destinations outside of the catalog.
const (
	AllowOutbound    = "allow"    // they go where they were going
	RegistryOutbound = "registry" // they end
)

// The values of [Settings].Unaddressed. See docs/design/0073.
const (
	NoUnaddressed  = "none" // they are to no service
	AllUnaddressed = "all"  // they go to the first of the services
)

// LEDS decides which services send their endpoints one by one (locality endpoint discovery).
// See docs/design/0027.
type LEDS struct {
	// Above is the number of endpoints that a service port must exceed; 0 switches it off.
	Above int `json:"above"`
}

// VHDS decides of which ports Envoys take the virtual hosts one by one (virtual host
// discovery). See docs/design/0028.
type VHDS struct {
	// From is how many services a port must have; 0 switches it off.
	From int `json:"from"`
}

// large is how many services a port must have for listeners to lead to single hosts.
func (v VHDS) large() int {
	if v.From <= 0 {
		return math.MaxInt
	}
	return v.From
}

// New returns the default settings.
func New() *Settings {
	return &Settings{Outbound: AllowOutbound, Unaddressed: NoUnaddressed, TrustDomain: "cluster.local", ClusterDomain: "cluster.local", VHDS: VHDS{From: 500}, MTLS: MTLS{Mode: DisableMTLS}}
}

// Domain is the domain in which services are NAME.NAMESPACE.svc.DOMAIN.
func (s *Settings) Domain() string { return s.ClusterDomain }

// Validate reports everything that is wrong, as errors "field: reason" joined.
func (s *Settings) Validate() error {
	var f faults
	if s.Outbound != AllowOutbound && s.Outbound != RegistryOutbound {
		f.add("outbound", "%q is none of %s, %s; with %[2]s workloads may call destinations of no service, with %[3]s not", s.Outbound, AllowOutbound, RegistryOutbound)
	}
	if s.Unaddressed != NoUnaddressed && s.Unaddressed != AllUnaddressed {
		f.add("unaddressed", unaddressedText, s.Unaddressed)
	}
	if s.Defaults.Unaddressed != "" {
		f.add("defaults.unaddressed", "%q cannot be set in defaults; set unaddressed beside outbound", s.Defaults.Unaddressed)
	}
	s.Edge.validate(&f)
	validateNetworks(&f, s.Networks)
	s.DNS.validate(&f)
	s.MTLS.validate(&f)
	f.within("vhds.from", s.VHDS.From, 0, math.MaxInt32, "the number of services from which a port's hosts go one by one, such as 500, or 0 for no port")
	f.within("leds.above", s.LEDS.Above, 0, math.MaxInt32, "the number of endpoints above which a service's go one by one, such as 1000, or 0 for no service")
	s.Defaults.validate(&f, "defaults")
	s.Defaults.validateFailover(&f, "defaults", s.Defaults.OutlierDetection)
	if s.TrustDomain == "" || strings.ContainsAny(s.TrustDomain, "/: ") {
		f.add("trustDomain", "%q is not a domain; give the trust domain of the certificates, such as cluster.local", s.TrustDomain)
	}
	if s.ClusterDomain == "" || strings.ContainsAny(s.ClusterDomain, "/: *") || strings.Trim(s.ClusterDomain, ".") != s.ClusterDomain {
		f.add("clusterDomain", "%q is not a domain; give the DOMAIN of the hosts NAME.NAMESPACE.svc.DOMAIN, such as cluster.local", s.ClusterDomain)
	}
	first := map[string]int{}
	for i, h := range s.Hosts {
		at := fmt.Sprintf("hosts[%d]", i)
		h.validate(&f, at, first)
		h.validateFailover(&f, at, h.over(&s.Defaults).OutlierDetection)
		if _, known := first[model.Name(h.Host)]; !known {
			first[model.Name(h.Host)] = i
		}
	}
	return errors.Join(f...)
}

const unaddressedText = "%q is none of " + NoUnaddressed + ", " + AllUnaddressed + "; with " + AllUnaddressed +
	" the first service without an address at a TCP port gets all connections to addresses of no service, with " + NoUnaddressed + " no service gets these"

// NeedAuthority lists the fields that need certificates from Isthmus, and so an authority.
func (s *Settings) NeedAuthority() (fields []string) {
	if s.MTLS.On() {
		fields = append(fields, "mtls")
	}
	if s.Defaults.TLS.Served() {
		fields = append(fields, "defaults.tls")
	}
	for i, h := range s.Hosts {
		if h.TLS.Served() {
			fields = append(fields, fmt.Sprintf("hosts[%d].tls", i))
		}
	}
	return fields
}
