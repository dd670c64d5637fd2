package istio

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/test/testkit/kubeapi"
	"github.com/isthmus-mesh/isthmus/test/testkit/shop"
)

// claims says who serves which port where, and who is there at all, by object.
type claims map[string]map[string]bool

// claimsOf reads what objects of the API server say.
func claimsOf(objects map[string]kubeapi.Object) claims {
	found := claims{}
	for path, o := range objects {
		spec, _ := o["spec"].(kubeapi.Object)
		ports, _ := spec["ports"].([]any)
		endpoints, _ := spec["endpoints"].([]any)
		found[path] = map[string]bool{}
		for _, e := range endpoints {
			e, _ := e.(kubeapi.Object)
			own, _ := e["ports"].(kubeapi.Object)
			found[path][fmt.Sprint(e["address"])] = true
			for _, p := range ports {
				p, _ := p.(kubeapi.Object)
				at, ok := own[fmt.Sprint(p["name"])]
				if !ok {
					at = p["number"]
				}
				found[path][fmt.Sprint(p["number"], " → ", e["address"], ":", at)] = true
			}
		}
	}
	return found
}

// all is what is said in any object.
func (c claims) all() map[string]bool {
	whole := map[string]bool{}
	for _, of := range c {
		maps.Copy(whole, of)
	}
	return whole
}

// history is what an API server had after each write.
type history struct {
	mu     sync.Mutex
	states []claims
	wrong  []string // what Istio would reject
}

// recorded keeps what the API server has from here on.
func recorded(api *kubeapi.Server) *history {
	h := &history{}
	api.After(func(objects map[string]kubeapi.Object) {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.states = append(h.states, claimsOf(objects))
		for _, o := range objects {
			if text, err := yaml.Marshal(o); err != nil {
				h.wrong = append(h.wrong, err.Error())
			} else {
				h.wrong = append(h.wrong, istioSays(string(text))...)
			}
		}
	})
	return h
}

// take returns what was recorded since it was called last.
func (h *history) take() (states []claims, wrong []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	states, wrong = h.states, h.wrong
	h.states, h.wrong = nil, nil
	return states, wrong
}

// changed are the objects that differ, or are in one of two states only.
func changed(before, after claims) (paths []string) {
	for _, path := range slices.Compact(slices.Sorted(maps.Keys(eitherOf(before, after)))) {
		if !maps.Equal(before[path], after[path]) || (before[path] == nil) != (after[path] == nil) {
			paths = append(paths, path)
		}
	}
	return paths
}

func eitherOf(a, b claims) claims {
	both := maps.Clone(a)
	maps.Copy(both, b)
	return both
}

// crossing reports whether no order of single writes could do: there are objects
// each of which takes in something that the next one loses, in a circle.
func crossing(before, after claims) bool {
	loses := map[string]map[string]bool{} // by object, who takes in what it loses
	for from, had := range before {
		loses[from] = map[string]bool{}
		for to, has := range after {
			for claim := range has {
				address := claim[strings.LastIndex(claim, " ")+1:]
				address, _, _ = strings.Cut(address, ":")
				if to != from && before[to] != nil && after[from] != nil && !before[to][claim] && touches(had, after[from], address) {
					loses[from][to] = true
				}
			}
		}
	}
	for len(loses) > 0 {
		free := slices.DeleteFunc(slices.Collect(maps.Keys(loses)), func(from string) bool {
			for to := range loses[from] {
				if loses[to] != nil {
					return true
				}
			}
			return false
		})
		if len(free) == 0 {
			return true
		}
		for _, path := range free {
			delete(loses, path)
		}
	}
	return false
}

// touches reports whether an object loses something of an address.
func touches(had, has map[string]bool, address string) bool {
	for claim := range had {
		if !has[claim] && (claim == address || strings.Contains(claim, " "+address+":")) {
			return true
		}
	}
	return false
}

