package kubernetes

import (
	"cmp"
	"slices"
)

// instance is a pod, or an address without a known pod, that serves. While it moves from
// one slice to another, both slices may have it, or none. Slices of different ports have it
// all the time.
type instance struct {
	id    identity
	has   []position
	claim // by the newest position; its address is empty if nothing is served
}

// identity is the same in every slice of an instance.
type identity struct {
	// key is the UID, if there is one. Otherwise it is the address and the ports: several may
	// share an address, such as their node's.
	key string
	// rank distinguishes the instances in one slice with one UID. They are in the order of
	// their addresses. If there is one of a rank, there is one of each lower rank.
	rank int
}

// position is the slice of an instance and the index in it.
type position struct {
	slice *Slice
	at    int
}

func (p position) endpoint() *sliceEndpoint { return &p.slice.endpoints[p.at] }

func (id identity) compare(o identity) int {
	return cmp.Or(cmp.Compare(id.key, o.key), cmp.Compare(id.rank, o.rank))
}

// positions returns the instances of a slice.
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

// rank enters a position. An instance of the same UID with a higher address moves up a
// rank.
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

// newest returns the position of a family that counts; ok is false if there is none.
func (i *instance) newest(ipv6 bool) (best position, ok bool) {
	for _, p := range i.has {
		if p.slice.IPv6 == ipv6 && (!ok || p.slice.newer(best.slice) > 0) {
			best, ok = p, true
		}
	}
	return best, ok
}

// portsAt returns the ports of an instance at the address of a position, the newest of its
// family. They come from all slices that have the instance at that address: an endpoint
// with several ports may be in one slice for each.
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
