package catalog

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/isthmus-mesh/isthmus/catalog/addresses"
	"github.com/isthmus-mesh/isthmus/catalog/owner"
	"github.com/isthmus-mesh/isthmus/catalog/ports"
	"github.com/isthmus-mesh/isthmus/internal/order"
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
		order.TrueFirst(m.gives(a.ref.Source, host), m.gives(b.ref.Source, host)), cmp.Compare(a.rank, b.rank), cmp.Compare(a.ref.Source, b.ref.Source),
		order.TrueFirst(!a.held, !b.held), owner.CompareAges(m.age(a), m.age(b)), a.ref.Compare(b.ref),
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
	list := make([]ports.Record, len(records))
	for i, r := range records {
		list[i] = ports.Record{Ref: r.ref, Path: r.path, Service: &r.spec}
	}
	union := ports.Of(list)
	d.Ports, d.others, d.portPaths, d.Conflicts = union.Ports, union.Others, union.Paths, append(d.Conflicts, union.Conflicts...)
	var taken []*serviceRecord
	for i, r := range records {
		c := Contributor{Record: r.ref, Path: r.path, Place: r.place, Stale: r.status.Stale, Since: r.status.Since}
		takes, lost := union.Part(i)
		if lost != nil {
			d.Conflicts = append(d.Conflicts, *lost)
		}
		if !takes {
			c.LeftOut = lost.Reason
		} else {
			taken = append(taken, r)
			d.Conflicts = append(d.Conflicts, compareDefinitions(first, r)...)
			// One record without ClusterLocal must not send clients to another cluster.
			d.Traffic.ClusterLocal = d.Traffic.ClusterLocal || r.spec.Traffic.ClusterLocal
		}
		d.Records = append(d.Records, c)
	}
	m.uniteAddresses(key, d, taken)
	slices.SortFunc(d.Conflicts, func(a, b Conflict) int {
		return cmp.Or(a.Lost.Compare(b.Lost), cmp.Compare(a.Field, b.Field))
	})
	return d, taken
}

// uniteAddresses gives a service the addresses of its records.
func (m *merging) uniteAddresses(key ServiceKey, d *Definition, taken []*serviceRecord) {
	list := make([]addresses.Record, len(taken))
	for i, r := range taken {
		list[i] = addresses.Record{Ref: r.ref, Far: r.path != "", Cluster: r.spec.Cluster, Addresses: r.spec.Addresses, Standing: d.Standing}
		if r.ref.Source != d.Source && r.spec.Addresses.Len() > 0 {
			list[i].Standing = m.standing(key, r)
		}
	}
	var lost []addresses.Lost
	d.Base, d.ByCluster, lost = addresses.Unite(list)
	for _, l := range lost {
		kept := taken[slices.IndexFunc(taken, func(r *serviceRecord) bool { return r.ref == l.Kept })]
		by := taken[slices.IndexFunc(taken, func(r *serviceRecord) bool { return r.ref == l.By })]
		d.Conflicts = append(d.Conflicts, conflict("addresses", kept, by, strings.Join(kept.spec.Addresses.Slice(), ","), strings.Join(l.Addresses, ",")))
	}
}

// compareDefinitions lists the contradictions between a later record and the first.
func compareDefinitions(first, later *serviceRecord) []Conflict {
	var found []Conflict
	differ := func(field string, kept, lost string) {
		if kept != lost {
			found = append(found, conflict(field, first, later, kept, lost))
		}
	}
	list := func(l model.List[string]) string { return strings.Join(l.Slice(), ",") }
	differ("exportTo", list(first.spec.ExportTo), list(later.spec.ExportTo))
	differ("location", string(first.spec.Location), string(later.spec.Location))
	differ("subjectAltNames", list(first.spec.SubjectAltNames), list(later.spec.SubjectAltNames))
	differ("traffic", first.spec.Traffic.String(), later.spec.Traffic.String())
	return found
}

func conflict(field string, kept, lost *serviceRecord, keptValue, lostValue string) Conflict {
	return Conflict{Field: field, Kept: kept.ref, Lost: lost.ref, Reason: fmt.Sprintf("%q is kept over %q", keptValue, lostValue)}
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
