package kubernetes

import (
	"cmp"
	"slices"
)

// instance is one thing that serves: a pod, or an address of which no more is known.
// While it moves from one slice to another, both may have it, or none. Slices of different
// ports have it all the time.
type instance struct {
	id    identity
	has   []position
	claim // by the newest of them; its address is empty if nothing is served
}

// identity is the same wherever an instance stands.
type identity struct {
	// key is the UID, if it has one. Else it is the address and the ports: several may
	// share an address, such as that of their node.
	key string
	// rank tells apart those that stand in one slice with one UID. They are in the order
	// of their addresses. If there is one of a rank, there is one of each lower rank.
	rank int
}

// position is where in which slice an instance stands.
type position struct {
	slice *Slice
	at    int
}

func (p position) endpoint() *sliceEndpoint { return &p.slice.endpoints[p.at] }

func (id identity) compare(o identity) int {
	return cmp.Or(cmp.Compare(id.key, o.key), cmp.Compare(id.rank, o.rank))
}

// positions are the instances of a slice.
func positions(s *Slice) map[identity]position {
	if s == nil {
		return nil
	}
	all := make(map[identity]position, len(s.endpoints))
	for at := range s.endpoints {
		rank(all, position{s, at})
	}
	return all
}

// rank enters a position. One of the same UID with a higher address makes room for it.
func rank(all map[identity]position, p position) {
	id := identityOf(p)
	for {
		other, taken := all[id]
		if !taken {
			all[id] = p
			return
		}
		if p.before(other) {
			all[id], p = p, other
		}
		id.rank++
	}
}

func (p position) before(o position) bool {
	return cmp.Or(cmp.Compare(p.endpoint().address, o.endpoint().address), cmp.Compare(p.at, o.at)) < 0
}

func identityOf(p position) identity {
	e := p.endpoint()
	if e.uid != "" {
		return identity{key: e.uid}
	}
	return identity{key: e.address + "/" + p.slice.ports.signature}
}

func (i *instance) put(old *Slice, p position) {
	at := slices.IndexFunc(i.has, func(o position) bool { return o.slice == old && old != nil })
	if at >= 0 {
		i.has[at] = p
		return
	}
	i.has = append(i.has, p)
}

func (i *instance) drop(s *Slice) {
	i.has = slices.DeleteFunc(i.has, func(p position) bool { return p.slice == s })
}

// newest is the position of a family that counts; ok is false if there is none.
func (i *instance) newest(ipv6 bool) (best position, ok bool) {
	for _, p := range i.has {
		if p.slice.IPv6 == ipv6 && (!ok || p.slice.newer(best.slice) > 0) {
			best, ok = p, true
		}
	}
	return best, ok
}

// portsAt are the ports of an instance at the address of a position, which is the newest
// of its family: those of all slices that have the instance at that address, as an
// endpoint that serves several ports may stand in one slice for each.
func (i *instance) portsAt(newest position) *portList {
	ports := newest.slice.ports
	if len(i.has) == 1 {
		return ports
	}
	all := slices.DeleteFunc(slices.Clone(i.has), func(p position) bool { return p.endpoint().address != newest.endpoint().address })
	slices.SortFunc(all, func(a, b position) int { return b.slice.newer(a.slice) })
	for _, p := range all {
		ports = ports.with(p.slice.ports)
	}
	return ports
}
