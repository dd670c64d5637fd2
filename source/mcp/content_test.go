package mcp_test

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/types/known/anypb"
	mcpapi "istio.io/api/mcp/v1alpha1"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/internal/mcp"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source"
	sourcemcp "github.com/isthmus-mesh/isthmus/source/mcp"
)

// notReady adds what a synthetic ServiceEntry says of itself.
func notReady(r *mcpapi.Resource, endpoints string) *mcpapi.Resource {
	r.Metadata.Annotations = map[string]string{
		mcp.ServiceVersion: "s", mcp.EndpointsVersion: r.GetMetadata().GetVersion(), "team": "shop",
	}
	if endpoints != "" {
		r.Metadata.Annotations[mcp.NotReadyEndpoints] = endpoints
	}
	return r
}

// Pilot only ever adds those that are not ready. Here they come and go, and no other
// record changes for them.
func TestEndpointsThatAreNotReadyComeAndGo(t *testing.T) {
	bubble(t, func(r *rig) {
		_, s := r.begin(only(synthetic))
		s.acked(s.full(synthetic, notReady(entry("shop/cart", "1", "10.0.0.1", "10.0.0.2"), "10.0.0.3:80,10.0.0.4:80")))
		r.holds("Service shop/cart", "Endpoint shop/cart/10.0.0.1", "Endpoint shop/cart/10.0.0.2",
			"Endpoint shop/cart/10.0.0.3 UNHEALTHY", "Endpoint shop/cart/10.0.0.4 UNHEALTHY")
		if healthy, total := r.counts(); healthy != 2 || total != 4 {
			t.Errorf("%d of %d endpoints are healthy", healthy, total)
		}
		before := r.revisions()
		s.acked(s.full(synthetic, notReady(entry("shop/cart", "2", "10.0.0.1", "10.0.0.3"), "10.0.0.2:80")))
		r.holds("Service shop/cart", "Endpoint shop/cart/10.0.0.1", "Endpoint shop/cart/10.0.0.2 UNHEALTHY", "Endpoint shop/cart/10.0.0.3")
		s.acked(s.full(synthetic, notReady(entry("shop/cart", "3", "10.0.0.1", "10.0.0.3"), "")))
		r.holds("Service shop/cart", "Endpoint shop/cart/10.0.0.1", "Endpoint shop/cart/10.0.0.3")
		after := r.revisions()
		for _, name := range []string{"Service shop/cart", "Endpoint shop/cart/10.0.0.1"} {
			if before[name] != after[name] {
				t.Errorf("%s is written though nothing of it has changed", name)
			}
		}
	})
}

// counts is what the catalog makes of the endpoints.
func (r *rig) counts() (healthy, total int) {
	b := catalog.NewBuilder([]string{sourceName})
	var events []model.Event
	for rec := range r.stored() {
		events = append(events, model.Upsert{Record: rec})
	}
	b.Apply(r.store.Revision(), events)
	for s := range b.Snapshot().Services() {
		h, n := s.Counts()
		healthy, total = healthy+h, total+n
	}
	return healthy, total
}

// revisions are those of everything that is stored.
func (r *rig) revisions() map[string]uint64 {
	all := map[string]uint64{}
	for rec := range r.stored() {
		all[string(rec.Kind)+" "+rec.Namespace+"/"+rec.Name] = rec.Revision
	}
	return all
}

// An endpoint that changes is that endpoint alone, even where the peer sends everything.
func TestAChangeOfAnEndpointIsNoneOfItsService(t *testing.T) {
	bubble(t, func(r *rig) {
		_, s := r.begin(only(entries))
		one, other := entry("shop/cart", "1", "10.0.0.1", "10.0.0.2", "10.0.0.3"), entry("shop/users", "1", "10.0.1.1")
		s.acked(s.full(entries, one, other))
		before := r.revisions()
		s.acked(s.full(entries, entry("shop/cart", "2", "10.0.0.1", "10.0.0.2", "10.0.0.4"), other))
		after := r.revisions()
		for name, revision := range before {
			if now, stays := after[name]; stays && now != revision {
				t.Errorf("%s is written", name)
			}
		}
		if len(after) != len(before) || after["Endpoint shop/cart/10.0.0.4"] == 0 {
			t.Errorf("stored are %v", after)
		}
		s.acked(s.full(entries, entry("shop/cart", "3", "10.0.0.4", "10.0.0.2", "10.0.0.1"), other)) // another order, another version
		if again := r.revisions(); fmt.Sprint(again) != fmt.Sprint(after) {
			t.Errorf("written though nothing has changed: %v, before %v", again, after)
		}
	})
}

