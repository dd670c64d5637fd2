package catalog_test

import (
	order2 "cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/catalog/split"
	"github.com/isthmus-mesh/isthmus/model"
)

func drawBackends(t *rapid.T) (list []model.Backend) {
	for range pick(t, 1, 2, 2, 3) {
		list = append(list, model.Backend{
			Service: pick(t, model.ServiceName{}, model.ServiceName{}, model.ServiceName{Namespace: "x", Host: "G."}, model.ServiceName{Namespace: "x", Host: "h"}, model.ServiceName{Namespace: "y", Host: "g"}),
			Source:  pick(t, append([]string{"", ""}, sources...)...),
			Labels:  pick(t, model.Labels{}, model.Labels{}, labels("v", "1"), labels("app", "b")),
			Weight:  pick[uint32](t, 0, 1, 1, 10, 50, 99),
		})
	}
	return list
}

func drawSplits(t *rapid.T) map[catalog.ServiceKey]*split.Split {
	splits := map[catalog.ServiceKey]*split.Split{}
	for range pick(t, 0, 0, 1, 1, 2, 3) {
		s := &split.Split{NearFirst: rapid.Bool().Draw(t, "near first"), Backends: drawBackends(t)}
		splits[catalog.ServiceKey{Namespace: pick(t, "x", "x", "y"), Host: pick(t, "h", "h", "g", "*.w")}] = s
	}
	return splits
}

// drawSplitRecords draws changes of records of the kind Split.
func drawSplitRecords(t *rapid.T, now state) (events []model.Event) {
	ref := model.Ref{Kind: model.KindSplit, Key: model.Key{Source: pick(t, sources...), Namespace: pick(t, "x", "x", "y"), Name: pick(t, "p", "q")}}
	if held, ok := now[ref]; ok && rapid.Bool().Draw(t, "gone") {
		return []model.Event{model.Delete{Record: held, Revision: 1}}
	}
	spec := model.Split{
		Host: pick(t, "h", "H.", "g", "*.w"), Backends: drawBackends(t), NearFirst: rapid.Bool().Draw(t, "near first"),
		NoEffect: pick(t, "", "", "", "it has matches"),
	}
	spec.Created = time.Unix(1e9+int64(below(t, 2)), 0)
	return []model.Event{model.Upsert{Record: model.Record{Ref: ref, Spec: spec}}}
}

// splitFor returns the split of a service by the words of the documentation, and the order of
// the records that ask for one.
func (s state) splitFor(key catalog.ServiceKey, in catalog.Order) (*split.Split, []model.Ref) {
	var refs []model.Ref
	for ref, r := range s {
		if spec, ok := r.Spec.(model.Split); ok && ref.Namespace == key.Namespace && nameOf(spec.Host) == key.Host {
			refs = append(refs, ref)
		}
	}
	place := func(source string) int {
		if at := slices.Index(in.Sources, source); at >= 0 {
			return at
		}
		return len(in.Sources)
	}
	age := func(ref model.Ref) int64 {
		if !in.Rights[ref.Source].Dated {
			return 0
		}
		return s[ref].Spec.(model.Split).Created.Unix()
	}
	slices.SortFunc(refs, func(a, b model.Ref) int {
		return order2.Or(order2.Compare(place(a.Source), place(b.Source)), order2.Compare(a.Source, b.Source), order2.Compare(age(a), age(b)), a.Compare(b))
	})
	if configured := in.Splits[key]; configured != nil || len(refs) == 0 {
		return configured, refs
	}
	spec := s[refs[0]].Spec.(model.Split)
	if spec.NoEffect != "" {
		return nil, refs
	}
	return &split.Split{Backends: spec.Backends, NearFirst: spec.NearFirst}, refs
}

// site is an endpoint of a port: its first claim counts, and in each backend the weight of the
// first claim there.
type site struct {
	first   catalog.Endpoint
	health  model.Health
	fresh   []claim // from the first that is not by a stale source, of its service
	of      int     // the number of that service; 0 for none yet
	network string
	weights []float64 // 0 in a backend without the endpoint
}

