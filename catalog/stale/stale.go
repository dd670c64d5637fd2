// Package stale has the sources that have been stale for long.
package stale

import "maps"

// Sources are the sources that have been stale for long, as their marks say. What such a source says about the health
// of an endpoint is old: another source that has the endpoint too knows better. All else stays. Sources are
// never written once shared.
type Sources map[string]struct{}

// Has reports whether a source is one of them.
func (s Sources) Has(source string) bool {
	if len(s) == 0 { // as nearly always: every claim of an endpoint asks
		return false
	}
	_, is := s[source]
	return is
}

// With returns the sources, with or without one of them.
func (s Sources) With(source string, stale bool) Sources {
	if s.Has(source) == stale {
		return s
	}
	next := Sources{}
	maps.Copy(next, s)
	if next[source] = struct{}{}; !stale {
		delete(next, source)
	}
	return next
}

// Equal reports whether both are the same sources.
func (s Sources) Equal(o Sources) bool { return maps.Equal(s, o) }
