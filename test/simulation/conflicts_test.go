package simulation

import (
	"fmt"
	"strings"
	"testing"

	"istio.io/istio/pilot/pkg/simulation"
)

// claimant is a service that wants connections of port 9999.
type claimant struct {
	host, protocol, address string
}

// claimants are services, the oldest first.
func claimants(list ...claimant) string {
	var b strings.Builder
	for i, c := range list {
		fmt.Fprintf(&b, `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: se%d, namespace: default, creationTimestamp: "2026-01-0%dT00:00:00Z"}
spec:
  hosts: [%s]
  addresses: [%s]
  resolution: STATIC
  endpoints: [{address: 10.1.1.1}]
  ports: [{number: 9999, name: p, protocol: %q}]
---`, i, i+1, c.host, c.address, c.protocol)
	}
	return b.String()
}

var (
	request    = simulation.Call{Port: 9999, Address: "10.0.0.1", Protocol: simulation.HTTP, HostHeader: "web"}
	connection = simulation.Call{Port: 9999, Address: "10.0.0.1", Protocol: simulation.TCP}
)

const (
	web = "outbound|9999||web"
	raw = "outbound|9999||raw"
)

// TestRequestsBesideConnections has services of one port that carry different things.
func TestRequestsBesideConnections(t *testing.T) {
	t.Parallel()
	differs := func(cluster string) *simulation.Result { r := to(cluster); return &r }
	const (
		ageAlone = "Which listener and which chains there are does not depend on the order in which services came."
		owned    = "The oldest has the address. With Istio a listener of the address goes before the one that all share, whoever is older."
		named    = "A block leaves requests to the service that they name. With Istio it has all connections."
		quiet    = "Nothing else has to be read there, so more than one protocol is taken."
	)
	for name, test := range map[string]struct {
		services []claimant
		calls    []expectation
	}{
		"HTTP, then TCP": {[]claimant{{"web", "HTTP", ""}, {"raw", "TCP", ""}}, []expectation{
			{name: "request", call: request, want: to(web)},
			{name: "connection", call: connection, want: to(raw)},
		}},
		"TCP, then HTTP": {[]claimant{{"raw", "TCP", ""}, {"web", "HTTP", ""}}, []expectation{
			{name: "request", call: request, want: to(web)},
			{name: "connection", call: connection, want: to(raw)},
		}},
		"HTTP, then TCP at an address": {[]claimant{{"web", "HTTP", ""}, {"raw", "TCP", "10.0.0.1"}}, []expectation{
			{name: "request", call: request, want: through("10.0.0.1_9999", raw)},
			{name: "connection", call: connection, want: through("10.0.0.1_9999", raw)},
		}},
		"TCP, then another": {[]claimant{{"raw", "TCP", ""}, {"web", "TCP", ""}}, []expectation{
			{name: "connection", call: connection, want: to(raw)},
		}},
		"anything, then HTTP": {[]claimant{{"raw", "", ""}, {"web", "HTTP", ""}}, []expectation{
			{name: "request", call: request, want: to(web)},
			{name: "connection", call: connection, want: to(raw)},
		}},
		"HTTP, then anything": {[]claimant{{"web", "HTTP", ""}, {"raw", "", ""}}, []expectation{
			{name: "request", call: request, want: to(web)},
			{name: "connection", call: connection, want: to(passthrough), differs: differs(raw), why: ageAlone},
		}},
		"MYSQL, then HTTP": {[]claimant{{"raw", "MYSQL", ""}, {"web", "HTTP", ""}}, []expectation{
			{name: "request", call: request, want: to(raw)},
			{name: "connection", call: connection, want: to(raw)},
		}},
		"HTTP, then MYSQL": {[]claimant{{"web", "HTTP", ""}, {"raw", "MYSQL", ""}}, []expectation{
			{name: "request", call: request, want: to(web)},
			{name: "connection", call: connection, want: to(passthrough)},
		}},
		"MONGO, then anything": {[]claimant{{"raw", "MONGO", ""}, {"web", "", ""}}, []expectation{
			{name: "request", call: request, want: to(raw)},
			{name: "connection", call: connection, want: to(raw)},
		}},
		"MONGO, then TLS": {[]claimant{{"raw", "MONGO", ""}, {"web", "TLS", ""}}, []expectation{
			{name: "connection", call: connection, want: to(raw)},
			{name: "handshake", call: handshake("10.0.0.1", "web"), want: to(raw)},
		}},
		"TLS, then MYSQL": {[]claimant{{"web", "TLS", ""}, {"raw", "MYSQL", ""}}, []expectation{
			{name: "connection", call: connection, want: to(passthrough)},
			{name: "handshake", call: handshake("10.0.0.1", "web"), want: to(web)},
		}},
		"MYSQL, then TCP of a block": {[]claimant{{"raw", "MYSQL", ""}, {"web", "TCP", "10.0.0.0/24"}}, []expectation{
			{name: "in the block", call: connection, want: to(raw), differs: differs(web), why: quiet},
			{name: "elsewhere", call: at("10.0.9.9"), want: to(raw)},
		}},
		"HTTP at an address, then TCP": {[]claimant{{"web", "HTTP", "10.0.0.1"}, {"raw", "TCP", "10.0.0.1"}}, []expectation{
			{name: "request", call: request, want: through("10.0.0.1_9999", raw), differs: differs(web), why: owned},
			{name: "connection", call: connection, want: through("10.0.0.1_9999", raw), differs: differs(passthrough), why: owned},
		}},
		"TCP at an address, then HTTP": {[]claimant{{"raw", "TCP", "10.0.0.1"}, {"web", "HTTP", "10.0.0.1"}}, []expectation{
			{name: "request", call: request, want: through("10.0.0.1_9999", raw)},
			{name: "connection", call: connection, want: through("10.0.0.1_9999", raw)},
		}},
		"TCP of a block, then HTTP": {[]claimant{{"raw", "TCP", "10.0.0.0/24"}, {"web", "HTTP", ""}}, []expectation{
			{name: "request", call: request, want: to(raw), differs: differs(web), why: named},
			{name: "connection", call: connection, want: to(raw)},
		}},
		"TLS, then TCP": {[]claimant{{"web", "TLS", ""}, {"raw", "TCP", ""}}, []expectation{
			{name: "connection", call: connection, want: to(raw)},
			{name: "handshake", call: handshake("10.0.0.1", "web"), want: to(web)},
			{name: "another handshake", call: handshake("10.0.0.1", "raw"), want: to(raw)},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			world{workload: app, entries: claimants(test.services...)}.run(t, test.calls)
		})
	}
}

