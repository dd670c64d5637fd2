package reach

import (
	"cmp"
	"iter"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/catalog/derived"
	"github.com/isthmus-mesh/isthmus/immutable"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output/envoy/names"
	"github.com/isthmus-mesh/isthmus/output/envoy/node"
)

// Sidecars that answer lookups give a name an address if the service has no address, and a port
// whose connections do not name the host. The address is a hash of the name. Of two names with one
// address and a port in common, the first in the order of ownership gets the address; lookups of the
// other name are not answered.

// allots reports whether the name of a service without an address gets one for a port.
func allots(c Client, s catalog.ServiceDefinition, number uint32) bool {
	d := c.Settings.OrIstio().DNS
	if d == nil || c.Proxy.Mode == node.None || s.Traffic.Headless || s.Traffic.ClusterLocal || hasAddress(c, s) {
		return false
	}
	if !names.IsSNI(s.Key.Host) || s.Key.Host[0] == '*' {
		return false
	}
	switch s.ResolutionAt(number) {
	case model.ResolutionStatic:
		return d.Allot.Static
	case model.ResolutionDNS, model.ResolutionDNSRoundRobin:
		return d.Allots(s.Key.Host)
	default:
		return false
	}
}

// NeedsAddress reports whether a service port needs an address of its own: calls do not name the
// host in every case.
func NeedsAddress(port model.Port) bool {
	kind := TrafficOf(port)
	return kind == TCP || kind == Detected
}

// Allotted yields the addresses that a name is given, of the families that the Envoy listens for.
func Allotted(c Client, s catalog.ServiceDefinition) iter.Seq[string] {
	return func(yield func(string) bool) {
		some := false
		for _, port := range s.Ports {
			if s.ResolutionAt(port.Number) == model.ResolutionNone {
				return // its connections go where they were made to
			}
			some = some || NeedsAddress(port) && allots(c, s, port.Number)
		}
		if !some {
			return
		}
		a := names.AllotmentOf(s.Key.Host)
		if f := c.Proxy.Family; f != node.IPv6 && !yield(a.IPv4()) || f != node.IPv6 && f != node.DualStack {
			return
		}
		yield(a.IPv6())
	}
}

func isAllotted(c Client, s catalog.ServiceDefinition, address string) bool {
	for own := range Allotted(c, s) {
		if own == address {
			return true
		}
	}
	return false
}

// allottedKey is the key of the names of a port by their addresses.
type allottedKey struct{}

type allotment struct {
	names.Allotment
	catalog.ServiceKey
}

func (a allotment) compare(o allotment) int {
	return cmp.Or(a.Allotment.Compare(o.Allotment), a.ServiceKey.Compare(o.ServiceKey))
}

// allottedAt lists the services of a port that are called at an allotted address.
func allottedAt(c Client, index *catalog.PortServices, address string) (list []catalog.ServiceDefinition) {
	first, last, ok := names.ParseAllotted(address)
	if d := c.Settings.OrIstio().DNS; !ok || d == nil || !d.Allot.On() {
		return nil
	}
	made, _ := index.Derive(allottedKey{}, func(before derived.Change) (any, error) { return allotmentsOf(index, before), nil })
	all, _ := made.(immutable.Map[allotment, struct{}])
	for at := range all.From(allotment{Allotment: first}) {
		if at.Allotment.Compare(last) > 0 {
			break
		}
		for s := range index.OfHost(at.Host) {
			if s.Key == at.ServiceKey && index.Means(c.Viewer, s) && isAllotted(c, s, address) {
				list = append(list, s)
			}
		}
	}
	return list
}

// allotmentsOf returns the names of a port that may need an address.
func allotmentsOf(index *catalog.PortServices, before derived.Change) immutable.Map[allotment, struct{}] {
	all, known := before.Before.(immutable.Map[allotment, struct{}])
	if !known || before.Many {
		all = immutable.New[allotment, struct{}](allotment.compare)
	}
	edit := all.Edit()
	enter := func(s catalog.ServiceDefinition) {
		if port, ok := s.Port(index.Number); ok && s.Base.Addresses.Len() == 0 && TrafficOf(port) != NotTCP && TrafficOf(port) != HTTP {
			edit.Set(allotment{names.AllotmentOf(s.Key.Host), s.Key}, struct{}{})
		}
	}
	if !known || before.Many {
		for s := range index.All() {
			enter(s)
		}
		return edit.Map()
	}
	for _, host := range before.Hosts {
		a := names.AllotmentOf(host)
		var gone []allotment
		for at := range all.From(allotment{a, catalog.ServiceKey{Host: host}}) {
			if at.Allotment != a || at.Host != host {
				break
			}
			gone = append(gone, at)
		}
		for _, at := range gone {
			edit.Delete(at)
		}
		for s := range index.OfHost(host) {
			enter(s)
		}
	}
	return edit.Map()
}
