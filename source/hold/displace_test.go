package hold_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source/hold"
	"github.com/isthmus-mesh/isthmus/store"
)

// storeOf has a store with services of a source, each with so many endpoints; names ending
// in "*" select workloads instead.
func storeOf(t *testing.T, name string, services map[string]int, others ...model.Record) *store.Memory {
	t.Helper()
	memory := store.NewMemory(store.Config{})
	var c model.Commit
	put := func(kind model.Kind, name, of string, spec model.Spec, owner model.Ref) model.Ref {
		ref := model.Ref{Kind: kind, Key: model.Key{Source: name, Namespace: "shop", Name: of}}
		c.Writes = append(c.Writes, model.Write{Record: model.Record{Ref: ref, Owner: owner, Spec: spec}})
		return ref
	}
	at := 0
	for host, n := range services {
		labels := model.MapOf(map[string]string{"app": host})
		spec := model.Service{Hosts: model.ListOf(host), WorkloadSelector: labels}
		owner := put(model.KindService, name, host, spec, model.Ref{})
		for i := range n {
			at++
			e := model.Endpoint{Address: fmt.Sprintf("192.0.2.%d", at), Labels: labels}
			if i%2 == 0 {
				put(model.KindEndpoint, name, fmt.Sprint(host, "/", i), e, owner)
			} else {
				put(model.KindWorkload, name, fmt.Sprint(host, "-", i), model.Workload{Endpoint: e}, model.Ref{})
			}
		}
	}
	for _, r := range others {
		put(r.Kind, name, r.Name, r.Spec, model.Ref{})
	}
	if _, err := memory.Commit(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	return memory
}

// What a source has that leaves is compared service by service with what came in its place.
func TestWhatLeavesIsComparedWithWhatCame(t *testing.T) {
	t.Parallel()
	usual := hold.Config{Share: 0.5, Min: 10, For: time.Minute}
	scope := model.Record{Ref: model.Ref{Kind: model.KindScope, Key: model.Key{Name: "s"}}, Spec: model.Scope{}}
	for name, c := range map[string]struct {
		hold       hold.Config
		left, came map[string]int
		leftAlso   []model.Record
		cameAlso   []model.Record
		want       hold.Drop
	}{
		"the same":                     {usual, map[string]int{"a": 12, "b": 12}, map[string]int{"a": 12, "b": 12}, nil, nil, hold.Drop{Of: 24, What: "endpoints"}},
		"nothing":                      {usual, map[string]int{"a": 1}, nil, nil, nil, hold.Drop{1, 1, "endpoints", true}},
		"nothing of nothing":           {usual, nil, nil, nil, nil, hold.Drop{What: "objects"}},
		"other services":               {usual, map[string]int{"a": 8}, map[string]int{"b": 300}, nil, nil, hold.Drop{8, 8, "endpoints", true}},
		"a quarter":                    {usual, map[string]int{"a": 40}, map[string]int{"a": 10}, nil, nil, hold.Drop{30, 40, "endpoints", true}},
		"most":                         {usual, map[string]int{"a": 40}, map[string]int{"a": 30}, nil, nil, hold.Drop{10, 40, "endpoints", false}},
		"few of few":                   {usual, map[string]int{"a": 9}, map[string]int{"a": 1}, nil, nil, hold.Drop{8, 9, "endpoints", false}},
		"a gain elsewhere":             {usual, map[string]int{"a": 20, "b": 10}, map[string]int{"a": 1, "b": 100}, nil, nil, hold.Drop{19, 30, "endpoints", true}},
		"one service of a large":       {usual, map[string]int{"a": 11, "b": 100}, map[string]int{"b": 100}, nil, nil, hold.Drop{11, 111, "endpoints", true}},
		"a small service of a large":   {usual, map[string]int{"a": 10, "b": 100}, map[string]int{"b": 100}, nil, nil, hold.Drop{10, 110, "endpoints", false}},
		"services without endpoints":   {usual, map[string]int{"a": 0, "b": 0}, map[string]int{"c": 0}, nil, nil, hold.Drop{2, 2, "services", true}},
		"one of two without endpoints": {usual, map[string]int{"a": 0, "b": 0}, map[string]int{"a": 0}, nil, nil, hold.Drop{1, 2, "services", false}},
		"scopes alone":                 {usual, nil, map[string]int{"c": 1}, []model.Record{scope}, nil, hold.Drop{1, 1, "objects", true}},
		"the same scopes":              {usual, nil, nil, []model.Record{scope}, []model.Record{scope}, hold.Drop{0, 1, "objects", false}},
		"everything, not watched":      {hold.Config{Share: 1, Min: 1000, For: time.Minute}, map[string]int{"a": 40}, nil, nil, nil, hold.Drop{40, 40, "endpoints", false}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			left, came := storeOf(t, "old", c.left, c.leftAlso...), storeOf(t, "new", c.came, c.cameAlso...)
			if got := c.hold.Displace(hold.ObjectsOf(left.List, "old"), hold.ObjectsOf(came.List, "new")); got != c.want {
				t.Errorf("it is %+v; want %+v", got, c.want)
			}
		})
	}
}