// Whoever is in a service before and after a change is in it all the time,
// and so is each port that is served at the same place: whatever changes of the
// ports that endpoints serve, and so of the objects they are in. Everything
// that is written meanwhile Istio takes, and an object is written twice only
// where there is no other way.
func TestNobodyIsAbsentWhileMoving(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		api := kubeapi.New()
		defer api.Close()
		r := newRegistry("sc")
		r.listed("sc")
		size := rapid.IntRange(1, 4).Draw(rt, "shard size")
		w := start(t, api, r, func(c *Config, _ *Options) { c.ShardSize = size })
		defer w.stop()
		h := recorded(api)
		r.say(shop.Service("sc", "a.example"))
		rests(t, w, r, api)
		h.take()
		present := map[string]bool{}
		before := claims{}
		for range rapid.IntRange(2, 5).Draw(rt, "changes") {
			events := drawMoves(rt, present)
			r.say(events...)
			rests(t, w, r, api)
			states, wrong := h.take()
			if len(wrong) > 0 {
				rt.Fatalf("Istio would reject: %v", wrong)
			}
			if len(states) == 0 {
				continue
			}
			after := states[len(states)-1]
			checkPresence(rt, before, states)
			if objects := changed(before, after); len(states) > len(objects) && !crossing(before, after) {
				rt.Fatalf("%d writes for %d objects that have changed:\n%v\n%v", len(states), len(objects), before, after)
			}
			before = after
		}
	})
}

// rests waits until what was said last is written.
func rests(t *testing.T, w *running, r *registry, api *kubeapi.Server) {
	t.Helper()
	await(t, "the change to be written", func() error {
		_, pending := w.written.Size()
		if s := w.Status(); pending > 0 || s.Pending > 0 || len(s.Waiting) > 0 || !s.Leading {
			return fmt.Errorf("%d changes and %d keys are pending, waiting for %v, failing: %v", pending, s.Pending, s.Waiting, s.Failing)
		}
		service, _ := r.builder.Snapshot().Service(catalog.ServiceKey{Namespace: "shop", Host: "a.example"})
		is, want := claimsOf(api.Everything()).all(), map[string]bool{}
		for _, port := range service.Ports {
			for e := range service.Endpoints(port.Number).All() {
				want[fmt.Sprintf("%d → %s:%d", port.Number, e.Address, e.Port)], want[e.Address] = true, true
			}
		}
		if !maps.Equal(is, want) {
			return fmt.Errorf("%v is written, want %v", is, want)
		}
		return nil
	})
}

// drawMoves has some of the endpoints come, go and serve other ports than before.
func drawMoves(t *rapid.T, present map[string]bool) (events []model.Event) {
	for i := range 8 {
		name := fmt.Sprintf("i-%d", i)
		event := shop.Instance("sc", "a.example", name).(model.Upsert)
		switch what := rapid.SampledFrom([]string{"stay", "stay", "serve", "serve", "serve", "go"}).Draw(t, name); {
		case what == "go" && present[name]:
			delete(present, name)
			events = append(events, model.Delete{Record: event.Record})
		case what == "serve":
			present[name] = true
			own := map[string]uint32{}
			for _, port := range rapid.SampledFrom([][]string{{"http"}, {"grpc"}, {"http", "grpc"}}).Draw(t, name+" serves") {
				own[port] = rapid.SampledFrom([]uint32{80, 90, 8080, 8081}).Draw(t, name+" at")
			}
			// Two may be of one machine.
			event.Record.Spec = model.Endpoint{Address: fmt.Sprintf("10.0.0.%d", i%6), Exact: true, Ports: model.MapOf(own)}
			events = append(events, event)
		}
	}
	return events
}

func checkPresence(t *rapid.T, before claims, states []claims) {
	first, last := before.all(), states[len(states)-1].all()
	for i, state := range states {
		now := state.all()
		for claim := range first {
			if last[claim] && !now[claim] {
				t.Fatalf("after write %d of %d, %s is absent:\nbefore: %v\nthen: %v", i+1, len(states), claim, before, states)
			}
		}
	}
}

// own is an instance that serves some ports only, each where it says.
func own(host, address string, ports map[string]uint32) model.Event {
	return shop.InstanceOf("sc", host, model.Endpoint{Address: address, Exact: true, Ports: model.MapOf(ports)})
}

