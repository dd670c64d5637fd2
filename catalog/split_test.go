package catalog_test

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/catalog/split"
	"github.com/isthmus-mesh/isthmus/model"
)

func drawSplits(t *rapid.T) map[catalog.ServiceKey]*split.Split {
	splits := map[catalog.ServiceKey]*split.Split{}
	for range pick(t, 0, 1, 1, 2, 3) {
		s := &split.Split{NearFirst: rapid.Bool().Draw(t, "near first")}
		for range pick(t, 1, 2, 2, 3) {
			s.Backends = append(s.Backends, split.Backend{
				Source: pick(t, append([]string{""}, sources...)...),
				Labels: pick(t, model.Labels{}, model.Labels{}, labels("v", "1"), labels("app", "b")),
				Weight: pick[uint32](t, 0, 1, 1, 10, 50, 99),
			})
		}
		splits[catalog.ServiceKey{Namespace: pick(t, "x", "x", "y"), Host: pick(t, "h", "h", "g", "*.w")}] = s
	}
	return splits
}

// site is an endpoint of a port: its first claim counts, and each claim is of backends.
type site struct {
	first catalog.Endpoint
	in    []bool
}

// sites are the joined endpoints of a port.
func sites(s *catalog.Service, port uint32) (list []site) {
	for e := range s.Joined(port).Claims() {
		if n := len(list); n == 0 || list[n-1].first.Address != e.Address || list[n-1].first.Port != e.Port {
			list = append(list, site{e, make([]bool, len(s.Split.Backends))})
		}
		for i, b := range s.Split.Backends {
			if (b.Source == "" || b.Source == e.Record.Source) && e.Labels.Includes(b.Labels) {
				list[len(list)-1].in[i] = true
			}
		}
	}
	return list
}

// weigh returns the exact weight, of 1, of each served endpoint, by the words of the
// documentation; false if the split has no effect.
func weigh(s *split.Split, of []site) (weights map[string]float64, effective bool) {
	sums, whole := make([]float64, len(s.Backends)), 0.0
	own := func(e catalog.Endpoint) float64 { return float64(max(e.Weight, 1)) }
	for i, b := range s.Backends {
		for _, at := range of {
			if at.in[i] && at.first.Health == model.Healthy {
				sums[i] += own(at.first)
			}
		}
		if sums[i] > 0 {
			whole += float64(b.Weight)
		}
	}
	weights = map[string]float64{}
	for _, at := range of {
		for i, b := range s.Backends {
			if at.in[i] && b.Weight > 0 {
				name := fmt.Sprint(at.first.Address, " ", at.first.Port)
				if weights[name] += 0; sums[i] > 0 {
					weights[name] += float64(b.Weight) / whole * own(at.first) / sums[i]
				}
			}
		}
	}
	return weights, whole > 0
}

// mustBeDivided checks the served endpoints of each service against its split.
func mustBeDivided(t *rapid.T, snapshot *catalog.Snapshot, splits map[catalog.ServiceKey]*split.Split) {
	for s := range snapshot.Services() {
		if !s.Split.Equal(splits[s.Key]) {
			t.Fatalf("%s has the split %v of %v", s.Key, s.Split, splits)
		}
		for _, port := range s.Ports {
			if s.Split == nil {
				if s.Joined(port.Number) != s.Endpoints(port.Number) {
					t.Fatalf("%s:%d has no split and serves other endpoints than it joins", s.Key, port.Number)
				}
				continue
			}
			want, effective := weigh(s.Split, sites(s, port.Number))
			if s.IsDivided(port.Number) != effective {
				t.Fatalf("%s:%d is divided: %t", s.Key, port.Number, !effective)
			}
			if !effective {
				if s.Joined(port.Number) != s.Endpoints(port.Number) {
					t.Fatalf("%s:%d: a split without effect has one", s.Key, port.Number)
				}
				continue
			}
			for e := range s.Endpoints(port.Number).All() {
				name := fmt.Sprint(e.Address, " ", e.Port)
				share, served := want[name]
				if !served {
					t.Fatalf("%s:%d serves %s, which no backend with a share has", s.Key, port.Number, name)
				}
				if got := float64(e.Weight) / (1 << 28); e.Health == model.Healthy && math.Abs(got-share) > share*0.003+1e-8 {
					t.Fatalf("%s:%d gives %s %g, want %g", s.Key, port.Number, name, got, share)
				}
				delete(want, name)
			}
			if len(want) > 0 {
				t.Fatalf("%s:%d does not serve %v", s.Key, port.Number, slices.Collect(maps.Keys(want)))
			}
		}
	}
}

