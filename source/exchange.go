package source

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/isthmus-mesh/isthmus/model"
)

// Exchanging is a source with a registry that pushes resources and expects answers.
type Exchanging interface {
	// Exchanges lists the counts by type, in a fixed order. It may be called from anywhere.
	Exchanges() []Exchange
}

// Exchange counts the messages between such a registry and its source about one type
// of resources, since the process began.
type Exchange struct {
	Type      string // as the protocol names it
	Resources int    // held resources
	Echoed    int    // of these: a part of them came through this Isthmus, and is left out
	Received  uint64 // answers
	ACKed     uint64 // of these
	NACKed    uint64
	Last      time.Time // when an answer came
	NACK      string    // reason of the last one, while no answer was ACKed since
}

// ExchangeStatus counts messages, for an [Exchanging] source to embed. The zero value
// is empty. It may be used from anywhere.
type ExchangeStatus struct {
	mu   sync.Mutex
	list []Exchange
}

// Exchanges implements [Exchanging].
func (s *ExchangeStatus) Exchanges() []Exchange {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.list)
}

// Has reports whether an answer of a type has ever come.
func (s *ExchangeStatus) Has(typ string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.list, func(e Exchange) bool { return e.Type == typ })
}

// Received counts an answer of a type.
func (s *ExchangeStatus) Received(typ string, now time.Time) {
	s.note(typ, func(e *Exchange) { e.Received++; e.Last = now })
}

// Replied counts an ACK or, with a reason, a NACK. It stores how many resources of
// the type are held afterwards.
func (s *ExchangeStatus) Replied(typ string, resources int, reason string) {
	s.note(typ, func(e *Exchange) {
		e.Resources, e.NACK = resources, reason
		if reason == "" {
			e.ACKed++
		} else {
			e.NACKed++
		}
	})
}

// Echoed stores how many resources of a type have a part left out that came through
// this Isthmus. The type must have an answer before.
func (s *ExchangeStatus) Echoed(typ string, resources int) {
	if s.Has(typ) {
		s.note(typ, func(e *Exchange) { e.Echoed = resources })
	}
}

// EchoNotice returns a notice that resources of a registry have parts that came
// through this Isthmus, and are left out.
func EchoNotice(object string, resources []string, self string) model.Notice {
	return model.Notice{
		Object: object,
		Text: fmt.Sprintf("%d of its resources came in whole or in part through this Isthmus, %s, and that is left out, such as %s: "+
			"the peer has it from here; if it does not, another Isthmus has the same name: give each its own instance", len(resources), self, slices.Min(resources)),
	}
}

func (s *ExchangeStatus) note(typ string, change func(*Exchange)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.list, func(e Exchange) bool { return e.Type == typ })
	if i < 0 {
		i = len(s.list)
		s.list = append(s.list, Exchange{Type: typ})
	}
	change(&s.list[i])
}

// Listener is a source that its registry dials.
type Listener interface {
	// StreamsRejected counts streams and connections that were not served, by cause,
	// since the process began. It may be called from anywhere.
	StreamsRejected() map[string]uint64
}
