package catalog

import (
	"cmp"
	"iter"
	"slices"

	"github.com/isthmus-mesh/isthmus/immutable"
)

// PortServices is every service that clients may reach at a port of one number. It is
// immutable. It stays the same pointer until the definition of one of them changes, or
// a headless one becomes large or ceases to be. So who makes one thing of all of them can
// tell whether it may differ.
type PortServices struct {
	Number uint32

	// services are those with the port, and those of other namespaces that share a
	// host with one: a viewer that sees such a service does not see the other.
	services  immutable.Map[ServiceKey, *Definition]
	addresses immutable.Map[addressKey, *Definition]
	large     immutable.Map[ServiceKey, struct{}] // those that are headless, and so large

	derived *derived
}

// addressKey orders services by the addresses of their own.
type addressKey struct {
	address string
	ServiceKey
}

func (k addressKey) compare(o addressKey) int {
	return cmp.Or(cmp.Compare(k.address, o.address), k.ServiceKey.compare(o.ServiceKey))
}

// Port returns the index of a port number; nil if no service has it.
func (s *Snapshot) Port(number uint32) *PortServices {
	index, _ := s.ports.Get(number)
	return index
}

// Ports yields the index of each port number, in their order.
func (s *Snapshot) Ports() iter.Seq[*PortServices] { return values(s.ports) }

// Len is how many services [PortServices.All] yields.
func (p *PortServices) Len() int {
	if p == nil {
		return 0
	}
	return p.services.Len()
}

// Visible yields the services that a viewer may reach at the port, by host.
func (p *PortServices) Visible(v Viewer) iter.Seq[ServiceDefinition] {
	return func(yield func(ServiceDefinition) bool) {
		if p == nil {
			return
		}
		for s := range choose(v, p.all) {
			if _, ok := s.Port(p.Number); ok && !yield(s) {
				return
			}
		}
	}
}

// At yields the services with an address of their own, in whichever cluster, by host.
func (p *PortServices) At(address string) iter.Seq[ServiceDefinition] {
	return func(yield func(ServiceDefinition) bool) {
		if p == nil {
			return
		}
		for key, d := range p.addresses.From(addressKey{address: address}) {
			if key.address != address || !yield(ServiceDefinition{key.ServiceKey, d}) {
				return
			}
		}
	}
}

// VisibleAt yields those of them that a viewer may reach at the port. Of which cluster the
// address is, it leaves to who asks.
func (p *PortServices) VisibleAt(v Viewer, address string) iter.Seq[ServiceDefinition] {
	return func(yield func(ServiceDefinition) bool) {
		for s := range p.At(address) {
			if p.chosen(v, s) && !yield(s) {
				return
			}
		}
	}
}

// CalledAt lists the services that a viewer in a cluster calls at an address and the port,
// by host: those of the cluster, or those of other clusters if there is none.
func (p *PortServices) CalledAt(v Viewer, cluster, address string) (list []ServiceDefinition) {
	own := false
	for s := range p.VisibleAt(v, address) {
		called, foreign := s.calledAt(cluster, address)
		if !called || foreign && own {
			continue
		}
		if !foreign && !own {
			own, list = true, nil
		}
		list = append(list, s)
	}
	return list
}

// TakenIn reports whether some service that a viewer may reach at the port has an address of
// its own in a cluster.
func (p *PortServices) TakenIn(cluster, address string, v Viewer) bool {
	for s := range p.At(address) {
		if called, foreign := s.calledAt(cluster, address); called && !foreign && p.chosen(v, s) {
			return true
		}
	}
	return false
}

// VisibleFrom yields the services that a viewer may reach at the port, by host, from the
// first one whose host is not before a given one.
func (p *PortServices) VisibleFrom(v Viewer, host string) iter.Seq[ServiceDefinition] {
	return func(yield func(ServiceDefinition) bool) {
		from := func(yield func(ServiceDefinition) bool) {
			for key, d := range p.services.From(ServiceKey{Host: host}) {
				if !yield(ServiceDefinition{key, d}) {
					return
				}
			}
		}
		for s := range choose(v, from) {
			if _, ok := s.Port(p.Number); ok && !yield(s) {
				return
			}
		}
	}
}

// Means reports whether a viewer that names the host of a service means that one.
func (p *PortServices) Means(v Viewer, s ServiceDefinition) bool { return p.chosen(v, s) }

// All yields every service of the port, and those that share a host with one.
func (p *PortServices) All() iter.Seq[ServiceDefinition] { return p.all }

func (p *PortServices) all(yield func(ServiceDefinition) bool) {
	for key, d := range p.services.All() {
		if !yield(ServiceDefinition{key, d}) {
			return
		}
	}
}

