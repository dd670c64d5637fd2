package model

// MergedSource is the source of all [KindMergedService] and [KindMergedEndpoint] records. The
// sources of the records that they are made of are part of their specifications.
const MergedSource = "merged"

// MergedService is a service that the records of all sources with its namespace and host make
// up. Its record has the host as its name.
type MergedService struct {
	Service
	// Sources of the records, in the order in which they count.
	Sources List[string] `json:"sources,omitzero"`
}

// EqualSpec implements [Spec].
func (s MergedService) EqualSpec(spec Spec) bool {
	o, ok := spec.(MergedService)
	return ok && s.Service.EqualSpec(o.Service) && s.Sources.Equal(o.Sources)
}

// MergedEndpoint is an address that serves a port of a [MergedService], which owns its record.
type MergedEndpoint struct {
	ServicePort uint32   `json:"servicePort"`
	Port        uint32   `json:"port,omitempty"` // zero for a unix socket
	Endpoint    Endpoint `json:"endpoint"`
	Source      string   `json:"source"` // of the first record with the address
	// ExportTo is the one of its service: who may see the service may see its endpoints.
	ExportTo List[string] `json:"exportTo,omitzero"`
}

// EqualSpec implements [Spec].
func (e MergedEndpoint) EqualSpec(spec Spec) bool {
	o, ok := spec.(MergedEndpoint)
	return ok && e.ServicePort == o.ServicePort && e.Port == o.Port && e.Endpoint.Equal(o.Endpoint) &&
		e.Source == o.Source && e.ExportTo.Equal(o.ExportTo)
}
