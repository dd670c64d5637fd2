package catalog_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
)

// page is a dump in the making.
type page struct{ strings.Builder }

func (p *page) line(format string, args ...any) {
	p.WriteString(strings.TrimRight(fmt.Sprintf(format, args...), " ") + "\n")
}

// dump tells a change, and what some namespaces see afterwards.
func dump(now *catalog.Snapshot, c catalog.Change, look []string) string {
	var p page
	totals := now.Totals()
	p.line("revision %d: services %d, endpoints %d", now.Revision, totals.Services, totals.Endpoints)
	if c.Primed {
		primed := slices.DeleteFunc(slices.Clone(sources), func(s string) bool { return !now.Primed(s) })
		p.line("primed: %s", strings.Join(primed, " "))
	}
	if c.Empty() {
		p.line("nothing changed")
	}
	for _, key := range slices.SortedFunc(maps.Keys(c.Services), compareKeys) {
		p.service(key, c.Services[key])
	}
	p.united(c)
	p.held(now)
	for _, namespace := range look {
		namespace = strings.Trim(namespace, `"`)
		var seen []string
		for s := range now.Visible(catalog.Viewer{Namespace: namespace}) {
			seen = append(seen, s.Key.String())
		}
		p.line("%q sees %s", namespace, cmp.Or(strings.Join(seen, ", "), "nothing"))
	}
	return p.String()
}

// held tells what is held.
func (p *page) held(now *catalog.Snapshot) {
	holds := now.Holds(sources...)
	add := func(ref, owner model.Ref) {
		if hold, held := holds.Of(ref, owner); held {
			p.line("held %s since %s: %s", ref, hold.Since.Format(time.RFC3339), hold.Reason)
		}
	}
	for s := range now.Services() {
		for _, r := range s.Records {
			add(r.Record, model.Ref{})
		}
		for _, port := range s.Ports {
			for e := range s.Endpoints(port.Number).Claims() {
				add(e.Record, e.Owner())
			}
		}
	}
}

// united prints the changed workloads and carried objects.
func (p *page) united(c catalog.Change) {
	for _, key := range slices.SortedFunc(maps.Keys(c.Workloads), compareWorkloadKeys) {
		now := c.Workloads[key].New
		if now == nil {
			p.line("- workload %s", key)
			continue
		}
		p.line("%s workload %s at %s of %s", sign(c.Workloads[key].Old), key, now.Endpoint.Address, now.Records[0].Record.Source)
	}
	for _, key := range slices.SortedFunc(maps.Keys(c.Opaques), compareOpaqueKeys) {
		now := c.Opaques[key].New
		if now == nil {
			p.line("- %s", key)
			continue
		}
		p.line("%s %s carries %s", sign(c.Opaques[key].Old), key, now.Content)
		p.pairs("labels", now.Labels)
		p.pairs("annotations", now.Annotations)
		p.records(now.Records)
	}
}

func sign[V any](old *V) string {
	if old == nil {
		return "+"
	}
	return "~"
}

func (p *page) service(key catalog.ServiceKey, c catalog.ServiceChange) {
	switch {
	case c.New == nil:
		p.line("- %s", key)
	case c.Old == nil:
		p.line("+ %s, %s", key, counts(c.New))
		p.definition(c.New.Definition)
	case c.Old.Definition == c.New.Definition:
		p.line("~ %s, the same definition, %s", key, counts(c.New))
	default:
		p.line("~ %s, another definition, %s", key, counts(c.New))
		p.definition(c.New.Definition)
	}
	p.endpoints(c)
}

func counts(s *catalog.Service) string {
	healthy, total := s.Counts()
	return fmt.Sprintf("healthy %d of %d", healthy, total)
}

