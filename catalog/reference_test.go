package catalog_test

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/isthmus-mesh/isthmus/catalog"
	tally "github.com/isthmus-mesh/isthmus/catalog/counts"
	"github.com/isthmus-mesh/isthmus/model"
)

// reason stands for any: the rules do not give its words.
const reason = "a reason"

// anyReason puts reason in the place of every reason given.
func (w world) anyReason() world {
	for _, o := range w.Services {
		for i := range o.Definition.Records {
			if o.Definition.Records[i].LeftOut != "" {
				o.Definition.Records[i].LeftOut = reason
			}
		}
		for i := range o.Definition.Conflicts {
			if o.Definition.Conflicts[i].Reason != "" {
				o.Definition.Conflicts[i].Reason = reason
			}
		}
	}
	for _, o := range w.Opaques {
		for i := range o.Records {
			if o.Records[i].LeftOut != "" {
				o.Records[i].LeftOut = reason
			}
		}
	}
	return w
}

// ranked counts the ranks of definitions from 0, without the gaps between them.
func (w world) ranked() world {
	ranks := map[int]bool{}
	for _, o := range w.Services {
		ranks[o.Definition.Rank] = true
	}
	inOrder, services := slices.Sorted(maps.Keys(ranks)), maps.Clone(w.Services)
	for key, o := range services {
		o.Definition.Rank = slices.Index(inOrder, o.Definition.Rank)
		services[key] = o
	}
	w.Services = services
	return w
}

// reference merges a state by the rules as they are written down, with no
// thought of cost: every service anew, from all records there are.
func reference(s state) world {
	s = maps.Clone(s)
	for ref, r := range s {
		if spec, ok := r.Spec.(model.Service); ok {
			spec.Addresses = listed(spec.Addresses)
			r.Spec = spec
			s[ref] = r
		}
	}
	w := world{Services: map[catalog.ServiceKey]observed{}, Seen: map[string][]catalog.ServiceKey{}}
	for _, ref := range s.refs() {
		switch spec := s[ref].Spec.(type) {
		case model.SourceMark:
			w.Primed = append(w.Primed, ref.Source)
		case model.Service:
			for host := range spec.Hosts.All() {
				key := catalog.ServiceKey{Namespace: ref.Namespace, Host: nameOf(host)}
				w.Services[key] = s.merge(key)
			}
		}
	}
	w.Totals.Services = len(w.Services)
	for _, o := range w.Services {
		if o.Definition.Traffic.Prefer != "" {
			w.Totals.Near++
		}
		static := slices.Contains(slices.Collect(maps.Values(o.Definition.Resolutions)), model.ResolutionStatic)
		if static && (o.Definition.Traffic.NodeLocal || o.Definition.Traffic.Prefer == model.PreferSameNode) {
			w.Totals.ByNode++
		}
		if o.Definition.Traffic.ClusterLocal {
			w.Totals.ClusterLocal++
		}
		for _, p := range o.Ports {
			w.Totals.Endpoints += p.Total
		}
	}
	for _, namespace := range lookers {
		w.Seen[namespace] = w.seenBy(namespace)
		if w.Seen[namespace] == nil {
			delete(w.Seen, namespace)
		}
	}
	w.Opaques = s.carried()
	w.Held = s.held(w)
	return w
}

// held says why records that speak of anything are held. That of a single record
// goes before that of an object, which goes before that of everything.
func (s state) held(w world) map[model.Ref]string {
	held, speaks := map[model.Ref]string{}, map[model.Ref]bool{}
	for _, o := range w.Services {
		for _, c := range o.Definition.Records {
			speaks[c.Record] = true
		}
		for _, p := range o.Ports {
			for _, at := range p.Places {
				for _, c := range at.Claims {
					speaks[c.Record] = true
				}
			}
		}
	}
	for ref, r := range s {
		if why := s.heldFor(r); why != "" && (!ref.Kind.Understood() || speaks[ref]) {
			held[ref] = why
		}
	}
	return held
}

