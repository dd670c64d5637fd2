package azure_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/isthmus-mesh/isthmus/source"
	"github.com/isthmus-mesh/isthmus/source/hold"
	"github.com/isthmus-mesh/isthmus/source/machines"
	"github.com/isthmus-mesh/isthmus/store"
)

// two are services on a set each.
func two() (*azureOf, []machines.Service) {
	a := newAzure()
	a.sets["web"], a.sets["shop"] = set{members: members("10.0.0.1", "10.0.0.2")}, set{members: members("10.1.0.1")}
	return a, []machines.Service{on("web.example", sets+"web"), on("shop.example", sets+"shop")}
}

// only has requests for a set answered otherwise.
func only(name, api string, page int, otherwise answer) func(r request) answer {
	return func(r request) answer {
		if strings.Contains(r.URL.Path, "/virtualMachineScaleSets/"+name) && strings.Contains(r.api, api) && r.page >= page {
			return otherwise
		}
		return nil
	}
}

// A part of a set that cannot be read leaves the set as it was, with the reason and its
// age, whatever becomes of it meanwhile; other sets go on.
func TestPartThatFailsKeepsItsMachines(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]struct {
		fault  func(r request) answer
		reason string
	}{
		"the set":                      {only("web", "ScaleSetsClient.Get", 0, status(500, "InternalServerError")), "500 InternalServerError"},
		"the second page of instances": {only("web", "ScaleSetVMsClient", 1, status(503, "ServiceUnavailable")), "instances: management.azure.com"},
		"the interfaces":               {only("web", "InterfacesClient", 0, status(500, "InternalServerError")), "network interfaces: management.azure.com"},
		"the second page of them":      {only("web", "InterfacesClient", 1, status(404, "NotFound")), "404 NotFound"},
		"rights":                       {only("web", "ScaleSetVMsClient", 0, status(403, "AuthorizationFailed")), "give the identity the role Reader"},
		"an answer":                    {only("web", "ScaleSetVMsClient", 0, hang), "deadline exceeded"},
		"a page that is none":          {only("web", "ScaleSetVMsClient", 0, body("<html>")), "invalid character"},
		"a page without a list":        {only("web", "ScaleSetVMsClient", 0, body("{}")), "no list"},
		"a page of empty items":        {only("web", "InterfacesClient", 0, body(`{"value": [null]}`)), "empty item"},
		"instances of another set":     {only("web", "ScaleSetVMsClient", 0, body(fmt.Sprintf(`{"value": [{"id": %q, "properties": {}}]}`, instanceURI("shop", "0")))), "none of the set"},
		"another set":                  {only("web", "ScaleSetsClient.Get", 0, body(fmt.Sprintf(`{"id": %q}`, sets+"shop"))), "instead"},
		"a list without end":           {only("web", "ScaleSetVMsClient", 0, again), "more than 10000 pages"},
		"an answer without end":        {only("web", "ScaleSetVMsClient", 0, func(r request) (*http.Response, error) { return endless(r), nil }), "larger than 64 MiB"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, services := two()
			inBubble(t, a, func(m *mirrored) {
				a.fails(fault.fault)
				a.change(func() {
					a.sets["web"], a.sets["shop"] = set{members: members("10.0.0.2", "10.0.0.3")}, set{members: members("10.1.0.2", "10.1.0.3")}
				})
				began := time.Now()
				m.rounds(4)
				m.mustBe(source.StateLive)
				m.mustHave("web.example", "10.0.0.1", "10.0.0.2")
				m.mustHave("shop.example", "10.1.0.2", "10.1.0.3")
				m.mustReject(lower(sets+"web"), fault.reason, "cannot be read since", began.UTC().Format("2006-01-02T15:04"), "its 2 machines stay")

				a.fails(nil)
				m.rounds(4)
				m.mustHave("web.example", "10.0.0.2", "10.0.0.3")
				if n := len(m.supervisor.Status().Rejected); n != 0 {
					t.Errorf("%d things are rejected", n)
				}
			}, services...)
		})
	}
}

// again is a page after which there is another one.
func again(r request) (*http.Response, error) {
	return text(http.StatusOK, fmt.Sprintf(`{"value": [], "nextLink": %q}`, r.URL))(r), nil
}

