package servicecenter_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/isthmus-mesh/isthmus/source"
	"github.com/isthmus-mesh/isthmus/source/servicecenter"
	"github.com/isthmus-mesh/isthmus/store"
	standin "github.com/isthmus-mesh/isthmus/test/testkit/servicecenter"
)

// watched is a configuration with watches on.
func (r *rig) watched() servicecenter.Config {
	c := r.config()
	c.Watch = true
	return c
}

// settle lets watches open, and the registry learn what they watch.
func (r *rig) settle() { r.rounds(2) }

// soon is when a hint has had its effect, long before the next round.
const soon = 400 * time.Millisecond

// consumers are the services that watches have registered, as the registry lists them.
func (r *rig) consumers() (names []string) {
	r.Helper()
	client := &http.Client{Transport: &http.Transport{DialContext: r.net.dial, DisableKeepAlives: true}}
	answer, err := client.Get(r.URL() + "/v4/default/registry/microservices")
	if err != nil {
		r.Fatal(err)
	}
	defer answer.Body.Close()
	var list struct{ Services []standin.Service }
	if err := json.NewDecoder(answer.Body).Decode(&list); err != nil {
		r.Fatal(err)
	}
	for _, s := range list.Services {
		if strings.HasPrefix(s.Name, "isthmus-watch") {
			names = append(names, s.Environment+"/"+s.App+"/"+s.Name)
		}
	}
	slices.Sort(names)
	return names
}

// T: changes came late, by seconds. With a watch they come at once.
func TestDefectT_EventsAreFollowedAtOnce(t *testing.T) {
	bubble(t, prompt, func(r *rig) {
		cart := r.many("cart", 0, 1)
		users := r.Register(standin.Service{Environment: "production", App: "other", Name: "users"})
		m := r.mirror(r.watched())
		r.settle()
		if got := r.Watchers(); got != 2 {
			t.Fatalf("%d watches: %s", got, r.log)
		}
		for n := range 10 {
			r.instance(cart, "new", fmt.Sprintf("10.0.0.%d:8080", n+2))
			r.instance(users, "u", fmt.Sprintf("10.0.1.%d:80", n+2))
			r.pass(soon)
			m.wants("cart at default//shop/cart: http-8080", "cart/cart-000 = 10.0.0.1", fmt.Sprintf("cart/new = 10.0.0.%d", n+2),
				"users at default/production/other/users: http-80", fmt.Sprintf("users/u = 10.0.1.%d", n+2))
		}
	})
}

// A burst of events is one find, or few.
func TestBurstsAreGathered(t *testing.T) {
	bubble(t, prompt, func(r *rig) {
		cart := r.many("cart", 0, 1)
		m := r.mirror(r.watched())
		r.settle()
		r.pass(soon)
		finds := r.Requests(standin.BatchFind)
		for n := range 100 {
			r.instance(cart, fmt.Sprintf("i%03d", n), fmt.Sprintf("10.0.1.%d:8080", n+1))
		}
		r.pass(soon)
		if got := m.Status().Endpoints; got != 101 {
			t.Errorf("%d endpoints", got)
		}
		if got := r.Requests(standin.BatchFind) - finds; got > 3 {
			t.Errorf("%d finds for one burst", got)
		}
	})
}

// G: events that came during a push were lost. Here an event is no more than a
// hint: what it was about is found, and found again while more come.
func TestDefectG_NoEventIsLost(t *testing.T) {
	bubble(t, prompt, func(r *rig) {
		cart := r.many("cart", 0, 1)
		m := r.mirror(r.watched())
		r.settle()
		r.Inject(standin.BatchFind, standin.Late(700*time.Millisecond), 0)
		for n := range 30 {
			r.instance(cart, "new", fmt.Sprintf("10.0.1.%d:8080", n+1))
			r.pass(70 * time.Millisecond)
		}
		r.Repair()
		r.rounds(1)
		m.wants("cart at default//shop/cart: http-8080", "cart/cart-000 = 10.0.0.1", "cart/new = 10.0.1.30")
	})
}

