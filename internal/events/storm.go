package events

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// Events of clients come in storms: thousands connect again after a restart, and a bad
// resource is NACKed by all of them.
const (
	stormTime = time.Second
	// stormBurst is the number of events of one verb and output that are kept of a stormTime.
	// The others are counted in one event.
	stormBurst = 32
)

// Verb is the act of a client that an event is about.
type Verb string

// The verbs of events about clients.
const (
	Connected Verb = "connected"
	Left      Verb = "left"
	NACKed    Verb = "NACKed"
	// Certified is about the first certificate of an identity.
	Certified   Verb = "got a first certificate"
	Uncertified Verb = "got no certificate"
	// Rejected is about a client with a certificate that Isthmus itself has sent.
	Rejected Verb = "showed a sent certificate"
)

// Clients records the acts of the clients of one output. It may be called from any
// goroutine, and on a nil value, which keeps nothing.
type Clients struct {
	log    *Log
	output string
}

// Of returns the record of an output's clients; nil for a nil Log.
func (l *Log) Of(output string) *Clients {
	if l == nil {
		return nil
	}
	return &Clients{l, output}
}

// Add appends an event about a client. The text follows the verb. Of a storm only the first
// events are kept, and one event counts the others.
func (c *Clients) Add(verb Verb, client, text string) {
	if c == nil {
		return
	}
	now, l := time.Now(), c.log
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calm(now)
	key := storm{c.output, verb}
	one := l.storms[key]
	if one == nil {
		one = &gust{began: now}
		l.storms[key] = one
	}
	if one.n++; one.n <= stormBurst {
		l.append(Event{Kind: Client, Output: c.output, Client: ClientID(client), Text: cut(string(verb)+" "+text, textBytes)}, now)
	}
}

// ClientID returns a client's identifier as events have it.
func ClientID(id string) string { return cut(id, nameBytes) }

type storm struct {
	output string
	verb   Verb
}

// gust is the events of a storm within one stormTime.
type gust struct {
	began time.Time
	n     int
}

// calm ends the gusts that are over, and adds the event that counts their other events. It
// runs before each event about a client and each read, so it needs no timer.
func (l *Log) calm(now time.Time) {
	for _, key := range slices.SortedFunc(maps.Keys(l.storms), func(a, b storm) int { return l.storms[a].began.Compare(l.storms[b].began) }) {
		one := l.storms[key]
		if now.Sub(one.began) < stormTime {
			continue
		}
		delete(l.storms, key)
		if more := one.n - stormBurst; more > 0 {
			l.append(Event{Kind: Client, Output: key.output, Text: fmt.Sprintf("… and %d more clients %s within a second", more, key.verb)}, now)
		}
	}
}
