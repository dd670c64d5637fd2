package watch_test

import (
	"context"
	"errors"
	"io"
	"iter"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	api "github.com/isthmus-mesh/isthmus/api/isthmus/resource/v1alpha1"
	"github.com/isthmus-mesh/isthmus/convert/resource"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output/watch"
	"github.com/isthmus-mesh/isthmus/store"
	"github.com/isthmus-mesh/isthmus/store/storetest"
)

// TestWatchKeepsTheRulesOfTheStore holds the API to the rules of every store, with small
// messages.
//
// It is not parallel: a rule is about memory, see storetest.Run.
func TestWatchKeepsTheRulesOfTheStore(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Store {
		t.Helper()
		return remote{newRig(t, setup{
			store:   store.Config{History: storetest.History, HistoryBytes: storetest.HistoryBytes},
			sources: []string{"files", "consul", "absent"},
			limits:  watch.Limits{MessageBytes: 1000, Taken: time.Hour},
		})}
	})
}

// remote is a store that is written directly, and read through the API.
type remote struct{ *rig }

func (s remote) Commit(ctx context.Context, c model.Commit) (uint64, error) {
	return s.store.Commit(ctx, c)
}

func (s remote) Get(ref model.Ref) (model.Record, bool) {
	answer, err := s.client.Get(s.Context(), &api.GetRequest{Ref: resource.RefMessage(ref)})
	if status.Code(err) == codes.NotFound {
		return model.Record{}, false
	}
	if err != nil {
		s.Errorf("get %s: %v", ref, err)
		return model.Record{}, false
	}
	return s.record(answer.GetRecord()), true
}

func (s remote) record(m *api.Record) model.Record {
	rec, err := resource.Record(m)
	if err != nil {
		s.Errorf("a record that cannot be read: %v", err)
	}
	return rec
}

func (s remote) List(f model.Filter) iter.Seq[model.Record] {
	var all []model.Record
	for token := ""; ; {
		answer, err := s.client.List(s.Context(), &api.ListRequest{Filter: filterMessage(f), PageToken: token})
		if err != nil {
			s.Errorf("list %+v: %v", f, err)
			break
		}
		for _, m := range answer.GetRecords() {
			all = append(all, s.record(m))
		}
		if token = answer.GetNextPageToken(); token == "" {
			break
		}
	}
	return func(yield func(model.Record) bool) {
		for _, rec := range all {
			if !yield(rec) {
				return
			}
		}
	}
}

func filterMessage(f model.Filter) *api.Filter {
	return &api.Filter{Kind: string(f.Kind), Source: f.Source, Namespace: f.Namespace, NamePrefix: f.Prefix}
}

func (s remote) Watch(ctx context.Context, f model.Filter) iter.Seq2[model.Batch, error] {
	return s.WatchFrom(ctx, f, model.Start{})
}

func (s remote) WatchFrom(ctx context.Context, f model.Filter, from model.Start) iter.Seq2[model.Batch, error] {
	return func(yield func(model.Batch, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		stream, err := s.client.WatchList(ctx, &api.WatchListRequest{
			Filter: filterMessage(f), Held: momentMessage(from.Held), NotOlderThan: momentMessage(from.NotOlderThan),
		})
		var gathered []*api.Event
		for err == nil {
			var m *api.WatchListResponse
			if m, err = stream.Recv(); err != nil {
				break
			}
			if err = ctx.Err(); err != nil {
				break
			}
			gathered = append(gathered, m.GetEvents()...)
			events := s.events(gathered, m.GetAt())
			if len(events) == 0 || m.GetPartial() && !isReset(events) {
				continue
			}
			if !yield(model.Batch{Events: events, Observed: timeOf(m.GetObserved()), Committed: timeOf(m.GetCommitted())}, nil) {
				return
			}
			gathered = nil
		}
		yield(model.Batch{}, s.cause(ctx, from, err))
	}
}

// isReset reports whether events are a reset, which the store sends as a batch of its own.
func isReset(events []model.Event) bool {
	_, ok := events[0].(model.Reset)
	return ok
}

// cause returns the error of the store behind the error of a stream.
func (s remote) cause(ctx context.Context, from model.Start, err error) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case status.Code(err) == codes.FailedPrecondition:
		return &store.EpochError{Wanted: from.NotOlderThan}
	case errors.Is(err, io.EOF):
		return errors.New("the watch ended")
	}
	return err
}

// events returns the events that are events of the store.
func (s remote) events(all []*api.Event, at *api.Moment) (list []model.Event) {
	for _, e := range all {
		switch e := e.GetEvent().(type) {
		case *api.Event_Upsert:
			list = append(list, model.Upsert{Record: s.record(e.Upsert.GetRecord())})
		case *api.Event_Delete:
			list = append(list, model.Delete{Record: s.record(e.Delete.GetRecord()), Revision: at.GetRevision()})
		case *api.Event_EndOfSnapshot:
			list = append(list, model.EndOfSnapshot{Revision: at.GetRevision(), Epoch: at.GetEpoch()})
		case *api.Event_Reset_:
			list = append(list, model.Reset{Reason: e.Reset_.GetReason()})
		}
	}
	return list
}

func timeOf(t *timestamppb.Timestamp) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.AsTime()
}

func momentMessage(at model.At) *api.Moment {
	if at == (model.At{}) {
		return nil
	}
	return &api.Moment{Epoch: at.Epoch, Revision: at.Revision}
}
