package lb

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output/envoy/policy"
	"github.com/isthmus-mesh/isthmus/output/envoy/reach"
	"github.com/isthmus-mesh/isthmus/output/envoy/wire"
)

// Draft is a load assignment in the making: the endpoints that are served, and
// the localities they are grouped by. It is filled by one walk over the
// endpoints and then written out by another over the places, so that a service
// of 20,000 endpoints costs a handful of allocations.
type Draft struct {
	wire.Assignment
	Of     *policy.Selector // nil for all endpoints
	From   Location         // of the client
	Order  Order
	Avoids Avoided
	Via    *policy.RemoteGateways // to endpoints of other networks; nil if all are reached directly
	Mutual *policy.MutualPorts    // of the service's namespace; nil if no endpoint is called by mutual TLS
	zones  []*zone                // by locality and distance
	// digits are those of weights in each locality, if these are groups of their own; else nil.
	digits map[model.Locality]int
	// Resolves means that endpoints are DNS names. Only others have further addresses.
	Resolves bool
}

// Fill takes in the endpoints that should be served. Those that should not
// are left out rather than marked, so that Envoy, which in a panic sends
// traffic to everything it knows, does not know them.
func (d *Draft) Fill(endpoints *catalog.Endpoints, address func(catalog.Endpoint) (string, string)) {
	if endpoints != nil {
		d.take(endpoints, address)
	}
	d.balance()
	d.dropDuplicateAddresses()
	d.gather()
}

func (d *Draft) take(endpoints *catalog.Endpoints, address func(catalog.Endpoint) (string, string)) {
	if d.Of == nil {
		d.Endpoints = make([]wire.Endpoint, 0, endpoints.Healthy)
	}
	var last *zone
	for e := range endpoints.All() {
		if e.Health != model.Healthy || !d.Of.Selects(e.Labels) || !d.From.sees(e, d.Order) || d.Avoids.has(e) {
			continue
		}
		written, left := address(e)
		foreign := d.Via.LeadTo(e.Network)
		if left != "" && !(foreign && e.Address == "") { // who goes through a gateway needs no address
			continue
		}
		if !foreign && d.isTaken(e, written) {
			continue
		}
		distance := d.From.distance(e, d.Order)
		if last == nil || last.distance != distance || last.Locality != e.Locality {
			last = d.zoneOf(&e.Locality, distance)
		}
		weight := max(e.Weight, 1)
		if foreign {
			last.leave(e.Network, weight)
			continue
		}
		d.Endpoints = append(d.Endpoints, wire.Endpoint{Address: written, Port: uint16(e.Port), Mutual: d.Mutual.Reaches(e.Labels, e.Port), Weight: weight, Group: &last.groupOf(weight).Group, Also: d.alsoAt(e, written)}) //nolint:gosec // other ports are left out
	}
}

// isTaken reports whether the endpoint before has the address and port, in another network: clients reject
// an assignment with both, or drop the second. It makes room for the endpoint of the client's own network.
func (d *Draft) isTaken(e catalog.Endpoint, written string) bool {
	last := len(d.Endpoints) - 1
	if last < 0 || d.Endpoints[last].Address != written || uint32(d.Endpoints[last].Port) != e.Port {
		return false
	}
	if d.Via.IsOwn(e.Network) {
		d.Endpoints = d.Endpoints[:last]
		return false
	}
	return true
}

// alsoAt lists the further addresses of an endpoint. They are of clients that try the one
// after the other, so an endpoint on a socket or of a name has none.
func (d *Draft) alsoAt(e catalog.Endpoint, written string) (list []string) {
	if d.Resolves || e.Port == 0 {
		return nil
	}
	for _, ip := range reach.FurtherAddresses(e) {
		if text := ip.String(); text != written {
			list = append(list, text)
		}
	}
	return list
}

// dropDuplicateAddresses leaves out further addresses that occur elsewhere in the assignment.
// gRPC rejects an assignment with an address that occurs twice.
func (d *Draft) dropDuplicateAddresses() {
	type socket struct {
		address string
		port    uint16
	}
	if !slices.ContainsFunc(d.Endpoints, func(e wire.Endpoint) bool { return len(e.Also) > 0 }) {
		return
	}
	taken := make(map[socket]struct{}, 2*len(d.Endpoints))
	for i := range d.Endpoints {
		taken[socket{d.Endpoints[i].Address, d.Endpoints[i].Port}] = struct{}{}
	}
	for i := range d.Endpoints {
		p := &d.Endpoints[i]
		p.Also = slices.DeleteFunc(p.Also, func(address string) bool {
			_, is := taken[socket{address, p.Port}]
			taken[socket{address, p.Port}] = struct{}{}
			return is
		})
	}
}

func compareEndpoints(a, b wire.Endpoint) int {
	return cmp.Or(strings.Compare(a.Address, b.Address), cmp.Compare(a.Port, b.Port))
}

// balance sums up the weights of localities. Clients reject an assignment if
// the weights of a locality's endpoints, or those of all localities, add up to
// more than 32 bits hold. Past that every weight is divided by the same
// number, at which it stays at least 1.
func (d *Draft) balance() {
	var total uint64
	for i := range d.Endpoints {
		total += uint64(d.Endpoints[i].Weight)
	}
	for _, z := range d.zones {
		for _, foreign := range z.foreign {
			total += foreign.weight
		}
	}
	scale, gateways := d.scaleFor(total)
	divisor := uint64(1)
	if most := math.MaxUint32 - gateways; total > most {
		room := most - uint64(len(d.Endpoints))
		divisor = (total + room - 1) / room
	}
	for i := range d.Endpoints {
		p := &d.Endpoints[i]
		p.Weight = uint32(max(uint64(p.Weight)*scale/divisor, 1)) //nolint:gosec // all of them together fit
		p.Group.Weight += uint64(p.Weight)
	}
	d.enter(scale, divisor)
}

// gather puts the groups in order, without those that have no served endpoint.
func (d *Draft) gather() {
	var groups []*group
	for _, z := range d.zones {
		for _, g := range z.groups {
			if g.Weight > 0 {
				groups = append(groups, g)
			}
		}
	}
	rank(groups)
	slices.SortFunc(groups, func(a, b *group) int {
		return cmp.Or(cmp.Compare(a.Priority, b.Priority), CompareLocalities(&a.Locality, &b.Locality))
	})
	for _, g := range groups {
		d.Groups = append(d.Groups, &g.Group)
	}
}
