package compose

import (
	"fmt"
	"testing"

	networking "istio.io/api/networking/v1alpha3"
	"pgregory.net/rapid"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/catalog/split"
	"github.com/isthmus-mesh/isthmus/model"
)

// drawForeign draws a host of the namespace shop that has a share of endpoints of another
// namespace, and the identities of its endpoints in the trust domain mesh.example.
func drawForeign(t *rapid.T) (s *catalog.Service, identities map[string]bool) {
	identities = map[string]bool{}
	accounts := rapid.SampledFrom([]string{
		"", "web", "spiffe://mesh.example/ns/shop/sa/own", "spiffe://mesh.example/ns/other/sa/web", "spiffe://other.example/ns/shop/sa/web",
	})
	var events []model.Event
	for i, namespace := range []string{"shop", "partner"} {
		owner := model.Ref{Kind: model.KindService, Key: model.Key{Source: "first", Namespace: namespace, Name: "x"}}
		events = append(events, model.Upsert{Record: model.Record{Ref: owner, Spec: model.Service{
			Hosts: model.ListOf(namespace + ".example.com"), Location: model.MeshInternal, Resolution: model.ResolutionStatic,
			Ports:           model.ListOf(model.Port{Number: 80, Name: "http", Protocol: "HTTP"}, model.Port{Number: 81, Name: "more", Protocol: "HTTP"}),
			SubjectAltNames: model.ListOf("b.example", "spiffe://mesh.example/ns/other/sa/web"),
		}}})
		for n := range rapid.IntRange(0, 6).Draw(t, "endpoints of "+namespace) {
			owned := owner
			owned.Kind, owned.Name = model.KindEndpoint, fmt.Sprintf("x/%d", n)
			e := model.Endpoint{Address: fmt.Sprintf("10.0.%d.%d", i, n+1), ServiceAccount: accounts.Draw(t, "account")}
			if rapid.IntRange(0, 3).Draw(t, "partly") == 0 {
				e.Exact, e.Ports = true, model.MapOf(map[string]uint32{"http": 8080})
			}
			if e.ServiceAccount == "web" {
				identities["spiffe://mesh.example/ns/"+namespace+"/sa/web"] = true
			} else if e.ServiceAccount != "" {
				identities[e.ServiceAccount] = true
			}
			events = append(events, model.Upsert{Record: model.Record{Ref: owned, Owner: owner, Spec: e}})
		}
	}
	key := catalog.ServiceKey{Namespace: "shop", Host: "shop.example.com"}
	builder := catalog.NewBuilderIn(catalog.Order{Sources: []string{"first"}, Splits: map[catalog.ServiceKey]*split.Split{key: {Backends: []model.Backend{
		{Source: "first", Weight: 1}, {Service: model.ServiceName{Namespace: "partner", Host: "partner.example.com"}, Weight: 1},
	}}}})
	builder.Apply(1, events)
	s, _ = builder.Snapshot().Service(key)
	return s, identities
}

// Istio accepts exactly the identities of the endpoints, and the names of the service. It reads the
// account of an endpoint in the namespace of the object, and the names of any one of the objects.
func TestIstioAcceptsTheAccountsOfTheEndpoints(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		service, want := drawForeign(t)
		layout := rapid.SampledFrom([]Layout{{}, {ShardSize: 1}, {ShardSize: 2, Workloads: ownLabels()}}).Draw(t, "layout")
		layout.TrustDomain = "mesh.example"
		want["b.example"], want["spiffe://mesh.example/ns/other/sa/web"] = true, true
		named := map[string]bool{}
		var lists [][]string
		note := func(e *networking.WorkloadEntry) {
			if e.GetServiceAccount() != "" {
				named["spiffe://mesh.example/ns/shop/sa/"+e.GetServiceAccount()] = true
			}
		}
		for _, part := range FromService(service, layout).Parts {
			switch spec := part.Spec.(type) {
			case *networking.WorkloadEntry:
				note(spec)
			case *networking.ServiceEntry:
				lists = append(lists, spec.GetSubjectAltNames())
				for _, e := range spec.GetEndpoints() {
					note(e)
				}
			}
		}
		for _, names := range lists {
			accepted := map[string]bool{}
			for _, name := range names {
				if accepted[name] {
					t.Errorf("%s comes twice", name)
				}
				accepted[name] = true
			}
			for name := range named {
				accepted[name] = true
			}
			if fmt.Sprint(accepted) != fmt.Sprint(want) {
				t.Errorf("accepted are %v, want %v", accepted, want)
			}
		}
	})
}

// A foreign account that comes or goes changes the specification of every ServiceEntry, and a
// placement does not follow it.
func TestForeignAccountsAreIngredients(t *testing.T) {
	t.Parallel()
	ref := model.Ref{Kind: model.KindService, Key: model.Key{Source: "a", Namespace: "shop", Name: "x"}}
	endpoint := func(n int, account string) model.Event {
		owned := ref
		owned.Kind, owned.Name = model.KindEndpoint, fmt.Sprintf("x/%d", n)
		return model.Upsert{Record: model.Record{Ref: owned, Owner: ref, Spec: model.Endpoint{Address: fmt.Sprintf("10.0.0.%d", n), ServiceAccount: account}}}
	}
	events := []model.Event{model.Upsert{Record: model.Record{Ref: ref, Spec: model.Service{
		Hosts: model.ListOf("x.example.com"), Location: model.MeshInternal, Resolution: model.ResolutionStatic, Ports: model.ListOf(model.Port{Number: 80, Name: "http", Protocol: "HTTP"}),
	}}}}
	for n := range 20 {
		events = append(events, endpoint(n+1, "web"))
	}
	builder := catalog.NewBuilder(nil)
	builder.Apply(1, events)
	key := catalog.ServiceKey{Namespace: "shop", Host: "x.example.com"}
	layout := Layout{ShardSize: 5, TrustDomain: "mesh.example", Exists: func(string) bool { return false }}
	for step, account := range []string{"other", "spiffe://mesh.example/ns/shop/sa/own", "spiffe://mesh.example/ns/partner/sa/web", "spiffe://mesh.example/ns/partner/sa/db", ""} {
		before, _ := builder.Snapshot().Service(key)
		draft := DraftService(before, layout)
		placement := draft.Placement()
		builder.Apply(uint64(step+2), []model.Event{endpoint(1, account)}) //nolint:gosec // a few
		now, _ := builder.Snapshot().Service(key)
		same := 0
		for i, part := range DraftService(now, layout).Parts {
			if part.MadeOf(draft.Parts[i].Ingredients()) {
				same++
			}
		}
		_, follows := placement.Update(now, map[string]struct{}{"10.0.0.1": {}}, layout.Exists)
		if own := step < 2; follows != own || own && same != len(draft.Parts)-1 || !own && same != 0 {
			t.Errorf("%q: followed %t, and %d of %d parts are the same", account, follows, same, len(draft.Parts))
		}
	}
}
