package xds

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/isthmus-mesh/isthmus/internal/mcp"
	"github.com/isthmus-mesh/isthmus/source"
)

// Reasons to ask the server once more, on the same connection.
var (
	errNoDelta      = errors.New("the server does not support delta xDS, or fails")
	errDeltaAnswers = errors.New("the server supports delta xDS after all")
	errNoResume     = errors.New("the server ignores initial_resource_versions")
	errNoWaypoint   = errors.New("the server does not support waypoints")
)

// behavior is how the server behaved on earlier streams. It outlives a run.
type behavior struct {
	pace pace
	// noResume says that the server ignores the held versions. Without a full state,
	// removed resources would stay.
	noResume bool
	// sidecar says that the server does not support waypoints.
	sidecar bool
	// deltaEnd is how delta streams end that list nothing; empty if they do not.
	deltaEnd string
}

// run follows the server on one stream. It belongs to one goroutine.
type run struct {
	*source.ExchangeStatus
	*behavior
	*state // of the active stream
	report report
	env    source.Env
	node   *corev3.Node
	sink   source.Sink
	conn   *grpc.ClientConn

	received chan received
	streams  sync.WaitGroup
	active   *stream
	// silent is an unanswered delta stream beside an active one of the other variant:
	// a server that was not ready yet may answer later.
	silent    *stream
	deltaOnly bool
	listed    bool
	protected map[string]bool // kinds that were not completely known when they were listed
}

// follow waits for
//   - the end,
//   - a message, or the end of a stream,
//   - a relist that the supervisor requests,
//   - the time at which an answer is overdue, or a first state complete.
func (r *run) follow(ctx context.Context, delta bool) error {
	streams, end := context.WithCancel(ctx)
	defer r.streams.Wait()
	defer end()
	if err := r.begin(streams, delta); err != nil {
		return err
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		if timer.Stop(); !r.listed {
			timer.Reset(time.Until(r.nextTick(time.Now())))
		}
		var err error
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case got := <-r.received:
			err = r.take(ctx, got)
		case <-r.sink.Relist():
			err = r.listAgain(ctx)
		case now := <-timer.C:
			err = r.tick(ctx, streams, now)
		}
		if err != nil {
			return err
		}
	}
}

// begin opens the active stream, and asks for everything on it.
func (r *run) begin(ctx context.Context, delta bool) error {
	s, err := openStream(ctx, r.conn, delta, r.node)
	if err != nil {
		return err
	}
	r.active = s
	r.state = &state{kinds: r.kinds, held: r.held, pace: &r.behavior.pace, types: map[string]*asked{}, delta: delta, began: time.Now()}
	r.recall(r.env.Stored())
	r.streams.Go(func() { s.receive(ctx, r.received) })
	for _, k := range r.kinds {
		for i, url := range k.urls {
			if h := r.held.types[url]; i > 0 && (h == nil || h.resources.Len() == 0) {
				continue // asked for if the newer type is answered with nothing
			}
			if err := r.ask(k, url); err != nil {
				return err
			}
		}
	}
	return nil
}

// ask requests a type on the active stream.
func (r *run) ask(of kind, url string) error {
	return r.active.ask(url, r.subscribe(of, url, r.noResume, time.Now()))
}

// nextTick returns when the first state is complete or overdue, as far as is known now.
func (r *run) nextTick(now time.Time) time.Time {
	at := r.due(now)
	if fallBack := r.began.Add(r.behavior.pace.delta); r.mayFallBack() && fallBack.Before(at) {
		return fallBack
	}
	return at
}

// mayFallBack reports whether the other variant is tried if no answer comes.
func (r *run) mayFallBack() bool {
	return r.active.delta && !r.deltaOnly && !r.answeredAtAll(r.essential())
}

// tick handles overdue answers, and lists once everything is complete.
func (r *run) tick(ctx, streams context.Context, now time.Time) error {
	switch {
	case r.listed:
		return nil
	case r.mayFallBack() && !now.Before(r.began.Add(r.behavior.pace.delta)):
		r.silent = r.active
		return r.begin(streams, false)
	}
	if !r.isComplete(now) {
		return nil
	}
	if err := r.lacks(); err != nil {
		r.behavior.pace.answer = min(2*r.behavior.pace.answer, r.behavior.pace.patient)
		return err
	}
	if err := r.check(); err != nil {
		return err
	}
	r.behavior.pace.answer = usual.answer
	return r.list(ctx)
}

