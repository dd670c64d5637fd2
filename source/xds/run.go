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

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/isthmus-mesh/isthmus/internal/mcp"
	"github.com/isthmus-mesh/isthmus/source"
)

// Why the server is asked once more, on the same connection.
var (
	errNoDelta      = errors.New("the server has no delta variant")
	errDeltaAnswers = errors.New("the server answers in the delta variant after all")
	errNoResume     = errors.New("the server takes no notice of what is held")
	errNoWaypoint   = errors.New("the server knows no waypoints")
)

// run follows the server on one stream. It belongs to one goroutine.
type run struct {
	*Source
	sink  source.Sink
	conn  *grpc.ClientConn
	kinds []mcp.Kind
	held  held

	received chan received
	streams  sync.WaitGroup
	active   *stream
	// silent is a delta stream that was not answered, beside an active one of the
	// other variant: a server that was not ready yet may answer later.
	silent    *stream
	deltaOnly bool
	listed    bool
	protected map[string]bool // kinds of which not all was known when that was passed on
}

func newRun(s *Source, sink source.Sink, conn *grpc.ClientConn, h held) *run {
	return &run{Source: s, sink: sink, conn: conn, kinds: s.config.kinds(), held: h, received: make(chan received)}
}

// follow waits for
//   - the end,
//   - a message, or the end of a stream,
//   - the supervisor, who wants everything listed once more,
//   - the time at which something is overdue, or a first state complete.
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
		if due, waits := r.due(time.Now()); waits {
			timer.Reset(time.Until(due))
		} else {
			timer.Stop()
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

// begin opens the stream that counts, and asks for everything on it.
func (r *run) begin(ctx context.Context, delta bool) error {
	s, err := openStream(ctx, r.conn, delta, r.node())
	if err != nil {
		return err
	}
	r.active = s
	r.streams.Go(func() { s.receive(ctx, r.received) })
	for _, kind := range r.kinds {
		for i, url := range urls(kind) {
			if i > 0 && (r.held[url] == nil || len(r.held[url].resources) == 0) {
				continue // asked for if the newer is answered with nothing
			}
			if err := r.ask(kind, url); err != nil {
				return err
			}
		}
	}
	return nil
}

// ask asks for a type on the active stream.
func (r *run) ask(kind mcp.Kind, url string) error {
	k := &asked{kind: kind, url: url, at: time.Now()}
	r.active.types[url] = k
	var versions map[string]string
	h := r.held.of(url, kind)
	if !r.noResume {
		versions = h.versions()
	}
	if r.active.delta && versions == nil {
		k.names = map[string]bool{}
	}
	k.resumes = r.active.delta && versions != nil
	return r.active.ask(url, versions)
}

// ended says what becomes of the end of a stream.
func (r *run) ended(got received) error {
	switch {
	case got.from == r.silent:
		r.silent = nil
		return nil
	case got.from.delta && !got.from.open && status.Code(got.err) == codes.Unimplemented:
		return errNoDelta
	case !r.sidecar && !got.from.open && status.Code(got.err) == codes.InvalidArgument:
		return errNoWaypoint
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
	defer func() { from.next <- struct{}{} }() // there is room for the one token
	room := r.env.Memory.Bytes(most) / perField
	fields, ok := mcp.CountNested(got.data, fieldResources, int(room))
	if !ok {
		return fmt.Errorf("the server has sent a message of more than %d fields, which is as much as there is memory for; confine it, or give Isthmus more (GOMEMLIMIT)", room)
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
	k := r.active.types[a.url]
	switch {
	case from == r.silent && !slices.Contains(urls(r.kinds[0]), a.url):
		return nil
	case from == r.silent:
		return errDeltaAnswers
	case k == nil:
		return r.active.reply(a, "", fmt.Sprintf("nobody asked for %q", a.url))
	case k.dropped:
		return nil // without an ACK it is not sent again
	}
	return r.answer(ctx, k, a)
}

// answer takes an answer for a type, stores what it changes, and replies.
func (r *run) answer(ctx context.Context, k *asked, a answer) error {
	r.Received(k.url, a.at)
	h := r.held.of(k.url, k.kind)
	d := h.compare(a)
	k.resumed = k.resumed || slices.Contains(a.removed, nobody)
	reason := h.undecodable(d)
	switch {
	case reason != "":
		reason = short(reason)
		d = difference{trouble: []string{"the whole answer was NACKed: " + reason}, nameless: true}
	default:
		k.last, k.large, k.version = time.Now(), a.size >= large, a.version
		for name := range d.names {
			if k.names != nil {
				k.names[name] = true
			}
		}
	}
	changed := !slices.Equal(h.trouble, d.trouble)
	h.apply(d)
	if room := r.env.Memory.Bytes(most); r.held.size() > room {
		clear(r.held) // of a server that says too much nothing is left but the records
		return fmt.Errorf("what the server has sent takes more than %d bytes in all, which is as much as there is memory for; confine it, or give Isthmus more (GOMEMLIMIT)", room)
	}
	if err := r.passOn(ctx, k, d, a, changed); err != nil {
		return err
	}
	if err := r.active.reply(a, k.version, reason); err != nil {
		return err
	}
	r.Replied(k.url, len(h.resources), reason)
	return r.older(k)
}

// older asks for a kind under its older name where the newer is answered with
// nothing, and no more once the newer has all of it.
func (r *run) older(k *asked) error {
	names := urls(k.kind)
	if len(names) < 2 || r.active.types[names[0]].last.IsZero() {
		return nil
	}
	newer, old := r.newer(names[0]), r.active.types[names[1]]
	switch {
	case newer.size() == 0 && old == nil:
		return r.ask(k.kind, names[1])
	case newer.size() == 0 || old == nil || old.dropped:
		return nil
	case !newer.covers(r.held[names[1]]):
		return nil
	}
	old.dropped = true
	delete(r.held, names[1])
	return r.active.drop(names[1])
}

// nameSet is a set of names of resources: those of the first answers of a stream, or all that
// are held.
type nameSet struct {
	names map[string]bool // nil for all that are held
	held  *holding
}

// newer are the names that the server has of a type: as long as the first answers of a
// stream have not come, what is held besides may be gone.
func (r *run) newer(url string) nameSet { return nameSet{r.active.types[url].names, r.held[url]} }

// size is how many there are. It is asked for at each answer, so nothing is copied.
func (n nameSet) size() int {
	if n.names != nil {
		return len(n.names)
	}
	return len(n.held.resources)
}

// covers reports whether all that is held of another type is among them.
func (n nameSet) covers(other *holding) bool {
	for name := range other.resources {
		_, held := n.held.resources[name]
		if n.names != nil && !n.names[name] || n.names == nil && !held {
			return false
		}
	}
	return true
}

// short bounds a reason, of which what a peer sent is a part.
func short(reason string) string {
	const enough = 500
	if len(reason) <= enough {
		return reason
	}
	return strings.ToValidUTF8(reason[:enough], "") + "…"
}

func keys(resources map[string]resource) map[string]bool {
	set := make(map[string]bool, len(resources))
	for name := range resources {
		set[name] = true
	}
	return set
}
