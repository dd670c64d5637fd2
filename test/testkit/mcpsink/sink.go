// Package mcpsink is a sink of the Mesh Configuration Protocol for tests. It keeps to
// the protocol and to nothing that Isthmus does beyond it: it replaces a collection
// by a full state, and applies an increment.
package mcpsink

import (
	"context"
	"errors"
	"io"
	"maps"
	"slices"
	"time"

	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/isthmus-mesh/isthmus/internal/mcp"
	"github.com/isthmus-mesh/isthmus/test/testkit/until"
)

// TB is what of a test it needs.
type TB interface {
	Helper()
	Fatalf(format string, args ...any)
	Cleanup(f func())
}

// Wire is a stream in either direction, as a sink has it.
type Wire interface {
	Send(m *mcp.RequestResources) error
	Recv() (*mcp.Resources, error)
}

// Collection is what a sink holds of a collection.
type Collection struct {
	Versions map[string]string // by name
	Contents map[string]string // likewise, as encoded
	Version  string            // of the whole, as the source calls it
}

// Apply makes a response part of what is held.
func (c *Collection) Apply(m *mcp.Resources) {
	if !m.GetIncremental() || c.Versions == nil {
		c.Versions, c.Contents = map[string]string{}, map[string]string{}
	}
	for _, r := range m.GetResources() {
		name := r.GetMetadata().GetName()
		c.Versions[name], c.Contents[name] = r.GetMetadata().GetVersion(), string(r.GetBody().GetValue())
	}
	if m.GetIncremental() {
		for _, name := range m.GetRemovedResources() {
			delete(c.Versions, name)
			delete(c.Contents, name)
		}
	}
	c.Version = m.GetSystemVersionInfo()
}

// Names are those of what is held, in order.
func (c *Collection) Names() []string { return slices.Sorted(maps.Keys(c.Versions)) }

// Sink is one stream of a sink. A test drives it by hand.
type Sink struct {
	t    TB
	ID   string
	wire Wire
	held map[string]*Collection
	got  chan received
}

type received struct {
	m   *mcp.Resources
	err error
}

// Dial opens a stream to a source.
func Dial(t TB, conn grpc.ClientConnInterface, id string) *Sink {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	wire, err := mcp.NewResourceSourceClient(conn).EstablishResourceStream(ctx, grpc.MaxCallRecvMsgSize(4<<20))
	if err != nil {
		stop()
		t.Fatalf("open a stream: %v", err)
	}
	s, ended := On(t, wire, id)
	t.Cleanup(func() {
		stop()
		<-ended
	})
	return s
}

// On is a sink on a stream that is there. Ended is closed once it reads no more.
func On(t TB, wire Wire, id string) (s *Sink, ended <-chan struct{}) {
	s = &Sink{t: t, ID: id, wire: wire, held: map[string]*Collection{}, got: make(chan received, 1024)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			m, err := wire.Recv()
			s.got <- received{m, err}
			if err != nil {
				return
			}
		}
	}()
	return s, done
}

// Of is what the sink holds of a collection.
func (s *Sink) Of(collection string) *Collection {
	if s.held[collection] == nil {
		s.held[collection] = &Collection{}
	}
	return s.held[collection]
}

// Hold has the sink begin with what another one held.
func (s *Sink) Hold(collection string, c *Collection) {
	s.held[collection] = &Collection{maps.Clone(c.Versions), maps.Clone(c.Contents), c.Version}
}

// Send sends a request as it is.
func (s *Sink) Send(m *mcp.RequestResources) {
	s.t.Helper()
	if err := s.wire.Send(m); err != nil && !errors.Is(err, io.EOF) { // what was received says why a stream ended
		s.t.Fatalf("%s: send: %v", s.ID, err)
	}
}

// Ask asks for a collection. If it takes increments, it says what it holds.
func (s *Sink) Ask(collection string, incremental bool) {
	s.t.Helper()
	m := &mcp.RequestResources{SinkNode: &mcp.SinkNode{Id: s.ID}, Collection: collection, Incremental: incremental}
	if incremental {
		m.InitialResourceVersions = s.Of(collection).Versions
	}
	s.Send(m)
}

// Receive returns the next response, which is neither applied nor answered.
func (s *Sink) Receive() *mcp.Resources {
	s.t.Helper()
	r := s.next()
	if r.err != nil {
		s.t.Fatalf("%s: the stream ended: %v", s.ID, r.err)
	}
	return r.m
}

// End returns why the stream ended.
func (s *Sink) End() error {
	s.t.Helper()
	for {
		if r := s.next(); r.err != nil {
			return r.err
		}
	}
}

func (s *Sink) next() received {
	s.t.Helper()
	timer := time.NewTimer(until.Patience)
	defer timer.Stop()
	select {
	case r := <-s.got:
		return r
	case <-timer.C:
		s.t.Fatalf("%s: nothing came within %s", s.ID, until.Patience)
		return received{}
	}
}

// Pending reports whether a response is there that was not received yet.
func (s *Sink) Pending() bool { return len(s.got) > 0 }

// ACK applies a response and says so.
func (s *Sink) ACK(m *mcp.Resources, incremental bool) {
	s.t.Helper()
	s.Of(m.GetCollection()).Apply(m)
	s.Send(&mcp.RequestResources{
		SinkNode: &mcp.SinkNode{Id: s.ID}, Collection: m.GetCollection(), ResponseNonce: m.GetNonce(), Incremental: incremental,
	})
}

// NACK applies nothing of a response and says why.
func (s *Sink) NACK(m *mcp.Resources, incremental bool, reason string) {
	s.t.Helper()
	s.Send(&mcp.RequestResources{
		SinkNode: &mcp.SinkNode{Id: s.ID}, Collection: m.GetCollection(), ResponseNonce: m.GetNonce(), Incremental: incremental,
		ErrorDetail: &status.Status{Code: int32(codes.InvalidArgument), Message: reason},
	})
}
