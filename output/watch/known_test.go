package watch_test

import (
	"context"
	"slices"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	api "github.com/isthmus-mesh/isthmus/api/isthmus/resource/v1alpha1"
	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source"
	"github.com/isthmus-mesh/isthmus/test/testkit/until"
)

// reading is a watch that the test reads event by event.
type reading struct {
	testing.TB
	stream  grpc.ServerStreamingClient[api.WatchListResponse]
	pending []*api.Event
	at      *api.Moment // of the last message that has one
	partial bool        // the last message is
}

// watch opens a watch.
func (r *rig) watch(request *api.WatchListRequest) *reading {
	r.Helper()
	ctx, cancel := context.WithTimeout(r.Context(), until.Patience)
	r.Cleanup(cancel)
	stream, err := r.client.WatchList(ctx, request)
	if err != nil {
		r.Fatal(err)
	}
	return &reading{TB: r.TB, stream: stream}
}

// next returns the next event.
func (w *reading) next() *api.Event {
	w.Helper()
	for len(w.pending) == 0 {
		m, err := w.stream.Recv()
		if err != nil {
			w.Fatalf("the watch ended: %v", err)
		}
		w.pending, w.partial = m.GetEvents(), m.GetPartial()
		if m.GetAt() != nil {
			w.at = m.GetAt()
		}
	}
	e := w.pending[0]
	w.pending = w.pending[1:]
	return e
}

// source returns the next event, which must be the state of a source.
func (w *reading) source() *api.SourceState {
	w.Helper()
	e := w.next()
	if e.GetSource() == nil {
		w.Fatalf("%v came instead of the state of a source", e)
	}
	return e.GetSource()
}

// end returns the end of the snapshot, and the names of the records before it. States of
// sources are skipped.
func (w *reading) end() (names []string, end *api.EndOfSnapshot) {
	w.Helper()
	for {
		switch e := w.next().GetEvent().(type) {
		case *api.Event_Upsert:
			names = append(names, e.Upsert.GetRecord().GetRef().GetName())
		case *api.Event_EndOfSnapshot:
			return names, e.EndOfSnapshot
		case *api.Event_Source:
		default:
			w.Fatalf("%v came in the middle of a snapshot", e)
		}
	}
}

func service(source, name string) model.Record {
	return model.Record{
		Ref:  model.Ref{Kind: model.KindService, Key: model.Key{Source: source, Namespace: "shop", Name: name}},
		Spec: model.Service{Hosts: model.ListOf(name + ".example.com"), Resolution: model.ResolutionStatic},
	}
}

// commit stores records.
func (r *rig) commit(records ...model.Record) {
	r.Helper()
	var writes []model.Write
	for _, rec := range records {
		if stored, ok := r.store.Get(rec.Ref); ok {
			rec.Revision = stored.Revision
		}
		writes = append(writes, model.Write{Record: rec})
	}
	if _, err := r.store.Commit(r.Context(), model.Commit{Writes: writes}); err != nil {
		r.Fatal(err)
	}
}

// With a required source that hangs there is no end of a snapshot, for any filter that could
// select its records. The reader learns the state of the source instead. Once the source is
// primed, the snapshot comes.
func TestWatchWaitsForRequiredSources(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{sources: []string{"files"}, unready: true})
	r.set("cluster", source.StateListing, "connection refused", false)
	r.commit(service("files", "reviews"))
	var watches []*reading
	for _, f := range []*api.Filter{nil, {Kind: "Service"}, {Namespace: "shop"}, {NamePrefix: "no"}, {Kind: "MergedService"}, {Kind: "Service", Source: "cluster"}} {
		w := r.watch(&api.WatchListRequest{Filter: f})
		states := []*api.SourceState{w.source(), w.source()}
		if states[0].GetName() != "files" || !states[0].GetPrimed() || states[1].GetName() != "cluster" || states[1].GetPrimed() ||
			states[1].GetState() != "listing" || states[1].GetReason() != "connection refused" || states[1].GetSince() == nil {
			t.Errorf("filter %v: the sources are %v", f, states)
		}
		watches = append(watches, w)
	}
	if answer, err := healthv1.NewHealthClient(r.conn).Check(t.Context(), &healthv1.HealthCheckRequest{}); err != nil || answer.GetStatus() != healthv1.HealthCheckResponse_NOT_SERVING {
		t.Errorf("health is %v, %v", answer, err)
	}
	r.set("cluster", source.StateListing, "it answers, and not with a list", false)
	for i, w := range watches {
		if s := w.source(); s.GetReason() != "it answers, and not with a list" {
			t.Errorf("watch %d: the source is %v", i, s)
		}
	}
	r.commit(service("cluster", "ratings"))
	r.set("cluster", source.StateLive, "", true)
	r.server.Publish(catalog.Empty(), catalog.Change{Waited: true})
	for i, want := range [][]string{{"ratings", "reviews"}, {"ratings", "reviews"}, {"ratings", "reviews"}, nil, nil, {"ratings"}} {
		names, end := watches[i].end()
		if !slices.Equal(names, want) {
			t.Errorf("watch %d: the snapshot is %v, want %v", i, names, want)
		}
		for _, s := range end.GetSources() {
			if !s.GetPrimed() || s.GetState() != "live" {
				t.Errorf("watch %d ends its snapshot with the source %v", i, s)
			}
		}
	}
	if answer, err := healthv1.NewHealthClient(r.conn).Check(t.Context(), &healthv1.HealthCheckRequest{}); err != nil || answer.GetStatus() != healthv1.HealthCheckResponse_SERVING {
		t.Errorf("then health is %v, %v", answer, err)
	}
}

