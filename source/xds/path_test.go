package xds_test

import (
	"strings"
	"testing"
	"time"

	mcpapi "istio.io/api/mcp/v1alpha1"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/isthmus-mesh/isthmus/convert/istio"
	"github.com/isthmus-mesh/isthmus/source"
)

// through has the peer hold a ServiceEntry with the paths of its items. The Isthmus that
// reads it is "here".
func (r *rig) through(path, name string, addresses ...string) {
	r.Helper()
	var resource mcpapi.Resource
	if err := service(name, addresses...).UnmarshalTo(&resource); err != nil {
		r.Fatal(err)
	}
	resource.Metadata.Annotations = map[string]string{istio.AnnotationPath: path}
	r.put("ServiceEntry", name, encode(&resource))
}

// echoed checks how many ServiceEntries came through this Isthmus.
func (r *rig) echoed(count int) {
	r.Helper()
	for _, e := range r.Exchanges() {
		if e.Type == newer && e.Echoed != count {
			r.Errorf("%d resources came through here, want %d", e.Echoed, count)
		}
	}
	noticed := false
	for _, n := range r.Status().Notices {
		noticed = noticed || strings.Contains(n.Text, "came in whole or in part through this Isthmus, here,")
	}
	if noticed != (count > 0) {
		r.Errorf("the notices are %v", r.Status().Notices)
	}
}

// Of the server's resources those items are taken that did not come through here.
func TestNothingThatCameThroughHereIsTaken(t *testing.T) {
	variants(t, func(r *rig) {
		r.through("east", "shop/cart", "10.0.0.1")
		r.through("here,east", "shop/pay", "10.0.1.1")
		r.through("north,here,east", "shop/users", "10.0.2.1")
		r.through("north,east;here,east/0x3,1", "shop/web", "10.0.3.1", "10.0.3.2") // the object, its port and its first endpoint; its second
		r.put("Sidecar", "shop/default", wrap("shop/default", &networking.Sidecar{Egress: []*networking.IstioEgressListener{{Hosts: []string{"./*"}}}}))
		r.mirror()
		r.is(source.StateLive, "")
		r.wants("shop/cart 10.0.0.1", "shop/web 10.0.3.1", "Scope shop/default")
		r.echoed(3)

		// Another way is another answer: one has come by a way of its own, another only through here.
		r.through("here,east", "shop/cart", "10.0.0.1")
		r.through("north,east", "shop/pay", "10.0.1.1")
		r.through("north,east", "shop/web", "10.0.3.1", "10.0.3.2")
		r.remove("ServiceEntry", "shop/users")
		r.pass(time.Second)
		r.is(source.StateLive, "")
		r.wants("shop/pay 10.0.1.1", "shop/web 10.0.3.1 10.0.3.2", "Scope shop/default")
		r.echoed(1)

		r.remove("ServiceEntry", "shop/cart")
		r.pass(time.Second)
		r.wants("shop/pay 10.0.1.1", "shop/web 10.0.3.1 10.0.3.2", "Scope shop/default")
		r.echoed(0)
	})
}

// What is held because a server lists it no more goes at once when the server has it by nobody
// but through here: nothing but the hold keeps it alive then. A server that lists what it
// reads here, and has no name, says nothing of what it had itself.
func TestHeldRecordsGoOnceTheServerHasThemFromHere(t *testing.T) {
	for path, goes := range map[string]bool{"west,here,north,east": true, "west,here": false} {
		t.Run(path, func(t *testing.T) {
			bubble(t, manner{noDelta: true}, func(r *rig) {
				r.through("west,east", "shop/cart", "10.0.0.1")
				r.mirror()
				r.remove("ServiceEntry", "shop/cart")
				r.pass(time.Second)
				r.wants("shop/cart 10.0.0.1 (held)")
				r.is(source.StateHeld, "")
				r.through(path, "shop/cart", "10.0.0.1")
				r.pass(time.Second)
				if goes {
					r.wants()
					r.is(source.StateLive, "")
					return
				}
				r.wants("shop/cart 10.0.0.1 (held)")
				r.pass(3 * time.Minute)
				r.wants()
			})
		})
	}
}