// Between yields those from one host on that are before another. The empty string stands
// for the first host, and for none to end at.
func (p *PortServices) Between(first, end string) iter.Seq[ServiceDefinition] {
	return func(yield func(ServiceDefinition) bool) {
		for key, d := range p.services.From(ServiceKey{Host: first}) {
			if end != "" && key.Host >= end || !yield(ServiceDefinition{key, d}) {
				return
			}
		}
	}
}

// chosen reports whether a viewer that names the host of a service means that one.
func (p *PortServices) chosen(v Viewer, s ServiceDefinition) bool {
	ofHost := func(yield func(ServiceDefinition) bool) {
		for key, d := range p.services.From(ServiceKey{Host: s.Key.Host}) {
			if key.Host != s.Key.Host || !yield(ServiceDefinition{key, d}) {
				return
			}
		}
	}
	for best := range choose(v, ofHost) {
		return best.Key == s.Key
	}
	return false
}

// indexPorts brings the port indices to the state of the services, of which some changed.
func (s *Snapshot) indexPorts(changed map[ServiceKey]ServiceChange) {
	hosts := map[string][]*Service{} // what of their services has changed, as it was
	for key, c := range changed {
		was := hosts[key.Host]
		switch {
		case c.Old != nil && c.New != nil && c.Old.Definition == c.New.Definition && !c.Resized():
			continue
		case c.Old != nil:
			was = append(was, c.Old)
		}
		hosts[key.Host] = was
	}
	edits := portEdits{s.ports, map[uint32]*indexEdit{}}
	for host, was := range hosts {
		edits.host(s, host, was)
	}
	s.ports = edits.finish()
}

// portEdits is a change of the indices in the making.
type portEdits struct {
	before  immutable.Map[uint32, *PortServices]
	indices map[uint32]*indexEdit
}

type indexEdit struct {
	services  *immutable.Editor[ServiceKey, *Definition]
	addresses *immutable.Editor[addressKey, *Definition]
	large     *immutable.Editor[ServiceKey, struct{}]
	was       *derived // nil if the port is new
	hosts     []string // of which services may have changed
}

func (e *portEdits) at(number uint32) *indexEdit {
	edit := e.indices[number]
	if edit == nil {
		was, ok := e.before.Get(number)
		if !ok {
			was = &PortServices{
				services:  immutable.New[ServiceKey, *Definition](ServiceKey.compare),
				addresses: immutable.New[addressKey, *Definition](addressKey.compare),
				large:     immutable.New[ServiceKey, struct{}](ServiceKey.compare),
			}
		}
		edit = &indexEdit{services: was.services.Edit(), addresses: was.addresses.Edit(), large: was.large.Edit(), was: was.derived}
		e.indices[number] = edit
	}
	return edit
}

// host enters the services of a host anew under every port that one of them has, or
// had before some of them changed.
func (e *portEdits) host(now *Snapshot, host string, was []*Service) {
	var ports []uint32
	for _, s := range was {
		e.remove(s)
		ports = portsOf(ports, s)
	}
	var services []*Service
	for s := range now.ByHost(host) {
		services = append(services, s)
		ports = portsOf(ports, s)
	}
	slices.Sort(ports)
	for _, number := range slices.Compact(ports) {
		e.enter(number, services, was)
		edit := e.at(number)
		edit.hosts = append(edit.hosts, host)
	}
}

func portsOf(ports []uint32, s *Service) []uint32 {
	for _, port := range s.Ports {
		ports = append(ports, port.Number)
	}
	return ports
}

// remove takes away the addresses of a service as it was.
func (e *portEdits) remove(was *Service) {
	for _, port := range was.Ports {
		edit := e.at(port.Number)
		edit.large.Delete(was.Key)
		for address := range was.EveryAddress() {
			edit.addresses.Delete(addressKey{address, was.Key})
		}
	}
}

// enter puts the services that share a host under a port, if any of them has it.
func (e *portEdits) enter(number uint32, services, was []*Service) {
	edit := e.at(number)
	had := func(s *Service) bool { _, ok := s.Port(number); return ok }
	some := slices.ContainsFunc(services, had)
	for _, s := range was {
		edit.services.Delete(s.Key)
	}
	for _, s := range services {
		if !some {
			edit.services.Delete(s.Key)
			continue
		}
		edit.services.Set(s.Key, s.Definition)
		if !had(s) {
			continue
		}
		if s.isLarge(number) {
			edit.large.Set(s.Key, struct{}{})
		}
		for address := range s.EveryAddress() {
			edit.addresses.Set(addressKey{address, s.Key}, s.Definition)
		}
	}
}

func (e *portEdits) finish() immutable.Map[uint32, *PortServices] {
	if len(e.indices) == 0 {
		return e.before
	}
	ports := e.before.Edit()
	for number, edit := range e.indices {
		if services := edit.services.Map(); services.Len() == 0 {
			ports.Delete(number)
		} else {
			ports.Set(number, &PortServices{number, services, edit.addresses.Map(), edit.large.Map(), edit.was.next(edit.hosts)})
		}
	}
	return ports.Map()
}