// endless is an answer that does not end.
func endless(r request) *http.Response {
	response := text(http.StatusOK, "")(r)
	response.Body, response.ContentLength = zeros{}, -1
	return response
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

func (zeros) Close() error { return nil }

// A list that several services need fails all of them.
func TestListOfInterfacesFailsForAllWhoNeedIt(t *testing.T) {
	t.Parallel()
	a := newAzure()
	a.machines["vm"], a.sets["f"], a.sets["u"] = machine{address: "10.0.0.1"}, set{flexible: true, members: members("10.1.0.1")}, set{members: members("10.2.0.1")}
	inBubble(t, a, func(m *mirrored) {
		a.fails(func(r request) answer {
			if r.api == "InterfacesClient.NewListPager" && r.page == 1 {
				return status(502, "BadGateway")
			}
			return nil
		})
		a.change(func() {
			a.machines["vm"], a.sets["f"], a.sets["u"] = machine{address: "10.0.0.9"}, set{flexible: true, members: members("10.1.0.9")}, set{members: members("10.2.0.9")}
		})
		m.rounds(3)
		m.mustHave("vm.example", "10.0.0.1")
		m.mustHave("f.example", "10.1.0.1")
		m.mustHave("u.example", "10.2.0.9")
		m.mustReject(lower(vms+"vm"), "network interfaces", "502")
		m.mustReject(lower(sets+"f"), "network interfaces", "502")
	}, on("vm.example", vms+"vm"), on("f.example", sets+"f"), on("u.example", sets+"u"))
}

// A pause that Azure asks for is kept, be it longer than the SDK waits, for all of the
// subscription, and for no other.
func TestPausesAreKept(t *testing.T) {
	t.Parallel()
	for after, pause := range map[string]time.Duration{"5": 5 * time.Second, "40": 40 * time.Second, "120": 120 * time.Second, "700": 700 * time.Second, "": time.Minute, "99999": time.Hour} {
		t.Run(after, func(t *testing.T) {
			t.Parallel()
			a, services := two()
			a.machines["far"] = machine{address: "10.9.0.1"}
			services = append(services, on("far.example", strings.Replace(vms, subscription, other, 1)+"far"))
			inBubble(t, a, func(m *mirrored) {
				a.fails(func(r request) answer {
					if strings.Contains(r.URL.Path, other) {
						return nil
					}
					return status(429, "TooManyRequests", "Retry-After", after)
				})
				a.asked("")
				m.rounds(2)
				throttled := a.asked("ScaleSet")
				m.rounds(2)
				if more := a.asked("ScaleSet"); pause > 70*time.Second && (throttled > 2 || more > 0) {
					t.Errorf("the subscription is asked %d times at first, and %d times more during its pause", throttled, more)
				}
				m.mustBe(source.StateLive)
				m.mustHave("far.example", "10.9.0.1")
				m.mustHave("web.example", "10.0.0.1", "10.0.0.2")
				m.mustReject(lower(sets+"web"), "429", "its 2 machines stay")

				a.fails(nil)
				a.change(func() { a.sets["web"] = set{members: members("10.0.0.2", "10.0.0.3")} })
				m.pass(pause + 70*time.Second)
				m.mustHave("web.example", "10.0.0.2", "10.0.0.3")
			}, services...)
		})
	}
}

// If everything is throttled the source is stale, and asks once the pause is over.
func TestPauseOfEverything(t *testing.T) {
	t.Parallel()
	a, services := two()
	inBubble(t, a, func(m *mirrored) {
		a.fails(func(request) answer { return status(429, "TooManyRequests", "Retry-After", "300") })
		m.rounds(2)
		m.mustBe(source.StateStale, "429 TooManyRequests", "next attempt at")
		m.mustHave("web.example", "10.0.0.1", "10.0.0.2")
		a.asked("")
		a.fails(nil)
		m.pass(3 * time.Minute)
		if n := a.asked(""); n != 0 {
			t.Errorf("Azure is asked %d times during the pause", n)
		}
		m.pass(2 * time.Minute)
		m.mustBe(source.StateLive)
	}, services...)
}

// Connections that stay up, and bring no answer, make the source stale within the next round, which
// tries each request three times.
func TestSilenceOfEverything(t *testing.T) {
	t.Parallel()
	a, services := two()
	inBubble(t, a, func(m *mirrored) {
		m.rounds(2)
		a.fails(func(request) answer { return hang })
		m.pass(33*time.Second + 3*20*time.Second + 10*time.Second)
		m.mustBe(source.StateStale, "deadline exceeded")
		m.pass(time.Hour)
		m.mustBe(source.StateStale, "deadline exceeded")
		m.mustHave("web.example", "10.0.0.1", "10.0.0.2")
		m.mustHave("shop.example", "10.1.0.1")
		a.fails(nil)
		a.change(func() { a.sets["web"] = set{members: members("10.0.0.2", "10.0.0.3")} })
		m.pass(4 * time.Minute)
		m.mustBe(source.StateLive)
		m.mustHave("web.example", "10.0.0.2", "10.0.0.3")
	}, services...)
}

// A set that Azure denies by its name has no machines, once it was denied twice. That is
// a drop like any other.
func TestSetThatIsDeleted(t *testing.T) {
	t.Parallel()
	a, services := two()
	inBubble(t, a, func(m *mirrored) {
		a.fails(only("web", "ScaleSetsClient.Get", 0, status(404, "ResourceNotFound")))
		m.rounds(1)
		m.mustHave("web.example", "10.0.0.1", "10.0.0.2")
		m.mustReject(lower(sets+"web"), "has no such resource")
		a.fails(nil)
		m.rounds(2)
		m.mustHave("web.example", "10.0.0.1", "10.0.0.2") // it was late, and is not counted on

		a.change(func() { delete(a.sets, "web") })
		m.rounds(3)
		m.mustBe(source.StateLive)
		m.mustHave("web.example")
		m.mustHave("shop.example", "10.1.0.1")
		m.mustNotice(lower(sets+"web"), "does not exist")

		a.change(func() { delete(a.sets, "shop") }) // all that is left
		m.rounds(2)
		m.mustBe(source.StateHeld)
		m.mustHave("shop.example", "10.1.0.1")
	}, services...)
}

// A subscription that is not there is a fault, and no deletion.
func TestOtherDenialsAreFaults(t *testing.T) {
	t.Parallel()
	a, services := two()
	inBubble(t, a, func(m *mirrored) {
		a.fails(only("web", "ScaleSetsClient.Get", 0, status(404, "SubscriptionNotFound")))
		m.rounds(8)
		m.mustHave("web.example", "10.0.0.1", "10.0.0.2")
		m.mustReject(lower(sets+"web"), "404 SubscriptionNotFound")
	}, services...)
}

// A list that lacks many machines is judged like that of any registry.
func TestDropIsHeld(t *testing.T) {
	t.Parallel()
	a := newAzure()
	var many []string
	for i := range 20 {
		many = append(many, fmt.Sprintf("10.0.0.%d", 100+i))
	}
	a.sets["web"] = set{members: members(many...)}
	inBubble(t, a, func(m *mirrored) {
		a.change(func() { a.sets["web"] = set{members: members(many[:5]...)} })
		m.rounds(1)
		m.mustBe(source.StateHeld)
		m.mustHave("web.example", many...)
		m.rounds(4)
		m.mustBe(source.StateLive)
		m.mustHave("web.example", many[:5]...)
	}, on("web.example", sets+"web"))
}

// After a restart what cannot be read stays as it is stored, and is said; what can be
// read goes on.
func TestRestartWhileAPartFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		into := store.NewMemory(store.Config{})
		a, services := two()
		first := mirror(t, into, a, nil, services...)
		first.mustHave("web.example", "10.0.0.1", "10.0.0.2")
		first.stop()
		a.fails(only("web", "InterfacesClient", 0, status(500, "InternalServerError")))
		a.change(func() {
			a.sets["web"], a.sets["shop"] = set{members: members("10.0.0.7")}, set{members: members("10.1.0.2")}
		})
		m := mirror(t, into, a, nil, services...)
		defer m.stop()
		m.rounds(4)
		m.mustHave("web.example", "10.0.0.1", "10.0.0.2")
		m.mustHave("shop.example", "10.1.0.2")
		m.mustReject("Service shop/web.example", "has not been read since the start", "500 InternalServerError")
		a.fails(nil)
		m.rounds(4)
		m.mustHave("web.example", "10.0.0.7")
	})
}

