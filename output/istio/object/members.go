package object

import (
	"hash/fnv"
	"maps"
	"slices"
	"strconv"

	"google.golang.org/protobuf/proto"
	networking "istio.io/api/networking/v1alpha3"
)

// Member is a hash of an endpoint of an object: of its address in the upper half, and in
// the lower half of its ports as well. It is short, because the view keeps the members of
// every object. If two addresses collide, a write may come later than necessary, with no
// other harm.
type Member uint64

// Address returns the half for the address, regardless of ports.
func (m Member) Address() uint32 { return uint32(m >> 32) }

// MembersOf returns the members of a specification, in order. A WorkloadEntry is its own
// only member, and a Sidecar has none.
func MembersOf(spec proto.Message) []Member {
	if workload, ok := spec.(*networking.WorkloadEntry); ok {
		return []Member{MemberOf(workload)}
	}
	entry, _ := spec.(*networking.ServiceEntry)
	list := entry.GetEndpoints()
	if len(list) == 0 {
		return nil
	}
	members := make([]Member, 0, len(list))
	for _, e := range list {
		members = append(members, MemberOf(e))
	}
	slices.Sort(members)
	return members
}

// MemberOf returns the hash of an endpoint.
func MemberOf(endpoint *networking.WorkloadEntry) Member {
	h := fnv.New32a()
	h.Write([]byte(endpoint.GetAddress() + "|" + endpoint.GetNetwork() + "|"))
	address := h.Sum32()
	ports := endpoint.GetPorts()
	for _, name := range slices.Sorted(maps.Keys(ports)) {
		h.Write([]byte(name + "=" + strconv.FormatUint(uint64(ports[name]), 10) + ","))
	}
	return Member(address)<<32 | Member(h.Sum32())
}

// Without returns the addresses of members that are not among others. Both are in order.
func Without(members, others []Member) map[uint32]bool {
	found := map[uint32]bool{}
	for _, m := range members {
		for len(others) > 0 && others[0] < m {
			others = others[1:]
		}
		if len(others) > 0 && others[0] == m {
			others = others[1:] // one for one: an address may come twice
			continue
		}
		found[m.Address()] = true
	}
	return found
}