// The endpoints of each host are weighed by its split, at any time of any history, as if all
// had been merged at once; and a change names each endpoint that differs.
func TestSplitsDivideWhatIsServed(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		splits := drawSplits(t)
		in := catalog.Order{Sources: order, Splits: splits}
		b, now := catalog.NewBuilderIn(in), state{}
		for i, commit := range drawHistory(t) {
			old := b.Snapshot()
			change := b.Apply(uint64(i+1), commit)
			now.take(commit)
			mustNameDifferences(t, old, b.Snapshot(), change)
			if below(t, 3) == 0 {
				splits = drawSplits(t)
				in.Splits = splits
				old = b.Snapshot()
				change = b.Arrange(in)
				mustNameDifferences(t, old, b.Snapshot(), change)
			}
			mustBeDivided(t, b.Snapshot(), splits)
			whole := catalog.NewBuilderIn(in)
			whole.Apply(1, now.events())
			mustEqual(t, "divided step by step, and at once", seen(t, b.Snapshot()), seen(t, whole.Snapshot()))
		}
	})
}

// mustNameDifferences checks that a change names each endpoint that differs, and each service
// whose definition does.
func mustNameDifferences(t *rapid.T, old, now *catalog.Snapshot, change catalog.Change) {
	for s := range now.Services() {
		was, _ := old.Service(s.Key)
		c := change.Services[s.Key]
		if was == s {
			continue
		}
		if c.New != s || c.Old != was {
			t.Fatalf("the change of %s is missing", s.Key)
		}
		if was == nil {
			continue
		}
		for _, port := range s.Ports {
			all := map[catalog.EndpointID]bool{}
			for _, e := range []*catalog.Endpoints{was.Endpoints(port.Number), was.Joined(port.Number), s.Endpoints(port.Number), s.Joined(port.Number)} {
				for e := range e.All() {
					all[catalog.EndpointID{ServicePort: port.Number, Address: e.Address, Port: e.Port}] = true
				}
			}
			for id := range all {
				differs := !sameAt(was.Endpoints(port.Number), s.Endpoints(port.Number), id) || !sameAt(was.Joined(port.Number), s.Joined(port.Number), id)
				if _, named := c.Endpoints[id]; named != differs {
					t.Fatalf("%s %s differs: %t, and is named: %t", s.Key, idText(id), differs, named)
				}
			}
		}
	}
}

func sameAt(a, b *catalog.Endpoints, id catalog.EndpointID) bool {
	x, _ := a.Get(id.Address, id.Port)
	y, _ := b.Get(id.Address, id.Port)
	if x.Instance == nil || y.Instance == nil {
		return x.Instance == y.Instance
	}
	return x.Record == y.Record && x.Path == y.Path && x.Equal(y.Endpoint) && x.Owner() == y.Owner()
}

// A watch that begins anew, as after a panic, makes no change to endpoints that are divided,
// and later changes are as exact as any other.
func TestANewWatchDividesAsBefore(t *testing.T) {
	t.Parallel()
	ended := errors.New("the watch ended")
	shares := split.Split{Backends: []split.Backend{{Source: "a", Weight: 90}, {Source: "b", Weight: 10}}}
	all := upserts(service("a", "shop", "shop"), service("b", "shop", "shop"), endpoint("a", "shop/1", "10.0.0.1", 1), endpoint("b", "shop/1", "10.0.0.2", 1))
	same := upserts(endpoint("b", "shop/2", "10.0.0.3", 1))
	m := newMerging()
	m.Arrange(catalog.Order{Sources: []string{"a", "b"}, Splits: map[catalog.ServiceKey]*split.Split{shop: &shares}})
	for _, more := range [][]model.Event{nil, nil, same} {
		batches := []model.Batch{batch(all, end(4))}
		if more != nil {
			batches = append(batches, batch(more))
		}
		if err := m.Run(script(ended, batches...)); !errors.Is(err, ended) {
			t.Fatal(err)
		}
	}
	want := [][]string{{"ns/shop", "ns/shop 80 10.0.0.1:80", "ns/shop 80 10.0.0.2:80"}, {}, {}, {"ns/shop", "ns/shop 80 10.0.0.2:80", "ns/shop 80 10.0.0.3:80"}}
	if diff := cmp.Diff(want, m.names()); diff != "" {
		t.Fatalf("published (-want +got):\n%s", diff)
	}
}
