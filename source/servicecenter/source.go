package servicecenter

import (
	"context"
	"iter"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source"
	"github.com/isthmus-mesh/isthmus/source/servicecenter/mirror"
	"github.com/isthmus-mesh/isthmus/source/servicecenter/records"
	"github.com/isthmus-mesh/isthmus/source/servicecenter/registry"
	"github.com/isthmus-mesh/isthmus/source/servicecenter/watch"
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
	scoping *records.Scoping
	dial    registry.Dialer // nil but in tests

	// The fields below outlive a run, so that a failed run costs little more than its
	// own requests.
	access *registry.Access
	state  *mirror.State
	graph  mirror.Graph
	primed bool // everything has been found once, in this process or an earlier one
	// emptyOnce is set once a first list was empty and was not applied.
	emptyOnce bool

	client   *registry.Client
	sink     source.Sink
	listed   bool // by this run
	audit    time.Time
	graphDue time.Time
	anew     bool         // the round found everything anew, without a failure
	watch    *watch.Watch // nil if switched off
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
	return &Source{config: c, options: o, access: registry.NewAccess(c.Username, c.PasswordFile)}
}

// Run implements [source.Source].
func (s *Source) Run(ctx context.Context, sink source.Sink) error {
	if err := s.open(sink); err != nil {
		return err
	}
	defer s.client.Close()
	defer func() { s.watch.End(ctx, s.client) }()
	return s.follow(ctx)
}

// open prepares a run.
func (s *Source) open(sink source.Sink) (err error) {
	if s.state == nil {
		rules, err := s.config.rules()
		if err != nil {
			return err
		}
		if s.scoping, err = records.NewScoping(s.config.Scopes); err != nil {
			return err
		}
		s.state = mirror.New(rules, s.options.Stored())
		if s.config.Watch {
			s.watch = watch.New(s.options.Instance, s.options.Name, s.options.Log)
		}
		for rec := range s.options.Stored() {
			s.primed = s.primed || rec.Kind == model.KindSource
		}
	}
	s.sink, s.listed = sink, false
	s.client, err = registry.NewClient(s.config.registry(), s.access, s.dial)
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
		case <-s.watch.Signal():
			s.watch.Arm()
			continue
		case <-s.watch.Gathered():
			if err := s.findHinted(ctx, s.watch.Hinted(s.state.Keys())); err != nil {
				return err
			}
			continue
		}
		s.client.ResetBusy()
		s.anew = false
		changed, err := s.round(ctx, again)
		if err != nil {
			return err
		}
		again = false
		next.Reset(nextRound(s.config.Poll, s.client.Busy(), changed, s.anew, rand.Float64()))
	}
}

// round lists the services, finds the changes, and passes them on. The first round of
// a run, an audit and a relist pass on everything.
func (s *Source) round(ctx context.Context, again bool) (changed bool, err error) {
	began := time.Now()
	list, err := s.client.List(ctx)
	if err != nil {
		return false, err
	}
	s.state.List(list)
	if !s.primed && !s.emptyOnce && list.Empty() {
		s.emptyOnce = true
		return false, nil // one list is too little to serve nothing
	}
	audit := !began.Before(s.audit)
	failed, err := s.find(ctx, s.state.Asks(audit))
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
		s.watch.Relearn()
	}
	if err := s.readGraph(ctx, began, list.Empty()); err != nil {
		return false, err
	}
	if changed, err = s.pass(ctx, again || audit, began); err != nil {
		return false, err
	}
	if s.watch == nil {
		return changed, nil
	}
	return changed, s.watch.Keep(ctx, s.client, s.state.Asks(false))
}

// pass passes on the state, and reports whether anything changed.
func (s *Source) pass(ctx context.Context, whole bool, observed time.Time) (changed bool, err error) {
	graphChanged := s.graph.Changed()
	var listing model.Listing
	if whole || !s.listed {
		changed = s.state.Pending(time.Now())
		listing = s.state.Everything(time.Now())
		s.graph.Enter(&listing)
	} else if listing, changed = s.state.Changes(time.Now()); graphChanged {
		listing.Places = append(listing.Places, records.GraphPlace)
		s.graph.Enter(&listing)
	} else if !changed {
		return false, nil
	}
	listing.Observed = observed
	if err := s.sink.Replace(ctx, listing); err != nil {
		return false, err
	}
	for _, m := range s.state.Moved() {
		s.options.Log.Warn("a host has another owner now", "service", m.Name.String(), "from", m.From.Place(), "to", m.To.Place())
	}
	s.state.Settle()
	s.graph.Settle()
	s.listed, s.primed = true, true
	return changed || graphChanged, nil
}

// findHinted finds the keys that a watch has reported, without a list.
func (s *Source) findHinted(ctx context.Context, keys map[registry.Key]bool) error {
	began := time.Now()
	asks := s.state.AsksFor(keys)
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
func (s *Source) find(ctx context.Context, asks []registry.Ask) (failed, err error) {
	batches, splits, row, answered := registry.Batches(asks), 0, 0, len(asks) == 0
	for len(batches) > 0 {
		batch := batches[0]
		batches = batches[1:]
		if row >= 2 {
			s.state.Fail(batch.Asks, failed)
			continue
		}
		found, err := s.client.Find(ctx, batch, "")
		switch {
		case err == nil:
			s.state.Answer(batch.Asks, found)
			answered, row = true, 0
		case ctx.Err() != nil:
			return nil, err
		case registry.IsBadRequest(err) && len(batch.Asks) == 1:
			s.state.Fail(batch.Asks, err)
			answered = true
		case registry.IsBadRequest(err) && splits < mostSplits:
			splits++
			batches = append(batch.Halves(), batches...)
		default:
			failed = err
			row++
			s.state.Fail(batch.Asks, err)
		}
	}
	if !answered {
		return nil, failed
	}
	return failed, nil
}

// findDirect finds some services without the registry's cache. A failure does not
// fail the round.
func (s *Source) findDirect(ctx context.Context) error {
	if s.config.CacheOnly {
		return nil
	}
	began := time.Now()
	batches := registry.Batches(s.state.AsksDirect(s.config.Poll, s.client.Busy(), began))
	if len(batches) == 0 {
		return nil
	}
	asks := batches[0].Asks
	found, err := s.client.FindDirect(ctx, batches[0])
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		s.state.FailDirect(asks, time.Since(began), time.Now())
		s.options.Log.Debug("services could not be found without the registry's cache", "err", err)
		return nil
	}
	if s.state.AnswerDirect(asks, found, time.Since(began)) {
		s.options.Log.Warn("the registry's backend lacks most instances that the registry lists: they are kept as long as the registry lists them")
	}
	return nil
}

// readGraph reads the dependencies if they are due. The services are mirrored even if
// the dependencies cannot be read.
func (s *Source) readGraph(ctx context.Context, now time.Time, empty bool) error {
	every := s.config.Dependencies.Poll
	if every == 0 {
		return nil
	}
	if !now.Before(s.graphDue) {
		edges, err := s.client.Dependencies(ctx, empty)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		s.graph.Take(edges, err)
		s.graphDue = now.Add(every)
	}
	s.graph.Update(s.state, s.scoping)
	return nil
}
