package watch

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"

	"github.com/isthmus-mesh/isthmus/internal/events"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output"
	"github.com/isthmus-mesh/isthmus/source"
)

// knowledge is the states of the sources, and whether the records may be served.
type knowledge struct {
	records output.Records
	states  func() []source.Status
	events  *events.Log

	mu      sync.Mutex // guards the rest; never held across a call
	now     known
	changed chan struct{} // closed when now changes
}

// known is the knowledge of one moment. It is immutable.
type known struct {
	sources []sourceState
	// waited means that every required source is primed, and that the wait for the others has
	// ended.
	waited bool
}

// sourceState is the state of a source of the configuration.
type sourceState struct {
	source.Status
	primed bool
}

func newKnowledge(env output.Env) *knowledge {
	k := &knowledge{records: env.Records, states: env.States, events: env.Events, changed: make(chan struct{})}
	k.now.sources = k.read()
	return k
}

// get returns the knowledge, and a channel that is closed when it changes.
func (k *knowledge) get() (known, <-chan struct{}) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.now, k.changed
}

// publish notes whether the wait for the sources has ended.
func (k *knowledge) publish(waited bool) {
	k.set(known{k.read(), waited}, true)
}

// set replaces the states, and with waited the end of the wait.
func (k *knowledge) set(now known, waited bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !waited {
		now.waited = k.now.waited
	}
	if now.waited == k.now.waited && slices.EqualFunc(now.sources, k.now.sources, sourceState.equal) {
		return
	}
	k.now = now
	close(k.changed)
	k.changed = make(chan struct{})
}

// follow keeps the states up to date until ctx ends. Each new state of a source is an event, and
// each first listing is a mark in the store.
// Cases: ctx ends; an event; a mark.
func (k *knowledge) follow(ctx context.Context) {
	marks := make(chan struct{}, 1)
	var reading sync.WaitGroup
	reading.Go(func() { k.followMarks(ctx, marks) })
	defer reading.Wait()
	for {
		next := k.events.Next() // before the states are read
		k.set(known{sources: k.read()}, false)
		select {
		case <-ctx.Done():
			return
		case <-next:
		case <-marks:
		}
	}
}

func (k *knowledge) followMarks(ctx context.Context, marks chan<- struct{}) {
	for range k.records.WatchFrom(ctx, model.Filter{Kind: model.KindSource}, model.Start{}) {
		select {
		case marks <- struct{}{}:
		default: // the states will be read
		}
	}
}

// read returns the states of now.
func (k *knowledge) read() (list []sourceState) {
	for _, status := range k.states() {
		_, primed := k.records.Get(model.Ref{Kind: model.KindSource, Key: model.Key{Source: status.Name, Name: status.Name}})
		list = append(list, sourceState{status, primed})
	}
	return list
}

func (s sourceState) equal(o sourceState) bool {
	return s.Name == o.Name && s.primed == o.primed && s.State == o.State && s.Since.Equal(o.Since) && s.Reason == o.Reason
}

// ready reports whether the records that a filter selects are known: a missing one does not
// exist, as far as this can be known. It fails for a source that is not configured.
func (k known) ready(f model.Filter) (bool, error) {
	if f.Source == "" || isMerged(f.Kind) {
		return k.waited, nil
	}
	i := slices.IndexFunc(k.sources, func(s sourceState) bool { return s.Name == f.Source })
	if i < 0 {
		return false, grpcstatus.Errorf(codes.NotFound, "filter.source: no source is named %q; the sources are %s", f.Source, k.names())
	}
	return k.sources[i].primed, nil
}

func (k known) names() string {
	var names []string
	for _, s := range k.sources {
		names = append(names, fmt.Sprintf("%q", s.Name))
	}
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}