// What changes in one object is one write.
func TestAnOrdinaryChangeIsOneWrite(t *testing.T) {
	t.Parallel()
	api, r := newAPI(t), newRegistry("sc")
	both := map[string]uint32{"http": 80, "grpc": 90}
	r.say(shop.Service("sc", "a.example"), own("a.example", "10.0.0.1", both), own("a.example", "10.0.0.2", both),
		own("a.example", "10.0.0.3", map[string]uint32{"http": 80}), own("a.example", "10.0.0.4", map[string]uint32{"http": 80}))
	r.listed("sc")
	w := start(t, api, r, nil)
	settled(t, w)
	h := recorded(api)
	for name, test := range map[string]struct {
		events []model.Event
		writes int
	}{
		"one comes":                         {[]model.Event{own("a.example", "10.0.0.5", both)}, 1},
		"one goes":                          {[]model.Event{shop.NoInstance("sc", "a.example", "10.0.0.2")}, 1},
		"one listens elsewhere":             {[]model.Event{own("a.example", "10.0.0.1", map[string]uint32{"http": 8080, "grpc": 90})}, 1},
		"one moves to another object":       {[]model.Event{own("a.example", "10.0.0.4", both)}, 2},
		"of two objects, one each is added": {[]model.Event{own("a.example", "10.0.0.6", both), own("a.example", "10.0.0.7", map[string]uint32{"http": 80})}, 2},
	} {
		r.say(test.events...)
		rests(t, w, r, api)
		if states, _ := h.take(); len(states) != test.writes {
			t.Errorf("%s: %d writes, want %d", name, len(states), test.writes)
		}
	}
}

// An endpoint whose new object is rejected stays in its old one, where everything
// else is brought up to date nevertheless; and none is written again and again.
func TestWhoeverCannotMoveStays(t *testing.T) {
	t.Parallel()
	api, r := newAPI(t), newRegistry("sc")
	both, some := map[string]uint32{"http": 80, "grpc": 90}, map[string]uint32{"http": 80}
	r.say(shop.Service("sc", "a.example"), own("a.example", "10.0.0.1", both), own("a.example", "10.0.0.2", both), own("a.example", "10.0.0.3", some))
	r.listed("sc")
	w := start(t, api, r, nil)
	settled(t, w)
	partial := ""
	for _, write := range api.Writes() {
		if path := strings.TrimPrefix(write, "PATCH "); path != entries+"a.example" {
			partial = path
		}
	}
	var tries atomic.Int32
	api.Reject(func(verb, path string) *kubeapi.Rejection {
		if verb != http.MethodPatch || !strings.HasSuffix(path, partial) {
			return nil
		}
		tries.Add(1)
		return &kubeapi.Rejection{Code: http.StatusForbidden, Reason: "Forbidden", Message: "not this one"}
	})
	r.say(own("a.example", "10.0.0.1", some), shop.NoInstance("sc", "a.example", "10.0.0.2"))
	wants(t, api, "a.example", "10.0.0.1")
	fails(t, w, "ServiceEntry shop/a.example", "not this one")
	written := len(api.Writes())
	await(t, "more tries", func() error {
		if n := tries.Load(); n < 3 {
			return fmt.Errorf("%d tries", n)
		}
		return nil
	})
	if writes := api.Writes(); len(writes) > written {
		t.Errorf("written again: %v", writes[written:])
	}
	api.Reject(nil)
	r.say(own("a.example", "10.0.0.4", some))
	wants(t, api, "a.example", "")
	settled(t, w)
	if all := claimsOf(map[string]kubeapi.Object{"": api.Get(partial)}).all(); !all["10.0.0.1"] || !all["10.0.0.3"] || !all["10.0.0.4"] {
		t.Errorf("written: %v", all)
	}
}

// An object that cannot be created keeps nobody in another one who is gone: only
// those stay there who are to pass into it. New ones come as well.
func TestRejectedCreationHoldsUpNobodyElse(t *testing.T) {
	t.Parallel()
	api, r := newAPI(t), newRegistry("sc")
	both, some := map[string]uint32{"http": 80, "grpc": 90}, map[string]uint32{"http": 80}
	r.say(shop.Service("sc", "a.example"), own("a.example", "10.0.0.1", both), own("a.example", "10.0.0.2", both))
	r.listed("sc")
	w := start(t, api, r, nil)
	settled(t, w)
	api.Reject(func(verb, path string) *kubeapi.Rejection {
		if verb != http.MethodPatch || strings.HasSuffix(path, "/a.example") {
			return nil
		}
		return &kubeapi.Rejection{Code: http.StatusForbidden, Reason: "Forbidden", Message: "not this one"}
	})
	r.say(own("a.example", "10.0.0.1", some), shop.NoInstance("sc", "a.example", "10.0.0.2"), own("a.example", "10.0.0.3", both))
	wants(t, api, "a.example", "10.0.0.3 10.0.0.1")
	fails(t, w, "ServiceEntry shop/a.example", "not this one")
	r.say(shop.NoInstance("sc", "a.example", "10.0.0.1"))
	wants(t, api, "a.example", "10.0.0.3")
	settled(t, w)
}

