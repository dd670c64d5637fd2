package xds

import (
	"maps"
	"strings"
	"time"

	"github.com/isthmus-mesh/isthmus/model"
)

// state is the state of the server, as its answers on one stream show it. The state
// makes no requests.
type state struct {
	kinds []kind
	held  *held
	pace  *pace
	types map[string]*asked // by URL
	delta bool              // the variant of the stream
	began time.Time
	// slowest is the longest time of an answer of the first state, from its request
	// or the previous answer's ACK.
	slowest time.Duration
	// stored are the names, by kind, with a stored record and no held resource. The
	// server has not sent them on this stream.
	stored map[string]map[string]bool
	anew   bool // nothing was stored or held when the stream began
}

// essential returns the kind without which there is no listing: ServiceEntry if
// requested, else the first.
func (s *state) essential() kind {
	for _, k := range s.kinds {
		if k.MakesServices() {
			return k
		}
	}
	return s.kinds[0]
}

// recall finds the names with a stored record but no held resource, left by an earlier process.
func (s *state) recall(stored func(yield func(model.Record) bool)) {
	s.stored, s.anew = map[string]map[string]bool{}, true
	for rec := range stored {
		if rec.Owner != (model.Ref{}) {
			continue
		}
		for _, k := range s.kinds {
			name, of := strings.CutPrefix(rec.Place, k.Name+"/")
			if !of {
				continue
			}
			if s.stored[k.Name] == nil {
				s.stored[k.Name] = map[string]bool{}
			}
			s.stored[k.Name][name] = true
		}
	}
	for _, k := range s.kinds {
		s.anew = s.anew && len(s.stored[k.Name]) == 0
		for name := range s.held.kind(k.Definition).Keys() {
			s.anew = false
			delete(s.stored[k.Name], name)
		}
	}
}

// subscribe notes the request of a type, and returns its versions. A delta server
// receives the held versions, or the names of records that an earlier process stored;
// then it reports removed resources. A server that ignores these receives none.
func (s *state) subscribe(of kind, url string, noResume bool, now time.Time) (versions map[string]string) {
	k := &asked{kind: of, url: url, at: now, waits: now}
	s.types[url] = k
	h := s.held.of(url, of.Definition)
	resumable := h.versions()
	switch {
	case noResume || h.resources.Len() > 0 && resumable == nil:
		k.unspoken = h.names()
		maps.Copy(k.unspoken, s.stored[of.Name])
	case h.resources.Len() > 0:
		versions = resumable
		k.resumes = s.delta
	default:
		k.unspoken = maps.Clone(s.stored[of.Name])
		versions = unversioned(k.unspoken)
		k.claims = s.delta && versions != nil
	}
	if s.delta && versions == nil {
		k.names = map[string]bool{}
	}
	return versions
}

// accept notes an answer with usable resources.
func (s *state) accept(k *asked, a answer, now time.Time) {
	k.last, k.version, k.nacked = now, a.version, ""
	k.large = a.size >= large || len(a.resources) >= manyNames
	for _, name := range a.removed {
		delete(k.unspoken, name)
	}
	for _, r := range a.resources {
		delete(s.stored[k.kind.Name], r.name)
		// A resource sent as one type of a kind need not come as the other.
		for _, url := range k.kind.urls {
			if of := s.types[url]; of != nil {
				delete(of.unspoken, r.name)
			}
		}
		if k.names != nil && r.name != "" {
			k.names[r.name] = true
		}
	}
}

// older returns the older type of a kind to request, while the newer is answered with
// nothing, or the older type to drop once the newer has all its resources.
func (s *state) older(of kind) (request, drop string) {
	if len(of.urls) < 2 || s.types[of.urls[0]].last.IsZero() {
		return "", ""
	}
	url := of.urls[1]
	newer, old := s.newer(of.urls[0]), s.types[url]
	switch {
	case newer.size() == 0 && old == nil:
		return url, ""
	case newer.size() == 0 || old == nil || old.dropped:
	case old.last.IsZero() && len(old.unspoken) > 0 || !newer.covers(s.held.types[url]):
	default:
		return "", url
	}
	return "", ""
}

// forget drops resources that the first answers of a stream without resumption lack:
// these answers were complete.
func (s *state) forget() {
	for url, k := range s.types {
		if k.names == nil || k.dropped || k.last.IsZero() {
			continue
		}
		if h := s.held.types[url]; !h.incomplete {
			h.keepOnly(k.names)
		}
		k.names = nil
	}
}

// nameSet is a set of resource names: the names in the first answers of a stream, or
// all held names.
type nameSet struct {
	names map[string]bool // nil for all held names
	held  *holding
}

// newer returns the names that the server has of a type. Until the first answers of a
// stream are complete, other held names may be gone.
func (s *state) newer(url string) nameSet { return nameSet{s.types[url].names, s.held.types[url]} }

// size returns the number of names. Each answer calls size, so no set is copied.
func (n nameSet) size() int {
	if n.names != nil {
		return len(n.names)
	}
	return n.held.resources.Len()
}

// covers reports whether the set has all held names of another type.
func (n nameSet) covers(other *holding) bool {
	for name := range other.resources.All() {
		if n.names != nil && !n.names[name] {
			return false
		}
		if _, held := n.held.resources.Get(name); n.names == nil && !held {
			return false
		}
	}
	return true
}
