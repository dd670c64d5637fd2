package envoy

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output/envoy/names"
	"github.com/isthmus-mesh/isthmus/output/envoy/policy"
	"github.com/isthmus-mesh/isthmus/output/envoy/reach"
)

// ruled is an order in which sources have every right there is.
var ruled = catalog.Order{
	Sources: mergeOrder, Domains: []string{"cluster.local"},
	Rights: map[string]catalog.Rights{
		mergeOrder[0]: {Dated: true},
		mergeOrder[1]: {Owns: []string{"x.com", "b.n.svc.cluster.local"}, Yields: true},
	},
}

// dated is the order of some sources for whose creation times an API server vouches.
func dated(sources ...string) catalog.Order {
	order := catalog.Order{Sources: sources, Rights: map[string]catalog.Rights{}}
	for _, name := range sources {
		order.Rights[name] = catalog.Rights{Dated: true}
	}
	return order
}

// owners puts services in the order in which they own a domain for workloads of a cluster and a namespace.
func owners(domain, cluster, namespace string, services []catalog.ServiceDefinition) []catalog.ServiceDefinition {
	asked := reach.AskedBy(cluster, domain)
	return slices.SortedFunc(slices.Values(services), func(a, b catalog.ServiceDefinition) int { return asked.Owner(namespace, a, b) })
}

// vip is a service with an address, and the time at which its registry says it was created.
type vip struct {
	source, namespace, host, protocol string
	created                           int64
}

func (v vip) event() model.Event {
	key := model.Key{Source: v.source, Namespace: v.namespace, Name: v.host}
	return model.Upsert{Record: model.Record{Ref: model.Ref{Kind: model.KindService, Key: key}, Spec: model.Service{
		Meta: model.Meta{Created: time.Unix(v.created, 0)}, Hosts: model.ListOf(v.host), Addresses: model.ListOf("10.0.0.1"),
		Resolution: model.ResolutionStatic, Ports: model.ListOf(model.Port{Number: 90, Name: "main", Protocol: v.protocol}),
	}}}
}

// An address is the owner's: of the earlier source, whatever creation times a registry declares
// and whatever came first; not of a source that yields; and in each namespace its own. Each
// service that loses it has a conflict.
func TestAddressesAreTheOwners(t *testing.T) {
	t.Parallel()
	order := catalog.Order{Sources: []string{"confined", "kube", "mcp"}, Rights: map[string]catalog.Rights{"kube": {Dated: true}, "confined": {Yields: true}}}
	for name, test := range map[string]struct {
		services     []vip
		third, own   string // the hosts that workloads of a third namespace and of "a" reach
		loser, reads string // a host, and what its conflict says
	}{
		"a declared time": {
			[]vip{{"kube", "n", "real.example", "TCP", 2e9}, {"mcp", "evil", "evil.example", "TCP", 1}},
			"real.example", "real.example",
			"evil.example", "go to real.example of namespace n in every namespace that sees both",
		},
		"a time of an API server": {
			[]vip{{"kube", "n", "real.example", "TCP", 1}, {"kube", "evil", "evil.example", "TCP", 2}},
			"real.example", "real.example",
			"evil.example", "go to real.example of namespace n in every namespace that sees both",
		},
		"a confined source": {
			[]vip{{"mcp", "n", "real.example", "TCP", 2}, {"confined", "a", "evil.example", "TCP", 1}},
			"real.example", "real.example",
			"evil.example", "go to real.example of namespace n in every namespace that sees both",
		},
		"the workloads' own namespace": {
			[]vip{{"kube", "n", "real.example", "TCP", 1}, {"mcp", "a", "own.example", "TCP", 2}},
			"real.example", "own.example",
			"real.example", "go to own.example of namespace a for workloads of that namespace, and not to real.example",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, services := range [][]vip{test.services, {test.services[1], test.services[0]}} {
				b := catalog.NewBuilderIn(order)
				for i, s := range services {
					b.Apply(uint64(i+1), []model.Event{s.event()})
				}
				w := NewWorld(b.Snapshot(), true, "root")
				for namespace, want := range map[string]string{"third": test.third, "a": test.own} {
					to := newCaller(t, w, sidecarIn(namespace), "0.0.0.0").reaches(call{"10.0.0.1", 90, "anything", ""})
					if to != names.Cluster(want, 90) {
						t.Errorf("from %s it is %s, want %s", namespace, to, want)
					}
				}
				said := strings.Join(conflictsSaid(b.Snapshot(), NewTranslator()), "\n")
				if !strings.Contains(said, test.loser+": ports[90].addresses: connections to port 90 of 10.0.0.1 "+test.reads) {
					t.Errorf("conflicts: %s", said)
				}
			}
		})
	}
}

