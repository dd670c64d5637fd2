package watch

import (
	"context"
	"errors"
	"iter"
	"slices"

	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"

	resourcev1alpha1 "github.com/isthmus-mesh/isthmus/api/isthmus/resource/v1alpha1"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output/streams"
	"github.com/isthmus-mesh/isthmus/store"
)

// watcher is one WatchList.
type watcher struct {
	server *Server
	rights rights
	filter model.Filter
	start  model.Start
	to     *streams.Sender

	sources []sourceState   // as the reader has them
	changed <-chan struct{} // closed when there are others
	// snapshot means that the reader is in the middle of a snapshot.
	snapshot bool
	entered  bool   // it has a place among the snapshots that are sent
	epoch    uint64 // of the reader
}

// watchList serves WatchList.
func (s *Server) watchList(wire *streams.Stream) error {
	m, err := streams.First(wire, decoded[resourcev1alpha1.WatchListRequest])
	if err != nil {
		return err
	}
	w := &watcher{server: s, rights: rightsOf(wire.Who)}
	if w.filter, err = filterOf(m.GetFilter()); err != nil {
		return err
	}
	if w.start, err = startOf(w.rights, m); err != nil {
		return err
	}
	if err := s.may(wire.Who, w.filter.Kind); err != nil {
		return err
	}
	s.readers.Add(1)
	defer s.readers.Add(-1)
	return wire.Serve(s.limits.Taken, func(ctx context.Context, to *streams.Sender) error {
		w.to = to
		return w.run(ctx)
	})
}