func (s state) heldFor(r model.Record) string {
	var alone, object, everything string
	for _, ref := range s.refs() {
		hold, _ := s[ref].Spec.(model.Hold)
		if ref.Source != r.Source {
			continue
		}
		if hold.Everything {
			everything = hold.Reason
		}
		for i := range hold.Items.All() {
			is := func(o model.Ref) bool { return i.Kind == o.Kind && i.Namespace == o.Namespace && i.Name == o.Name }
			switch {
			case i.Extent == model.ThisRecord && is(r.Ref):
				alone = hold.Reason
			case i.Extent == model.WithOwned && (is(r.Ref) && r.Owner == model.Ref{} || is(r.Owner)), i.Extent == model.OnlyOwned && is(r.Owner):
				object = hold.Reason
			}
		}
	}
	return cmp.Or(alone, object, everything)
}

// inMergeOrder returns every record there is.
func (s state) inMergeOrder() []model.Ref {
	return slices.SortedFunc(maps.Keys(s), func(a, b model.Ref) int { return cmp.Or(s.placeOrder(a, b), a.Compare(b)) })
}

func (s state) contributor(ref model.Ref) catalog.Contributor {
	r := s[ref]
	return catalog.Contributor{Record: ref, Path: r.Path, Place: r.Place, Stale: r.Status.Stale, Since: r.Status.Since.UTC()}
}

// carried takes of each object the first record, and shows the others.
func (s state) carried() map[catalog.OpaqueKey]opaque {
	all := map[catalog.OpaqueKey]opaque{}
	for _, ref := range s.inMergeOrder() {
		spec, ok := s[ref].Spec.(model.Opaque)
		if !ok {
			continue
		}
		key, c := catalog.OpaqueKey{Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name}, s.contributor(ref)
		o, there := all[key]
		if there {
			c.LeftOut = reason
		} else {
			o.Spec = spec
			o.Spec.Created = spec.Created.UTC()
		}
		o.Records = append(o.Records, c)
		all[key] = o
	}
	return all
}

// sourceOrder compares sources: as configured, then by name.
func sourceOrder(a, b string) int {
	rank := func(source string) int { return (slices.Index(order, source) + len(order) + 1) % (len(order) + 1) }
	return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a, b))
}

// placeOrder compares records: by the Isthmuses that they came through, then by source.
func (s state) placeOrder(a, b model.Ref) int {
	return claim{Record: a, Path: s[a].Path}.placeOrder(claim{Record: b, Path: s[b].Path})
}

// placeOrder is the same for the records of claims.
func (c claim) placeOrder(o claim) int {
	return cmp.Or(cmp.Compare(c.Path.Len(), o.Path.Len()), sourceOrder(c.Record.Source, o.Record.Source))
}

