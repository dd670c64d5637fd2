package mcpsink

import (
	"context"
	"fmt"
	"maps"
	"sync"

	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/isthmus-mesh/isthmus/internal/mcp"
)

// Follower is a sink that answers by itself. It checks of every response that it is
// one that the protocol allows.
type Follower struct {
	ID          string
	Collections []string
	// Decide says how a response is answered: with a NACK if there is a reason, and
	// whether increments are agreed to from now on. It is called by one goroutine.
	Decide func(m *mcp.Resources) (reason string, incremental bool)
	// Incremental says whether the first requests agree to increments.
	Incremental bool

	mu      sync.Mutex
	held    map[string]*Collection
	agreed  map[string]bool
	changed chan struct{} // holds a token after something was applied
	fault   error
	applied int // responses

	stop  context.CancelFunc
	ended chan struct{}
}

// Connect opens a stream, with what the sink holds.
func (f *Follower) Connect(conn grpc.ClientConnInterface) error {
	ctx, stop := context.WithCancel(context.Background())
	wire, err := mcp.NewResourceSourceClient(conn).EstablishResourceStream(ctx, grpc.MaxCallRecvMsgSize(4<<20))
	if err != nil {
		stop()
		return err
	}
	f.begin()
	f.stop, f.ended = stop, make(chan struct{})
	for _, name := range f.Collections {
		m := &mcp.RequestResources{SinkNode: &mcp.SinkNode{Id: f.ID}, Collection: name, Incremental: f.Incremental}
		f.mu.Lock()
		if f.agreed[name] = f.Incremental; f.Incremental {
			m.InitialResourceVersions = maps.Clone(f.held[name].Versions)
		}
		f.mu.Unlock()
		if err := wire.Send(m); err != nil {
			f.Close()
			return err
		}
	}
	go func() {
		defer close(f.ended)
		for {
			m, err := wire.Recv()
			if err != nil || wire.Send(f.answer(m)) != nil {
				return
			}
		}
	}()
	return nil
}

func (f *Follower) begin() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.held == nil {
		f.held, f.changed = map[string]*Collection{}, make(chan struct{}, 1)
		for _, name := range f.Collections {
			f.held[name] = &Collection{}
		}
	}
	f.agreed = map[string]bool{}
}

// Close ends the stream. What the sink holds stays.
func (f *Follower) Close() {
	if f.stop == nil {
		return
	}
	f.stop()
	if f.ended != nil {
		<-f.ended
	}
	f.stop = nil
}

func (f *Follower) answer(m *mcp.Resources) *mcp.RequestResources {
	f.mu.Lock()
	defer f.mu.Unlock()
	held := f.held[m.GetCollection()]
	switch {
	case held == nil:
		f.fault = fmt.Errorf("%s was sent %q, which it did not ask for", f.ID, m.GetCollection())
		held = &Collection{}
	case m.GetIncremental() && !f.agreed[m.GetCollection()]:
		f.fault = fmt.Errorf("%s was sent an increment of %s that it did not agree to", f.ID, m.GetCollection())
	}
	reason, incremental := f.Decide(m)
	answer := &mcp.RequestResources{Collection: m.GetCollection(), ResponseNonce: m.GetNonce(), Incremental: incremental}
	f.agreed[m.GetCollection()] = incremental
	if reason != "" {
		answer.ErrorDetail = &status.Status{Code: int32(codes.InvalidArgument), Message: reason}
	} else {
		held.Apply(m)
		f.applied++
	}
	select {
	case f.changed <- struct{}{}:
	default:
	}
	return answer
}

// Changed holds a token after the sink answered something.
func (f *Follower) Changed() <-chan struct{} { return f.changed }

// Read shows what the sink holds of a collection, how many responses it has applied,
// and what the source did wrong.
func (f *Follower) Read(collection string, read func(c *Collection, applied int)) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	read(f.held[collection], f.applied)
	return f.fault
}
