package supervise_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source"
	"github.com/isthmus-mesh/isthmus/source/supervise"
)

// confined runs test with a supervisor of a source that is confined.
func confined(t *testing.T, only source.Only, test func(*bridge)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(connectWith(t, newLedger(), supervise.Config{Only: only})) })
}

func hosts(o model.Object, hosts ...string) model.Object {
	o.Record.Spec = model.Service{Hosts: model.ListOf(hosts...)}
	return o
}

func of(kind model.Kind, name string, spec model.Spec) model.Object {
	return model.Object{Record: model.Record{Ref: ref(kind, name), Place: "f", Spec: spec}}
}

// rejected checks which objects stand rejected, and that each reason says why.
func (b *bridge) rejected(want map[string]string) {
	b.t.Helper()
	st := b.Status()
	for _, f := range st.Rejected {
		if reason, ok := want[f.Ref.Name]; !ok || !strings.Contains(f.Reason, reason) {
			b.t.Errorf("rejected is %+v", f)
		}
	}
	if len(st.Rejected) != len(want) {
		b.t.Errorf("%d are rejected, want %d", len(st.Rejected), len(want))
	}
}

// What lies outside, be it by one of its hosts, is rejected whole and visibly, in a
// listing as in a change; the source is live all the same.
func TestASourceKeepsToItsHosts(t *testing.T) {
	confined(t, source.Only{Hosts: []string{"*.example.com", "api.shop"}}, func(b *bridge) {
		b.list(
			service("in", "f", "1"), hosts(service("named", "f", "2"), "API.shop"), hosts(service("out", "f", "3"), "bank.internal"),
			hosts(service("partly", "f", "4"), "a.example.com", "bank.internal"), hosts(service("wide", "f"), "*.com"),
			of(model.KindScope, "sidecar", model.Scope{}), of("Policy", "policy", model.OpaqueOf([]byte("{}"))),
			of(model.KindConsumption, "mine", model.Consumption{Consumer: model.ServiceName{Host: "a.example.com"}}),
			of(model.KindConsumption, "theirs", model.Consumption{Consumer: model.ServiceName{Host: "bank.internal"}}),
		)
		want := map[string]string{
			"out": `"bank.internal" is none of them`, "partly": `"bank.internal" is none of them`, "wide": `"*.com" is none of them`, "theirs": "none of them",
			"sidecar": "says nothing of a Scope: name its namespaces in only.namespaces", "policy": "says nothing of a Policy",
		}
		b.rejected(want)
		b.holds("Consumption ns/mine in f", "Endpoint ns/in/1", "Endpoint ns/named/2", "Service ns/in in f", "Service ns/named in f")
		b.inState(source.StateLive)

		b.change(model.Change{Upserts: []model.Object{hosts(service("new", "f", "9"), "bank.internal")}})
		want["new"] = "none of them"
		b.rejected(want)
		endpoint := model.Record{Ref: ref(model.KindEndpoint, "out/3"), Owner: ref(model.KindService, "out"), Spec: model.Endpoint{Address: "3"}}
		b.change(model.Change{OwnedUpserts: []model.Record{endpoint}})
		b.holds("Consumption ns/mine in f", "Endpoint ns/in/1", "Endpoint ns/named/2", "Service ns/in in f", "Service ns/named in f")
	})
}

func TestASourceKeepsToItsNamespaces(t *testing.T) {
	confined(t, source.Only{Hosts: []string{"*.example.com"}, Namespaces: []string{"ns"}}, func(b *bridge) {
		elsewhere := func(o model.Object) model.Object {
			o.Record.Namespace = "other"
			return o
		}
		b.list(service("in", "f"), elsewhere(service("out", "f")), elsewhere(workload("vm", "f")),
			of(model.KindScope, "sidecar", model.Scope{}), elsewhere(of(model.KindScope, "default", model.Scope{})), of("Policy", "policy", model.OpaqueOf([]byte("{}"))))
		const reason = `confined to the namespaces ns by its only.namespaces, and this is in "other"`
		b.rejected(map[string]string{"out": reason, "vm": reason, "default": reason})
		b.holds("Policy ns/policy in f", "Scope ns/sidecar in f", "Service ns/in in f")
	})
}

