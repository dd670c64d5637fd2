package identity

import (
	"iter"
	"maps"
	"slices"
	"sync"
	"time"
)

// sightings are the last streams that are named as a problem, by a key.
type sightings struct {
	mu   sync.Mutex
	last map[string]sighting
}

type sighting struct {
	id, from string    // of the last client
	streams  int       // since the start
	at       time.Time // of the last stream
}

// mostSightings bounds the keys that are named.
const mostSightings = 20

// add records a stream of a client. It reports whether the key had none for a time.
func (s *sightings) add(key, id, from string, since time.Duration) (first bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last == nil {
		s.last = map[string]sighting{}
	}
	was, known := s.last[key]
	if !known && len(s.last) == mostSightings { // the newest are named
		delete(s.last, slices.MinFunc(slices.Collect(maps.Keys(s.last)), func(a, b string) int { return s.last[a].at.Compare(s.last[b].at) }))
	}
	now := time.Now()
	s.last[key] = sighting{id, from, was.streams + 1, now}
	return now.Sub(was.at) > since
}

// all yields the sightings in the order of their keys.
func (s *sightings) all() iter.Seq2[string, sighting] {
	s.mu.Lock()
	last := maps.Clone(s.last)
	s.mu.Unlock()
	return func(yield func(string, sighting) bool) {
		for _, key := range slices.Sorted(maps.Keys(last)) {
			if !yield(key, last[key]) {
				return
			}
		}
	}
}
