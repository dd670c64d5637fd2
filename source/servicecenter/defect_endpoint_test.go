package servicecenter_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source"
	standin "github.com/isthmus-mesh/isthmus/test/testkit/servicecenter"
)

// revision is that of the commit which last changed a service's record.
func (m *mirror) revision(host string) uint64 {
	for rec := range m.store.List(model.Filter{Source: m.name, Kind: model.KindService}) {
		if rec.Name == host {
			return rec.Revision
		}
	}
	return 0
}

// H: every event converted all endpoints back and forth, and broke their ports
// and protocols. Here an instance that comes or goes touches no other record.
func TestDefectH_AChangeTouchesNothingElse(t *testing.T) {
	bubble(t, prompt, func(r *rig) {
		id := r.service("", "cart", "1.0.0")
		r.RegisterInstance(id, standin.Instance{ID: "a", HostName: "host-a", Endpoints: []string{"grpc://10.0.0.1:9090", "highway://10.0.0.1:7070"}})
		r.RegisterInstance(id, standin.Instance{ID: "b", Endpoints: []string{"grpc://10.0.0.2:9090", "highway://10.0.0.2:7070"}})
		m := r.mirror(r.config())
		var before []model.Record
		for rec := range r.store.List(model.Filter{Source: "sc"}) {
			before = append(before, rec)
		}
		for n := range 3 {
			r.RegisterInstance(id, standin.Instance{ID: "c", Endpoints: []string{fmt.Sprintf("grpc://10.0.1.%d:9090", n)}})
			r.SetStatus(id, "c", "DOWN")
			r.rounds(1)
		}
		m.wants("cart at default//shop/cart: tcp-7070 grpc-9090", "cart/a = 10.0.0.1", "cart/b = 10.0.0.2", "cart/c = 10.0.1.2 UNHEALTHY")
		r.UnregisterInstance(id, "c")
		r.rounds(2)
		var after []model.Record
		for rec := range r.store.List(model.Filter{Source: "sc"}) {
			after = append(after, rec)
		}
		if !slices.EqualFunc(before, after, func(a, b model.Record) bool { return a.Revision == b.Revision && a.SameContent(b) }) {
			t.Errorf("before %v, after %v", before, after)
		}
	})
}

// N: one bad endpoint had the whole service rejected. Here it is rejected itself,
// and the rest goes on.
func TestDefectN_ABadInstancePoisonsOnlyItself(t *testing.T) {
	bubble(t, prompt, func(r *rig) {
		id := r.Register(standin.Service{App: "shop", Name: "Order_Service"})
		bad := map[string]string{
			"name": "rest://cart.local:8080", "scheme": "10.0.0.2:8080", "port": "rest://10.0.0.3:0", "any": "rest://0.0.0.0:8080", "tls": "rest://10.0.0.4:8080?sslEnabled=true",
		}
		for name, endpoint := range bad {
			r.RegisterInstance(id, standin.Instance{ID: name, HostName: strings.Repeat("x_", 40), Endpoints: []string{endpoint}})
		}
		r.instance(id, "good", "10.0.0.1:8080")
		r.instance(id, "good2", "10.0.0.9:8080")
		m := r.mirror(r.config())
		m.wants("order-service at default//shop/Order_Service: http-8080", "order-service/good = 10.0.0.1", "order-service/good2 = 10.0.0.9")
		for name := range bad {
			m.rejects("default//shop/Order_Service/"+name, "")
		}
		m.rejects("/name", "publishAddress")
		m.is(source.StateLive, "")

		r.RegisterInstance(id, standin.Instance{ID: "name", Endpoints: []string{"rest://10.0.0.5:8080"}})
		for _, name := range []string{"scheme", "port", "any", "tls"} {
			r.UnregisterInstance(id, name)
		}
		r.rounds(2)
		if rejected := m.Status().Rejected; len(rejected) > 0 {
			t.Errorf("rejected %v", rejected)
		}
	})
}

// An instance whose text is not that of an instance is rejected by itself, too.
func TestUnreadableInstanceIsRejected(t *testing.T) {
	bubble(t, prompt, func(r *rig) {
		r.many("cart", 0, 1)
		body := `{"services":{"updated":[{"index":0,"rev":"x","instances":[
			{"instanceId":"good","endpoints":["rest://10.0.0.1:80"]},{"instanceId":"bad","endpoints":["rest://10.0.0.2:80"],"status":7}]}]}}`
		r.Inject(standin.BatchFind, standin.Answer(200, "application/json", body), 0)
		m := r.mirror(r.config())
		m.wants("cart at default//shop/cart: http-80", "cart/good = 10.0.0.1")
		m.rejects("cart/bad", "status")
	})
}

// O: instances got traffic on ports that only others listened on, and each new
// port changed the service. Here endpoints are exact, and a port that comes and
// goes with its instance changes the service once.
func TestDefectO_EndpointsAreExactAndPortsAreStable(t *testing.T) {
	bubble(t, prompt, func(r *rig) {
		id := r.service("", "cart", "1.0.0")
		r.RegisterInstance(id, standin.Instance{ID: "a", Endpoints: []string{"rest://10.0.0.1:31000"}})
		r.RegisterInstance(id, standin.Instance{ID: "b", Endpoints: []string{"rest://10.0.0.2:32000"}})
		m := r.mirror(r.config())
		for rec := range r.store.List(model.Filter{Source: "sc", Kind: model.KindEndpoint}) {
			if e := rec.Spec.(model.Endpoint); !e.Exact || e.Ports.Len() != 1 {
				t.Errorf("%s serves %v, exactly: %t", rec.Name, e.Ports.Map(), e.Exact)
			}
		}
		r.UnregisterInstance(id, "b")
		r.rounds(1)
		m.wants("cart at default//shop/cart: http-31000 http-32000", "cart/a = 10.0.0.1")
		idle := m.revision("cart")
		for range 3 {
			r.SetStatus(id, "a", "DOWN")
			r.rounds(1)
			r.SetStatus(id, "a", "UP")
			r.rounds(1)
		}
		if now := m.revision("cart"); now != idle {
			t.Errorf("the service changed from revision %d to %d", idle, now)
		}
		// No instance at all: the ports stay, however long. (The last of the whole
		// registry would be held.)
		r.many("users", 1, 1)
		r.rounds(1)
		r.UnregisterInstance(id, "a")
		r.rounds(1)
		m.wants("cart at default//shop/cart: http-31000 http-32000", "users at default//shop/users: http-8080", "users/users-000 = 10.0.1.1")
	})
}