// The same of an object that is to go: it stays for those who are to pass into
// one that is rejected, and for nobody else.
func TestWhatIsToGoKeepsOnlyThoseWhoMove(t *testing.T) {
	t.Parallel()
	api, r := newAPI(t), newRegistry("sc")
	both, some := map[string]uint32{"http": 80, "grpc": 90}, map[string]uint32{"http": 80}
	r.say(shop.Service("sc", "a.example"), own("a.example", "10.0.0.1", some), own("a.example", "10.0.0.2", some))
	r.listed("sc")
	w := start(t, api, r, nil)
	settled(t, w)
	partial := ""
	for _, write := range api.Writes() {
		if path := strings.TrimPrefix(write, "PATCH "); path != entries+"a.example" {
			partial = path
		}
	}
	partial = strings.TrimPrefix(partial, entries)
	wants(t, api, partial, "10.0.0.1 10.0.0.2")
	api.Reject(func(verb, path string) *kubeapi.Rejection {
		if verb != http.MethodPatch || !strings.HasSuffix(path, "/a.example") {
			return nil
		}
		return &kubeapi.Rejection{Code: http.StatusForbidden, Reason: "Forbidden", Message: "not this one"}
	})
	r.say(own("a.example", "10.0.0.1", both), shop.NoInstance("sc", "a.example", "10.0.0.2"))
	fails(t, w, "ServiceEntry shop/a.example", "not this one")
	wants(t, api, partial, "10.0.0.1")
	r.say(shop.NoInstance("sc", "a.example", "10.0.0.1"))
	wants(t, api, partial, "no object")
	settled(t, w)
}

// Whatever objects are rejected: who is in the service before and after a change
// is in it all the time, and who has left it is in no object that is not rejected.
func TestRejectionsKeepNobodyWhoIsGone(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		api := kubeapi.New()
		defer api.Close()
		r := newRegistry("sc")
		r.listed("sc")
		size := rapid.IntRange(1, 4).Draw(rt, "shard size")
		w := start(t, api, r, func(c *Config, _ *Options) { c.ShardSize = size })
		defer w.stop()
		r.say(shop.Service("sc", "a.example"))
		present := map[string]bool{}
		r.say(drawMoves(rt, present)...)
		rests(t, w, r, api)
		h := recorded(api)
		before := claimsOf(api.Everything())
		odd := rapid.IntRange(0, 1).Draw(rt, "rejected are")
		rejected := func(path string) bool { return int(path[len(path)-1])%2 == odd }
		api.Reject(func(verb, path string) *kubeapi.Rejection {
			if verb == http.MethodDelete || !rejected(path) {
				return nil
			}
			return &kubeapi.Rejection{Code: http.StatusForbidden, Reason: "Forbidden", Message: "not this one"}
		})
		r.say(drawMoves(rt, present)...)
		service, _ := r.builder.Snapshot().Service(catalog.ServiceKey{Namespace: "shop", Host: "a.example"})
		there := map[string]bool{}
		for e := range service.Endpoints(80).All() {
			there[e.Address] = true
		}
		for e := range service.Endpoints(90).All() {
			there[e.Address] = true
		}
		await(t, "those who are gone to go", func() error {
			for path, said := range claimsOf(api.Everything()) {
				for claim := range said {
					if !rejected(path) && !strings.Contains(claim, " ") && !there[claim] {
						return fmt.Errorf("%s has %s still; failing: %v", path, claim, w.Status().Failing)
					}
				}
			}
			return nil
		})
		states, _ := h.take()
		for _, state := range states {
			for address := range before.all() {
				if !strings.Contains(address, " ") && there[address] && !state.all()[address] {
					rt.Fatalf("%s is absent:\nbefore: %v\nthen: %v", address, before, states)
				}
			}
		}
		api.Reject(nil)
		r.say(own("a.example", "10.0.0.9", map[string]uint32{"http": 80}), own("a.example", "10.0.0.8", map[string]uint32{"grpc": 90}))
		rests(t, w, r, api)
	})
}
