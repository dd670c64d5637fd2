package mcp

import (
	"fmt"
	"time"

	"github.com/isthmus-mesh/isthmus/source"
)

var _ source.Exchanging = (*Source)(nil)

// echoes names the resources with a part left out as an echo.
func (c *collection) echoes() (names []string) {
	for name, r := range c.held {
		if r.echoes {
			names = append(names, name)
		}
	}
	return names
}

// nacks records a NACK of a collection, with the reason.
func (s *Source) nacks(c *collection, reason string, now time.Time) {
	s.Replied(c.name, len(c.held), cut(reason))
	c.nacked, c.refused = nacked{cut(reason), now}, true
}

// nacked is the reason and time of the last NACK of a collection; empty without one.
type nacked struct {
	reason string
	at     time.Time
}

// notices returns notices about the collections.
func (h *holding) notices() (list []source.Notice) {
	list = []source.Notice{} // not nil: notices were looked for
	for _, c := range h.collections {
		if !c.answered && !c.refused {
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
		if c.echoed > 0 {
			list = append(list, source.EchoNotice("collection "+c.name, c.echoes(), h.self))
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
