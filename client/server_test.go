package client_test

import (
	"context"
	"errors"
	"maps"
	"net"
	"slices"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	resourcev1alpha1 "github.com/isthmus-mesh/isthmus/api/isthmus/resource/v1alpha1"
	"github.com/isthmus-mesh/isthmus/client"
)

// contents are the records of a revision: a host by the name of its service.
type contents map[string]string

// with returns the contents after a commit. A host that is empty deletes the service.
func (c contents) with(commit contents) contents {
	after := maps.Clone(c)
	maps.Copy(after, commit)
	maps.DeleteFunc(after, func(_, host string) bool { return host == "" })
	return after
}

// contentsOf returns the contents of a view.
func contentsOf(view *client.View) contents {
	c := contents{}
	for record := range view.All() {
		c[record.GetRef().GetName()] = record.GetService().GetHosts()[0]
	}
	return c
}

// moment is a [resourcev1alpha1.Moment] that can be compared.
type moment struct{ epoch, revision uint64 }

func momentOf(m *resourcev1alpha1.Moment) moment { return moment{m.GetEpoch(), m.GetRevision()} }

// fault happens in place of a message, after so many others since the fault before. It ends
// the stream with a code, or resets it if that is OK.
type fault struct {
	After int
	Code  codes.Code
}

var errReset = errors.New("reset")

// server has a history of commits, and watches as the API describes them.
type server struct {
	resourcev1alpha1.UnimplementedResourceServiceServer
	pieces []int // the events of each message, one after the other, and again from the first
	faults []fault
	blind  bool // the client must not see revisions
	chatty bool // the states of sources come in the middle of snapshots, too

	mu       sync.Mutex
	unprimed bool // its source, so the records are not known
	now      moment
	kept     uint64 // watches can resume from this revision of the epoch
	commits  map[moment]contents
	states   map[moment]contents
	asked    []*resourcev1alpha1.WatchListRequest
	sent     int
	changed  chan struct{}
}

func newServer(first contents) *server {
	now := moment{1, 1}
	return &server{
		pieces: []int{2}, now: now, kept: 1, commits: map[moment]contents{}, states: map[moment]contents{now: first}, changed: make(chan struct{}),
	}
}

// step changes the server, and wakes its watches.
func (s *server) step(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *server) commit(c contents) {
	s.step(func() {
		before := s.states[s.now]
		s.now.revision++
		s.commits[s.now], s.states[s.now] = c, before.with(c)
	})
}

// restart begins another epoch, with other contents.
func (s *server) restart(c contents) {
	s.step(func() {
		before := s.states[s.now]
		s.now, s.kept = moment{s.now.epoch + 1, 1}, 1
		s.states[s.now] = before.with(c)
	})
}

// forget forgets the commits so far.
func (s *server) forget() { s.step(func() { s.kept = s.now.revision }) }

// requests returns the requests so far.
func (s *server) requests() []*resourcev1alpha1.WatchListRequest {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.asked)
}

// watch is one stream, after the commits up to at.
type watch struct {
	*server
	out grpc.ServerStreamingServer[resourcev1alpha1.WatchListResponse]
	at  moment
}

func (s *server) WatchList(request *resourcev1alpha1.WatchListRequest, out grpc.ServerStreamingServer[resourcev1alpha1.WatchListResponse]) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, request)
	w := &watch{server: s, out: out, at: momentOf(request.GetHeld())}
	err := w.send(&resourcev1alpha1.WatchListResponse{Events: []*resourcev1alpha1.Event{w.source()}})
	if err == nil && request.GetHeld() == nil {
		err = w.snapshot()
	}
	for {
		switch {
		case errors.Is(err, errReset):
			if err = w.reset(); err == nil {
				err = w.snapshot()
			}
		case err != nil:
			return err
		default:
			err = w.next()
		}
	}
}

// next sends the next commit, or waits for a change.
func (w *watch) next() error {
	following := moment{w.at.epoch, w.at.revision + 1}
	if w.at.epoch != w.now.epoch || w.at.revision < w.kept {
		return errReset
	}
	commit, ok := w.commits[following]
	if !ok {
		return w.wait()
	}
	before := w.states[w.at]
	w.at = following
	var events []*resourcev1alpha1.Event
	for _, name := range slices.Sorted(maps.Keys(commit)) {
		switch host := commit[name]; {
		case host != "":
			events = append(events, &resourcev1alpha1.Event{Event: &resourcev1alpha1.Event_Upsert{Upsert: &resourcev1alpha1.Upsert{Record: w.record(name, host)}}})
		case before[name] != "":
			events = append(events, &resourcev1alpha1.Event{Event: &resourcev1alpha1.Event_Delete{Delete: &resourcev1alpha1.Delete{Record: w.record(name, before[name])}}})
		}
	}
	return w.sendAll(events)
}

