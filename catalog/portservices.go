package catalog

import (
	"cmp"
	"iter"
	"slices"

	"github.com/isthmus-mesh/isthmus/catalog/crowd"
	"github.com/isthmus-mesh/isthmus/catalog/derived"
	"github.com/isthmus-mesh/isthmus/immutable"
)

// PortServices is every service that clients may reach at a port of one number. It is
// immutable. The pointer stays the same until a definition changes, or at a crowded port a share of
// [MostInstances]. A value derived from all services is therefore valid while the pointer is the
// same.
type PortServices struct {
	Number uint32

	// services are the services with the port. Services of other namespaces with the same host
	// are included: a viewer that sees one of them does not see the other.
	services  immutable.Map[ServiceKey, *Definition]
	addresses immutable.Map[addressKey, *Definition]
	asked     immutable.Map[ServiceKey, int] // shares of [MostInstances]; empty if the port is not crowded

	derived *derived.Values
}

// addressKey orders services by the addresses of their own.
type addressKey struct {
	address string
	ServiceKey
}

func (k addressKey) compare(o addressKey) int {
	return cmp.Or(cmp.Compare(k.address, o.address), k.Compare(o.ServiceKey))
}

// Len returns the number of services that [PortServices.All] yields.
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
		for s := range Choose(v, p.all) {
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

// VisibleAt yields the services of [PortServices.At] that a viewer may reach at the port.
// The caller checks the cluster of the address.
func (p *PortServices) VisibleAt(v Viewer, address string) iter.Seq[ServiceDefinition] {
	return func(yield func(ServiceDefinition) bool) {
		for s := range p.At(address) {
			if p.Means(v, s) && !yield(s) {
				return
			}
		}
	}
}

// CalledAt lists the services that a viewer in a cluster calls at an address and the port,
// by host. Services of other clusters count only if the cluster has none.
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

// TakenIn reports whether some service that a viewer may reach at the port has an address
// of its own in a cluster.
func (p *PortServices) TakenIn(cluster, address string, v Viewer) bool {
	for s := range p.At(address) {
		if called, foreign := s.calledAt(cluster, address); called && !foreign && p.Means(v, s) {
			return true
		}
	}
	return false
}

// Means reports whether the host of a service means that service for a viewer.
func (p *PortServices) Means(v Viewer, s ServiceDefinition) bool {
	for best := range Choose(v, p.OfHost(s.Key.Host)) {
		return best.Key == s.Key
	}
	return false
}

// All yields every service of the port, and the services that share a host with one.
func (p *PortServices) All() iter.Seq[ServiceDefinition] { return p.all }

func (p *PortServices) all(yield func(ServiceDefinition) bool) {
	for key, d := range p.services.All() {
		if !yield(ServiceDefinition{key, d}) {
			return
		}
	}
}

// OfHost yields the services of a host, by namespace.
func (p *PortServices) OfHost(host string) iter.Seq[ServiceDefinition] {
	return func(yield func(ServiceDefinition) bool) {
		for key, d := range p.services.From(ServiceKey{Host: host}) {
			if key.Host != host || !yield(ServiceDefinition{key, d}) {
				return
			}
		}
	}
}

// portsAfter returns the services of each port after some services changed. The ports of s are
// those before the change.
func portsAfter(s *Snapshot, changed map[ServiceKey]ServiceChange) immutable.Map[uint32, *PortServices] {
	hosts := map[string][]*Service{} // the previous services of each changed host
	for key, c := range changed {
		was := hosts[key.Host]
		switch {
		case c.Old != nil && c.New != nil && c.Old.Definition == c.New.Definition:
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
	for _, number := range s.Crowded(Change{Services: changed}) {
		edits.at(number).ask(s, number)
	}
	return edits.finish()
}

// portEdits is a change of the indices in the making.
type portEdits struct {
	before  immutable.Map[uint32, *PortServices]
	indices map[uint32]*indexEdit
}

type indexEdit struct {
	services  *immutable.Editor[ServiceKey, *Definition]
	addresses *immutable.Editor[addressKey, *Definition]
	asked     immutable.Map[ServiceKey, int]
	was       *derived.Values // nil if the port is new
	hosts     []string        // the hosts with services that may have changed
}

func (e *portEdits) at(number uint32) *indexEdit {
	edit := e.indices[number]
	if edit == nil {
		was, ok := e.before.Get(number)
		if !ok {
			was = &PortServices{
				services:  immutable.New[ServiceKey, *Definition](ServiceKey.Compare),
				addresses: immutable.New[addressKey, *Definition](addressKey.compare),
				asked:     immutable.New[ServiceKey, int](ServiceKey.Compare),
			}
		}
		edit = &indexEdit{services: was.services.Edit(), addresses: was.addresses.Edit(), asked: was.asked, was: was.derived}
		e.indices[number] = edit
	}
	return edit
}

// host enters the services of a host anew under every port that one of them has, or had
// before the change.
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

// remove removes the addresses of a service's previous version.
func (e *portEdits) remove(was *Service) {
	for _, port := range was.Ports {
		edit := e.at(port.Number)
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
		for address := range s.EveryAddress() {
			edit.addresses.Set(addressKey{address, s.Key}, s.Definition)
		}
	}
}

// ask enters the shares of [MostInstances] that the services of a port ask for, if it is crowded.
func (e *indexEdit) ask(now *Snapshot, number uint32) {
	asked := immutable.New[ServiceKey, int](ServiceKey.Compare).Edit()
	if now.crowds.Crowded(number) {
		for key := range e.services.View().All() {
			s, _ := now.services.Get(key)
			if n := s.instances(number); n > 0 {
				asked.Set(key, crowd.Share(n))
			}
		}
	}
	e.asked = asked.Map()
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
			ports.Set(number, &PortServices{number, services, edit.addresses.Map(), edit.asked, edit.was.Next(edit.hosts)})
		}
	}
	return ports.Map()
}

// Derive returns a value derived from the services of the port for a key. See
// [derived.Values.Derive].
func (p *PortServices) Derive(key any, derive func(before derived.Change) (any, error)) (any, error) {
	return p.derived.Derive(key, derive)
}