// An object that moves outside is rejected as any other: what it was stays, as stale.
func TestWhatMovesOutsideIsRejected(t *testing.T) {
	confined(t, source.Only{Hosts: []string{"*.example.com"}}, func(b *bridge) {
		b.list(service("a", "f", "1"))
		b.list(hosts(service("a", "f", "1"), "bank.internal"))
		rec, _ := b.store.memory.Get(stored(model.KindService, "a"))
		if spec, _ := rec.Spec.(model.Service); spec.Hosts.At(0) != "a.example.com" || !strings.Contains(rec.Status.Stale, "bank.internal") {
			t.Errorf("stored is %+v", rec)
		}
	})
}

// What a narrower configuration excludes goes at once, for an operator has said so: it is
// held for no drop, however much it is, and waits for no listing. Nor is it missed by
// others who have it.
func TestWhatIsExcludedLaterGoesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLedger()
		ctx, cancel := context.WithCancel(t.Context())
		before := supervise.New("reg", listsOnce(append(fleet(0, 20, 5), workload("vm", "f"))), l, supervise.Config{Kind: "fake"})
		ended := make(chan error)
		go func() { ended <- before.Run(ctx) }()
		synctest.Wait()
		cancel()
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		b := connectWith(t, l, supervise.Config{Only: source.Only{Hosts: []string{"s00.example.com"}}})
		names := []string{"Endpoint ns/s00/10.0.0.0", "Endpoint ns/s00/10.0.0.1", "Endpoint ns/s00/10.0.0.2", "Endpoint ns/s00/10.0.0.3", "Endpoint ns/s00/10.0.0.4", "Service ns/s00 in f00", "Workload ns/vm in f"}
		b.holds(names...)
		if only := only(t, b, "vm"); only != "[s00.example.com]" {
			t.Errorf("the workload may serve %s", only)
		}
		b.offer(kept("s01", 30))
		b.list(append(fleet(0, 20, 5), workload("vm", "f"))...)
		b.holds(names...)
		b.inState(source.StateLive)
		if st := b.Status(); len(st.Rejected) != 19 || st.Held != 0 || len(b.decided().Held) != 0 {
			t.Errorf("%d are rejected and %d held; %+v", len(st.Rejected), st.Held, b.decided())
		}
	})
}

// Workloads say which hosts they may serve, as their source is confined.
func TestWorkloadsAreConfined(t *testing.T) {
	confined(t, source.Only{Hosts: []string{"*.example.com"}}, func(b *bridge) {
		b.list(workload("vm", "f"))
		if only := only(t, b, "vm"); only != "[*.example.com]" {
			t.Errorf("the workload may serve %s", only)
		}
	})
}

func only(t *testing.T, b *bridge, name string) string {
	t.Helper()
	rec, _ := b.store.memory.Get(stored(model.KindWorkload, name))
	spec, _ := rec.Spec.(model.Workload)
	return fmt.Sprint(spec.Only.Slice())
}

// listsOnce is a source that lists some objects and nothing more.
type listsOnce []model.Object

func (l listsOnce) Run(ctx context.Context, sink source.Sink) error {
	if err := sink.Replace(ctx, model.Listing{Objects: l}); err != nil {
		return err
	}
	<-ctx.Done()
	return ctx.Err()
}

func at(o model.Object, addresses ...string) model.Object {
	spec, _ := o.Record.Spec.(model.Service)
	spec.Addresses = model.ListOf(addresses...)
	o.Record.Spec = spec
	return o
}