// merge merges one service.
func (s state) merge(key catalog.ServiceKey) observed {
	records := s.speakOf(key)
	taken := s.unite(records)
	first := s[records[0]].Spec.(model.Service)
	o := observed{Ports: map[uint32]portView{}, Definition: definition{
		ExportTo: first.ExportTo.Slice(), SubjectAltNames: first.SubjectAltNames.Slice(),
		Location: first.Location, Traffic: first.Traffic, Resolution: first.Resolution, Rank: min(slices.Index(order, records[0].Source), len(order)),
		ByCluster: map[string][]string{}, Brought: s.broughtBy(taken), Resolutions: map[uint32]model.Resolution{}, Clusters: map[string]bool{}, Written: written(first, key),
	}}
	for _, r := range taken {
		o.Definition.Traffic.ClusterLocal = o.Definition.Traffic.ClusterLocal || s[r].Spec.(model.Service).Traffic.ClusterLocal
	}
	o.Definition.Addresses, _ = s.listIn(s.home(taken), taken)
	o.Definition.Clusters[s.home(taken)] = s.home(taken) != ""
	for _, cluster := range clusters {
		o.Definition.ByCluster[cluster] = s.addressesIn(cluster, taken)
		if list, _ := s.listIn(cluster, taken); cluster != "" && len(list) > 0 {
			o.Definition.Clusters[cluster] = true
		}
	}
	o.Definition.Meta = first.Meta
	o.Definition.Meta.Created = first.Created.UTC()
	if o.Definition.Rank < 0 {
		o.Definition.Rank = len(order)
	}
	o.Definition.Rank += 100 * s[records[0]].Path.Len()
	for _, r := range records {
		c := s.contributor(r)
		if !slices.Contains(taken, r) {
			c.LeftOut = reason
		}
		o.Definition.Records = append(o.Definition.Records, c)
	}
	o.Definition.Conflicts = s.conflicts(records)
	for _, port := range []uint32{80, 81} {
		if r, ok := s.definer(port, taken); ok {
			p, _ := portOf(s[r], port)
			o.Definition.Ports = append(o.Definition.Ports, p)
			o.Definition.Resolutions[port] = s.resolution(r)
		}
		if view := s.serve(key, taken, port); view.Total > 0 {
			o.Ports[port] = view
		}
	}
	o.Healthy, o.Total = count(o.Ports)
	return o
}

// speakOf returns the services that name a host, in merge order.
func (s state) speakOf(key catalog.ServiceKey) []model.Ref {
	var list []model.Ref
	for ref, r := range s {
		if spec, ok := r.Spec.(model.Service); ok && ref.Namespace == key.Namespace && written(spec, key) != "" {
			list = append(list, ref)
		}
	}
	slices.SortFunc(list, func(a, b model.Ref) int {
		return cmp.Or(s.placeOrder(a, b), s.unlisted(a)-s.unlisted(b), a.Compare(b))
	})
	return list
}

// unlisted is 1 for a service that a hold names.
func (s state) unlisted(service model.Ref) int {
	for ref, r := range s {
		hold, _ := r.Spec.(model.Hold)
		for i := range hold.Items.All() {
			if ref.Source == service.Source && i.Kind == service.Kind && i.Namespace == service.Namespace && i.Name == service.Name && i.Extent != model.OnlyOwned {
				return 1
			}
		}
	}
	return 0
}

// nameOf is what two hosts have in common that are one.
func nameOf(host string) string { return strings.TrimSuffix(strings.ToLower(host), ".") }

// written is the host of a service as its record writes it, empty if that is of others.
func written(spec model.Service, key catalog.ServiceKey) string {
	at := slices.IndexFunc(spec.Hosts.Slice(), func(host string) bool { return nameOf(host) == key.Host })
	if at < 0 {
		return ""
	}
	return spec.Hosts.Slice()[at]
}

// asTheKernel writes an address as the kernel does, and a name as it is.
func asTheKernel(address string) string {
	if ip, err := netip.ParseAddr(address); err == nil {
		return ip.Unmap().String()
	}
	return address
}

// listed are the addresses and blocks that a registry wrote, as the kernel writes them, and without
// those that are none.
func listed(written model.List[string]) model.List[string] {
	var list []string
	for text := range written.All() {
		if block, err := netip.ParsePrefix(text); err == nil {
			if text = block.Masked().String(); block.IsSingleIP() {
				text = block.Addr().String()
			}
		}
		if text = asTheKernel(text); text != "0.0.0.0" && text != "::" {
			list = append(list, text)
		}
	}
	return model.ListOf(list...)
}

func known(e model.Endpoint) model.Endpoint {
	e.Address = asTheKernel(e.Address)
	var also []string
	for other := range e.Also.All() {
		also = append(also, asTheKernel(other))
	}
	e.Also = model.ListOf(also...)
	return e
}

func (s state) resolution(r model.Ref) model.Resolution { return s[r].Spec.(model.Service).Resolution }

