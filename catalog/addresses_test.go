package catalog_test

import (
	"maps"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
)

// addressed is a Service of a source, as a cluster has it.
func addressed(source, cluster, host string, addresses ...string) model.Event {
	return model.Upsert{Record: model.Record{
		Ref: model.Ref{Kind: model.KindService, Key: model.Key{Source: source, Namespace: "n", Name: host}},
		Spec: model.Service{
			Hosts: model.ListOf(host), Resolution: model.ResolutionStatic, Cluster: cluster, Addresses: model.ListOf(addresses...),
			Ports: model.ListOf(model.Port{Number: 80, Name: "tcp", Protocol: "TCP"}),
		},
	}}
}

// A service of two clusters is called at its address in each of them, and elsewhere at the
// first one. That it has another address in another cluster is no conflict.
func TestServiceHasItsAddressInEachCluster(t *testing.T) {
	t.Parallel()
	b := catalog.NewBuilder([]string{"b", "a", "c", "d"})
	b.Apply(1, []model.Event{
		addressed("b", "east", "db.com", "10.96.0.1"), addressed("a", "west", "db.com", "10.96.0.2", "fd00::2"),
		addressed("c", "west", "db.com", "10.96.0.3"), addressed("d", "", "db.com", "10.96.0.4"),
	})
	db, _ := b.Snapshot().Service(catalog.ServiceKey{Namespace: "n", Host: "db.com"})
	for cluster, want := range map[string][]string{
		"": {"10.96.0.1"}, "east": {"10.96.0.1"}, "west": {"10.96.0.2", "fd00::2", "10.96.0.3"}, "north": {"10.96.0.1"},
	} {
		if got := slices.Collect(db.OwnAddressesIn(cluster)); !slices.Equal(got, want) {
			t.Errorf("in %q: %v, not %v", cluster, got, want)
		}
		if got := db.ForeignIn(cluster); got != (cluster == "north") {
			t.Errorf("foreign in %q: %t", cluster, got)
		}
	}
	var lost []string
	for _, c := range db.Conflicts {
		lost = append(lost, c.Field+" of "+c.Lost.Source+" for those of "+c.Kept.Source+": "+c.Reason)
	}
	want := []string{`addresses of d for those of b: "10.96.0.1" is kept over "10.96.0.4"`}
	if diff := gocmp.Diff(want, lost); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// Of which cluster a client is matters only where services have addresses in several.
func TestClustersMatterWhereAddressesDiffer(t *testing.T) {
	t.Parallel()
	b := catalog.NewBuilder([]string{"a", "b"})
	for i, step := range []struct {
		event model.Event
		want  []string
	}{
		{addressed("a", "east", "db.com", "10.96.0.1"), nil},
		{addressed("a", "", "web.com", "10.96.0.9"), nil},
		{addressed("b", "west", "other.com"), nil},
		{addressed("b", "west", "other.com", "10.96.0.1"), []string{"east", "west"}},
		{addressed("b", "west", "other.com"), nil},
		{addressed("b", "east", "web.com", "10.96.0.2"), []string{"east"}}, // which is not the first one's
	} {
		b.Apply(uint64(i+1), []model.Event{step.event})
		if got := b.Snapshot().AddressClusters(); !slices.Equal(got, step.want) {
			t.Errorf("step %d: %v, not %v", i, got, step.want)
		}
		for _, cluster := range []string{"", "east", "north"} {
			want := cluster
			if !slices.Contains(step.want, cluster) {
				want = ""
			}
			if got := b.Snapshot().AddressCluster(cluster); got != want {
				t.Errorf("step %d: a client of %q is of %q", i, cluster, got)
			}
		}
	}
}

// The clusters are those that services have addresses in, after any history, and what they
// were before a change follows from the change.
func TestClustersFollowTheServices(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		b := catalog.NewBuilder(order)
		for i, commit := range drawHistory(t) {
			before, differed := b.Snapshot().AddressClusters(), b.Snapshot().HeadlessDiffers()
			change := b.Apply(uint64(i+1), commit)
			if got, differs := b.Snapshot().AddressClustersBefore(change); !slices.Equal(got, before) || differs != differed {
				t.Fatalf("before it were %v, %t, and not %v, %t", before, differed, got, differs)
			}
			found, split, differs := map[string]bool{}, false, false
			for s := range b.Snapshot().Services() {
				split = split || len(s.ByCluster) > 0
				differs = differs || s.HeadlessIn("") && !(s.HeadlessIn("east") && s.HeadlessIn("west"))
				for _, cluster := range []string{"east", "west"} {
					if list, foreign := s.AddressesIn(cluster); !foreign && list.Len() > 0 && (s.Base.Cluster == cluster || slices.ContainsFunc(s.ByCluster, func(c catalog.ClusterAddresses) bool { return c.Cluster == cluster })) {
						found[cluster] = true
					}
				}
			}
			want := slices.Sorted(maps.Keys(found))
			if !split && len(want) < 2 {
				want = nil
			}
			if got := b.Snapshot().AddressClusters(); !slices.Equal(got, want) {
				t.Fatalf("%v, and not %v", got, want)
			}
			if got := b.Snapshot().HeadlessDiffers(); got != differs {
				t.Fatalf("that clusters see other services as headless is %t", got)
			}
		}
	})
}

