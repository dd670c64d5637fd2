package xds

import (
	"maps"
	"slices"

	"github.com/isthmus-mesh/isthmus/internal/mcp"
)

// held is what a server has said, by type. It outlives connections.
type held map[string]*holding // by the URL of the type

// holding is what is held of a type.
type holding struct {
	kind      mcp.Kind
	resources map[string]resource // by name
	size      int64               // of these, about
	echoes    map[string]bool     // names of these of which something is left out as it came from here
	// trouble is what is wrong with the last answer and belongs to no name.
	trouble []string
	// incomplete says that there is more than is held: something was said that cannot
	// be read, and that nobody says again until everything is.
	incomplete bool
}

// of returns what is held of a type.
func (h held) of(url string, kind mcp.Kind) *holding {
	if h[url] == nil {
		h[url] = &holding{kind: kind, resources: map[string]resource{}, echoes: map[string]bool{}}
	}
	return h[url]
}

// versions are those of what is held, for a server that resumes; nil where there are
// none to resume from.
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

// mostUnversioned bounds a first request that says what is stored: many servers take
// requests of 4 MiB, and end the stream of a larger one.
const mostUnversioned = 3 << 20

// unversioned are names of which another process has stored the records: the server sends
// all of these again, and says which are gone. It is nil if there are none, and if they
// are too many for a request.
func unversioned(names map[string]bool) map[string]string {
	if len(names) == 0 {
		return nil
	}
	const perName = 16 // with its version, and what goes before each of the two
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

// nobody is the name of a resource that no server has. One that resumes says that it
// is gone. One that takes no notice of what a client holds does not, and does not say
// what else is gone either.
const nobody = "~isthmus/nobody"

// difference is what an answer changes.
type difference struct {
	changed  map[string]resource
	gone     []string
	trouble  []string
	nameless bool            // some of it may be anything
	whole    bool            // what it lacks is gone
	names    map[string]bool // that the answer has
	repeated int             // resources that are as they were
}

// mostTrouble bounds how much is said of what belongs to no name.
const mostTrouble = 10

// compare finds what an answer changes. What a complete answer lacks is gone, unless
// something in it has no name that can be read: that may be any of those.
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

// without returns what is held and not among some names, in order.
func (h *holding) without(names map[string]bool) (list []string) {
	for name := range h.resources {
		if !names[name] {
			list = append(list, name)
		}
	}
	slices.Sort(list)
	return list
}

// undecodable says why nothing of an answer can be decoded; empty if something can, or
// if there is nothing in it.
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

// apply has what is held be as an answer says.
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

// size is how much is held in all, about.
func (h held) size() (n int64) {
	for _, one := range h {
		n += one.size
	}
	return n
}

// touched are the names that an answer changes, in order.
func (d difference) touched() []string {
	names := slices.AppendSeq(slices.Clone(d.gone), maps.Keys(d.changed))
	slices.Sort(names)
	return slices.Compact(names)
}
