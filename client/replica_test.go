package client_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	resourcev1alpha1 "github.com/isthmus-mesh/isthmus/api/isthmus/resource/v1alpha1"
	"github.com/isthmus-mesh/isthmus/client"
)

// Before the snapshot is complete there is no view, and the reason names the missing source.
func TestNothingIsKnownBeforeTheSnapshotIsComplete(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(contents{"a": "a.example", "b": "b.example", "c": "c.example"})
		s.unprimed, s.pieces, s.faults = true, []int{1}, []fault{{3, codes.Unavailable}}
		replica := client.New(serve(t, s), nil)
		run(t, replica)
		synctest.Wait()
		known, why := replica.Known()
		if known || replica.View() != nil || why == nil || why.Error() != "waiting for sources: files" {
			t.Errorf("known: %t, view: %v, because of %v", known, replica.View(), why)
		}
		s.step(func() { s.unprimed = false }) // the stream breaks in the middle of the snapshot
		synctest.Wait()
		known, why = replica.Known()
		if known || replica.View() != nil || status.Code(why) != codes.Unavailable {
			t.Errorf("known: %t, view: %v, because of %v", known, replica.View(), why)
		}
		view, err := replica.Wait(t.Context())
		if err != nil || view.Len() != 3 {
			t.Errorf("view has %d records, and the error is %v", view.Len(), err)
		}
		if known, why := replica.Known(); !known || why != nil {
			t.Errorf("known: %t, because of %v", known, why)
		}
	})
}

// While a stream is broken, and until a snapshot after a reset is complete, readers keep the
// view, and learn that it may be old. Then they see the new one.
func TestAViewOutlivesAResetUntilTheNextIsComplete(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(contents{"a": "a.example"})
		replica := client.New(serve(t, s), nil)
		run(t, replica)
		first, err := replica.Wait(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		s.step(func() { s.unprimed, s.faults = true, []fault{{0, codes.OK}} })
		s.commit(contents{"b": "b.example"}) // it is answered by a reset
		synctest.Wait()
		known, why := replica.Known()
		if !known || replica.View() != first || why == nil || !strings.Contains(why.Error(), "after a reset: lagged") {
			t.Errorf("known: %t, the same view: %t, because of %v", known, replica.View() == first, why)
		}
		changed := replica.Changed()
		s.step(func() { s.unprimed = false })
		<-changed
		synctest.Wait()
		if got := contentsOf(replica.View()); len(got) != 2 {
			t.Errorf("after the snapshot: %v", got)
		}
		if n, reason := replica.Resets(); n != 1 || reason != "lagged" {
			t.Errorf("%d resets, because %q", n, reason)
		}
		if len(s.requests()) != 1 {
			t.Errorf("%d streams were opened", len(s.requests()))
		}
	})
}

// After a broken stream, a replica asks for the commits after the moment that it holds. It
// drops a moment that will never come.
func TestABrokenStreamIsResumed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(contents{"a": "a.example"})
		s.faults = []fault{{2, codes.Unavailable}, {0, codes.FailedPrecondition}}
		filter := &resourcev1alpha1.Filter{Kind: "Service", NamePrefix: "a"}
		replica := client.New(serve(t, s), filter)
		run(t, replica)
		if _, err := replica.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.commit(contents{"b": "b.example"})
		time.Sleep(time.Minute)
		requests := s.requests()
		if len(requests) != 3 {
			t.Fatalf("%d streams, want 3", len(requests))
		}
		for i, want := range []moment{{}, {1, 1}, {}} {
			if got := momentOf(requests[i].GetHeld()); got != want || requests[i].GetFilter().GetNamePrefix() != "a" {
				t.Errorf("stream %d has the moment %v, want %v, and the filter %v", i, got, want, requests[i].GetFilter())
			}
		}
		if got := contentsOf(replica.View()); len(got) != 2 {
			t.Errorf("in the end: %v", got)
		}
	})
}

// A request that can never be answered ends Run, and whoever waits.
func TestAnErrorThatStaysEndsTheReplica(t *testing.T) {
	for _, code := range []codes.Code{codes.InvalidArgument, codes.PermissionDenied, codes.NotFound, codes.Unimplemented} {
		synctest.Test(t, func(t *testing.T) {
			s := newServer(nil)
			s.faults = []fault{{0, code}}
			replica := client.New(serve(t, s), nil)
			ended := make(chan error, 1)
			go func() { ended <- replica.Run(context.Background()) }()
			if _, err := replica.Wait(t.Context()); status.Code(err) != code {
				t.Errorf("Wait returns %v", err)
			}
			if err := <-ended; status.Code(err) != code {
				t.Errorf("Run returns %v", err)
			}
		})
	}
}