// mixing leaves out the records that do not unite with one before that has a part: with the resolution NONE
// of one of the two, and an address of the other that it has not itself.
func (s state) mixing(records []model.Ref) (list []model.Ref) {
	for _, r := range records {
		if _, apart := s.apartFrom(r, list, records[0]); !apart {
			list = append(list, r)
		}
	}
	return list
}

func (s state) apartFrom(r model.Ref, before []model.Ref, first model.Ref) (from model.Ref, apart bool) {
	if s.resolution(r) == model.ResolutionNone && s.resolution(first) != model.ResolutionNone && r.Source != first.Source {
		from, apart = first, true
	}
	for i, o := range before {
		part := s.resolution(o) == s.resolution(first)
		for port := range s[o].Spec.(model.Service).Ports.All() {
			by, _ := s.definer(port.Number, before[:i+1])
			part = part || s.resolution(by) == s.resolution(o)
		}
		for _, pair := range [][2]model.Ref{{r, o}, {o, r}} {
			own := s[pair[0]].Spec.(model.Service).Addresses.Slice()
			if !part || s.resolution(r) == s.resolution(o) || s.resolution(pair[0]) != model.ResolutionNone {
				continue
			}
			for address := range s[pair[1]].Spec.(model.Service).Addresses.All() {
				if !slices.Contains(own, address) {
					return o, true
				}
			}
		}
	}
	return from, apart
}

// lostPorts are the ports at which a record has no part in its service, since another resolution counts there.
func (s state) lostPorts(r model.Ref, records []model.Ref) (list []uint32) {
	mixing := s.mixing(records)
	for port := range s[r].Spec.(model.Service).Ports.All() {
		if by, ok := s.definer(port.Number, mixing); !slices.Contains(mixing, r) || !ok || s.resolution(by) != s.resolution(r) {
			list = append(list, port.Number)
		}
	}
	return list
}

// unite leaves out the records that have a part in no port, unless their resolution is the first one's.
func (s state) unite(records []model.Ref) []model.Ref {
	return slices.DeleteFunc(s.mixing(records), func(r model.Ref) bool {
		return s.resolution(r) != s.resolution(records[0]) && len(s.lostPorts(r, records)) == s[r].Spec.(model.Service).Ports.Len()
	})
}

// portOf is the port of a number: that of TCP, if there is one.
func portOf(r model.Record, number uint32) (model.Port, bool) {
	for _, udp := range []bool{false, true} {
		for port := range r.Spec.(model.Service).Ports.All() {
			if port.Number == number && (port.Protocol == "UDP") == udp {
				return port, true
			}
		}
	}
	return model.Port{}, false
}

func (s state) isTCP(r model.Ref, number uint32) bool {
	p, _ := portOf(s[r], number)
	return p.Protocol != "UDP"
}

// definer is the first record with a port of TCP, or else the first with the port.
func (s state) definer(number uint32, taken []model.Ref) (model.Ref, bool) {
	for _, udp := range []bool{false, true} {
		for _, r := range taken {
			if p, ok := portOf(s[r], number); ok && (p.Protocol == "UDP") == udp {
				return r, true
			}
		}
	}
	return model.Ref{}, false
}

// addressesIn are those for clients of a cluster, and the word foreign behind them if they
// are of another one.
func (s state) addressesIn(cluster string, taken []model.Ref) []string {
	home := s.home(taken)
	if list, _ := s.listIn(cluster, taken); cluster != "" && len(list) > 0 {
		return list
	}
	for _, r := range taken {
		// What is of each cluster itself has no address elsewhere, nor for clients of which
		// nobody knows in which of several clusters they are.
		several := slices.ContainsFunc([]string{"east", "west"}, func(c string) bool {
			list, _ := s.listIn(c, taken)
			return c != home && len(list) > 0
		})
		if s[r].Spec.(model.Service).Traffic.ClusterLocal && (cluster == "" && several || cluster != "" && home != "") {
			return nil
		}
	}
	list, _ := s.listIn(home, taken)
	if cluster != "" && home != "" {
		return append(list, "foreign")
	}
	return list
}

