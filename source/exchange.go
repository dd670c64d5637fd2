package source

import "time"

// Exchanging is a source whose registry pushes what it has, and is answered.
type Exchanging interface {
	// Exchanges lists what has passed, in a fixed order. It may be called from anywhere.
	Exchanges() []Exchange
}

// Exchange counts what has passed between such a registry and its source about one
// type of what there is, since the process began.
type Exchange struct {
	Type      string // as the protocol names it
	Resources int    // that are held
	Received  uint64 // answers
	ACKed     uint64 // of these
	NACKed    uint64
	Last      time.Time // when an answer came
	NACK      string    // what the last one said, as long as nothing was ACKed since
}

// Exchanges lists what has passed between the source and its registry; nil if it does
// not count that.
func (s *Supervisor) Exchanges() []Exchange {
	if src, ok := s.src.(Exchanging); ok {
		return src.Exchanges()
	}
	return nil
}
