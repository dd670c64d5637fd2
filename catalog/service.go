package catalog

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/isthmus-mesh/isthmus/catalog/ip"
	"github.com/isthmus-mesh/isthmus/catalog/moment"
	"github.com/isthmus-mesh/isthmus/catalog/ports"
	"github.com/isthmus-mesh/isthmus/catalog/split"
	"github.com/isthmus-mesh/isthmus/model"
)

// ServiceKey is the identity of a service. Its host is a [model.Name].
type ServiceKey struct{ Namespace, Host string }

// KeyOf returns the key of a service in a namespace, whose host may be written in any way.
func KeyOf(namespace, host string) ServiceKey { return ServiceKey{namespace, model.Name(host)} }

// Compare orders by host first, so that the services that share a name on the wire are
// adjacent.
func (k ServiceKey) Compare(o ServiceKey) int {
	return cmp.Or(cmp.Compare(k.Host, o.Host), cmp.Compare(k.Namespace, o.Namespace))
}

func (k ServiceKey) String() string { return k.Namespace + "/" + k.Host }

// ServiceDefinition is a service without its endpoints.
type ServiceDefinition struct {
	Key ServiceKey
	// Definition stays the same pointer while only endpoints change.
	*Definition
}

func (n ServiceDefinition) defined() ServiceDefinition { return n }

// Written returns the host as the record that defines the service writes it. Other systems are
// given this form: Istio takes hosts for one only if they are written alike.
func (n ServiceDefinition) Written() string { return cmp.Or(n.written, n.Key.Host) }

// Service is one merged service at one revision. It is immutable.
type Service struct {
	ServiceDefinition
	// Revision is the revision of the commit that last changed the service.
	Revision uint64
	// Changed is the time of that commit. It is zero for a service that has not changed since
	// its snapshot of the store, such as one restored from disk.
	Changed time.Time

	endpoints map[uint32]*Endpoints // by service port number; never written once shared
	joined    map[uint32]*Endpoints // the same without a split
	divided   map[uint32]*division  // by port; nil without a split
}

// Endpoints returns the endpoints that serve a port of the service; nil when
// there are none. It stays the same pointer while none of them changes.
func (s *Service) Endpoints(port uint32) *Endpoints { return s.endpoints[port] }

// Joined returns the endpoints that records have at a port, with their own weights, also
// those that a split leaves out. It is the same as [Service.Endpoints] without a split.
func (s *Service) Joined(port uint32) *Endpoints { return s.joined[port] }

// Shares returns the shares of the backends at a port, in the order of the split; nil if the
// service has no split, or no endpoint there.
func (s *Service) Shares(port uint32) []split.Share { return s.divided[port].shares(s.Split) }

// IsDivided reports whether the shares of the split have effect at a port. They have none
// while no backend with a share has a healthy endpoint there: then all endpoints are served.
func (s *Service) IsDivided(port uint32) bool {
	d := s.divided[port]
	return d != nil && d.isEffective()
}

// Counts returns the number of endpoints of the service, across its ports. An address
// counts as often as a single port is served there: once, unless several instances share a
// machine.
func (s *Service) Counts() (healthy, total int) {
	if len(s.endpoints) == 1 { // the counts are stored; skip the walk
		for _, e := range s.endpoints {
			return e.Healthy, e.Total
		}
	}
	most := map[string]EndpointCounts{} // per address, the maximum over the ports
	for _, e := range s.endpoints {
		for address, at := range e.byAddress() {
			most[address] = EndpointCounts{Total: max(most[address].Total, at.Total), Healthy: max(most[address].Healthy, at.Healthy)}
		}
	}
	for _, at := range most {
		healthy, total = healthy+at.Healthy, total+at.Total
	}
	return healthy, total
}

// Definition is a service without its endpoints. It is immutable.
type Definition struct {
	// Meta are the labels, annotations and creation time of the record that defines the
	// service, the first of Records.
	Meta model.Meta
	// Base are the addresses in the cluster that the first record with addresses names, if it is the first
	// record of the service. Otherwise they are the addresses without a cluster.
	Base ClusterAddresses
	// ByCluster are the addresses in other clusters, by cluster.
	ByCluster []ClusterAddresses
	Ports     []model.Port // by number
	Location  model.Location
	// Resolution is that of the first record: see [Definition.ResolutionAt].
	Resolution model.Resolution
	// ExportTo is the service's own namespace at most if the host belongs to another one: see
	// [Order].
	ExportTo        model.List[string]
	SubjectAltNames model.List[string]
	Traffic         model.Traffic
	Split           *split.Split // nil without one
	// SplitRecords are the records of the kind Split for the host. The configuration's split
	// comes before all of them.
	SplitRecords []Contributor
	// Records are the records of the service, in merge order.
	Records   []Contributor
	Conflicts []Conflict
	Standing

	others    map[uint32]model.Resolution // of the ports with another resolution than the first record's
	written   string                      // the host in the first record
	portPaths map[uint32]model.Path       // the shortest path of a record with the port; nil if all are empty
}