// home is the cluster of the first record, if that has an address.
func (s state) home(taken []model.Ref) string {
	if first := s[taken[0]].Spec.(model.Service); first.Addresses.Len() > 0 {
		return first.Cluster
	}
	return ""
}

// gets reports whether a record adds an address to the addresses of its cluster. Records of the source that comes first
// there always do; others add single ones, if they come by no other Isthmus.
func (s state) gets(r model.Ref, address string, taken []model.Ref) bool {
	of := s[r].Spec.(model.Service)
	if of.Cluster == "" && s.home(taken) != "" {
		return false
	}
	first := model.Ref{} // in the cluster
	for _, o := range taken {
		if spec := s[o].Spec.(model.Service); first == (model.Ref{}) && (spec.Cluster == of.Cluster && spec.Addresses.Len() > 0 || of.Cluster == s.home(taken)) {
			first = o
		}
	}
	if r.Source == first.Source {
		return true
	}
	some := slices.ContainsFunc(taken[:slices.Index(taken, r)], func(o model.Ref) bool {
		spec := s[o].Spec.(model.Service)
		return o.Source == first.Source && spec.Cluster == of.Cluster && spec.Addresses.Len() > 0
	})
	block, err := netip.ParsePrefix(address)
	return some && s[r].Path == "" && (err != nil || block.IsSingleIP())
}

// listIn is the addresses in a cluster, with the record that is the first with each.
func (s state) listIn(cluster string, taken []model.Ref) (list []string, by map[string]model.Ref) {
	by = map[string]model.Ref{}
	for _, r := range taken {
		for address := range s[r].Spec.(model.Service).Addresses.All() {
			if s[r].Spec.(model.Service).Cluster == cluster && s.gets(r, address, taken) && !slices.Contains(list, address) {
				list, by[address] = append(list, address), r
			}
		}
	}
	return list, by
}

// broughtBy are the sources of the single addresses in each cluster that are not of the first source.
func (s state) broughtBy(taken []model.Ref) map[string]string {
	sources := map[string]string{}
	for _, cluster := range clusters {
		home, own := s.home(taken), s.addressesIn(cluster, taken)
		if list, _ := s.listIn(cluster, taken); cluster != home && (len(list) > 0 && cluster != "") {
			home = cluster
		}
		_, by := s.listIn(home, taken)
		for address, r := range by {
			first := slices.ContainsFunc(taken, func(o model.Ref) bool { // also behind others, by a longer way
				spec := s[o].Spec.(model.Service)
				return o.Source == taken[0].Source && spec.Cluster == home && spec.Addresses.Contains(address) && s.gets(o, address, taken)
			})
			if block, err := netip.ParsePrefix(address); !first && slices.Contains(own, address) && (err != nil || block.IsSingleIP()) {
				sources[cluster+" "+address] = r.Source
			}
		}
	}
	return sources
}

// lost are the addresses of a record that its service does not have.
func (s state) lost(r model.Ref, taken []model.Ref) (instead model.Ref, lost []string) {
	cluster, at := s[r].Spec.(model.Service).Cluster, slices.Index(taken, r)
	list, by := s.listIn(cluster, taken)
	list = slices.DeleteFunc(list, func(address string) bool { return slices.Index(taken, by[address]) >= at })
	for address := range s[r].Spec.(model.Service).Addresses.All() {
		if !s.gets(r, address, taken) && !slices.Contains(list, address) {
			lost = append(lost, address)
		}
	}
	if cluster == s.home(taken) || len(list) == 0 {
		return taken[0], lost
	}
	return by[list[0]], lost
}