// TestPrivateServicesAreNotOlder has age decide between services, whoever sees them.
func TestPrivateServicesAreNotOlder(t *testing.T) {
	t.Parallel()
	const privately = "The oldest has it. With Istio a service of the workload's namespace alone goes before all others."
	older := to(raw)
	entries := claimants(claimant{"raw", "TCP", ""}, claimant{"web", "TCP", ""})
	entries = strings.Replace(entries, "hosts: [web]", "hosts: [web]\n  exportTo: [.]", 1)
	world{workload: app, entries: entries}.run(t, []expectation{
		{name: "connection", call: connection, want: to(web), differs: &older, why: privately},
	})
}

// TestPortsOfServersThatSpeakFirst has nothing read at the well-known ports of such
// servers, if their services say no protocol.
func TestPortsOfServersThatSpeakFirst(t *testing.T) {
	t.Parallel()
	const port, cluster = 3306, "outbound|3306||db.example"
	quietly := simulation.Result{ListenerMatched: "0.0.0.0_3306", ClusterMatched: cluster}
	call := func(host string) simulation.Call {
		return simulation.Call{Port: port, Address: "10.0.0.1", Protocol: simulation.HTTP, HostHeader: host}
	}
	world{workload: app, entries: `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: se, namespace: default}
spec:
  hosts: [db.example]
  resolution: STATIC
  endpoints: [{address: 10.1.1.1}]
  ports: [{number: 3306, name: p}]
`}.run(t, []expectation{
		{
			name: "what looks like a request", call: call("web"), want: to(passthrough), differs: &quietly,
			why: "To find out what a connection carries is to wait for the client, and it would wait for the server.",
		},
		{name: "connection", call: simulation.Call{Port: port, Address: "10.0.0.1", Protocol: simulation.TCP}, want: to(cluster)},
	})
}
