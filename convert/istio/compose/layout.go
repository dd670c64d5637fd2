package compose

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/convert/istio"
	"github.com/isthmus-mesh/isthmus/convert/istio/names"
	"github.com/isthmus-mesh/isthmus/model"
)

// Layout defines how the endpoints of a service are spread over objects.
type Layout struct {
	// ShardSize is the desired maximum of endpoints in an object. Zero is for readers that
	// accept objects of any size: then size divides nothing.
	ShardSize int
	// Exists reports whether an object name is in use for the service now. The number of
	// objects then changes with some slack, because each step rewrites about half of the
	// endpoints. It may be nil.
	Exists func(name string) bool
	// Workloads are the writer's own labels for WorkloadEntry objects. If set, the endpoints
	// are written as such objects, and the service selects them by these labels and
	// [LabelService]. Nil writes them inline. It affects only services for which
	// [TakesWorkloads] is true.
	Workloads map[string]string
	// PortNames are the names of ports in existing objects, by number, where they differ from
	// the service's own. Istio finds the endpoints of a port by its name, and shows none for a
	// moment if the name changes.
	PortNames map[uint32]string
}

// named gives ports their names in objects. If two would have one name, each keeps its own.
func (l Layout) named(ports []model.Port) []model.Port {
	if len(l.PortNames) == 0 {
		return ports
	}
	named, taken := slices.Clone(ports), make(map[string]bool, len(ports))
	for i := range named {
		p := &named[i]
		if name := l.PortNames[p.Number]; names.IsLabel(name) {
			p.Name = name
		}
		if taken[p.Name] {
			return ports
		}
		taken[p.Name] = true
	}
	return named
}

// part is an object of a written service. Istio unites the objects of one host and
// namespace: their ports by number, and their endpoints by the name of the port. An
// endpoint therefore serves the ports of its own part only.
type part struct {
	kind      istio.Kind
	name      string
	ports     []model.Port
	endpoints []endpoint
	selector  map[string]string // of a ServiceEntry with endpoints in objects of their own
	labels    map[string]string // of the object
}

// parts spreads the endpoints of a service over parts by their served ports: an object
// cannot express that one of its endpoints lacks one of its ports. Many endpoints are also
// spread by hash, so that a change of one endpoint rewrites one part. The first part has
// every port of the service, served or not. Endpoints that come and go therefore change no
// port.
//
// The number of parts grows and shrinks with some slack, see [Layout.Exists].
func (l Layout) parts(s *catalog.Service, ports []model.Port, endpoints []endpoint) ([]part, []group) {
	if l.Workloads != nil && TakesWorkloads(s) {
		return l.workloads(s, ports, endpoints)
	}
	first := part{kind: istio.ServiceEntry, name: NameOf(s.Key.Host), ports: ports}
	if standsForItself(ports, endpoints) {
		return []part{first}, nil
	}
	partly := map[string][]endpoint{}
	all := make([]endpoint, 0, len(endpoints))
	for _, e := range endpoints {
		if e.servesAll(ports) {
			all = append(all, e)
			continue
		}
		serves := e.serves()
		partly[serves] = append(partly[serves], e)
	}
	parts, of := l.spread(s.Key.Host, first, endpoint{ports: servedAll(ports)}.serves(), all)
	parts, groups := l.partial(s.Key.Host, ports, partly, parts, []group{of})
	if istio.IsDNS(s.Resolution) && len(endpoints) > 0 { // without endpoints, Istio would look up the host of an object
		parts = slices.DeleteFunc(parts, func(p part) bool { return len(p.endpoints) == 0 })
	}
	return parts, groups
}

// group is the endpoints that serve the same ports, spread over parts by hash.
type group struct {
	first, serves string // the name of the first part, and the ports that the endpoints serve
	parts         int
	endpoints     int
	enlarged      bool // more parts than the number of endpoints requires, since endpoints are so long
}

// partName returns the name of a part.
func (g group) partName(host string, i int) string {
	if i == 0 {
		return g.first
	}
	return partName(host, g.serves+"#"+strconv.Itoa(i))
}

