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
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source"
	"github.com/isthmus-mesh/isthmus/source/mirror"
)

// wire is a stream, opened by either side.
type wire interface {
	SendMsg(m any) error // a *mcp.RequestResources
	RecvMsg(m any) error // an *answer
}

// session is one stream of a run: it requests, applies, and acknowledges.
type session struct {
	*source.ExchangeStatus
	holding *holding
	wire    wire
	end     context.CancelFunc // of the stream
	sink    source.Sink
	settings

	listed   bool        // everything has been passed on
	ended    []string    // places reported as removed before the first listing
	progress progress    // until the first listing
	late     *time.Timer // fires without further progress
	stuck    atomic.Bool // the peer has not read a request in time
}

// settings are the parts of the configuration that a session needs.
type settings struct {
	env         source.Env
	peer        string // for people
	others      *turned
	pace        pace
	incremental bool
	chosen      bool // collections are configured
	largest     int  // maximum bytes of an answer
}

// run runs the session until the stream ends.
func (s *session) run(ctx context.Context) error {
	life, cancel := context.WithCancel(ctx)
	answers, ended := make(chan *answer), make(chan error, 1)
	var receiving sync.WaitGroup
	defer receiving.Wait()
	defer s.end()
	defer cancel()
	receiving.Go(func() { ended <- s.receive(life, answers) })
	if err := s.ask(); err != nil {
		return err
	}
	s.progress = s.holding.collections.progress()
	s.late = time.NewTimer(s.patience())
	defer s.late.Stop()
	return s.follow(ctx, answers, ended)
}

// receive hands over answers one at a time: the next one is read after the last one
// was applied.
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

// ask requests every collection, with the held versions if it resumes.
func (s *session) ask() error {
	for _, c := range s.holding.collections {
		c.answered, c.refused, c.said = false, false, nil
		if s.incremental && !s.holding.noResume {
			c.said = c.versions()
		}
		if err := s.send(&mcp.RequestResources{
			Collection: c.name, InitialResourceVersions: c.said, Incremental: s.incremental,
		}); err != nil {
			return err
		}
	}
	return nil
}

// send sends a request. The time is bounded, since no answer is handled while the
// peer does not read.
func (s *session) send(r *mcp.RequestResources) error {
	r.SinkNode = &mcp.SinkNode{Id: s.env.Instance, Annotations: map[string]string{"source": s.env.Name}}
	stuck := time.AfterFunc(s.pace.stuck, func() { s.stuck.Store(true); s.end() })
	defer stuck.Stop()
	if err := s.wire.SendMsg(r); err != nil && !errors.Is(err, io.EOF) { // the receiver returns the cause
		return s.explain(err)
	}
	return nil
}

// follow waits for
//   - an answer,
//   - the time limit for the next answer, until everything has come,
//   - a relist that the supervisor requests,
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

// relist passes on the peer's last state. Nothing is requested from the peer.
func (s *session) relist(ctx context.Context) error {
	if !s.listed {
		return nil
	}
	return s.list(ctx)
}

// handle applies an answer, and acknowledges it.
func (s *session) handle(ctx context.Context, a *answer) error {
	observed := time.Now()
	if a.err != nil && a.nonce == "" {
		return s.unanswerable(a.err)
	}
	c := s.holding.collections.find(a.collection)
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
		return s.reject(ctx, c, a, err, observed)
	}
	first, recovered, echoed, twice := !c.answered, c.nacked != nacked{}, c.echoed > 0, c.twice
	c.nacked = nacked{}
	s.holding.apply(d)
	if first { // names removed while resuming are reported, too
		s.ended = append(s.ended, d.ended()...)
	}
	switch {
	case !s.listed:
		err = s.advance(ctx)
	case first:
		err = s.list(ctx)
	default:
		err = s.pass(ctx, d, observed)
	}
	if err != nil {
		return err
	}
	if err := s.ack(c, a); err != nil || !recovered && echoed == (c.echoed > 0) && twice == c.twice {
		return err
	}
	return s.notify(ctx)
}