func (p *page) definition(d *catalog.Definition) {
	p.line("    %s %s, of %s", d.Resolution, d.Location, strings.Join(d.Sources(), " "))
	for _, port := range d.Ports {
		to := ""
		if port.TargetPort != 0 {
			to = fmt.Sprintf("to %d", port.TargetPort)
		}
		p.line("    port %d %s %s %s", port.Number, port.Name, port.Protocol, to)
	}
	p.pairs("labels", d.Meta.Labels)
	p.pairs("annotations", d.Meta.Annotations)
	p.list("addresses", d.Base.Addresses)
	p.list("exportTo", d.ExportTo)
	p.list("subjectAltNames", d.SubjectAltNames)
	if d.Traffic != (model.Traffic{}) {
		p.line("    traffic %s", d.Traffic)
	}
	p.records(d.Records)
	for _, c := range d.Conflicts {
		p.line("    conflict %s: %s over %s: %s", c.Field, c.Kept, c.Lost, c.Reason)
	}
}

func (p *page) records(list []catalog.Contributor) {
	for _, r := range list {
		since := " since " + r.Since.Format(time.RFC3339) + ": "
		p.line("    record %s%s%s%s", r.Record, also(", ", r.Place), also(", left out: ", r.LeftOut),
			also(", stale"+since, r.Stale))
	}
}

func (p *page) pairs(name string, m model.Labels) {
	var list []string
	for key, value := range m.All() {
		list = append(list, key+"="+value)
	}
	p.list(name, model.ListOf(list...))
}

func (p *page) list(name string, l model.List[string]) {
	if l.Len() > 0 {
		p.line("    %s %s", name, strings.Join(l.Slice(), ", "))
	}
}

// also returns value behind what introduces it; nothing if there is none.
func also(before, value string) string {
	if value == "" {
		return ""
	}
	return before + value
}

// endpoints tells what happened to the endpoints, and which ports have another
// pointer although nothing that counts did.
func (p *page) endpoints(c catalog.ServiceChange) {
	old, now := claimsOf(c.Old), claimsOf(c.New)
	touched := map[uint32]bool{}
	for _, id := range slices.SortedFunc(maps.Keys(c.Endpoints), compareIDs) {
		touched[id.ServicePort] = true
		switch {
		case len(now[id]) == 0:
			p.line("  - %s", idText(id))
			continue
		case len(old[id]) == 0:
			p.line("  + %s from %s", idText(id), instanceText(now[id][0]))
		default:
			p.line("  ~ %s from %s", idText(id), instanceText(now[id][0]))
		}
		for _, behind := range now[id][1:] {
			p.line("      behind it %s", instanceText(behind))
		}
	}
	for number := range uint32(1000) {
		if c.Old != nil && c.New != nil && !touched[number] && c.Old.Endpoints(number) != c.New.Endpoints(number) {
			p.line("  port %d: only words that do not count", number)
		}
	}
}

func claimsOf(s *catalog.Service) map[catalog.EndpointID][]catalog.Endpoint {
	claims := map[catalog.EndpointID][]catalog.Endpoint{}
	if s == nil {
		return claims
	}
	for _, port := range s.Ports {
		var id catalog.EndpointID
		for e, speaks := range s.Endpoints(port.Number).Claims() {
			if speaks {
				id = e.ID(port.Number)
			}
			claims[id] = append(claims[id], e)
		}
	}
	return claims
}

func compareIDs(a, b catalog.EndpointID) int {
	return cmp.Or(cmp.Compare(a.ServicePort, b.ServicePort), cmp.Compare(a.Address, b.Address), cmp.Compare(a.Port, b.Port), cmp.Compare(a.Network, b.Network))
}

func instanceText(e catalog.Endpoint) string {
	text := e.Record.String()
	if e.Weight != 0 {
		text += fmt.Sprintf(", weight %d", e.Weight)
	}
	text += also(", ", strings.ToLower(string(e.Health))) + also(", network ", e.Network)
	text += also(", in ", strings.Trim(e.Locality.Region+"/"+e.Locality.Zone+"/"+e.Locality.SubZone, "/"))
	for name, value := range e.Labels.All() {
		text += ", " + name + "=" + value
	}
	return text
}

func compareWorkloadKeys(a, b catalog.WorkloadKey) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}
