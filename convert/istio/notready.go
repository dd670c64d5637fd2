package istio

import (
	"cmp"
	"iter"
	"maps"
	"net/netip"
	"slices"
	"strings"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/isthmus-mesh/isthmus/internal/mcp"
	"github.com/isthmus-mesh/isthmus/model"
)

// The annotations of a synthetic ServiceEntry.
const (
	serviceVersion    = mcp.ServiceVersion
	endpointsVersion  = mcp.EndpointsVersion
	notReadyEndpoints = mcp.NotReadyEndpoints
)

// addNotReady adds the endpoints in the annotation of a synthetic ServiceEntry, which exist
// but get no traffic. An endpoint that is also listed as ready becomes unhealthy. An item
// that is not an address with a port is ignored. So is an item with a port that no port of
// the service uses.
func addNotReady(r *Reading, entry *networking.ServiceEntry, annotation string, paths []model.Path) {
	if annotation == "" || entry.GetResolution() != networking.ServiceEntry_STATIC || entry.GetWorkloadSelector() != nil {
		return
	}
	endpoints, at := make([]model.Endpoint, len(r.Owned)), map[netip.AddrPort]int{}
	ways := make([]model.Path, len(r.Owned))
	for i, o := range r.Owned {
		endpoints[i], ways[i] = o.Spec.(model.Endpoint), o.Path
		for socket := range socketsOf(entry, endpoints[i]) {
			at[socket] = i
		}
	}
	named, added := portNames(entry, endpoints), map[arrival]map[string]uint32{}
	for item, text := range strings.Split(annotation, ",") {
		socket, err := netip.ParseAddrPort(strings.TrimSpace(text))
		if i, ready := at[socket]; ready {
			endpoints[i].Health = model.Unhealthy
		} else if names := named(uint32(socket.Port())); err == nil && len(names) > 0 {
			came := arrival{socket.Addr(), paths[item]}
			if added[came] == nil {
				added[came] = map[string]uint32{}
			}
			for _, name := range names {
				added[came][name] = uint32(socket.Port())
			}
		}
	}
	for _, came := range slices.SortedFunc(maps.Keys(added), arrival.compare) {
		endpoints, ways = append(endpoints, model.Endpoint{
			Address: came.address.String(), Ports: model.MapOf(added[came]),
			Exact: len(added[came]) < len(entry.GetPorts()), Health: model.Unhealthy,
		}), append(ways, came.path)
	}
	r.Owned = make([]Owned, len(endpoints))
	for i, name := range endpointNames(endpoints) {
		r.Owned[i] = Owned{r.Ref.Name + "/" + name, endpoints[i], ways[i]}
	}
}

// arrival is an address and its path.
type arrival struct {
	address netip.Addr
	path    model.Path
}

func (a arrival) compare(o arrival) int {
	return cmp.Or(a.address.Compare(o.address), cmp.Compare(a.path, o.path))
}

// socketsOf yields the addresses and ports of an endpoint.
func socketsOf(entry *networking.ServiceEntry, e model.Endpoint) iter.Seq[netip.AddrPort] {
	return func(yield func(netip.AddrPort) bool) {
		address, err := netip.ParseAddr(e.Address)
		for _, p := range entry.GetPorts() {
			number, own := e.Ports.Get(p.GetName())
			if !own {
				number = targetOf(p)
			}
			if err == nil && !yield(netip.AddrPortFrom(address, uint16(number))) { //nolint:gosec // a valid port
				return
			}
		}
	}
}

func targetOf(p *networking.ServicePort) uint32 { return cmp.Or(p.GetTargetPort(), p.GetNumber()) }

// portNames returns a function from a port number to the service ports that an endpoint
// serves there. These are the ports that other endpoints serve at that number, otherwise
// the ports with that target port, otherwise the only port.
func portNames(entry *networking.ServiceEntry, others []model.Endpoint) func(number uint32) []string {
	by := map[uint32][]string{}
	note := func(number uint32, name string) {
		if !slices.Contains(by[number], name) {
			by[number] = append(by[number], name)
		}
	}
	for _, e := range others {
		for name, number := range e.Ports.All() {
			note(number, name)
		}
	}
	for _, p := range entry.GetPorts() {
		if len(by[targetOf(p)]) == 0 {
			note(targetOf(p), p.GetName())
		}
	}
	return func(number uint32) []string {
		if names := by[number]; len(names) > 0 || len(entry.GetPorts()) != 1 {
			return names
		}
		return []string{entry.GetPorts()[0].GetName()}
	}
}
