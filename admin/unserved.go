package admin

import "github.com/isthmus-mesh/isthmus/catalog"

// unserved is the endpoints of one service that no client gets, with the reasons.
type unserved map[catalog.EndpointID]string

// unservedOf asks the outputs. If several leave an endpoint out, the first one's reason is
// shown.
func unservedOf(service *catalog.Service, outputs []served) unserved {
	var found unserved
	for _, o := range outputs {
		for id, reason := range o.Unserved(service) {
			if found == nil { // most services have none
				found = unserved{}
			}
			if _, known := found[id]; !known {
				found[id] = reason
			}
		}
	}
	return found
}

// count counts as [catalog.Service.Counts] does, across the ports that leave an endpoint
// out: an address counts as often as a single port leaves it out.
func (u unserved) count() int {
	type place struct {
		address string
		port    uint32
	}
	each, most := map[place]int{}, map[string]int{}
	for id := range u {
		each[place{id.Address, id.ServicePort}]++
		most[id.Address] = max(most[id.Address], each[place{id.Address, id.ServicePort}])
	}
	total := 0
	for _, n := range most {
		total += n
	}
	return total
}