// After a restart, machines of which the cloud knows nothing stay as they are stored.
func TestRestartWhileNoStateIsKnown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		into := store.NewMemory(store.Config{})
		a, services := two()
		first := mirror(t, into, a, nil, services...)
		first.mustHave("web.example", "10.0.0.1", "10.0.0.2")
		first.stop()
		show := func(noView bool) func() {
			return func() {
				a.sets["web"] = set{members: []machine{{name: "0", address: "10.0.0.1", noView: noView}, {name: "1", address: "10.0.0.2", noView: noView}}}
			}
		}
		a.change(show(true))
		m := mirror(t, into, a, nil, services...)
		defer m.stop()
		m.rounds(2)
		m.mustHave("web.example", "10.0.0.1", "10.0.0.2")
		m.mustReject("Service shop/web.example", "has not been read since the start", "does not know the state")
		a.change(show(false))
		m.rounds(2)
		m.mustHave("web.example", "10.0.0.1", "10.0.0.2")
	})
}

// After a restart, a machine of which the cloud knows nothing stays as it is stored while
// others are known, and until it is known itself.
func TestRestartWhileOneStateIsNotKnown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		into := store.NewMemory(store.Config{})
		a, services := two()
		show := func(zero, one, two machine) {
			zero.name, zero.address, one.name, one.address, two.name, two.address = "0", "10.0.0.1", "1", "10.0.0.2", "2", "10.0.0.3"
			a.change(func() { a.sets["web"] = set{members: []machine{zero, one, two}} })
		}
		show(machine{}, machine{health: "healthy"}, machine{power: "stopped"})
		first := mirror(t, into, a, nil, services...)
		first.mustHave("web.example", "10.0.0.1", "10.0.0.2", "10.0.0.3 UNHEALTHY")
		first.stop()
		show(machine{noView: true}, machine{health: "healthy"}, machine{noView: true})
		m := mirror(t, into, a, nil, services...)
		defer m.stop()
		for range 3 {
			m.mustHave("web.example", "10.0.0.1", "10.0.0.2", "10.0.0.3 UNHEALTHY")
			m.rounds(2)
		}
		show(machine{power: "stopped"}, machine{health: "healthy"}, machine{})
		m.rounds(1)
		m.mustHave("web.example", "10.0.0.1 UNHEALTHY", "10.0.0.2", "10.0.0.3")
	})
}

