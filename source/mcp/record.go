package mcp

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/isthmus-mesh/isthmus/source"
)

// records are what has passed between a peer and a sink, by collection, since the
// process began. They may be read from anywhere.
type records struct {
	mu   sync.Mutex
	list []source.Exchange
}

var _ source.Exchanging = (*Source)(nil)

// Exchanges implements [source.Exchanging].
func (s *Source) Exchanges() []source.Exchange {
	s.records.mu.Lock()
	defer s.records.mu.Unlock()
	return slices.Clone(s.records.list)
}

// note changes the record of a collection, which has so many resources now.
func (r *records) note(c *collection, change func(*source.Exchange)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	i := slices.IndexFunc(r.list, func(e source.Exchange) bool { return e.Type == c.name })
	if i < 0 {
		i = len(r.list)
		r.list = append(r.list, source.Exchange{Type: c.name})
	}
	r.list[i].Resources = len(c.held)
	change(&r.list[i])
}

// has reports whether an answer of a collection has ever come.
func (r *records) has(name string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.ContainsFunc(r.list, func(e source.Exchange) bool { return e.Type == name })
}

// received notes that an answer has come.
func (r *records) received(c *collection, now time.Time) {
	r.note(c, func(e *source.Exchange) { e.Received++; e.Last = now })
}

// acked notes that it is ACKed.
func (r *records) acked(c *collection) {
	r.note(c, func(e *source.Exchange) { e.ACKed++; e.NACK = "" })
	c.nacked = nacked{}
}

// nacks notes that it is NACKed, for a reason.
func (r *records) nacks(c *collection, reason string, now time.Time) {
	r.note(c, func(e *source.Exchange) { e.NACKed++; e.NACK = cut(reason) })
	c.nacked = nacked{cut(reason), now}
}

// nacked is why the last answer of a collection was, and when; empty if it was not.
type nacked struct {
	reason string
	at     time.Time
}

// notices are what people should know of the collections.
func (h *holding) notices() (list []source.Notice) {
	list = []source.Notice{} // it was looked for them
	for _, c := range h.collections {
		if !c.answered {
			list = append(list, source.Notice{
				Object: "collection " + c.name,
				Text:   "the peer has not sent it: nothing of it is known; if the peer does not have it, name those that it has in collections",
			})
		}
		if c.nacked.reason != "" {
			list = append(list, source.Notice{
				Object: "collection " + c.name,
				Text:   fmt.Sprintf("NACKed at %s, and what was held before is kept: %s", c.nacked.at.UTC().Format(time.RFC3339), c.nacked.reason),
			})
		}
		shadowed, first := 0, ""
		for name := range h.shadowed(c) {
			if shadowed++; shadowed == 1 {
				first = name
			}
		}
		if shadowed > 0 {
			list = append(list, source.Notice{
				Object: "collection " + c.name,
				Text: fmt.Sprintf("%d of its objects are in another collection, too, such as %s: the one that comes first in collections counts",
					shadowed, cut(first)),
			})
		}
	}
	return list
}
