package xds_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source"
)

const (
	newer = "networking.istio.io/v1/ServiceEntry"
	older = "networking.istio.io/v1alpha3/ServiceEntry"
)

func TestWhatTheServerSaysIsFollowed(t *testing.T) {
	variants(t, func(r *rig) {
		r.serve("shop/cart", "10.0.0.1")
		r.serve("shop/pay", "10.0.1.1")
		r.put("Sidecar", "shop/default", wrap("shop/default", &networking.Sidecar{
			Egress: []*networking.IstioEgressListener{{Hosts: []string{"./*"}}},
		}))
		r.mirror()
		r.is(source.StateLive, "")
		r.wants("shop/cart 10.0.0.1", "shop/pay 10.0.1.1", "Scope shop/default")

		r.serve("shop/cart", "10.0.0.1", "10.0.0.2")
		r.remove("ServiceEntry", "shop/pay")
		r.put("WorkloadEntry", "shop/vm", wrap("shop/vm", &networking.WorkloadEntry{Address: "10.0.2.1"}))
		r.pass(time.Second)
		r.wants("shop/cart 10.0.0.1 10.0.0.2", "Scope shop/default", "Workload shop/vm")
	})
}

// Istiod takes a client for a control plane by the generator and the form of the id.
func TestRequestsSayWhoAsks(t *testing.T) {
	variants(t, func(r *rig) {
		r.mirror()
		for i, q := range r.seen() {
			switch {
			case i == 0 && (q.metadata["GENERATOR"] != "api" || strings.Count(q.node, "~") != 3 || !strings.HasPrefix(q.node, "waypoint~")):
				r.Errorf("the first request comes from %q, %v", q.node, q.metadata)
			case q.nonce == "" && q.delta == r.noDelta && !r.noDelta:
				r.Errorf("%+v is of the other variant", q)
			}
		}
		for _, kind := range []string{"ServiceEntry", "Sidecar", "WorkloadEntry", "WorkloadGroup"} {
			url := "networking.istio.io/v1/" + kind
			if !slices.ContainsFunc(r.seen(), func(q request) bool { return q.url == url && q.nonce == "" }) ||
				!slices.ContainsFunc(r.seen(), func(q request) bool { return q.url == url && q.nonce != "" && q.nack == "" }) {
				r.Errorf("%s was not asked for, or its answer not ACKed", url)
			}
		}
	})
}

// Servers for Istio before 1.18 know no waypoints. They are asked as a sidecar asks, and
// once they are known, at once.
func TestServerThatKnowsNoWaypointsIsAskedAsASidecar(t *testing.T) {
	for _, delta := range []bool{true, false} {
		t.Run(fmt.Sprintf("delta %v", delta), func(t *testing.T) {
			bubble(t, manner{noDelta: !delta, noWaypoints: true}, func(r *rig) {
				r.serve("shop/cart", "10.0.0.1")
				r.mirror()
				r.is(source.StateLive, "")
				r.wants("shop/cart 10.0.0.1")
				before := len(r.seen())
				r.cut()
				r.pass(10 * time.Second)
				r.is(source.StateLive, "")
				for _, q := range r.seen()[before:] {
					if strings.HasPrefix(q.node, "waypoint~") {
						r.Errorf("it is asked by %s again", q.node)
					}
				}
			})
		})
	}
}

// Servers for Istio before 1.24 know older names alone. Those that know both are asked
// for one.
func TestOlderNamesAreAskedForWhereNewerOnesAreEmpty(t *testing.T) {
	for _, delta := range []bool{true, false} {
		t.Run(fmt.Sprintf("delta %v", delta), func(t *testing.T) {
			bubble(t, manner{noDelta: !delta, versions: []string{"v1alpha3"}}, func(r *rig) {
				r.serve("shop/cart", "10.0.0.1")
				r.mirror()
				r.wants("shop/cart 10.0.0.1")
				r.serve("shop/cart", "10.0.0.2")
				r.serve("shop/pay", "10.0.1.1")
				r.pass(time.Second)
				r.wants("shop/cart 10.0.0.2", "shop/pay 10.0.1.1")
				r.cut()
				r.pass(10 * time.Second)
				r.is(source.StateLive, "")
				r.wants("shop/cart 10.0.0.2", "shop/pay 10.0.1.1")
			})
		})
	}
}

func TestNamesOfOneKindAreUnited(t *testing.T) {
	variants(t, func(r *rig) {
		r.mirror() // empty, so that both names are asked for
		r.serve("shop/cart", "10.0.0.1")
		r.pass(time.Second)
		r.wants("shop/cart 10.0.0.1")
		before := len(r.seen())
		r.serve("shop/pay", "10.0.1.1")
		r.serve("shop/cart", "10.0.0.2")
		r.pass(time.Second)
		r.wants("shop/cart 10.0.0.2", "shop/pay 10.0.1.1")
		for _, q := range r.seen()[before:] {
			if q.url == older {
				r.Errorf("%+v: the newer name has everything", q)
			}
		}
	})
}