// Another registry adds an address to a service, with its own rights and not with the rights of the first.
func TestAnAddressIsOwnedByTheRecordThatHasIt(t *testing.T) {
	t.Parallel()
	order := catalog.Order{Sources: []string{"kube", "mcp", "confined"}, Rights: map[string]catalog.Rights{"confined": {Yields: true}}}
	kube, added, owner := vip{"kube", "n", "db.example", "TCP", 1}, vip{"confined", "n", "db.example", "TCP", 1}, vip{"mcp", "m", "real.example", "TCP", 1}
	first := kube.event().(model.Upsert)
	spec := first.Record.Spec.(model.Service)
	spec.Addresses = model.ListOf("10.0.0.9")
	first.Record.Spec = spec
	b := catalog.NewBuilderIn(order)
	for revision, step := range []struct {
		event model.Event
		want  map[string]string // by address
	}{
		{first, map[string]string{"10.0.0.9": "db.example", "10.0.0.1": ""}},
		{added.event(), map[string]string{"10.0.0.9": "db.example", "10.0.0.1": "db.example"}},
		{owner.event(), map[string]string{"10.0.0.9": "db.example", "10.0.0.1": "real.example"}},
	} {
		b.Apply(uint64(revision+1), []model.Event{step.event})
		calls := newCaller(t, NewWorld(b.Snapshot(), true, "root"), sidecarIn("third"), "0.0.0.0")
		for address, want := range step.want {
			if want != "" {
				want = names.Cluster(want, 90)
			}
			if got := calls.reaches(call{address, 90, "anything", ""}); got != want {
				t.Errorf("step %d: %s is %s, want %s", revision, address, got, want)
			}
		}
	}
}

// A host may have ports of several resolutions, each in an object of its own.
func TestPortsOfSeveralResolutions(t *testing.T) {
	t.Parallel()
	of := func(name string, resolution model.Resolution, port model.Port, addresses ...string) model.Event {
		return model.Upsert{Record: model.Record{Ref: model.Ref{Kind: model.KindService, Key: model.Key{Source: "files", Namespace: "n", Name: name}}, Spec: model.Service{
			Hosts: model.ListOf("kafka.example"), Resolution: resolution, Ports: model.ListOf(port), Addresses: model.ListOf(addresses...),
		}}}
	}
	brokers := of("a-brokers", model.ResolutionNone, model.Port{Number: 9093, Name: "brokers", Protocol: "TCP"})
	api := func(addresses ...string) model.Event {
		return of("api", model.ResolutionDNS, model.Port{Number: 443, Name: "api", Protocol: "TLS"}, addresses...)
	}
	b := catalog.NewBuilder([]string{"files"})
	for revision, step := range []struct {
		events []model.Event
		api    bool // is served
	}{{[]model.Event{brokers, api()}, true}, {[]model.Event{api("10.0.0.1")}, false}, {[]model.Event{api()}, true}} {
		b.Apply(uint64(revision+1), step.events)
		calls := newCaller(t, NewWorld(b.Snapshot(), true, "root"), sidecarIn("n"), "0.0.0.0")
		if got := calls.reaches(call{"10.200.0.1", 9093, "anything", ""}); got != names.Cluster("kafka.example", 9093) {
			t.Errorf("step %d: a broker is %s", revision, got)
		}
		if got := calls.reaches(call{"10.200.0.2", 443, "hello", "kafka.example"}); (got == names.Cluster("kafka.example", 443)) != step.api {
			t.Errorf("step %d: the API is %s", revision, got)
		}
		s, _ := b.Snapshot().Service(catalog.ServiceKey{Namespace: "n", Host: "kafka.example"})
		if lost := fmt.Sprint(s.Conflicts); step.api != (len(s.Conflicts) == 0) || !step.api && !strings.Contains(lost, "nobody is served its endpoints at port 443") {
			t.Errorf("step %d: conflicts: %s", revision, lost)
		}
	}
}

// A request in a block of addresses goes to the service that it names, and to that of the block
// if it names none. A workload that writes the header of blocks itself reaches services alone.
func TestBlocksLeaveRequestsToWhomTheyName(t *testing.T) {
	t.Parallel()
	snapshot := snapshotOfServices(
		serviceSpec{host: "block.example", number: 90, protocol: "TCP", addresses: []string{"10.1.0.0/16"}},
		serviceSpec{host: "web.example", number: 90, protocol: "HTTP", addresses: []string{"10.1.2.3"}},
		serviceSpec{host: "tls.example", number: 90, protocol: "TLS"},
	)
	settings := NewTranslator()
	settings.Outbound = policy.RegistryOutbound
	w := settings.Begin(nil)(snapshot, catalog.Change{}, true, "root").World
	calls := newCaller(t, w, sidecarIn("third"), "0.0.0.0")
	for is, want := range map[call]string{
		{"10.1.2.3", 90, "GET", "web.example"}:       "web.example",
		{"10.1.9.9", 90, "GET", "web.example"}:       "web.example",
		{"10.1.9.9", 90, "GET", "unknown.example"}:   "block.example",
		{"10.1.9.9", 90, "hello", "tls.example"}:     "tls.example",
		{"10.1.9.9", 90, "hello", "other.example"}:   "block.example",
		{"10.1.9.9", 90, "anything", ""}:             "block.example",
		{"10.200.0.1", 90, "hello", "tls.example"}:   "tls.example",
		{"10.200.0.1", 90, "GET", "web.example"}:     "web.example",
		{"10.200.0.1", 90, "GET", "unknown.example"}: "",
		{"10.200.0.1", 90, "anything", ""}:           names.BlackHole,
	} {
		if want != "" && want != names.BlackHole {
			want = names.Cluster(want, 90)
		}
		if got := calls.reaches(is); got != want {
			t.Errorf("%v reaches %q, want %q", is, got, want)
		}
	}
	routes := calls.routesNamed("90")
	for _, forged := range []string{names.Passthrough, names.BlackHole, "inbound|80||"} {
		if to := routed(routes, "unknown.example", forged); to != "" {
			t.Errorf("a forged header leads to %s", to)
		}
	}
}
