package mcp

import (
	"cmp"

	"github.com/isthmus-mesh/isthmus/output/streams"
)

// Limits bound the cost of one sink for the others. Zero fields take their defaults. Some
// limits of streams are lower here, as every sink takes whole collections. Changes between
// full states and increments count as NACKs.
type Limits struct {
	// Limits have other defaults for Streams, 10,000; StreamsPerClient, 2,000; and
	// StreamsPerConnection, 100.
	streams.Limits
	// Versions is the number of resources that a sink may claim to hold of a collection;
	// default 250,000.
	Versions int
	// FieldBytes bounds every other field, such as the sink's node; default 64 KiB.
	FieldBytes int
	// Unknown is the number of unserved collections that a stream may ask for; default 64.
	Unknown int
}

func (l Limits) withDefaults() Limits {
	l.Versions = cmp.Or(l.Versions, 250_000)
	l.FieldBytes = cmp.Or(l.FieldBytes, 64<<10)
	l.Unknown = cmp.Or(l.Unknown, 64)
	l.Streams = cmp.Or(l.Streams, 10_000)
	l.StreamsPerClient = cmp.Or(l.StreamsPerClient, 2_000)
	l.StreamsPerConnection = cmp.Or(l.StreamsPerConnection, 100)
	l.Limits = l.WithDefaults()
	return l
}

const (
	// Message is the bytes that a sink accepts in one message: the default of gRPC and of
	// Pilot.
	Message = 4 << 20
	// tailBytes of it are for fields other than resources.
	tailBytes = 4 << 10
	// increment bounds the bytes of resources in an increment with more than one resource.
	increment = 3 << 20
)
