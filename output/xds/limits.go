package xds

import (
	"cmp"

	"github.com/isthmus-mesh/isthmus/internal/streams"
)

// Limits bound what one client can cost the others. Zero fields take their
// defaults, which leave room for the largest honest client.
type Limits struct {
	streams.Limits
	// Names is how many names of one type a stream may ask for, and how many it
	// may say it holds; default 250,000.
	Names int
	// NamesBytes is how long all of these names together may be; default 64 MiB.
	// One name alone may have any length: no resource has so long a name, and it
	// is answered as any other that does not exist.
	NamesBytes int
	// NodeBytes bounds the node's id, its namespace, its locality, and the name and
	// the value of each of its labels; default 4 KiB.
	NodeBytes int
	// Labels is how many a node may say it has; default 256.
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

// unknownTypes of a stream are noted.
const unknownTypes = 8
