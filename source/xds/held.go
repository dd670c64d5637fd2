package xds

import (
	"github.com/isthmus-mesh/isthmus/convert/istio"
	"github.com/isthmus-mesh/isthmus/source/mirror"
)

// held are the resources of a server. They outlive connections.
type held struct {
	types map[string]*holding                         // by the URL of the type
	kinds map[string]*mirror.Mirror[string, resource] // by the name of the kind; the newest type comes first
}

// holding are the held resources of a type.
type holding struct {
	kind      istio.Definition
	of        *mirror.Mirror[string, resource] // all types of the kind
	resources *mirror.Part[string, resource]
	size      int64           // bytes of the resources, approximately
	echoes    map[string]bool // names of resources with a part left out as an echo
	// trouble lists the faults of the last answer that belong to no name.
	trouble []string
	// incomplete says that the server has more resources than are held: an unreadable
	// one was received, and it comes again only with a complete answer.
	incomplete bool
}

func newHeld() *held {
	return &held{types: map[string]*holding{}, kinds: map[string]*mirror.Mirror[string, resource]{}}
}

// kind returns the held resources of all types of a kind.
func (h *held) kind(kind istio.Definition) *mirror.Mirror[string, resource] {
	if h.kinds[kind.Name] == nil {
		h.kinds[kind.Name] = mirror.New[string, resource]()
	}
	return h.kinds[kind.Name]
}

// of returns the held resources of a type. Newer types of a kind must come first.
func (h *held) of(url string, kind istio.Definition) *holding {
	if h.types[url] == nil {
		of := h.kind(kind)
		h.types[url] = &holding{kind: kind, of: of, resources: of.Part(url), echoes: map[string]bool{}}
	}
	return h.types[url]
}

// drop forgets a type whose resources are held as another type.
func (h *held) drop(url string) {
	if one := h.types[url]; one != nil {
		one.of.Drop(url)
		delete(h.types, url)
	}
}

// clear forgets everything.
func (h *held) clear() { *h = *newHeld() }

// size returns the total bytes of held resources, approximately.
func (h *held) size() (n int64) {
	for _, one := range h.types {
		n += one.size
	}
	return n
}

// versions returns the versions of the held resources, for a server that resumes; nil
// if there are none to resume from.
func (h *holding) versions() map[string]string {
	if h.resources.Len() == 0 {
		return nil
	}
	versions := make(map[string]string, h.resources.Len())
	for name, r := range h.resources.All() {
		if r.version == "" {
			return nil
		}
		versions[name] = r.version
	}
	versions[nobody] = "none"
	return versions
}

// mostUnversioned bounds a first request with the names of stored records. Many
// servers take requests of 4 MiB, and end the stream of a larger one.
const mostUnversioned = 3 << 20

// unversioned returns names of records that another process stored, each with a dummy
// version. The server sends all of these again, and reports the removed ones. The
// result is nil without names, and if they are too many for a request.
func unversioned(names map[string]bool) map[string]string {
	if len(names) == 0 {
		return nil
	}
	const perName = 16 // for the version, and the tags and lengths of both fields
	size, versions := 0, make(map[string]string, len(names)+1)
	for name := range names {
		versions[name] = "none"
		if size += len(name) + perName; size > mostUnversioned {
			return nil
		}
	}
	versions[nobody] = "none"
	return versions
}

// nobody is the name of a resource that no server has. A server that resumes reports
// it as removed. A server that ignores a client's versions does not, nor does it
// report other removed resources.
const nobody = "~isthmus/nobody"

// names returns the names of the held resources.
func (h *holding) names() map[string]bool {
	set := make(map[string]bool, h.resources.Len())
	for name := range h.resources.All() {
		set[name] = true
	}
	return set
}

// keepOnly drops all held resources but some.
func (h *holding) keepOnly(names map[string]bool) {
	for name := range h.names() {
		if !names[name] {
			h.uncount(name)
			h.resources.Forget(name)
		}
	}
}

// uncount takes a resource that goes out of the counts.
func (h *holding) uncount(name string) {
	if r, known := h.resources.Get(name); known {
		h.size -= r.size()
	}
	delete(h.echoes, name)
}
