package servicecenter_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/isthmus-mesh/isthmus/source"
	standin "github.com/isthmus-mesh/isthmus/test/testkit/servicecenter"
)

// Nothing is a registry of which only a part was found: at the first start it
// is not listed until all of it is.
func TestFirstListingIsWhole(t *testing.T) {
	bubble(t, prompt, func(r *rig) {
		for n := range 2100 { // more than one batch
			r.Register(standin.Service{App: "shop", Name: fmt.Sprintf("s%04d", n)})
		}
		r.Inject(standin.BatchFind, failSecond(), 0)
		m := r.mirror(r.config())
		m.is(source.StateListing, "find the instances")
		m.wants()
		r.Repair()
		r.pass(10 * time.Second)
		m.is(source.StateLive, "")
	})
}

// failSecond fails the batches that ask for the end of the alphabet.
func failSecond() standin.Fault {
	return func(s *standin.Server, w http.ResponseWriter, r *http.Request, next http.Handler) {
		body, err := io.ReadAll(r.Body)
		if err != nil || bytes.Contains(body, []byte("s2099")) {
			standin.FailWith(standin.Internal)(s, w, r, next)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		next.ServeHTTP(w, r)
	}
}

// Of a round of which a part fails, the rest counts: what could not be found
// stays as it was, with the reason, until it is found.
func TestHalfOfARoundFailing(t *testing.T) {
	bubble(t, prompt, func(r *rig) {
		var first, last string
		for n := range 2100 {
			id := r.Register(standin.Service{App: "shop", Name: fmt.Sprintf("s%04d", n)})
			if n == 0 {
				first = id
			}
			last = id
		}
		m := r.mirror(r.config())
		r.Inject(standin.BatchFind, failSecond(), 0)
		r.instance(first, "a", "10.0.0.1:80")
		r.instance(last, "b", "10.0.0.2:80")
		r.rounds(1)
		if got := m.stored(); !strings.Contains(got, "s0000/a") || strings.Contains(got, "s2099/b") || !strings.Contains(got, "s2099: (stale)") {
			t.Error("the half that was found does not count, or the other does")
		}
		m.rejects("s2099", "500003")
		m.is(source.StateLive, "")
		r.Repair()
		r.rounds(1)
		if got := m.stored(); !strings.Contains(got, "s2099/b") || strings.Contains(got, "stale") || len(m.Status().Rejected) > 0 {
			t.Errorf("not everything is found afterwards: %v", m.Status().Rejected)
		}
	})
}

// A key that the registry rejects does not spoil the batch it stands in.
func TestARejectedKeyIsFoundOut(t *testing.T) {
	bubble(t, prompt, func(r *rig) {
		for n := range 20 {
			r.many(fmt.Sprintf("s%02d", n), n, 1)
		}
		r.Register(standin.Service{App: "shop", Name: "bad name!"})
		m := r.mirror(r.config())
		if got := m.Status(); got.Services != 20 || got.Endpoints != 20 || got.State != source.StateLive {
			t.Errorf("%d services, %d endpoints, %s %s", got.Services, got.Endpoints, got.State, got.Reason)
		}
		m.rejects("bad name!", "400001")
	})
}

// A first list that has nothing is not applied until a second one says the same.
func TestFirstListingIsNotEmptyByMistake(t *testing.T) {
	bubble(t, prompt, func(r *rig) {
		cart := r.many("cart", 0, 1)
		r.Inject(standin.ListServices, standin.Answer(200, "application/json", `{}`), 1)
		m := r.mirror(r.config())
		m.is(source.StateListing, "")
		r.rounds(1)
		m.is(source.StateLive, "")
		m.wants("cart at default//shop/cart: http-8080", "cart/cart-000 = 10.0.0.1")
		m.stop()
		r.Unregister(cart)
		m = r.mirrorAs("one", "other", r.config(), r.store)
		r.rounds(1)
		m.is(source.StateLive, "")
		m.wants()
	})
}

// A service that the list names and a find denies is in a race, not gone.
func TestDeniedIsNotGone(t *testing.T) {
	bubble(t, prompt, func(r *rig) {
		r.many("cart", 0, 1)
		m := r.mirror(r.config())
		r.FailKeys(standin.NoService, func(k standin.Key) bool { return k.Name == "cart" })
		r.pass(5 * time.Minute)
		m.wants("cart at default//shop/cart: http-8080 (stale)", "cart/cart-000 = 10.0.0.1")
		m.rejects("cart", "does not find it")
	})
}

// A list that lacks what can be found is not applied, and neither is one alone.
func TestMissingIsGoneWhenItIsDenied(t *testing.T) {
	bubble(t, prompt, func(r *rig) {
		cart := r.many("cart", 0, 1)
		r.many("users", 1, 1) // stays: the last service is held
		m := r.mirror(r.config())
		want := m.stored()
		r.Inject(standin.ListServices, standin.Answer(200, "application/json", `{"services":[]}`), 0)
		r.pass(5 * time.Minute)
		if m.stored() != want {
			t.Errorf("stored:\n%s", m.stored())
		}
		r.Repair()
		r.Unregister(cart)
		r.rounds(4)
		m.wants("users at default//shop/users: http-8080", "users/users-000 = 10.0.1.1")
		m.is(source.StateLive, "")
	})
}

// Nor is one applied that lacks a version whose instances can be found.
func TestMissingVersionsAreGoneWithTheirInstances(t *testing.T) {
	bubble(t, prompt, func(r *rig) {
		v1, v2 := r.service("", "cart", "1.0.0"), r.service("", "cart", "2.0.0")
		r.instance(v1, "a", "10.0.0.1:80")
		r.instance(v2, "b", "10.0.0.2:80")
		c := r.config()
		c.Host = "{{.Service}}-{{.Version}}"
		m := r.mirror(c)
		want := m.stored()
		r.Inject(standin.ListServices, standin.Answer(200, "application/json",
			`{"services":[{"serviceId":"`+v2+`","appId":"shop","serviceName":"cart","version":"2.0.0"}]}`), 0)
		r.pass(5 * time.Minute)
		if m.stored() != want {
			t.Errorf("stored:\n%s", m.stored())
		}
		r.Repair()
		r.Unregister(v1)
		r.rounds(4)
		m.wants("cart-2-0-0 at default//shop/cart/2.0.0: http-80", "cart-2-0-0/b = 10.0.0.2")
		m.is(source.StateLive, "")
	})
}

// Much that disappears at once is held, whether from the list or from a service,
// and goes when the registry has said the same for long enough. A service that
// ends by itself, however large, ends at once: the registry was asked for it.
func TestDropsAreHeld(t *testing.T) {
	bubble(t, prompt, func(r *rig) {
		ids := []string{r.many("a", 0, 12), r.many("b", 1, 12), r.many("c", 2, 12), r.many("d", 3, 12)}
		m := r.mirror(r.config())
		r.Unregister(ids[3])
		r.rounds(4)
		if got := m.Status(); got.Endpoints != 36 || got.State != source.StateLive {
			t.Errorf("%d endpoints, %s", got.Endpoints, got.State)
		}
		for n := range 12 {
			r.UnregisterInstance(ids[2], fmt.Sprintf("c-%03d", n))
		}
		r.rounds(2)
		m.is(source.StateHeld, "c")
		if got := m.Status(); got.Endpoints != 36 || got.Held != 12 {
			t.Errorf("%d endpoints, %d held", got.Endpoints, got.Held)
		}
		r.Unregister(ids[0])
		r.Unregister(ids[1])
		r.rounds(4)
		if got := m.Status(); got.Endpoints != 36 || got.State != source.StateHeld {
			t.Errorf("%d endpoints, %s", got.Endpoints, got.State)
		}
		r.pass(2 * time.Minute)
		m.is(source.StateLive, "")
		m.wants("c at default//shop/c: http-8080")
	})
}

// The registry's nightly job drops many old versions at once. They have no
// instances, so nothing is held and nothing that serves is touched.
func TestNightlyRetirement(t *testing.T) {
	bubble(t, prompt, func(r *rig) {
		var old []string
		for n := range 30 {
			for v := range 5 {
				id := r.service("", fmt.Sprintf("s%02d", n), fmt.Sprintf("1.0.%d", v))
				if v < 4 {
					old = append(old, id)
				} else {
					r.instance(id, "i", fmt.Sprintf("10.0.0.%d:80", n+1))
				}
			}
			old = append(old, r.service("", fmt.Sprintf("dead%02d", n), "1.0.0"))
		}
		m := r.mirror(r.config())
		for _, id := range old {
			r.Unregister(id)
		}
		r.rounds(4)
		if got := m.Status(); got.Services != 30 || got.Endpoints != 30 || got.Held != 0 || got.State != source.StateLive {
			t.Errorf("%d services, %d endpoints, %d held, %s", got.Services, got.Endpoints, got.Held, got.State)
		}
	})
}

// Whatever was missed, an audit finds: here changes that kept their revision.
func TestAuditFindsWhatRevisionsHide(t *testing.T) {
	bubble(t, prompt, func(r *rig) {
		id := r.many("cart", 0, 1)
		c := r.config()
		c.Audit = time.Minute
		m := r.mirror(c)
		r.Inject(standin.BatchFind, standin.Answer(200, "application/json", `{"services":{"notModified":[0]}}`), 0)
		r.instance(id, "new", "10.0.0.2:8080")
		r.pass(30 * time.Second)
		m.wants("cart at default//shop/cart: http-8080", "cart/cart-000 = 10.0.0.1")
		r.pass(time.Minute)
		m.rejects("cart", "revision that was not named")
		r.Repair()
		r.rounds(1)
		m.wants("cart at default//shop/cart: http-8080", "cart/cart-000 = 10.0.0.1", "cart/new = 10.0.0.2")
	})
}

// A round of nothing new is one list and two finds, one of them of few services and
// directly, and no commit.
func TestIdleCostsThreeRequests(t *testing.T) {
	bubble(t, prompt, func(r *rig) {
		for n := range 50 {
			r.many(fmt.Sprintf("s%02d", n), n, 2)
		}
		m := r.mirror(r.config())
		r.pass(10 * time.Second)
		lists, finds, all, before := r.Requests(standin.ListServices), r.Requests(standin.BatchFind), r.Requests(standin.Any), m.stored()
		r.pass(time.Minute)
		rounds := r.Requests(standin.ListServices) - lists
		if rounds < 25 || rounds > 36 || r.Requests(standin.BatchFind)-finds != 2*rounds || r.Requests(standin.Any)-all != 3*rounds {
			t.Errorf("%d lists, %d finds, %d requests in a minute", rounds, r.Requests(standin.BatchFind)-finds, r.Requests(standin.Any)-all)
		}
		if m.stored() != before {
			t.Error("something changed")
		}
	})
}

// After a restart a list is applied no sooner than the process before would have.
func TestRestartDoesNotApplyOneList(t *testing.T) {
	bubble(t, prompt, func(r *rig) {
		cart := r.many("cart", 0, 2)
		users := r.many("users", 1, 2)
		r.many("web", 2, 1)
		m := r.mirror(r.config())
		want := m.stored()
		m.stop()
		r.Inject(standin.ListServices, standin.Answer(200, "application/json", `{}`), 1)
		m = r.mirror(r.config())
		if got := strings.ReplaceAll(m.stored(), " (stale)", ""); got != want {
			t.Errorf("stored:\n%s", got)
		}
		r.rounds(2)
		if got := m.stored(); got != want {
			t.Errorf("stored:\n%s", got)
		}
		m.stop()
		r.Unregister(cart)
		r.Unregister(users)
		m = r.mirror(r.config())
		r.rounds(3)
		m.wants("web at default//shop/web: http-8080", "web/web-000 = 10.0.2.1")
	})
}