// sites are the endpoints that the split of a service divides at a port.
func (s state) sites(snapshot *catalog.Snapshot, of *catalog.Service, port model.Port) (list []*site) {
	type part struct {
		catalog.Endpoint
		nth     int // the service, from 1
		backend func(i int) bool
	}
	byPlace := map[string][]part{}
	join := func(nth int, of *catalog.Endpoints, backend func(i int) bool) {
		for e := range of.Claims() {
			name := fmt.Sprint(e.ID(0).Address, " ", e.Port)
			byPlace[name] = append(byPlace[name], part{e, nth, backend})
		}
	}
	isOwn := func(i int) bool {
		service := of.Split.Backends[i].Service
		return service == model.ServiceName{} || catalog.ServiceKey(service) == of.Key
	}
	join(1, of.Joined(port.Number), isOwn)
	for i, b := range of.Split.Backends {
		if other, known := snapshot.Service(catalog.ServiceKey(b.Service)); !isOwn(i) && known {
			if number, fits := fitting(of, other, port); fits {
				join(i+2, other.Joined(number), func(k int) bool { return k == i })
			}
		}
	}
	for _, parts := range byPlace {
		byNetwork, networks := map[string]*site{}, networksOf(parts, func(p part) string { return s.networkOf(p.Record) })
		for _, p := range parts {
			network := s.networkOf(p.Record)
			if _, err := netip.ParseAddr(p.ID(0).Address); err != nil {
				network = s.networkOf(parts[0].Record) // a name, whatever the others say
			} else if len(networks) == 1 {
				network = networks[0]
			}
			if byNetwork[network] == nil {
				byNetwork[network] = &site{p.Endpoint, p.Health, nil, 0, network, make([]float64, len(of.Split.Backends))}
				list = append(list, byNetwork[network])
			}
			if at := byNetwork[network]; at.of == p.nth || at.of == 0 && !s.isStale(p.Record.Source) {
				at.of = p.nth
				at.fresh = append(at.fresh, claim{Record: p.Record, Endpoint: p.Endpoint.Endpoint, Path: p.Path})
			}
			for i, b := range of.Split.Backends {
				if at := &byNetwork[network].weights[i]; p.backend(i) && (b.Source == "" || b.Source == p.Record.Source) && p.Labels.Includes(b.Labels) && *at == 0 {
					*at = float64(max(p.Weight, 1))
				}
			}
		}
		for _, at := range byNetwork {
			if len(at.fresh) > 0 && s.isStale(at.first.Record.Source) {
				at.health = at.fresh[speaking(at.fresh)].Endpoint.Health
			}
		}
	}
	return list
}

// name tells an endpoint from others of its port.
func (s *site) name() string { return spotText(s.first, s.network) }

func spotText(e catalog.Endpoint, network string) string {
	return fmt.Sprint(e.ID(0).Address, " ", e.Port, " ", network)
}

// networkOf is the network that a record names.
func (s state) networkOf(ref model.Ref) string {
	switch e := s[ref].Spec.(type) {
	case model.Endpoint:
		return e.Network
	case model.Workload:
		return e.Endpoint.Network
	default:
		return "" // the host itself
	}
}

// fitting returns the port of another service for a port of a service, if its endpoints may
// take the calls there.
func fitting(s, other *catalog.Service, port model.Port) (number uint32, fits bool) {
	at := slices.IndexFunc(other.Ports, func(p model.Port) bool { return p.Name == port.Name })
	if at < 0 {
		at = slices.IndexFunc(other.Ports, func(p model.Port) bool { return p.Number == port.Number })
	}
	if at < 0 || !other.VisibleTo(s.Key.Namespace, other.Key.Namespace) {
		return 0, false
	}
	p := other.Ports[at]
	return p.Number, p.Protocol == port.Protocol && other.ResolutionAt(p.Number) == s.ResolutionAt(port.Number) && other.Location == s.Location && other.SubjectAltNames.Equal(s.SubjectAltNames)
}

// weigh returns the exact weight, of 1, of each served endpoint, by the words of the
// documentation; false if the split has no effect.
func weigh(s *split.Split, of []*site) (weights map[string]float64, effective bool) {
	sums, whole := make([]float64, len(s.Backends)), 0.0
	for i, b := range s.Backends {
		for _, at := range of {
			if at.health == model.Healthy {
				sums[i] += at.weights[i]
			}
		}
		if sums[i] > 0 {
			whole += float64(b.Weight)
		}
	}
	weights = map[string]float64{}
	for _, at := range of {
		for i, b := range s.Backends {
			if at.weights[i] > 0 && b.Weight > 0 {
				name := at.name()
				if weights[name] += 0; sums[i] > 0 {
					weights[name] += float64(b.Weight) / whole * at.weights[i] / sums[i]
				}
			}
		}
	}
	return weights, whole > 0
}

// sameBackend compares backends of a service, which may name it.
func sameBackend(key catalog.ServiceKey) func(a, b model.Backend) bool {
	own := func(b model.Backend) model.Backend {
		if b.Service.Host = nameOf(b.Service.Host); catalog.ServiceKey(b.Service) == key {
			b.Service = model.ServiceName{}
		}
		return b
	}
	return func(a, b model.Backend) bool { return own(a).Equal(own(b)) }
}

