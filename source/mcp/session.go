package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"

	"github.com/isthmus-mesh/isthmus/internal/mcp"
	"github.com/isthmus-mesh/isthmus/source"
)

// wire is one stream, whoever has opened it.
type wire interface {
	SendMsg(m any) error // a *mcp.RequestResources
	RecvMsg(m any) error // an *answer
}

// session is one stream of a run: it asks, applies, and answers.
type session struct {
	*Source
	wire wire
	end  context.CancelFunc // of the stream
	sink source.Sink

	listed bool              // everything has been passed on
	ended  []string          // places that the peer has reported the end of, until then
	nonces map[string]string // of what is not ACKed before, by collection
	late   *time.Timer       // until everything has come
	stuck  atomic.Bool       // the peer has not read a request in time
}

// run speaks with the peer until the stream ends.
func (s *session) run(ctx context.Context) error {
	life, cancel := context.WithCancel(ctx)
	answers, ended := make(chan *answer), make(chan error, 1)
	var receiving sync.WaitGroup
	defer receiving.Wait()
	defer s.end()
	defer cancel()
	receiving.Go(func() { ended <- s.receive(life, answers) })
	s.nonces, s.late = map[string]string{}, time.NewTimer(s.config.pace.first)
	defer s.late.Stop()
	if err := s.ask(); err != nil {
		return err
	}
	return s.follow(ctx, answers, ended)
}

// receive hands over what comes, one at a time: nothing more is read while one is
// applied.
func (s *session) receive(ctx context.Context, answers chan<- *answer) error {
	for {
		a := new(answer)
		if err := s.wire.RecvMsg(a); err != nil {
			return err
		}
		select {
		case answers <- a:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// ask asks for every collection, from what is held of it.
func (s *session) ask() error {
	for _, c := range s.holding.collections {
		c.answered, c.said = false, nil
		if s.config.Incremental && s.resume {
			c.said = c.versions()
		}
		if err := s.send(&mcp.RequestResources{
			Collection: c.name, InitialResourceVersions: c.said, Incremental: s.config.Incremental,
		}); err != nil {
			return err
		}
	}
	return nil
}

// send bounds how long a peer may take to read: meanwhile nothing is read from it.
func (s *session) send(r *mcp.RequestResources) error {
	r.SinkNode = &mcp.SinkNode{Id: s.env.Instance, Annotations: map[string]string{"source": s.env.Name}}
	stuck := time.AfterFunc(s.config.pace.stuck, func() { s.stuck.Store(true); s.end() })
	defer stuck.Stop()
	if err := s.wire.SendMsg(r); err != nil && !errors.Is(err, io.EOF) { // then it is known why when receiving
		return s.explain(err)
	}
	return nil
}

// follow waits for
//   - an answer,
//   - the time by which there should have been some, until everything has come,
//   - the supervisor, who wants everything listed once more,
//   - the end of the stream, and of everything.
func (s *session) follow(ctx context.Context, answers <-chan *answer, ended <-chan error) error {
	for {
		var err error
		select {
		case a := <-answers:
			err = s.handle(ctx, a)
		case <-s.late.C:
			err = s.overdue(ctx)
		case <-s.sink.Relist():
			err = s.relist(ctx)
		case err := <-ended:
			return s.explain(err)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if err != nil {
			return err
		}
	}
}

// relist passes on what the peer has said last. It sends nothing twice.
func (s *session) relist(ctx context.Context) error {
	if !s.listed {
		return nil
	}
	return s.list(ctx)
}

// handle applies an answer, and answers it.
func (s *session) handle(ctx context.Context, a *answer) error {
	observed := time.Now()
	c := s.holding.find(a.collection)
	if c == nil {
		return s.nack(a, codes.Unimplemented, fmt.Sprintf("collection %q was not asked for", cut(a.collection)))
	}
	give, err := s.env.Memory.Take(ctx, int64(a.size)*workFactor)
	if err != nil {
		return err
	}
	defer give()
	d, err := s.holding.compare(c, a)
	s.Received(c.name, observed)
	if err != nil {
		s.nacks(c, err.Error(), observed)
		if err := s.nack(a, codeOf(err), err.Error()); err != nil {
			return err
		}
		return s.notify(ctx)
	}
	recovered := c.nacked.reason != ""
	first := !c.answered
	s.holding.apply(d)
	s.nonces[c.name] = a.nonce
	if first { // what it removes by name while resuming is reported, too
		s.ended = append(s.ended, s.holding.ended(d)...)
	}
	switch {
	case !s.listed && !s.holding.answered():
		s.late.Reset(s.config.pace.rest)
		return nil
	case first:
		return s.list(ctx)
	}
	if err := s.holding.pass(ctx, s.sink, d, observed); err != nil {
		return err
	}
	if err := s.ack(); err != nil || !recovered {
		return err
	}
	return s.notify(ctx)
}

// notify has people see what has changed of the collections themselves.
func (s *session) notify(ctx context.Context) error {
	if !s.listed {
		return nil
	}
	return s.sink.Replace(ctx, source.Listing{Places: []string{}, Notices: append(s.holding.notices(), s.notices()...)})
}

// workFactor is how much memory it takes to decode so many bytes, about.
const workFactor = 3

func codeOf(err error) codes.Code {
	if errors.Is(err, errTooMuch) {
		return codes.ResourceExhausted
	}
	return codes.InvalidArgument
}

// answered reports whether each collection has come on this stream.
func (h *holding) answered() bool {
	for _, c := range h.collections {
		if !c.answered {
			return false
		}
	}
	return true
}

// list passes on everything, and ACKs what was waiting for that.
func (s *session) list(ctx context.Context) error {
	l := s.holding.everything()
	s.keepUnanswered(&l)
	l.Notices = append(s.holding.notices(), s.notices()...)
	l.Observed, l.Removed = time.Now(), s.ended
	if err := s.sink.Replace(ctx, l); err != nil {
		return err
	}
	s.listed, s.ended = true, nil
	return s.ack()
}

// ack ACKs what is stored by now.
func (s *session) ack() error {
	for _, c := range s.holding.collections {
		nonce, waits := s.nonces[c.name]
		if !waits {
			continue
		}
		delete(s.nonces, c.name)
		s.acked(c)
		if nonce == "" {
			continue // an answer to it would be a request
		}
		if err := s.send(&mcp.RequestResources{Collection: c.name, ResponseNonce: nonce, Incremental: s.config.Incremental}); err != nil {
			return err
		}
	}
	return nil
}

// nack NACKs an answer. What is sent next is to be everything, since the peer does
// not know what is held.
func (s *session) nack(a *answer, code codes.Code, reason string) error {
	if a.nonce == "" && a.collection != mcp.TriggerCollection {
		return nil // it would be a request
	}
	return s.send(&mcp.RequestResources{
		Collection: a.collection, ResponseNonce: a.nonce,
		ErrorDetail: &status.Status{Code: int32(code), Message: reason}, //nolint:gosec // one of a few
	})
}
