package streams

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"
)

// Sender sends the messages of a stream that no engine feeds. One goroutine uses it.
type Sender struct {
	wire    Wire
	each    time.Duration
	timer   *time.Timer   // of the message that is being sent; nil before the first
	stalled chan struct{} // closed when a message was not taken in time
	once    sync.Once
}

func (s *Sender) stall() { s.once.Do(func() { close(s.stalled) }) }

// Send sends a message. A message that the client's windows do not take in time ends the
// stream.
func (s *Sender) Send(m any) error {
	if s.timer == nil {
		s.timer = time.AfterFunc(s.each, s.stall)
	} else {
		s.timer.Reset(s.each)
	}
	defer s.timer.Stop()
	return s.wire.SendMsg(m)
}

// Serve runs a stream that no engine feeds to its end. It calls serve, which sends through the
// sender, and returns when serve does, when a message is not taken within each, when the
// client's proof holds no more, or when the server stops. ctx ends by then; serve may
// still be in a call of Send, which ends with the stream.
func (st *Stream) Serve(each time.Duration, serve func(ctx context.Context, to *Sender) error) error {
	ctx, cancel := context.WithCancel(st.Context())
	defer cancel()
	to := &Sender{wire: st.Wire, each: each, stalled: make(chan struct{})}
	ended := make(chan error, 1)
	go func() { ended <- st.server.surviving(func() error { return serve(ctx, to) }) }() // until the stream ends, which is when the caller returns
	select {
	case err := <-ended:
		return err
	case <-st.over.Done():
		return st.Untrusted()
	case <-to.stalled:
		return st.server.Reject(unread, grpcstatus.Errorf(codes.ResourceExhausted, "a message was not taken within %s; read faster, or fewer records", each))
	case <-st.server.stopping:
		return st.linger(ctx, ended)
	}
}

// linger ends a stream of a stopping server after a random part of the time that all streams
// have, so that their clients do not all come to another server at once.
func (st *Stream) linger(ctx context.Context, ended <-chan error) error {
	timer := time.NewTimer(time.Duration(rand.Float64() * float64(st.server.ending.Load()))) //nolint:gosec // it only spreads ends
	defer timer.Stop()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	case <-timer.C:
	}
	return errStopping
}
