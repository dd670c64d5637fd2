package catalog_test

import (
	"maps"
	"reflect"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/isthmus-mesh/isthmus/catalog"
)

// mustBeExact checks a change against the snapshots before and after it.
func mustBeExact(t *rapid.T, old, now *catalog.Snapshot, change catalog.Change) {
	before, after := seen(t, old), seen(t, now)
	if differ := !reflect.DeepEqual(before.Primed, after.Primed); change.Primed != differ {
		t.Fatalf("primed is %t, from %v to %v", change.Primed, before.Primed, after.Primed)
	}
	mustNameExactly(t, before.Opaques, after.Opaques, change.Opaques, old.Opaque, now.Opaque)
	keys := maps.Clone(before.Services)
	maps.Copy(keys, after.Services)
	for key := range keys {
		was, _ := old.Service(key)
		is, _ := now.Service(key)
		c, named := change.Services[key]
		same := was != nil && is != nil && reflect.DeepEqual(before.Services[key], after.Services[key])
		switch {
		case same && named:
			t.Fatalf("%s is named and did not change", key)
		case same && was != is:
			t.Fatalf("%s is another pointer and did not change", key)
		case !same && !named:
			t.Fatalf("%s changed and is not named:\n%s", key, cmp.Diff(before.Services[key], after.Services[key]))
		case !same:
			mustBeExactIn(t, key, before.Services[key], after.Services[key], c)
		}
		if c.Old != was && named || c.New != is && named {
			t.Fatalf("%s is not as in the snapshots", key)
		}
	}
	for key := range change.Services {
		if _, ok := keys[key]; !ok {
			t.Fatalf("%s is named and was never there", key)
		}
	}
}

// mustNameExactly checks that a change names the values that differ, as they are
// in the snapshots, and that the others kept their pointers.
func mustNameExactly[K comparable, O, V any](
	t *rapid.T, before, after map[K]O, named map[K]catalog.Replaced[V], old, now func(K) (*V, bool),
) {
	keys := maps.Clone(before)
	maps.Copy(keys, after)
	for key := range keys {
		was, _ := old(key)
		is, _ := now(key)
		same := reflect.DeepEqual(before[key], after[key])
		switch c, ok := named[key]; {
		case same == ok:
			t.Fatalf("%v is the same: %t, named: %t", key, same, ok)
		case same != (was == is):
			t.Fatalf("%v is the same: %t, the same pointer: %t", key, same, !same)
		case ok && (c.Old != was || c.New != is):
			t.Fatalf("%v is not as in the snapshots", key)
		}
	}
	for key := range named {
		if _, ok := keys[key]; !ok {
			t.Fatalf("%v is named and was never there", key)
		}
	}
}

// mustBeExactIn checks the change of one service, down to the pointers.
func mustBeExactIn(t *rapid.T, key catalog.ServiceKey, before, after observed, c catalog.ServiceChange) {
	want := map[catalog.EndpointID]struct{}{}
	for _, number := range numbers {
		for id := range differing(number, before.Ports[number].counting(), after.Ports[number].counting()) {
			want[id] = struct{}{}
		}
	}
	if !maps.Equal(c.Endpoints, want) {
		t.Fatalf("endpoints of %s changed: %v, want %v", key, c.Endpoints, want)
	}
	if c.Old == nil || c.New == nil {
		return
	}
	if same := reflect.DeepEqual(before.Definition, after.Definition); same != (c.Old.Definition == c.New.Definition) {
		t.Fatalf("definition of %s is the same: %t, the same pointer: %t", key, same, !same)
	}
	for _, number := range numbers {
		same := reflect.DeepEqual(before.Ports[number], after.Ports[number])
		if same != (c.Old.Endpoints(number) == c.New.Endpoints(number)) {
			t.Fatalf("endpoints of port %d of %s are the same: %t, the same pointer: %t", number, key, same, !same)
		}
	}
}

type spot struct {
	address string
	port    uint32
	network string
}

// counting returns the claim that counts at each place.
func (v portView) counting() map[spot]claim {
	counting := map[spot]claim{}
	for _, p := range v.Places {
		c := p.Claims[0]
		c.Endpoint.Health = p.Health
		counting[spot{p.Address, p.Port, p.Network}] = c
	}
	return counting
}

// differing returns the places of which another claim counts, or none.
func differing(number uint32, before, after map[spot]claim) map[catalog.EndpointID]struct{} {
	ids := map[catalog.EndpointID]struct{}{}
	both := maps.Clone(before)
	maps.Copy(both, after)
	for at := range both {
		was, had := before[at]
		is, has := after[at]
		if had != has || !reflect.DeepEqual(was, is) {
			ids[catalog.EndpointID{ServicePort: number, Address: at.address, Port: at.port, Network: at.network}] = struct{}{}
		}
	}
	return ids
}
