package simulation

import (
	"testing"

	"istio.io/istio/pilot/pkg/simulation"
)

// namedServices are hosts of every form, some of them of another namespace.
const namedServices = `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: own, namespace: default}
spec:
  hosts: [a.default.svc.cluster.local]
  addresses: [10.0.0.1]
  resolution: STATIC
  endpoints: [{address: 10.1.1.1}]
  ports: [{number: 80, name: http, protocol: HTTP}]
---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: theirs, namespace: other}
spec:
  hosts: [b.other.svc.cluster.local]
  addresses: [10.0.0.2]
  resolution: STATIC
  endpoints: [{address: 10.1.1.1}]
  ports: [{number: 80, name: http, protocol: HTTP}]
---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: private, namespace: other}
spec:
  hosts: [private.example, 'x.deep.example']
  exportTo: [.]
  resolution: STATIC
  endpoints: [{address: 10.1.1.1}]
  ports: [{number: 80, name: http, protocol: HTTP}]
---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: given, namespace: other}
spec:
  hosts: [given.example]
  exportTo: [default]
  resolution: STATIC
  endpoints: [{address: 10.1.1.1}]
  ports: [{number: 80, name: http, protocol: HTTP}]
---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: wild, namespace: default}
spec:
  hosts: ['*.example', '*.deep.example']
  resolution: STATIC
  endpoints: [{address: 10.1.1.1}]
  ports: [{number: 80, name: http, protocol: HTTP}]
`

// TestNamesInRequests has services called by each of their names.
func TestNamesInRequests(t *testing.T) {
	t.Parallel()
	const (
		a       = "outbound|80||a.default.svc.cluster.local"
		b       = "outbound|80||b.other.svc.cluster.local"
		wild    = "outbound|80||*.example"
		deep    = "outbound|80||*.deep.example"
		given   = "outbound|80||given.example"
		nothing = passthrough
	)
	var list []expectation
	for host, cluster := range map[string]string{
		"a.default.svc.cluster.local": a, "a.default.svc.cluster.local.": a, "a.default.svc": a, "a.default": a, "a": a, "10.0.0.1": a,
		"a:80": a, "a.default:8080": a, "10.0.0.1:80": a,
		"b.other.svc.cluster.local": b, "b.other.svc": b, "b.other": b, "10.0.0.2": b,
		"b": nothing, "b.default": nothing, "10.0.0.3": nothing, "unknown": nothing, "example": nothing, "a.cluster.local": nothing,
		"c.example": wild, "c.d.example": wild, "private.example": wild,
		"x.deep.example": deep, "y.z.deep.example": deep, "deep.example": wild,
		"given.example": given, "given.example:80": given,
	} {
		list = append(list, expectation{
			name: host, want: through("0.0.0.0_80", cluster),
			call: simulation.Call{Port: 80, Address: "10.0.0.1", Protocol: simulation.HTTP, HostHeader: host},
		})
	}
	world{workload: app, entries: namedServices}.run(t, list)
}

// TestAllAddressesOfAService has a service reached at each of its addresses. With Istio
// requests that name an address reach it at one of them alone, and routes of a single
// service have no virtual host.
func TestAllAddressesOfAService(t *testing.T) {
	t.Parallel()
	call := func(port int, address string, protocol simulation.Protocol) simulation.Call {
		return simulation.Call{Port: port, Address: address, HostHeader: address, Protocol: protocol}
	}
	anything := through("10.0.0.2_82", "outbound|82||se")
	w := world{workload: app, entries: `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: se, namespace: default}
spec:
  hosts: [se]
  addresses: [10.0.0.1, 10.0.0.2]
  resolution: STATIC
  endpoints: [{address: 10.1.1.1}]
  ports: [{number: 80, name: http, protocol: HTTP}, {number: 81, name: tcp, protocol: TCP}, {number: 82, name: auto}]
`}
	w.run(t, []expectation{
		{name: "connections to the first", call: call(81, "10.0.0.1", simulation.TCP), want: through("10.0.0.1_81", "outbound|81||se")},
		{name: "connections to the second", call: call(81, "10.0.0.2", simulation.TCP), want: through("10.0.0.2_81", "outbound|81||se")},
		{
			name: "requests to a port without a protocol", call: call(82, "10.0.0.2", simulation.HTTP),
			want: simulation.Result{Error: simulation.ErrNoVirtualHost}, differs: &anything,
			why: "What comes to an address of a service is for it, however many it has.",
		},
	})
	for side, test := range map[string]struct {
		*simulation.Simulation
		want int
	}{"Istio": {w.istio(t), 1}, "Isthmus": {w.isthmus(t), 2}} {
		reached := 0
		for _, address := range []string{"10.0.0.1", "10.0.0.2"} {
			if test.Run(call(80, address, simulation.HTTP)).ClusterMatched == "outbound|80||se" {
				reached++
			}
		}
		if reached != test.want {
			t.Errorf("%s: requests to %d of two addresses reach the service", side, reached)
		}
	}
}
