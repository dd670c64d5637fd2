package catalog_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
)

// owning is an order of sources that differ in all that decides who owns something: an API
// server, a registry that claims times itself, and sources that were given or withheld
// something. The last source is not in the order.
var owning = catalog.Order{
	Sources: []string{"kube", "second", "mcp", "given", "confined"},
	Domains: []string{"cluster.local", "corp.example"},
	Rights: map[string]catalog.Rights{
		"kube": {Dated: true}, "second": {Dated: true},
		"given":    {Owns: []string{"*.given.example", "reviews.prod.svc.cluster.local"}},
		"confined": {Yields: true},
	},
}

// contested are names that several namespaces may ask for, with the namespace that each of
// them names: "" for none, and "*" for several.
var contested = map[string]string{
	"free.example": "", "a.given.example": "", "prod.svc.cluster.local": "", "reviews.prod.svc": "", "*.example": "",
	"reviews.prod.svc.cluster.local": "prod", "Reviews.Prod.svc.cluster.local.": "prod", "0.reviews.prod.svc.corp.example": "prod",
	"api.evil.svc.corp.example": "evil", "*.prod.svc.cluster.local": "prod", "*.svc.cluster.local": "*", "*.corp.example": "*",
}

var contestedAddresses = []string{"10.0.0.1", "10.0.0.2"}

// drawOwner draws a change of a service, of few hosts, so that they meet.
func drawOwner(t *rapid.T, hosts []string) model.Event {
	source := pick(t, "kube", "kube", "second", "mcp", "given", "confined", "unnamed")
	key := model.Key{Source: source, Namespace: pick(t, "prod", "evil", "third"), Name: pick(t, "a", "b")}
	r := model.Record{Ref: model.Ref{Kind: model.KindService, Key: key}, Revision: 1, Path: pick[model.Path](t, "", "", "", "far")}
	if below(t, 4) == 0 {
		return model.Delete{Record: r}
	}
	meta := model.Meta{}
	if age := below(t, 4); age > 0 {
		meta.Created = time.Unix(int64(age), 0)
	}
	r.Spec = model.Service{
		Meta: meta, Hosts: model.ListOf(pick(t, hosts...)), Resolution: model.ResolutionStatic,
		Addresses: model.ListOf(pick(t, nil, nil, contestedAddresses[:1], contestedAddresses)...),
		Ports:     model.ListOf(model.Port{Number: 80, Name: "it", Protocol: "TCP"}),
		ExportTo:  pick(t, model.List[string]{}, model.List[string]{}, model.ListOf("*"), model.ListOf("."), model.ListOf("third"), model.ListOf("~")),
	}
	return model.Upsert{Record: r}
}

// candidate is a service as a plain reading of the rules takes it.
type candidate struct {
	key                   catalog.ServiceKey
	by                    model.Record // which defines it
	given, foreign, yield bool
	addresses             map[string]model.Record // the record that owns each
}

// plainly reads a state anew: what each service is, whatever came first.
func plainly(s state) (all []candidate) {
	defining := map[catalog.ServiceKey]model.Record{}
	for _, ref := range s.refs() {
		r := s[ref]
		spec, _ := r.Spec.(model.Service)
		key := catalog.ServiceKey{Namespace: ref.Namespace, Host: nameOf(spec.Hosts.Slice()[0])}
		if was, ok := defining[key]; !ok || definesRather(key.Host, r, was) {
			defining[key] = r
		}
	}
	for key, r := range defining {
		names := contested[key.Host]
		addresses := map[string]model.Record{}
		for _, ref := range s.refs() {
			spec, own := s[ref].Spec.(model.Service), ref.Source == r.Source
			if ref.Namespace != key.Namespace || nameOf(spec.Hosts.Slice()[0]) != key.Host || !own && (s[ref].Path != "" || !s.addressed(r, key, s[ref])) {
				continue
			}
			for address := range spec.Addresses.All() {
				claim := s[ref]
				if own {
					claim = r
				}
				if was, known := addresses[address]; !known || ownsRather(claim, was) {
					addresses[address] = claim
				}
			}
		}
		all = append(all, candidate{
			key: key, by: r, addresses: addresses, given: wasGiven(key.Host, r), foreign: names != "" && names != key.Namespace && !wasGiven(key.Host, r),
			yield: r.Source == "confined",
		})
	}
	slices.SortFunc(all, func(a, b candidate) int { return strings.Compare(a.key.String(), b.key.String()) })
	return all
}

// addressed reports whether a record of the source that defines a service has an address, and comes before another record.
func (s state) addressed(defining model.Record, key catalog.ServiceKey, other model.Record) bool {
	for ref, r := range s {
		spec := r.Spec.(model.Service)
		if ref.Source == defining.Source && ref.Namespace == key.Namespace && nameOf(spec.Hosts.Slice()[0]) == key.Host && spec.Addresses.Len() > 0 && definesRather(key.Host, r, other) {
			return true
		}
	}
	return false
}