// Path returns the path of the record that defines the service.
func (d *Definition) Path() model.Path { return d.Records[0].Path }

// PortPath returns the shortest path of a port.
func (d *Definition) PortPath(number uint32) model.Path { return d.portPaths[number] }

// ResolutionAt returns the resolution of a port, which is that of the record that defines the port.
func (d *Definition) ResolutionAt(number uint32) model.Resolution {
	if r, other := d.others[number]; other {
		return r
	}
	return d.Resolution
}

// SameResolutions reports whether both have the same resolution at each port.
func (d *Definition) SameResolutions(o *Definition) bool {
	return d.Resolution == o.Resolution && maps.Equal(d.others, o.others)
}

// Port returns the port with that number.
func (d *Definition) Port(number uint32) (model.Port, bool) {
	at, ok := slices.BinarySearchFunc(d.Ports, number, func(p model.Port, n uint32) int { return cmp.Compare(p.Number, n) })
	if !ok {
		return model.Port{}, false
	}
	return d.Ports[at], true
}

// Sources names the sources with records that make up the service, in merge order.
func (d *Definition) Sources() []string {
	var names []string
	for _, c := range d.Records {
		if c.LeftOut == "" && !slices.Contains(names, c.Record.Source) {
			names = append(names, c.Record.Source)
		}
	}
	return names
}

// VisibleTo reports whether workloads of a namespace may see the service that has this
// definition and is in the namespace home. An empty namespace is the namespace of a client
// without a declared one: it sees only services exported to all. The words "*", "." and "~"
// (none) stand for namespaces and are never names of namespaces.
func (d *Definition) VisibleTo(namespace, home string) bool {
	if d.ExportTo.Len() == 0 {
		return true
	}
	for to := range d.ExportTo.All() {
		if to == "*" || namespace != "" && exportedTo(to, namespace, home) {
			return true
		}
	}
	return false
}

func exportedTo(to, namespace, home string) bool {
	switch to {
	case "~":
		return false
	case ".":
		return namespace == home
	default:
		return namespace == to
	}
}

func (d *Definition) equal(o *Definition) bool {
	return d.Meta.SameMeta(o.Meta) && d.written == o.written && d.SameAddresses(o) && slices.Equal(d.Ports, o.Ports) &&
		d.Location == o.Location && d.SameResolutions(o) && d.Standing == o.Standing &&
		d.ExportTo.Equal(o.ExportTo) && d.SubjectAltNames.Equal(o.SubjectAltNames) && d.Traffic == o.Traffic && d.Split.Equal(o.Split) &&
		slices.EqualFunc(d.SplitRecords, o.SplitRecords, Contributor.equal) &&
		maps.Equal(d.portPaths, o.portPaths) && slices.EqualFunc(d.Records, o.Records, Contributor.equal) && slices.Equal(d.Conflicts, o.Conflicts)
}

// Contributor is a record of a service.
type Contributor struct {
	Record model.Ref
	Path   model.Path
	Place  string
	// LeftOut is why the record has no part in the service; empty if it has.
	LeftOut string
	// Stale is why the record is not its source's newest version; Since when.
	Stale string
	Since time.Time
}

func (c Contributor) equal(o Contributor) bool {
	return c.Record == o.Record && c.Path == o.Path && c.Place == o.Place && c.LeftOut == o.LeftOut &&
		c.Stale == o.Stale && c.Since.Equal(o.Since)
}

// Conflict is a contradiction between two records, with its winner.
type Conflict = ports.Conflict

// EndpointID identifies an endpoint of a service by the service port that it serves and its network,
// address and port.
type EndpointID struct {
	ServicePort uint32
	Address     string // in the form of [ip.Place]; of an endpoint without one, its record after "@"
	Port        uint32 // zero for unix sockets
	Network     string // empty if no record names one
}

