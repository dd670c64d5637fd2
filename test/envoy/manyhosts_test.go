package envoy_test

import (
	"fmt"
	"testing"

	"github.com/isthmus-mesh/isthmus/test/envoy/proxy"
)

// TestHostsOfAPortClaimOneDomain has a port of many hosts, some of which want the same
// domain. Envoy would reject all of them together if two had it. The first has it, and
// once that goes the next one.
func TestHostsOfAPortClaimOneDomain(t *testing.T) {
	inEachMode(t, func(t *testing.T, delta bool) {
		const many, vip = 600, "10.9.9.9"
		m := newMesh(t)
		web, api := startBackend(t, "web", "web"), startBackend(t, "api", "api")
		shared := freePort(t)
		on := func(host string, b *backend, addresses ...string) service {
			return service{Spec: serviceSpec{
				Hosts: []string{host}, Addresses: addresses, Resolution: "STATIC", Ports: []port{{Number: shared, Name: "main", Protocol: "HTTP"}},
				Endpoints: []endpoint{b.endpoint("main")},
			}}
		}
		m.Folder.write(t, "first", on("api.shop", web, vip))
		m.Folder.write(t, "second", on("api.shop.svc.cluster.local", api, vip))
		var others []object
		for i := range many {
			others = append(others, on(fmt.Sprintf("other-%d.example.com", i), web))
		}
		m.Folder.write(t, "others", others...)
		m.Serve("")
		m.connectWith(proxy.Config{Delta: delta, Listeners: true})
		m.AwaitActive("the services")
		await := func(answering map[string]string) {
			t.Helper()
			for host, want := range answering {
				await(t, host+" to answer", func() error { return answers(t.Context(), shared, host, want) })
			}
		}
		await(map[string]string{
			"other-0.example.com": "web", fmt.Sprintf("other-%d.example.com", many-1): "web",
			"api.shop": "api", vip: "web", "api.shop.svc.cluster.local": "api", "api.shop.svc": "api", "api": "api",
		})
		m.Folder.remove(t, "first")
		await(map[string]string{"api.shop": "api", vip: "api"})
		m.Folder.write(t, "first", on("api.shop", web, vip))
		m.Folder.write(t, "others", append(others, on("added.example.com", api))...)
		await(map[string]string{"api.shop": "api", vip: "web", "added.example.com": "api", "other-1.example.com": "web"})
		m.MustBeSettled()
	})
}
