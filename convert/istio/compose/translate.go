package compose

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/convert/istio"
	"github.com/isthmus-mesh/isthmus/convert/istio/names"
	"github.com/isthmus-mesh/isthmus/model"
)

// Translation is the objects of a service, and the parts of it that could not be written.
type Translation struct {
	Parts   []Part
	LeftOut []LeftOut
	// Invalid explains why Istio would accept no object of the service; empty if it does.
	Invalid string
}

// Part is an object of a service.
type Part struct {
	istio.Object
	// Sources are the sources of the part: of the service's definition, and of each endpoint
	// in the part.
	Sources []string
}

// LeftOut counts endpoints of a service that are not written for a reason.
type LeftOut struct {
	Reason string
	Count  int
}

func (l LeftOut) String() string { return fmt.Sprintf("%d: %s", l.Count, l.Reason) }

// FromService returns the ServiceEntries of a service: one, or several that Istio unites.
// They have no labels and annotations, because the service's own would have to be the same
// on all of them. With [Layout.Workloads], its WorkloadEntries come first, with the labels
// by which they are selected.
func FromService(s *catalog.Service, l Layout) Translation {
	d := DraftService(s, l)
	t := Translation{LeftOut: d.LeftOut, Invalid: d.Invalid}
	for _, p := range d.Parts {
		meta := model.Meta{Labels: model.MapOf(p.Labels)}
		t.Parts = append(t.Parts, Part{istio.Object{Namespace: p.Namespace, Name: p.Name, Meta: meta, Spec: p.Spec()}, p.Sources})
	}
	return t
}

// DraftService is FromService without making specifications.
func DraftService(s *catalog.Service, l Layout) Draft {
	if reason := Invalid(s); reason != "" {
		return Draft{Invalid: reason}
	}
	of := WrittenPorts(s)
	ports := l.named(writable(of))
	g := gather(s, ports)
	if n := len(of) - len(ports); n > 0 {
		g.left["ports beyond the 256 that Istio takes"] = n
	}
	if n := len(s.Ports) - len(of); n > 0 {
		g.left[OtherResolution] = n
	}
	if n := len(s.Base.Sources()); n > 0 {
		g.left[otherAddresses] = n
	}
	parts, groups := l.parts(s, ports, g.endpoints)
	g.countPorts(ports, parts)
	d := Draft{LeftOut: leftOut(g.left), layout: l, service: s, ports: ports, groups: groups, left: g.left, endpoints: len(g.endpoints)}
	d.Parts = make([]DraftPart, 0, len(parts))
	for _, p := range parts {
		d.Parts = append(d.Parts, p.draft(s, len(g.endpoints)))
	}
	return d
}

func leftOut(left map[string]int) (list []LeftOut) {
	for _, reason := range slices.Sorted(maps.Keys(left)) {
		list = append(list, LeftOut{reason, left[reason]})
	}
	return list
}

// Invalid explains why Istio would not accept a service at all; empty if it does.
func Invalid(s *catalog.Service) string {
	_, located := networking.ServiceEntry_Location_value[string(s.Location)]
	_, resolved := networking.ServiceEntry_Resolution_value[string(s.Resolution)]
	switch {
	case names.CheckHost(s.Written()) != nil:
		return strconv.Quote(s.Written()) + " is not a DNS name that Istio takes for a host; have the source name the service otherwise"
	case !names.IsNamespace(s.Key.Namespace):
		return strconv.Quote(s.Key.Namespace) + " is not the name of a namespace; have the source choose another"
	case !located:
		return strconv.Quote(string(s.Location)) + " is not a location that Istio knows; have the source choose another"
	case !resolved:
		return strconv.Quote(string(s.Resolution)) + " is not a resolution that Istio knows; have the source choose another"
	case len(s.Ports) > 0 && len(WrittenPorts(s)) == 0:
		return "no port has the resolution of its first record, " + string(s.Resolution) + ", and a ServiceEntry has only one; give the ports of another resolution another host"
	}
	return ""
}

const otherAddresses = "addresses of other sources than the first: in a ServiceEntry they would have the rights of the first; give them another host"

// OtherResolution is why a port is not among the [WrittenPorts].
const OtherResolution = "ports with another resolution than that of the service: Istio unites no ServiceEntries of several; give them another host"

// WrittenPorts returns the ports that a ServiceEntry may have: the ports with the resolution of the service.
func WrittenPorts(s *catalog.Service) []model.Port {
	isOther := func(p model.Port) bool { return s.ResolutionAt(p.Number) != s.Resolution }
	if !slices.ContainsFunc(s.Ports, isOther) {
		return s.Ports // nearly always
	}
	return slices.DeleteFunc(slices.Clone(s.Ports), isOther)
}

// mostPorts is the number of ports that Istio's schema allows in an object.
const mostPorts = 256

// writable returns the ports in a form that Istio accepts. Invalid names are replaced, and
// names that two ports share because the sources differ.
func writable(ports []model.Port) []model.Port {
	named := map[string]bool{}
	out := make([]model.Port, 0, len(ports))
	for _, p := range ports[:min(len(ports), mostPorts)] {
		if !names.IsLabel(p.Name) || len(p.Name) > 62 || named[p.Name] {
			p.Name = "port-" + strconv.Itoa(int(p.Number))
		}
		for named[p.Name] {
			p.Name += "-x"
		}
		named[p.Name] = true
		if names.ProtocolOf(p.Protocol) == names.UnknownProtocol {
			p.Protocol = "TCP" // bytes of an unknown protocol are carried as TCP
		}
		out = append(out, p)
	}
	return out
}
