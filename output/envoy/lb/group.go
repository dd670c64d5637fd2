package lb

import (
	"cmp"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output/envoy/wire"
)

// zone contains the endpoints of one locality of the registry that are equally far from the
// client. They are one group in an assignment, or one for each class of weights.
type zone struct {
	model.Locality
	distance uint32 // from the client of the assignment; part of the identity of a zone
	// digits is how many leading binary digits of its endpoints' weights make a
	// class; 0 if all of them are one group.
	digits int
	marked bool     // its groups are named after their classes even if that could be left out
	groups []*group // by class
	// foreign are the weights of endpoints behind gateways, by network.
	foreign []foreign
}

// group is a group of an assignment in the making.
type group struct {
	wire.Group
	distance uint32 // from the client that the assignment is for
	class    uint32 // of weights
}

const (
	// MostClasses is how many groups a locality may become. A client has a balancer
	// of its own for each of them.
	MostClasses = 64
	// ClassMark stands between a sub-zone and the weight that a group is named after.
	ClassMark = "~weight="
)

// GroupByWeight makes a group of each weight in a locality, for clients that obey only the
// weights of localities. If there are too many, weights with the same leading digits share a
// group.
func (d *Draft) GroupByWeight(endpoints *catalog.Endpoints) {
	weights := map[model.Locality][]uint32{}
	for locality, weight := range endpoints.Weights() {
		at := PlainText(locality)
		weights[at] = append(weights[at], weight)
	}
	d.digits = make(map[model.Locality]int, len(weights))
	for locality, list := range weights {
		slices.Sort(list)
		d.digits[locality] = DigitsFor(slices.Compact(list))
	}
}

// DigitsFor returns the number of leading digits that distinguishes the most weights. Weights
// have at most 32 of them, so one digit always leaves few enough classes.
func DigitsFor(weights []uint32) int {
	if len(weights) < 2 {
		return 0
	}
	digits := 32
	for classes(weights, digits) > MostClasses {
		digits--
	}
	return digits
}

// classes counts the classes of weights in ascending order.
func classes(weights []uint32, digits int) (n int) {
	last := uint32(0)
	for _, w := range weights {
		if c := ClassOf(w, digits); c != last {
			n, last = n+1, c
		}
	}
	return n
}

// ClassOf is the lightest weight with the same leading digits.
func ClassOf(weight uint32, digits int) uint32 {
	rest := max(bits.Len32(weight)-digits, 0)
	return weight >> rest << rest
}

// groupOf returns the group of endpoints of a weight.
func (z *zone) groupOf(weight uint32) *group {
	class := uint32(0)
	if z.digits > 0 {
		class = ClassOf(weight, z.digits)
	}
	if len(z.groups) == 1 && z.groups[0].class == class {
		return z.groups[0]
	}
	at, found := slices.BinarySearchFunc(z.groups, class, func(g *group, class uint32) int { return cmp.Compare(g.class, class) })
	if !found {
		z.groups = slices.Insert(z.groups, at, &group{wire.Group{Locality: z.written(class)}, z.distance, class})
	}
	return z.groups[at]
}

// written names a group. Endpoints of the weight 1, the default, keep the locality's own name: when others of their
// locality get weights, they stay where they are. A sub-zone that looks like such
// a name itself is marked in any case, so that no two groups share a name.
func (z *zone) written(class uint32) model.Locality {
	l := z.Locality
	if class > 1 || z.marked {
		l.SubZone += ClassMark + strconv.FormatUint(uint64(class), 10)
	}
	return l
}

// fewZones are looked through sooner than searched.
const fewZones = 8

// zoneOf returns the zone of endpoints of a locality at a distance.
func (d *Draft) zoneOf(l *model.Locality, distance uint32) *zone {
	if len(d.zones) <= fewZones {
		for _, z := range d.zones {
			if z.distance == distance && z.Locality == *l {
				return z
			}
		}
	}
	at, found := slices.BinarySearchFunc(d.zones, l, func(z *zone, l *model.Locality) int {
		return cmp.Or(CompareLocalities(&z.Locality, l), cmp.Compare(z.distance, distance))
	})
	if found {
		return d.zones[at]
	}
	if plain := PlainText(*l); plain != *l {
		return d.zoneOf(&plain, distance)
	}
	z := &zone{Locality: *l, distance: distance, digits: d.digits[*l], marked: d.digits != nil && strings.Contains(l.SubZone, ClassMark)}
	d.zones = slices.Insert(d.zones, at, z)
	return z
}

// PlainText makes a locality fit for a message, which rejects other text.
func PlainText(l model.Locality) model.Locality {
	if utf8.ValidString(l.Region) && utf8.ValidString(l.Zone) && utf8.ValidString(l.SubZone) {
		return l
	}
	valid := func(s string) string { return strings.ToValidUTF8(s, string(utf8.RuneError)) }
	return model.Locality{Region: valid(l.Region), Zone: valid(l.Zone), SubZone: valid(l.SubZone)}
}

// rank gives the groups their priorities by the distance from a client. Priorities
// follow each other without gaps: clients reject an assignment that leaves one out.
func rank(groups []*group) {
	var inUse [distances]bool
	for _, g := range groups {
		inUse[g.distance] = true
	}
	var priorities [distances]uint32
	next := uint32(0)
	for at, used := range inUse {
		priorities[at] = next
		if used {
			next++
		}
	}
	for _, g := range groups {
		g.Priority = priorities[g.distance]
	}
}