// ended maps the end of a stream to the error of the run; nil if the run goes on.
func (r *run) ended(got received) error {
	switch {
	case got.from == r.silent:
		r.silent = nil
		return nil
	case got.from.delta && !got.from.open && status.Code(got.err) == codes.Unimplemented:
		return errNoDelta
	case !r.sidecar && !got.from.open && status.Code(got.err) == codes.InvalidArgument:
		return errNoWaypoint
	case r.givesUpDelta(got):
		return errNoDelta
	case errors.Is(got.err, io.EOF):
		return errors.New("the server has ended the stream")
	default:
		return got.err
	}
}

// take takes a message.
func (r *run) take(ctx context.Context, got received) error {
	if got.err != nil {
		return r.ended(got)
	}
	from := got.from
	from.open = true
	defer func() { from.next <- struct{}{} }() // the channel has room for the one token
	room := r.env.Memory.Bytes(most) / perField
	fields, ok := mcp.CountNested(got.data, fieldResources, int(room))
	if !ok {
		return fmt.Errorf("the server sent a message of more than %d fields, the limit for the available memory; have it send less, or give Isthmus more memory (GOMEMLIMIT)", room)
	}
	give, err := r.env.Memory.Take(ctx, 3*int64(len(got.data))+perField*int64(fields))
	if err != nil {
		return err
	}
	defer give()
	a, err := from.decode(got)
	if err != nil {
		return err
	}
	k := r.types[a.url]
	switch {
	case from == r.silent && !slices.Contains(r.essential().urls, a.url):
		return nil
	case from == r.silent:
		return errDeltaAnswers
	case k == nil:
		return r.active.reply(a, "", fmt.Sprintf("nobody asked for %q", a.url))
	case k.dropped:
		return nil // without an ACK the server does not send it again
	}
	return r.answer(ctx, k, a)
}

// answer takes an answer for a type, stores its changes, and replies.
func (r *run) answer(ctx context.Context, k *asked, a answer) error {
	r.Received(k.url, a.at)
	if !r.listed {
		r.slowest = max(r.slowest, a.at.Sub(k.waits))
	}
	k.marks, k.ends = k.marks || a.marks, k.ends || a.ends
	h := r.held.of(k.url, k.kind.Definition)
	d := h.compare(a)
	k.resumed = k.resumed || slices.Contains(a.removed, nobody)
	reason := h.undecodable(d)
	if reason == "" {
		r.accept(k, a, time.Now())
	} else {
		reason = short(reason)
		d, k.nacked = h.nacked(reason), reason
	}
	changed, echoed := !slices.Equal(h.trouble, d.trouble), len(h.echoes) > 0
	h.apply(d)
	if room := r.env.Memory.Lasting(most); r.held.size() > room {
		r.held.clear() // too many resources: only the records stay
		return fmt.Errorf("the resources of the server take more than %d bytes, the limit for the available memory; have it send less, or give Isthmus more memory (GOMEMLIMIT)", room)
	}
	if err := r.passOn(ctx, k, d, a, changed); err != nil {
		return err
	}
	if err := r.notify(ctx, h, echoed); err != nil {
		return err
	}
	if err := r.active.reply(a, k.version, reason); err != nil {
		return err
	}
	k.waits = time.Now()
	r.Replied(k.url, h.resources.Len(), reason)
	r.noteEchoes(k.url)
	return r.turnToOlder(k.kind)
}

// turnToOlder requests or drops the older type of a kind.
func (r *run) turnToOlder(of kind) error {
	request, drop := r.older(of)
	switch {
	case request != "":
		return r.ask(of, request)
	case drop != "":
		r.types[drop].dropped = true
		r.held.drop(drop)
		return r.active.drop(drop)
	}
	return nil
}

// short truncates a reason, and makes it valid UTF-8, since it may contain text that a peer sent.
func short(reason string) string {
	const enough = 500
	if len(reason) <= enough {
		return strings.ToValidUTF8(reason, "")
	}
	return strings.ToValidUTF8(reason[:enough], "") + "…"
}
