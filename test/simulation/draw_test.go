package simulation

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"istio.io/istio/pilot/pkg/simulation"
	"pgregory.net/rapid"
)

// draft is a ServiceEntry in the making.
type draft struct {
	name       string
	age        int // in minutes
	namespace  string
	exportTo   string
	host       string
	addresses  []string
	ports      []draftPort
	resolution string
	endpoints  []string
}

type draftPort struct {
	number   int
	protocol string
}

// text is the draft as users write it.
func (d draft) text() string {
	created := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Add(-time.Duration(d.age) * time.Minute)
	var b strings.Builder
	fmt.Fprint(&b, "apiVersion: networking.istio.io/v1\nkind: ServiceEntry\n")
	fmt.Fprintf(&b, "metadata: {name: %s, namespace: %s, creationTimestamp: %q}\n", d.name, d.namespace, created.Format(time.RFC3339))
	fmt.Fprintf(&b, "spec:\n  hosts: [%q]\n  addresses: [%s]\n  exportTo: [%s]\n", d.host, strings.Join(d.addresses, ", "), d.exportTo)
	fmt.Fprintf(&b, "  resolution: %s\n  ports:\n", d.resolution)
	for i, p := range d.ports {
		fmt.Fprintf(&b, "  - {number: %d, name: p%d, protocol: %q}\n", p.number, i, p.protocol)
	}
	if len(d.endpoints) > 0 {
		fmt.Fprintf(&b, "  endpoints: [{address: %s}]\n", strings.Join(d.endpoints, "}, {address: "))
	}
	return b.String()
}

func textOf(drafts []draft) string {
	var parts []string
	for _, d := range drafts {
		parts = append(parts, d.text())
	}
	return strings.Join(parts, "---\n")
}

var (
	hosts     = []string{"a.example", "b.example", "*.example", "*.deep.example", "a.default.svc.cluster.local", "a.other.svc.cluster.local"}
	vips      = []string{"10.0.0.1", "10.0.0.2"}
	blocks    = []string{"10.0.0.0/24", "10.0.0.0/16"}
	ports     = []int{80, 81, 443, 3306}
	protocols = []string{"HTTP", "HTTP2", "GRPC", "TCP", "TLS", "HTTPS", "REDIS", "UDP", ""}
)

// drawDrafts draws some ServiceEntries of different hosts, no two of one age. With Isthmus
// a name of a namespace is that namespace's, and what the workload's own namespace has goes
// first: so no other one has such a name, and the workload's is older.
func drawDrafts(rt *rapid.T) (drafts []draft) {
	names := rapid.Permutation(hosts).Draw(rt, "hosts")
	ages := rapid.Permutation([]int{1, 2, 3, 4}).Draw(rt, "ages")
	for i := range rapid.IntRange(1, len(ages)).Draw(rt, "entries") {
		d := drawDraft(rt)
		d.name, d.age, d.host = fmt.Sprintf("e%d", i), ages[i], names[i]
		if name, in := strings.CutSuffix(d.host, ".svc.cluster.local"); in {
			_, d.namespace, _ = strings.Cut(name, ".")
			if d.namespace == app.namespace {
				d.exportTo = ""
			}
		}
		if d.namespace == app.namespace {
			d.age += len(ages)
		}
		drafts = append(drafts, d)
	}
	return drafts
}

func drawDraft(rt *rapid.T) draft {
	d := draft{
		namespace:  rapid.SampledFrom([]string{app.namespace, app.namespace, "other"}).Draw(rt, "namespace"),
		resolution: rapid.SampledFrom([]string{"NONE", "STATIC", "DNS"}).Draw(rt, "resolution"),
	}
	if d.namespace != app.namespace {
		d.exportTo = rapid.SampledFrom([]string{"", "", "."}).Draw(rt, "exportTo")
	}
	for _, number := range rapid.SliceOfNDistinct(rapid.SampledFrom(ports), 1, len(ports), rapid.ID).Draw(rt, "ports") {
		d.ports = append(d.ports, draftPort{number, rapid.SampledFrom(protocols).Draw(rt, "protocol")})
	}
	among := slices.Concat(vips, blocks)
	switch d.resolution {
	case "STATIC":
		endpoints := rapid.SampledFrom([]string{"10.1.1.1", app.addresses[0]})
		d.endpoints = rapid.SliceOfNDistinct(endpoints, 1, 2, rapid.ID).Draw(rt, "endpoints")
	case "DNS":
		among = vips // blocks would be invalid
		d.endpoints = []string{"backend.test"}
	}
	d.addresses = rapid.SliceOfNDistinct(rapid.SampledFrom(among), 0, 2, rapid.ID).Draw(rt, "addresses")
	return d
}

// drawCall draws a call of the workload or, less often, to it.
func drawCall(rt *rapid.T) simulation.Call {
	c := simulation.Call{
		CallMode: simulation.CallModeOutbound,
		Address:  rapid.SampledFrom([]string{"10.0.0.1", "10.0.0.2", "10.0.0.77", "10.0.7.7", "203.0.113.9"}).Draw(rt, "address"),
		Port:     rapid.SampledFrom(append([]int{9}, ports...)).Draw(rt, "port"),
		Protocol: rapid.SampledFrom([]simulation.Protocol{simulation.HTTP, simulation.HTTP2, simulation.TCP}).Draw(rt, "protocol"),
		TLS:      rapid.SampledFrom([]simulation.TLSMode{simulation.Plaintext, simulation.TLS, simulation.MTLS}).Draw(rt, "tls"),
		HostHeader: rapid.SampledFrom([]string{
			"a.example", "b.example", "z.example", "x.deep.example", "deep.example", "a.default.svc.cluster.local", "a.default", "a",
			"a.other", "a.other.svc", "10.0.0.1", "unknown.test", "a.example:80",
		}).Draw(rt, "host"),
	}
	if c.TLS != simulation.Plaintext {
		c.Sni, _, _ = strings.Cut(c.HostHeader, ":")
	}
	if rapid.IntRange(0, 4).Draw(rt, "inbound") == 0 {
		c.CallMode, c.Address = simulation.CallModeInbound, app.addresses[0]
	}
	return c
}
