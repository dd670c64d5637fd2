// Package events keeps a bounded record of recent changes, for operators.
package events

import (
	"strings"
	"sync"
	"time"
)

// Kind is the subject of an event.
type Kind string

// The kinds of events.
const (
	Records       Kind = "records"       // a source's records came, changed or went
	State         Kind = "state"         // a source entered another state
	Hold          Kind = "hold"          // a hold was released
	Client        Kind = "client"        // a client connected, left or NACKed
	Configuration Kind = "configuration" // the configuration file was applied or rejected
	Leader        Kind = "leader"        // another replica writes
)

// Event is one change.
type Event struct {
	// Serial grows by one with each event of a process.
	Serial uint64    `json:"serial"`
	Time   time.Time `json:"time"`
	Kind   Kind      `json:"kind"`
	Source string    `json:"source,omitempty"`
	Output string    `json:"output,omitempty"`
	Client string    `json:"client,omitempty"`
	Text   string    `json:"text"`
	// Names are the first records that the event concerns.
	Names []string `json:"names,omitempty"`
}

// The bounds of a log.
const (
	kept      = 4096 // events
	textBytes = 1024 // of a text
	nameBytes = 256  // of a name
	// MostNames bounds the names of an event.
	MostNames = 8
)

// Log is the newest events of a process. All methods may be called from any goroutine, and
// on a nil Log, which keeps nothing.
type Log struct {
	mu   sync.Mutex // guards all fields; never held across a call
	ring []Event    // by serial, modulo its length
	last uint64     // the newest serial; zero before the first event
}

// New returns an empty log.
func New() *Log { return &Log{} }

// Add appends an event, and sets its serial and time. The oldest event is dropped beyond
// the bound.
func (l *Log) Add(e Event) {
	if l == nil {
		return
	}
	e.Text = cut(e.Text, textBytes)
	e.Names = e.Names[:min(len(e.Names), MostNames):min(len(e.Names), MostNames)]
	for i, name := range e.Names {
		e.Names[i] = cut(name, nameBytes)
	}
	e.Time = time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last++
	e.Serial = l.last
	if len(l.ring) < kept {
		l.ring = append(l.ring, e)
		return
	}
	l.ring[(l.last-1)%kept] = e
}

// cut bounds the bytes of a text. A character that is cut in two is left out.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

// After returns the kept events after a serial, oldest first, and the newest serial.
// Lost counts the events after that serial which are not kept any more.
func (l *Log) After(serial uint64) (list []Event, last, lost uint64) {
	if l == nil {
		return nil, 0, 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if serial > l.last { // of an earlier process
		serial = 0
	}
	first := l.last - uint64(len(l.ring)) // the serial before the oldest kept event
	if serial < first {
		lost, serial = first-serial, first
	}
	list = make([]Event, 0, l.last-serial)
	for at := serial; at < l.last; at++ {
		list = append(list, l.ring[at%uint64(kept)])
	}
	return list, l.last, lost
}
