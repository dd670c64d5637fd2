package xds

import (
	"fmt"
	"slices"
	"time"
)

// due returns when the first state is complete or overdue, as far as is known now.
func (s *state) due(now time.Time) time.Time {
	at := now
	for _, k := range s.types {
		if done, again := s.answered(k, now); !done && !k.dropped && again.After(at) {
			at = again
		}
	}
	return at
}

func (s *state) answeredAtAll(of kind) bool {
	for _, url := range of.urls {
		if k := s.types[url]; k != nil && !k.last.IsZero() {
			return true
		}
	}
	return false
}

// isComplete reports whether the first state of each kind is complete, or overdue.
func (s *state) isComplete(now time.Time) bool {
	return !slices.ContainsFunc(s.kinds, func(k kind) bool { return !s.complete(k, now) })
}

// check returns why a first state that is not awaited any longer cannot be listed.
func (s *state) check() error {
	for _, k := range s.types {
		switch {
		case k.last.IsZero() || k.dropped:
		case k.marks && !k.ends:
			return fmt.Errorf("the server sent an incomplete list of %s, and then nothing for %s", k.url, s.pace.mark)
		case k.resumes && !k.resumed && !k.marks:
			return errNoResume
		}
	}
	return nil
}

// lacks returns the type that keeps the services unknown, as an error. A NACKed type does
// so. A silent type does so unless the other type of the kind has sent resources.
func (s *state) lacks() error {
	of, some := s.essential(), 0
	for _, url := range of.urls {
		if k := s.types[url]; k != nil && !k.last.IsZero() {
			some += s.newer(url).size()
		}
	}
	for _, url := range of.urls {
		k := s.types[url]
		switch {
		case k == nil || k.dropped || !k.last.IsZero():
		case k.nacked != "":
			return fmt.Errorf("no resource of %s from the server is valid, so the services are unknown: %s; correct the resources in the registry", url, k.nacked)
		case !s.answeredAtAll(of):
			return fmt.Errorf("the server has not answered for %s within %s; it may not be ready, or be another kind of server", url, s.pace.answer)
		case some == 0 && of.MakesServices():
			return fmt.Errorf("the server has nothing as %s, and has not answered for %s within %s; have it answer, with nothing if there is none, or ask for the former alone: types: [%s, …]",
				of.URL(), url, s.pace.answer, of.URL())
		}
	}
	return nil
}

// answered reports whether the first state of a type is complete, or when to check
// again. A delta server without marks does not show the end of a state that it sends
// in several answers.
func (s *state) answered(k *asked, now time.Time) (done bool, again time.Time) {
	switch {
	case k.last.IsZero():
		return false, k.at.Add(s.pace.answer)
	case !s.delta:
		return true, time.Time{}
	case k.marks:
		return k.ends, k.last.Add(s.pace.mark)
	}
	end := k.last.Add(s.silence(k))
	return !now.Before(end), end
}

// silence returns how long a delta server without marks must be silent until a type's
// first state is complete. The more depends on the type, the longer.
func (s *state) silence(k *asked) time.Duration {
	least := max(s.pace.quiet, min(roundTrips*s.slowest, s.pace.missing)) // a longer wait was a change, not a slow answer
	switch {
	case !k.resumes && !k.resumed && len(k.unspoken) > 0:
		return max(least, s.pace.missing)
	case k.large || s.anew:
		return max(least, s.pace.more)
	default:
		return least
	}
}

// whyNot returns why an answer for a kind does not count.
func (s *state) whyNot(of kind) string {
	for _, url := range of.urls {
		if h := s.held.types[url]; h != nil && len(h.trouble) > 0 {
			return ": " + h.trouble[0]
		}
	}
	return ""
}

// complete reports whether the first state of a kind is complete, or overdue.
func (s *state) complete(of kind, now time.Time) bool {
	for _, url := range of.urls {
		k := s.types[url]
		if k == nil || k.dropped {
			continue
		}
		if done, again := s.answered(k, now); !done && now.Before(again) {
			return false
		}
	}
	return true
}
