package istio

import (
	"cmp"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	_ "istio.io/api/extensions/v1alpha1" // the messages of the table
	_ "istio.io/api/networking/v1beta1"
	_ "istio.io/api/security/v1beta1"
	_ "istio.io/api/telemetry/v1alpha1"

	"github.com/isthmus-mesh/isthmus/convert/smi"
	"github.com/isthmus-mesh/isthmus/internal/mcp"
	"github.com/isthmus-mesh/isthmus/model"
)

// Kind is the name of a kind of object.
type Kind string

// The kinds that are written to a cluster, or made of the catalog.
const (
	ServiceEntry    Kind = "ServiceEntry"
	WorkloadEntry   Kind = "WorkloadEntry"
	Sidecar         Kind = "Sidecar"
	DestinationRule Kind = "DestinationRule"
)

// Resource returns the name of the kind in the paths of an API server: Istio's plurals are
// regular.
func (k Kind) Resource() string {
	name := strings.ToLower(string(k))
	if stem, y := strings.CutSuffix(name, "y"); y && !strings.HasSuffix(stem, "a") {
		return stem + "ies"
	}
	return name + "s"
}

// Definition is one row of the table of kinds. The row makes the kind known to every source
// that reads such objects, and to the outputs that pass them on.
type Definition struct {
	// Group and Name are the API group and the kind.
	Group, Name string
	// Version is the newest version of the group that has the kind.
	Version string
	// Collection is its name in MCP v1; empty if no peer has one for it.
	Collection string
	// Message is the full name of the message of a specification; empty for a kind of SMI,
	// which no protocol carries.
	Message string
	// Record is the kind of the records that objects become. A kind with [carried] is not
	// read: a source that carries it passes its objects on unchanged.
	Record model.Kind
}

// carried marks a kind that is not read. Its records have the name of the kind.
const carried model.Kind = ""

// Group and Version are the API group and version in which objects are written.
const (
	Group   = "networking.istio.io"
	Version = "v1"
)

const (
	security   = "security.istio.io"
	telemetry  = "telemetry.istio.io"
	extensions = "extensions.istio.io"
)

// definitions is the table of the kinds that current istiods and Pilot 1.4 request, and of SMI's.
// Reading a further kind of Istio takes its rules in [check] and its records in [Reading.take].
var definitions = []Definition{
	{Group, "ServiceEntry", "v1", "istio/networking/v1alpha3/serviceentries", "istio.networking.v1alpha3.ServiceEntry", model.KindService},
	{Group, "Sidecar", "v1", "istio/networking/v1alpha3/sidecars", "istio.networking.v1alpha3.Sidecar", model.KindScope},
	{Group, "WorkloadEntry", "v1", "istio/networking/v1alpha3/workloadentries", "istio.networking.v1alpha3.WorkloadEntry", model.KindWorkload},
	{Group, "WorkloadGroup", "v1", "istio/networking/v1alpha3/workloadgroups", "istio.networking.v1alpha3.WorkloadGroup", "WorkloadGroup"},
	{Group, "DestinationRule", "v1", "istio/networking/v1alpha3/destinationrules", "istio.networking.v1alpha3.DestinationRule", carried},
	{Group, "VirtualService", "v1", "istio/networking/v1alpha3/virtualservices", "istio.networking.v1alpha3.VirtualService", carried},
	{Group, "Gateway", "v1", "istio/networking/v1alpha3/gateways", "istio.networking.v1alpha3.Gateway", carried},
	{Group, "EnvoyFilter", "v1alpha3", "istio/networking/v1alpha3/envoyfilters", "istio.networking.v1alpha3.EnvoyFilter", carried},
	{Group, "ProxyConfig", "v1beta1", "", "istio.networking.v1beta1.ProxyConfig", carried},
	{security, "AuthorizationPolicy", "v1", "istio/security/v1beta1/authorizationpolicies", "istio.security.v1beta1.AuthorizationPolicy", carried},
	{security, "PeerAuthentication", "v1", "", "istio.security.v1beta1.PeerAuthentication", carried},
	{security, "RequestAuthentication", "v1", "", "istio.security.v1beta1.RequestAuthentication", carried},
	{telemetry, "Telemetry", "v1", "", "istio.telemetry.v1alpha1.Telemetry", carried},
	{extensions, "WasmPlugin", "v1alpha1", "", "istio.extensions.v1alpha1.WasmPlugin", carried},
	{extensions, "TrafficExtension", "v1alpha1", "", "istio.extensions.v1alpha1.TrafficExtension", carried},
	{"config.istio.io", "HTTPAPISpec", "v1alpha2", "istio/config/v1alpha2/httpapispecs", "istio.mixer.v1.config.client.HTTPAPISpec", carried},
	{"config.istio.io", "HTTPAPISpecBinding", "v1alpha2", "istio/config/v1alpha2/httpapispecbindings", "istio.mixer.v1.config.client.HTTPAPISpecBinding", carried},
	{"config.istio.io", "QuotaSpec", "v1alpha2", "istio/mixer/v1/config/client/quotaspecs", "istio.mixer.v1.config.client.QuotaSpec", carried},
	{"config.istio.io", "QuotaSpecBinding", "v1alpha2", "istio/mixer/v1/config/client/quotaspecbindings", "istio.mixer.v1.config.client.QuotaSpecBinding", carried},
	{"authentication.istio.io", "Policy", "v1alpha1", "istio/authentication/v1alpha1/policies", "istio.authentication.v1alpha1.Policy", carried},
	{"authentication.istio.io", "MeshPolicy", "v1alpha1", "istio/authentication/v1alpha1/meshpolicies", "istio.authentication.v1alpha1.Policy", carried},
	{"rbac.istio.io", "ServiceRole", "v1alpha1", "istio/rbac/v1alpha1/serviceroles", "istio.rbac.v1alpha1.ServiceRole", carried},
	{"rbac.istio.io", "ServiceRoleBinding", "v1alpha1", "istio/rbac/v1alpha1/servicerolebindings", "istio.rbac.v1alpha1.ServiceRoleBinding", carried},
	{"rbac.istio.io", "RbacConfig", "v1alpha1", "istio/rbac/v1alpha1/rbacconfigs", "istio.rbac.v1alpha1.RbacConfig", carried},
	{"rbac.istio.io", "ClusterRbacConfig", "v1alpha1", "istio/rbac/v1alpha1/clusterrbacconfigs", "istio.rbac.v1alpha1.RbacConfig", carried},
	{smi.Group, smi.Kind, smi.Versions()[0], "", "", model.KindSplit},
}