// ownsRather reports whether a record owns an address that another record of the service has too.
func ownsRather(r, was model.Record) bool {
	a, b := candidate{by: r}, candidate{by: was}
	switch {
	case (r.Source == "confined") != (was.Source == "confined"):
		return was.Source == "confined"
	case placeOf(r) != placeOf(was):
		return placeOf(r) < placeOf(was)
	case vouched(a) != vouched(b):
		return vouched(a)
	}
	return vouched(a) && createdOf(a) < createdOf(b)
}

func wasGiven(host string, r model.Record) bool {
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	return r.Source == "given" && (strings.HasSuffix(host, ".given.example") || host == "reviews.prod.svc.cluster.local")
}

func definesRather(host string, r, was model.Record) bool {
	if wasGiven(host, r) != wasGiven(host, was) {
		return wasGiven(host, r)
	}
	if placeOf(r) != placeOf(was) {
		return placeOf(r) < placeOf(was)
	}
	a, b := candidate{by: r}, candidate{by: was}
	switch {
	case vouched(a) != vouched(b):
		return vouched(a)
	case vouched(a) && createdOf(a) != createdOf(b):
		return createdOf(a) < createdOf(b)
	}
	return r.Compare(was.Ref) < 0
}

// placeOf is where a record comes in the order of sources, behind all of fewer Isthmuses.
func placeOf(r model.Record) int {
	at := slices.Index(owning.Sources, r.Source)
	if at < 0 {
		at = len(owning.Sources)
	}
	return 100*r.Path.Len() + at
}

func (c candidate) seenFrom(namespace string) bool {
	spec, _ := c.by.Spec.(model.Service)
	to := spec.ExportTo.Slice()
	switch {
	case namespace == c.key.Namespace && slices.Contains(to, "."), namespace != "" && slices.Contains(to, namespace):
		return !c.foreign || namespace == c.key.Namespace
	case len(to) == 0, slices.Contains(to, "*"):
		return !c.foreign || namespace == c.key.Namespace
	}
	return false
}

// narrow keeps the candidates for which something is true, unless there are none.
func narrow(all []candidate, is func(candidate) bool) []candidate {
	some := slices.DeleteFunc(slices.Clone(all), func(c candidate) bool { return !is(c) })
	if len(some) == 0 {
		return all
	}
	return some
}

// ownerOf reads the rules from the first one to the last.
func ownerOf(all []candidate, namespace string, name bool) (owner catalog.ServiceKey, ok bool) {
	if name {
		all = narrow(all, func(c candidate) bool { return c.given })
	} else {
		all = narrow(all, func(c candidate) bool { return !c.yield })
	}
	all = narrow(all, func(c candidate) bool { return c.key.Namespace == namespace })
	if name {
		all = narrow(all, func(c candidate) bool { return contested[c.key.Host] == c.key.Namespace })
	}
	for _, c := range all {
		all = narrow(all, func(o candidate) bool { return placeOf(o.by) <= placeOf(c.by) })
	}
	for _, c := range all {
		all = narrow(all, func(o candidate) bool { return vouched(o) && (!vouched(c) || createdOf(o) <= createdOf(c)) })
	}
	best := slices.MinFunc(append(all, candidate{key: catalog.ServiceKey{Namespace: "~"}}), func(a, b candidate) int {
		return strings.Compare(a.key.Namespace+" "+a.key.Host, b.key.Namespace+" "+b.key.Host)
	})
	return best.key, len(all) > 0
}

func createdOf(c candidate) int64 { return c.by.Spec.(model.Service).Created.Unix() }

// vouched reports whether an API server has said when a service was created.
func vouched(c candidate) bool {
	return (c.by.Source == "kube" || c.by.Source == "second") && c.by.Path == "" && !c.by.Spec.(model.Service).Created.IsZero()
}

// Whatever comes, goes and comes back, and in whatever order, each workload means the same
// service by a name and an address: the one that a plain reading of the rules gives.
func TestOneOrderDecidesWhoOwnsWhat(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		b, now := catalog.NewBuilderIn(owning), state{}
		hosts := rapid.Permutation(slices.Sorted(maps.Keys(contested))).Draw(t, "hosts")[:3]
		draw := rapid.Custom(func(t *rapid.T) model.Event { return drawOwner(t, hosts) })
		for revision := range uint64(rapid.IntRange(1, 5).Draw(t, "steps")) {
			events := rapid.SliceOfN(draw, 1, 8).Draw(t, "events")
			b.Apply(revision+1, events)
			now.take(events)
			for _, namespace := range []string{"", "prod", "evil", "third", "fourth"} {
				mustOwn(t, b.Snapshot(), plainly(now), namespace)
			}
			mustTell(t, b.Snapshot(), plainly(now))
		}
	})
}

