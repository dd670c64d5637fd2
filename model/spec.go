package model

import (
	"bytes"
	"time"
)

// Location is whether a service is part of the mesh.
type Location string

// The locations of ServiceEntry.
const (
	MeshExternal Location = "MESH_EXTERNAL"
	MeshInternal Location = "MESH_INTERNAL"
)

// Resolution is how a client finds the addresses of a service's endpoints.
type Resolution string

// The resolutions of ServiceEntry.
const (
	ResolutionNone          Resolution = "NONE"
	ResolutionStatic        Resolution = "STATIC"
	ResolutionDNS           Resolution = "DNS"
	ResolutionDNSRoundRobin Resolution = "DNS_ROUND_ROBIN"
	// ResolutionDynamicDNS is DYNAMIC_DNS: hosts are resolved at request time.
	ResolutionDynamicDNS Resolution = "DYNAMIC_DNS"
)

// LooksUp reports whether clients look up the names of endpoints, or without endpoints the hosts.
func (r Resolution) LooksUp() bool {
	return r == ResolutionDNS || r == ResolutionDNSRoundRobin || r == ResolutionDynamicDNS
}

// Meta is the metadata of an object beside its specification.
type Meta struct {
	Labels      Labels    `json:"labels,omitzero"`
	Annotations Labels    `json:"annotations,omitzero"`
	Created     time.Time `json:"created,omitzero"`
}

// SameMeta reports whether m and o are equal.
func (m Meta) SameMeta(o Meta) bool {
	return m.Labels.Equal(o.Labels) && m.Annotations.Equal(o.Annotations) && m.Created.Equal(o.Created)
}

// Port is a port of a service.
type Port struct {
	Number   uint32 `json:"number"`
	Name     string `json:"name"`
	Protocol string `json:"protocol"` // in upper case: HTTP, GRPC, TCP, …
	// TargetPort is the port endpoints listen on; zero means Number.
	TargetPort uint32 `json:"targetPort,omitempty"`
	// TargetName is the name of the endpoint's port, if only endpoints know its number. An
	// endpoint without a port of this name, or of Name, does not serve the port.
	TargetName string `json:"targetName,omitempty"`
	// Path is the path of the port, if it differs from its record's.
	Path Path `json:"path,omitempty"`
}

// IsHTTP reports whether a port carries HTTP, so that calls are distinguished by their host.
func (p Port) IsHTTP() bool {
	switch p.Protocol {
	case "HTTP", "HTTP2", "GRPC", "GRPC-WEB", "HTTP_PROXY":
		return true
	}
	return false
}

// IsUDP reports whether a port carries datagrams.
func (p Port) IsUDP() bool { return p.Protocol == "UDP" }

// Service is a ServiceEntry without its inline endpoints, which are [Endpoint] records that
// it owns.
type Service struct {
	Meta
	Hosts     List[string] `json:"hosts"`
	Addresses List[string] `json:"addresses,omitzero"` // IP addresses or CIDR blocks
	// Cluster is the cluster in which the addresses are valid; empty for everywhere.
	Cluster          string       `json:"cluster,omitempty"`
	Ports            List[Port]   `json:"ports,omitzero"` // unique by number and by name
	Location         Location     `json:"location"`
	Resolution       Resolution   `json:"resolution"`
	ExportTo         List[string] `json:"exportTo,omitzero"` // namespaces, "." or "*"; empty means "*"
	SubjectAltNames  List[string] `json:"subjectAltNames,omitzero"`
	WorkloadSelector Labels       `json:"workloadSelector,omitzero"` // empty selects nothing
	Traffic          Traffic      `json:"traffic,omitzero"`
}

// EqualSpec implements [Spec].
func (s Service) EqualSpec(spec Spec) bool {
	o, ok := spec.(Service)
	return ok && s.SameMeta(o.Meta) &&
		s.Hosts.Equal(o.Hosts) && s.Addresses.Equal(o.Addresses) && s.Cluster == o.Cluster && s.Ports.Equal(o.Ports) &&
		s.Location == o.Location && s.Resolution == o.Resolution &&
		s.ExportTo.Equal(o.ExportTo) && s.SubjectAltNames.Equal(o.SubjectAltNames) &&
		s.WorkloadSelector.Equal(o.WorkloadSelector) && s.Traffic == o.Traffic
}