// versions are the versions of a group, the newest first. All of Istio's have one schema.
var versions = map[string][]string{
	Group:     {"v1", "v1beta1", "v1alpha3"},
	security:  {"v1", "v1beta1"},
	telemetry: {"v1", "v1alpha1"},
	smi.Group: smi.Versions(),
}

// Definitions returns a copy of the table.
func Definitions() []Definition { return slices.Clone(definitions) }

// Understood returns the kinds that are read, whether or not a source carries them.
func Understood() []Definition {
	return slices.DeleteFunc(Definitions(), func(d Definition) bool { return !d.IsRead() })
}

// IsRead reports whether objects of the kind are validated and read. Objects of another
// kind are carried or ignored.
func (d Definition) IsRead() bool { return d.Record != carried }

// RecordKind returns the kind of the records that objects become.
func (d Definition) RecordKind() model.Kind { return cmp.Or(d.Record, model.Kind(d.Name)) }

// MakesServices reports whether objects of the kind become services.
func (d Definition) MakesServices() bool { return d.Record == model.KindService }

// Resource returns the name of the kind in the paths of an API server.
func (d Definition) Resource() string { return Kind(d.Name).Resource() }

// Versions returns the versions of its group, the newest first.
func (d Definition) Versions() []string {
	if list, several := versions[d.Group]; several {
		return slices.Clone(list)
	}
	return []string{d.Version}
}

// IsSMI reports whether the kind is one of SMI, and not of Istio.
func (d Definition) IsSMI() bool { return d.Group == smi.Group }

// URL returns the name of the kind's type in MCP-over-xDS; empty for a kind of SMI.
func (d Definition) URL() string {
	if d.IsSMI() {
		return ""
	}
	return d.Group + "/" + d.Version + "/" + d.Name
}

// message returns an empty specification; nil if Istio no longer has the kind, or never had.
func (d Definition) message() proto.Message {
	known, err := protoregistry.GlobalTypes.FindMessageByName(protoreflect.FullName(d.Message))
	if err != nil {
		return nil
	}
	return known.New().Interface()
}

// ByURL finds a kind by the name of its type in MCP-over-xDS, with any version of the
// group.
func ByURL(url string) (Definition, bool) {
	group, rest, _ := strings.Cut(url, "/")
	version, name, ok := strings.Cut(rest, "/")
	if !ok || version == "" {
		return Definition{}, false
	}
	return find(func(d *Definition) bool { return d.Group == group && d.Name == name && !d.IsSMI() })
}

// ByCollection finds a kind by the name of a collection. ServiceEntry has two.
func ByCollection(collection string) (Definition, bool) {
	if collection == mcp.Synthetic {
		return ByName(string(ServiceEntry))
	}
	return find(func(d *Definition) bool { return d.Collection == collection && collection != "" })
}

// ByName finds a kind by its name alone. No two groups share one.
func ByName(name string) (Definition, bool) {
	return find(func(d *Definition) bool { return d.Name == name })
}

func find(is func(*Definition) bool) (Definition, bool) {
	for i := range definitions {
		if is(&definitions[i]) {
			return definitions[i], true
		}
	}
	return Definition{}, false
}
