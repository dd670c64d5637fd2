package catalog

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/isthmus-mesh/isthmus/model"
)

// serviceRecord is a Service record as the builder holds it.
type serviceRecord struct {
	ref    model.Ref
	place  string
	path   model.Path
	status model.Status
	spec   model.Service
	rank   int
	held   bool // its source does not list it

	foundBy pair // the label by which workloads find it; zero if it selects none
}

// written returns the host of a service as the record writes it.
func (r *serviceRecord) written(key ServiceKey) string {
	for host := range r.spec.Hosts.All() {
		if model.Name(host) == key.Host {
			return host
		}
	}
	return key.Host
}

// compareAt is the merge order of two records of a host: first a record of the source that was given
// the host, then by rank. Within a source a listed record comes before a held one, then the older
// where an API server vouches for the age, then by name.
func (m *merging) compareAt(host string, a, b *serviceRecord) int {
	return cmp.Or(
		trueFirst(m.gives(a.ref.Source, host), m.gives(b.ref.Source, host)), cmp.Compare(a.rank, b.rank), cmp.Compare(a.ref.Source, b.ref.Source),
		trueFirst(!a.held, !b.held), compareAges(m.age(a), m.age(b)), a.ref.Compare(b.ref),
	)
}

// at returns the merge order of the records of a service.
func (m *merging) at(key ServiceKey) func(a, b *serviceRecord) int {
	return func(a, b *serviceRecord) int { return m.compareAt(key.Host, a, b) }
}

func (m *merging) age(r *serviceRecord) int64 { return m.vouched(r.ref.Source, r.path, r.spec.Created) }

// define merges the records of one service, given in merge order. It returns the definition
// and the records that take part in it.
func (m *merging) define(key ServiceKey, records []*serviceRecord) (*Definition, []*serviceRecord) {
	first := records[0]
	d := &Definition{
		Meta:            first.spec.Meta,
		Location:        first.spec.Location,
		Resolution:      first.spec.Resolution,
		ExportTo:        first.spec.ExportTo,
		SubjectAltNames: first.spec.SubjectAltNames,
		Traffic:         first.spec.Traffic,
		Standing:        m.standing(key, first),
		written:         first.written(key),
	}
	m.keepHome(key, d, first.ref)
	if slices.ContainsFunc(records, func(r *serviceRecord) bool { return r.path != "" }) {
		d.portPaths = map[uint32]model.Path{}
	}
	addresses := addressesOf(d, first)
	var taken []*serviceRecord
	for _, r := range records {
		c := Contributor{Record: r.ref, Path: r.path, Place: r.place, Stale: r.status.Stale, Since: r.status.Since}
		if r.spec.Resolution != first.spec.Resolution {
			c.LeftOut = fmt.Sprintf("its resolution is %s, that of %s is %s", r.spec.Resolution, first.ref, first.spec.Resolution)
			d.Conflicts = append(d.Conflicts, Conflict{"resolution", first.ref, r.ref, c.LeftOut})
		} else {
			taken = append(taken, r)
			d.Conflicts = append(d.Conflicts, compareDefinitions(first, r, addresses.add(r))...)
			// One record without ClusterLocal must not send clients to another cluster.
			d.Traffic.ClusterLocal = d.Traffic.ClusterLocal || r.spec.Traffic.ClusterLocal
		}
		d.Records = append(d.Records, c)
	}
	unitePorts(d, taken)
	slices.SortFunc(d.Ports, func(a, b model.Port) int { return cmp.Compare(a.Number, b.Number) })
	slices.SortFunc(d.Conflicts, func(a, b Conflict) int {
		return cmp.Or(a.Lost.Compare(b.Lost), cmp.Compare(a.Field, b.Field))
	})
	return d, taken
}

