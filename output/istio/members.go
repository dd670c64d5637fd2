package istio

import (
	"encoding/json"
	"hash/fnv"
	"slices"
)

// member stands for an endpoint of an object: for its address in the upper half,
// and in the lower one for its ports as well. It is short, for the view keeps
// those of every object. Should two addresses share one, a write may come
// later than it had to, and nothing worse.
type member uint64

// address is the half that says who it is, wherever it listens.
func (m member) address() uint32 { return uint32(m >> 32) }

// membersOf returns the members of a specification, in order.
func membersOf(spec any) []member {
	list := endpointsOf(spec)
	if len(list) == 0 {
		return nil
	}
	members := make([]member, 0, len(list))
	for _, e := range list {
		members = append(members, memberOf(e))
	}
	slices.Sort(members)
	return members
}

func endpointsOf(spec any) []map[string]any {
	fields, _ := spec.(map[string]any)
	items, _ := fields["endpoints"].([]any)
	found := make([]map[string]any, 0, len(items))
	for _, item := range items {
		if fields, ok := item.(map[string]any); ok {
			found = append(found, fields)
		}
	}
	return found
}

func memberOf(endpoint map[string]any) member {
	h := fnv.New32a()
	for _, field := range []string{"address", "network"} {
		text, _ := endpoint[field].(string)
		h.Write([]byte(text + "|"))
	}
	address := h.Sum32()
	if ports, ok := endpoint["ports"]; ok {
		if text, err := json.Marshal(ports); err == nil {
			h.Write(text)
		}
	}
	return member(address)<<32 | member(h.Sum32())
}

// without returns the addresses of members that are not among others. Both are in order.
func without(members, others []member) map[uint32]bool {
	found := map[uint32]bool{}
	for _, m := range members {
		for len(others) > 0 && others[0] < m {
			others = others[1:]
		}
		if len(others) > 0 && others[0] == m {
			others = others[1:] // one for one: an address may be there twice
			continue
		}
		found[m.address()] = true
	}
	return found
}
