package mcp

import (
	"fmt"
	"time"

	"github.com/isthmus-mesh/isthmus/source"
)

// record is what has passed between a peer and a sink about one collection, since
// the process began.
type record struct {
	answers, acks, nacks uint64
	last                 time.Time // of an answer
	version              string    // of the last answer
	reason               string    // of the last NACK, until something is ACKed
	refused              time.Time // when that was
}

func (r *record) received(a *answer, now time.Time) {
	r.answers++
	r.last, r.version = now, a.version
}

func (r *record) acked(time.Time) {
	r.acks++
	r.reason = ""
}

func (r *record) nacked(err error) {
	r.nacks++
	r.reason, r.refused = cut(err.Error()), time.Now()
}

// notices are what people should know of the collections.
func (h *holding) notices() (list []source.Notice) {
	for _, c := range h.collections {
		if !c.answered {
			list = append(list, source.Notice{
				Object: "collection " + c.name,
				Text:   "the peer has not sent it: nothing of it is known; if the peer does not have it, name those that it has in collections",
			})
		}
		if c.reason != "" {
			list = append(list, source.Notice{
				Object: "collection " + c.name,
				Text:   fmt.Sprintf("NACKed at %s, and what was held before is kept: %s", c.refused.UTC().Format(time.RFC3339), c.reason),
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
