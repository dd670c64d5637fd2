package istio_test

import (
	"cmp"
	"net/http"
	"strings"
	"testing"

	"github.com/isthmus-mesh/isthmus/test/testkit/servicecenter"
)

const jsonType = "application/json; charset=UTF-8"

// faults are what goes wrong with a registry, each until it is fixed. The
// state that they bring the source to is "stale" unless it is in shown.
var faults = map[string]func(*servicecenter.Server){
	"errors":          always(servicecenter.Any, servicecenter.FailWith(servicecenter.Internal)),
	"bad-gateway":     always(servicecenter.Any, servicecenter.Answer(http.StatusBadGateway, "text/html", "<html>bad gateway</html>")),
	"silence":         always(servicecenter.Any, servicecenter.Hang()),
	"empty-body":      always(servicecenter.Any, servicecenter.Empty()),
	"garbage":         always(servicecenter.Any, servicecenter.Garbage()),
	"cut-off":         always(servicecenter.Any, servicecenter.CutOff(40)),
	"empty-list":      always(servicecenter.ListServices, servicecenter.Answer(http.StatusOK, jsonType, `{"services":[]}`)),
	"empty-find":      always(servicecenter.BatchFind, servicecenter.Answer(http.StatusOK, jsonType, `{}`)),
	"failed-find":     always(servicecenter.BatchFind, servicecenter.FailWith(servicecenter.BackendDown)),
	"half-of-a-batch": func(s *servicecenter.Server) { s.FailKeys(servicecenter.Internal, inHalf) },
	"empty-registry": func(s *servicecenter.Server) {
		s.Inject(servicecenter.ListServices, servicecenter.Answer(http.StatusOK, jsonType, `{"services":[]}`), 0)
		s.FailKeys(servicecenter.NoService, func(servicecenter.Key) bool { return true })
	},
}

var shown = map[string]string{
	"empty-list":      "live", // the finds say that the list is wrong
	"half-of-a-batch": "live", // the other half is
	"empty-registry":  "held",
}

func always(route servicecenter.Route, fault servicecenter.Fault) func(*servicecenter.Server) {
	return func(s *servicecenter.Server) { s.Inject(route, fault, 0) }
}

// inHalf is true for every second of many services, and for the one that is called.
func inHalf(k servicecenter.Key) bool {
	return k.Name == "reviews" || strings.HasSuffix(k.Name, "1") || strings.HasSuffix(k.Name, "3")
}

// TestRegistryFaultsTakeNothingAway has a registry fail in every way, while it
// is called and while it changes.
func TestRegistryFaultsTakeNothingAway(t *testing.T) {
	t.Parallel()
	for name, inject := range faults {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			port := freePort(t)
			one := startBackend(t, "one", "127.0.0.1:"+port)
			two := startBackend(t, "two", "127.0.0.2:"+port)
			api, registry := connect(t, shared), startRegistry(t)
			registry.Add("reviews", one.Addr.String())
			registry.AddMany("many", 20)
			b := api.Bridge(registry, "fault-"+name)
			i := serve(t, api, b)
			api.Settle(b)
			client := dial(t, istiod, b.namespace, b.host("reviews")+":"+port)
			client.AwaitAnswers("one")
			traffic := client.KeepCalling()

			inject(registry.Server)
			i.AwaitState(cmp.Or(shown[name], "stale"))
			registry.Add("reviews", two.Addr.String())
			registry.Drop("many-1")
			registry.Remove("many-2", registry.Services()["many-2"][0])
			registry.AwaitRequests(3)
			api.MustHaveDeletedAtMost(b.namespace, "many-1")

			registry.Repair()
			if shown[name] == "held" {
				i.Release(4) // the service that was dropped, its two endpoints, and another one
			}
			client.AwaitAnswers("one", "two")
			i.AwaitState("live")
			api.Settle(b)
			traffic.MustNotHaveFailed()
			api.MustHaveDeleted(b.namespace, "many-1")
		})
	}
}
