package streams

import (
	"cmp"
	"strings"
	"time"

	"github.com/isthmus-mesh/isthmus/internal/rate"
)

// Limits bound what one client can cost the others. Zero fields take their
// defaults, which leave room for the largest honest client: one that resumes
// with tens of thousands of resources, or has thousands of siblings of one identity.
type Limits struct {
	// Message is the bytes of a request; default 32 MiB, for the first request
	// of a client that resumes lists all that it holds.
	Message int
	// Streams are those of all clients; default any number.
	Streams int
	// StreamsPerConnection default to 1,000. A client with more waits, or opens
	// another connection.
	StreamsPerConnection int
	// StreamsPerClient are those of one proven identity, else of one address;
	// default 10,000. This machine itself is not limited.
	StreamsPerClient int
	// NewStreams are streams of all clients; default 2,000 a second after 4,000
	// at once. One that is too early waits a little and is then rejected.
	NewStreams Rate
	// NewStreamsPerClient are those of one address, of which this machine is one,
	// and those of one proven identity; default half of NewStreams, so that no
	// client alone makes others wait. They wait like those.
	NewStreamsPerClient Rate
	// Requests are those of one stream; default 2,000 a second after 30,000. What
	// exceeds them waits in the transport, and the client with it.
	Requests Rate
	// NACKs are answers of one stream that NACK, and what costs as much; default 10 a
	// second after 100. They wait in the same way, so that a client that NACKs
	// everything costs next to nothing.
	NACKs Rate
	// Handshake is the time from the connection to its first stream being
	// possible; default 10 s.
	Handshake time.Duration
	// NewConnections are the connections of one address on which no stream has begun;
	// default 1,000. One more is closed. This machine itself is not limited.
	NewConnections int
	// Idle is how long a connection without a stream stays open; default 1 minute.
	Idle time.Duration
	// Ping is how long a client may be silent before it is pinged, and has [PingTimeout]
	// to answer; default 30 s.
	Ping time.Duration
	// FirstRequest is the time from the beginning of a stream to its first
	// request being there; default 30 s, for that may be large.
	FirstRequest time.Duration
	// Piece is the time for each MiB of a request, from its first byte on; default 10 s.
	Piece time.Duration
	// Receiving is the bytes of requests of more than 64 KiB that may be on their way
	// in, of all clients; default 64 MiB. Half of them are for one identity or address,
	// of which this machine is one, and at least one request of [Limits].Message.
	Receiving int
	// Recheck is how often it is looked whether certificates of clients still
	// hold; default 5 s.
	Recheck time.Duration
}

// Rate is so many a second, after a burst.
type Rate = rate.Rate

// WithDefaults fills in what is zero.
func (l Limits) WithDefaults() Limits {
	l.Message = cmp.Or(l.Message, 32<<20)
	l.StreamsPerConnection = cmp.Or(l.StreamsPerConnection, 1_000)
	l.StreamsPerClient = cmp.Or(l.StreamsPerClient, 10_000)
	l.NewStreams = cmp.Or(l.NewStreams, Rate{PerSecond: 2_000, Burst: 4_000})
	l.NewStreamsPerClient = cmp.Or(l.NewStreamsPerClient, Rate{PerSecond: l.NewStreams.PerSecond / 2, Burst: l.NewStreams.Burst / 2})
	l.Requests = cmp.Or(l.Requests, Rate{PerSecond: 2_000, Burst: 30_000})
	l.NACKs = cmp.Or(l.NACKs, Rate{PerSecond: 10, Burst: 100})
	l.Handshake = cmp.Or(l.Handshake, 10*time.Second)
	l.NewConnections = cmp.Or(l.NewConnections, 1_000)
	l.Idle = cmp.Or(l.Idle, time.Minute)
	l.Ping = cmp.Or(l.Ping, 30*time.Second)
	l.FirstRequest = cmp.Or(l.FirstRequest, 30*time.Second)
	l.Piece = cmp.Or(l.Piece, 10*time.Second)
	l.Receiving = cmp.Or(l.Receiving, 64<<20)
	l.Recheck = cmp.Or(l.Recheck, 5*time.Second)
	return l
}

const (
	// ReasonBytes of a NACK are kept to be shown.
	ReasonBytes = 2 << 10
	// ShownBytes of what a client says about itself are.
	ShownBytes = 1 << 10
	// nacksLogged of a stream at once, and then one every nackLogEvery.
	nacksLogged  = 5
	nackLogEvery = 10 * time.Second
)

// Cut shortens a text. What it returns does not keep the rest in memory.
func Cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.Clone(strings.ToValidUTF8(s[:most], "")) // which may end in half a character
}
