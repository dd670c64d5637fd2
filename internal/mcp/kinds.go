package mcp

import (
	"slices"
	"strings"
)

// Kind is a kind of configuration, with its names in the protocols.
type Kind struct {
	// Group and Name are the group and name of its resource definition in Kubernetes.
	Group, Name string
	// Version is the newest version of the group.
	Version string
	// Collection is its name in MCP v1; empty if no peer has one for it.
	Collection string
	// Message is the name of the message in the body of a resource.
	Message string
}

// Synthetic is the collection of ServiceEntries that were made of a registry. In
// Pilot 1.4 a change of their endpoints is no change of configuration.
const Synthetic = "istio/networking/v1alpha3/synthetic/serviceentries"

// Annotations of synthetic ServiceEntries.
const (
	// ServiceVersion changes with everything but the endpoints, and EndpointsVersion
	// with these.
	ServiceVersion   = "networking.alpha.istio.io/serviceVersion"
	EndpointsVersion = "networking.alpha.istio.io/endpointsVersion"
	// NotReadyEndpoints are the endpoints that exist but get no traffic: "ip:port,…".
	NotReadyEndpoints = "networking.alpha.istio.io/notReadyEndpoints"
)

// TriggerCollection is the collection that a source names when it dials a sink, so that the
// sink's handler begins. The sink answers UNIMPLEMENTED.
const TriggerCollection = "$triggerCollection"

const (
	networking = "networking.istio.io"
	security   = "security.istio.io"
)

// kinds is the table of the kinds that current istiods and Pilot 1.4 request.
var kinds = []Kind{
	{networking, "ServiceEntry", "v1", "istio/networking/v1alpha3/serviceentries", "istio.networking.v1alpha3.ServiceEntry"},
	{networking, "Sidecar", "v1", "istio/networking/v1alpha3/sidecars", "istio.networking.v1alpha3.Sidecar"},
	{networking, "WorkloadEntry", "v1", "istio/networking/v1alpha3/workloadentries", "istio.networking.v1alpha3.WorkloadEntry"},
	{networking, "WorkloadGroup", "v1", "istio/networking/v1alpha3/workloadgroups", "istio.networking.v1alpha3.WorkloadGroup"},
	{networking, "DestinationRule", "v1", "istio/networking/v1alpha3/destinationrules", "istio.networking.v1alpha3.DestinationRule"},
	{networking, "VirtualService", "v1", "istio/networking/v1alpha3/virtualservices", "istio.networking.v1alpha3.VirtualService"},
	{networking, "Gateway", "v1", "istio/networking/v1alpha3/gateways", "istio.networking.v1alpha3.Gateway"},
	{networking, "EnvoyFilter", "v1alpha3", "istio/networking/v1alpha3/envoyfilters", "istio.networking.v1alpha3.EnvoyFilter"},
	{networking, "ProxyConfig", "v1beta1", "", "istio.networking.v1beta1.ProxyConfig"},
	{security, "AuthorizationPolicy", "v1", "istio/security/v1beta1/authorizationpolicies", "istio.security.v1beta1.AuthorizationPolicy"},
	{security, "PeerAuthentication", "v1", "", "istio.security.v1beta1.PeerAuthentication"},
	{security, "RequestAuthentication", "v1", "", "istio.security.v1beta1.RequestAuthentication"},
	{"telemetry.istio.io", "Telemetry", "v1", "", "istio.telemetry.v1alpha1.Telemetry"},
	{"extensions.istio.io", "WasmPlugin", "v1alpha1", "", "istio.extensions.v1alpha1.WasmPlugin"},
	{"extensions.istio.io", "TrafficExtension", "v1alpha1", "", "istio.extensions.v1alpha1.TrafficExtension"},
	{"config.istio.io", "HTTPAPISpec", "v1alpha2", "istio/config/v1alpha2/httpapispecs", "istio.mixer.v1.config.client.HTTPAPISpec"},
	{"config.istio.io", "HTTPAPISpecBinding", "v1alpha2", "istio/config/v1alpha2/httpapispecbindings", "istio.mixer.v1.config.client.HTTPAPISpecBinding"},
	{"config.istio.io", "QuotaSpec", "v1alpha2", "istio/mixer/v1/config/client/quotaspecs", "istio.mixer.v1.config.client.QuotaSpec"},
	{"config.istio.io", "QuotaSpecBinding", "v1alpha2", "istio/mixer/v1/config/client/quotaspecbindings", "istio.mixer.v1.config.client.QuotaSpecBinding"},
	{"authentication.istio.io", "Policy", "v1alpha1", "istio/authentication/v1alpha1/policies", "istio.authentication.v1alpha1.Policy"},
	{"authentication.istio.io", "MeshPolicy", "v1alpha1", "istio/authentication/v1alpha1/meshpolicies", "istio.authentication.v1alpha1.Policy"},
	{"rbac.istio.io", "ServiceRole", "v1alpha1", "istio/rbac/v1alpha1/serviceroles", "istio.rbac.v1alpha1.ServiceRole"},
	{"rbac.istio.io", "ServiceRoleBinding", "v1alpha1", "istio/rbac/v1alpha1/servicerolebindings", "istio.rbac.v1alpha1.ServiceRoleBinding"},
	{"rbac.istio.io", "RbacConfig", "v1alpha1", "istio/rbac/v1alpha1/rbacconfigs", "istio.rbac.v1alpha1.RbacConfig"},
	{"rbac.istio.io", "ClusterRbacConfig", "v1alpha1", "istio/rbac/v1alpha1/clusterrbacconfigs", "istio.rbac.v1alpha1.RbacConfig"},
}

// Kinds returns a copy of all kinds.
func Kinds() []Kind { return slices.Clone(kinds) }

// URL returns the name of a kind's type in MCP-over-xDS.
func (k Kind) URL() string { return k.Group + "/" + k.Version + "/" + k.Name }

// ByURL finds a kind by the name of its type in MCP-over-xDS, with any version of the
// group.
func ByURL(url string) (Kind, bool) {
	group, rest, _ := strings.Cut(url, "/")
	version, name, ok := strings.Cut(rest, "/")
	if !ok || version == "" {
		return Kind{}, false
	}
	return find(func(k Kind) bool { return k.Group == group && k.Name == name })
}

// ByCollection finds a kind by the name of a collection. ServiceEntry has two.
func ByCollection(collection string) (Kind, bool) {
	if collection == Synthetic {
		return kinds[0], true
	}
	return find(func(k Kind) bool { return k.Collection == collection && collection != "" })
}

// ByName finds a kind by its name alone. No two groups share one.
func ByName(name string) (Kind, bool) {
	return find(func(k Kind) bool { return k.Name == name })
}

func find(is func(Kind) bool) (Kind, bool) {
	i := slices.IndexFunc(kinds, is)
	if i < 0 {
		return Kind{}, false
	}
	return kinds[i], true
}
