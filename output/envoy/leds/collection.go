package leds

import (
	"encoding/binary"
	"net/netip"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/push/world"
)

// Collection is a revision of the endpoints of a service port in one locality. Envoys take each
// endpoint as a resource. It is immutable.
type Collection struct {
	ServicePort
	Epoch, Number uint32
	Locality      model.Locality
	Endpoints     *catalog.Endpoints // of the service port
	Members       int
	weight        uint64
	// Journal lists the addresses of added, changed and removed endpoints since the collection
	// has its name. Revisions share the array: a later revision is longer.
	Journal []netip.AddrPort
	lost    bool // the last step removed or changed a member
}

func (c *Collection) count(e catalog.Endpoint, by int) {
	c.Members += by
	if by > 0 {
		c.weight += weightOf(e)
	} else {
		c.weight -= weightOf(e)
	}
}

// RevisionAt is the version of the collection with a journal of some length.
func (c *Collection) RevisionAt(length int) (v world.Version) {
	binary.BigEndian.PutUint32(v[:], c.Epoch)
	binary.BigEndian.PutUint32(v[4:], c.Number)
	binary.BigEndian.PutUint64(v[8:], uint64(length)+1) //nolint:gosec // not below zero
	return v
}

// Member returns the address of an endpoint, if the collection contains it.
func (c *Collection) Member(e catalog.Endpoint) (netip.AddrPort, bool) {
	if e.Instance == nil || e.Health != model.Healthy || e.Locality != c.Locality {
		return netip.AddrPort{}, false
	}
	return MemberAddress(e)
}
