package mcp

import (
	"hash/maphash"
	"slices"

	"github.com/isthmus-mesh/isthmus/convert/istio"
	"github.com/isthmus-mesh/isthmus/internal/budget"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source/mirror"
)

// holding is the state of a peer, by collection. It outlives a stream.
type holding struct {
	seed        maphash.Seed
	self        string // resources that came through the Isthmus of this name are left out
	collections collections
	bounds      bounds
	size        int      // of all collections
	noResume    bool     // requests contain no held versions
	unknown     []string // collections that the peer does not know; they are not requested
}

// collection is the held state of a collection.
type collection struct {
	name string
	kind istio.Definition
	held *mirror.Part[string, *held]   // an empty name stands for nameless resources
	of   *mirror.Mirror[string, *held] // all collections of the kind, in order

	echoed int // resources with a part left out as an echo

	answered bool // on this stream
	refused  bool // on this stream, its last answer was NACKed
	said     map[string]string
	nacked   nacked
	twice    string // a name that came more than once in the last answer; empty if none did
}

// held is one held resource.
type held struct {
	hash    uint64 // of its bytes
	version string
	size    int

	echoes   bool // a part of the resource is left out as an echo
	passedOn bool // the whole resource is an echo, and another Isthmus has passed it on since

	// object is the decoded resource, rejected the rejection of all or a part of it.
	// Neither is set for an ignored kind of resource and for an echo.
	object   *istio.Reading
	rejected *model.Rejection
}

// bounds limit how much of a peer's data is held.
type bounds struct {
	bytes  int            // of all resources, with their overhead
	fields int            // of the body of one resource
	memory *budget.Budget // holds fewer bytes the more sources there are
}

// most returns how many bytes may be held now.
func (b bounds) most() int { return min(b.bytes, int(b.memory.Lasting(mostBytes))) }

func newHolding(names []string, b bounds, self string) *holding {
	h := &holding{seed: maphash.MakeSeed(), bounds: b, self: self}
	kinds := map[string]*mirror.Mirror[string, *held]{}
	for _, name := range names {
		kind, _ := istio.ByCollection(name)
		of := kinds[kind.Name]
		if of == nil {
			of = mirror.New[string, *held]()
			kinds[kind.Name] = of
		}
		h.collections = append(h.collections, &collection{name: name, kind: kind, held: of.Part(name), of: of})
	}
	return h
}

// drop stops requesting a collection that the peer does not know.
func (h *holding) drop(c *collection) {
	h.unknown = append(h.unknown, c.name)
	h.collections = slices.DeleteFunc(h.collections, func(o *collection) bool { return o == c })
	c.of.Drop(c.name)
}

// mostResumed bounds the bytes of names and versions in a request: peers take a few MiB.
const mostResumed = 3 << 20

// versions returns the versions of all held resources, to resume from; nil if there
// are none, or too many for a request.
func (c *collection) versions() map[string]string {
	all, size := make(map[string]string, c.held.Len()), 0
	for name, r := range c.held.All() {
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

// hasService reports whether a collection has a resource that becomes a service.
func (c *collection) hasService() bool {
	for _, r := range c.held.All() {
		if r.object != nil {
			return true
		}
	}
	return false
}
