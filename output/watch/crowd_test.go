package watch_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	api "github.com/isthmus-mesh/isthmus/api/isthmus/resource/v1alpha1"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output/watch"
	"github.com/isthmus-mesh/isthmus/source"
	"github.com/isthmus-mesh/isthmus/store"
	"github.com/isthmus-mesh/isthmus/test/testkit/until"
)

// large returns a record with much content.
func large(n, size int) model.Record {
	return model.Record{
		Ref:  model.Ref{Kind: "Note", Key: model.Key{Source: "files", Name: "large"}},
		Spec: model.Opaque{Content: fmt.Sprintf("%08d", n) + strings.Repeat("x", size)},
	}
}

// Of 1,000 readers one reads nothing. The others are sent every commit once, in order. The slow
// one falls behind the history, so it is reset once it reads, and ends with the same records.
func TestWatchOfACrowdWithOneSlowReader(t *testing.T) {
	t.Parallel()
	const commits, history = 12, 1
	readers := 1000
	if raced {
		readers = 100 // a race needs no crowd
	}
	r := newRig(t, setup{sources: []string{"files"}, store: store.Config{History: history}})
	r.commit(service("files", "reviews"))
	slow := r.watch(&api.WatchListRequest{})
	slow.end()
	arrived := make(chan error)
	for range readers - 1 {
		go func() { follow(r, commits, arrived) }()
	}
	for n := range commits + 1 { // first the snapshot
		for range readers - 1 {
			if err := <-arrived; err != nil {
				t.Fatal(err)
			}
		}
		if n < commits {
			r.commit(large(n, 60<<10))
		}
	}
	reset := false
	for {
		e := slow.next()
		reset = reset || e.GetReset_() != nil
		if content := string(e.GetUpsert().GetRecord().GetOpaque().GetContent()); strings.HasPrefix(content, fmt.Sprintf("%08d", commits-1)) {
			break
		}
	}
	if names, _ := slow.end(); !reset || !slices.Equal(names, []string{"reviews"}) {
		t.Errorf("the slow reader was reset: %t; after the newest record came %v", reset, names)
	}
}

// follow reads a snapshot and so many commits, which must come once, in order. It reports each.
func follow(r *rig, commits int, arrived chan<- error) {
	ctx, cancel := context.WithTimeout(r.Context(), until.Patience)
	defer cancel()
	report := func(err error) bool {
		select {
		case arrived <- err:
			return err == nil
		case <-ctx.Done():
			return false
		}
	}
	stream, err := r.client.WatchList(ctx, &api.WatchListRequest{})
	for n := -1; n < commits; {
		var m *api.WatchListResponse
		if err == nil {
			m, err = stream.Recv()
		}
		if err != nil {
			report(err)
			return
		}
		for _, e := range m.GetEvents() {
			content := string(e.GetUpsert().GetRecord().GetOpaque().GetContent())
			switch {
			case e.GetEndOfSnapshot() != nil && n == -1:
			case content == "":
				continue
			case n < 0 || !strings.HasPrefix(content, fmt.Sprintf("%08d", n)):
				report(fmt.Errorf("commit %.8s came instead of %d", content, n))
				return
			}
			if n++; !report(nil) {
				return
			}
		}
	}
}

// A reader that stops reading in the middle of its snapshot loses its stream, too: the snapshot
// would otherwise stay in memory as it was.
func TestWatchEndsAStalledSnapshot(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{sources: []string{"files"}, limits: watch.Limits{Taken: 50 * time.Millisecond}})
	for n := range 20 {
		rec := large(n, 100<<10)
		rec.Name = fmt.Sprint(n)
		r.commit(rec)
	}
	w := r.watch(&api.WatchListRequest{})
	w.source()
	until.NoError(t, 5*time.Millisecond, "the end of the stream", func() error {
		for cause, n := range r.server.Rejected() {
			if cause == "unread" && n == 1 {
				return nil
			}
		}
		return errors.New("the reader still has it")
	})
	for {
		if _, err := w.stream.Recv(); err != nil {
			if status.Code(err) != codes.ResourceExhausted || !strings.Contains(err.Error(), "read faster") {
				t.Errorf("the slow reader is sent %v", err)
			}
			return
		}
	}
}

// A source that changes in the middle of a snapshot does not end its step: a reader that applied
// half of it would lose the other records.
func TestWatchKeepsASnapshotWholeAmongStates(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{sources: []string{"files"}})
	records := make([]model.Record, 3000) // several batches of the store
	for n := range records {
		records[n] = large(n, 1<<10)
		records[n].Name = fmt.Sprint(n)
	}
	r.commit(records...)
	w, other := r.watch(&api.WatchListRequest{}), r.watch(&api.WatchListRequest{Filter: &api.Filter{Kind: "None"}})
	w.source()
	w.next() // the rest waits for the reader
	other.end()
	r.set("files", source.StateStale, "connection refused", true)
	other.source() // the server knows
	for states := 0; ; {
		switch e := w.next(); {
		case e.GetSource() != nil && !w.partial:
			t.Fatal("the state of a source ended the step in the middle of the snapshot")
		case e.GetSource() != nil:
			states++
		case e.GetEndOfSnapshot() != nil:
			if states != 1 || w.partial {
				t.Errorf("%d states came in the snapshot; its last message is partial: %t", states, w.partial)
			}
			return
		}
	}
}

// Readers that stall in their snapshots keep others waiting for a limited time.
func TestWatchSendsSnapshotsInTurn(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{sources: []string{"files"}, limits: watch.Limits{Taken: time.Second, Snapshots: 2}})
	for n := range 20 {
		rec := large(n, 100<<10)
		rec.Name = fmt.Sprint(n)
		r.commit(rec)
	}
	r.commit(service("files", "small"))
	for range 4 {
		r.watch(&api.WatchListRequest{Filter: &api.Filter{Kind: "Note"}}).source()
	}
	w := r.watch(&api.WatchListRequest{Filter: &api.Filter{Kind: "Service"}})
	if names, _ := w.end(); !slices.Equal(names, []string{"small"}) {
		t.Errorf("the last reader is sent %v", names)
	}
}
