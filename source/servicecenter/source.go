package servicecenter

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source"
)

// Options are the inputs of a source beside its configuration.
type Options struct {
	// Instance and Name are the names of this Isthmus and of the source. Together
	// they name the consumers that a watch registers.
	Instance, Name string
	// Stored yields the stored records of the source. Ports of its services are read
	// from them once, so that the ports survive a restart.
	Stored func() iter.Seq[model.Record]
	Log    *slog.Logger
}

// Source mirrors a Service Center.
type Source struct {
	config  Config
	options Options
	scoping *scoping
	dial    dialer // nil but in tests

	// The fields below outlive a run, so that a failed run costs little more than its
	// own requests.
	access *access
	state  *state
	graph  graph
	primed bool // everything has been found once, in this process or an earlier one
	// emptyOnce is set once a first list was empty and was not applied.
	emptyOnce bool

	client *client
	sink   source.Sink
	listed bool // by this run
	audit  time.Time
	anew   bool   // the round found everything anew, without a failure
	watch  *watch // nil if switched off
}

var _ source.Source = (*Source)(nil)

// New returns a source for a configuration that is valid.
func New(c Config, o Options) *Source {
	if o.Stored == nil {
		o.Stored = func() iter.Seq[model.Record] { return func(func(model.Record) bool) {} }
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Source{config: c, options: o, access: newAccess(c)}
}

// Run implements [source.Source].
func (s *Source) Run(ctx context.Context, sink source.Sink) error {
	if err := s.open(sink); err != nil {
		return err
	}
	defer s.client.close()
	defer s.endWatch(ctx)
	return s.follow(ctx)
}

// open prepares a run.
func (s *Source) open(sink source.Sink) (err error) {
	if s.state == nil {
		if s.state, err = newState(s.config, s.options.Stored()); err != nil {
			return err
		}
		if s.scoping, err = newScoping(s.config.Scopes); err != nil {
			return err
		}
		if s.config.Watch {
			s.watch = newWatch(s.options)
		}
		for rec := range s.options.Stored() {
			s.primed = s.primed || rec.Kind == model.KindSource
		}
	}
	s.sink, s.listed = sink, false
	s.client, err = newClient(s.config, s.access, s.dial)
	return err
}

// follow runs round after round until one fails. It waits for
//   - the end,
//   - the time of the next round,
//   - a relist that the supervisor requests,
//   - hints of a watch, and then the time to handle them.
func (s *Source) follow(ctx context.Context) error {
	next := time.NewTimer(0)
	defer next.Stop()
	again := false
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-next.C:
		case <-s.sink.Relist():
			again = true
		case <-s.watch.signal():
			s.watch.arm()
			continue
		case <-s.watch.gathered():
			if err := s.handleHints(ctx); err != nil {
				return err
			}
			continue
		}
		s.client.kept, s.anew = 0, false
		changed, err := s.round(ctx, again)
		if err != nil {
			return err
		}
		again = false
		next.Reset(nextRound(s.config.Poll, s.client.kept, changed, s.anew, rand.Float64()))
	}
}

// round lists the services, finds the changes, and passes them on. The first round of
// a run, an audit and a relist pass on everything.
func (s *Source) round(ctx context.Context, again bool) (changed bool, err error) {
	began := time.Now()
	answer, err := s.client.list(ctx)
	if err != nil {
		return false, err
	}
	s.state.list(answer)
	if !s.primed && !s.emptyOnce && answer.empty() {
		s.emptyOnce = true
		return false, nil // one list is too little to serve nothing
	}
	audit := !began.Before(s.audit)
	failed, err := s.find(ctx, s.state.asks(audit))
	if err != nil {
		return false, err
	}
	if failed != nil && !s.primed {
		return false, failed // part of a registry is not a registry
	}
	if failed != nil {
		s.options.Log.Debug("a part of the services could not be found", "err", failed)
	}
	if s.listed && failed == nil {
		if err := s.findDirect(ctx); err != nil {
			return false, err
		}
	}
	s.anew = audit && failed == nil
	if audit {
		s.audit = began.Add(s.config.Audit)
		s.watch.relearn()
	}
	if err := s.readGraph(ctx, began, answer.empty()); err != nil {
		return false, err
	}
	if changed, err = s.pass(ctx, again || audit, began); err != nil {
		return false, err
	}
	return changed, s.keepWatches(ctx)
}

// pass passes on the state, and reports whether anything changed.
func (s *Source) pass(ctx context.Context, whole bool, observed time.Time) (changed bool, err error) {
	graphChanged := s.graph.changed
	var listing source.Listing
	if whole || !s.listed {
		changed = s.state.pending(time.Now())
		listing = s.state.everything(time.Now())
		s.graph.enter(&listing)
	} else if listing, changed = s.state.changes(time.Now()); graphChanged {
		listing.Places = append(listing.Places, graphPlace)
		s.graph.enter(&listing)
	} else if !changed {
		return false, nil
	}
	listing.Observed = observed
	if err := s.sink.Replace(ctx, listing); err != nil {
		return false, err
	}
	for _, m := range s.state.moved {
		s.options.Log.Warn("a host has passed to another service", "service", m.name.String(), "from", m.from.place(), "to", m.to.place())
	}
	s.state.settle()
	s.graph.changed = false
	s.listed, s.primed = true, true
	return changed || graphChanged, nil
}

// findHinted finds the keys that a watch has reported, without a list.
func (s *Source) findHinted(ctx context.Context, keys map[Key]bool) error {
	began := time.Now()
	asks := s.state.asksFor(keys)
	if !s.listed || len(asks) == 0 {
		return nil // the next round finds it
	}
	if _, err := s.find(ctx, asks); err != nil {
		return err
	}
	_, err := s.pass(ctx, false, began)
	return err
}

// mostSplits bounds how many batches are divided in a round. A registry that rejects
// every batch would otherwise divide them down to single keys.
const mostSplits = 64

// find finds keys, batch by batch. A batch that fails leaves its keys as they were,
// with the reason, and is returned as failed. When two have failed in a row, the
// others are not tried. If all failed, find returns an error.
func (s *Source) find(ctx context.Context, asks []ask) (failed, err error) {
	batches, splits, row, answered := chunks(asks, mostBytes, mostKeys), 0, 0, len(asks) == 0
	for len(batches) > 0 {
		batch := batches[0]
		batches = batches[1:]
		if row >= 2 {
			s.state.fail(batch.asks, failed)
			continue
		}
		answers, err := s.client.find(ctx, batch, "")
		switch {
		case err == nil:
			s.state.answer(batch.asks, answers)
			answered, row = true, 0
		case ctx.Err() != nil:
			return nil, err
		case unfit(err) && len(batch.asks) == 1:
			s.state.fail(batch.asks, err)
			answered = true
		case unfit(err) && splits < mostSplits:
			splits++
			batches = append(batch.halves(), batches...)
		default:
			failed = err
			row++
			s.state.fail(batch.asks, err)
		}
	}
	if !answered {
		return nil, failed
	}
	return failed, nil
}

// unfit reports whether the registry rejects the content of a batch, so that a part
// of it may be accepted.
func unfit(err error) bool {
	no, ok := errors.AsType[*rejected](err)
	return ok && (no.status == http.StatusBadRequest || no.status == http.StatusRequestEntityTooLarge)
}
