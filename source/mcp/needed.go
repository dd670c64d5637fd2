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
		case !c.makesServices():
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

// makesServices reports whether the resources of a collection are ServiceEntries.
func (c *collection) makesServices() bool { return c.kind.Name == "ServiceEntry" }

// hasService reports whether a collection has a resource that becomes a service.
func (c *collection) hasService() bool {
	for _, r := range c.held.All() {
		if r.object != nil {
			return true
		}
	}
	return false
}

// progress counts the collections that a listing waits for.
type progress struct{ unanswered, lacking int }

// progress returns the number of unanswered and of lacking collections.
func (cs collections) progress() progress { return progress{len(cs.unanswered()), len(cs.lacking())} }

// patience returns the wait for the next step. The wait is shorter once the remaining
// collections are optional.
func (s *session) patience() time.Duration {
	if s.progress.lacking > 0 || s.progress.unanswered == len(s.holding.collections) {
		return s.config.pace.first
	}
	return s.config.pace.rest
}

// explainLack returns an error with the lacking collections and advice for the operator.
func (s *session) explainLack(lacking []*collection) error {
	if len(s.holding.collections.unanswered()) == len(s.holding.collections) && !slices.ContainsFunc(lacking, func(c *collection) bool { return c.refused }) {
		return fmt.Errorf("%s has sent none of the collections within %s", s.peer(), s.config.pace.first)
	}
	texts := make([]string, len(lacking))
	for i, c := range lacking {
		if c.refused {
			texts[i] = fmt.Sprintf("%s was NACKed: %s", c.name, c.nacked.reason)
			continue
		}
		texts[i] = fmt.Sprintf("%s has not sent %s for %s, and no service in another collection; if its services are not there, write collections: [%s]",
			s.peer(), c.name, s.config.pace.first, strings.Join(s.holding.collections.without(c), ", "))
	}
	return errors.New("not listed: " + strings.Join(texts, "; "))
}

// without names the other collections that have come.
func (cs collections) without(not *collection) (names []string) {
	for _, c := range cs {
		if c != not && c.answered {
			names = append(names, c.name)
		}
	}
	return names
}
