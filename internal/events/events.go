// Package events keeps a bounded record of recent changes, for operators.
package events

import (
	"cmp"
	"slices"
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
	Configuration Kind = "configuration" // the configuration file was applied or rejected, or a source has left with its records
	Leader        Kind = "leader"        // another replica writes
	Disk          Kind = "disk"          // the folder of the last known good was removed
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
	kept      = 4096 // events about records, as many about clients, and as many others
	textBytes = 1024 // of a text
	nameBytes = 256  // of a name
	// MostNames bounds the names of an event.
	MostNames = 8
)

// Log is the newest events of a process. Changes of records and acts of clients, which may be
// many in a second, each have a bound of their own: they drop no other events. All methods may be called from any
// goroutine, and on a nil Log, which keeps nothing.
type Log struct {
	mu      sync.Mutex // guards all fields; never held across a call
	last    uint64     // the newest serial; zero before the first event
	records ring
	clients ring
	rest    ring
	changed chan struct{}   // closed by the next event; nil unless a reader waits
	storms  map[storm]*gust // of the last second; see [Clients.Add]
}

// New returns an empty log.
func New() *Log { return &Log{storms: map[storm]*gust{}} }

// Add appends an event, and sets its serial and time. The oldest event of its bound is
// dropped beyond it.
func (l *Log) Add(e Event) {
	if l == nil {
		return
	}
	e.Text = cut(e.Text, textBytes)
	e.Names = e.Names[:min(len(e.Names), MostNames):min(len(e.Names), MostNames)]
	for i, name := range e.Names {
		e.Names[i] = cut(name, nameBytes)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.append(e, time.Now())
}

func (l *Log) append(e Event, now time.Time) {
	if l.changed != nil {
		close(l.changed)
		l.changed = nil
	}
	l.last++
	e.Serial, e.Time = l.last, now
	switch e.Kind {
	case Records:
		l.records.add(e)
	case Client:
		l.clients.add(e)
	default:
		l.rest.add(e)
	}
}

// After returns the kept events after a serial, oldest first, and the newest serial.
// Lost counts the events after that serial which are not kept any more.
func (l *Log) After(serial uint64) (list []Event, last, lost uint64) {
	if l == nil {
		return nil, 0, 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calm(time.Now())
	if serial > l.last { // of an earlier process
		serial = 0
	}
	list = slices.Concat(l.records.after(serial), l.clients.after(serial), l.rest.after(serial))
	slices.SortFunc(list, func(a, b Event) int { return cmp.Compare(a.Serial, b.Serial) })
	return list, l.last, l.last - serial - uint64(len(list))
}

// Next returns a channel that is closed with the next event.
func (l *Log) Next() <-chan struct{} {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.changed == nil {
		l.changed = make(chan struct{})
	}
	return l.changed
}

// ring is a bounded number of events, the newest ones.
type ring struct {
	events []Event
	next   int // the place of the next event, once the ring is full
}

func (r *ring) add(e Event) {
	if len(r.events) < kept {
		r.events = append(r.events, e)
		return
	}
	r.events[r.next] = e
	r.next = (r.next + 1) % kept
}

// after returns the events after a serial, in no order.
func (r *ring) after(serial uint64) (list []Event) {
	for _, e := range r.events {
		if e.Serial > serial {
			list = append(list, e)
		}
	}
	return list
}

// cut bounds the bytes of a text. A character that is cut in two is left out.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}
