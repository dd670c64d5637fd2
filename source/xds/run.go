package xds

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/isthmus-mesh/isthmus/internal/mcp"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source"
)

// Reasons to ask the server once more, on the same connection.
var (
	errNoDelta      = errors.New("the server has no delta variant, or fails in it")
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
	// silent is an unanswered delta stream beside an active one of the other variant:
	// a server that was not ready yet may answer later.
	silent    *stream
	deltaOnly bool
	listed    bool
	protected map[string]bool // kinds that were not completely known when they were listed
	// stored are the names, by kind, with a stored record and no held resource. The
	// server has not sent them on the active stream.
	stored map[string]map[string]bool
	anew   bool // nothing was stored or held when that stream began
}

func (r *run) urls(kind mcp.Kind) []string { return r.config.urls(kind) }

// essential returns the kind without which there is no listing: ServiceEntry if
// requested, else the first.
func (r *run) essential() mcp.Kind {
	for _, kind := range r.kinds {
		if kind.Name == services {
			return kind
		}
	}
	return r.kinds[0]
}

const services = "ServiceEntry"

func newRun(s *Source, sink source.Sink, conn *grpc.ClientConn, h held) *run {
	return &run{Source: s, sink: sink, conn: conn, kinds: s.config.kinds(), held: h, received: make(chan received)}
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

// begin opens the active stream, and asks for everything on it.
func (r *run) begin(ctx context.Context, delta bool) error {
	s, err := openStream(ctx, r.conn, delta, r.node())
	if err != nil {
		return err
	}
	r.active = s
	r.recall()
	r.streams.Go(func() { s.receive(ctx, r.received) })
	for _, kind := range r.kinds {
		for i, url := range r.urls(kind) {
			if i > 0 && (r.held[url] == nil || len(r.held[url].resources) == 0) {
				continue // asked for if the newer type is answered with nothing
			}
			if err := r.ask(kind, url); err != nil {
				return err
			}
		}
	}
	return nil
}

// recall finds the names with a stored record but no held resource, left by an earlier process.
func (r *run) recall() {
	r.stored, r.anew = map[string]map[string]bool{}, true
	for rec := range r.env.Stored() {
		if rec.Owner != (model.Ref{}) {
			continue
		}
		for _, kind := range r.kinds {
			name, of := strings.CutPrefix(rec.Place, kind.Name+"/")
			if !of {
				continue
			}
			if r.stored[kind.Name] == nil {
				r.stored[kind.Name] = map[string]bool{}
			}
			r.stored[kind.Name][name] = true
		}
	}
	for _, kind := range r.kinds {
		r.anew = r.anew && len(r.stored[kind.Name]) == 0
		for _, url := range r.urls(kind) {
			if h := r.held[url]; h != nil {
				r.anew = r.anew && len(h.resources) == 0
				for name := range h.resources {
					delete(r.stored[kind.Name], name)
				}
			}
		}
	}
}

// ask requests a type on the active stream. A delta server receives the held
// versions, or the names of records that an earlier process stored; then it reports
// removed resources. A server that ignores these receives none.
func (r *run) ask(kind mcp.Kind, url string) error {
	now := time.Now()
	k := &asked{kind: kind, url: url, at: now, waits: now}
	r.active.types[url] = k
	h := r.held.of(url, kind)
	var versions map[string]string
	switch {
	case r.noResume || len(h.resources) > 0 && h.versions() == nil:
		k.unspoken = keys(h.resources)
		maps.Copy(k.unspoken, r.stored[kind.Name])
	case len(h.resources) > 0:
		versions = h.versions()
		k.resumes = r.active.delta
	default:
		k.unspoken = maps.Clone(r.stored[kind.Name])
		versions = unversioned(k.unspoken)
		k.claims = r.active.delta && versions != nil
	}
	if r.active.delta && versions == nil {
		k.names = map[string]bool{}
	}
	return r.active.ask(url, versions)
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
	case from == r.silent && !slices.Contains(r.urls(r.essential()), a.url):
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
		r.active.slowest = max(r.active.slowest, a.at.Sub(k.waits))
	}
	k.marks, k.ends = k.marks || a.marks, k.ends || a.ends
	h := r.held.of(k.url, k.kind)
	d := h.compare(a)
	k.resumed = k.resumed || slices.Contains(a.removed, nobody)
	reason := h.undecodable(d)
	switch {
	case reason != "":
		reason = short(reason)
		d = difference{trouble: []string{"the whole answer was NACKed: " + reason}, nameless: true}
		k.nacked = reason
	default:
		k.last, k.version, k.nacked = time.Now(), a.version, ""
		k.large = a.size >= large || len(a.resources) >= manyNames
		r.spoken(k, a)
		for name := range d.names {
			if k.names != nil {
				k.names[name] = true
			}
		}
	}
	changed, echoed := !slices.Equal(h.trouble, d.trouble), len(h.echoes) > 0
	h.apply(d)
	if room := r.env.Memory.Lasting(most); r.held.size() > room {
		clear(r.held) // too many resources: only the records stay
		return fmt.Errorf("what the server has sent takes more than %d bytes in all, which is as much as there is memory for; confine it, or give Isthmus more (GOMEMLIMIT)", room)
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
	r.Replied(k.url, len(h.resources), reason)
	r.noteEchoes(k.url)
	return r.older(k)
}

// spoken notes the names that the server has sent or removed. A resource sent as one
// type of a kind need not come as the other.
func (r *run) spoken(k *asked, a answer) {
	for _, name := range a.removed {
		delete(k.unspoken, name)
	}
	for _, res := range a.resources {
		delete(r.stored[k.kind.Name], res.name)
		for _, url := range r.urls(k.kind) {
			if of := r.active.types[url]; of != nil {
				delete(of.unspoken, res.name)
			}
		}
	}
}

// older requests a kind by its older type while the newer is answered with nothing.
// The older type is dropped once the newer has all its resources.
func (r *run) older(k *asked) error {
	names := r.urls(k.kind)
	if len(names) < 2 || r.active.types[names[0]].last.IsZero() {
		return nil
	}
	newer, old := r.newer(names[0]), r.active.types[names[1]]
	switch {
	case newer.size() == 0 && old == nil:
		return r.ask(k.kind, names[1])
	case newer.size() == 0 || old == nil || old.dropped:
		return nil
	case old.last.IsZero() && len(old.unspoken) > 0 || !newer.covers(r.held[names[1]]):
		return nil
	}
	old.dropped = true
	delete(r.held, names[1])
	return r.active.drop(names[1])
}

// nameSet is a set of resource names: the names in the first answers of a stream, or
// all held names.
type nameSet struct {
	names map[string]bool // nil for all held names
	held  *holding
}

// newer returns the names that the server has of a type. Until the first answers of a
// stream are complete, other held names may be gone.
func (r *run) newer(url string) nameSet { return nameSet{r.active.types[url].names, r.held[url]} }

// size returns the number of names. Each answer calls size, so no set is copied.
func (n nameSet) size() int {
	if n.names != nil {
		return len(n.names)
	}
	return len(n.held.resources)
}

// covers reports whether the set has all held names of another type.
func (n nameSet) covers(other *holding) bool {
	for name := range other.resources {
		_, held := n.held.resources[name]
		if n.names != nil && !n.names[name] || n.names == nil && !held {
			return false
		}
	}
	return true
}

// short truncates a reason, and makes it valid UTF-8, since it may contain text that a peer sent.
func short(reason string) string {
	const enough = 500
	if len(reason) <= enough {
		return strings.ToValidUTF8(reason, "")
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
