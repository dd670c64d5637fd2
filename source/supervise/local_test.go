package supervise_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source"
	"github.com/isthmus-mesh/isthmus/source/supervise"
)

// local runs test with a supervisor that rejects endpoints at local addresses.
func local(t *testing.T, test func(*bridge)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		test(connectWith(t, newLedger(), supervise.Config{LocalAddresses: source.RejectLocal}))
	})
}

// looked has the names of a service looked up.
func looked(o model.Object, hosts ...string) model.Object {
	o.Record.Spec = model.Service{Hosts: model.ListOf(hosts...), Resolution: model.ResolutionDNS}
	return o
}

func workloadAt(name, address string) model.Object {
	o := workload(name, "f")
	o.Record.Spec = model.Workload{Endpoint: model.Endpoint{Address: address}}
	return o
}

// Endpoints that mean whoever calls are rejected one by one, with the remedy, and the
// service keeps all others.
func TestLocalEndpointsAreRejectedOneByOne(t *testing.T) {
	t.Parallel()
	local(t, func(b *bridge) {
		further := service("further", "f", "10.0.0.1")
		further.Owned[0].Spec = model.Endpoint{Address: "10.0.0.1", Also: model.ListOf("::ffff:127.0.0.1")}
		b.list(
			service("a", "f", "10.0.0.1", "127.0.0.1", "::ffff:127.0.0.1", "169.254.169.254", "0.0.0.0", "unix:///run/a.sock", "10.0.0.2"), further,
			workloadAt("vm", "127.0.0.1"), workload("other", "f"),
			looked(service("some", "f", "localhost", "a.example"), "some.example"), looked(service("all", "f", "x.localhost"), "all.example"),
			looked(service("itself", "f"), "Itself.localhost."), looked(service("name", "f"), "name.example"),
		)
		b.rejected(map[string]string{
			"a/127.0.0.1": "is a loopback address", "a/::ffff:127.0.0.1": "is a loopback address", "a/169.254.169.254": "is a link-local address",
			"a/0.0.0.0": "is the unspecified address", "a/unix:///run/a.sock": "is a unix socket", "further/10.0.0.1": "::ffff:127.0.0.1 is a loopback address",
			"vm": "set localAddresses: allow for the source", "some/localhost": "is a loopback address",
			"all": "its hosts would be looked up instead", "itself": "so its hosts are looked up",
		})
		b.holds("Endpoint ns/a/10.0.0.1", "Endpoint ns/a/10.0.0.2", "Endpoint ns/some/a.example",
			"Service ns/a in f", "Service ns/further in f", "Service ns/name in f", "Service ns/some in f", "Workload ns/other in f")
		b.inState(source.StateLive)
	})
}

// A single endpoint that moves to a local address is gone from where it was, and its
// rejection ends with it.
func TestALocalEndpointOfAChangeIsRejected(t *testing.T) {
	t.Parallel()
	local(t, func(b *bridge) {
		b.list(service("a", "f", "10.0.0.1", "10.0.0.2"))
		moves := model.Record{Ref: ref(model.KindEndpoint, "a/10.0.0.1"), Owner: ref(model.KindService, "a"), Spec: model.Endpoint{Address: "127.0.0.1"}}
		b.change(model.Change{OwnedUpserts: []model.Record{moves}})
		b.rejected(map[string]string{"a/10.0.0.1": "is a loopback address"})
		b.holds("Endpoint ns/a/10.0.0.2", "Service ns/a in f")

		b.change(model.Change{OwnedDeletes: []model.Ref{ref(model.KindEndpoint, "a/10.0.0.1")}})
		b.rejected(nil)

		b.change(model.Change{Upserts: []model.Object{service("a", "f", "10.0.0.2", "::1")}})
		b.rejected(map[string]string{"a/::1": "is a loopback address"})
		b.change(model.Change{Upserts: []model.Object{service("a", "f", "10.0.0.2", "10.0.0.3")}})
		b.rejected(nil)
		b.holds("Endpoint ns/a/10.0.0.2", "Endpoint ns/a/10.0.0.3", "Service ns/a in f")
	})
}

// What an earlier run stored at local addresses goes before the source is read: an
// operator has said so, so nothing of it is held.
func TestStoredLocalEndpointsGoAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLedger()
		before := connectWith(t, l, supervise.Config{LocalAddresses: source.AllowLocal})
		before.list(service("a", "f", "127.0.0.1", "127.0.0.2", "127.0.0.3", "10.0.0.1"), workloadAt("vm", "::1"), workload("other", "f"),
			looked(service("all", "f", "localhost"), "all.example"), looked(service("some", "f", "localhost", "a.example"), "some.example"))
		after := connectWith(t, l, supervise.Config{LocalAddresses: source.RejectLocal})
		after.holds("Endpoint ns/a/10.0.0.1", "Endpoint ns/some/a.example", "Service ns/a in f", "Service ns/some in f", "Workload ns/other in f")
		if st := after.Status(); st.Held != 0 {
			t.Errorf("%d records are held", st.Held)
		}
	})
}

func TestLocalAddressesAreValidated(t *testing.T) {
	t.Parallel()
	for value, valid := range map[source.LocalAddresses]bool{source.AllowLocal: true, source.RejectLocal: true, "": false, "yes": false} {
		err := value.Validate()
		if (err == nil) != valid || !valid && !strings.Contains(err.Error(), "localAddresses: ") {
			t.Errorf("%q: %v", value, err)
		}
	}
}
