package admin

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
)

// zone is a zone of a region.
type zone struct{ region, name string }

// zoneShares is the shares of the backends in the calls from a zone.
type zoneShares struct {
	zone
	shares []float64 // by backend, as parts of 1
}

// sharesByZone returns the shares for each zone with endpoints of a port, by region and zone.
// Clients call the healthy endpoints of their zone, or else of their region, or else all.
// Sub-zones, nodes and networks do not count. There are none unless the split has near
// endpoints come first.
func sharesByZone(service *catalog.Service, port uint32) (list []zoneShares) {
	if service.Split == nil || service.Split.IgnoresLocality() {
		return nil
	}
	inZones, inRegions, sums := map[zone][]float64{}, map[string][]float64{}, make([]float64, len(service.Split.Backends))
	for e, parts := range service.Weighed(port) {
		at := zone{e.Locality.Region, e.Locality.Zone}
		if inZones[at] == nil {
			inZones[at] = make([]float64, len(parts))
		}
		if inRegions[at.region] == nil {
			inRegions[at.region] = make([]float64, len(parts))
		}
		if e.Health != model.Healthy {
			continue
		}
		for i, part := range parts {
			inZones[at][i] += part
			inRegions[at.region][i] += part
			sums[i] += part
		}
	}
	delete(inZones, zone{}) // a client without a locality calls all endpoints
	for at, near := range inZones {
		list = append(list, zoneShares{at, firstShares(near, inRegions[at.region], sums)})
	}
	slices.SortFunc(list, func(a, b zoneShares) int { return cmp.Or(cmp.Compare(a.region, b.region), cmp.Compare(a.name, b.name)) })
	return list
}

// firstShares divides the weights of the nearest endpoints by their sum. Levels are the weights
// by backend, from the nearest endpoints to all; the last are not all 0.
func firstShares(levels ...[]float64) []float64 {
	for _, weights := range levels {
		total := 0.0
		for _, weight := range weights {
			total += weight
		}
		if total > 0 {
			shares := slices.Clone(weights)
			for i := range shares {
				shares[i] /= total
			}
			return shares
		}
	}
	return make([]float64, len(levels[0]))
}

const (
	zoneDeviation  = 0.02 // from the share asked for, beyond which a zone is a finding
	mostZonesShown = 3
)

// unmetByZone names the zones with other shares than asked for; empty if there are none.
func unmetByZone(service *catalog.Service, port uint32) string {
	asked := service.Shares(port)
	var differing []string
	for _, z := range sharesByZone(service, port) {
		worst, most := 0, 0.0
		for i, s := range asked {
			if by := rounded(math.Abs(z.shares[i] - s.Asked)); by > most {
				worst, most = i, by
			}
		}
		if of := asked[worst]; most > zoneDeviation {
			differing = append(differing, fmt.Sprintf("in %s %s gets %g %% instead of %.4g %%", z, backendName(of.Backend), math.Round(1000*z.shares[worst])/10, 100*of.Asked))
		}
	}
	if more := len(differing) - mostZonesShown; more > 0 {
		differing = append(differing[:mostZonesShown], fmt.Sprintf("and in %s more", count(more, "zone")))
	}
	return strings.Join(differing, "; ")
}

func (z zone) String() string { return "zone " + z.region + "/" + z.name }
