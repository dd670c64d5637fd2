package xds

import (
	"cmp"

	"github.com/isthmus-mesh/isthmus/output/streams"
	"github.com/isthmus-mesh/isthmus/output/xds/node"
	"github.com/isthmus-mesh/isthmus/output/xds/wire"
)

// Limits bound the cost of one client for the others. Zero fields take their defaults,
// which leave room for the largest honest client.
type Limits struct {
	streams.Limits
	// Names is the number of names of one type that a stream may ask for, and the number it
	// may claim to hold; default 250,000.
	Names int
	// NamesBytes bounds the bytes of all these names together; default 64 MiB. One name alone
	// may have any length: no resource has so long a name, and it is answered like any other
	// absent name.
	NamesBytes int
	// NodeBytes bounds the node's id, its namespace, its locality, and the name and
	// the value of each of its labels; default 4 KiB.
	NodeBytes int
	// Labels bounds the labels of a node; default 256.
	Labels int
	// FieldBytes bounds every other field, such as the node; default 1 MiB.
	FieldBytes int
}

func (l Limits) withDefaults() Limits {
	l.Names = cmp.Or(l.Names, 250_000)
	l.NamesBytes = cmp.Or(l.NamesBytes, 64<<20)
	l.NodeBytes = cmp.Or(l.NodeBytes, 4<<10)
	l.Labels = cmp.Or(l.Labels, 256)
	l.FieldBytes = cmp.Or(l.FieldBytes, 1<<20)
	return l
}

// request returns the limits of one request.
func (l *Limits) request() wire.Limits {
	return wire.Limits{Names: l.Names, NamesBytes: l.NamesBytes, FieldBytes: l.FieldBytes}
}

// node returns the limits of a node.
func (l *Limits) node() node.Limits { return node.Limits{Bytes: l.NodeBytes, Labels: l.Labels} }
