package pushtest

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/isthmus-mesh/isthmus/push/session"
	"github.com/isthmus-mesh/isthmus/push/world"
)

// receive takes a response as the transport does, and makes the checks that need no other
// response.
func (c *client) receive(r *session.Response) {
	s := c.types[r.Type]
	c.h.log("%v receives %v", c, responseText(r))
	switch {
	case s == nil || r.Mode != s.mode:
		c.h.violated(resent, "client %v was sent a response of type %d in mode %d, for which it did not ask", c, r.Type, r.Mode)
	case s.maker.published == 0:
		c.h.violated(primed, "client %v was sent %s before its producer had published", c, s.spec.Name)
	}
	for _, f := range s.inflight {
		if time.Since(f.at) < c.h.patience {
			c.h.violated(bounded, "client %v was sent %s while another response was unanswered", c, s.spec.Name)
		}
	}
	f := &flight{serial: r.Serial, version: r.Version, at: time.Now()}
	c.sub.Sent(r)
	s.unique(r)
	if s.full {
		s.takeSet(r, f)
	} else {
		s.takeParts(r, f)
	}
	s.first = false
	s.inflight = append(s.inflight, f)
	if c.silent { // a silent client applies each response
		for _, e := range f.changed {
			s.applied[e.Name] = e.Version
		}
	}
}

// responseText formats a response for people.
func responseText(r *session.Response) string {
	var text strings.Builder
	fmt.Fprintf(&text, "type %d, serial %d:", r.Type, r.Serial)
	for _, res := range r.Resources {
		fmt.Fprintf(&text, " %s=%.40q", res.Name, res.Body)
	}
	for _, name := range r.Removed {
		text.WriteString(" -" + name)
	}
	return text.String()
}

func (s *typed) unique(r *session.Response) {
	seen := map[string]bool{}
	for _, res := range r.Resources {
		if seen[res.Name] {
			s.violated(resent, "%s came twice in one response", res.Name)
		}
		seen[res.Name] = true
	}
	for _, name := range r.Removed {
		if seen[name] || s.mode != world.Delta {
			s.violated(resent, "the removal of %s came with it, or in a mode that has none", name)
		}
		seen[name] = true
	}
}

func (s *typed) violated(l law, format string, args ...any) {
	s.c.h.violated(l, "client %v, "+s.spec.Name+" in mode %d: "+format, slices.Concat([]any{s.c, s.mode}, args)...)
}

// takeSet takes a response of a whole type: resources missing from it are removed.
func (s *typed) takeSet(r *session.Response, f *flight) {
	set := map[string]bool{}
	for _, res := range r.Resources {
		set[res.Name] = true
		if old := s.held[res.Name]; (old == nil || old.Version != res.Version) && s.wanted(res.Name) {
			f.changed = append(f.changed, res.Joined())
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.held)) {
		if !set[name] {
			f.removed = append(f.removed, name)
		}
	}
	if len(f.changed)+len(f.removed) == 0 && !s.first {
		if s.again--; s.again < 0 {
			s.violated(resent, "a set came again as it was")
		}
	}
	s.remove(f.removed)
	for _, res := range r.Resources {
		s.take(res.Joined(), f, slices.ContainsFunc(f.changed, func(e world.Encoded) bool { return e.Name == res.Name }))
	}
}

// takeParts takes a response that has changed resources and removals.
func (s *typed) takeParts(r *session.Response, f *flight) {
	if len(r.Resources)+len(r.Removed) == 0 && !s.first {
		s.violated(resent, "an empty response that answers nothing")
	}
	for _, name := range r.Removed {
		if !s.wanted(name) {
			continue
		}
		f.removed = append(f.removed, name)
		if s.held[name] == nil && !s.crossed[name] {
			s.useRepeat(name)
		}
	}
	s.remove(f.removed)
	for _, res := range r.Resources {
		if !s.wanted(res.Name) {
			continue
		}
		if old := s.held[res.Name]; old != nil && old.Version == res.Version && !s.lapsed(old) {
			s.useRepeat(res.Name)
		}
		e := s.joined(res.Joined())
		f.changed = append(f.changed, e)
		s.take(e, f, true)
	}
}

// wanted reports whether a name is requested. Other names may come while a response to an
// earlier request is in flight.
func (s *typed) wanted(name string) bool {
	if s.subscribed(name) {
		return true
	}
	if !s.loose {
		s.violated(resent, "%s came, and the client did not ask for it", name)
	}
	s.bringsAnything()
	return false
}

// bringsAnything records that the client may be sent the resources that this type brings,
// without needing them.
func (s *typed) bringsAnything() {
	for other := range s.related(s.spec.Brings) {
		other.anyway = true
	}
}

