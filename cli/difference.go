package cli

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/isthmus-mesh/isthmus/admin"
	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/config"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output/xds"
	"github.com/isthmus-mesh/isthmus/source"
)

// difference is the objects that a reload to another configuration removes or takes, and the
// hosts whose calls it divides otherwise.
type difference struct {
	Changes []diffChange `json:"changes"`
	Added   []string     `json:"added"` // sources with unknown services
	// Splits are the splits that it adds, changes or removes.
	Splits []splitChange `json:"splits"`
}

// diffChange is an object that is removed from its owner or goes to another one.
type diffChange struct {
	Change    string `json:"change"` // removed or taken
	Kind      string `json:"kind"`   // source, part, service, definition, host, address, connections or listener
	Name      string `json:"name"`   // of the service, the source or the field; or the address
	Namespace string `json:"namespace,omitempty"`
	From      string `json:"from"`
	To        string `json:"to,omitempty"` // the new owner
	Reason    string `json:"reason"`
}

const (
	removed = "removed"
	taken   = "taken"
)

// differenceOf compares the configuration in use with the wanted one, given all services. The
// catalog merges their records under both, so it decides who owns a thing.
func differenceOf(now admin.Config, services []admin.Service, wanted *config.Config) difference {
	d := difference{Changes: []diffChange{}, Added: []string{}, Splits: splitChanges(now.Splits, wanted)}
	current, after := &config.Config{}, map[string]config.Source{}
	for _, s := range now.Sources {
		current.Sources = append(current.Sources, config.Source{Name: s.Name, Kind: s.Kind, Only: s.Only, Owns: s.Owns})
	}
	for _, s := range wanted.Sources {
		after[s.Name] = s
		if !slices.ContainsFunc(now.Sources, func(o admin.ConfigSource) bool { return o.Name == s.Name }) {
			d.Added = append(d.Added, s.Name)
		}
	}
	d.compareSources(now, after)

	var all, left []model.Event
	lost := map[catalog.ServiceKey]lostParts{}
	for _, s := range services {
		before := len(left)
		for i, name := range s.Sources {
			rec := recordOf(s, name, ownAddresses(s, i))
			all = append(all, model.Upsert{Record: rec})
			if i > 0 && len(left) == before {
				rec = recordOf(s, name, model.ListOf(s.Addresses...)) // it may have the addresses of a source that goes
			}
			if reason := excludes(after, rec, ownAddresses(s, i)); reason != "" {
				key := catalog.KeyOf(s.Namespace, s.Host)
				lost[key] = lostParts{append(lost[key].sources, name), append(lost[key].reasons, reason)}
				continue
			}
			left = append(left, model.Upsert{Record: rec})
		}
	}
	to := wanted.Order()
	from := current.Order()
	from.Domains = to.Domains // the process does not show its own
	was, kept, is := merged(from, all), merged(from, left), merged(to, left)
	for s := range was.Services() {
		d.compareService(s, kept, is, lost[s.Key])
	}
	d.compareOwners("host", func(string) catalog.Asked { return catalog.Name }, hostsOf(was), hostsOf(is))
	d.compareOwners("address", func(address string) catalog.Asked { return catalog.At("", address) }, addressesOf(was), addressesOf(is))
	d.compareListeners(now.Listen, wanted.Listeners())
	d.compareUnaddressed(services, wanted)
	return d
}

// lostParts are the sources that no longer list a service, and why.
type lostParts struct{ sources, reasons []string }

func (l lostParts) why() string { return strings.Join(l.reasons, "; ") }

// ownAddresses are the addresses that the source at a place in the merge order has in its own right, as far as is known.
func ownAddresses(s admin.Service, at int) model.List[string] {
	return model.ListOf(slices.DeleteFunc(slices.Clone(s.Addresses), func(address string) bool {
		of, another := s.AddressesOf[address]
		return another && of != s.Sources[at] || !another && at > 0
	})...)
}

// recordOf is a service as one of its sources lists it.
func recordOf(s admin.Service, source string, addresses model.List[string]) model.Record {
	ports := make([]model.Port, len(s.Ports))
	for i, p := range s.Ports {
		ports[i] = model.Port{Number: p.Number, Name: p.Name, Protocol: p.Protocol}
	}
	return model.Record{
		Ref:  model.Ref{Kind: model.KindService, Key: model.Key{Source: source, Namespace: s.Namespace, Name: s.Host}},
		Spec: model.Service{Hosts: model.ListOf(s.Host), Addresses: addresses, Ports: model.ListOf(ports...)},
	}
}

func merged(order catalog.Order, events []model.Event) *catalog.Snapshot {
	b := catalog.NewBuilderIn(order)
	b.Apply(1, events)
	return b.Snapshot()
}

// excludes says why a source does not list a service with some addresses any more; empty if it does.
func excludes(after map[string]config.Source, rec model.Record, addresses model.List[string]) string {
	of, stays := after[rec.Source]
	if !stays {
		return fmt.Sprintf("source %s leaves", rec.Source)
	}
	if spec, ok := rec.Spec.(model.Service); ok {
		spec.Addresses = addresses
		rec.Spec = spec
	}
	if reason := of.Only.Excludes(rec); reason != "" {
		return fmt.Sprintf("only of %s excludes it: %s", rec.Source, reason)
	}
	return ""
}

