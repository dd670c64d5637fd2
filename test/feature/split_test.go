package feature_test

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"google.golang.org/protobuf/proto"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/isthmus-mesh/isthmus/admin"
	"github.com/isthmus-mesh/isthmus/config"
)

// A control plane is sent the shares of a split as weights of endpoints, in one ServiceEntry
// of all backends.
func TestControlPlanesGetSharesAsWeights(t *testing.T) {
	t.Parallel()
	legacy, east := newRegistry(t, "legacy"), newRegistry(t, "east")
	legacy.Write("shop.yaml", service{Host: reviews, Endpoints: []string{"{address: 10.0.0.1}", "{address: 10.0.0.2}", "{address: 10.0.0.3, weight: 7}"}})
	east.Write("shop.yaml", service{Host: reviews, Endpoints: []string{"{address: 10.0.1.1, weight: 100}"}})
	text := fmt.Sprintf("sources:\n- name: legacy\n  file: {path: %q}\n- name: east\n  file: {path: %q}\noutputs:\n  xds: {listen: %q}\nadmin: {listen: %q}\n"+
		"splits:\n- {host: %s, namespace: shop, backends: [{source: legacy, weight: 90}, {source: east, weight: 10}]}\n", legacy.path, east.path, loopback, loopback, reviews)
	next := istiodOf(t, startWith(t, text, legacy, east), entryType)
	entry := &networking.ServiceEntry{}
	got := next()
	if err := proto.Unmarshal(got["shop/reviews"].GetBody().GetValue(), entry); err != nil || len(entry.GetEndpoints()) != 4 {
		t.Fatalf("there is %v, %v", got, err)
	}
	whole := 0.0
	for _, e := range entry.GetEndpoints() {
		whole += float64(e.GetWeight())
	}
	for _, e := range entry.GetEndpoints() {
		want := map[string]float64{"10.0.0.1": 0.1, "10.0.0.2": 0.1, "10.0.0.3": 0.7, "10.0.1.1": 0.1}[e.GetAddress()]
		if share := float64(e.GetWeight()) / whole; math.Abs(share-want) > 0.01*want {
			t.Errorf("%s has %.4f of the calls, want %g", e.GetAddress(), share, want)
		}
	}
}

// If a source and the split that gives it no calls leave the configuration in one change, its
// endpoints get no call while the source waits for another one to take its place.
func TestASourceWithoutAShareLeavesUnseen(t *testing.T) {
	t.Parallel()
	legacy, east := newRegistry(t, "legacy"), newRegistry(t, "east")
	legacy.Write("shop.yaml", service{Host: reviews, Endpoints: []string{"{address: 10.0.0.1}", "{address: 10.0.0.2}"}})
	east.Write("shop.yaml", service{Host: reviews, Endpoints: []string{"{address: 10.0.1.1, weight: 3}"}})
	both := []entry{{name: "east", from: east}, {name: "legacy", from: legacy}}
	r := &reloading{file: filepath.Join(t.TempDir(), "isthmus.yaml"), hangup: make(chan os.Signal, 1), logged: make(chan config.Log, 10)}
	place(t, r.file, configOf(both...)+fmt.Sprintf("splits:\n- {host: %s, namespace: shop, backends: [{source: legacy, weight: 0}, {source: east, weight: 1}]}\n", reviews))
	r.start(t, east)
	r.AwaitSources(both...)
	third := newRegistry(t, "third")
	third.Write("shop.yaml", service{Host: reviews, Endpoints: []string{"{address: 10.0.0.1}", "{address: 10.0.0.2}"}})
	ready := third.path
	third.path = filepath.Join(t.TempDir(), "later")
	place(t, r.file, configOf(both[0], entry{name: "third", from: third, optional: true}))
	r.hangup <- syscall.SIGHUP
	r.AwaitConfig("the source to leave", func(c admin.Config) bool { return len(c.Leaving) == 1 })
	next := istiodOf(t, r.isthmus, entryType)
	endpoints := func() int {
		entry := &networking.ServiceEntry{}
		if err := proto.Unmarshal(next()["shop/reviews"].GetBody().GetValue(), entry); err != nil {
			t.Fatal(err)
		}
		return len(entry.GetEndpoints())
	}
	if n := endpoints(); n != 1 {
		t.Fatalf("%d endpoints get calls while the source leaves", n)
	}
	if err := os.Rename(ready, third.path); err != nil {
		t.Fatal(err)
	}
	for endpoints() != 3 { // without the split
	}
}
