package simulation

import (
	"fmt"
	"strings"
	"testing"

	"istio.io/istio/pilot/pkg/simulation"
)

// everyProtocol is a service with a port of each protocol. Where it says %s, it may
// have addresses.
const everyProtocol = `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: se, namespace: default}
spec:
  hosts: [istio.io]
  addresses: [%s]
  location: MESH_EXTERNAL
  resolution: DNS
  ports:
  - {number: 80, name: http, protocol: HTTP}
  - {number: 81, name: auto}
  - {number: 82, name: tcp, protocol: TCP}
  - {number: 83, name: tls, protocol: TLS}
  - {number: 84, name: https, protocol: HTTPS}
  - {number: 85, name: grpc, protocol: GRPC}
  - {number: 86, name: h2, protocol: HTTP2}
`

const firstPort, lastPort = 80, 86

func requestsOnly(port int) bool { return port == 80 || port == 85 || port == 86 }

// kindsOfCalls are calls of every kind, to an address and a host.
func kindsOfCalls(address, host string, port int) (calls []simulation.Call) {
	for _, c := range []simulation.Call{
		{Protocol: simulation.HTTP, TLS: simulation.Plaintext},
		{Protocol: simulation.HTTP, TLS: simulation.TLS},
		{Protocol: simulation.HTTP, TLS: simulation.TLS, Alpn: "http/1.1"},
		{Protocol: simulation.HTTP, TLS: simulation.MTLS},
		{Protocol: simulation.HTTP2, TLS: simulation.Plaintext},
		{Protocol: simulation.HTTP2, TLS: simulation.TLS},
		{Protocol: simulation.TCP, TLS: simulation.Plaintext},
		{Protocol: simulation.TCP, TLS: simulation.TLS},
		{Protocol: simulation.TCP, TLS: simulation.MTLS},
	} {
		c.Address, c.HostHeader, c.Port = address, host, port
		if c.TLS != simulation.Plaintext {
			c.Sni = host
		}
		calls = append(calls, c)
	}
	return calls
}

func nameOf(c simulation.Call) string {
	return strings.TrimSuffix(fmt.Sprintf("%s %s %s:%d %s %s", c.Protocol, c.TLS, c.Address, c.Port, c.HostHeader, c.Alpn), " ")
}

// policies are those for what belongs to no service, and where that leads.
var policies = map[string]struct {
	registry bool
	cluster  string
}{
	"allow":    {false, passthrough},
	"registry": {true, blackHole},
}

// TestTrafficOfNoService has the facts of TestPassthroughTraffic of Istio.
func TestTrafficOfNoService(t *testing.T) {
	t.Parallel()
	for name, policy := range policies {
		for _, vip := range []string{"", "1.2.3.4"} {
			t.Run(name+" "+vip, func(t *testing.T) {
				t.Parallel()
				var list []expectation
				for port := firstPort; port <= lastPort; port++ {
					for _, call := range kindsOfCalls("1.3.3.7", "foo", port) {
						list = append(list, expectation{name: nameOf(call), call: call, want: ofNoService(call, policy.registry, policy.cluster, vip != "")})
					}
				}
				world{entries: fmt.Sprintf(everyProtocol, vip), workload: app, registry: policy.registry}.run(t, list)
			})
		}
	}
}

// ofNoService is what becomes of a call to another host, at another address than that
// of the service if it has one.
func ofNoService(call simulation.Call, registry bool, cluster string, vip bool) simulation.Result {
	routed := requestsOnly(call.Port) || call.Port == 81 && !vip
	switch {
	case !vip && (call.Port == 82 || call.Port == 81 && !call.IsHTTP()):
		return to(fmt.Sprintf("outbound|%d||istio.io", call.Port)) // it takes all connections
	case registry && call.IsHTTP() && routed:
		return simulation.Result{VirtualHostMatched: "block_all"} // which answers 502
	default:
		return to(cluster)
	}
}

// TestTrafficOfAService calls the service itself: at its address, or anywhere if it has
// none.
func TestTrafficOfAService(t *testing.T) {
	t.Parallel()
	for _, vip := range []string{"", "1.2.3.4"} {
		t.Run(vip, func(t *testing.T) {
			t.Parallel()
			var list []expectation
			for port := firstPort; port <= lastPort; port++ {
				for _, host := range []string{"istio.io", "ISTIO.io.", "1.2.3.4", "foo"} {
					for _, call := range kindsOfCalls("1.2.3.4", host, port) {
						list = append(list, expectation{name: nameOf(call), call: call, want: ofService(call, vip)})
					}
				}
			}
			world{entries: fmt.Sprintf(everyProtocol, vip), workload: app}.run(t, list)
		})
	}
}

// ofService is what becomes of a call to the service, at its address if it has one.
func ofService(call simulation.Call, vip string) simulation.Result {
	cluster := fmt.Sprintf("outbound|%d||istio.io", call.Port)
	named := call.HostHeader == "istio.io" || call.HostHeader == vip
	switch {
	case requestsOnly(call.Port) && call.IsHTTP() && named:
		return through(fmt.Sprintf("0.0.0.0_%d", call.Port), cluster)
	case requestsOnly(call.Port):
		return to(passthrough)
	case vip != "": // whatever it carries, and whatever host it names
		return through(fmt.Sprintf("%s_%d", vip, call.Port), cluster)
	case call.Port == 81 && call.IsHTTP() && !named:
		return to(passthrough)
	case (call.Port == 83 || call.Port == 84) && (call.TLS == simulation.Plaintext || call.HostHeader != "istio.io"):
		return to(passthrough)
	default:
		return through(fmt.Sprintf("0.0.0.0_%d", call.Port), cluster)
	}
}