// compareSources notes sources that leave, and rights that apply to endpoints, which the
// list of services does not contain.
func (d *difference) compareSources(now admin.Config, after map[string]config.Source) {
	for _, s := range now.Sources {
		of, stays := after[s.Name]
		switch {
		case !stays:
			d.add(removed, "source", s.Name, "", s.Name, "", "the file does not name the source")
		case of.Kind != s.Kind:
			d.add(removed, "source", s.Name, "", s.Name, "", fmt.Sprintf("the file makes it a source of kind %s, so all its records are read anew", of.Kind))
		case s.LocalAddresses == source.AllowLocal && of.LocalAddresses == source.RejectLocal:
			d.add(removed, "part", "endpoints at local addresses", "", s.Name, "", "localAddresses of the source becomes reject")
		}
	}
}

// compareService notes a service that goes, one that another source defines, and the parts of
// others that go. Kept has the services that stay, under the order in use.
func (d *difference) compareService(was *catalog.Service, kept, is *catalog.Snapshot, lost lostParts) {
	next, stays := is.Service(was.Key)
	before, _ := kept.Service(was.Key)
	switch {
	case !stays:
		d.add(removed, "service", was.Key.Host, was.Key.Namespace, strings.Join(lost.sources, ","), "", lost.why())
	case slices.Contains(lost.sources, was.Source):
		d.add(taken, "definition", was.Key.Host, was.Key.Namespace, was.Source, next.Source, lost.why())
	case before.Source != next.Source && next.Given:
		d.add(taken, "definition", was.Key.Host, was.Key.Namespace, was.Source, next.Source, fmt.Sprintf("owns of %s has the host", next.Source))
	case before.Source != next.Source:
		d.add(taken, "definition", was.Key.Host, was.Key.Namespace, was.Source, next.Source, fmt.Sprintf("%s goes before %s", next.Source, was.Source))
	case len(lost.sources) > 0:
		d.add(removed, "part", was.Key.Host, was.Key.Namespace, strings.Join(lost.sources, ","), "", lost.why()+": endpoints that no other source lists go")
	}
}

// owners are the services that ask for one thing, by its name.
type owners map[string][]*catalog.Service

// hostsOf are the services of hosts.
func hostsOf(s *catalog.Snapshot) owners {
	all := owners{}
	for service := range s.Services() {
		all[service.Key.Host] = append(all[service.Key.Host], service)
	}
	return all
}

func addressesOf(s *catalog.Snapshot) owners {
	all := owners{}
	for service := range s.Services() {
		for address := range service.Base.Addresses.All() {
			all[address] = append(all[address], service)
		}
	}
	return all
}

// compareOwners notes things that go to another service, for workloads of third namespaces.
func (d *difference) compareOwners(kind string, asked func(string) catalog.Asked, was, is owners) {
	owner := func(name string, list []*catalog.Service) *catalog.Service {
		return slices.MinFunc(list, func(a, b *catalog.Service) int {
			return asked(name).Owner("", a.ServiceDefinition, b.ServiceDefinition)
		})
	}
	for _, name := range slices.Sorted(maps.Keys(is)) {
		if len(was[name]) < 2 {
			continue
		}
		if old, next := owner(name, was[name]), owner(name, is[name]); old.Key != next.Key {
			d.add(taken, kind, name, old.Key.Namespace, of(old), of(next), "the rights or the order of sources change, or the owner goes")
		}
	}
}

// of names a service with its sources.
func of(s *catalog.Service) string {
	return fmt.Sprintf("%s/%s of %s", s.Key.Namespace, s.Key.Host, strings.Join(s.Sources(), ","))
}

// compareListeners notes addresses that a restart would no longer listen at.
func (d *difference) compareListeners(now, wanted map[string]string) {
	for _, field := range slices.Sorted(maps.Keys(now)) {
		if to, stays := wanted[field]; !stays || to != now[field] {
			d.add(removed, "listener", field, "", now[field], to, "the file has another address or none; a running Isthmus keeps it until a restart")
		}
	}
}

// compareUnaddressed notes ports of services without an address that lose the connections to
// addresses of no service.
func (d *difference) compareUnaddressed(services []admin.Service, wanted *config.Config) {
	for _, o := range wanted.Outputs {
		settings, ok := o.Settings.(*xds.Config)
		if !ok || settings.Envoy == nil {
			continue
		}
		takes := settings.Envoy.TakeUnaddressed()
		for _, s := range services {
			for _, c := range s.Conflicts {
				if port, unaddressed := strings.CutSuffix(c.Field, "].unaddressed"); unaddressed && !takes(s.Host) {
					d.add(removed, "connections", s.Host+":"+strings.TrimPrefix(port, "ports["), s.Namespace, c.Kept, "",
						"unaddressed of the file is none, so connections to addresses of no service go where they are addressed; give it an address, or unaddressed: all")
				}
			}
		}
	}
}

func (d *difference) add(change, kind, name, namespace, from, to, reason string) {
	d.Changes = append(d.Changes, diffChange{change, kind, name, namespace, from, to, reason})
}