// A replica that does not run says so, and what it has it keeps.
func TestAStoppedReplicaIsOld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := serve(t, newServer(contents{"a": "a.example"}))
		replica := client.New(conn, nil)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- replica.Run(ctx) }()
		view, err := replica.Wait(t.Context())
		cancel()
		if err != nil || !errors.Is(<-ended, context.Canceled) {
			t.Error("Run goes on, or nothing came")
		}
		if known, why := replica.Known(); !known || why == nil || replica.View() != view {
			t.Errorf("known: %t, because of %v", known, why)
		}
		if _, err := client.New(conn, nil).Wait(ctx); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "not connected yet") {
			t.Errorf("waiting without Run ends with %v", err)
		}
	})
}

// listOf is a server that sends the same messages to each watch.
type listOf struct {
	resourcev1alpha1.UnimplementedResourceServiceServer
	messages []*resourcev1alpha1.WatchListResponse
}

func (l listOf) WatchList(_ *resourcev1alpha1.WatchListRequest, out grpc.ServerStreamingServer[resourcev1alpha1.WatchListResponse]) error {
	for _, m := range l.messages {
		if err := out.Send(m); err != nil {
			return err
		}
	}
	<-out.Context().Done()
	return nil
}

// The states of sources are the newest ones. Those that left are gone, be it by an event or
// because a snapshot no longer names them.
func TestSourcesAreTheNewest(t *testing.T) {
	events := func(list ...*resourcev1alpha1.Event) *resourcev1alpha1.WatchListResponse {
		return &resourcev1alpha1.WatchListResponse{Events: list}
	}
	state := func(name, state string, removed bool) *resourcev1alpha1.Event {
		return &resourcev1alpha1.Event{Event: &resourcev1alpha1.Event_Source{Source: &resourcev1alpha1.SourceState{Name: name, State: state, Removed: removed}}}
	}
	end := &resourcev1alpha1.Event{Event: &resourcev1alpha1.Event_EndOfSnapshot{EndOfSnapshot: &resourcev1alpha1.EndOfSnapshot{
		Sources: []*resourcev1alpha1.SourceState{{Name: "a", State: "live"}, {Name: "c", State: "live"}},
	}}}
	synctest.Test(t, func(t *testing.T) {
		replica := client.New(serve(t, listOf{messages: []*resourcev1alpha1.WatchListResponse{
			events(state("a", "listing", false), state("b", "listing", false)), events(end), events(state("c", "", true), state("d", "stale", false)),
		}}), nil)
		run(t, replica)
		synctest.Wait()
		got := ""
		for s := range replica.Sources() {
			got += s.GetName() + " " + s.GetState() + "\n"
		}
		if got != "a live\nd stale\n" {
			t.Errorf("sources:\n%s", got)
		}
		if _, ok := replica.View().Get(&resourcev1alpha1.Ref{Kind: "Service"}); ok || replica.View().Len() > 0 {
			t.Error("an empty snapshot has a record")
		}
	})
}

// A server that stays away is asked ever less often. Once a stream has brought something, the
// next wait is short again.
func TestStreamsAreOpenedEverLessOften(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(contents{"a": "a.example"})
		for range 100 {
			s.faults = append(s.faults, fault{0, codes.Unavailable})
		}
		replica := client.New(serve(t, s), nil)
		run(t, replica)
		time.Sleep(10 * time.Minute)
		if n := len(s.requests()); n < 20 || n > 50 {
			t.Errorf("%d streams in 10 minutes", n)
		}
		if _, err := replica.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		before := len(s.requests())
		s.step(func() { s.faults = []fault{{0, codes.Unavailable}} })
		s.commit(contents{"b": "b.example"})
		time.Sleep(time.Second)
		if n := len(s.requests()) - before; n != 1 || replica.View().Len() != 2 {
			t.Errorf("after a second %d streams were opened, and there are %d records", n, replica.View().Len())
		}
	})
}

// The changes between two views come in the order of records, each record once.
func TestChangesAreTheDifferenceOfViews(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(contents{"a": "1", "c": "1", "e": "1", "f": "1"})
		replica := client.New(serve(t, s), nil)
		run(t, replica)
		first, err := replica.Wait(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		s.commit(contents{"a": "", "b": "1", "c": "2", "f": ""})
		s.restart(contents{"g": "1"}) // e is another message, and the same record
		synctest.Wait()
		for _, test := range []struct {
			after, before *client.View
			want          string
		}{
			{replica.View(), first, "-a +b ~c -f +g "},
			{first, replica.View(), "+a -b ~c +f -g "},
			{replica.View(), nil, "+b +c +e +g "},
			{first, first, ""},
		} {
			got := ""
			for c := range test.after.Since(test.before) {
				switch {
				case c.Before == nil:
					got += "+" + c.After.GetRef().GetName() + " "
				case c.After == nil:
					got += "-" + c.Before.GetRef().GetName() + " "
				default:
					got += "~" + c.After.GetRef().GetName() + " "
				}
			}
			if got != test.want {
				t.Errorf("the changes are %q, want %q", got, test.want)
			}
		}
		for range replica.View().Since(first) {
			break // ends the walk
		}
	})
}
