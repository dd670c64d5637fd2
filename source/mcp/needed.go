package mcp

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// collections are the requested collections of a peer, in order: of objects of one kind
// and name, the first collection with it counts.
type collections []*collection

// find returns the collection of a name; nil if it was not requested.
func (cs collections) find(name string) *collection {
	for _, c := range cs {
		if c.name == name {
			return c
		}
	}
	return nil
}

// unanswered names the collections that have not come on this stream.
func (cs collections) unanswered() (names []string) {
	for _, c := range cs {
		if !c.answered {
			names = append(names, c.name)
		}
	}
	return names
}

// lacking returns the collections without which nothing may be listed: the first
// listing of a new process is all that its clients get. They are
//   - collections of ServiceEntries with a NACKed last answer,
//   - unanswered collections of ServiceEntries, while no other has brought a service: the peer
//     may have all of its services there.
//
// Other collections make no service, and peers leave some of them unanswered.
func (cs collections) lacking() (list []*collection) {
	var silent []*collection
	services := false
	for _, c := range cs {
		switch {
		case !c.kind.MakesServices():
		case c.refused:
			list = append(list, c)
		case !c.answered:
			silent = append(silent, c)
		default:
			services = services || c.hasService()
		}
	}
	if services {
		return list
	}
	return append(list, silent...)
}

// progress counts the collections that a listing waits for.
type progress struct{ unanswered, lacking int }

// progress returns the number of unanswered and of lacking collections.
func (cs collections) progress() progress { return progress{len(cs.unanswered()), len(cs.lacking())} }

// without names the other collections that have come.
func (cs collections) without(not *collection) (names []string) {
	for _, c := range cs {
		if c != not && c.answered {
			names = append(names, c.name)
		}
	}
	return names
}

// explainLack returns an error with the lacking collections and advice for the operator.
// The peer had so long for the first answer.
func (cs collections) explainLack(peer string, first time.Duration) error {
	lacking := cs.lacking()
	if len(cs.unanswered()) == len(cs) && !slices.ContainsFunc(lacking, func(c *collection) bool { return c.refused }) {
		return fmt.Errorf("%s sent no collection within %s", peer, first)
	}
	texts := make([]string, len(lacking))
	for i, c := range lacking {
		if c.refused {
			texts[i] = fmt.Sprintf("%s was NACKed: %s", c.name, c.nacked.reason)
			continue
		}
		texts[i] = fmt.Sprintf("%s has not sent %s for %s, and no service in another collection; if its services are not there, write collections: [%s]",
			peer, c.name, first, strings.Join(cs.without(c), ", "))
	}
	return errors.New("not listed: " + strings.Join(texts, "; "))
}

// notKnown returns why the state of a collection is unknown.
func (cs collections) notKnown(name string) string {
	if c := cs.find(name); c != nil && c.refused {
		return "this collection was NACKed: " + c.nacked.reason
	}
	return "the peer has not sent this collection since it was connected"
}

// isOnly reports whether a collection is the only one, or the only one of services.
func (cs collections) isOnly(at int) bool {
	for i, c := range cs {
		if i != at && (c.kind.MakesServices() || !cs[at].kind.MakesServices()) {
			return false
		}
	}
	return true
}