// A service that is outside by one of its addresses is rejected whole. Without one of them
// it would have others, such as all of its port.
func TestASourceKeepsToItsAddresses(t *testing.T) {
	confined(t, source.Only{Addresses: []string{"10.0.0.0/8", "fd00::/16", "192.0.2.1"}}, func(b *bridge) {
		b.list(
			at(service("in", "f", "1"), "10.1.2.3", "10.0.0.0/8", "fd00:1::/32", "::ffff:10.0.0.1", "192.0.2.1/32"), service("without", "f"),
			at(service("partly", "f", "4"), "10.1.2.3", "192.0.2.2"), at(service("wider", "f"), "10.0.0.0/7"), at(service("other", "f"), "fe80::1"),
			of(model.KindScope, "sidecar", model.Scope{}),
		)
		b.rejected(map[string]string{"partly": "confined to the addresses 10.0.0.0/8, fd00::/16, 192.0.2.1 by its only.addresses, and the service has 192.0.2.2", "wider": "10.0.0.0/7", "other": "fe80::1"})
		b.holds("Endpoint ns/in/1", "Scope ns/sidecar in f", "Service ns/in in f", "Service ns/without in f")
	})
}

// Blocks of addresses that are too wide reject a service of any source, unless only.addresses
// contains them.
func TestWideBlocksAreRejected(t *testing.T) {
	confined(t, source.Only{}, func(b *bridge) {
		b.list(
			at(service("in", "f", "1"), "10.1.0.0/16", "fd00::/64", "::ffff:10.1.0.0/112"),
			at(service("wide", "f", "2"), "10.1.2.3", "10.0.0.0/15"), at(service("all", "f"), "0.0.0.0/0"), at(service("wide6", "f"), "fd00::/63"), at(service("mapped", "f"), "::ffff:10.0.0.0/111"),
		)
		const reason = "is wider than /16, and /64 for IPv6"
		b.rejected(map[string]string{"wide": reason, "all": reason, "wide6": reason, "mapped": reason})
		b.holds("Endpoint ns/in/1", "Service ns/in in f")
		b.list(at(service("in", "f", "1"), "10.0.0.0/8")) // its last good version stays
		rec, _ := b.store.memory.Get(stored(model.KindService, "in"))
		if spec, _ := rec.Spec.(model.Service); spec.Addresses.At(0) != "10.1.0.0/16" || rec.Status.Stale == "" {
			t.Errorf("stored is %+v", rec)
		}
	})
}

func TestBlocksAreValidated(t *testing.T) {
	for text, valid := range map[string]bool{
		"10.0.0.0/8": true, "10.0.0.1": true, "fd00::/64": true, "0.0.0.0/0": true, "::1": true,
		"": false, "10.0.0.1/8": false, "10.0.0.0/33": false, "shop": false, "fe80::1%eth0": false, "10.0.0": false,
	} {
		err := source.Only{Addresses: []string{"10.0.0.1", text}}.Validate()
		if (err == nil) != valid || !valid && !strings.HasPrefix(err.Error(), "addresses[1]: ") {
			t.Errorf("block %q: %v", text, err)
		}
	}
}

func TestPatternsAreValidated(t *testing.T) {
	for pattern, valid := range map[string]bool{
		"a.example.com": true, "*.example.com": true, "*": true, "A.Example": true, "a": true, "*.svc": true,
		"": false, "*.": false, "a.*": false, "*a.b": false, "**": false, "a..b": false, "-a.b": false, "https://a": false, "a_b": false, "a b": false,
	} {
		err := source.Only{Hosts: []string{"ok.example", pattern}}.Validate()
		if (err == nil) != valid || !valid && !strings.HasPrefix(err.Error(), "hosts[1]: ") {
			t.Errorf("host %q: %v", pattern, err)
		}
	}
	for namespace, valid := range map[string]bool{"shop": true, "": false, "*": false, "Shop": false, "a.b": false} {
		err := source.Only{Namespaces: []string{namespace}}.Validate()
		if (err == nil) != valid || !valid && !strings.HasPrefix(err.Error(), "namespaces[0]: ") {
			t.Errorf("namespace %q: %v", namespace, err)
		}
	}
}
