package supervise_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source"
)

// wide is a service with so many hosts, addresses and ports.
func wide(name string, hosts, addresses, ports int, protocol string) model.Object {
	var h []string
	for i := range hosts {
		h = append(h, fmt.Sprintf("h%d.%s.example.com", i, name))
	}
	var p []model.Port
	for i := range ports {
		p = append(p, model.Port{Number: uint32(1000 + i), Name: fmt.Sprint("p", i), Protocol: protocol})
	}
	return of(model.KindService, name, model.Service{Hosts: model.ListOf(h...), Addresses: model.ListOf(crowd(addresses)...), Ports: model.ListOf(p...)})
}

// crowded is a service with so many endpoints that come with it.
func crowded(name string, hosts, ports, endpoints int) model.Object {
	return model.Object{Record: wide(name, hosts, 0, ports, "HTTP").Record, Owned: service(name, "", crowd(endpoints)...).Owned}
}

// isStored reports whether a service is stored, and with how many hosts.
func (b *bridge) isStored(name string) (hosts int, stored bool) {
	b.t.Helper()
	for rec := range b.store.List(model.Filter{Kind: model.KindService, Source: "reg", Namespace: "ns"}) {
		if spec, ok := rec.Spec.(model.Service); ok && rec.Name == name {
			return spec.Hosts.Len(), true
		}
	}
	return 0, false
}

func (b *bridge) stores(want map[string]bool) {
	b.t.Helper()
	for name, should := range want {
		if _, is := b.isStored(name); is != should {
			b.t.Errorf("%s is stored: %t, want %t", name, is, should)
		}
	}
}

// What one object asks for is bounded, and the object is rejected whole, with the numbers;
// the others go on.
func TestAnObjectMayAskForSoMuch(t *testing.T) {
	for name, c := range map[string]struct {
		object model.Object
		reason string // empty if it is taken
	}{
		"most combinations": {wide("a", 100, 10, 10, "HTTP"), ""},
		"all three":         {wide("a", 100, 100, 100, "HTTP"), "100 hosts × 100 addresses × 100 ports = 1000000 combinations, and an object may have at most 10000"},
		"one too many":      {wide("a", 10_001, 0, 0, ""), "10001 hosts × 0 addresses × 0 ports = 10001 combinations"},
		"no overflow":       {wide("a", 5_000, 5_000, 5_000, "HTTP"), "= 125000000000 combinations"},
		"most listeners":    {wide("a", 1, 100, 10, "TCP"), ""},
		"listeners":         {wide("a", 1, 100, 11, "TCP"), "100 addresses × 11 ports that are not HTTP = 1100 listeners in every Envoy, and an object may have at most 1000"},
		"TLS listeners":     {wide("a", 1, 100, 11, "TLS"), "1100 listeners"},
		"unknown protocol":  {wide("a", 1, 100, 11, ""), "1100 listeners"},
		"shared listeners":  {wide("a", 1, 200, 11, "GRPC"), ""},
		"no listeners":      {wide("a", 1, 200, 11, "UDP"), ""},
		"most endpoints":    {crowded("a", 1, 500, 200), ""},
		"endpoints":         {crowded("a", 10, 51, 200), "10 hosts × 51 ports × 200 endpoints = 102000 places, and an object may have at most 100000: split it into several objects"},
	} {
		t.Run(name, func(t *testing.T) {
			supervised(t, func(b *bridge) {
				b.list(c.object, service("good", "g"))
				if c.reason == "" {
					b.rejected(map[string]string{})
				} else {
					b.rejected(map[string]string{"a": c.reason})
				}
				b.stores(map[string]bool{"a": c.reason == "", "good": true})
				b.inState(source.StateLive)
			})
		})
	}
}

// An object that grows beyond the bound keeps its last good version.
func TestAnObjectThatGrowsTooLargeStaysAsItWas(t *testing.T) {
	supervised(t, func(b *bridge) {
		b.list(wide("a", 2, 2, 2, "HTTP"))
		b.change(model.Change{Upserts: []model.Object{wide("a", 200, 200, 200, "HTTP")}})
		b.rejected(map[string]string{"a": "8000000 combinations"})
		b.change(model.Change{Upserts: []model.Object{crowded("a", 100, 100, 11)}})
		b.rejected(map[string]string{"a": "110000 places"})
		if hosts, _ := b.isStored("a"); hosts != 2 {
			t.Errorf("the stored service has %d hosts", hosts)
		}
	})
}

// fill returns services of 100 combinations each.
func fill(n int, prefix string) (list []model.Object) {
	for i := range n {
		list = append(list, wide(fmt.Sprintf("%s%04d", prefix, i), 10, 10, 1, "HTTP"))
	}
	return list
}

// roomFor is how many of them fit into a namespace.
const roomFor = 2000