func TestOtherCollectionsAreCarriedByteForByte(t *testing.T) {
	bubble(t, func(r *rig) {
		m, s := r.begin(only(destRules, "istio/rbac/v1alpha1/clusterrbacconfigs"))
		// A field that nobody knows is carried, too.
		body := &anypb.Any{TypeUrl: "type.googleapis.com/istio.networking.v1alpha3.DestinationRule", Value: []byte("\x0a\x01h\xfa\x3f\x09any bytes")}
		unread := &anypb.Any{TypeUrl: "type.googleapis.com/istio.rbac.v1alpha1.RbacConfig", Value: []byte("\x0a\x01h\xff any bytes")}
		meta := func(name string) *mcpapi.Metadata {
			return &mcpapi.Metadata{Name: name, Version: "7", Labels: map[string]string{"a": "b"}, Annotations: map[string]string{"c": "d"}}
		}
		s.full(destRules, &mcpapi.Resource{Metadata: meta("shop/Rule_1"), Body: body})
		s.full("istio/rbac/v1alpha1/clusterrbacconfigs", &mcpapi.Resource{Metadata: meta("default"), Body: unread})
		r.holds("DestinationRule shop/Rule_1", "ClusterRbacConfig /default")
		for rec := range r.store.List(model.Filter{Source: sourceName, Kind: "DestinationRule"}) {
			spec, _ := rec.Spec.(model.Opaque)
			label, _ := spec.Labels.Get("a")
			annotation, _ := spec.Annotations.Get("c")
			if spec.Type != body.GetTypeUrl() || spec.Content != string(body.GetValue()) || label != "b" || annotation != "d" {
				t.Errorf("carried is %+v", spec)
			}
		}
		m.is(source.StateLive, "")
	})
}

// Istio leaves out what it cannot decode, and says nothing of it.
func TestWhatIstioCannotDecodeIsRejectedByItself(t *testing.T) {
	bubble(t, func(r *rig) {
		m, s := r.begin(only(destRules))
		garbage := resource("shop/garbage", "1", &networking.DestinationRule{})
		garbage.Body.Value = []byte("\x0a\x7f")
		s.acked(s.full(destRules, garbage, resource("shop/other", "1", &networking.Gateway{}), resource("shop/good", "1", &networking.DestinationRule{Host: "h"})))
		r.holds("DestinationRule shop/good")
		rejections := m.Status().Rejected
		if len(rejections) != 2 || !strings.Contains(rejections[0].Reason, "cannot be decoded as DestinationRule") ||
			!strings.Contains(rejections[1].Reason, "is not the type of DestinationRule: use istio.networking.v1alpha3.DestinationRule") {
			t.Errorf("rejected is %+v", rejections)
		}
	})
}

func TestAServiceMayHaveMoreEndpointsThanAnAPIServerTakes(t *testing.T) {
	bubble(t, func(r *rig) {
		m, s := r.begin(only(entries))
		var all []string
		for i := range 5000 {
			all = append(all, fmt.Sprintf("10.1.%d.%d", i/250, i%250))
		}
		s.acked(s.full(entries, entry("public/orders.DEFAULT-GROUP.public", "1", all...)))
		if n := m.Status().Endpoints; n != 5000 {
			t.Errorf("%d endpoints are stored: %v", n, m.Status().Rejected)
		}
	})
}

// A bad endpoint keeps nobody else where they were: neither those that come, nor those
// that go.
func TestOneBadEndpointNeverFreezesItsService(t *testing.T) {
	for name, config := range map[string]sourcemcp.Config{"full states": only(entries), "increments": incremental(entries)} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(r *rig) {
				m, s := r.begin(config)
				s.acked(s.full(entries, entry("shop/cart", "1", "10.0.0.1", "10.0.0.2"), entry("shop/users", "1", "10.0.1.1")))
				bad := zeroPort(entry("shop/cart", "2", "10.0.0.2", "10.0.0.3"), 0)
				s.acked(s.send(&mcp.Resources{Collection: entries, Incremental: config.Incremental, Resources: many(bad, entry("shop/users", "1", "10.0.1.1"))}))
				r.holds("Service shop/cart", "Endpoint shop/cart/10.0.0.3", "Service shop/users", "Endpoint shop/users/10.0.1.1")
				m.rejects("ServiceEntry shop/cart", "spec.endpoints[0].ports.http: 0 is not a port")
				m.is(source.StateLive, "")
				// The only one that is left is bad: its service has none.
				bad = zeroPort(entry("shop/cart", "3", "10.0.0.2"), 0)
				s.acked(s.send(&mcp.Resources{Collection: entries, Incremental: config.Incremental, Resources: many(bad, entry("shop/users", "1", "10.0.1.1"))}))
				r.holds("Service shop/cart", "Service shop/users", "Endpoint shop/users/10.0.1.1")
				good := entry("shop/cart", "4", "10.0.0.2")
				s.acked(s.send(&mcp.Resources{Collection: entries, Incremental: config.Incremental, Resources: many(good, entry("shop/users", "1", "10.0.1.1"))}))
				r.holds("Service shop/cart", "Endpoint shop/cart/10.0.0.2", "Service shop/users", "Endpoint shop/users/10.0.1.1")
				m.rejects()
			})
		})
	}
}

