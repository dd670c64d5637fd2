package simulation

import (
	"testing"

	"istio.io/istio/pilot/pkg/simulation"
)

// ownPorts is a service with the app's workload behind it.
const ownPorts = `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: se, namespace: default}
spec:
  hosts: [foo.bar]
  endpoints: [{address: 10.9.9.9}]
  location: MESH_INTERNAL
  resolution: STATIC
  ports:
  - {name: tcp, number: 70, protocol: TCP}
  - {name: http, number: 80, protocol: HTTP}
  - {name: auto, number: 81}
  - {name: udp, number: 90, protocol: UDP}
`

func inbound(port int, protocol simulation.Protocol, tls simulation.TLSMode) simulation.Call {
	return simulation.Call{Port: port, Protocol: protocol, TLS: tls, CallMode: simulation.CallModeInbound}
}

const (
	inboundPassthrough = "InboundPassthroughCluster"
	handshakeToHTTP    = "A handshake is not a request. It goes on to the workload, which may end it itself."
	udpIsNoTCP         = "A port for UDP says nothing of connections."
	mayBeReadFirst     = "At this port servers speak first, whoever serves it, and would wait for what the inspectors read."
)

// TestInbound has the facts of TestInbound of Istio, without mutual TLS.
func TestInbound(t *testing.T) {
	t.Parallel()
	var list []expectation
	add := func(name string, call simulation.Call, want simulation.Result) *expectation {
		list = append(list, expectation{name: name, call: call, want: want})
		return &list[len(list)-1]
	}
	differ := func(e *expectation, result simulation.Result, why string) { e.differs, e.why = &result, why }
	for _, protocol := range []simulation.Protocol{simulation.TCP, simulation.HTTP, simulation.HTTP2} {
		for _, tls := range []simulation.TLSMode{simulation.Plaintext, simulation.TLS, simulation.MTLS} {
			carries := string(protocol) + " " + string(tls) + " to "
			add(carries+"tcp", inbound(70, protocol, tls), simulation.Result{FilterChainMatched: "0.0.0.0_70", ClusterMatched: "inbound|70||"})
			add(carries+"auto", inbound(81, protocol, tls), simulation.Result{FilterChainMatched: "0.0.0.0_81", ClusterMatched: "inbound|81||"})
			add(carries+"the listener itself", inbound(15006, protocol, tls), to(blackHole))
			add(carries+"another", inbound(82, protocol, tls), to(inboundPassthrough))

			e := add(carries+"http", inbound(80, protocol, tls), simulation.Result{VirtualHostMatched: "inbound|http|80", ClusterMatched: "inbound|80||"})
			switch {
			case tls != simulation.Plaintext:
				e.want = simulation.Result{Error: simulation.ErrProtocolError}
				differ(e, to("inbound|80||"), handshakeToHTTP)
			case protocol == simulation.TCP:
				e.want = simulation.Result{Error: simulation.ErrProtocolError}
			}
			e = add(carries+"udp", inbound(90, protocol, tls), to("inbound|90||"))
			differ(e, to(inboundPassthrough), udpIsNoTCP)
		}
	}
	for _, port := range []int{25, 53, 3306, 27017} {
		e := add("requests to a port of servers that speak first", inbound(port, simulation.HTTP, simulation.Plaintext),
			simulation.Result{FilterChainMatched: "virtualInbound-catchall-http", ClusterMatched: inboundPassthrough})
		differ(e, simulation.Result{FilterChainMatched: "virtualInbound", ClusterMatched: inboundPassthrough}, mayBeReadFirst)
	}
	add("requests", inbound(82, simulation.HTTP, simulation.Plaintext), simulation.Result{FilterChainMatched: "virtualInbound-catchall-http"})
	add("connections", inbound(82, simulation.TCP, simulation.Plaintext), simulation.Result{FilterChainMatched: "virtualInbound"})
	world{entries: ownPorts, workload: app}.run(t, list)
}

// TestAServiceIsNotExportedToItsWorkload has the workload served all the same: exportTo
// is about callers.
func TestAServiceIsNotExportedToItsWorkload(t *testing.T) {
	t.Parallel()
	ofTheWorkload := simulation.Result{VirtualHostMatched: "inbound|http|8080", ClusterMatched: "inbound|8080||"}
	world{workload: app, entries: `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: se, namespace: default}
spec:
  hosts: [foo.bar]
  exportTo: [other]
  endpoints: [{address: 10.9.9.9, ports: {http: 8080}}]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [{name: http, number: 80, protocol: HTTP}]
`}.run(t, []expectation{
		{
			name: "target port", call: inbound(8080, simulation.HTTP, simulation.Plaintext),
			want:    simulation.Result{VirtualHostMatched: "inbound|http|80", ClusterMatched: "inbound|8080||"},
			differs: &ofTheWorkload, why: "The virtual host is named after the port of the workload, which may be that of several services.",
		},
		{name: "service port", call: inbound(80, simulation.HTTP, simulation.Plaintext), want: to(inboundPassthrough)},
		{name: "caller", call: simulation.Call{Port: 80, Protocol: simulation.HTTP, HostHeader: "foo.bar"}, want: to(passthrough)},
	})
}

// TestCallsOfTheListenersThemselves has the facts of TestLoop of Istio.
func TestCallsOfTheListenersThemselves(t *testing.T) {
	t.Parallel()
	world{workload: app, entries: ownPorts}.run(t, []expectation{
		{name: "outbound", call: simulation.Call{Port: 15001, Protocol: simulation.TCP}, want: to(blackHole)},
		{
			name: "inbound", call: simulation.Call{Port: 15006, Protocol: simulation.TCP}, want: to(blackHole),
		},
	})
}
