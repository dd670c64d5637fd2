package mcp

import (
	"cmp"

	"github.com/isthmus-mesh/isthmus/internal/streams"
)

// Limits bound what one sink can cost the others. Zero fields take their defaults. Of
// those of all streams some are lower here, as every sink takes whole collections.
// Changes between full states and increments count as NACKs.
type Limits struct {
	// Limits have other defaults for Streams, 10,000; StreamsPerClient, 2,000; and
	// StreamsPerConnection, 100.
	streams.Limits
	// Versions is how many resources a sink may say it holds of a collection; default
	// 250,000.
	Versions int
	// FieldBytes bounds every other field, such as the sink's node; default 64 KiB.
	FieldBytes int
	// Unknown is how many collections a stream may ask for that nobody serves;
	// default 64.
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
	// Message is the bytes that a sink takes in one message: the default of gRPC and
	// of Pilot.
	Message = 4 << 20
	// tailBytes of it are for what is not a resource.
	tailBytes = 4 << 10
	// increment is the bytes of resources in one increment, if more than one is in it.
	increment = 3 << 20
)
