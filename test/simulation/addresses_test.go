package simulation

import (
	"fmt"
	"testing"

	"istio.io/istio/pilot/pkg/simulation"
)

// oneOfTwo are two services of port 9999, the first of which is the older.
func oneOfTwo(protocol, first, second string) string {
	const entry = `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: se%d, namespace: default, creationTimestamp: "2026-01-0%dT00:00:00Z"}
spec:
  hosts: [blah%d.somedomain]
  addresses: [%s]
  ports: [{number: 9999, name: port-9999, protocol: %s}]
---`
	return fmt.Sprintf(entry, 1, 1, 1, first, protocol) + fmt.Sprintf(entry, 2, 2, 2, second, protocol)
}

// dual is a workload with addresses of both families.
var dual = workload{namespace: "default", addresses: []string{"127.0.0.1", "1234::1234"}}

const (
	one = "outbound|9999||blah1.somedomain"
	two = "outbound|9999||blah2.somedomain"
)

func at(address string) simulation.Call {
	return simulation.Call{Port: 9999, Address: address, Protocol: simulation.TCP}
}

// TestAddressesOfServices has the facts of TestServiceEntry of Istio.
func TestAddressesOfServices(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		world
		calls []expectation
	}{
		"equal blocks": {
			world{workload: dual, entries: oneOfTwo("TCP", "1234:1f1:123:123:f816:3eff:feb8:2287/32", "1234:1f1:123:123:f816:3eff:febf:57ce/32")},
			[]expectation{{name: "the older", call: at("1234:1f1:1:1:1:1:1:1"), want: through("0.0.0.0_9999", one)}},
		},
		"a block in another": {
			world{workload: dual, entries: oneOfTwo("TCP", "1234:1f1:123:123:f816:3eff:feb8:2287/16", "1234:1f1:123:123:f816:3eff:febf:57ce/32")},
			[]expectation{
				{name: "the smaller", call: at("1234:1f1:123:123:f816:3eff:febf:57ce"), want: through("0.0.0.0_9999", two)},
				{name: "the larger", call: at("1234::1"), want: through("0.0.0.0_9999", one)},
			},
		},
		"a shared address": {
			world{workload: dual, entries: oneOfTwo("TCP", "1.1.1.1", "2.2.2.2, 1.1.1.1")},
			[]expectation{
				{name: "of one", call: at("2.2.2.2"), want: through("2.2.2.2_9999", two)},
				{name: "of both", call: at("1.1.1.1"), want: through("1.1.1.1_9999", one)},
				{name: "of none", call: at("3.3.3.3"), want: through("virtualOutbound", passthrough)},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test.run(t, test.calls)
		})
	}
}

func handshake(address, host string) simulation.Call {
	return simulation.Call{Port: 9999, Address: address, TLS: simulation.TLS, Sni: host, Protocol: simulation.TCP}
}

// TestHandshakesOfServices has names in handshakes keep services apart.
func TestHandshakesOfServices(t *testing.T) {
	t.Parallel()
	differs := func(cluster string) *simulation.Result { r := to(cluster); return &r }
	const (
		nameDecides = "Who names a host in the handshake means it, wherever it is. With Istio the address has to fit too (istio/istio#52235)."
		anywhere    = "203.0.113.9"
	)
	for name, test := range map[string]struct {
		first, second string
		calls         []expectation
	}{
		"no addresses": {"", "", []expectation{
			{name: "first", call: handshake(anywhere, "blah1.somedomain"), want: to(one)},
			{name: "second", call: handshake(anywhere, "blah2.somedomain"), want: to(two)},
			{name: "another", call: handshake(anywhere, "blah3.somedomain"), want: to(passthrough)},
			{name: "none", call: handshake(anywhere, ""), want: to(passthrough)},
		}},
		"an address each": {"10.0.0.1", "10.0.0.2", []expectation{
			{name: "first", call: handshake("10.0.0.1", "blah1.somedomain"), want: through("10.0.0.1_9999", one)},
			{name: "of the other", call: handshake("10.0.0.1", "blah2.somedomain"), want: through("10.0.0.1_9999", one)},
			{name: "elsewhere", call: handshake(anywhere, "blah1.somedomain"), want: through("virtualOutbound", passthrough)},
		}},
		"one address": {"10.0.0.1", "10.0.0.1", []expectation{
			{name: "first", call: handshake("10.0.0.1", "blah1.somedomain"), want: through("10.0.0.1_9999", one)},
			{
				name: "second", call: handshake("10.0.0.1", "blah2.somedomain"), want: through("10.0.0.1_9999", one),
				differs: differs(two), why: "Services that share an address are kept apart by the host in the handshake.",
			},
		}},
		"blocks": {"10.1.0.0/16", "10.1.2.0/24", []expectation{
			{name: "the smaller", call: handshake("10.1.2.3", "blah2.somedomain"), want: to(two)},
			{name: "the larger", call: handshake("10.1.9.9", "blah1.somedomain"), want: to(one)},
			{name: "first in second's", call: handshake("10.1.2.3", "blah1.somedomain"), want: to(passthrough), differs: differs(one), why: nameDecides},
			{name: "second in first's", call: handshake("10.1.9.9", "blah2.somedomain"), want: to(passthrough), differs: differs(two), why: nameDecides},
			{name: "elsewhere", call: handshake(anywhere, "blah2.somedomain"), want: to(passthrough), differs: differs(two), why: nameDecides},
			{name: "another", call: handshake("10.1.2.3", "blah3.somedomain"), want: to(passthrough)},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			world{workload: app, entries: oneOfTwo("TLS", test.first, test.second)}.run(t, test.calls)
		})
	}
}