// Endpoint is a network, address and port that serve a port of a service.
type Endpoint struct {
	Port uint32 // zero for unix sockets
	// Network is that of the record, or else the one that others name at its address; empty for none.
	Network string
	*Instance
}

// ID identifies the endpoint at a port of its service.
func (e Endpoint) ID(servicePort uint32) EndpointID {
	return EndpointID{servicePort, e.place(), e.Port, e.Network}
}

// Instance is a record of an address at which a service runs, in canonical form. It is immutable.
type Instance struct {
	Record model.Ref
	model.Endpoint
	// Path is the path of the record. It is empty for a workload.
	Path    model.Path
	divided bool          // its weight is that of a division
	owner   uint32        // length of the owning service's name, which begins the record's name
	changed moment.Moment // when the record came or its content last changed
}

// Changed returns the time of the commit with which the record came, its content last
// changed, or another record of the same endpoint went. It is zero for a record that has not
// changed since its snapshot of the store, such as one restored from disk.
func (i *Instance) Changed() time.Time {
	return i.changed.Time()
}

func instanceOf(r *model.Record, spec model.Endpoint) *Instance {
	spec.Address, spec.Also = ip.Form(spec.Address), ip.Forms(spec.Also)
	i := &Instance{Record: r.Ref, Endpoint: spec, Path: r.Path}
	if owner := r.Owner; owner.Kind == model.KindService && strings.HasPrefix(r.Name, owner.Name+"/") {
		i.owner = uint32(len(owner.Name))
	}
	return i
}

func (e Endpoint) same(o Endpoint) bool { return e.Network == o.Network && e.Same(o.Instance) }

// stamp sets the time of a new instance. Other fields of a record can change while its instance stays
// the same.
func (i *Instance) stamp(old *Instance, committed time.Time) {
	i.changed = moment.Of(committed)
	if i.Same(old) {
		i.changed = old.changed
	}
}

// place returns the text by which endpoints are compared. Without an address, something stands behind the
// gateways of its network, and each record is an endpoint of its own.
func (i *Instance) place() string {
	if i.Address == "" {
		return ip.Unaddressed + i.Record.String()
	}
	return ip.Place(i.Address)
}

func (i *Instance) isIP() bool {
	_, is := ip.Canonical(i.Address)
	return is
}

// Owner returns the service record that the instance came with; zero if it stands alone.
func (i *Instance) Owner() model.Ref {
	if i.owner == 0 {
		return model.Ref{}
	}
	owner := model.Ref{Kind: model.KindService, Key: i.Record.Key}
	owner.Name = i.Record.Name[:i.owner]
	return owner
}

// Same reports whether both are the same content of the same record.
func (i *Instance) Same(o *Instance) bool {
	return i == o || i != nil && o != nil && i.Record == o.Record && i.owner == o.owner && i.Path == o.Path && i.Equal(o.Endpoint)
}

// adopt takes over the equal parts of was, if there is one, and returns the endpoints that
// differ.
func (s *Service) adopt(was *Service) map[EndpointID]struct{} {
	if was == nil {
		was = &Service{ServiceDefinition: ServiceDefinition{Definition: &Definition{}}}
	}
	if s.equal(was.Definition) {
		s.Definition = was.Definition
	}
	changed := reconcile(was.joined, s.joined)
	if s.divided == nil && was.divided == nil {
		return changed
	}
	if s.divided == nil {
		maps.Copy(changed, compare(was.endpoints, s.endpoints))
		return changed
	}
	maps.Copy(changed, reconcile(was.endpoints, s.endpoints))
	return changed
}

// allEndpoints returns the endpoints that the service joins or serves.
func (s *Service) allEndpoints() map[EndpointID]struct{} {
	all := compare(s.joined, nil)
	if s.divided != nil {
		maps.Copy(all, compare(s.endpoints, nil))
	}
	return all
}

// servesAs reports whether two definitions have the same effect on the workloads behind
// them.
func (d *Definition) servesAs(o *Definition) bool {
	return d.SameResolutions(o) && d.Standing == o.Standing &&
		slices.EqualFunc(d.Ports, o.Ports, func(a, b model.Port) bool { return a.Number == b.Number && a.Protocol == b.Protocol })
}

// unless returns old instead of the service if both are the same.
func (s *Service) unless(old *Service) *Service {
	if old != nil && s.Definition == old.Definition && sameEndpoints(s.endpoints, old.endpoints) && sameEndpoints(s.joined, old.joined) && maps.Equal(s.divided, old.divided) {
		return old
	}
	return s
}
