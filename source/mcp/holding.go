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

// holding is what a peer has said, by collection. It outlives a stream.
type holding struct {
	seed        maphash.Seed
	self        string        // what came through the Isthmus of that name is left out
	collections []*collection // in order: the first that has a name counts
	bounds      bounds
	room        func() int // how much may be held now; nil if that does not change
	size        int        // of all collections
}

// collection is what a peer has said of one.
type collection struct {
	name string
	kind mcp.Kind
	held map[string]*held // by name; that of nameless resources is empty
	turn uint64           // counts the answers that were applied

	echoed int // resources of which something is left out as it came from here

	answered bool // on this stream
	refused  bool // on this stream, its last answer was NACKed
	said     map[string]string
	nacked   nacked
}

// held is one resource. It is not written to once it is held, but for turn.
type held struct {
	hash    uint64 // of its bytes
	version string
	size    int
	turn    uint64 // of the last answer that had it

	echoes   bool // something in it is left out as it came from here
	passedOn bool // all of it is, and another Isthmus has passed it on since

	// The object, what was rejected of it, or of which all was; neither if it is none of
	// Isthmus's business, or came from here.
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

// most is how many bytes may be held: the less, the more sources there are.
func (h *holding) most() int {
	if h.room == nil {
		return h.bounds.bytes
	}
	return min(h.bounds.bytes, h.room())
}

// find returns the collection of a name; nil if it was not asked for.
func (h *holding) find(name string) *collection {
	for _, c := range h.collections {
		if c.name == name {
			return c
		}
	}
	return nil
}

// current is the resource that counts for a name of a kind: that of the first
// collection which has one.
func (h *holding) current(kind, name string) (is *held, of *collection) {
	for _, c := range h.collections {
		if is := c.held[name]; is != nil && c.kind.Name == kind {
			return is, c
		}
	}
	return nil, nil
}

// place is where a resource stands in the registry: each for itself.
func (c *collection) place(name string) string { return c.name + " " + name }

// collectionOf is the one in which a place is.
func collectionOf(place string) string {
	name, _, _ := strings.Cut(place, " ")
	return name
}

// places are where an object of a kind may stand: in any collection of it.
func (h *holding) places(kind, name string) (list []string) {
	for _, c := range h.collections {
		if c.kind.Name == kind {
			list = append(list, c.place(name))
		}
	}
	return list
}

// everything is all that the peer holds, by the last answer of each collection.
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

// enter adds a resource to what is passed on.
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

// mostResumed bounds the names and versions in a request: peers take a few MiB.
const mostResumed = 3 << 20

// versions are those of all that is held, to resume from; nil if there is nothing,
// or too much for a request.
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

// recordKind is the kind of the records that resources of a collection become.
func (c *collection) recordKind() model.Kind { return istio.RecordKind(c.kind.Name) }
