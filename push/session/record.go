package session

import (
	"time"

	"github.com/isthmus-mesh/isthmus/push/world"
)

// record is a client's responses and answers of a type, for display. It decides nothing.
type record struct {
	began           time.Time // time of the first request
	sentAt, ackedAt time.Time
	nackedAt        time.Time
	sent, acked     world.Version
	reason          string // of the last NACK
	nacks           int
	unnamed         bool // the last NACK affected no name that the engine knows
	sends, acks     int
	withheld        withheld // zero if nothing is withheld
}

// withheld is why a due resource or set is not sent.
type withheld struct {
	since  time.Time
	name   string // of the resource; empty for a full set
	reason string
}

func (h *record) send(now time.Time, v world.Version) {
	h.sentAt, h.sent = now, v
	h.sends++
}

func (h *record) ack(now time.Time, v world.Version) {
	h.ackedAt, h.acked = now, v
	h.acks++
}

func (h *record) nack(now time.Time, reason string) {
	h.nackedAt, h.reason = now, reason
	h.nacks++
}