// conflicts lists every contradiction, by who lost and the field.
func (s state) conflicts(records []model.Ref) []catalog.Conflict {
	var list []catalog.Conflict
	first, spec := records[0], func(r model.Ref) model.Service { return s[r].Spec.(model.Service) }
	taken := s.unite(records)
	for i, r := range records {
		note := func(differs bool, field string, kept model.Ref) {
			if differs {
				list = append(list, catalog.Conflict{Field: field, Kept: kept, Lost: r, Reason: reason})
			}
		}
		lostPorts, instead := s.lostPorts(r, records), first
		if len(lostPorts) > 0 {
			if by, ok := s.definer(lostPorts[0], s.mixing(records)); ok {
				instead = by
			}
		}
		if mixing := s.mixing(records); !slices.Contains(mixing, r) {
			instead, _ = s.apartFrom(r, mixing[:slices.IndexFunc(append(mixing, r), func(o model.Ref) bool { return slices.Index(records, o) >= i })], first)
		}
		note(len(lostPorts) > 0 || !slices.Contains(taken, r), "resolution", instead)
		if i == 0 || !slices.Contains(taken, r) {
			continue
		}
		addressed, lost := s.lost(r, taken)
		note(len(lost) > 0, "addresses", addressed)
		note(!spec(r).ExportTo.Equal(spec(first).ExportTo), "exportTo", first)
		note(!spec(r).SubjectAltNames.Equal(spec(first).SubjectAltNames), "subjectAltNames", first)
		note(spec(r).Location != spec(first).Location, "location", first)
		note(spec(r).Traffic != spec(first).Traffic, "traffic", first)
	}
	for _, number := range []uint32{80, 81} {
		kept, _ := s.definer(number, taken)
		for _, r := range taken {
			port, ok := portOf(s[r], number)
			if !ok || s.resolution(r) != s.resolution(kept) {
				continue
			}
			p, _ := portOf(s[kept], number)
			if p.Name != port.Name {
				list = append(list, catalog.Conflict{Field: fmt.Sprintf("ports[%d].name", number), Kept: kept, Lost: r, Reason: reason})
			}
			if p.Protocol != port.Protocol {
				list = append(list, catalog.Conflict{Field: fmt.Sprintf("ports[%d].protocol", number), Kept: kept, Lost: r, Reason: reason})
			}
		}
	}
	slices.SortFunc(list, func(a, b catalog.Conflict) int {
		return cmp.Or(a.Lost.Compare(b.Lost), strings.Compare(a.Field, b.Field))
	})
	return list
}

// serve unites what the records bring to one port.
func (s state) serve(key catalog.ServiceKey, taken []model.Ref, number uint32) portView {
	var v portView
	for _, r := range taken {
		port, ok := portOf(s[r], number)
		if kept, _ := s.definer(number, taken); !ok || port.Protocol == "UDP" && s.isTCP(kept, number) || s.resolution(r) != s.resolution(kept) {
			continue
		}
		for _, c := range s.brought(key, r) {
			_, named := c.Endpoint.Ports.Get(port.Name)
			_, target := c.Endpoint.Ports.Get(port.TargetName)
			if !named && (c.Endpoint.Exact || port.TargetName != "") && !(target && port.TargetName != "") {
				continue
			}
			at := comparedAs(c.Endpoint.Address)
			if at == "" { // something behind the gateways of its network
				at = "@" + c.Record.String()
			}
			v.enter(place{Address: at, Port: listensOn(port, c.Endpoint), Claims: []claim{c}})
		}
	}
	slices.SortFunc(v.Places, func(a, b place) int {
		return cmp.Or(cmp.Compare(a.Address, b.Address), cmp.Compare(a.Port, b.Port))
	})
	var places []place
	for _, p := range v.Places {
		slices.SortFunc(p.Claims, func(a, b claim) int {
			return cmp.Or(a.placeOrder(b), -cmp.Compare(a.Endpoint.Registered, b.Endpoint.Registered), serving(b)-serving(a), a.Record.Compare(b.Record))
		})
		places = append(places, p.byNetwork()...)
	}
	v.Places = places
	for i, p := range v.Places {
		if speaker := speaking(p.Claims); speaker > 0 {
			c := p.Claims[speaker]
			copy(p.Claims[1:], p.Claims[:speaker])
			p.Claims[0] = c
		}
		p.Health = p.Claims[0].Endpoint.Health
		if at := slices.IndexFunc(p.Claims, func(c claim) bool { return !s.isStale(c.Record.Source) }); at > 0 {
			p.Health = p.Claims[at+speaking(p.Claims[at:])].Endpoint.Health
		}
		if _, err := netip.ParseAddr(p.Address); err != nil {
			p.Network = p.Claims[0].Endpoint.Network
		}
		v.Places[i] = p
		if v.Total++; i > 0 && v.Places[i-1].Address == p.Address && v.Places[i-1].Port == p.Port {
			v.Shared++
		}
		if p.Health == model.Healthy {
			v.Healthy++
		}
		if strings.HasPrefix(p.Address, "unix://") {
			v.Sockets++
		}
		if p.Network != "" {
			v.Networked++
		}
		if tally.IsLocal(p.Claims[0].Endpoint) {
			v.Local++
		}
	}
	return v
}