// Locality is the location of an endpoint, from the widest part to the narrowest.
type Locality struct {
	Region  string `json:"region,omitempty"`
	Zone    string `json:"zone,omitempty"`
	SubZone string `json:"subZone,omitempty"`
}

// Health is whether an endpoint should be given traffic.
type Health string

// The states of an endpoint. Only a healthy one is served.
const (
	Healthy     Health = "" // also for an unknown state
	Unhealthy   Health = "UNHEALTHY"
	Draining    Health = "DRAINING"
	Terminating Health = "TERMINATING"
)

// Endpoint is one address at which a service runs.
type Endpoint struct {
	// Address is an IPv4 or IPv6 address, a DNS name, or unix:///path.
	Address string `json:"address"`
	// Also are further IP addresses of the same endpoint, with the same ports, such as the
	// address of the other family.
	Also List[string] `json:"additionalAddresses,omitzero"`
	// Ports gives the port by the name of the service's port, where it differs
	// from the service's own target port.
	Ports    Map[uint32] `json:"ports,omitzero"`
	Labels   Labels      `json:"labels,omitzero"`
	Network  string      `json:"network,omitempty"`
	Locality Locality    `json:"locality,omitzero"`
	Node     string      `json:"node,omitempty"`   // the name of its machine in its cluster
	Weight   uint32      `json:"weight,omitempty"` // relative; zero means 1
	// Exact means that Ports is complete: the endpoint does not serve other ports. Registries
	// in which each instance announces its own listeners set it; Istio's manifests cannot
	// express it. It shares a word with Weight: there are hundreds of thousands of endpoints.
	Exact          bool   `json:"exact,omitempty"`
	ServiceAccount string `json:"serviceAccount,omitempty"`
	Health         Health `json:"health,omitempty"`
	// Registered is when this registration was made, in milliseconds since 1970, by the clock of
	// its registry; zero if unknown. A process that starts anew at its address registers anew, and
	// the registry may list the one before for as long as its lease lasts.
	Registered int64 `json:"registered,omitempty"`
}

// Equal reports whether e and o are equal.
func (e Endpoint) Equal(o Endpoint) bool {
	return e.Address == o.Address && e.Also.Equal(o.Also) && e.Ports.Equal(o.Ports) && e.Exact == o.Exact && e.Labels.Equal(o.Labels) &&
		e.Network == o.Network && e.Locality == o.Locality && e.Node == o.Node && e.Weight == o.Weight &&
		e.ServiceAccount == o.ServiceAccount && e.Health == o.Health && e.Registered == o.Registered
}

// EqualSpec implements [Spec].
func (e Endpoint) EqualSpec(spec Spec) bool {
	o, ok := spec.(Endpoint)
	return ok && e.Equal(o)
}

// Workload is a WorkloadEntry: an endpoint that any service of its namespace may select by
// label. The labels of the specification and of the object are joined; the object's win, as
// in Istio.
type Workload struct {
	Meta
	Endpoint Endpoint `json:"endpoint"`
	// Only are the hosts that it may serve, in the form that [HostWithin] takes; empty means
	// any. The confining configuration sets it, not a registry.
	Only List[string] `json:"only,omitzero"`
}

// EqualSpec implements [Spec].
func (w Workload) EqualSpec(spec Spec) bool {
	o, ok := spec.(Workload)
	return ok && w.SameMeta(o.Meta) && w.Endpoint.Equal(o.Endpoint) && w.Only.Equal(o.Only)
}

// Scope is the part of a Sidecar about the services that workloads use. The other fields of
// a Sidecar are carried along.
type Scope struct {
	Meta
	// WorkloadSelector picks workloads of the scope's namespace; empty means all.
	WorkloadSelector Labels `json:"workloadSelector,omitzero"`
	// Hosts are the hosts that its workloads may see, each "namespace/host". "." is the
	// workload's own namespace, "*" any, "~" none; a host may begin with "*.", or be "*".
	Hosts List[string] `json:"hosts,omitzero"`
	// Content is the whole specification as JSON. Its other fields are kept and have no
	// effect.
	Content string `json:"content,omitempty"`
}