func mustOwn(t *rapid.T, s *catalog.Snapshot, all []candidate, namespace string) {
	v := catalog.Viewer{Namespace: namespace}
	var seen []candidate // of each host the one that the viewer means
	for host := range contested {
		named := slices.DeleteFunc(slices.Clone(all), func(c candidate) bool { return c.key.Host != host || !c.seenFrom(namespace) })
		want, some := ownerOf(named, namespace, true)
		got, found := s.Resolve(v, host)
		if found != some || found && got.Key != want {
			t.Fatalf("%q is %v to %q, and not %v", host, got, namespace, want)
		}
		for _, c := range named {
			if c.key == want {
				seen = append(seen, c)
			}
		}
	}
	for _, address := range contestedAddresses {
		at := slices.DeleteFunc(slices.Clone(seen), func(c candidate) bool {
			return c.addresses[address].Ref == (model.Ref{})
		})
		for i, c := range at {
			if brought := c.addresses[address]; brought.Source != c.by.Source {
				at[i].by, at[i].yield = brought, brought.Source == "confined"
			}
		}
		slices.SortFunc(at, func(a, b candidate) int { return strings.Compare(a.key.String(), b.key.String()) })
		want, _ := ownerOf(at, namespace, false)
		got := slices.SortedFunc(s.Port(80).VisibleAt(v, address), func(a, b catalog.ServiceDefinition) int {
			return catalog.At("", address).Owner(namespace, a, b)
		})
		if len(got) != len(at) || len(got) > 0 && got[0].Key != want {
			t.Fatalf("%s is of %v to %q, and not of %v", address, got, namespace, want)
		}
	}
}

// mustTell finds a conflict at each service that would be seen elsewhere, but for its name.
func mustTell(t *rapid.T, s *catalog.Snapshot, all []candidate) {
	for _, c := range all {
		service, _ := s.Service(c.key)
		told := slices.ContainsFunc(service.Conflicts, func(f catalog.Conflict) bool {
			return f.Field == "host" && f.Lost == c.by.Ref && strings.TrimSuffix(f.Kept.Namespace, "*") == strings.TrimSuffix(contested[c.key.Host], "*")
		})
		elsewhere := false
		for _, namespace := range []string{"", "prod", "evil", "third", "fourth"} {
			without := c
			without.foreign = false
			elsewhere = elsewhere || without.seenFrom(namespace) && !c.seenFrom(namespace)
		}
		if told != elsewhere {
			t.Fatalf("%v has the conflicts %v", c.key, service.Conflicts)
		}
	}
}

// A younger ServiceEntry of another namespace gains nothing from a name of the namespace
// prod, also while prod's Service is deleted, and in another Isthmus that reads this one.
func TestNamesOfANamespaceAreNotTaken(t *testing.T) {
	t.Parallel()
	of := func(source, namespace string, created int64, path model.Path) model.Record {
		r := service(source, "reviews", "reviews.prod.svc.cluster.local")
		r.Namespace, r.Path = namespace, path
		spec, _ := r.Spec.(model.Service)
		spec.Created = time.Unix(created, 0)
		r.Spec = spec
		return r
	}
	for name, test := range map[string]struct {
		source string
		path   model.Path
	}{"here": {"kube", ""}, "through another Isthmus": {"mcp", "far"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			owner, evil := of(test.source, "prod", 1, test.path), of(test.source, "aaa-evil", 2, test.path)
			b := catalog.NewBuilderIn(owning)
			for revision, step := range []struct {
				events []model.Event
				third  string
			}{
				{upserts(evil), ""},
				{upserts(owner), "prod"},
				{deletes(owner), ""},
				{upserts(owner), "prod"},
				{upserts(of("kube", "aaa-evil", 0, "")), "prod"}, // of a source that comes first
			} {
				b.Apply(uint64(revision+1), step.events)
				got := ""
				if s, ok := b.Snapshot().Resolve(catalog.Viewer{Namespace: "third"}, "reviews.prod.svc.cluster.local"); ok {
					got = s.Key.Namespace
				}
				if own, ok := b.Snapshot().Resolve(catalog.Viewer{Namespace: "aaa-evil"}, "reviews.prod.svc.cluster.local"); got != step.third || !ok || own.Key.Namespace != "aaa-evil" {
					t.Fatalf("step %d: third namespaces call that of %q, and aaa-evil that of %v", revision, got, own)
				}
			}
			s, _ := b.Snapshot().Service(catalog.ServiceKey{Namespace: "aaa-evil", Host: "reviews.prod.svc.cluster.local"})
			if len(s.Conflicts) == 0 || !strings.Contains(fmt.Sprint(s.Conflicts), "the name belongs to namespace prod") {
				t.Errorf("it has the conflicts %v", s.Conflicts)
			}
		})
	}
}