// The registry throws a full queue away, and tells nobody. What was lost is
// found by the next round.
func TestOverflowLosesNothing(t *testing.T) {
	config := prompt
	config.Queue = 5
	bubble(t, config, func(r *rig) {
		var ids []string
		for n := range 20 {
			ids = append(ids, r.many(fmt.Sprintf("s%02d", n), n, 1))
		}
		m := r.mirror(r.watched())
		r.settle()
		release := r.HoldEvents()
		for n, id := range ids {
			r.instance(id, "new", fmt.Sprintf("10.1.0.%d:8080", n+1))
		}
		release()
		r.rounds(1)
		if got := m.Status().Endpoints; got != 40 {
			t.Errorf("%d endpoints", got)
		}
	})
}

// J: after a websocket had ended nobody looked what had happened meanwhile.
func TestDefectJ_AReopenedWatchFindsEverything(t *testing.T) {
	bubble(t, prompt, func(r *rig) {
		cart := r.many("cart", 0, 1)
		m := r.mirror(r.watched())
		r.settle()
		for n := range 5 {
			r.DropWatchers()
			r.instance(cart, "new", fmt.Sprintf("10.0.1.%d:8080", n+1))
			r.pass(10 * time.Second)
			m.wants("cart at default//shop/cart: http-8080", "cart/cart-000 = 10.0.0.1", fmt.Sprintf("cart/new = 10.0.1.%d", n+1))
			if got := r.Watchers(); got != 1 {
				t.Fatalf("%d watches", got)
			}
			r.SetStatus(cart, "new", "DOWN")
			r.pass(soon)
			m.wants("cart at default//shop/cart: http-8080", "cart/cart-000 = 10.0.0.1", fmt.Sprintf("cart/new = 10.0.1.%d UNHEALTHY", n+1))
		}
	})
}

// M: a find that failed, an event without an instance, and a stop in the wrong
// moment each ended the process. Here they change nothing, and a stop is a stop.
func TestDefectM_NothingThatIsMissingEndsTheProcess(t *testing.T) {
	bubble(t, prompt, func(r *rig) {
		cart := r.many("cart", 0, 2)
		m := r.mirror(r.watched())
		r.settle()
		want := m.stored()
		r.Inject(standin.BatchFind, standin.FailWith(standin.Internal), 2)
		for _, action := range []string{standin.Create, standin.Update, standin.Delete, standin.Expire, "", "NOVELTY"} {
			for _, key := range []*standin.Key{nil, {}, {App: "default", Name: "cart"}, {App: "nobody's", Name: "nothing"}} {
				r.Emit(standin.Event{Action: action, Key: key})
				r.Emit(standin.Event{Action: action, Key: key, Instance: &standin.Instance{}})
			}
		}
		r.pass(30 * time.Second)
		if m.stored() != want {
			t.Errorf("stored:\n%s\n\nwant:\n%s", m.stored(), want)
		}
		r.instance(cart, "new", "10.0.9.9:8080")
		r.pass(soon)
		m.wants("cart at default//shop/cart: http-8080", "cart/cart-000 = 10.0.0.1", "cart/cart-001 = 10.0.0.2", "cart/new = 10.0.9.9")
		m.is(source.StateLive, "")

		r.Inject(standin.BatchFind, standin.Hang(), 1) // it stops in the middle of a find, with events on their way
		r.Emit(standin.Event{Action: standin.Update, Key: &standin.Key{App: "shop", Name: "cart"}})
		r.pass(time.Second)
		m.stop()
	})
}

// K: two bridges on one registry removed each other's consumers for ever. Here
// each has its own, and leaves with no other's.
func TestDefectK_TwoOnOneRegistry(t *testing.T) {
	bubble(t, prompt, func(r *rig) {
		cart := r.many("cart", 0, 1)
		second := store.NewMemory(store.Config{})
		one, two := r.mirror(r.watched()), r.mirrorAs("two", "sc", r.watched(), second)
		r.settle()
		want := []string{"/shop/isthmus-watch-one.sc", "/shop/isthmus-watch-two.sc"}
		if got := r.consumers(); !slices.Equal(got, want) {
			t.Fatalf("consumers %v", got)
		}
		registered := r.Requests(standin.RegisterService)
		r.pass(10 * time.Minute)
		if r.Requests(standin.RegisterService) != registered || r.Requests(standin.UnregisterService) != 0 || r.Watchers() != 2 {
			t.Errorf("consumers come and go: %v", r.AllRequests())
		}
		r.instance(cart, "new", "10.0.0.2:8080")
		r.pass(soon)
		all := []string{"cart at default//shop/cart: http-8080", "cart/cart-000 = 10.0.0.1", "cart/new = 10.0.0.2"}
		one.wants(all...)
		two.wants(all...)
		if storedIn(second, "sc") != one.stored() {
			t.Error("the two differ")
		}
		one.stop()
		if got := r.consumers(); !slices.Equal(got, want[1:]) {
			t.Errorf("consumers %v", got)
		}
		r.instance(cart, "new", "10.0.0.3:8080")
		r.pass(soon)
		if got := storedIn(second, "sc"); !strings.Contains(got, "10.0.0.3") {
			t.Errorf("stored %s", got)
		}
	})
}

