package kubernetes_test

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/isthmus-mesh/isthmus/model"
)

// ledger is kept of a namespace, beside what Isthmus makes of it: what was written, and
// which pods may not be missing because they have stood in some slice since everything
// was last known to have come through.
type ledger struct {
	namespace string

	mu      sync.Mutex // guards the rest
	world   *world
	records map[model.Ref]model.Record // as a watch brings them
	steady  map[thing]bool
	missing []string
}

// thing is a pod of a Service.
type thing struct{ service, pod string }

func newLedger(namespace string) *ledger {
	return &ledger{namespace: namespace, world: newWorld(), records: map[model.Ref]model.Record{}, steady: map[thing]bool{}}
}

func (a *ledger) now() *world {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.world
}

// comes says what is about to be written: what is not certain any more may be missing
// from now on. A Service and its slices are read apart, so nothing is certain of one that
// has other ports or another type.
func (a *ledger) comes(next *world) {
	a.mu.Lock()
	defer a.mu.Unlock()
	maps.DeleteFunc(a.steady, func(of thing, _ bool) bool {
		_, agreed := next.agreed(of.service)[of.pod]
		return !agreed || !sameService(a.world.services[of.service], next.services[of.service])
	})
}

func sameService(a, b *corev1.Service) bool {
	return a != nil && b != nil && a.Spec.Type == b.Spec.Type && reflect.DeepEqual(a.Spec.Ports, b.Spec.Ports)
}

// came says that it was written.
func (a *ledger) came(next *world) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.world = next
}

// follow notes what Isthmus serves, commit by commit, until the test ends.
func (a *ledger) follow(m *mirrored) {
	ctx, cancel := context.WithCancel(context.Background())
	var following sync.WaitGroup
	following.Go(func() {
		for batch, err := range m.store.WatchFrom(ctx, model.Filter{Source: "k8s"}, model.Start{}) {
			if err != nil {
				return
			}
			a.enter(batch)
		}
	})
	m.t.Cleanup(func() { cancel(); following.Wait() })
}

// enter takes a commit, after which every pod that may not be missing is there.
func (a *ledger) enter(batch model.Batch) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, event := range batch.Events {
		switch e := event.(type) {
		case model.Reset:
			clear(a.records)
		case model.Upsert:
			a.records[e.Record.Ref] = e.Record
		case model.Delete:
			delete(a.records, e.Record.Ref)
		}
	}
	if len(a.steady) == 0 {
		return
	}
	has := servedIn(a.records, a.namespace)
	for of := range a.steady {
		if !serves(has, of) {
			a.missing = append(a.missing, fmt.Sprintf("pod %s of %s: there is %v", of.pod, of.service, has[of.service]))
		}
	}
}

func serves(has map[string][]served, of thing) bool {
	return slices.ContainsFunc(has[of.service], func(e served) bool { return podOf(e.addresses[0]) == of.pod })
}

// settled says what has not come through yet: a label of the steady Service and an
// address of its slice, which were written last, and all that the objects say. When it
// has, every pod that is served is one that may not be missing.
func (a *ledger) settled(label, address string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	has := servedIn(a.records, a.namespace)
	service, _ := a.records[model.Ref{Kind: model.KindService, Key: model.Key{Source: "k8s", Namespace: a.namespace, Name: "service:steady"}}].Spec.(model.Service)
	if is, _ := service.Labels.Get("sync"); is != label {
		return fmt.Errorf("the label of the Service is %q", is)
	}
	if !slices.ContainsFunc(has["steady"], func(e served) bool { return e.addresses[0] == address }) {
		return fmt.Errorf("%s is not served", address)
	}
	if err := a.world.differs(has); err != nil {
		return err
	}
	for name := range a.world.services {
		for pod := range a.world.agreed(name) {
			if of := (thing{name, pod}); serves(has, of) {
				a.steady[of] = true
			}
		}
	}
	return nil
}

// mustBeKept finds what was missing.
func (a *ledger) mustBeKept(t *rapid.T) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.missing) > 0 {
		t.Errorf("%d times a pod was missing that stood in a slice all the time: %s", len(a.missing), a.missing[0])
	}
}