// useRepeat consumes a reason for an unchanged resource to come again.
func (s *typed) useRepeat(name string) {
	if s.free[name] || s.anyway || s.loose { // a response that crosses the end of a subscription was for that
		return
	}
	if s.repeats[name]--; s.repeats[name] < 0 {
		s.violated(resent, "%s came again as it was", name)
	}
}

// take takes a resource. With anew, the response is about it.
func (s *typed) take(e world.Encoded, f *flight, anew bool) {
	if !s.wanted(e.Name) {
		return
	}
	if !s.inSomeWorld(e) {
		s.violated(stale, "%s came as %q, which it was in no world since everything was at rest", e.Name, e.Body)
	}
	delete(s.owed, e.Name)
	delete(s.missing, e.Name)
	delete(s.uncertain, e.Name)
	old := s.held[e.Name]
	if !anew && old != nil {
		if s.repeats[e.Name] > 0 || s.free[e.Name] || s.loose { // the name was requested again, or NACKed together with a name that is no longer requested
			s.bringsAnything()
		}
		return
	}
	s.checkNeeds(e)
	s.held[e.Name] = &thing{Encoded: e, serial: f.serial}
	s.waitFor(e)
}

func (s *typed) inSomeWorld(e world.Encoded) bool {
	for _, v := range s.seen() {
		is, there := v.names[e.Name]
		if there && is.Version == e.Version && bytes.Equal(is.Body, e.Body) || v.unclear[e.Name] != 0 {
			return true
		}
	}
	empty, ok := s.empty(e.Name)
	return ok && empty.Version == e.Version && s.mayBeDenied(e.Name)
}

// empty returns the empty resource of a name, which replaces a removal.
func (s *typed) empty(name string) (e world.Encoded, ok bool) {
	if s.spec.Empty == nil || s.mode == world.WholeState && s.absence() == world.Silence {
		return e, false
	}
	e = s.spec.Empty(name)
	return e, e.Body != nil
}

// mayBeDenied reports whether the client may be sent a removal of a name, or its empty
// resource. Some world has to lack the name. Every source has to be listed by now, with two
// exceptions. The resource was sent on this stream, or the client came back with a version
// of this engine.
func (s *typed) mayBeDenied(name string) bool {
	x := s.held[name]
	wasThere := func(v view) bool { return v.is(x.Encoded) }
	again := s.denied[name] && s.free[name] // removed among others, and that response was NACKed
	if !s.maker.complete && !s.full && !s.claims && !s.crossed[name] && !again && (x == nil || !s.proven(x) && !slices.ContainsFunc(s.seen(), wasThere)) {
		return false
	}
	return slices.ContainsFunc(s.seen(), func(v view) bool {
		_, there := v.names[name]
		return !there && v.unclear[name] != lostFault || v.unclear[name] != 0 && x == nil
	})
}

// lapsed reports whether a resource was removed meanwhile in a protocol without a removal.
// The engine then forgets that the client has it.
func (s *typed) lapsed(x *thing) bool {
	x.lapsed = x.lapsed || s.cannotKnow(x.Name) && slices.ContainsFunc(s.seen(), func(v view) bool {
		_, there := v.names[x.Name]
		return !there
	})
	return x.lapsed
}

// cannotKnow reports whether the protocol cannot tell the client that a resource is gone.
func (s *typed) cannotKnow(name string) bool {
	_, ok := s.empty(name)
	return !ok && s.mode == world.WholeState && !s.full
}

// proven reports whether a resource is known to have existed, by more than the
// client's claim.
func (s *typed) proven(x *thing) bool {
	return x.there || x.serial != 0
}

// remove removes names. A removed name may be an obstacle for another, so all are checked
// before any is removed.
func (s *typed) remove(names []string) {
	names = slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !s.subscribed(name) })
	for _, name := range names {
		s.mayBeRemoved(name)
	}
	for _, name := range names {
		s.removed(name)
	}
}

func (s *typed) mayBeRemoved(name string) {
	if !s.mayBeDenied(name) {
		s.violated(lost, "%s was removed, and is there, or nobody knows yet whether it is", name)
	}
	if s.held[name] == nil {
		return
	}
	if _, ok := s.empty(name); ok && s.mode == world.Delta && s.absence() == world.Empty && s.named[name] > 0 && s.named[name] < s.fence {
		s.violated(lost, "%s was removed, and the client asks for it and should be sent that it is empty", name)
	}
	s.checkRemoval(name)
}

func (s *typed) removed(name string) {
	s.denied[name] = true
	delete(s.held, name)
	delete(s.applied, name)
	delete(s.owed, name)
	delete(s.missing, name)
	delete(s.uncertain, name)
}
