package xds

import (
	"context"
	"fmt"
	"time"

	"github.com/isthmus-mesh/isthmus/internal/mcp"
)

// due returns when everything is answered or overdue, as far as is known now.
func (r *run) due(now time.Time) (at time.Time, waits bool) {
	if r.listed {
		return time.Time{}, false
	}
	at = now
	for _, k := range r.active.types {
		if done, again := r.answered(k, now); !done && !k.dropped && again.After(at) {
			at = again
		}
	}
	if fallBack := r.active.began.Add(r.pace.delta); r.mayFallBack() && fallBack.Before(at) {
		at = fallBack
	}
	return at, true
}

// mayFallBack reports whether the other variant is tried if no answer comes.
func (r *run) mayFallBack() bool {
	return r.active.delta && !r.deltaOnly && !r.answeredAtAll(r.essential())
}

func (r *run) answeredAtAll(kind mcp.Kind) bool {
	for _, url := range r.urls(kind) {
		if k := r.active.types[url]; k != nil && !k.last.IsZero() {
			return true
		}
	}
	return false
}

// tick handles overdue answers, and lists once everything is complete.
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
	if err := r.lacks(); err != nil {
		r.pace.answer = min(2*r.pace.answer, r.pace.patient)
		return err
	}
	for _, k := range r.active.types {
		switch {
		case k.last.IsZero() || k.dropped:
		case k.marks && !k.ends:
			return fmt.Errorf("the server has sent a part of what it has of %s, and then nothing for %s", k.url, r.pace.mark)
		case k.resumes && !k.resumed && !k.marks:
			return errNoResume
		}
	}
	r.pace.answer = usual.answer
	return r.list(ctx)
}

// lacks returns the type that keeps the services unknown, as an error. A NACKed type does
// so. A silent type does so unless the other type of the kind has sent resources.
func (r *run) lacks() error {
	kind, some := r.essential(), 0
	for _, url := range r.urls(kind) {
		if k := r.active.types[url]; k != nil && !k.last.IsZero() {
			some += r.newer(url).size()
		}
	}
	for _, url := range r.urls(kind) {
		k := r.active.types[url]
		switch {
		case k == nil || k.dropped || !k.last.IsZero():
		case k.nacked != "":
			return fmt.Errorf("nothing that the server sends as %s can be used, and without it the services are not known: %s; correct it in the registry", url, k.nacked)
		case !r.answeredAtAll(kind):
			return fmt.Errorf("the server has not answered for %s within %s; it may not be ready, or be another kind of server", url, r.pace.answer)
		case some == 0 && kind.Name == services:
			return fmt.Errorf("the server has nothing as %s, and has not answered for %s within %s; have it answer, with nothing if there is none, or ask for the former alone: types: [%s, …]",
				kind.URL(), url, r.pace.answer, kind.URL())
		}
	}
	return nil
}

// answered reports whether the first state of a type is complete, or when to check
// again. A delta server without marks does not show the end of a state that it sends
// in several answers.
func (r *run) answered(k *asked, now time.Time) (done bool, again time.Time) {
	switch {
	case k.last.IsZero():
		return false, k.at.Add(r.pace.answer)
	case !r.active.delta:
		return true, time.Time{}
	case k.marks:
		return k.ends, k.last.Add(r.pace.mark)
	}
	end := k.last.Add(r.silence(k))
	return !now.Before(end), end
}

// silence returns how long a delta server without marks must be silent until a type's
// first state is complete. The more depends on the type, the longer.
func (r *run) silence(k *asked) time.Duration {
	least := max(r.pace.quiet, min(roundTrips*r.active.slowest, r.pace.missing)) // a longer wait was a change, not a slow answer
	switch {
	case !k.resumes && !k.resumed && len(k.unspoken) > 0:
		return max(least, r.pace.missing)
	case k.large || r.anew:
		return max(least, r.pace.more)
	default:
		return least
	}
}

// whyNot returns why an answer for a kind does not count.
func (r *run) whyNot(kind mcp.Kind) string {
	for _, url := range r.urls(kind) {
		if h := r.held[url]; h != nil && len(h.trouble) > 0 {
			return ": " + h.trouble[0]
		}
	}
	return ""
}

// complete reports whether the first state of a kind is complete, or overdue.
func (r *run) complete(kind mcp.Kind, now time.Time) bool {
	for _, url := range r.urls(kind) {
		k := r.active.types[url]
		if k == nil || k.dropped {
			continue
		}
		if done, again := r.answered(k, now); !done && now.Before(again) {
			return false
		}
	}
	return true
}
