package servicecenter_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/isthmus-mesh/isthmus/source"
	standin "github.com/isthmus-mesh/isthmus/test/testkit/servicecenter"
)

// throttle answers that there are too many requests, and after how long to return.
func throttle(status int, after string) standin.Fault {
	return func(s *standin.Server, w http.ResponseWriter, r *http.Request, next http.Handler) {
		w.Header().Set("Retry-After", after)
		standin.Answer(status, "application/json", `{"errorCode":"429001","errorMessage":"the quota of the tenant is used up"}`)(s, w, r, next)
	}
}

// A member that asks to be left alone is, for as long as it says but no longer than five
// minutes, and its own words are the reason. Other members are asked meanwhile.
func TestMemberIsLeftAloneForAsLongAsItAsks(t *testing.T) {
	for _, test := range []struct {
		status int
		after  string
		alone  time.Duration
	}{
		{http.StatusTooManyRequests, "60", time.Minute},
		{http.StatusServiceUnavailable, "60", time.Minute},
		{http.StatusTooManyRequests, "86400", 5 * time.Minute},
	} {
		t.Run(test.after, func(t *testing.T) {
			bubble(t, prompt, func(r *rig) {
				r.many("cart", 0, 1)
				m := r.mirror(r.config())
				m.is(source.StateLive, "")
				r.Inject(standin.ListServices, throttle(test.status, test.after), 1)
				r.rounds(2)
				asked := r.Requests(standin.Any)
				r.pass(test.alone - 15*time.Second)
				if got := r.Requests(standin.Any) - asked; got != 0 {
					t.Errorf("%d requests while it wants none", got)
				}
				m.is(source.StateStale, "429001 the quota of the tenant is used up; it asks to be left alone until ")
				r.pass(30 * time.Second)
				m.is(source.StateLive, "")
			})
		})
	}

	bubble(t, prompt, func(r *rig) {
		second := r.replica()
		id := r.many("cart", 0, 1)
		m := r.mirror(r.config())
		m.is(source.StateLive, "")
		r.Inject(standin.Any, throttle(http.StatusTooManyRequests, "60"), 0)
		r.instance(id, "new", "10.0.0.2:8080")
		r.pass(30 * time.Second)
		m.wants("cart at default//shop/cart: http-8080", "cart/cart-000 = 10.0.0.1", "cart/new = 10.0.0.2")
		m.is(source.StateLive, "")
		if got := second.Requests(standin.ListServices); got == 0 {
			t.Error("the second member was not asked")
		}
	})
}

// Why there is no access is said in the registry's own words, for as long as there is none.
func TestRegistrySaysWhyItRejectsTheLogin(t *testing.T) {
	bubble(t, guarded(), func(r *rig) {
		r.many("cart", 0, 1)
		c, _ := r.account("hunter1")
		m := r.mirror(c)
		r.pass(5 * time.Minute)
		m.is(source.StateListing, "answers 401: 401202 ")
	})
}

func TestRegistrySaysWhyItRejectsItsToken(t *testing.T) {
	bubble(t, guarded(), func(r *rig) {
		r.many("cart", 0, 1)
		c, _ := r.account("hunter2")
		m := r.mirror(c)
		m.is(source.StateLive, "")
		r.Inject(standin.ListServices, standin.Answer(http.StatusUnauthorized, "application/json",
			`{"errorCode":"401777","errorMessage":"the tenant is frozen"}`), 0)
		r.pass(time.Minute)
		m.is(source.StateStale, "401777 the tenant is frozen")
	})
}
