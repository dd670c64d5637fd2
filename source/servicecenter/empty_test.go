package servicecenter_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/isthmus-mesh/isthmus/source"
	standin "github.com/isthmus-mesh/isthmus/test/testkit/servicecenter"
)

const jsonType = "application/json"

// Whatever is an object of JSON and not the answer of a Service Center is an
// error, and takes nothing away, however long it lasts.
func TestAnswerWithoutItsFieldIsAnError(t *testing.T) {
	lists := []string{
		`{}`, `{"foo":1}`, `{"error":"no upstream"}`, `{"services":null}`, `{"instances":[]}`, `{"errorCode":"0"}`, `{"status":"UP","services2":[]}`,
	}
	finds := []string{
		`{}`, `{"foo":1}`, `{"error":"no upstream"}`, `{"services":null}`, `{"instances":{}}`, `{"services":{}}`, `{"services":{"foo":1}}`,
		`{"services":{"updated":[]}}`, `{"services":{"updated":[{}]}}`, `{"services":{"updated":[{"index":0}]}}`, `{"services":{"updated":[{"rev":"1"}]}}`,
	}
	lies := func(route standin.Route, path, field string, bodies []string) {
		for _, body := range bodies {
			t.Run(string(route)+" "+body, func(t *testing.T) {
				bubble(t, prompt, func(r *rig) {
					r.many("cart", 0, 3)
					m := r.mirror(r.config())
					want := m.stored()
					at := route
					if body == `{}` {
						at = standin.Any // the registry itself says so when it is empty, and names itself
					}
					r.Inject(at, standin.Answer(http.StatusOK, jsonType, body), 0)
					r.pass(11 * time.Minute) // beyond an audit
					m.is(source.StateStale, r.URL()+path)
					m.is(source.StateStale, field)
					m.is(source.StateStale, "check that the address is a Service Center's")
					if m.stored() != want || m.Status().Held > 0 {
						t.Errorf("stored:\n%s", m.stored())
					}
					r.Repair()
					r.pass(10 * time.Second)
					m.is(source.StateLive, "")
				})
			})
		}
	}
	lies(standin.ListServices, "/v4/default/registry/microservices", `no field "services"`, lists)
	lies(standin.BatchFind, "/v4/default/registry/instances/action?type=query", "services", finds[1:])
}

// The same at the first start, when there is nothing to compare with.
func TestNoAnswerIsAnEmptyRegistryAtFirst(t *testing.T) {
	for _, body := range []string{`{}`, `{"foo":1}`, `{"services":null}`} {
		t.Run(body, func(t *testing.T) {
			bubble(t, prompt, func(r *rig) {
				r.Inject(standin.Any, standin.Answer(http.StatusOK, jsonType, body), 0)
				m := r.mirror(r.config())
				r.pass(5 * time.Minute)
				m.is(source.StateListing, `no field "services"`)
				r.Repair()
				r.pass(10 * time.Second)
				m.is(source.StateLive, "")
			})
		})
	}
}

// A registry without services says {}, and that is what it is: it names itself
// among its members.
func TestEmptyRegistryIsTakenForOne(t *testing.T) {
	bubble(t, prompt, func(r *rig) {
		m := r.mirror(r.config())
		r.rounds(2)
		m.is(source.StateLive, "")
		r.many("cart", 0, 1)
		r.rounds(1)
		m.wants("cart at default//shop/cart: http-8080", "cart/cart-000 = 10.0.0.1")
	})
}

// The same with the answer about its members that was recorded.
func TestRecordedMembersShowARegistry(t *testing.T) {
	bubble(t, prompt, func(r *rig) {
		r.Inject(standin.ListServices, standin.Answer(http.StatusOK, jsonType, `{}`), 0)
		r.Inject(standin.Health, standin.Answer(http.StatusOK, jsonType, recordedBody(r.T, "02-health")), 0)
		m := r.mirror(r.config())
		r.rounds(2)
		m.is(source.StateLive, "")
	})
}

// Of two members the one that says nothing is passed over, and the other's word
// about itself is not taken for it.
func TestMemberThatSaysNothingIsPassedOver(t *testing.T) {
	bubble(t, prompt, func(r *rig) {
		second := r.replica()
		r.many("cart", 0, 2)
		r.Inject(standin.Any, standin.Answer(http.StatusOK, jsonType, `{}`), 0)
		m := r.mirror(r.config())
		m.is(source.StateLive, "")
		m.wants("cart at default//shop/cart: http-8080", "cart/cart-000 = 10.0.0.1", "cart/cart-001 = 10.0.0.2")
		if second.Requests(standin.Health) > 0 {
			t.Error("a member that lists services was asked who it is")
		}
	})
}

// The recorded answer to a find of a service without instances stands.
func TestServiceWithoutInstancesIsTakenForOne(t *testing.T) {
	bubble(t, prompt, func(r *rig) {
		r.service("production", "Order_Service", "1.0.0")
		m := r.mirror(r.config())
		m.is(source.StateLive, "")
		m.wants("order-service at default/production/shop/Order_Service:")
	})
}

// A registry that was emptied denies its last service by name, as it denies any
// that was removed. Nine endpoints are few, and everything there was.
func TestEverythingIsHeldHoweverLittle(t *testing.T) {
	for name, empty := range map[string]func(r *rig, id string){
		"no service": func(r *rig, id string) { r.Unregister(id) },
		"no instance": func(r *rig, id string) {
			for n := range 9 {
				r.UnregisterInstance(id, fmt.Sprintf("cart-%03d", n))
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, prompt, func(r *rig) {
				id := r.many("cart", 0, 9)
				m := r.mirror(r.config())
				want := m.stored()
				empty(r, id)
				r.rounds(5)
				m.is(source.StateHeld, "9 of 9 endpoints disappeared within ")
				if got := strings.ReplaceAll(m.stored(), " (held)", ""); got != want {
					t.Errorf("stored:\n%s", got)
				}
				r.pass(2 * time.Minute)
				m.is(source.StateLive, "")
				if got := m.Status().Endpoints; got > 0 {
					t.Errorf("%d endpoints are left", got)
				}
			})
		})
	}
}

func recordedBody(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "test", "testkit", "servicecenter", "testdata", file+".json"))
	if err != nil {
		t.Fatal(err)
	}
	var recorded struct{ Response struct{ BodyRaw string } }
	if err := json.Unmarshal(text, &recorded); err != nil {
		t.Fatal(err)
	}
	return recorded.Response.BodyRaw
}
