package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// A connection that breaks is the end of a watch for client-go: it returns a watch
// without events, and no error. Behind a balancer that accepts connections and closes
// them, each watch would seem to begin. So the transport's errors are noted here. A
// watch counts as begun with its first event, or once it has lasted.

// longestBegin is how long the API server may take to answer a watch. Some proxies
// withhold the answer until the first event, which may be a bookmark after a minute.
// The pings of HTTP/2 detect that a running watch is dead.
const longestBegin = 90 * time.Second

// shortest is how long a watch without events has to last. client-go uses the same time.
const shortest = time.Second

// begin begins a watch, and gives up if the API server does not answer.
func (f *feed) begin(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	ctx, cancel := context.WithCancel(ctx)
	note := &transportNote{failed: func(err error) { f.answered(ctx, err, false) }}
	late := time.AfterFunc(longestBegin, cancel)
	w, err := f.api.Watch(context.WithValue(ctx, noteKey{}, note), options)
	inTime := late.Stop()
	if broken := note.get(); inTime && err == nil && broken == nil {
		b := &begun{
			Interface: w, ctx: ctx, cancel: cancel, results: make(chan watch.Event),
			answered: func(err error) { f.answered(ctx, err, false) }, received: f.receives, relist: f.relist,
		}
		if options.SendInitialEvents != nil {
			b.stalls = time.NewTimer(longest)
			b.stalled = b.stalls.C
		}
		go b.relay()
		return b, nil
	} else if err == nil {
		w.Stop()
		err = broken
	}
	if !inTime {
		err = fmt.Errorf("no answer to a watch within %s", longestBegin)
	}
	cancel()
	return nil, err
}

// begun is a watch that was answered.
type begun struct {
	watch.Interface
	ctx      context.Context //nolint:containedctx // of the request, which ends with the watch
	cancel   context.CancelFunc
	results  chan watch.Event
	answered func(error)
	received func(watch.Event)
	relist   <-chan struct{} // has everything listed anew

	// A watch that begins with a list has stalled if it sends nothing for long before the end
	// of the list. Both are nil for other watches.
	stalls  *time.Timer
	stalled <-chan time.Time
}

// ResultChan implements [watch.Interface].
func (b *begun) ResultChan() <-chan watch.Event { return b.results }

// Stop implements [watch.Interface].
func (b *begun) Stop() {
	b.cancel() // first: a requested end is no fault
	b.Interface.Stop()
}

var errEndsAtOnce = errors.New("the watch ended at once, without an event; check whether a proxy in front of the API server closes connections")

// relay passes the events on, and notes whether the watch goes on. It waits for
//   - an event, or the end,
//   - the time at which a watch without events has lasted,
//   - a reason to list everything: events were missed, or the list stalls that the watch begins
//     with.
func (b *begun) relay() {
	defer close(b.results)
	lasts := time.NewTimer(shortest)
	defer lasts.Stop()
	goesOn := false
	for {
		select {
		case <-lasts.C:
			if !goesOn && b.stalled == nil { // else it has to send something
				goesOn = true
				b.answered(nil)
			}
		case <-b.relist:
			b.pass(listAnew)
			return
		case <-b.stalled:
			b.pass(listAnew)
			return
		case e, more := <-b.Interface.ResultChan():
			if !goesOn {
				goesOn = b.judge(e, more)
			}
			if !more {
				return
			}
			if b.received(e); b.stalled != nil {
				b.goesOn(e)
			}
			if !b.pass(e) {
				return
			}
		}
	}
}

// goesOn notes an event of the list that a watch begins with.
func (b *begun) goesOn(e watch.Event) {
	if b.stalls.Stop(); endsList(e) {
		b.stalled = nil
		return
	}
	b.stalls.Reset(longest)
}

// pass passes an event on, and reports whether the reflector has taken it.
func (b *begun) pass(e watch.Event) bool {
	select {
	case b.results <- e:
		return true
	case <-b.ctx.Done():
		return false
	}
}

// judge reports whether the watch works, by its first event or its end.
func (b *begun) judge(e watch.Event, more bool) (goesOn bool) {
	if !more {
		b.answered(errEndsAtOnce)
		return false
	}
	if e.Type != watch.Error {
		b.answered(nil)
		return true
	}
	if err := apierrors.FromObject(e.Object); !hasExpired(err) {
		b.answered(err)
	}
	return true
}

// transportNote records how the newest attempt at a request ended in the transport.
type transportNote struct {
	failed func(error)

	mu  sync.Mutex
	err error
}

type noteKey struct{}

func (n *transportNote) set(err error) {
	n.mu.Lock()
	n.err = err
	n.mu.Unlock()
	if err != nil {
		n.failed(err)
	}
}

func (n *transportNote) get() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.err
}

// noting is a transport that reports each error at once to requests with a note.
// client-go itself makes ten more attempts, a second apart, before it returns.
type noting struct{ http.RoundTripper }

// RoundTrip implements [http.RoundTripper].
func (t noting) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := t.RoundTripper.RoundTrip(r)
	if errors.Is(err, io.EOF) {
		err = fmt.Errorf("the connection to the API server was closed before an answer came: %w", err)
	}
	if note, wants := r.Context().Value(noteKey{}).(*transportNote); wants {
		note.set(err)
	}
	return response, err
}
