// Package ports unites the ports of the records of a service.
package ports

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/isthmus-mesh/isthmus/model"
)

// Record is a record of a service.
type Record struct {
	Ref  model.Ref
	Path model.Path
	*model.Service
}

// Union is the ports of some records. Each has the resolution of the record that defines it: the
// first with the port. UDP never takes a number from TCP.
type Union struct {
	Ports     []model.Port                // by number
	Others    map[uint32]model.Resolution // of the ports with another resolution than the first record's
	Paths     map[uint32]model.Path       // the shortest of a record with the port; nil if all are empty
	Conflicts []Conflict

	records   []Record
	definedBy map[uint32]int
	apart     []int // by record, the earlier one with which it does not unite; -1 for none
}

// Conflict is a contradiction between two records, with its winner.
type Conflict struct {
	Field  string // "resolution", "ports[80].protocol", …
	Kept   model.Ref
	Lost   model.Ref
	Reason string
}

// Alone reports whether no other record wins: the thing is one that the record cannot have, or has
// because it says too little.
func (c Conflict) Alone() bool { return c.Kept == c.Lost }

// Of unites the ports of records in merge order.
func Of(records []Record) *Union {
	u := &Union{records: records, definedBy: map[uint32]int{}, apart: make([]int, len(records))}
	if slices.ContainsFunc(records, func(r Record) bool { return r.Path != "" }) {
		u.Paths = map[uint32]model.Path{}
	}
	u.separate()
	for _, udp := range []bool{false, true} {
		for i := range records {
			for port := range records[i].Ports.All() {
				if port.IsUDP() == udp && !(udp && records[i].hasTCP(port.Number)) && u.apart[i] < 0 {
					u.add(i, port)
				}
			}
		}
	}
	slices.SortFunc(u.Ports, func(a, b model.Port) int { return cmp.Compare(a.Number, b.Number) })
	return u
}

// separate finds the records that do not unite with an earlier one that has a part. A port of resolution NONE
// listens at the addresses of its own record alone, so it unites with no record that adds others. It takes the
// connections that are for no service, so no other source than the first adds one to a service of another resolution.
func (u *Union) separate() {
	var with [2][]int // the earlier ones: of resolution NONE, and of others
	first, at := u.records[0].Resolution, map[uint32]definer{}
	for i := range u.records {
		r := &u.records[i]
		own, other := 1, 0
		if r.Resolution == model.ResolutionNone {
			own, other = 0, 1
		}
		n := slices.IndexFunc(with[other], func(j int) bool {
			pair := [2]*Record{r, &u.records[j]}
			return !pair[other].within(pair[own].Addresses) // a record of resolution NONE is pair[own]
		})
		if u.apart[i] = -1; n >= 0 {
			u.apart[i] = with[other][n]
			continue
		}
		if r.Resolution == model.ResolutionNone && first != r.Resolution && r.Ref.Source != u.records[0].Ref.Source {
			u.apart[i] = 0
			continue
		}
		part := r.Resolution == first
		for port := range r.Ports.All() {
			if was, known := at[port.Number]; !known || was.udp && !port.IsUDP() {
				at[port.Number] = definer{r.Resolution, port.IsUDP()}
			}
			part = part || at[port.Number].resolution == r.Resolution
		}
		if part {
			with[own] = append(with[own], i)
		}
	}
}

// definer is the resolution of a port, by the record that defines the port.
type definer struct {
	resolution model.Resolution
	udp        bool // a later port of TCP takes the number
}

// within reports whether a record has no other addresses than these.
func (r *Record) within(addresses model.List[string]) bool {
	if r.Addresses.Equal(addresses) {
		return true
	}
	all := map[string]bool{}
	for address := range addresses.All() {
		all[address] = true
	}
	for address := range r.Addresses.All() {
		if !all[address] {
			return false
		}
	}
	return true
}

// hasTCP reports whether a record has a port of that number for anything but UDP.
func (r *Record) hasTCP(number uint32) bool {
	for port := range r.Ports.All() {
		if port.Number == number && !port.IsUDP() {
			return true
		}
	}
	return false
}

func (u *Union) add(i int, port model.Port) {
	r := u.records[i]
	at, defined := u.definedBy[port.Number]
	if defined && u.records[at].Resolution != r.Resolution {
		return // see Lost
	}
	if u.Paths != nil { // the shortest path counts, regardless of the source that defines the port
		path := cmp.Or(port.Path, r.Path)
		if known, ok := u.Paths[port.Number]; !ok || path.Compare(known) < 0 {
			u.Paths[port.Number] = path
		}
	}
	port.Path = ""
	if !defined {
		u.definedBy[port.Number], u.Ports = i, append(u.Ports, port)
		if r.Resolution != u.records[0].Resolution {
			if u.Others == nil {
				u.Others = map[uint32]model.Resolution{}
			}
			u.Others[port.Number] = r.Resolution
		}
		return
	}
	kept := u.Ports[slices.IndexFunc(u.Ports, func(p model.Port) bool { return p.Number == port.Number })]
	for field, pair := range map[string][2]string{"name": {kept.Name, port.Name}, "protocol": {kept.Protocol, port.Protocol}} {
		if pair[0] != pair[1] {
			u.Conflicts = append(u.Conflicts, Conflict{
				fmt.Sprintf("ports[%d].%s", port.Number, field), u.records[at].Ref, r.Ref, fmt.Sprintf("%q is kept over %q", pair[0], pair[1]),
			})
		}
	}
}

// Part reports whether a record has a part in the service: a port with its resolution, or the resolution of the
// first record. Lost is the conflict of a record that has none, or not at each of its ports; nil without one.
func (u *Union) Part(i int) (takes bool, lost *Conflict) {
	r, to := u.records[i], u.records[0]
	if u.apart[i] >= 0 {
		to = u.records[u.apart[i]]
	}
	takes = u.apart[i] < 0 && r.Resolution == to.Resolution
	var ports []string
	for port := range r.Ports.All() {
		switch by, ok := u.definedBy[port.Number]; {
		case u.apart[i] >= 0:
		case ok && u.records[by].Resolution == r.Resolution:
			takes = true
			continue
		case ok && len(ports) == 0:
			to = u.records[by]
		}
		ports = append(ports, strconv.FormatUint(uint64(port.Number), 10))
	}
	if ports == nil && takes {
		return true, nil
	}
	reason := fmt.Sprintf("its resolution is %s, that of %s is %s", r.Resolution, to.Ref, to.Resolution)
	if ports != nil {
		reason += fmt.Sprintf("; nobody is served its endpoints at port %s: give both one resolution, or one of them another host", strings.Join(ports, ", "))
	}
	return takes, &Conflict{"resolution", to.Ref, r.Ref, reason}
}