// P: mirroring wrote into the registry, and kept users from deleting services.
// Without a watch nothing is written. With one, consumers are there, are none
// of anybody's services, and go at a stop.
func TestDefectP_NothingIsWritten(t *testing.T) {
	bubble(t, prompt, func(r *rig) {
		cart := r.many("cart", 0, 1)
		plain := r.mirror(r.config())
		r.pass(time.Minute)
		plain.stop()
		for route := range r.AllRequests() {
			if route != standin.Any && route != standin.ListServices && route != standin.BatchFind {
				t.Errorf("%s was asked for", route)
			}
		}
		if r.Watchers() > 0 || len(r.consumers()) > 0 {
			t.Error("something is watched")
		}
		m := r.mirror(r.watched())
		r.settle()
		if got := r.consumers(); len(got) != 1 {
			t.Fatalf("consumers %v", got)
		}
		r.SetStatus(cart, "cart-000", "DOWN")
		r.pass(soon)
		m.wants("cart at default//shop/cart: http-8080", "cart/cart-000 = 10.0.0.1 UNHEALTHY")
		if got := m.Status().Ignored["consumer of a watch"]; got != 1 {
			t.Errorf("ignored %v", m.Status().Ignored)
		}
		m.stop()
		if got := r.consumers(); len(got) != 0 || r.Watchers() != 0 {
			t.Errorf("consumers %v, %d watches", got, r.Watchers())
		}
	})
}

// V: reconnecting ran hot, and its goroutines were never ended. Here the waits
// grow, the mirror goes on meanwhile, and a consumer that is gone is registered
// anew.
func TestDefectV_ReconnectingIsPatient(t *testing.T) {
	bubble(t, prompt, func(r *rig) {
		cart := r.many("cart", 0, 1)
		r.Inject(standin.Watch, standin.FailWith(standin.Forbidden), 0)
		m := r.mirror(r.watched())
		r.pass(10 * time.Minute)
		if got := r.Requests(standin.Watch); got < 5 || got > 25 {
			t.Errorf("%d tries in ten minutes", got)
		}
		m.is(source.StateLive, "")
		if got := strings.Count(r.log.String(), "a watch ended"); got != 1 {
			t.Errorf("logged %d times:\n%s", got, r.log)
		}
		r.Repair()
		r.pass(2 * time.Minute)
		if got := r.Watchers(); got != 1 {
			t.Fatalf("%d watches", got)
		}
		for range 3 {
			r.Unregister(r.Register(standin.Service{App: "shop", Name: "isthmus-watch-one.sc", Version: "0.0.1"}))
			r.DropWatchers()
			r.pass(20 * time.Second)
			if got := r.Watchers(); got != 1 {
				t.Fatalf("%d watches after the consumer was removed:\n%s", got, r.log)
			}
		}
		r.instance(cart, "new", "10.0.0.2:8080")
		r.pass(soon)
		m.wants("cart at default//shop/cart: http-8080", "cart/cart-000 = 10.0.0.1", "cart/new = 10.0.0.2")
	})
}

// The watch of an app ends with its last service.
func TestWatchesEndWithTheirApp(t *testing.T) {
	bubble(t, prompt, func(r *rig) {
		r.many("cart", 0, 1)
		id := r.Register(standin.Service{Environment: "testing", App: "old", Name: "last"})
		r.mirror(r.watched())
		r.settle()
		r.Unregister(id)
		r.rounds(4)
		if got := r.consumers(); !slices.Equal(got, []string{"/shop/isthmus-watch-one.sc"}) || r.Watchers() != 1 {
			t.Errorf("consumers %v, %d watches", got, r.Watchers())
		}
	})
}