// isStale reports whether a source has been stale for so long that others know the health of its endpoints better.
func (s state) isStale(source string) bool {
	for _, r := range s {
		if mark, is := r.Spec.(model.SourceMark); is && r.Source == source && !mark.StaleSince.IsZero() {
			return true
		}
	}
	return false
}

// byNetwork returns the endpoints at a place, one for each network that is named there. Who names none
// is about the one that is; beside several, or none, it is an endpoint without a network.
func (p place) byNetwork() (list []place) {
	networks := networksOf(p.Claims, func(c claim) string { return c.Endpoint.Network })
	if _, err := netip.ParseAddr(p.Address); err != nil { // a name is looked up, whatever the network
		return []place{p}
	}
	if len(networks) == 1 {
		p.Network = networks[0]
		return []place{p}
	}
	for _, network := range append([]string{""}, networks...) {
		one := place{Address: p.Address, Port: p.Port, Network: network}
		for _, c := range p.Claims {
			if c.Endpoint.Network == network {
				one.Claims = append(one.Claims, c)
			}
		}
		if len(one.Claims) > 0 {
			list = append(list, one)
		}
	}
	return list
}

// networksOf are the networks that some name, each once, in their order.
func networksOf[T any](list []T, of func(T) string) (networks []string) {
	for _, one := range list {
		if network := of(one); network != "" && !slices.Contains(networks, network) {
			networks = append(networks, network)
		}
	}
	return networks
}

// speaking is the index of the claim that speaks among some in order: the first one, or at an address that many registrations share the first that serves.
func speaking(claims []claim) int {
	at := slices.IndexFunc(claims, func(c claim) bool {
		return c.placeOrder(claims[0]) == 0 && c.Endpoint.Registered > 0 && serving(c) > 0
	})
	if at < 0 || registered(claims) <= 2 {
		return 0
	}
	return at
}

// registered counts the registrations of the first claim's source that came the same way.
func registered(claims []claim) (n int) {
	for _, c := range claims {
		if c.placeOrder(claims[0]) == 0 && c.Endpoint.Registered > 0 {
			n++
		}
	}
	return n
}

func comparedAs(address string) string {
	if strings.HasPrefix(address, "unix:") {
		return address
	}
	return nameOf(address)
}

func serving(c claim) int {
	if c.Endpoint.Health == model.Healthy {
		return 1
	}
	return 0
}

// enter adds a claim to the place it is about. Two services may bring one workload.
func (v *portView) enter(p place) {
	at := slices.IndexFunc(v.Places, func(o place) bool { return o.Address == p.Address && o.Port == p.Port })
	if at < 0 {
		v.Places = append(v.Places, p)
		return
	}
	there := &v.Places[at]
	if !slices.ContainsFunc(there.Claims, func(c claim) bool { return c.Record == p.Claims[0].Record }) {
		there.Claims = append(there.Claims, p.Claims...)
	}
}

