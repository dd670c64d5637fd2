package mcp

import (
	"fmt"
	"hash/maphash"
)

// bounds limit how much of a peer's data is held.
type bounds struct {
	bytes  int // of all resources, with their overhead
	fields int // of the body of one resource
}

// Overhead in bytes of a resource, and of a field of its body, beside their text.
const (
	perResource = 512
	perField    = 400
)

// difference is the effect of an answer on a collection.
type difference struct {
	collection *collection
	// whole says that the answer is the complete state of the collection.
	whole   bool
	changed map[string]*held
	// gone are the names that a whole answer lacks. removed are the names that an
	// increment removes, known or not.
	gone, removed []string

	size      int      // bytes of the answer's resources
	replaced  int      // bytes of held resources that they replace
	nameless  nameless // resources
	resent    bool     // some resource has the version that the request named as held
	decoded   bool     // some resource could be decoded
	undecoded error    // why another resource could not
}

// compare returns the effect of an answer, and changes no resources. Compare fails if
// no resource of the answer can be decoded, or if the answer is too large.
func (h *holding) compare(c *collection, a *answer) (*difference, error) {
	if a.err != nil {
		return nil, a.err
	}
	c.turn++
	d := &difference{collection: c, changed: map[string]*held{}}
	for i, text := range a.resources {
		d.take(h, i, text)
		if d.size > h.most() {
			return nil, errTooMuch
		}
	}
	if n := d.nameless.of(c); n != nil {
		d.changed[""] = n
	}
	if d.undecoded != nil && !d.decoded && (!a.incremental || len(a.removed) == 0) {
		text := fmt.Errorf("none of the %d resources can be decoded, such as %w", len(a.resources), d.undecoded)
		return nil, &advised{text, "correct them in the registry behind the source"}
	}
	d.whole = !a.incremental || c.answersNothing(d)
	d.findGone(a)
	if h.size+d.grows() > h.most() {
		return nil, errTooMuch
	}
	return d, nil
}

// answersNothing reports whether an increment starts from nothing, and so is complete. It
// is the first increment of a stream, and the request named no held version. The same
// holds if the peer ignored the held versions, as shown by a resource sent again.
func (c *collection) answersNothing(d *difference) bool {
	return !c.answered && (len(c.said) == 0 || d.resent)
}

// take compares a resource with the held one.
func (d *difference) take(h *holding, at int, text []byte) {
	c := d.collection
	name, version, err := identityOf(text)
	if len(name) == 0 {
		d.nameless.add(at, err)
		d.undecoded = d.nameless.err
		return
	}
	hash, was := maphash.Bytes(h.seed, text), c.held[string(name)]
	d.resent = d.resent || len(version) > 0 && c.said[string(name)] == string(version)
	if was != nil && was.hash == hash {
		delete(d.changed, string(name)) // of two with one name, the last counts
		if was.turn != c.turn {
			d.size += was.size
			d.replaced += was.size
		}
		was.turn, d.decoded = c.turn, true
		return
	}
	next := &held{hash: hash, version: string(version), size: perResource + len(text), turn: c.turn}
	if err := next.read(c, string(name), text, h.bounds, h.self); err != nil {
		d.undecoded = fmt.Errorf("%s: %w", cut(string(name)), err)
	} else {
		d.decoded = true
	}
	d.size += next.size
	if was != nil && d.changed[string(name)] == nil {
		d.replaced += was.size
	}
	d.changed[string(name)] = next
}

// findGone finds the names that are gone by the answer. If the answer has resources
// without a name, any missing name may belong to one of them.
func (d *difference) findGone(a *answer) {
	c := d.collection
	if !d.whole {
		for _, name := range a.removed {
			if was := c.held[name]; d.changed[name] == nil && (was == nil || was.turn != c.turn) && name != "" {
				d.removed = append(d.removed, name)
			}
		}
		return
	}
	for name, was := range c.held {
		if was.turn != c.turn && d.changed[name] == nil && (d.nameless.count == 0 || name == "") {
			d.gone = append(d.gone, name)
		}
	}
}

// grows returns the change in held bytes.
func (d *difference) grows() int {
	grows := d.size - d.replaced
	for _, list := range [][]string{d.gone, d.removed} {
		for _, name := range list {
			if was := d.collection.held[name]; was != nil {
				grows -= was.size
			}
		}
	}
	return grows
}

// apply applies a difference to the holding.
func (h *holding) apply(d *difference) {
	c := d.collection
	forget := func(name string) {
		was := c.held[name]
		if was == nil {
			return
		}
		h.size -= was.size
		if was.echoes {
			c.echoed--
		}
		delete(c.held, name)
	}
	for name, r := range d.changed {
		forget(name)
		h.size += r.size
		if r.echoes {
			c.echoed++
		}
		c.held[name] = r
	}
	for _, list := range [][]string{d.gone, d.removed} {
		for _, name := range list {
			forget(name)
		}
	}
	c.answered, c.refused, c.said = true, false, nil
}