// With a service the registry forgets who watches it: one that
// comes back is followed at once all the same.
func TestServicesThatComeBackAreWatched(t *testing.T) {
	bubble(t, prompt, func(r *rig) {
		r.many("cart", 0, 1)
		users := r.service("", "users", "1.0.0")
		m := r.mirror(r.watched())
		r.settle()
		r.Unregister(users)
		r.rounds(4)
		users = r.service("", "users", "1.0.0")
		r.settle()
		for n := range 5 {
			r.instance(users, "u", fmt.Sprintf("10.0.1.%d:80", n+1))
			r.pass(soon)
			m.wants("cart at default//shop/cart: http-8080", "cart/cart-000 = 10.0.0.1",
				"users at default//shop/users: http-80", fmt.Sprintf("users/u = 10.0.1.%d", n+1))
		}
	})
}

// So is one that comes back so soon that no list lacks it, from the next audit on.
func TestServicesThatComeBackSoonAreWatched(t *testing.T) {
	bubble(t, prompt, func(r *rig) {
		r.many("cart", 0, 1)
		c := r.watched()
		c.Audit = time.Minute
		m := r.mirror(c)
		r.settle()
		users := r.service("", "users", "1.0.0")
		r.settle()
		r.Unregister(users)
		r.pass(100 * time.Millisecond)
		users = r.service("", "users", "1.0.0")
		r.pass(2 * time.Minute)
		for n := range 5 {
			r.instance(users, "u", fmt.Sprintf("10.0.1.%d:80", n+1))
			r.pass(soon)
			m.wants("cart at default//shop/cart: http-8080", "cart/cart-000 = 10.0.0.1",
				"users at default//shop/users: http-80", fmt.Sprintf("users/u = 10.0.1.%d", n+1))
		}
	})
}

// A watch of which nothing happens stays open, however long that lasts: the
// registry pings, and answers no ping as others do.
func TestQuietWatchesStayOpen(t *testing.T) {
	bubble(t, prompt, func(r *rig) {
		r.many("cart", 0, 1)
		r.mirror(r.watched())
		r.pass(time.Hour)
		if got := r.Requests(standin.Watch); got != 1 || r.Watchers() != 1 {
			t.Errorf("a watch was opened %d times, %d are open:\n%s", got, r.Watchers(), r.log)
		}
	})
}

// A websocket that stays up, and brings no event, delays nothing beyond the next round.
func TestRoundsFindChangesWithoutEvents(t *testing.T) {
	bubble(t, prompt, func(r *rig) {
		cart := r.many("cart", 0, 1)
		m := r.mirror(r.watched())
		r.settle()
		defer r.HoldEvents()()
		for n := range 10 {
			r.pass(time.Minute)
			r.instance(cart, "new", fmt.Sprintf("10.0.1.%d:8080", n+1))
			r.pass(poll * 11 / 10)
			m.wants("cart at default//shop/cart: http-8080", "cart/cart-000 = 10.0.0.1", fmt.Sprintf("cart/new = 10.0.1.%d", n+1))
		}
		if got := r.Requests(standin.Watch); got != 1 || r.Watchers() != 1 {
			t.Errorf("a watch was opened %d times, %d are open:\n%s", got, r.Watchers(), r.log)
		}
	})
}

// When somebody removes the consumer of a watch, the registry pings no more: the
// watch is given up, and the consumer registered anew.
func TestRemovedConsumersComeBack(t *testing.T) {
	bubble(t, prompt, func(r *rig) {
		cart := r.many("cart", 0, 1)
		m := r.mirror(r.watched())
		r.pass(5 * time.Minute)
		r.Unregister(r.Register(standin.Service{App: "shop", Name: "isthmus-watch-one.sc", Version: "0.0.1"}))
		r.pass(2 * time.Minute)
		for n := range 5 {
			r.instance(cart, "new", fmt.Sprintf("10.0.1.%d:8080", n+1))
			r.pass(soon)
			m.wants("cart at default//shop/cart: http-8080", "cart/cart-000 = 10.0.0.1", fmt.Sprintf("cart/new = 10.0.1.%d", n+1))
		}
	})
}