// What a connection missed is found by what is held: the server sends what changed,
// and says what is gone.
func TestConnectionResumesWithWhatIsHeld(t *testing.T) {
	bubble(t, manner{}, func(r *rig) {
		for i := range 5 {
			r.serve(fmt.Sprintf("shop/s%d", i), "10.0.0.1")
		}
		r.mirror()
		r.cut()
		r.serve("shop/s1", "10.0.0.2")
		r.remove("ServiceEntry", "shop/s0")
		r.pass(10 * time.Second)
		r.is(source.StateLive, "")
		r.wants("shop/s1 10.0.0.2", "shop/s2 10.0.0.1", "shop/s3 10.0.0.1", "shop/s4 10.0.0.1")
		resumed := slices.IndexFunc(r.seen(), func(q request) bool { return q.stream == 2 && q.url == newer })
		if resumed < 0 || r.seen()[resumed].held["shop/s2"] != versionOf(service("shop/s2", "10.0.0.1")) {
			r.Errorf("the second stream does not say what is held: %+v", r.seen())
		}
		if r.sentOn(2, newer) != 1 {
			r.Errorf("%d resources were sent again, where one has changed", r.sentOn(2, newer))
		}
	})
}

// A server that takes no notice of what is held would never say what went meanwhile.
func TestServerThatDoesNotResumeIsReadAnew(t *testing.T) {
	bubble(t, manner{repeats: true}, func(r *rig) {
		for i := range 5 {
			r.serve(fmt.Sprintf("shop/s%d", i), "10.0.0.1")
		}
		r.mirror()
		r.cut()
		r.remove("ServiceEntry", "shop/s0")
		r.pass(20 * time.Second)
		r.is(source.StateLive, "")
		r.wants("shop/s1 10.0.0.1", "shop/s2 10.0.0.1", "shop/s3 10.0.0.1", "shop/s4 10.0.0.1")
	})
}

// A first state in several answers is one listing: nothing of what is stored seems to
// be missing in between.
func TestFirstStateInSeveralAnswersIsOneListing(t *testing.T) {
	bubble(t, manner{chunk: 2}, func(r *rig) {
		var all []string
		for i := range 25 {
			r.serve(fmt.Sprintf("shop/s%02d", i), "10.0.0.1")
			all = append(all, fmt.Sprintf("shop/s%02d 10.0.0.1", i))
		}
		r.mirror()
		r.wants(all...)
		r.stop()
		revision := r.store.At()
		r.mirror()
		r.is(source.StateLive, "")
		if r.wants(all...); r.store.At() != revision {
			r.Errorf("a restart writes: %v, then %v", revision, r.store.At())
		}
	})
}

// A server that takes delta requests and is silent is read in the other variant, and
// in the delta variant again once it answers there.
func TestSilentDeltaIsGivenUp(t *testing.T) {
	bubble(t, manner{silentDelta: true}, func(r *rig) {
		r.serve("shop/cart", "10.0.0.1")
		r.begin()
		r.pass(4 * time.Second)
		r.is(source.StateListing, "")
		r.pass(2 * time.Second)
		r.is(source.StateLive, "")
		r.wants("shop/cart 10.0.0.1")
		r.change(func() { r.silentDelta = false })
		r.pass(5 * time.Second)
		r.is(source.StateLive, "")
		before := len(r.seen())
		r.serve("shop/cart", "10.0.0.2")
		r.pass(time.Second)
		r.wants("shop/cart 10.0.0.2")
		for _, q := range r.seen()[before:] {
			if !q.delta {
				r.Errorf("%+v is not of the delta variant", q)
			}
		}
	})
}

// Other kinds are carried byte for byte if they are asked for.
func TestOtherKindsAreCarried(t *testing.T) {
	variants(t, func(r *rig) {
		rule := &networking.DestinationRule{Host: "cart.example"}
		r.put("DestinationRule", "shop/cart", wrap("shop/cart", rule))
		r.serve("shop/cart", "10.0.0.1")
		r.mirror("DestinationRule")
		r.wants("DestinationRule shop/cart")
		for rec := range r.store.List(model.Filter{Kind: "DestinationRule"}) {
			if got, _ := rec.Spec.(model.Opaque); got.Content != string(encode(rule).GetValue()) || !strings.HasSuffix(got.Type, "/istio.networking.v1alpha3.DestinationRule") {
				r.Errorf("%+v", rec.Spec)
			}
		}
	})
}