// Of a namespace that is full the last services by name are rejected, whatever the order
// in which they are listed. Other namespaces have room of their own.
func TestANamespaceMayAskForSoMuch(t *testing.T) {
	supervised(t, func(b *bridge) {
		all := fill(roomFor+2, "s")
		all[0], all[roomFor+1] = all[roomFor+1], all[0]
		far := wide("far", 10, 10, 1, "HTTP")
		far.Record.Namespace = "other"
		b.list(append(all, far)...)
		const reason = `do not fit into namespace "ns": all services that a source has there may have 200000 combinations and 20000 listeners`
		b.rejected(map[string]string{"s2000": reason, "s2001": reason})
		b.stores(map[string]bool{"s0000": true, "s1999": true, "s2000": false, "s2001": false})
		if st := b.Status(); st.Services != roomFor+1 {
			t.Errorf("%d services are stored", st.Services)
		}
	})
}

// What is served is not taken away by objects that come later, be it with names that come
// before: in a listing, in a change, and in a place.
func TestANamespaceThatIsFullKeepsWhatItHas(t *testing.T) {
	supervised(t, func(b *bridge) {
		all := fill(roomFor, "s")
		b.list(all...)
		b.list(append(all, wide("aaa", 1, 1, 1, "HTTP"))...)
		b.rejected(map[string]string{"aaa": "do not fit"})
		b.change(model.Change{Upserts: []model.Object{wide("aab", 1, 1, 1, "HTTP"), wide("s0007", 10, 11, 1, "HTTP")}})
		b.rejected(map[string]string{"aaa": "do not fit", "aab": "do not fit", "s0007": "do not fit"})
		inPlace := wide("aac", 1, 1, 1, "HTTP")
		inPlace.Record.Place = "g"
		b.replace(model.Listing{Places: []string{"g"}, Objects: []model.Object{inPlace}})
		b.stores(map[string]bool{"aaa": false, "aab": false, "aac": false, "s0000": true, "s0007": true, "s1999": true})
		for rec := range b.store.List(model.Filter{Kind: model.KindService, Source: "reg", Namespace: "ns", Prefix: "s0007"}) {
			if !strings.Contains(rec.Status.Stale, "do not fit") {
				t.Errorf("the service that grew is %+v", rec.Status)
			}
		}
		// Objects that go make room for others that come with the same change.
		b.change(model.Change{
			Deletes: []model.Ref{ref(model.KindService, "s0001")}, Upserts: []model.Object{wide("t", 10, 10, 1, "HTTP")},
		})
		b.stores(map[string]bool{"s0001": false, "t": true})
	})
}

// Once there is room again the registry is asked to list, as it does not report again what
// did not change.
func TestRoomIsFoundAgain(t *testing.T) {
	supervised(t, func(b *bridge) {
		all := fill(roomFor+1, "s")
		b.registry.answer(model.Listing{Objects: all[1:]})
		b.list(all...)
		b.stores(map[string]bool{"s2000": false})
		b.change(model.Change{Deletes: []model.Ref{ref(model.KindService, "s0000")}})
		time.Sleep(time.Minute)
		synctest.Wait()
		b.stores(map[string]bool{"s2000": true})
		if asks := b.registry.asked(time.Now()); len(asks) != 1 {
			t.Errorf("the registry was asked to list %d times", len(asks))
		}
		b.rejected(map[string]string{})
	})
}

// The listeners of a namespace are bounded as well.
func TestANamespaceMayHaveSoManyListeners(t *testing.T) {
	supervised(t, func(b *bridge) {
		var all []model.Object
		for i := range 21 {
			all = append(all, wide(fmt.Sprintf("s%02d", i), 1, 100, 10, "TCP"))
		}
		b.list(all...)
		b.rejected(map[string]string{"s20": "(1000 listeners in every Envoy) do not fit"})
	})
}

// An endpoint that comes with a rejected object is not stored, and one that is reported by
// itself is added to the version that stays.
func TestARejectedServiceKeepsTakingEndpoints(t *testing.T) {
	supervised(t, func(b *bridge) {
		all := fill(roomFor, "s")
		b.list(all...)
		grown := wide("s0001", 10, 11, 1, "HTTP")
		grown.Owned = []model.Record{{Ref: ref(model.KindEndpoint, "s0001/1"), Spec: model.Endpoint{Address: "1"}}}
		b.change(model.Change{
			Upserts:      []model.Object{grown},
			OwnedUpserts: []model.Record{{Ref: ref(model.KindEndpoint, "s0001/2"), Owner: ref(model.KindService, "s0001"), Spec: model.Endpoint{Address: "2"}}},
		})
		var got []string
		for rec := range b.store.List(model.Filter{Kind: model.KindEndpoint, Source: "reg"}) {
			got = append(got, rec.Name)
		}
		if fmt.Sprint(got) != "[s0001/2]" {
			t.Errorf("the endpoints are %v", got)
		}
	})
}
