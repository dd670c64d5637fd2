package cli

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/isthmus-mesh/isthmus/admin"
	"github.com/isthmus-mesh/isthmus/config"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source"
)

// difference is the objects that a reload to another configuration removes or takes.
type difference struct {
	Changes []diffChange `json:"changes"`
	Added   []string     `json:"added"` // sources with unknown services
}

// diffChange is an object that is removed from its owner or goes to another one.
type diffChange struct {
	Change    string `json:"change"` // removed or taken
	Kind      string `json:"kind"`   // source, part, service, definition, host, address or listener
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

// differenceOf compares the configuration in use with the wanted one, given all services.
func differenceOf(now admin.Config, services []admin.Service, wanted *config.Config) difference {
	before, after := &grants{by: map[string]grant{}}, &grants{by: map[string]grant{}}
	for i, s := range now.Sources {
		before.by[s.Name] = grant{place: i, kind: s.Kind, only: s.Only, owns: s.Owns.Hosts, local: s.LocalAddresses}
	}
	for i, s := range wanted.Sources {
		after.by[s.Name] = grant{place: i, kind: s.Kind, only: s.Only, owns: s.Owns.Hosts, local: s.LocalAddresses}
	}
	d := difference{Changes: []diffChange{}, Added: []string{}}
	for _, s := range wanted.Sources {
		if _, known := before.by[s.Name]; !known {
			d.Added = append(d.Added, s.Name)
		}
	}
	d.compareSources(now, after)
	was, left := held(services), []holding{}
	for _, h := range was {
		kept := d.compareService(h, before, after)
		if len(kept.Sources) > 0 {
			left = append(left, kept)
		}
	}
	d.compareOwners("host", hostsOf(was), hostsOf(left), before.ofHost, after.ofHost)
	d.compareOwners("address", addressesOf(was), addressesOf(left), before.ofAddress, after.ofAddress)
	d.compareListeners(now.Listen, wanted.Listeners())
	return d
}

// grants are the rights of the sources of a configuration.
type grants struct{ by map[string]grant }

type grant struct {
	place int
	kind  string
	only  source.Only
	owns  []string
	local source.LocalAddresses
}

// place returns the place of a source in the order. Sources that are in no configuration
// come last.
func (g *grants) place(name string) int {
	if of, known := g.by[name]; known {
		return of.place
	}
	return len(g.by)
}

// owns reports whether a source was given a host.
func (g *grants) owns(name, host string) bool {
	return model.HostWithin(host, model.ListOf(g.by[name].owns...))
}

// inOrder sorts the sources of a service in merge order.
func (g *grants) inOrder(host string, sources []string) []string {
	sources = slices.Clone(sources)
	slices.SortStableFunc(sources, func(a, b string) int {
		return cmp.Or(trueFirst(g.owns(a, host), g.owns(b, host)), cmp.Compare(g.place(a), g.place(b)))
	})
	return sources
}

// ofHost orders two services of one host, for workloads of third namespaces.
func (g *grants) ofHost(a, b holding) int {
	return cmp.Or(trueFirst(g.owns(a.first(g), a.Host), g.owns(b.first(g), b.Host)), trueFirst(a.isHome(), b.isHome()), cmp.Compare(g.place(a.first(g)), g.place(b.first(g))))
}

// ofAddress orders two services with the same address.
func (g *grants) ofAddress(a, b holding) int {
	yields := func(h holding) bool { return g.by[h.first(g)].only.Yields() }
	return cmp.Or(trueFirst(yields(b), yields(a)), cmp.Compare(g.place(a.first(g)), g.place(b.first(g))))
}

func trueFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	default:
		return 1
	}
}

// holding is a service with the sources that list it.
type holding struct{ admin.Service }

// first returns the source that defines the service.
func (h holding) first(g *grants) string { return g.inOrder(h.Host, h.Sources)[0] }

// isHome reports whether the host names the namespace of the service, as
// NAME.NAMESPACE.svc.DOMAIN does.
func (h holding) isHome() bool {
	parts := strings.Split(h.Host, ".")
	return len(parts) > 3 && parts[1] == h.Namespace && strings.EqualFold(parts[2], "svc")
}

func held(services []admin.Service) (list []holding) {
	for _, s := range services {
		if len(s.Sources) > 0 {
			list = append(list, holding{s})
		}
	}
	return list
}

// compareSources notes sources that leave, and rights that apply to endpoints, which the
// list of services does not contain.
func (d *difference) compareSources(now admin.Config, after *grants) {
	for _, s := range now.Sources {
		of, stays := after.by[s.Name]
		switch {
		case !stays:
			d.add(removed, "source", s.Name, "", s.Name, "", "the file does not name the source")
		case of.kind != s.Kind:
			d.add(removed, "source", s.Name, "", s.Name, "", fmt.Sprintf("the file makes it a source of kind %s, so all its records are read anew", of.kind))
		case s.LocalAddresses == source.AllowLocal && of.local == source.RejectLocal:
			d.add(removed, "part", "endpoints at local addresses", "", s.Name, "", "localAddresses of the source becomes reject")
		}
	}
}