// mustBeDivided checks the served endpoints of each service against its split.
func mustBeDivided(t *rapid.T, snapshot *catalog.Snapshot, now state, in catalog.Order) {
	for s := range snapshot.Services() {
		want, refs := now.splitFor(s.Key, in)
		if (s.Split == nil) != (want == nil) || s.Split != nil && (s.Split.NearFirst != want.NearFirst || !slices.EqualFunc(s.Split.Backends, want.Backends, sameBackend(s.Key))) {
			t.Fatalf("%s has the split %v, want %v of %v", s.Key, s.Split, want, refs)
		}
		var got []model.Ref
		for _, c := range s.SplitRecords {
			if got = append(got, c.Record); (c.LeftOut == "") != (len(got) == 1 && in.Splits[s.Key] == nil && s.Split != nil) {
				t.Fatalf("%s: the record %s is left out: %q", s.Key, c.Record, c.LeftOut)
			}
		}
		if !slices.Equal(got, refs) {
			t.Fatalf("%s has split records %v, want %v", s.Key, got, refs)
		}
		for _, port := range s.Ports {
			if s.Split == nil {
				if s.Joined(port.Number) != s.Endpoints(port.Number) {
					t.Fatalf("%s:%d has no split and serves other endpoints than it joins", s.Key, port.Number)
				}
				continue
			}
			want, effective := weigh(s.Split, now.sites(snapshot, s, port))
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
				name := spotText(e, e.Network)
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
		in := catalog.Order{Sources: order, Splits: drawSplits(t), Rights: map[string]catalog.Rights{"b": {Dated: true}, "d": {Dated: true}}}
		b, now := catalog.NewBuilderIn(in), state{}
		for i, commit := range drawHistory(t) {
			if below(t, 2) == 0 {
				commit = append(commit, drawSplitRecords(t, now)...)
			}
			old := b.Snapshot()
			change := b.Apply(uint64(i+1), commit)
			now.take(commit)
			mustNameDifferences(t, old, b.Snapshot(), change)
			if below(t, 3) == 0 {
				in.Splits = drawSplits(t)
				old = b.Snapshot()
				change = b.Arrange(in)
				mustNameDifferences(t, old, b.Snapshot(), change)
				mustForesee(t, old, b.Snapshot(), in)
			}
			mustBeDivided(t, b.Snapshot(), now, in)
			whole := catalog.NewBuilderIn(in)
			whole.Apply(1, now.events())
			mustEqual(t, "divided step by step, and at once", seen(t, b.Snapshot()), seen(t, whole.Snapshot()))
		}
	})
}

// mustForesee checks that the snapshot before another order knows the endpoints and shares after
// it.
func mustForesee(t *rapid.T, before, after *catalog.Snapshot, in catalog.Order) {
	for s := range after.Services() {
		foreseen := before.Divided(s.Key, in.Splits[s.Key])
		for _, port := range s.Ports {
			if got, want := foreseen.Shares(port.Number), s.Shares(port.Number); fmt.Sprint(got) != fmt.Sprint(want) {
				t.Fatalf("%s:%d: the foreseen shares are %+v, want %+v", s.Key, port.Number, got, want)
			}
			got, want := foreseen.Endpoints(port.Number), s.Endpoints(port.Number)
			for _, e := range slices.AppendSeq(slices.Collect(got.All()), want.All()) {
				if id := e.ID(port.Number); !sameAt(got, want, id) {
					t.Fatalf("%s %s is foreseen otherwise than it is served", s.Key, idText(id))
				}
			}
		}
	}
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
					all[e.ID(port.Number)] = true
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
	x, _ := a.Get(id)
	y, _ := b.Get(id)
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
	shares := split.Split{Backends: []model.Backend{{Source: "a", Weight: 90}, {Source: "b", Weight: 10}}}
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

// An endpoint that another source lists as well becomes one of that source's backend, although
// nothing else about it changes.
func TestALaterClaimBringsABackendItsShare(t *testing.T) {
	t.Parallel()
	other := catalog.ServiceKey{Namespace: "ns", Host: "other"}
	shares := split.Split{Backends: []model.Backend{{Service: model.ServiceName(other), Source: "b", Weight: 10}, {Source: "a", Weight: 90}}}
	b := catalog.NewBuilderIn(catalog.Order{Sources: []string{"a", "b"}, Splits: map[catalog.ServiceKey]*split.Split{shop: &shares}})
	b.Apply(1, upserts(service("a", "shop", "shop"), service("a", "other", "other"), service("b", "other", "other"),
		endpoint("a", "shop/1", "10.0.0.1", 1), endpoint("a", "other/1", "10.0.0.2", 1)))
	for i, step := range []struct {
		events []model.Event
		want   int
	}{
		{nil, 0},
		{upserts(endpoint("b", "other/1", "10.0.0.2", 1)), 1},
		{deletes(endpoint("b", "other/1", "10.0.0.2", 1)), 0},
	} {
		b.Apply(uint64(i+2), step.events)
		s, _ := b.Snapshot().Service(shop)
		if got := s.Shares(80)[0].Usable; got != step.want {
			t.Errorf("step %d: %d endpoints of the backend are usable, want %d", i, got, step.want)
		}
	}
}