// unitePorts unites the ports of some records into the definition, by number. UDP never takes a
// number from TCP.
func unitePorts(d *Definition, records []*serviceRecord) {
	definedBy := map[uint32]*serviceRecord{}
	for _, udp := range []bool{false, true} {
		for _, r := range records {
			for port := range r.spec.Ports.All() {
				if port.IsUDP() == udp && !(udp && r.hasTCP(port.Number)) {
					addPort(d, r, port, definedBy)
				}
			}
		}
	}
}

// hasTCP reports whether a record has a port of that number for anything but UDP.
func (r *serviceRecord) hasTCP(number uint32) bool {
	for port := range r.spec.Ports.All() {
		if port.Number == number && !port.IsUDP() {
			return true
		}
	}
	return false
}

func addPort(d *Definition, r *serviceRecord, port model.Port, definedBy map[uint32]*serviceRecord) {
	notePath(d, r, port)
	port.Path = ""
	by, ok := definedBy[port.Number]
	if !ok {
		definedBy[port.Number] = r
		d.Ports = append(d.Ports, port)
		return
	}
	kept := d.Ports[slices.IndexFunc(d.Ports, func(p model.Port) bool { return p.Number == port.Number })]
	for field, pair := range map[string][2]string{"name": {kept.Name, port.Name}, "protocol": {kept.Protocol, port.Protocol}} {
		if pair[0] != pair[1] {
			d.Conflicts = append(d.Conflicts, conflict(fmt.Sprintf("ports[%d].%s", port.Number, field), by, r, pair[0], pair[1]))
		}
	}
}

// notePath records the path of a port. The shortest path counts, regardless of the source
// that defines the attributes.
func notePath(d *Definition, r *serviceRecord, port model.Port) {
	if d.portPaths == nil {
		return // all records come from registries of this Isthmus
	}
	path := cmp.Or(port.Path, r.path)
	if known, ok := d.portPaths[port.Number]; !ok || path.Compare(known) < 0 {
		d.portPaths[port.Number] = path
	}
}

// compareDefinitions lists the contradictions between a later record and the first. Its
// addresses are compared with the record that supplies the addresses of its cluster, which may be
// itself.
func compareDefinitions(first, later, addressed *serviceRecord) []Conflict {
	var found []Conflict
	differ := func(field string, kept, lost string) {
		if kept != lost {
			found = append(found, conflict(field, first, later, kept, lost))
		}
	}
	list := func(l model.List[string]) string { return strings.Join(l.Slice(), ",") }
	if kept, lost := list(addressed.spec.Addresses), list(later.spec.Addresses); addressed != later && kept != lost {
		found = append(found, conflict("addresses", addressed, later, kept, lost))
	}
	differ("exportTo", list(first.spec.ExportTo), list(later.spec.ExportTo))
	differ("location", string(first.spec.Location), string(later.spec.Location))
	differ("subjectAltNames", list(first.spec.SubjectAltNames), list(later.spec.SubjectAltNames))
	differ("traffic", first.spec.Traffic.String(), later.spec.Traffic.String())
	return found
}

func conflict(field string, kept, lost *serviceRecord, keptValue, lostValue string) Conflict {
	return Conflict{field, kept.ref, lost.ref, fmt.Sprintf("%q is kept over %q", keptValue, lostValue)}
}

// isDNS reports whether the addresses of a service's endpoints are names to resolve.
func isDNS(r model.Resolution) bool {
	return r == model.ResolutionDNS || r == model.ResolutionDNSRoundRobin || r == model.ResolutionDynamicDNS
}

// portAt returns the port of an instance for a port of its service, and whether the
// instance serves that port at all.
func portAt(port model.Port, instance *Instance) (uint32, bool) {
	own, named := instance.Ports.Get(port.Name)
	if !named && port.TargetName != "" {
		own, named = instance.Ports.Get(port.TargetName)
	}
	switch {
	case !named && (instance.Exact || port.TargetName != ""):
		return 0, false
	case strings.HasPrefix(instance.Address, "unix://"):
		return 0, true
	case named:
		return own, true
	case port.TargetPort != 0:
		return port.TargetPort, true
	default:
		return port.Number, true
	}
}
