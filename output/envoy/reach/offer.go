package reach

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output/envoy/policy"
)

// Form is how a cluster finds its endpoints.
type Form int

// The forms of clusters.
const (
	NoForm      Form = iota // there is no cluster
	EDS                     // load assignments
	StrictDNS               // every address of every name
	LogicalDNS              // one name, connected to as it resolves
	OriginalDST             // where the connection was going anyway
)

// Why a service port is not offered to a kind of client. Reasons are constant:
// they are found anew with each lookup.
const (
	UnknownKind     = "clients of this kind are not served"
	BadHost         = "the host is empty or not valid UTF-8"
	noDynamicDNS    = "resolution DYNAMIC_DNS is not served yet"
	BadResolution   = "the resolution is not known"
	GRPCNone        = "gRPC has no original destination to go to: resolution NONE"
	GRPCUDP         = "gRPC does not speak UDP"
	GRPCWildcard    = "gRPC asks for a service by its whole name, which a wildcard does not have"
	grpcUnix        = "gRPC cannot reach endpoints on unix sockets over xDS"
	grpcMany        = "gRPC reads messages of at most 4 MiB, and is not offered a port with more than 32,000 endpoints"
	grpcOneName     = "gRPC resolves one name, and none or several of the endpoints are healthy"
	WithoutAnyPorts = "the service has no ports"
)

// offer decides in which form a kind of client gets a service port. With
// noForm comes the reason.
func offer(kind string, s *catalog.Service, port model.Port) (Form, string) {
	switch {
	case kind != KindEnvoy && !IsGRPC(kind):
		return NoForm, UnknownKind
	case s.Key.Host == "", !utf8.ValidString(s.Key.Host):
		return NoForm, BadHost
	case IsGRPC(kind) && port.Protocol == "UDP":
		return NoForm, GRPCUDP
	case IsGRPC(kind) && strings.HasPrefix(s.Key.Host, "*"):
		return NoForm, GRPCWildcard
	}
	switch s.ResolutionAt(port.Number) {
	case model.ResolutionStatic:
		if reason := AgainstGRPC(s.Endpoints(port.Number)); reason != "" && IsGRPC(kind) {
			return NoForm, reason
		}
		return EDS, ""
	case model.ResolutionDNS, model.ResolutionDNSRoundRobin:
		return offerDNS(kind, s, port, nil)
	case model.ResolutionNone:
		if IsGRPC(kind) {
			return NoForm, GRPCNone
		}
		return OriginalDST, ""
	case model.ResolutionDynamicDNS:
		return NoForm, noDynamicDNS
	default:
		return NoForm, BadResolution
	}
}

// mostForGRPC is how many endpoints a port has at most that gRPC is offered: with 128 bytes for each, which
// are two long addresses and a weight, they are a message of 4 MiB.
const mostForGRPC = 32_000

// AgainstGRPC returns why gRPC is not offered endpoints with addresses; empty if it is. That does not depend
// on an endpoint's health.
func AgainstGRPC(endpoints *catalog.Endpoints) string {
	switch has := endpoints.Counts(); {
	case has.Sockets > 0:
		return grpcUnix
	case has.Total > mostForGRPC:
		return grpcMany
	default:
		return ""
	}
}

// offerDNS chooses between the two ways to resolve names. LOGICAL_DNS takes
// exactly one name; Envoy is given several, or none, as STRICT_DNS, so that
// none of them is lost.
func offerDNS(kind string, s *catalog.Service, port model.Port, of *policy.Selector) (Form, string) {
	single := exactlyOne(s.Endpoints(port.Number), of)
	switch {
	case IsGRPC(kind) && !single:
		return NoForm, grpcOneName
	case IsGRPC(kind), single && s.ResolutionAt(port.Number) == model.ResolutionDNSRoundRobin:
		return LogicalDNS, ""
	default:
		return StrictDNS, ""
	}
}

func exactlyOne(endpoints *catalog.Endpoints, of *policy.Selector) bool {
	var found catalog.Endpoint
	for endpoint := range endpoints.All() {
		if _, left := NameAddress(endpoint); left != "" || endpoint.Health != model.Healthy || !of.Selects(endpoint.Labels) {
			continue
		}
		if found.Instance != nil && (found.Address != endpoint.Address || found.Port != endpoint.Port) {
			return false
		}
		found = endpoint
	}
	return found.Instance != nil
}

func isSocket(e catalog.Endpoint) bool { return strings.HasPrefix(e.Address, unixPrefix) }

// NotOffered returns why a service, or which of its ports, is not offered to a
// kind of client. It is empty if all ports are offered.
func NotOffered(s *catalog.Service, kind string) string {
	if len(s.Ports) == 0 {
		return WithoutAnyPorts
	}
	var ports, reasons []string
	for _, port := range s.Ports {
		if _, reason := offer(kind, s, port); reason != "" {
			ports = append(ports, fmt.Sprintf("port %d: %s", port.Number, reason))
			reasons = append(reasons, reason)
		}
	}
	if len(reasons) == len(s.Ports) && len(slices.Compact(reasons)) == 1 {
		return reasons[0]
	}
	return strings.Join(ports, "; ")
}

// FormFor returns the form in which a kind of client gets a service port.
func FormFor(kind string, s *catalog.Service, port model.Port) Form {
	f, _ := offer(kind, s, port)
	return f
}