// Endpoints of several sources that are in the same place count once.
func TestTheSameEndpointOfTwoSourcesCountsOnce(t *testing.T) {
	t.Parallel()
	memory := storeOf(t, "one", map[string]int{"a": 4})
	var c model.Commit
	for r := range memory.List(model.Filter{Source: "one"}) {
		r.Source, r.UID, r.Revision = "two", model.UID{}, 0
		if r.Owner != (model.Ref{}) {
			r.Owner.Source = "two"
		}
		c.Writes = append(c.Writes, model.Write{Record: r})
	}
	if _, err := memory.Commit(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	left := storeOf(t, "old", map[string]int{"a": 40})
	got := hold.Default().Displace(hold.ObjectsOf(left.List, "old"), hold.ObjectsOf(memory.List, "one", "two"))
	if want := (hold.Drop{36, 40, "endpoints", true}); got != want {
		t.Errorf("it is %+v; want %+v", got, want)
	}
}

// Endpoints at one address are several if they serve other ports, or are in other networks.
func TestEndpointsAtOneAddressAreCompared(t *testing.T) {
	t.Parallel()
	ports := func(n uint32) model.Map[uint32] { return model.MapOf(map[string]uint32{"http": n}) }
	for name, other := range map[string]model.Endpoint{
		"ports":    {Address: "192.0.2.1", Ports: ports(8081)},
		"networks": {Address: "192.0.2.1", Ports: ports(8080), Network: "n2"},
	} {
		first := model.Endpoint{Address: "192.0.2.1", Ports: ports(8080)}
		stored := func(source string, endpoints ...model.Endpoint) *store.Memory {
			memory := storeOf(t, source, map[string]int{"a": 0})
			var c model.Commit
			for i, e := range endpoints {
				owner := model.Ref{Kind: model.KindService, Key: model.Key{Source: source, Namespace: "shop", Name: "a"}}
				ref := model.Ref{Kind: model.KindEndpoint, Key: model.Key{Source: source, Namespace: "shop", Name: fmt.Sprint("a/", i)}}
				c.Writes = append(c.Writes, model.Write{Record: model.Record{Ref: ref, Owner: owner, Spec: e}})
			}
			if _, err := memory.Commit(t.Context(), c); err != nil {
				t.Fatal(err)
			}
			return memory
		}
		left, came := stored("old", first, other), stored("new", first)
		got := hold.Default().Displace(hold.ObjectsOf(left.List, "old"), hold.ObjectsOf(came.List, "new"))
		if want := (hold.Drop{1, 2, "endpoints", false}); got != want {
			t.Errorf("of two that differ in their %s: %+v; want %+v", name, got, want)
		}
	}
}
