package servicecenter_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/isthmus-mesh/isthmus/source"
	"github.com/isthmus-mesh/isthmus/source/servicecenter"
	standin "github.com/isthmus-mesh/isthmus/test/testkit/servicecenter"
)

// The tests of this family are named after the defects of an earlier bridge, by
// the letter each has in its list.

// A: one failed poll deleted everything. Whatever way a poll fails, it deletes
// nothing, and says why.
func TestDefectA_OneFailedPollDeletesNothing(t *testing.T) {
	faults := map[string]standin.Fault{
		"500": standin.FailWith(standin.Internal), "no body": standin.Empty(), "garbage": standin.Garbage(),
		"cut short": standin.CutOff(40), "a proxy's page": standin.Answer(200, "text/html", "<html>welcome</html>"),
		"an error as success": standin.Answer(200, "application/json", `{"errorCode":"500003","errorMessage":"Internal"}`),
		"no services":         standin.Answer(200, "application/json", `{}`), "silence": standin.Hang(),
	}
	for _, route := range []standin.Route{standin.ListServices, standin.BatchFind} {
		for what, fault := range faults {
			t.Run(fmt.Sprintf("%s %s", route, what), func(t *testing.T) {
				bubble(t, prompt, func(r *rig) {
					id := r.many("cart", 0, 3)
					m := r.mirror(r.config())
					want := m.stored()
					r.Inject(route, fault, 1)
					r.SetStatus(id, "cart-000", "UP")
					r.pass(poll * 3 / 2)
					if strings.ReplaceAll(m.stored(), " (stale)", "") != want {
						t.Errorf("stored:\n%s\n\nwant:\n%s", m.stored(), want)
					}
					r.pass(20 * time.Second)
					if m.stored() != want {
						t.Errorf("afterwards:\n%s\n\nwant:\n%s", m.stored(), want)
					}
					m.is(source.StateLive, "")
				})
			})
		}
	}
}

// An outage is no end: everything stays, and the status says so.
func TestOutageKeepsEveryRecord(t *testing.T) {
	bubble(t, prompt, func(r *rig) {
		r.many("cart", 0, 3)
		m := r.mirror(r.config())
		want := m.stored()
		r.Inject(standin.Any, standin.FailWith(standin.Internal), 0)
		r.pass(5 * time.Minute)
		m.is(source.StateStale, "list the services: http://standin-0:1")
		if m.stored() != want {
			t.Errorf("stored:\n%s", m.stored())
		}
		r.Repair()
		r.pass(10 * time.Second)
		m.is(source.StateLive, "")
	})
}

// The next round finds a registry that takes requests and never answers, after the time limit of a
// request to each of its members.
func TestRegistryThatNeverAnswersIsStale(t *testing.T) {
	for _, watch := range []bool{false, true} {
		t.Run(fmt.Sprintf("watch %v", watch), func(t *testing.T) {
			bubble(t, prompt, func(r *rig) {
				r.many("cart", 0, 3)
				r.replica()
				c := r.config()
				c.Watch = watch
				m := r.mirror(c)
				r.settle()
				want := m.stored()
				for _, s := range r.servers {
					s.Inject(standin.Any, standin.Hang(), 0)
				}
				r.pass(poll*11/10 + 2*10*time.Second)
				m.is(source.StateStale, "does not answer within 10s")
				r.pass(5 * time.Minute)
				m.is(source.StateStale, "does not answer within 10s")
				if m.stored() != want {
					t.Errorf("stored:\n%s\n\nwant:\n%s", m.stored(), want)
				}
				for _, s := range r.servers {
					s.Repair()
				}
				r.pass(time.Minute)
				m.is(source.StateLive, "")
			})
		})
	}
}