// brought returns the instances that a service record brings: its own, the
// workloads it selects, or the host itself.
func (s state) brought(key catalog.ServiceKey, by model.Ref) []claim {
	var list []claim
	spec, own := s[by].Spec.(model.Service), 0
	for ref, r := range s {
		switch e := r.Spec.(type) {
		case model.Endpoint:
			if r.Owner == by {
				list = append(list, claim{ref, known(e), r.Owner, r.Path})
				own++
			}
		case model.Workload:
			confined := e.Only.Len() > 0 && !slices.ContainsFunc(e.Only.Slice(), func(host string) bool { return nameOf(host) == key.Host })
			if !confined && ref.Namespace == by.Namespace && !spec.WorkloadSelector.IsZero() && e.Endpoint.Labels.Includes(spec.WorkloadSelector) {
				list = append(list, claim{ref, known(e.Endpoint), r.Owner, ""})
			}
		}
	}
	if spec.Resolution == model.ResolutionDNS && own == 0 && spec.WorkloadSelector.IsZero() && !strings.HasPrefix(key.Host, "*") {
		list = append(list, claim{Record: by, Endpoint: model.Endpoint{Address: written(spec, key)}, Path: s[by].Path})
	}
	return list
}

func listensOn(port model.Port, e model.Endpoint) uint32 {
	own, ok := e.Ports.Get(port.Name)
	if !ok && port.TargetName != "" {
		own, ok = e.Ports.Get(port.TargetName)
	}
	switch {
	case strings.HasPrefix(e.Address, "unix://"):
		return 0
	case ok:
		return own
	case port.TargetPort > 0:
		return port.TargetPort
	default:
		return port.Number
	}
}

// count counts endpoints whatever number of ports they serve: an address as
// often as some port finds it there.
func count(ports map[uint32]portView) (healthy, total int) {
	type tally struct{ healthy, total int }
	addresses := map[string]tally{}
	for _, v := range ports {
		of := map[string]tally{}
		for _, p := range v.Places {
			c := of[p.Address]
			c.total++
			if p.Health == model.Healthy {
				c.healthy++
			}
			of[p.Address] = c
		}
		for address, c := range of {
			a := addresses[address]
			addresses[address] = tally{max(a.healthy, c.healthy), max(a.total, c.total)}
		}
	}
	for _, a := range addresses {
		healthy, total = healthy+a.healthy, total+a.total
	}
	return healthy, total
}

// seenBy returns which services a namespace sees: of each host the one of its
// own namespace, or else the first by its way and in source order, then by namespace.
func (w world) seenBy(namespace string) []catalog.ServiceKey {
	best := map[string]catalog.ServiceKey{}
	for key, o := range w.Services {
		if !o.exportedTo(namespace, key.Namespace) {
			continue
		}
		was, ok := best[key.Host]
		if !ok || w.before(namespace, key, was) {
			best[key.Host] = key
		}
	}
	var list []catalog.ServiceKey
	for _, host := range []string{"*.w", "g", "h"} {
		if key, ok := best[host]; ok {
			list = append(list, key)
		}
	}
	return list
}

func (w world) before(namespace string, a, b catalog.ServiceKey) bool {
	if (a.Namespace == namespace) != (b.Namespace == namespace) {
		return a.Namespace == namespace
	}
	first := func(k catalog.ServiceKey) claim {
		c := w.Services[k].Definition.Records[0]
		return claim{Record: c.Record, Path: c.Path}
	}
	return cmp.Or(first(a).placeOrder(first(b)), cmp.Compare(a.Namespace, b.Namespace)) < 0
}

func (o observed) exportedTo(namespace, home string) bool {
	to := o.Definition.ExportTo
	return len(to) == 0 || slices.Contains(to, "*") ||
		namespace != "" && slices.Contains(to, namespace) || slices.Contains(to, ".") && namespace == home
}
