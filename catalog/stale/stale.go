// Package stale has the sources that have been stale for long.
package stale

import (
	"maps"

	"github.com/isthmus-mesh/isthmus/model"
)

// Sources are the sources that have been stale for long, as their marks say. What such a source says about the health
// of an endpoint is old: another source that has the endpoint too knows better. All else stays. Sources are
// never written once shared.
type Sources map[string]struct{}

// Among returns the sources that their marks have as stale.
func Among(marks map[string]model.SourceMark) Sources {
	sources := Sources{}
	for source, mark := range marks {
		if !mark.StaleSince.IsZero() {
			sources[source] = struct{}{}
		}
	}
	return sources
}

// Has reports whether a source is one of them.
func (s Sources) Has(source string) bool {
	if len(s) == 0 { // as nearly always: every claim of an endpoint asks
		return false
	}
	_, is := s[source]
	return is
}

// Equal reports whether both are the same sources.
func (s Sources) Equal(o Sources) bool { return maps.Equal(s, o) }