// An optional source delays a snapshot for a limited time. The end of the snapshot tells that it
// is missing, and its records come when they are listed. A filter by that source waits on.
func TestWatchGoesOnWithoutOptionalSources(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{sources: []string{"files"}, unready: true})
	r.set("cluster", source.StateListing, "connection refused", false)
	r.commit(service("files", "reviews"))
	all, late := r.watch(&api.WatchListRequest{}), r.watch(&api.WatchListRequest{Filter: &api.Filter{Source: "cluster"}})
	early := r.watch(&api.WatchListRequest{Filter: &api.Filter{Source: "files"}})
	if names, _ := early.end(); !slices.Equal(names, []string{"reviews"}) {
		t.Errorf("of the source that is primed came %v", names)
	}
	r.server.Publish(catalog.Empty(), catalog.Change{Waited: true}) // the wait has ended
	names, end := all.end()
	if s := end.GetSources(); !slices.Equal(names, []string{"reviews"}) || len(s) != 2 || s[1].GetName() != "cluster" || s[1].GetPrimed() || s[1].GetReason() == "" {
		t.Errorf("the snapshot is %v, and ends with %v", names, end)
	}
	late.source()
	late.source()
	r.set("cluster", source.StateListing, "connection refused again", false)
	if s := late.source(); s.GetReason() != "connection refused again" {
		t.Errorf("a watch of the missing source goes on with %v", s)
	}
	if s := all.source(); s.GetPrimed() {
		t.Errorf("the source is %v", s)
	}
	r.commit(service("cluster", "ratings"))
	if e := all.next(); e.GetUpsert().GetRecord().GetRef().GetName() != "ratings" {
		t.Errorf("%v came instead of the late record", e)
	}
	r.set("cluster", source.StateLive, "", true)
	if s := all.source(); !s.GetPrimed() || s.GetState() != "live" {
		t.Errorf("then the source is %v", s)
	}
	if names, end := late.end(); !slices.Equal(names, []string{"ratings"}) || !end.GetSources()[1].GetPrimed() {
		t.Errorf("of the late source came %v, and then %v", names, end)
	}
}

// A source that is added later is waited for as well, and one that leaves is reported.
func TestWatchReportsSourcesThatComeAndGo(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{sources: []string{"files"}})
	w := r.watch(&api.WatchListRequest{})
	w.end()
	r.set("cluster", source.StateListing, "not yet listed", false)
	r.server.Publish(catalog.Empty(), catalog.Change{})
	if s := w.source(); s.GetName() != "cluster" || s.GetRemoved() {
		t.Errorf("the new source is %v", s)
	}
	later := r.watch(&api.WatchListRequest{})
	later.source()
	later.source()
	r.mu.Lock()
	r.states = r.states[:1]
	r.mu.Unlock()
	r.set("files", source.StateStale, "gone", true)
	for _, w := range []*reading{w, later} {
		got := map[string]bool{}
		for range 2 {
			s := w.source()
			got[s.GetName()] = s.GetRemoved()
		}
		if removed, told := got["cluster"]; !removed || !told {
			t.Errorf("the source that left is reported as %v", got)
		}
	}
}

func TestWatchOfAnUnknownSourceNamesTheKnownOnes(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{sources: []string{"files", "cluster"}})
	w := r.watch(&api.WatchListRequest{Filter: &api.Filter{Source: "fils"}})
	for {
		m, err := w.stream.Recv()
		if err == nil {
			if m.GetEvents()[0].GetSource() == nil {
				t.Fatalf("%v came", m)
			}
			continue
		}
		if want := `filter.source: no source is named "fils"; the sources are "files", "cluster"`; status.Code(err) != codes.NotFound || status.Convert(err).Message() != want {
			t.Errorf("error %v, want %s", err, want)
		}
		return
	}
}