// A service of which nothing is stored has the machines that can be read, and those that
// cannot are said. It is followed like that until all can be read.
func TestNewServiceWithAPartThatCannotBeRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		into := store.NewMemory(store.Config{})
		a, _ := two()
		both := on("both.example", sets+"web", sets+"shop")
		a.fails(only("web", "InterfacesClient", 0, status(500, "InternalServerError")))
		m := mirror(t, into, a, nil, both)
		defer func() { m.stop() }()
		m.rounds(1)
		m.mustBe(source.StateLive)
		m.mustHave("both.example", "10.1.0.1")
		m.mustReject(lower(sets+"web"), "has not been read since the start", "500 InternalServerError", "shop/both.example")
		a.change(func() { a.sets["shop"] = set{members: members("10.1.0.1", "10.1.0.2")} })
		m.rounds(2)
		m.mustHave("both.example", "10.1.0.1", "10.1.0.2")
		m.stop()

		// What an earlier run has stored may be more than what can be read now.
		m = mirror(t, into, a, nil, both)
		a.change(func() { a.sets["shop"] = set{members: members("10.1.0.3")} })
		m.rounds(2)
		m.mustHave("both.example", "10.1.0.1", "10.1.0.2")
		m.mustReject("Service shop/both.example", "has not been read since the start")
		a.fails(nil)
		m.rounds(3)
		m.mustHave("both.example", "10.0.0.1", "10.0.0.2", "10.1.0.3")
	})
}

// Azure is asked no sooner than it may be, however soon a drop that is held should be
// confirmed.
func TestHeldDropIsNotAskedForSooner(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a, services := two()
		hold := hold.Default()
		hold.For = 4 * time.Second
		m := mirrorHolding(t, store.NewMemory(store.Config{}), a, nil, hold, services...)
		defer m.stop()
		a.change(func() { a.sets["web"], a.sets["shop"] = set{}, set{} })
		m.rounds(1)
		m.mustBe(source.StateHeld)
		a.asked("")
		m.pass(28 * time.Second)
		if n := a.asked("ScaleSetVMsClient"); n > 2*len(services) { // each list has two pages
			t.Errorf("it is asked for %d pages in one pause", n)
		}
		m.rounds(3)
		m.mustBe(source.StateLive)
		m.mustHave("web.example")
	})
}