// wait returns once the server has changed.
func (w *watch) wait() error {
	changed := w.changed
	w.mu.Unlock()
	defer w.mu.Lock()
	select {
	case <-changed:
		return nil
	case <-w.out.Context().Done():
		return w.out.Context().Err()
	}
}

func (w *watch) reset() error {
	return w.send(&resourcev1alpha1.WatchListResponse{Events: []*resourcev1alpha1.Event{{Event: &resourcev1alpha1.Event_Reset_{Reset_: &resourcev1alpha1.Reset{Reason: "lagged"}}}}})
}

// snapshot sends what there is now, once the source is primed.
func (w *watch) snapshot() error {
	for w.unprimed {
		if err := w.wait(); err != nil {
			return err
		}
	}
	w.at = w.now
	state := w.states[w.at]
	var events []*resourcev1alpha1.Event
	for _, name := range slices.Sorted(maps.Keys(state)) {
		events = append(events, &resourcev1alpha1.Event{Event: &resourcev1alpha1.Event_Upsert{Upsert: &resourcev1alpha1.Upsert{Record: w.record(name, state[name])}}})
	}
	end := &resourcev1alpha1.EndOfSnapshot{Sources: []*resourcev1alpha1.SourceState{w.source().GetSource()}}
	for w.chatty && len(events) > 1 {
		first := &resourcev1alpha1.WatchListResponse{Events: events[:1], Partial: true}
		if err := w.send(first); err != nil {
			return err
		}
		if err := w.send(&resourcev1alpha1.WatchListResponse{Events: []*resourcev1alpha1.Event{w.source()}}); err != nil {
			return err
		}
		events = events[1:]
	}
	return w.sendAll(append(events, &resourcev1alpha1.Event{Event: &resourcev1alpha1.Event_EndOfSnapshot{EndOfSnapshot: end}}))
}

// sendAll sends the events of a commit or snapshot in pieces.
func (w *watch) sendAll(events []*resourcev1alpha1.Event) error {
	for len(events) > 0 {
		n := min(len(events), w.pieces[w.sent%len(w.pieces)])
		message := &resourcev1alpha1.WatchListResponse{Events: events[:n], Partial: n < len(events)}
		if !message.GetPartial() && !w.blind {
			message.At = &resourcev1alpha1.Moment{Epoch: w.at.epoch, Revision: w.at.revision}
		}
		if err := w.send(message); err != nil {
			return err
		}
		events = events[n:]
	}
	return nil
}

// send sends a message, unless a fault is due.
func (w *watch) send(message *resourcev1alpha1.WatchListResponse) error {
	if len(w.faults) > 0 {
		due := &w.faults[0]
		if due.After == 0 {
			w.faults = w.faults[1:]
			if due.Code == codes.OK {
				return errReset
			}
			return status.Error(due.Code, "a fault of the test")
		}
		due.After--
	}
	w.sent++
	return w.out.Send(message)
}

func (w *watch) record(name, host string) *resourcev1alpha1.Record {
	record := &resourcev1alpha1.Record{
		Ref:     &resourcev1alpha1.Ref{Kind: "Service", Source: "files", Namespace: "shop", Name: name},
		Content: &resourcev1alpha1.Record_Service{Service: &resourcev1alpha1.Service{Hosts: []string{host}}},
	}
	return record
}

func (s *server) source() *resourcev1alpha1.Event {
	state := &resourcev1alpha1.SourceState{Name: "files", Primed: !s.unprimed, State: "live"}
	return &resourcev1alpha1.Event{Event: &resourcev1alpha1.Event_Source{Source: state}}
}

// serve serves until the test ends, and returns a connection.
func serve(t *testing.T, s resourcev1alpha1.ResourceServiceServer) *grpc.ClientConn {
	t.Helper()
	listener, server := bufconn.Listen(64<<10), grpc.NewServer()
	resourcev1alpha1.RegisterResourceServiceServer(server, s)
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(listener) })
	dial := func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }
	conn, err := grpc.NewClient("passthrough:///isthmus", grpc.WithContextDialer(dial), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = conn.Close()
		server.Stop()
		serving.Wait()
	})
	return conn
}

// run runs a replica until the test ends.
func run(t *testing.T, replica *client.Replica) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = replica.Run(ctx) })
	t.Cleanup(func() { cancel(); running.Wait() })
}
