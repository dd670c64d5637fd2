package streams

import (
	"cmp"
	"strings"
	"time"

	"github.com/isthmus-mesh/isthmus/internal/rate"
)

// Limits bound the cost of one client for the others. Zero fields take their defaults,
// which leave room for the largest honest client. Such a client resumes with tens of
// thousands of resources, or has thousands of siblings of one identity.
type Limits struct {
	// Message is the bytes of a request; default 32 MiB, because the first request of a client
	// that resumes lists all of its resources.
	Message int
	// Streams is the number of streams of all clients; default any number.
	Streams int
	// StreamsPerConnection default to 1,000. A client with more waits, or opens
	// another connection.
	StreamsPerConnection int
	// StreamsPerClient is the number of streams of one proven identity, otherwise of one
	// address; default 10,000. This machine itself is not limited.
	StreamsPerClient int
	// NewStreams is the rate of new streams of all clients; default 2,000 a second after 4,000
	// at once. An early stream waits a little and is then rejected.
	NewStreams Rate
	// NewStreamsPerClient is the rate of new streams of one address, including this machine,
	// and of one proven identity; default half of NewStreams, so that no client alone makes
	// others wait. Early streams wait like in NewStreams.
	NewStreamsPerClient Rate
	// Requests is the rate of requests of one stream; default 2,000 a second after 30,000.
	// Further requests wait in the transport, and the client with them.
	Requests Rate
	// NACKs is the rate of NACKs, and of requests as expensive, of one stream; default 10 a
	// second after 100. They wait in the same way, so that a client that NACKs everything
	// costs next to nothing.
	NACKs Rate
	// Handshake is the time from the connection until a first stream is possible; default 10
	// s.
	Handshake time.Duration
	// NewConnections is the number of connections of one address without a stream; default
	// 1,000. A further one is closed. This machine itself is not limited.
	NewConnections int
	// Idle is how long a connection without a stream stays open; default 1 minute.
	Idle time.Duration
	// Ping is how long a client may be silent before it is pinged, and has [PingTimeout]
	// to answer; default 30 s.
	Ping time.Duration
	// FirstRequest is the time from the begin of a stream to its complete first request;
	// default 30 s, because that may be large.
	FirstRequest time.Duration
	// Checks is the number of health checks of one address that prove no identity to a listener
	// that demands one; default 4. This machine is one address.
	Checks int
	// Check is how long the request of such a check may take; default 5 s.
	Check time.Duration
	// Piece is the time for each MiB of a request, from its first byte on; default 10 s.
	Piece time.Duration
	// Receiving is the bytes of incoming requests of more than 64 KiB, of all clients; default
	// 64 MiB. Half of them are for one identity or address, including this machine, and at
	// least one request of [Limits].Message.
	Receiving int
	// Recheck is the interval between checks of clients' certificates; default 5 s.
	Recheck time.Duration
}

// Rate is a number of events per second, after a burst.
type Rate = rate.Rate

// WithDefaults replaces zero fields by their defaults.
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
	l.Checks = cmp.Or(l.Checks, 4)
	l.Check = cmp.Or(l.Check, 5*time.Second)
	l.Piece = cmp.Or(l.Piece, 10*time.Second)
	l.Receiving = cmp.Or(l.Receiving, 64<<20)
	l.Recheck = cmp.Or(l.Recheck, 5*time.Second)
	return l
}

const (
	// ReasonBytes of a NACK are kept to be shown.
	ReasonBytes = 2 << 10
	// ShownBytes of a client's self-description are kept to be shown.
	ShownBytes = 1 << 10
	// nacksLogged of a stream at once, and then one every nackLogEvery.
	nacksLogged  = 5
	nackLogEvery = 10 * time.Second
)

// Cut shortens a text. The result does not keep the rest in memory.
func Cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.Clone(strings.ToValidUTF8(s[:most], "")) // the cut may split a character
}