// An address is taken in a cluster where a service that is seen has it there, and not where
// it is that of a service in another cluster.
func TestAddressesAreTakenInTheirCluster(t *testing.T) {
	t.Parallel()
	b := catalog.NewBuilder([]string{"a", "b"})
	hidden := addressed("b", "west", "hidden.com", "10.96.0.3").(model.Upsert)
	spec, _ := hidden.Record.Spec.(model.Service)
	spec.ExportTo = model.ListOf(".")
	hidden.Record.Spec = spec
	b.Apply(1, []model.Event{
		addressed("a", "east", "db.com", "10.96.0.1"), addressed("b", "west", "db.com", "10.96.0.2"),
		addressed("a", "", "all.com", "10.96.0.4/32"), hidden,
	})
	for address, want := range map[string][]string{"10.96.0.1": {"", "east"}, "10.96.0.2": {"west"}, "10.96.0.3": nil, "10.96.0.4": {"", "east", "west", "north"}} {
		var got []string
		for _, cluster := range []string{"", "east", "west", "north"} {
			if b.Snapshot().Port(80).TakenIn(cluster, address, catalog.Viewer{Namespace: "m"}) {
				got = append(got, cluster)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s is taken in %v, not %v", address, got, want)
		}
	}
	if !b.Snapshot().Port(80).TakenIn("west", "10.96.0.3", catalog.Viewer{Namespace: "n"}) {
		t.Error("an address is not taken for who sees the service")
	}
}

// A service that is headless in its first cluster is not for clients of one where it has an
// address.
func TestServiceIsHeadlessWhereItHasNoAddress(t *testing.T) {
	t.Parallel()
	b := catalog.NewBuilder([]string{"a", "b"})
	first := addressed("a", "east", "db.com").(model.Upsert)
	spec, _ := first.Record.Spec.(model.Service)
	spec.Traffic.Headless = true
	first.Record.Spec = spec
	b.Apply(1, []model.Event{first})
	if b.Snapshot().HeadlessDiffers() {
		t.Error("it has an address nowhere, and clusters differ")
	}
	b.Apply(2, []model.Event{addressed("b", "west", "db.com", "10.96.0.2")})
	db, _ := b.Snapshot().Service(catalog.ServiceKey{Namespace: "n", Host: "db.com"})
	for cluster, want := range map[string]bool{"": true, "east": true, "west": false, "north": true} {
		if got := db.HeadlessIn(cluster); got != want {
			t.Errorf("in %q it is headless: %t", cluster, got)
		}
	}
	if !b.Snapshot().HeadlessDiffers() {
		t.Error("clusters do not differ")
	}
}