// compareService notes the sources that a service loses, and returns the service with the
// sources that stay.
func (d *difference) compareService(h holding, before, after *grants) holding {
	var stay, reasons []string
	for i, name := range h.Sources {
		if reason := after.loses(h, name, i == 0); reason != "" {
			reasons = append(reasons, reason)
			continue
		}
		stay = append(stay, name)
	}
	was := h.first(before)
	kept := h
	kept.Sources = stay
	if len(stay) == 0 {
		d.add(removed, "service", h.Host, h.Namespace, strings.Join(h.Sources, ","), "", strings.Join(reasons, "; "))
		return kept
	}
	is := kept.first(after)
	switch {
	case !slices.Contains(stay, was):
		d.add(taken, "definition", h.Host, h.Namespace, was, is, strings.Join(reasons, "; "))
	case before.inOrder(h.Host, stay)[0] != is:
		d.add(taken, "definition", h.Host, h.Namespace, was, is, after.why(is, was, h.Host))
	case len(reasons) > 0:
		gone := slices.DeleteFunc(slices.Clone(h.Sources), func(name string) bool { return slices.Contains(stay, name) })
		d.add(removed, "part", h.Host, h.Namespace, strings.Join(gone, ","), "", strings.Join(reasons, "; ")+": endpoints that no other source lists go")
	}
	return kept
}

// loses explains why a source no longer lists a service; empty if it still does. defines
// means that the service's addresses are the source's.
func (g *grants) loses(h holding, name string, defines bool) string {
	of, stays := g.by[name]
	if !stays {
		return fmt.Sprintf("source %s leaves", name)
	}
	spec := model.Service{Hosts: model.ListOf(h.Host)}
	if defines {
		spec.Addresses = model.ListOf(h.Addresses...)
	}
	rec := model.Record{Ref: model.Ref{Kind: model.KindService, Key: model.Key{Source: name, Namespace: h.Namespace, Name: h.Host}}, Spec: spec}
	if reason := of.only.Excludes(rec); reason != "" {
		return fmt.Sprintf("only of %s excludes it: %s", name, reason)
	}
	return ""
}

// why explains why one source precedes another.
func (g *grants) why(winner, loser, host string) string {
	if g.owns(winner, host) && !g.owns(loser, host) {
		return fmt.Sprintf("owns of %s has the host", winner)
	}
	return fmt.Sprintf("%s goes before %s", winner, loser)
}

// claims are the services that ask for one thing, by its name.
type claims map[string][]holding

// hostsOf groups services by host, ignoring case.
func hostsOf(list []holding) claims {
	all := claims{}
	for _, h := range list {
		all[strings.ToLower(h.Host)] = append(all[strings.ToLower(h.Host)], h)
	}
	return all
}

func addressesOf(list []holding) claims {
	all := claims{}
	for _, h := range list {
		for _, address := range h.Addresses {
			all[address] = append(all[address], h)
		}
	}
	return all
}

// compareOwners notes things that go to another service. Services that compare as equal keep
// their order, by namespace and host.
func (d *difference) compareOwners(kind string, was, left claims, before, after func(a, b holding) int) {
	for _, name := range slices.Sorted(maps.Keys(left)) {
		if len(was[name]) < 2 {
			continue
		}
		old, is := owner(was[name], before), owner(left[name], after)
		if old.Namespace == is.Namespace && old.Host == is.Host {
			continue
		}
		d.add(taken, kind, name, old.Namespace, of(old), of(is), "the rights or the order of sources change, or the owner goes")
	}
}

func owner(list []holding, order func(a, b holding) int) holding {
	return slices.MinFunc(list, func(a, b holding) int {
		return cmp.Or(order(a, b), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Host, b.Host))
	})
}

// of names a service with its sources.
func of(h holding) string {
	return fmt.Sprintf("%s/%s of %s", h.Namespace, h.Host, strings.Join(h.Sources, ","))
}

// compareListeners notes addresses that a restart would no longer listen at.
func (d *difference) compareListeners(now, wanted map[string]string) {
	for _, field := range slices.Sorted(maps.Keys(now)) {
		if to, stays := wanted[field]; !stays || to != now[field] {
			d.add(removed, "listener", field, "", now[field], to, "the file has another address or none; a running Isthmus keeps it until a restart")
		}
	}
}

func (d *difference) add(change, kind, name, namespace, from, to, reason string) {
	d.Changes = append(d.Changes, diffChange{change, kind, name, namespace, from, to, reason})
}