// EqualSpec implements [Spec].
func (s Scope) EqualSpec(spec Spec) bool {
	o, ok := spec.(Scope)
	return ok && s.SameMeta(o.Meta) && s.WorkloadSelector.Equal(o.WorkloadSelector) &&
		s.Hosts.Equal(o.Hosts) && s.Content == o.Content
}

// ServiceName is how records of other kinds name a service.
type ServiceName struct {
	Namespace string `json:"namespace"`
	Host      string `json:"host"`
}

// Consumption lists the services that a consumer uses, as far as its registry knows. It
// grants and hides nothing by itself.
type Consumption struct {
	Consumer  ServiceName       `json:"consumer"`
	Providers List[ServiceName] `json:"providers,omitzero"`
}

// EqualSpec implements [Spec].
func (c Consumption) EqualSpec(spec Spec) bool {
	o, ok := spec.(Consumption)
	return ok && c.Consumer == o.Consumer && c.Providers.Equal(o.Providers)
}

// SourceMark marks that a source has delivered a complete listing. A record of the commit
// that made the mark, or of an earlier one, is part of the listing. The mark changes only
// with judgements about the source's objects in other systems, when the source leaves the
// configuration, and when an operator holds the source.
type SourceMark struct {
	Judgements Judgements `json:"judgements,omitzero"`
	Departure  Departure  `json:"departure,omitzero"`
	// HoldUntil is when an operator's hold of the source ends; zero without one.
	HoldUntil time.Time `json:"holdUntil,omitzero"`
	// StaleSince is since when the source cannot be read, once that has lasted for the time of its hold; else zero.
	// Until the source is read again, its endpoints have the health that other sources know.
	StaleSince time.Time `json:"staleSince,omitzero"`
}

// EqualSpec implements [Spec].
func (s SourceMark) EqualSpec(spec Spec) bool {
	o, ok := spec.(SourceMark)
	return ok && s.Judgements.Equal(o.Judgements) && s.Departure.Equal(o.Departure) && s.HoldUntil.Equal(o.HoldUntil) && s.StaleSince.Equal(o.StaleSince)
}

// Departure is the progress of a source that leaves the configuration while others take its
// place. It is zero for a source that is in the configuration, or leaves alone.
type Departure struct {
	// Successors are the sources that its records wait for.
	Successors List[string] `json:"successors,omitzero"`
	// Since is when the successors were found to list too little; zero if they were not.
	Since time.Time `json:"since,omitzero"`
	// Share, Min and For are the source's settings for that decision.
	Share float64       `json:"share,omitzero"`
	Min   uint32        `json:"min,omitzero"`
	For   time.Duration `json:"for,omitzero"`
}

// Equal reports whether both say the same.
func (d Departure) Equal(o Departure) bool {
	return d.Successors.Equal(o.Successors) && d.Since.Equal(o.Since) && d.Share == o.Share && d.Min == o.Min && d.For == o.For
}

// Opaque is a specification that Isthmus carries byte for byte, without
// understanding it.
type Opaque struct {
	// Meta is the object's metadata beside the content; empty where the content contains it.
	Meta
	// Type names the encoding of the content where it needs a name, such as the
	// type URL of a message.
	Type string
	// Content is the encoded specification, held as an immutable string. It is JSON where the
	// record was stored by an Isthmus that understands the kind.
	Content string
}

// OpaqueOf returns an opaque specification with a copy of content.
func OpaqueOf(content []byte) Opaque { return Opaque{Content: string(bytes.Clone(content))} }

// EqualSpec implements [Spec].
func (q Opaque) EqualSpec(spec Spec) bool {
	o, ok := spec.(Opaque)
	return ok && q.SameMeta(o.Meta) && q.Type == o.Type && q.Content == o.Content
}
