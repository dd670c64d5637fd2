package mcp

import (
	"cmp"
	"fmt"
	"hash/maphash"

	"github.com/isthmus-mesh/isthmus/source/mirror"
)

// Overhead in bytes of a resource, and of a field of its body, beside their text.
const (
	perResource = 512
	perField    = 400
)

// difference is the effect of an answer on a collection.
type difference struct {
	*mirror.Reading[string, *held]
	collection *collection
	// whole says that the answer is the complete state of the collection.
	whole bool

	size      int      // bytes of the answer's resources
	nameless  nameless // resources
	twice     string   // the first name that came more than once; empty if none did
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
	d := &difference{collection: c, Reading: c.held.Read()}
	most := h.bounds.most()
	for i, text := range a.resources {
		h.take(d, i, text)
		if d.size > most {
			return nil, errTooMuch
		}
	}
	if n := d.nameless.of(c); n != nil {
		d.Put("", n)
	}
	if d.undecoded != nil && !d.decoded && (!a.incremental || len(a.removed) == 0) {
		text := fmt.Errorf("none of the %d resources can be decoded, such as %w", len(a.resources), d.undecoded)
		return nil, &advised{text, "correct them in the registry behind the source"}
	}
	d.whole = !a.incremental || c.answersNothing(d)
	d.remove(a)
	if h.size+d.grows() > most {
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

// take compares a resource with the held one. Of two with one name, the first counts.
func (h *holding) take(d *difference, at int, text []byte) {
	name, version, err := identityOf(text)
	if len(name) == 0 {
		d.nameless.add(at, err)
		d.undecoded = d.nameless.err
		return
	}
	if d.Has(string(name)) {
		d.twice = cmp.Or(d.twice, string(name))
		return
	}
	c := d.collection
	hash := maphash.Bytes(h.seed, text)
	d.resent = d.resent || len(version) > 0 && c.said[string(name)] == string(version)
	if was, known := c.held.Get(string(name)); known && was.hash == hash {
		d.size += was.size
		d.Same(string(name))
		d.decoded = true
		return
	}
	next := &held{hash: hash, version: string(version), size: perResource + len(text)}
	if err := next.read(c, string(name), text, h.bounds, h.self); err != nil {
		d.undecoded = fmt.Errorf("%s: %w", cut(string(name)), err)
	} else {
		d.decoded = true
	}
	d.size += next.size
	d.Put(string(name), next)
}

// remove notes the names that are gone by the answer. If the answer has resources
// without a name, any missing name may belong to one of them.
func (d *difference) remove(a *answer) {
	switch {
	case d.whole && d.nameless.count == 0:
		d.Complete()
	case !d.whole:
		for _, name := range a.removed {
			if name != "" {
				d.Delete(name)
			}
		}
	}
}

// grows returns the change in held bytes.
func (d *difference) grows() (bytes int) {
	for name, r := range d.Changed() {
		bytes += r.size - d.collection.sizeOf(name)
	}
	for name := range d.Gone() {
		bytes -= d.collection.sizeOf(name)
	}
	return bytes
}

func (c *collection) sizeOf(name string) int {
	if was, known := c.held.Get(name); known {
		return was.size
	}
	return 0
}

// apply applies a difference to the holding.
func (h *holding) apply(d *difference) {
	c := d.collection
	h.size += d.grows()
	forget := func(name string) {
		if was, known := c.held.Get(name); known && was.echoes {
			c.echoed--
		}
	}
	for name, r := range d.Changed() {
		if forget(name); r.echoes {
			c.echoed++
		}
	}
	for name := range d.Gone() {
		forget(name)
	}
	d.Apply()
	c.answered, c.refused, c.said, c.twice = true, false, nil, d.twice
}
