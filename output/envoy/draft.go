package envoy

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
)

// draft is a load assignment in the making: the endpoints that are served, and
// the localities they are grouped by. It is filled by one walk over the
// endpoints and then written out by another over the places, so that a service
// of 20,000 endpoints costs a handful of allocations.
type draft struct {
	name   string
	places []place  // by address and port
	groups []*group // by locality
	size   int      // of the encoded assignment
}

// place is one endpoint as the assignment carries it.
type place struct {
	address string // an IP address, a name, or the path of a socket if port is 0
	port    uint32
	weight  uint32
	group   *group
}

// group is the endpoints of one locality. Clients demand that a locality
// occurs once.
type group struct {
	model.Locality
	weight uint64 // sum of its endpoints' weights
	size   int    // of its encoded endpoints
	at     int    // where the next of them is written
}

// newDraft takes in the endpoints that should be served. Those that should not
// are left out rather than marked, so that Envoy, which in a panic sends
// traffic to everything it knows, does not know them.
func newDraft(name string, endpoints *catalog.Endpoints, address func(catalog.Endpoint) (string, string)) *draft {
	d := &draft{name: name}
	if endpoints != nil {
		d.take(endpoints, address)
	}
	d.balance()
	d.measure()
	return d
}

func (d *draft) take(endpoints *catalog.Endpoints, address func(catalog.Endpoint) (string, string)) {
	d.places = make([]place, 0, endpoints.Healthy)
	rewritten := false
	var last *group
	for e := range endpoints.All() {
		if e.Health != model.Healthy {
			continue
		}
		written, left := address(e)
		if left != "" {
			continue
		}
		rewritten = rewritten || written != e.Address && e.Port != 0
		if last == nil || last.Locality != e.Locality {
			last = d.groupOf(&e.Locality)
		}
		d.places = append(d.places, place{written, e.Port, max(e.Weight, 1), last})
	}
	if rewritten {
		d.unite()
	}
}

// fewGroups are looked through sooner than searched.
const fewGroups = 8

// groupOf returns the group of a locality.
func (d *draft) groupOf(l *model.Locality) *group {
	if len(d.groups) <= fewGroups {
		for _, g := range d.groups {
			if g.Locality == *l {
				return g
			}
		}
	}
	at, found := slices.BinarySearchFunc(d.groups, l, func(g *group, l *model.Locality) int { return compareLocalities(&g.Locality, l) })
	if found {
		return d.groups[at]
	}
	if plain := plainText(*l); plain != *l {
		return d.groupOf(&plain)
	}
	g := &group{Locality: *l}
	d.groups = slices.Insert(d.groups, at, g)
	return g
}

func compareLocalities(a, b *model.Locality) int {
	return cmp.Or(strings.Compare(a.Region, b.Region), strings.Compare(a.Zone, b.Zone), strings.Compare(a.SubZone, b.SubZone))
}

// plainText makes a locality fit for a message, which rejects other text.
func plainText(l model.Locality) model.Locality {
	if utf8.ValidString(l.Region) && utf8.ValidString(l.Zone) && utf8.ValidString(l.SubZone) {
		return l
	}
	valid := func(s string) string { return strings.ToValidUTF8(s, string(utf8.RuneError)) }
	return model.Locality{Region: valid(l.Region), Zone: valid(l.Zone), SubZone: valid(l.SubZone)}
}

// unite restores the order, and that no endpoint occurs twice, after addresses
// were brought into canonical form. Of two that turn out to be the same the
// first counts.
func (d *draft) unite() {
	slices.SortStableFunc(d.places, func(a, b place) int {
		return cmp.Or(strings.Compare(a.address, b.address), cmp.Compare(a.port, b.port))
	})
	d.places = slices.CompactFunc(d.places, func(a, b place) bool { return a.address == b.address && a.port == b.port })
}

// balance sums up the weights of localities. Clients reject an assignment if
// the weights of a locality's endpoints, or those of all localities, add up to
// more than 32 bits hold. Past that every weight is divided by the same
// number, at which it stays at least 1.
func (d *draft) balance() {
	var total uint64
	for i := range d.places {
		total += uint64(d.places[i].weight)
	}
	divisor := uint32(1)
	if room := math.MaxUint32 - uint64(len(d.places)); total > math.MaxUint32 {
		divisor = uint32((total + room - 1) / room)
	}
	for i := range d.places {
		p := &d.places[i]
		p.weight = max(p.weight/divisor, 1)
		p.group.weight += uint64(p.weight)
	}
	d.groups = slices.DeleteFunc(d.groups, func(g *group) bool { return g.weight == 0 }) // all of it was united elsewhere
}
