package pushtest

import (
	"slices"
	"time"

	"github.com/isthmus-mesh/isthmus/push/world"
)

// refers lists the names of another type that a client reads in a resource, if the client
// asks for them.
func (s *typed) refers(body []byte, other *typed) (names []string) {
	if s.maker.Refers == nil {
		return nil
	}
	for _, name := range s.maker.Refers(s.row, body, other.spec.Name) {
		if other.subscribed(name) {
			names = append(names, name)
		}
	}
	return names
}

// related yields the types on this stream that names lists.
func (s *typed) related(names []string) func(func(*typed) bool) {
	return func(yield func(*typed) bool) {
		for _, other := range s.c.sorted() {
			if slices.Contains(names, other.spec.Name) && !yield(other) {
				return
			}
		}
	}
}

// checkNeeds checks that a resource came after everything that it needs. Some world must
// contain the resource as sent. Each of its needs must be absent from that world, or the
// client has that version and has answered it.
func (s *typed) checkNeeds(e world.Encoded) {
	if s.wasUnclear(e.Name) {
		return // the resource has its last good form, which may have other references
	}
	if s.spec.Fixed && s.held[e.Name] != nil {
		return
	}
	for other := range s.related(s.spec.Needs) {
		for _, name := range s.refers(e.Body, other) {
			if other.since(name) >= max(s.fence, s.asked) || other.full && other.first && other.claims {
				continue // the response may have been in flight before the request, or the client claims to hold the resource
			}
			if !s.someWorld(other, func(mine, its view) bool { return mine.is(e) && other.settledIn(its, name, s.aggregates()) }) {
				s.violated(order, "%s came, which refers to %s, before that had been sent and answered", e.Name, name)
			}
		}
	}
}

// guarded reports whether the client keeps a full set of an earlier stream, until every
// source has been listed.
func (s *typed) guarded() bool { return s.full && s.first && s.claims && !s.maker.complete }

// guarded reports whether any type is guarded. Until then nothing is removed that the
// resources of such a type may refer to.
func (c *client) guarded() bool { return slices.ContainsFunc(c.sorted(), (*typed).guarded) }

// is reports whether a resource may be the view's version.
func (v view) is(e world.Encoded) bool {
	is, there := v.names[e.Name]
	return there && is.Version == e.Version || v.unclear[e.Name] != 0
}

// settledIn reports whether the client has a view's version of a name, and has answered it.
func (s *typed) settledIn(v view, name string, aggregate bool) bool {
	is, there := v.names[name]
	if !there || v.unclear[name] != 0 {
		return true
	}
	x := s.held[name]
	switch {
	case x == nil || x.Version != is.Version:
		return false
	case x.state == nacked:
		return aggregate || x.overdue
	case x.state == unanswered:
		return s.isOverdue(x.serial)
	default:
		return true
	}
}

func (s *typed) isOverdue(serial uint64) bool {
	return !slices.ContainsFunc(s.inflight, func(f *flight) bool {
		return f.serial == serial && time.Since(f.at) < s.c.h.patience
	})
}

// someWorld reports whether holds is true for any state of both types since everything was
// at rest. Two types of one producer must be of one world; producers publish independently.
func (s *typed) someWorld(other *typed, holds func(mine, its view) bool) bool {
	for _, mine := range s.seen() {
		for _, its := range other.seen() {
			if (s.maker != other.maker || mine.world == its.world) && holds(mine, its) {
				return true
			}
		}
	}
	return len(other.seen()) == 0
}

// checkRemoval checks that none of the client's resources still refers to a removed
// resource. Some world must lack the removed resource. In that world, each resource that
// referred to it is in one of three states. It is as the client last answered it, it refers
// to the removed resource nevertheless, or a NACK holds it back.
func (s *typed) checkRemoval(name string) {
	if s.maker.revoked[place{s.row, name}] {
		return
	}
	for _, other := range s.c.sorted() {
		if other == s || !slices.Contains(slices.Concat(other.spec.Needs, other.spec.Brings), s.spec.Name) {
			continue
		}
		for at, x := range other.held {
			was := x.Encoded
			if answered, ok := other.settled[at]; ok && !other.isOverdue(x.serial) {
				was = answered
			}
			if x.serial == 0 || max(other.asked, other.since(at)) >= s.fence || !slices.Contains(other.refers(was.Body, s), name) {
				continue
			}
			gone := func(mine, its view) bool {
				_, there := mine.names[name]
				next, still := its.names[at]
				return (!there || mine.unclear[name] != 0) &&
					(its.is(was) || !still && other.cannotKnow(at) || slices.Contains(other.refers(next.Body, s), name) || other.heldBack(next, 0))
			}
			if !s.someWorld(other, gone) {
				s.violated(order, "%s was removed while %s of %s still refers to it", name, at, other.spec.Name)
			}
		}
	}
}

// waitFor records the names that the client waits for once it has a resource.
func (s *typed) waitFor(e world.Encoded) {
	for other := range s.related(s.spec.Brings) {
		if !other.spec.Awaited {
			continue
		}
		if s.wasUnclear(e.Name) { // the resource has its last good form, and may bring the names of the next
			other.anyway = true
			continue
		}
		for _, name := range s.refers(e.Body, other) {
			other.owed[name] = true
			other.repeats[name]++
		}
	}
}

// waitAnew records the names of a newly requested type that the client waits for, because
// earlier resources on this stream bring them.
func (s *typed) waitAnew() {
	if !s.spec.Awaited {
		return
	}
	for _, by := range s.c.sorted() {
		if !slices.Contains(by.spec.Brings, s.spec.Name) {
			continue
		}
		for _, x := range by.held {
			for _, name := range by.refers(x.Body, s) {
				if x.serial != 0 {
					s.owed[name] = true
					s.repeats[name]++
				}
			}
		}
	}
}