// run serves the watch: the states of the sources, and the records once they are known.
// Cases: the state of a source, which goes before records; the next batch of the store.
func (w *watcher) run(ctx context.Context) error {
	if err := w.server.await(ctx, w.filter, w.tell); err != nil {
		return err
	}
	w.snapshot, w.epoch = w.start.Held == model.At{}, w.start.Held.Epoch
	defer w.leave()
	if err := w.refresh(); err != nil {
		return err
	}
	if err := w.enter(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	batches, failed := pull(ctx, w.server.storeOf(w.filter.Kind).WatchFrom(ctx, w.filter, w.start))
	for {
		if err := w.enter(ctx); err != nil { // a reset begins another snapshot
			return err
		}
		select {
		case <-w.changed:
			if err := w.refresh(); err != nil {
				return err
			}
		default:
		}
		select {
		case batch := <-batches:
			if err := w.pass(batch); err != nil {
				return err
			}
			if !w.snapshot {
				w.leave()
			}
		case err := <-failed:
			return statusOf(err)
		case <-w.changed:
			if err := w.refresh(); err != nil {
				return err
			}
		}
	}
}

// refresh takes what is known of the sources, and sends the states that are new to the reader.
func (w *watcher) refresh() error {
	now, changed := w.server.known.get()
	w.changed = changed
	return w.tell(now)
}

// enter waits for a place among the snapshots that are sent, if the reader needs one and has none.
// Cases: there is a place; the state of a source; the stream ends.
func (w *watcher) enter(ctx context.Context) error {
	for w.snapshot && !w.entered {
		select {
		case w.server.snapshots <- struct{}{}:
			w.entered = true
		case <-w.changed:
			if err := w.refresh(); err != nil {
				return err
			}
		case <-ctx.Done():
			return grpcstatus.FromContextError(ctx.Err()).Err()
		}
	}
	return nil
}

// leave gives the place to another reader.
func (w *watcher) leave() {
	if w.entered {
		<-w.server.snapshots
		w.entered = false
	}
}

// pull reads a watch into a channel.
func pull(ctx context.Context, watch iter.Seq2[model.Batch, error]) (<-chan model.Batch, <-chan error) {
	batches, failed := make(chan model.Batch), make(chan error, 1)
	go func() { // until ctx ends, which is when its caller returns
		for batch, err := range watch {
			if err != nil {
				failed <- err
				return
			}
			select {
			case batches <- batch:
			case <-ctx.Done():
				failed <- ctx.Err()
				return
			}
		}
	}()
	return batches, failed
}

// statusOf returns the status of a watch that has failed.
func statusOf(err error) error {
	if _, ok := errors.AsType[*store.EpochError](err); ok {
		return grpcstatus.Error(codes.FailedPrecondition, "not_older_than: "+err.Error())
	}
	return grpcstatus.FromContextError(err).Err()
}

// tell sends the states of sources that the reader does not have yet. In the middle of a snapshot
// they do not end its step.
func (w *watcher) tell(now known) error {
	var m message
	for _, s := range now.sources {
		if !slices.ContainsFunc(w.sources, func(o sourceState) bool { return w.rights.sameState(s, o) }) {
			m.add(eventBytes(w.rights.stateEvent(s, false)))
		}
	}
	for _, s := range w.sources {
		if !slices.ContainsFunc(now.sources, func(o sourceState) bool { return s.Name == o.Name }) {
			m.add(eventBytes(w.rights.stateEvent(s, true)))
		}
	}
	w.sources = now.sources
	if m.empty() {
		return nil
	}
	return w.send(m.finish(&resourcev1alpha1.WatchListResponse{Partial: w.snapshot}))
}

// pass sends a batch: a piece of a snapshot, a reset, or a commit.
func (w *watcher) pass(batch model.Batch) error {
	at, commit := w.commitOf(batch)
	if !commit {
		return w.passSnapshot(batch)
	}
	for begin := 0; begin < len(batch.Events); {
		p := w.server.encoder.encode(partKey{w.rights, w.filter, at, begin}, func() part { return w.part(batch, at, begin) })
		if p.text != nil {
			if err := w.send(p.text); err != nil {
				return err
			}
		}
		begin = p.end
	}
	return nil
}

// commitOf returns the moment of a commit. It reports false for a piece of a snapshot and for a
// reset.
func (w *watcher) commitOf(batch model.Batch) (at model.At, ok bool) {
	if w.snapshot || len(batch.Events) == 0 {
		return at, false
	}
	switch e := batch.Events[0].(type) {
	case model.Upsert:
		return model.At{Epoch: w.epoch, Revision: e.Record.Revision}, true
	case model.Delete:
		return model.At{Epoch: w.epoch, Revision: e.Revision}, true
	}
	return at, false
}

// part encodes the events of a commit from begin on, up to the limit of bytes. Only the last
// part of a commit is complete.
func (w *watcher) part(batch model.Batch, at model.At, begin int) part {
	var m message
	for i, event := range batch.Events[begin:] {
		switch e := w.rights.event(event).(type) {
		case model.Upsert:
			m.add(eventBytes(upsertEvent(w.rights.message(&e.Record))))
		case model.Delete:
			m.add(eventBytes(deleteEvent(w.rights.message(&e.Record))))
		}
		if end := begin + i + 1; len(m.text) >= w.server.limits.MessageBytes && end < len(batch.Events) {
			return part{m.finish(partial()), end}
		}
	}
	if begin == 0 && m.empty() {
		return part{end: len(batch.Events)} // the commit does not concern the reader
	}
	return part{m.finish(&resourcev1alpha1.WatchListResponse{
		At: w.rights.moment(at), Observed: timestamp(batch.Observed), Committed: timestamp(batch.Committed),
	}), len(batch.Events)}
}

// passSnapshot sends a piece of a snapshot, or a reset. Only the last message of a snapshot is
// complete.
func (w *watcher) passSnapshot(batch model.Batch) error {
	room := min(256*len(batch.Events), w.server.limits.MessageBytes*9/8) // for most records
	m, buffer, rest := message{make([]byte, 0, room)}, []byte(nil), partial()
	for _, event := range batch.Events {
		switch e := event.(type) {
		case model.Upsert:
			if w.rights.sees(&e.Record) {
				visible := w.rights.record(e.Record)
				buffer = m.addUpsert(&visible, buffer)
			}
		case model.Reset:
			w.server.resets.Add(1)
			w.snapshot = true
			m.add(eventBytes(w.rights.resetEvent(e)))
		case model.EndOfSnapshot:
			w.snapshot, w.epoch = false, e.Epoch
			m.add(eventBytes(w.rights.endEvent(w.sources)))
			rest = &resourcev1alpha1.WatchListResponse{At: w.rights.moment(model.At{Epoch: e.Epoch, Revision: e.Revision})}
		}
		if len(m.text) >= w.server.limits.MessageBytes && w.snapshot {
			if err := w.send(m.finish(rest)); err != nil {
				return err
			}
			m = message{make([]byte, 0, room)}
		}
	}
	if m.empty() {
		return nil
	}
	return w.send(m.finish(rest))
}

func (w *watcher) send(text []byte) error { return w.to.Send(streams.Encoded(text)) }