// spread divides endpoints that serve the same ports by hash.
func (l Layout) spread(host string, first part, serves string, endpoints []endpoint) ([]part, group) {
	g := group{first: first.name, serves: serves, parts: 1, endpoints: len(endpoints)}
	if l.ShardSize == 0 {
		first.endpoints = endpoints
		return []part{first}, g
	}
	for g.parts = l.partsOf(host, g); ; g.parts, g.enlarged = 2*g.parts, true {
		parts := make([]part, g.parts)
		for i := range parts {
			parts[i] = part{kind: istio.ServiceEntry, name: g.partName(host, i), ports: first.ports}
		}
		for _, e := range endpoints {
			p := &parts[bucket(e, g.parts)]
			p.endpoints = append(p.endpoints, e)
		}
		if g.parts >= mostShards || !slices.ContainsFunc(parts, part.isTooLarge) {
			return parts, g
		}
	}
}

// partsOf returns the number of parts of a group by the number of its endpoints. Slack does
// not matter unless the part after the needed ones exists, which is rare.
func (l Layout) partsOf(host string, g group) int {
	least := shardsFor(g.endpoints, l.ShardSize, 0)
	if l.Exists == nil || least >= mostShards || !l.Exists(g.partName(host, least)) {
		return least
	}
	present := 0
	for present < mostShards && l.Exists(g.partName(host, present)) {
		present++
	}
	return shardsFor(g.endpoints, l.ShardSize, present)
}

const (
	mostShards = 1 << 12
	// MostBytes bounds the estimated JSON size of an object's endpoints, in bytes. It leaves
	// room below etcd's limit of 1.5 MiB for a request.
	MostBytes = 1 << 20
	// MostEndpoints is the number of endpoints that Istio's schema allows in an object.
	MostEndpoints = 4096
)

// shardsFor returns the number of parts, a power of two. From one number to the next, every
// part is therefore split in two or united with one other.
func shardsFor(endpoints, size, present int) int {
	shards := 1
	for shards*size < endpoints && shards < mostShards {
		shards *= 2
	}
	kept := 1
	for kept < present {
		kept *= 2
	}
	if kept > shards && endpoints*4 > kept*size {
		return kept
	}
	return shards
}

// bucket returns the part of an endpoint. It depends on the endpoint's address and not on
// its attributes.
func bucket(e endpoint, shards int) int {
	var buffer [128]byte
	text := append(append(append(append(buffer[:0], cmp.Or(e.Address, e.Record.Name)...), '|'), e.Network...), '|')
	x := hashOffset // FNV-1a; its lower bits alone are not well mixed
	for _, c := range strconv.AppendUint(text, uint64(e.ports[0].at), 10) {
		x = (x ^ uint64(c)) * hashPrime
	}
	x ^= x >> 32
	return int(x % uint64(shards)) //nolint:gosec // below shards
}

func (p part) isTooLarge() bool {
	if len(p.endpoints) > MostEndpoints {
		return true
	}
	size := 0
	for _, e := range p.endpoints {
		size += e.size()
	}
	return size > MostBytes
}

// standsForItself reports whether the host is the only name to look up. Istio looks it up
// if there are no endpoints.
func standsForItself(ports []model.Port, endpoints []endpoint) bool {
	return len(endpoints) == 1 && endpoints[0].Record.Kind == model.KindService &&
		len(endpoints[0].ports) == len(ports) && len(endpoints[0].ownPorts(ports)) == 0
}

func servedAll(ports []model.Port) []served {
	all := make([]served, len(ports))
	for i, p := range ports {
		all[i].port = p.Number
	}
	return all
}

// portsOf returns the ports that an endpoint serves.
func portsOf(ports []model.Port, e endpoint) []model.Port {
	return slices.DeleteFunc(slices.Clone(ports), func(p model.Port) bool {
		return !slices.ContainsFunc(e.ports, func(s served) bool { return s.port == p.Number })
	})
}

// change records that a part changes. Drafts that were made of it keep its previous state.
func (p *part) change(changed map[PartName]struct{}) {
	name := PartName{istio.ServiceEntry, p.name}
	if _, already := changed[name]; !already {
		p.endpoints = slices.Clone(p.endpoints)
		changed[name] = struct{}{}
	}
}
