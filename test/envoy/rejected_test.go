package envoy_test

import (
	"errors"
	"fmt"
	"net/http"
	"testing"

	"github.com/isthmus-mesh/isthmus/test/envoy/proxy"
)

// The extensions without which an Envoy rejects clusters of names, and routes of requests
// that are repeated.
const (
	namesOfClusters = "envoy.clusters/envoy.cluster.dns"
	repeats         = "envoy.retry_host_predicates/envoy.retry_host_predicates.previous_hosts"
)

// TestNothingWaitsForARejectedCluster has an Envoy reject a cluster, whose routes are for
// that one service alone. A listener of its bootstrap that waits for them without end gets
// them all the same.
func TestNothingWaitsForARejectedCluster(t *testing.T) {
	inEachMode(t, func(t *testing.T, delta bool) {
		m := newMesh(t)
		web := startBackend(t, "web", "web")
		shared, alone := freePort(t), freePort(t)
		m.Folder.write(t, "web", httpOn("web.example.com", shared, web))
		at := endpoint{Address: "localhost", Ports: map[string]uint32{"main": web.Port}}
		m.Folder.write(t, "names", service{Spec: serviceSpec{
			Hosts: []string{"names.example.com"}, Addresses: []string{"127.0.77.1"}, Resolution: "DNS", Endpoints: []endpoint{at},
			Ports: []port{{Number: shared, Name: "main", Protocol: "HTTP"}, {Number: alone, Name: "any"}},
		}})
		i := m.Serve("")
		waits := proxy.Waiting{Port: freePort(t), Routes: fmt.Sprintf("names.example.com:%d", alone)}
		p := m.connectWith(proxy.Config{Delta: delta, Listeners: true, Without: []string{namesOfClusters}, Waits: []proxy.Waiting{waits}})
		await(t, "the cluster to be rejected", func() error { return rejects(m, i, p) })
		await(t, "the service beside it to answer", func() error { return answers(t.Context(), shared, "web.example.com", "web") })
		// They are there, and lead to a cluster that Envoy lacks.
		await(t, "the service itself to fail at once", func() error { return isStatus(t, waits.Port, "names.example.com", http.StatusServiceUnavailable) })
		nothingWaits(m, p)
	})
}

// TestNothingWaitsForARejectedRoute has an Envoy reject the routes of one port. Its listener
// serves without, and the others serve, also what changes from then on.
func TestNothingWaitsForARejectedRoute(t *testing.T) {
	inEachMode(t, func(t *testing.T, delta bool) {
		m := newMesh(t)
		web, api := startBackend(t, "web", "web"), startBackend(t, "api", "api")
		one, other, alone := freePort(t), freePort(t), freePort(t)
		m.Envoy = `defaults: {retries: {attempts: 0}}, hosts: [{host: "*.twice.example.com", retries: {attempts: 1}}]`
		m.Folder.write(t, "one", httpOn("web.example.com", one, web))
		m.Folder.write(t, "other", httpOn("web2.example.com", other, web))
		m.Folder.write(t, "bad", httpOn("web.twice.example.com", alone, api))
		i := m.Serve("")
		p := m.connectWith(proxy.Config{Delta: delta, Listeners: true, Without: []string{repeats}})
		await(t, "the routes to be rejected", func() error { return rejects(m, i, p) })
		await(t, "the service itself to fail at once", func() error { return isStatus(t, alone, "web.twice.example.com", http.StatusNotFound) })
		for number, host := range map[uint32]string{one: "web.example.com", other: "web2.example.com"} {
			await(t, host+" to answer", func() error { return answers(t.Context(), number, host, "web") })
		}
		nothingWaits(m, p)
		m.Folder.write(t, "other", httpOn("web2.example.com", other, api))
		await(t, "a change to be there", func() error { return answers(t.Context(), other, "web2.example.com", "api") })
		m.Folder.write(t, "bad", httpOn("web.once.example.com", alone, api))
		await(t, "the routes to be there", func() error { return answers(t.Context(), alone, "web.once.example.com", "api") })
		nothingWaits(m, p)
	})
}

// TestNothingWaitsForFilesThatAreNotThere has clusters whose secrets are files that the
// Envoy does not have: one that it starts with first, of names, and one that it starts with
// after that.
func TestNothingWaitsForFilesThatAreNotThere(t *testing.T) {
	inEachMode(t, func(t *testing.T, delta bool) {
		m := newMesh(t)
		web := startBackend(t, "web", "web")
		first, second, plain := freePort(t), freePort(t), freePort(t)
		m.Envoy = `hosts: [
    {host: names.example.com, tls: {mode: MUTUAL, certificateFile: /nowhere/tls.crt, keyFile: /nowhere/tls.key, caFile: /nowhere/ca.crt}},
    {host: tls.example.com, tls: {mode: SIMPLE, caFile: /nowhere/else.crt}},
    ]`
		names := httpOn("names.example.com", first, web)
		names.Spec.Resolution = "DNS"
		m.Folder.write(t, "tls", names, httpOn("tls.example.com", second, web))
		i := m.Serve("")
		p := m.connectWith(proxy.Config{Delta: delta, Listeners: true})
		await(t, "the secrets to be rejected", func() error { return rejects(m, i, p) })
		for number, host := range map[uint32]string{first: "names.example.com", second: "tls.example.com"} {
			await(t, host+" to fail at once", func() error { return isStatus(t, number, host, http.StatusServiceUnavailable) })
		}
		m.Folder.write(t, "web", httpOn("web.example.com", plain, web))
		await(t, "another service to answer", func() error { return answers(t.Context(), plain, "web.example.com", "web") })
		nothingWaits(m, p)
	})
}

// rejects checks that an Envoy has rejected something.
func rejects(m *mesh, i *isthmus, p *proxy.Proxy) error {
	if p.Rejected(m.Context()) == nil || i.Metric("isthmus_refusals_total", "") == 0 {
		return errors.New("nothing was rejected")
	}
	return nil
}

// nothingWaits is that nothing is left warming, and nothing ever waited until its time was over.
func nothingWaits(m *mesh, p *proxy.Proxy) {
	m.Helper()
	await(m, "nothing to be warming", func() error { return p.Unsettled(m.Context()) })
	if err := p.TimedOut(m.Context()); err != nil {
		m.Error(err)
	}
}