// pass passes on the changes of an answer, after they were applied to the holding.
// The cost grows with the changes alone.
func (s *session) pass(ctx context.Context, d *difference, observed time.Time) error {
	if d.whole {
		l := d.collection.listing()
		if l.Observed = observed; len(l.Places) == 0 {
			return nil
		}
		return s.sink.Replace(ctx, l)
	}
	c := d.collection.change()
	if c.Observed = observed; mirror.IsEmpty(c) {
		return nil
	}
	return s.sink.Change(ctx, c)
}

// reject NACKs an answer of a collection, which changes nothing.
func (s *session) reject(ctx context.Context, c *collection, a *answer, why error, observed time.Time) error {
	if a.nonce == "" {
		return s.unanswerable(why)
	}
	reason := cut(forOperator(why))
	s.Replied(c.name, c.held.Len(), reason)
	c.nacked, c.refused = nacked{reason, observed}, true
	if err := s.nack(a, codeOf(why), why.Error()); err != nil {
		return err
	}
	if !s.listed {
		return s.advance(ctx)
	}
	return s.notify(ctx)
}

// unanswerable returns why a stream is ended: a message without a nonce cannot be
// NACKed. The peer would take the message for applied.
func (s *session) unanswerable(why error) error {
	return fmt.Errorf("%s has sent a message that cannot be NACKed, as it has no nonce: %s", s.peer, cut(forOperator(why)))
}

// advance lists everything once all collections have come. Each step restarts the
// timer.
func (s *session) advance(ctx context.Context) error {
	now := s.holding.collections.progress()
	switch {
	case now == progress{}:
		return s.list(ctx)
	case now != s.progress:
		s.progress = now
		s.late.Reset(s.patience())
	}
	return nil
}

// notify passes on the notices about the collections.
func (s *session) notify(ctx context.Context) error {
	if !s.listed {
		return nil
	}
	return s.sink.Replace(ctx, model.Listing{Places: []string{}, Notices: s.notices()})
}

func (s *session) notices() []model.Notice {
	return append(s.holding.notices(), s.others.notices()...)
}

// advised is an error with a remedy for the operator, which is not sent to the peer.
type advised struct {
	error
	remedy string
}

// forOperator returns the text of an error with its remedy.
func forOperator(err error) string {
	if a := (*advised)(nil); errors.As(err, &a) {
		return err.Error() + ": " + a.remedy
	}
	return err.Error()
}

// workFactor is the approximate memory for decoding, in multiples of the encoded bytes.
const workFactor = 3

func codeOf(err error) codes.Code {
	if errors.Is(err, errTooMuch) {
		return codes.ResourceExhausted
	}
	return codes.InvalidArgument
}

// list passes on everything.
func (s *session) list(ctx context.Context) error {
	l := s.holding.everything()
	s.keepUnanswered(&l)
	l.Notices = s.notices()
	l.Observed, l.Removed = time.Now(), append(l.Removed, s.ended...)
	if err := s.sink.Replace(ctx, l); err != nil {
		return err
	}
	s.listed, s.ended = true, nil
	s.late.Stop() // nothing is overdue any more
	return nil
}

// ack ACKs an answer: it is stored by now, or waits for the first listing. A peer may
// withhold the next answer until then, such as the first service.
func (s *session) ack(c *collection, a *answer) error {
	s.Replied(c.name, c.held.Len(), "")
	s.Echoed(c.name, c.echoed)
	if a.nonce == "" {
		return nil // without a nonce it would be a new request
	}
	return s.send(&mcp.RequestResources{Collection: c.name, ResponseNonce: a.nonce, Incremental: s.incremental})
}

// nack NACKs an answer. The next answer has to be complete, since the peer does not
// know the held resources.
func (s *session) nack(a *answer, code codes.Code, reason string) error {
	if a.nonce == "" && a.collection != mcp.TriggerCollection {
		return nil // it would be a request
	}
	return s.send(&mcp.RequestResources{
		Collection: a.collection, ResponseNonce: a.nonce,
		ErrorDetail: &status.Status{Code: int32(code), Message: reason}, //nolint:gosec // one of a few
	})
}