// B: a restart lost what had changed meanwhile. Here the registry is what counts
// afterwards, and the ports are what they were.
func TestDefectB_ARestartLosesNothing(t *testing.T) {
	bubble(t, prompt, func(r *rig) {
		cart := r.service("", "cart", "1.0.0")
		r.instance(cart, "c1", "10.0.0.1:8080")
		r.instance(cart, "c2", "10.0.0.2:8081")
		users := r.many("users", 1, 2)
		c := r.config()
		c.PortGrace = 2 * time.Minute
		m := r.mirror(c)
		m.stop()
		r.UnregisterInstance(cart, "c2")
		r.instance(cart, "c3", "10.0.0.3:8082")
		r.Unregister(users)
		r.pass(time.Minute)

		m = r.mirror(c)
		r.rounds(3)
		m.wants("cart at default//shop/cart: http-8080 http-8081 http-8082", "cart/c1 = 10.0.0.1", "cart/c3 = 10.0.0.3")
		// The port that nobody has any more goes when its time is over.
		r.pass(2 * time.Minute)
		m.wants("cart at default//shop/cart: http-8080 http-8082", "cart/c1 = 10.0.0.1", "cart/c3 = 10.0.0.3")
	})
}

// After a restart, what cannot be found stays until it can.
func TestRestartKeepsWhatCannotBeFound(t *testing.T) {
	bubble(t, prompt, func(r *rig) {
		r.many("cart", 0, 1)
		r.many("users", 1, 1)
		m := r.mirror(r.config())
		m.stop()
		r.FailKeys(standin.Internal, func(k standin.Key) bool { return k.Name == "cart" })
		m = r.mirror(r.config())
		m.wants("cart at default//shop/cart: http-8080 (stale)", "cart/cart-000 = 10.0.0.1",
			"users at default//shop/users: http-8080", "users/users-000 = 10.0.1.1")
		m.rejects("cart", "500003")
		r.Repair()
		r.rounds(1)
		m.wants("cart at default//shop/cart: http-8080", "cart/cart-000 = 10.0.0.1",
			"users at default//shop/users: http-8080", "users/users-000 = 10.0.1.1")
	})
}

// A service that cannot be found, is denied for one round, and comes back without
// being findable, is rejected again.
func TestRejectionOutlivesADenial(t *testing.T) {
	bubble(t, prompt, func(r *rig) {
		r.many("users", 1, 1)
		m := r.mirror(r.config())
		hideCart := func() { r.FailKeys(standin.Internal, func(k standin.Key) bool { return k.Name == "cart" }) }
		hideCart()
		cart := r.many("cart", 0, 1)
		r.rounds(1)
		m.rejects("cart", "500003")

		r.Inject(standin.ListServices, standin.FailWith(standin.Internal), 0)
		r.rounds(1)
		m.is(source.StateStale, "")
		r.Unregister(cart)
		r.Repair()
		for n := 0; n < 1000 && len(m.Status().Rejected) > 0; n++ { // until everything is listed anew
			r.pass(poll / 100)
		}
		if rejected := m.Status().Rejected; len(rejected) > 0 {
			t.Errorf("after one denial, %v is rejected", rejected)
		}
		hideCart()
		r.many("cart", 0, 1)
		r.rounds(2)
		m.rejects("cart", "500003")
	})
}

// C: instances went to the wrong service when services of several apps came in
// one poll.
func TestDefectC_EveryInstanceBelongsToItsService(t *testing.T) {
	bubble(t, prompt, func(r *rig) {
		m := r.mirror(servicecenter.Config{Addresses: []string{r.URL()}, Host: "{{.Service}}.{{.App}}.{{.Environment}}", Poll: poll})
		var want []string
		for n, app := range []string{"a", "b", "c"} {
			for e, environment := range []string{"testing", "production"} {
				for i, called := range []string{"cart", "users"} {
					id := r.Register(standin.Service{Environment: environment, App: app, Name: called, Version: "1.0.0"})
					address := fmt.Sprintf("10.%d.%d.%d", n, e, i)
					r.instance(id, "i", address+":80")
					host := fmt.Sprintf("%s.%s.%s", called, app, environment)
					want = append(want, fmt.Sprintf("%s at default/%s/%s/%s: http-80", host, environment, app, called), fmt.Sprintf("%s/i = %s", host, address))
				}
			}
		}
		r.rounds(2)
		m.wants(want...)
	})
}

