package mcp

import (
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/isthmus-mesh/isthmus/convert/istio"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source"
	"github.com/isthmus-mesh/isthmus/source/mirror"
)

// placeOf returns the place of a resource: each resource has its own.
func placeOf(collection, name string) string { return collection + " " + name }

// collectionOf returns the collection of a place.
func collectionOf(place string) string {
	name, _, _ := strings.Cut(place, " ")
	return name
}

// entries yields the outcomes of names of a kind. The resource in the first collection
// that has the name counts.
func entries(kind istio.Definition, of *mirror.Mirror[string, *held], names []string) iter.Seq[mirror.Entry] {
	slices.Sort(names)
	return func(yield func(mirror.Entry) bool) {
		for _, name := range names {
			if !yield(entryOf(kind, of, name)) {
				return
			}
		}
	}
}

func entryOf(kind istio.Definition, of *mirror.Mirror[string, *held], name string) mirror.Entry {
	e := mirror.Entry{Ref: refOf(kind, name), Places: placesOf(of, name)}
	r, in := of.Get(name)
	if in == nil {
		return e
	}
	e.Rejected, e.PassedOn = r.rejected, r.passedOn
	if r.object != nil {
		object := r.object.Listed(placeOf(in.Name, name))
		e.Object = &object
	}
	if e.IsEmpty() && !r.echoes {
		e.Ignored = kind.Name
	}
	return e
}

// placesOf returns the possible places of an object: one in each collection of its kind.
func placesOf(of *mirror.Mirror[string, *held], name string) (list []string) {
	for p := range of.Parts() {
		list = append(list, placeOf(p.Name, name))
	}
	return list
}

// everything returns a listing of the peer's state, by the last answer of each collection.
func (h *holding) everything() model.Listing {
	l := model.Listing{Ignored: map[string]int{}}
	listed := map[*mirror.Mirror[string, *held]]bool{}
	for _, c := range h.collections {
		if listed[c.of] {
			continue
		}
		listed[c.of] = true
		c.of.Take()
		for e := range entries(c.kind, c.of, slices.Collect(c.of.Keys())) {
			e.AddTo(&l)
		}
	}
	return l
}

// listing returns a listing of the changed resources of the collection's kind.
func (c *collection) listing() model.Listing {
	return mirror.ListingOf(entries(c.kind, c.of, c.of.Take()))
}

// change returns the changed resources of the collection's kind one by one.
func (c *collection) change() model.Change {
	return mirror.ChangeOf(entries(c.kind, c.of, c.of.Take()))
}

// ended returns the places of an increment's removed names that no other collection has.
func (d *difference) ended() (places []string) {
	if d.whole {
		return nil
	}
	for _, name := range slices.Sorted(d.Gone()) {
		if _, in := d.collection.of.Get(name); in == nil {
			places = append(places, placesOf(d.collection.of, name)...)
		}
	}
	return places
}

// nacked is the reason and time of the last NACK of a collection; empty without one.
type nacked struct {
	reason string
	at     time.Time
}

// notices returns notices about the collections, requested or not.
func (h *holding) notices() (list []model.Notice) {
	list = []model.Notice{} // not nil: notices were looked for
	for _, c := range h.collections {
		add := func(text string) {
			list = append(list, model.Notice{Object: "collection " + c.name, Text: text})
		}
		if !c.answered && !c.refused {
			add("the peer has not sent it: nothing of it is known; if the peer does not have it, name those that it has in collections")
		}
		if c.nacked.reason != "" {
			add(fmt.Sprintf("NACKed at %s, and what was held before is kept: %s", c.nacked.at.UTC().Format(time.RFC3339), c.nacked.reason))
		}
		if c.twice != "" {
			add(fmt.Sprintf("its last answer had %s more than once, and the first counts: send one resource of a name", cut(c.twice)))
		}
		if c.echoed > 0 {
			list = append(list, source.EchoNotice("collection "+c.name, c.echoes(), h.self))
		}
		if shadowed, first := c.shadowed(); shadowed > 0 {
			add(fmt.Sprintf("%d of its objects are in another collection, too, such as %s: the one that comes first in collections counts", shadowed, cut(first)))
		}
	}
	for _, name := range h.unknown {
		list = append(list, model.Notice{Object: "collection " + name, Text: "the peer does not have it, so it is not asked for; name those that it has in collections"})
	}
	return list
}

// echoes names the resources with a part left out as an echo.
func (c *collection) echoes() (names []string) {
	for name, r := range c.held.All() {
		if r.echoes {
			names = append(names, name)
		}
	}
	return names
}

// shadowed counts the names for which another collection counts, and returns the first.
func (c *collection) shadowed() (n int, first string) {
	for name := range c.held.All() {
		if _, in := c.of.Get(name); in == c.held {
			continue
		}
		if n++; n == 1 || name < first {
			first = name
		}
	}
	return n, first
}
