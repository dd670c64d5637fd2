package mcp

import (
	"hash/maphash"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/isthmus-mesh/isthmus/convert/istio"
	"github.com/isthmus-mesh/isthmus/internal/mcp"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source"
)

// holding is the state of a peer, by collection. It outlives a stream.
type holding struct {
	seed        maphash.Seed
	self        string        // resources that came through the Isthmus of this name are left out
	collections []*collection // in order: the first collection with a name counts
	bounds      bounds
	room        func() int // bytes that may be held now; nil if that does not change
	size        int        // of all collections
}

// collection is the held state of a collection.
type collection struct {
	name string
	kind mcp.Kind
	held map[string]*held // by name; an empty name stands for nameless resources
	turn uint64           // counts the answers that were compared

	echoed int // resources with a part left out as an echo

	answered bool // on this stream
	refused  bool // on this stream, its last answer was NACKed
	said     map[string]string
	nacked   nacked
}

// held is one held resource. Only the field turn changes later.
type held struct {
	hash    uint64 // of its bytes
	version string
	size    int
	turn    uint64 // of the last answer that had the resource

	echoes   bool // a part of the resource is left out as an echo
	passedOn bool // the whole resource is an echo, and another Isthmus has passed it on since

	// object is the decoded resource, rejected the rejection of all or a part of it.
	// Neither is set for an ignored kind of resource and for an echo.
	object   *istio.Reading
	rejected *source.Rejection
}

func newHolding(collections []string, b bounds) *holding {
	h := &holding{seed: maphash.MakeSeed(), bounds: b}
	for _, name := range collections {
		kind, _ := mcp.ByCollection(name)
		h.collections = append(h.collections, &collection{name: name, kind: kind, held: map[string]*held{}})
	}
	return h
}

// most returns how many bytes may be held: the more sources, the less.
func (h *holding) most() int {
	if h.room == nil {
		return h.bounds.bytes
	}
	return min(h.bounds.bytes, h.room())
}

// find returns the collection of a name; nil if it was not requested.
func (h *holding) find(name string) *collection {
	for _, c := range h.collections {
		if c.name == name {
			return c
		}
	}
	return nil
}

// current returns the resource that counts for a name of a kind: the one in the first
// collection that has the name.
func (h *holding) current(kind, name string) (is *held, of *collection) {
	for _, c := range h.collections {
		if is := c.held[name]; is != nil && c.kind.Name == kind {
			return is, c
		}
	}
	return nil, nil
}

// place returns the place of a resource: each resource has its own.
func (c *collection) place(name string) string { return c.name + " " + name }

// collectionOf returns the collection of a place.
func collectionOf(place string) string {
	name, _, _ := strings.Cut(place, " ")
	return name
}

// places returns the possible places of an object: one in each collection of the kind.
func (h *holding) places(kind, name string) (list []string) {
	for _, c := range h.collections {
		if c.kind.Name == kind {
			list = append(list, c.place(name))
		}
	}
	return list
}

// everything returns a listing of the peer's state, by the last answer of each collection.
func (h *holding) everything() (l source.Listing) {
	l.Ignored = map[string]int{}
	for _, c := range h.collections {
		for name, r := range c.sorted() {
			if _, of := h.current(c.kind.Name, name); of != c {
				continue
			}
			if r.passedOn {
				l.Removed = append(l.Removed, h.places(c.kind.Name, name)...)
			}
			if r.object == nil && r.rejected == nil && !r.echoes {
				l.Ignored[c.kind.Name]++
			}
			r.enter(c.place(name), &l.Objects, &l.Rejected)
		}
	}
	return l
}

// enter adds a resource to the objects and rejections passed on.
func (r *held) enter(place string, objects *[]source.Object, rejected *[]source.Rejection) {
	if r.rejected != nil {
		*rejected = append(*rejected, *r.rejected)
	}
	if r.object != nil {
		*objects = append(*objects, r.object.Listed(place))
	}
}

// shadowed yields the names in a collection for which another one counts.
func (h *holding) shadowed(c *collection) iter.Seq[string] {
	return func(yield func(string) bool) {
		for name := range c.sorted() {
			if _, of := h.current(c.kind.Name, name); of != c && !yield(name) {
				return
			}
		}
	}
}

func (c *collection) sorted() iter.Seq2[string, *held] {
	return func(yield func(string, *held) bool) {
		for _, name := range slices.Sorted(maps.Keys(c.held)) {
			if !yield(name, c.held[name]) {
				return
			}
		}
	}
}

// mostResumed bounds the bytes of names and versions in a request: peers take a few MiB.
const mostResumed = 3 << 20

// versions returns the versions of all held resources, to resume from; nil if there
// are none, or too many for a request.
func (c *collection) versions() map[string]string {
	all, size := make(map[string]string, len(c.held)), 0
	for name, r := range c.held {
		if name == "" {
			continue
		}
		all[name] = r.version
		size += len(name) + len(r.version) + 8
	}
	if len(all) == 0 || size > mostResumed {
		return nil
	}
	return all
}

// recordKind returns the kind of the records that a collection's resources become.
func (c *collection) recordKind() model.Kind { return istio.RecordKind(c.kind.Name) }