// An answer that has the instances of another service is not taken.
func TestInstancesOfAnotherServiceAreNotTaken(t *testing.T) {
	bubble(t, prompt, func(r *rig) {
		r.many("cart", 0, 1)
		users := r.many("users", 1, 1)
		c := r.config()
		c.CacheOnly = true // what is found directly is in another order
		m := r.mirror(c)
		want := m.stored()
		body := fmt.Sprintf(`{"services":{"updated":[{"index":0,"rev":"x","instances":[{"instanceId":"u","serviceId":%q,"endpoints":["rest://10.0.9.9:80"]}]}],"notModified":[1]}}`, users)
		r.Inject(standin.BatchFind, standin.Answer(200, "application/json", body), 0)
		r.rounds(1)
		m.rejects("cart", "instances of /shop/users")
		r.Repair()
		r.rounds(2)
		if m.stored() != want || len(m.Status().Rejected) > 0 {
			t.Errorf("stored:\n%s\nrefused %v", m.stored(), m.Status().Rejected)
		}
	})
}

// D: only services without an environment worked.
func TestDefectD_EveryEnvironmentIsMirrored(t *testing.T) {
	bubble(t, prompt, func(r *rig) {
		var want []string
		for n, environment := range []string{"", "development", "testing", "acceptance", "production"} {
			id := r.service(environment, fmt.Sprintf("s%d", n), "1.0.0")
			r.instance(id, "i", fmt.Sprintf("10.0.0.%d:80", n+1))
			want = append(want, fmt.Sprintf("s%d at default/%s/shop/s%d: http-80", n, environment, n), fmt.Sprintf("s%d/i = 10.0.0.%d", n, n+1))
		}
		r.mirror(r.config()).wants(want...)
	})
}

// E: versions, environments and apps collided. Versions are one service, and its
// end is that of the last; of environments one has the name, and the other is
// shown with how to fix it, until the name is free.
func TestDefectE_NothingCollides(t *testing.T) {
	bubble(t, prompt, func(r *rig) {
		v1, v2 := r.service("production", "cart", "1.0.0"), r.service("production", "cart", "2.0.0")
		r.instance(v1, "a", "10.0.0.1:80")
		r.instance(v2, "b", "10.0.0.2:80")
		other := r.service("testing", "cart", "1.0.0")
		r.instance(other, "t", "10.0.0.3:80")
		m := r.mirror(r.config())
		m.wants("cart at default/production/shop/cart: http-80", "cart/a = 10.0.0.1", "cart/b = 10.0.0.2")
		m.rejects("default/testing/shop/cart", `host: "{{.Service}}.{{.Environment}}"`)

		r.Unregister(v1)
		r.rounds(3)
		m.wants("cart at default/production/shop/cart: http-80", "cart/b = 10.0.0.2")
		v3 := r.service("production", "cart", "3.0.0")
		r.instance(v3, "c", "10.0.0.4:80")
		r.rounds(1)
		m.wants("cart at default/production/shop/cart: http-80", "cart/b = 10.0.0.2", "cart/c = 10.0.0.4")

		r.Unregister(v2)
		r.Unregister(v3)
		r.rounds(4)
		m.wants("cart at default/testing/shop/cart: http-80", "cart/t = 10.0.0.3")
		if rejected := m.Status().Rejected; len(rejected) > 0 {
			t.Errorf("rejected %v", rejected)
		}
	})
}

// A service that comes first takes a name when it has been found, not before:
// that it cannot be found yet takes nothing from the one that has the name.
func TestANameIsTakenOnceItsServiceIsFound(t *testing.T) {
	bubble(t, prompt, func(r *rig) {
		c := r.config()
		c.Environments = []string{"production", ""}
		r.many("cart", 0, 1)
		m := r.mirror(c)
		want := m.stored()
		r.FailKeys(standin.Internal, func(k standin.Key) bool { return k.Environment == "production" })
		id := r.service("production", "cart", "1.0.0")
		r.instance(id, "p", "10.0.1.1:80")
		r.pass(time.Minute)
		if m.stored() != want {
			t.Errorf("stored:\n%s", m.stored())
		}
		m.rejects("default/production/shop/cart", "500003")
		r.Repair()
		r.rounds(1)
		m.wants("cart at default/production/shop/cart: http-80", "cart/p = 10.0.1.1")
		m.rejects("default//shop/cart", "{{.Environment}}")
	})
}

