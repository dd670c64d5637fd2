package envoy

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output/envoy/leds"
	"github.com/isthmus-mesh/isthmus/output/envoy/names"
)

// emptied has a service in three collections, of which two lose their only members. An
// Envoy has all of them before if it is early, and asks for them only then if it is not.
// It NACKs every message that has a member. After the check it NACKs nothing more, and
// ends with what it should have.
func emptied(t *testing.T, early bool, check func(e *foldEnvoy)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		h := &foldHistory{services: map[string]*foldService{}}
		h.make(1, leds.Limits{Changes: 1000, Weight: 1000})
		h.serve()
		defer h.end()
		defer func() {
			if text, broken := recover().(foldBroken); broken {
				t.Error(string(text))
			}
		}()
		h.populate()
		s := h.services["x.com"]
		for n, zone := range []string{"", "a", "b", "a"} {
			s.endpoints[n] = model.Endpoint{Address: fmt.Sprintf("10.0.0.%d", n), Weight: 1, Locality: model.Locality{Region: "r", Zone: zone}, Health: model.Healthy}
		}
		e := h.envoys[0]
		h.publish()
		if early {
			h.settle()
		}
		delete(s.endpoints, 0)
		delete(s.endpoints, 2)
		h.touch() // with them, so that the removals come in a message that is NACKed
		e.connect()
		e.turn(true)
		check(e)
		h.settle()
	})
}

// Envoy NACKs a message for a member that is in it, and keeps those that are gone by it. They
// are gone once they come without a member, before anything changes.
func TestMembersAreGoneThoughOthersAreNACKed(t *testing.T) {
	emptied(t, true, func(e *foldEnvoy) {
		has := maps.Clone(e.clusters[names.Cluster("x.com", 80)].active.effective)
		maps.DeleteFunc(has, func(at, _ string) bool { return strings.HasPrefix(at, "r/a/ ") })
		if len(has) > 0 {
			t.Errorf("it has %v still", has)
		}
	})
}

// A collection without members is asked for together with one whose members are NACKed.
// It is answered, before anything changes.
func TestEmptyCollectionsAreAnsweredThoughOthersAreNACKed(t *testing.T) {
	emptied(t, false, func(e *foldEnvoy) {
		impl := e.clusters[names.Cluster("x.com", 80)].active
		for _, g := range impl.assignment.Endpoints {
			l := impl.locals[g.GetLedsClusterLocalityConfig().String()]
			if zone := g.GetLocality().GetZone(); l.ready != (zone != "a") || !l.givenUp {
				t.Errorf("in zone %q the collection was answered: %t, another NACKed: %t", zone, l.ready, l.givenUp)
			}
		}
	})
}