// zeroPort has an endpoint of an entry listen on port 0.
func zeroPort(r *mcpapi.Resource, at int) *mcpapi.Resource {
	var spec networking.ServiceEntry
	if err := r.GetBody().UnmarshalTo(&spec); err != nil {
		panic(err)
	}
	spec.GetEndpoints()[at].Ports = map[string]uint32{"http": 0}
	return resource(r.GetMetadata().GetName(), r.GetMetadata().GetVersion(), &spec)
}

// An object in both collections of ServiceEntries is one service.
func TestBothCollectionsOfServiceEntriesAreOneCatalog(t *testing.T) {
	bubble(t, func(r *rig) {
		m, s := r.begin(incremental(entries, synthetic))
		s.full(entries, entry("shop/cart", "1", "10.0.0.1"))
		s.full(synthetic, entry("shop/cart", "1", "10.0.0.9"), entry("shop/users", "1", "10.0.1.1"))
		s.request()
		s.request()
		r.holds("Service shop/cart", "Endpoint shop/cart/10.0.0.1", "Service shop/users", "Endpoint shop/users/10.0.1.1")
		if n := m.Status().Notices; len(n) != 1 || !strings.Contains(n[0].Text, "shop/cart") {
			t.Errorf("the notices are %v", n)
		}
		m.rejects()
		// What does not count changes nothing, until it does.
		s.acked(s.send(&mcp.Resources{Collection: synthetic, Incremental: true, Resources: many(entry("shop/cart", "2", "10.0.0.8"))}))
		r.holds("Service shop/cart", "Endpoint shop/cart/10.0.0.1", "Service shop/users", "Endpoint shop/users/10.0.1.1")
		s.acked(s.send(&mcp.Resources{Collection: entries, Incremental: true, RemovedResources: []string{"shop/cart"}}))
		r.holds("Service shop/cart", "Endpoint shop/cart/10.0.0.8", "Service shop/users", "Endpoint shop/users/10.0.1.1")
		s.acked(s.send(&mcp.Resources{Collection: synthetic, Incremental: true, RemovedResources: []string{"shop/cart"}}))
		r.holds("Service shop/users", "Endpoint shop/users/10.0.1.1")
		m.is(source.StateLive, "")
	})
}

func TestEveryKindThatIsUnderstoodIsRead(t *testing.T) {
	bubble(t, func(r *rig) {
		m, s := r.begin(only(sidecars, workloads, groups))
		s.full(sidecars, resource("shop/default", "1", &networking.Sidecar{Egress: []*networking.IstioEgressListener{{Hosts: []string{"./*"}}}}))
		s.full(workloads, resource("shop/vm", "1", &networking.WorkloadEntry{Address: "10.0.0.1", Labels: map[string]string{"app": "cart"}}))
		s.full(groups, resource("shop/vms", "1", &networking.WorkloadGroup{Template: &networking.WorkloadEntry{}}))
		r.holds("Scope shop/default", "Workload shop/vm", "WorkloadGroup shop/vms")
		m.rejects()
	})
}

// Of two resources of one name in an answer the first counts, in both variants, and a notice
// says so for as long as the last answer had two.
func TestOfTwoResourcesOfOneNameTheFirstCounts(t *testing.T) {
	for name, config := range map[string]sourcemcp.Config{"full": only(entries), "increment": incremental(entries)} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(r *rig) {
				m, s := r.begin(config)
				noticed := func(want int) {
					r.Helper()
					if n := m.Status().Notices; len(n) != want || want > 0 && !strings.Contains(n[0].Text, "shop/cart more than once") {
						t.Errorf("the notices are %v", n)
					}
				}
				s.acked(s.full(entries, entry("shop/cart", "1", "10.0.0.1"), entry("shop/cart", "2", "10.0.0.2")))
				r.holds("Service shop/cart", "Endpoint shop/cart/10.0.0.1")
				noticed(1)
				again := []*mcpapi.Resource{entry("shop/cart", "1", "10.0.0.1"), entry("shop/cart", "3", "10.0.0.3")}
				s.acked(s.send(&mcp.Resources{Collection: entries, Incremental: config.Incremental, Resources: many(again...)}))
				r.holds("Service shop/cart", "Endpoint shop/cart/10.0.0.1")
				noticed(1)
				s.acked(s.send(&mcp.Resources{Collection: entries, Incremental: config.Incremental, Resources: many(again[1])}))
				r.holds("Service shop/cart", "Endpoint shop/cart/10.0.0.3")
				noticed(0)
			})
		})
	}
}