// A service that an object defines comes and goes while nothing may be asked, and that is
// said to be so all the while.
func TestServicesAreDefinedDuringAPause(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a, services := two()
		define := func(services ...machines.Service) *machines.Objects {
			o := &machines.Objects{Place: "azureresources"}
			for _, s := range services {
				o.Definitions = append(o.Definitions, machines.Definition{Service: s, Name: s.Host, Place: o.Place, Where: s.Host})
			}
			return o
		}
		var now atomic.Pointer[machines.Objects]
		now.Store(define(services...))
		m := mirror(t, store.NewMemory(store.Config{}), a, func(context.Context) machines.Objects { return *now.Load() })
		defer m.stop()
		a.fails(func(request) answer { return status(429, "TooManyRequests", "Retry-After", "3000") })
		m.rounds(2)
		m.mustBe(source.StateStale, "429 TooManyRequests")
		a.fails(nil)
		a.asked("")
		now.Store(define(services[0], on("new.example", sets+"web"), on("unread.example", sets+"late")))
		m.rounds(5)
		m.mustHave("shop.example")
		m.mustHave("new.example", "10.0.0.1", "10.0.0.2")
		m.mustHave("web.example", "10.0.0.1", "10.0.0.2")
		m.mustBe(source.StateStale, "429 TooManyRequests")
		if n := a.asked(""); n != 0 {
			t.Errorf("Azure is asked %d times during the pause", n)
		}
		m.pass(50 * time.Minute)
		m.mustBe(source.StateLive)
	})
}

// Services that objects define stay while the objects cannot be read, before and after a
// restart, and their machines are followed.
func TestObjectsThatCannotBeRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		into := store.NewMemory(store.Config{})
		a, services := two()
		all := machines.Objects{Place: "azureresources", Definitions: []machines.Definition{
			{Service: services[0], Name: "web", Place: "azureresources", Where: "AzureResource shop/web"},
		}}
		var now atomic.Pointer[machines.Objects]
		now.Store(&all)
		objects := func(context.Context) machines.Objects { return *now.Load() }
		first := mirror(t, into, a, objects, services[1])
		first.mustHave("web", "10.0.0.1", "10.0.0.2")
		away := machines.Objects{Place: "azureresources", Err: errors.New("the API server is away")}
		now.Store(&away)
		a.change(func() { a.sets["web"] = set{members: members("10.0.0.2", "10.0.0.3")} })
		first.rounds(2)
		first.mustBe(source.StateLive)
		if got := strings.Join(first.endpoints("web"), " "); !strings.Contains(got, "10.0.0.3") {
			t.Errorf("the machines are %s", got)
		}
		first.mustReject("azureresources", "the API server is away")
		first.stop()

		m := mirror(t, into, a, objects, services[1])
		m.rounds(2)
		if got := strings.Join(m.endpoints("web"), " "); !strings.Contains(got, "10.0.0.3") {
			t.Errorf("after a restart the machines are %s", got)
		}
		m.mustReject("azureresources", "the API server is away")
		now.Store(&all)
		m.rounds(2)
		m.mustHave("web", "10.0.0.2", "10.0.0.3")
		m.stop()

		// With objects alone nothing is known, and the source says so, but where there are
		// no such objects.
		now.Store(&away)
		alone := mirror(t, store.NewMemory(store.Config{}), a, objects)
		alone.mustBe(source.StateListing, "the API server is away")
		absent := away
		absent.Absent = true
		now.Store(&absent)
		alone.rounds(2)
		alone.mustBe(source.StateLive)
		alone.mustReject("azureresources", "the API server is away")
		alone.stop()
	})
}

// A panic while Azure is read, on whichever goroutine, ends the run alone.
func TestPanicEndsTheRunAlone(t *testing.T) {
	t.Parallel()
	a, services := two()
	inBubble(t, a, func(m *mirrored) {
		a.fails(func(r request) answer {
			if strings.Contains(r.api, "InterfacesClient") {
				panic("as asked for")
			}
			return nil
		})
		m.rounds(2)
		m.mustBe(source.StateStale, "as asked for")
		a.fails(nil)
		m.rounds(3)
		m.mustBe(source.StateLive)
		m.mustHave("web.example", "10.0.0.1", "10.0.0.2")
	}, services...)
}
