package istio

import (
	"slices"
	"strconv"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
)

// Layout says how the endpoints of a service are spread over objects.
type Layout struct {
	// ShardSize is how many endpoints an object should have at most. Zero is for
	// those who take objects of any size: then size divides nothing.
	ShardSize int
	// Exists tells which names of objects are in use for the service now, so that
	// their number changes with some slack: each step rewrites about half of the
	// endpoints. It may be nil.
	Exists func(name string) bool
	// Workloads has the endpoints written as WorkloadEntry objects that the service
	// selects: by these labels, which are the writer's own, and [LabelService]. Nil
	// has them written inline. It is for services of which [TakesWorkloads] holds,
	// and does nothing to others.
	Workloads map[string]string
	// PortNames are those that ports have in objects, by number, where that is not the
	// service's own name. Istio finds the endpoints of a port by its name, and shows
	// none for a moment if that changes.
	PortNames map[uint32]string
}

// named gives ports the names that they have in objects. If two would have one name,
// each keeps its own.
func (l Layout) named(ports []model.Port) []model.Port {
	if len(l.PortNames) == 0 {
		return ports
	}
	named, taken := slices.Clone(ports), make(map[string]bool, len(ports))
	for i := range named {
		p := &named[i]
		if name := l.PortNames[p.Number]; isLabel(name) {
			p.Name = name
		}
		if taken[p.Name] {
			return ports
		}
		taken[p.Name] = true
	}
	return named
}

// part is one of the objects that a service is written as. Istio unites those
// of one host and namespace: their ports by number, and their endpoints by the
// name of the port, so an endpoint serves the ports of its own part only.
type part struct {
	kind      Kind
	name      string
	ports     []model.Port
	endpoints []endpoint
	selector  map[string]string // of a ServiceEntry whose endpoints are objects of their own
	labels    map[string]string // of the object
}

// layout spreads the endpoints of a service over parts: by the ports they
// serve, since an object cannot say that one of its endpoints does not serve
// one of its ports; and, where there are many, by hash, so that a change of one
// endpoint rewrites one part. The first part has every port of the service
// whatever its endpoints do, so that those who come and go change no port.
//
// The number of parts grows and shrinks with some slack, see [Layout.Exists].
func (l Layout) parts(s *catalog.Service, ports []model.Port, endpoints []endpoint) ([]part, []group) {
	if l.Workloads != nil && TakesWorkloads(s) {
		return l.workloads(s, ports, endpoints)
	}
	first := part{kind: ServiceEntry, name: NameOf(s.Key.Host), ports: ports}
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
	if isDNS(s.Resolution) && len(endpoints) > 0 { // without endpoints, an object would have the host looked up
		parts = slices.DeleteFunc(parts, func(p part) bool { return len(p.endpoints) == 0 })
	}
	return parts, groups
}

// group is endpoints that serve the same ports, which are spread over parts by hash.
type group struct {
	first, serves string // the name of the first part, and what the endpoints serve
	parts         int
	endpoints     int
	enlarged      bool // there are more parts than by number, since endpoints are so long
}

// partName is that of one of the parts.
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
			parts[i] = part{kind: ServiceEntry, name: g.partName(host, i), ports: first.ports}
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

// partsOf is how many parts a group has by the number of its endpoints. Its slack does
// not matter unless there is the part after those that it needs, which is rare.
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
	// MostBytes is how large the endpoints of an object may be in JSON, about. It
	// leaves room below etcd's limit of 1.5 MiB for a request.
	MostBytes = 1 << 20
	// MostEndpoints is how many of them Istio's schema allows in an object.
	MostEndpoints = 4096
)

// shardsFor returns the number of parts, a power of two, so that from one
// number to the next every part is cut in two or united with one other.
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

// bucket tells the part of an endpoint. It depends on where the endpoint is and
// not on what is said about it.
func bucket(e endpoint, shards int) int {
	var buffer [128]byte
	text := append(append(append(append(buffer[:0], e.Address...), '|'), e.Network...), '|')
	x := hashOffset // of FNV-1a, of which the lower bits alone are not well mixed
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

// size is about how long the endpoint is in JSON.
func (e endpoint) size() int {
	n := 80 + len(e.Address) + len(e.Network) + len(e.ServiceAccount) + len(e.Locality.Region) + len(e.Locality.Zone) + len(e.Locality.SubZone) + 2 + 80*len(e.ports)
	for name, value := range e.Labels.All() {
		n += len(name) + len(value) + 6
	}
	return n
}

// standsForItself reports whether the host is the only name to look up, which
// Istio does if there are no endpoints.
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

func isDNS(r model.Resolution) bool {
	return r == model.ResolutionDNS || r == model.ResolutionDNSRoundRobin
}
