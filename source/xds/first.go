package xds

import (
	"context"
	"fmt"
	"time"

	"github.com/isthmus-mesh/isthmus/internal/mcp"
)

// due is when everything has been answered or is overdue, as far as one can say now.
func (r *run) due(now time.Time) (at time.Time, waits bool) {
	if r.listed {
		return time.Time{}, false
	}
	at = now
	for _, k := range r.active.types {
		if done, again := k.answered(r.pace, r.active.delta, now); !done && !k.dropped && again.After(at) {
			at = again
		}
	}
	if fallBack := r.active.began.Add(r.pace.delta); r.mayFallBack() && fallBack.Before(at) {
		at = fallBack
	}
	return at, true
}

// mayFallBack reports whether the other variant is tried if nothing is answered.
func (r *run) mayFallBack() bool {
	return r.active.delta && !r.deltaOnly && !r.answeredAtAll(r.kinds[0])
}

func (r *run) answeredAtAll(kind mcp.Kind) bool {
	for _, url := range urls(kind) {
		if k := r.active.types[url]; k != nil && !k.last.IsZero() {
			return true
		}
	}
	return false
}

// tick looks at what has not been answered.
func (r *run) tick(ctx, streams context.Context, now time.Time) error {
	switch {
	case r.listed:
		return nil
	case r.mayFallBack() && !now.Before(r.active.began.Add(r.pace.delta)):
		r.silent = r.active
		return r.begin(streams, false)
	}
	for _, kind := range r.kinds {
		if !r.complete(kind, now) {
			return nil
		}
	}
	if kind := r.kinds[0]; !r.answeredAtAll(kind) {
		return fmt.Errorf("the server has not answered for %s within %s; it may not be ready, or be another kind of server%s",
			kind.URL(), r.pace.answer, r.whyNot(kind))
	}
	for _, k := range r.active.types {
		if k.resumes && !k.resumed && !k.last.IsZero() && !k.dropped {
			return errNoResume
		}
	}
	return r.list(ctx)
}

// whyNot says why an answer for a kind does not count.
func (r *run) whyNot(kind mcp.Kind) string {
	for _, url := range urls(kind) {
		if h := r.held[url]; h != nil && len(h.trouble) > 0 {
			return ": " + h.trouble[0]
		}
	}
	return ""
}

// complete reports whether the first state of a kind is complete, or overdue.
func (r *run) complete(kind mcp.Kind, now time.Time) bool {
	for _, url := range urls(kind) {
		k := r.active.types[url]
		if k == nil || k.dropped {
			continue
		}
		if done, again := k.answered(r.pace, r.active.delta, now); !done && now.Before(again) {
			return false
		}
	}
	return true
}