// Each version can be a service of its own, and goes by itself.
func TestVersionsByTemplate(t *testing.T) {
	bubble(t, prompt, func(r *rig) {
		v1, v2 := r.service("", "cart", "1.0.0"), r.service("", "cart", "2.0.0")
		r.instance(v1, "a", "10.0.0.1:80")
		r.instance(v2, "b", "10.0.0.2:80")
		c := r.config()
		c.Host = "{{.Service}}-{{.Version}}"
		m := r.mirror(c)
		m.wants("cart-1-0-0 at default//shop/cart/1.0.0: http-80", "cart-1-0-0/a = 10.0.0.1",
			"cart-2-0-0 at default//shop/cart/2.0.0: http-80", "cart-2-0-0/b = 10.0.0.2")
		r.Unregister(v1)
		r.rounds(3)
		m.wants("cart-2-0-0 at default//shop/cart/2.0.0: http-80", "cart-2-0-0/b = 10.0.0.2")
	})
}

// I: instances that do not serve were given traffic.
func TestDefectI_OnlyInstancesThatAreUpServe(t *testing.T) {
	for _, serve := range []bool{false, true} {
		t.Run(fmt.Sprint("serveTesting ", serve), func(t *testing.T) {
			bubble(t, prompt, func(r *rig) {
				id := r.service("", "cart", "1.0.0")
				for n, status := range []string{"UP", "DOWN", "STARTING", "TESTING", "OUTOFSERVICE"} {
					r.RegisterInstance(id, standin.Instance{ID: strings.ToLower(status), Status: status, Endpoints: []string{fmt.Sprintf("rest://10.0.0.%d:80", n+1)}})
				}
				c := r.config()
				c.ServeTesting = serve
				want := "cart/testing = 10.0.0.4 UNHEALTHY"
				if serve {
					want = "cart/testing = 10.0.0.4"
				}
				r.mirror(c).wants("cart at default//shop/cart: http-80", "cart/up = 10.0.0.1", "cart/down = 10.0.0.2 UNHEALTHY",
					"cart/starting = 10.0.0.3 UNHEALTHY", want, "cart/outofservice = 10.0.0.5 DRAINING")
			})
		})
	}
}

// U: an app of many services broke the find, whose body may have 2 MiB.
func TestDefectU_AnyNumberOfServicesIsFound(t *testing.T) {
	bubble(t, prompt, func(r *rig) {
		const services = 6000
		long := strings.Repeat("x", 120)
		for n := range services {
			r.Register(standin.Service{Environment: "production", App: strings.Repeat("a", 150), Name: fmt.Sprintf("s%d-%s", n, long)})
		}
		id := r.Register(standin.Service{App: "shop", Name: "last"})
		r.instance(id, "i", "10.0.0.1:80")
		m := r.mirror(r.config())
		if got := m.Status(); got.Services != services+1 || got.Endpoints != 1 || len(got.Rejected) > 0 {
			t.Errorf("%d services, %d endpoints, rejected %v, %s", got.Services, got.Endpoints, got.Rejected, got.Reason)
		}
	})
}

// That a host passes to another service is never silent.
func TestAHostThatPassesToAnotherIsLogged(t *testing.T) {
	bubble(t, prompt, func(r *rig) {
		r.instance(r.service("", "Order_Service", "1.0.0"), "a", "10.0.0.1:80")
		m := r.mirror(r.config())
		r.instance(r.service("", "order-service", "1.0.0"), "b", "10.0.0.2:80")
		r.rounds(2)
		m.wants("order-service at default//shop/order-service: http-80", "order-service/b = 10.0.0.2",
			"order-service-b170912c at default//shop/Order_Service: http-80", "order-service-b170912c/a = 10.0.0.1")
		want := "service=istio-system/order-service from=default//shop/Order_Service to=default//shop/order-service"
		if got := strings.Count(r.log.String(), want); got != 1 {
			t.Errorf("logged %d times: %s", got, r.log)
		}
	})
}
