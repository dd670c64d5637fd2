package xds

import (
	"maps"
	"slices"

	"github.com/isthmus-mesh/isthmus/source/mirror"
)

// difference is the effect of an answer on the held resources of a type.
type difference struct {
	*mirror.Reading[string, resource]
	trouble  []string
	nameless bool // a resource has no readable name
	whole    bool // resources that it lacks are gone
	repeated int  // unchanged resources
}

// mostTrouble bounds the number of reported faults that belong to no name.
const mostTrouble = 10

// compare finds the changes of an answer. A resource that a complete answer lacks is gone.
// The exception is an answer with an unreadable name: any lacking resource may be that one.
func (h *holding) compare(a answer) difference {
	d := difference{Reading: h.resources.Read(), whole: a.full}
	for _, r := range a.resources {
		have, known := h.resources.Get(r.name)
		switch {
		case r.name == "":
			d.nameless = true
			d.add(r.broken)
		case d.Has(r.name):
			d.add(r.name + " is there twice, and the first counts: send one resource of a name")
		case known && have.same(r):
			d.repeated++
			d.Same(r.name)
		default:
			d.Put(r.name, r)
		}
	}
	if a.full && !d.nameless {
		d.Complete()
	}
	for _, name := range a.removed {
		if name != nobody { // held or not: a drop of it may be held
			d.Delete(name)
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

// nacked returns the effect of an answer that is NACKed: its resources are unknown.
func (h *holding) nacked(reason string) difference {
	return difference{Reading: h.resources.Read(), trouble: []string{"the whole answer was NACKed: " + reason}, nameless: true}
}

// undecodable returns why no resource of an answer can be decoded. It is empty if one
// can, or if the answer is empty.
func (h *holding) undecodable(d difference) string {
	if d.repeated > 0 || !d.whole && len(slices.Collect(d.Gone())) > 0 {
		return ""
	}
	reason := ""
	if len(d.trouble) > 0 {
		reason = d.trouble[0]
	}
	changed := d.Changed()
	for _, name := range slices.Sorted(maps.Keys(changed)) {
		reading := changed[name].read(h.kind)
		if !reading.Undecoded {
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
	for name, r := range d.Changed() {
		if had, known := h.resources.Get(name); known {
			h.size -= had.size()
		}
		r.count(h.kind)
		h.size += r.size()
		d.Put(name, r)
	}
	for name := range d.Gone() {
		h.uncount(name)
	}
	d.Apply()
	h.trouble = d.trouble
	h.incomplete = d.nameless || h.incomplete && !d.whole
}
