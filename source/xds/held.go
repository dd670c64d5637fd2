package xds

import (
	"maps"
	"slices"

	"github.com/isthmus-mesh/isthmus/internal/mcp"
)

// held are the resources of a server, by type. They outlive connections.
type held map[string]*holding // by the URL of the type

// holding are the held resources of a type.
type holding struct {
	kind      mcp.Kind
	resources map[string]resource // by name
	size      int64               // bytes of the resources, approximately
	echoes    map[string]bool     // names of resources with a part left out as an echo
	// trouble lists the faults of the last answer that belong to no name.
	trouble []string
	// incomplete says that the server has more resources than are held: an unreadable
	// one was received, and it comes again only with a complete answer.
	incomplete bool
}

// of returns the held resources of a type.
func (h held) of(url string, kind mcp.Kind) *holding {
	if h[url] == nil {
		h[url] = &holding{kind: kind, resources: map[string]resource{}, echoes: map[string]bool{}}
	}
	return h[url]
}

// versions returns the versions of the held resources, for a server that resumes; nil
// if there are none to resume from.
func (h *holding) versions() map[string]string {
	if len(h.resources) == 0 {
		return nil
	}
	versions := make(map[string]string, len(h.resources))
	for name, r := range h.resources {
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

// difference is the effect of an answer on the held resources.
type difference struct {
	changed  map[string]resource
	gone     []string
	trouble  []string
	nameless bool            // a resource has no readable name
	whole    bool            // resources that it lacks are gone
	names    map[string]bool // names in the answer
	repeated int             // unchanged resources
}

// mostTrouble bounds the number of reported faults that belong to no name.
const mostTrouble = 10

// compare finds the changes of an answer. A resource that a complete answer lacks is gone.
// The exception is an answer with an unreadable name: any lacking resource may be that one.
func (h *holding) compare(a answer) difference {
	d := difference{changed: map[string]resource{}, names: make(map[string]bool, len(a.resources)), whole: a.full}
	for _, r := range a.resources {
		have, known := h.resources[r.name]
		switch {
		case r.name == "":
			d.nameless = true
			d.add(r.broken)
		case d.names[r.name]:
			d.add(r.name + " is there twice, and the first counts: send one resource of a name")
		case known && have.same(r):
			d.repeated++
		default:
			d.changed[r.name] = r
		}
		if r.name != "" {
			d.names[r.name] = true
		}
	}
	if a.full && !d.nameless {
		d.gone = h.without(d.names)
	}
	for _, name := range a.removed {
		if name != nobody && !d.names[name] { // known or not: a drop of it may be held
			d.gone = append(d.gone, name)
		}
	}
	return d
}

func (d *difference) add(trouble string) {
	if trouble == "" {
		trouble = "it has no name: send namespace/name"
	}
	if len(d.trouble) < mostTrouble && !slices.Contains(d.trouble, trouble) {
		d.trouble = append(d.trouble, trouble)
	}
}

// without returns the held names that are not among some names, in order.
func (h *holding) without(names map[string]bool) (list []string) {
	for name := range h.resources {
		if !names[name] {
			list = append(list, name)
		}
	}
	slices.Sort(list)
	return list
}

// undecodable returns why no resource of an answer can be decoded. It is empty if one
// can, or if the answer is empty.
func (h *holding) undecodable(d difference) string {
	if d.repeated > 0 || !d.whole && len(d.gone) > 0 {
		return ""
	}
	reason := ""
	if len(d.trouble) > 0 {
		reason = d.trouble[0]
	}
	for _, name := range slices.Sorted(maps.Keys(d.changed)) {
		reading := d.changed[name].read(h.kind)
		if decodes(reading) {
			return ""
		}
		if reason == "" {
			reason = name + ": " + reading.Problems[0].Reason
		}
	}
	return reason
}

// apply applies a difference to the held resources.
func (h *holding) apply(d difference) {
	for name, r := range d.changed {
		r.count(h.kind)
		h.size += r.size() - h.resources[name].size()
		h.resources[name] = r
	}
	for _, name := range d.gone {
		h.drop(name)
	}
	h.trouble = d.trouble
	h.incomplete = d.nameless || h.incomplete && !d.whole
}

func (h *holding) drop(name string) {
	h.size -= h.resources[name].size()
	delete(h.resources, name)
	delete(h.echoes, name)
}

// size returns the total bytes of held resources, approximately.
func (h held) size() (n int64) {
	for _, one := range h {
		n += one.size
	}
	return n
}

// touched returns the names that an answer changes, in order.
func (d difference) touched() []string {
	names := slices.AppendSeq(slices.Clone(d.gone), maps.Keys(d.changed))
	slices.Sort(names)
	return slices.Compact(names)
}
