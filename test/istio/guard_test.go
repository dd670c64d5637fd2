package istio_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
)

// emptied is an Isthmus that keeps nothing on disk and was killed after it had
// written a fleet of 20 services. It was started again when the registry, which
// fails in nothing, listed a single one of them.
type emptied struct {
	*isthmus
	api      *api
	bridge   bridge
	registry *registry
	gone     map[string][]string // addresses by service
	writes   int                 // before it was started again
	began    time.Time           // when it was
}

func startEmptied(t *testing.T, hold string) *emptied {
	t.Helper()
	e := &emptied{api: connect(t, shared), registry: startRegistry(t), gone: map[string][]string{}}
	e.registry.AddMany("many", 20)
	e.bridge = e.api.Bridge(e.registry, "guard")
	e.bridge.alone, e.bridge.hold = true, hold
	e.isthmus = serve(t, e.api, e.bridge)
	e.api.AwaitMirror(e.bridge)
	e.Kill()
	for service, addresses := range e.registry.Services() {
		if service != "many-0" {
			e.gone[service] = addresses
			e.registry.Drop(service)
		}
	}
	e.writes = len(e.api.own(e.bridge.namespace))
	e.began = time.Now()
	e.Restart()
	return e
}

// AwaitHeld waits until it is shown what is held, and why.
func (e *emptied) AwaitHeld() {
	e.t.Helper()
	why := "the first listing of source legacy since the start lacks 38 of the 40 endpoints that are written here; " +
		"they are kept until 3 listings in a row that span " + e.bridge.hold + " lack them; if they are really gone, run: isthmus sources release legacy"
	await(e.t, "what the registry lacks to be held", func() error {
		w, err := e.writer()
		if err != nil {
			return err
		}
		if len(w.Held) != len(e.gone) {
			return fmt.Errorf("the writer is %+v", w)
		}
		for _, h := range w.Held {
			if h.Reason != why || h.Endpoints != 2 || h.Age == "" || !strings.HasPrefix(h.Object, "ServiceEntry "+e.bridge.namespace+"/many-") {
				return fmt.Errorf("it is held so: %+v", h)
			}
		}
		return nil
	})
}

// AwaitNoneHeld waits until nothing is held, and the source is as it should be.
func (e *emptied) AwaitNoneHeld() {
	e.t.Helper()
	await(e.t, "nothing to be held", func() error {
		w, err := e.writer()
		if err == nil && len(w.Held) > 0 {
			err = fmt.Errorf("the writer is %+v", w)
		}
		return err
	})
	e.AwaitState("live")
}

// TestNearlyEmptyRegistryAfterRestartTakesNothingAway has the registry list
// everything again some time after the restart.
func TestNearlyEmptyRegistryAfterRestartTakesNothingAway(t *testing.T) {
	t.Parallel()
	e := startEmptied(t, "1h0m0s")
	e.AwaitHeld()
	held := e.bridge.host(slices.Min(slices.Collect(maps.Keys(e.gone))))
	e.api.awaitEvents(e.bridge.namespace, held, "Warning Held x1: ")
	e.registry.Add("many-0", "10.9.9.9:80") // what is there is written
	e.api.awaitMarker(e.bridge)
	e.registry.AwaitRequests(10)
	e.AwaitHeld()
	for service, addresses := range e.gone {
		e.registry.Add(service, addresses...)
	}
	e.AwaitNoneHeld()
	e.api.Settle(e.bridge)
	e.api.awaitEvents(e.bridge.namespace, held, "Normal UpToDate x1: ", "Warning Held x1: ")
	e.api.MustHaveDeleted(e.bridge.namespace)
	// Those that are back have other ids than before.
	if writes := e.api.own(e.bridge.namespace)[e.writes:]; len(writes) != 1+2+len(e.gone) {
		t.Errorf("a change, two markers and %d services that are back led to %d writes: %+v", len(e.gone), len(writes), writes)
	}
}

// TestNearlyEmptyRegistryAfterRestartIsAppliedInTheEnd has it list nothing more.
func TestNearlyEmptyRegistryAfterRestartIsAppliedInTheEnd(t *testing.T) {
	t.Parallel()
	e := startEmptied(t, "10s")
	e.api.AwaitMirror(e.bridge)
	if took := time.Since(e.began); took < 10*time.Second {
		t.Errorf("it was applied after %s", took)
	}
	e.AwaitNoneHeld()
	e.api.Settle(e.bridge)
	e.api.MustHaveDeleted(e.bridge.namespace, slices.Sorted(maps.Keys(e.gone))...)
}
