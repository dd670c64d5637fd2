package mcp

import (
	"cmp"
	"strings"
	"time"

	"github.com/isthmus-mesh/isthmus/internal/rate"
)

// Limits bound what one sink can cost the others. Zero fields take their defaults.
type Limits struct {
	// Message is the bytes of a request; default 32 MiB, for the first request of a
	// sink that resumes lists all that it holds.
	Message int
	// Versions is how many resources a sink may say it holds of a collection; default
	// 250,000.
	Versions int
	// FieldBytes bounds every other field, such as the sink's node; default 64 KiB.
	FieldBytes int
	// Unknown is how many collections a stream may ask for that nobody serves;
	// default 64.
	Unknown int
	// Streams are those of all sinks, default 10,000; StreamsPerClient those of one
	// proven identity or address, of which this machine is one, default 2,000;
	// StreamsPerConnection default to 100.
	Streams, StreamsPerClient, StreamsPerConnection int
	// NewStreams default to 1,000 a second after 2,000 at once. One that is too
	// early waits a little and is then rejected.
	NewStreams rate.Rate
	// Requests are those of one stream; default 2,000 a second after 30,000. NACKs, and
	// changes between full states and increments, are 10 a second after 100. What
	// exceeds them waits in the transport.
	Requests, NACKs rate.Rate
	// Handshake is the time from the connection to its first stream being possible;
	// default 10 s.
	Handshake time.Duration
	// Idle is how long a connection without a stream stays open; default 1 minute.
	Idle time.Duration
	// FirstRequest is the time from the beginning of a stream to its first request
	// being there; default 30 s. A sink that was dialled has as long as it likes.
	FirstRequest time.Duration
	// Piece is the time for each MiB of a request, from its first byte on; default 10 s.
	Piece time.Duration
	// Receiving is the bytes of requests of more than 64 KiB that may be on their way
	// in, of all sinks; default 64 MiB.
	Receiving int
	// Recheck is how often it is looked whether certificates of sinks still hold;
	// default 5 s.
	Recheck time.Duration
}

func (l Limits) withDefaults() Limits {
	l.Message = cmp.Or(l.Message, 32<<20)
	l.Versions = cmp.Or(l.Versions, 250_000)
	l.FieldBytes = cmp.Or(l.FieldBytes, 64<<10)
	l.Unknown = cmp.Or(l.Unknown, 64)
	l.Streams = cmp.Or(l.Streams, 10_000)
	l.StreamsPerClient = cmp.Or(l.StreamsPerClient, 2_000)
	l.StreamsPerConnection = cmp.Or(l.StreamsPerConnection, 100)
	l.NewStreams = cmp.Or(l.NewStreams, rate.Rate{PerSecond: 1_000, Burst: 2_000})
	l.Requests = cmp.Or(l.Requests, rate.Rate{PerSecond: 2_000, Burst: 30_000})
	l.NACKs = cmp.Or(l.NACKs, rate.Rate{PerSecond: 10, Burst: 100})
	l.Handshake = cmp.Or(l.Handshake, 10*time.Second)
	l.Idle = cmp.Or(l.Idle, time.Minute)
	l.FirstRequest = cmp.Or(l.FirstRequest, 30*time.Second)
	l.Piece = cmp.Or(l.Piece, 10*time.Second)
	l.Receiving = cmp.Or(l.Receiving, 64<<20)
	l.Recheck = cmp.Or(l.Recheck, 5*time.Second)
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

	// reasonBytes of a NACK are kept to be shown, and shownBytes of what a sink says
	// about itself.
	reasonBytes = 2 << 10
	shownBytes  = 1 << 10
	// nacksLogged of a stream at once, and then one every nackLogEvery.
	nacksLogged  = 5
	nackLogEvery = 10 * time.Second
)

// cut shortens a text. What it returns does not keep the rest in memory.
func cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.Clone(strings.ToValidUTF8(s[:most], "")) // which may end in half a character
}

// pace is how fast a stream's requests are taken in. The receiving goroutine owns it.
type pace struct {
	requests, nacks rate.Bucket
	log, slowed     rate.Bucket // of what is logged of NACKs, and of waiting
}

func newPace(l Limits) pace {
	return pace{
		requests: rate.New(l.Requests), nacks: rate.New(l.NACKs),
		log:    rate.New(rate.Rate{PerSecond: 1 / nackLogEvery.Seconds(), Burst: nacksLogged}),
		slowed: rate.New(rate.Rate{PerSecond: 1 / nackLogEvery.Seconds(), Burst: 1}),
	}
}

// delay is how long a request has to wait, and by which limit; dear says that it is
// a NACK or costs as much.
func (p *pace) delay(now time.Time, dear bool) (wait time.Duration, why cause) {
	const forEver = 1<<63 - 1
	wait, _ = p.requests.Take(now, 1, forEver)
	if !dear {
		return wait, slowRequests
	}
	if nack, _ := p.nacks.Take(now, 1, forEver); nack > wait {
		return nack, slowNACKs
	}
	return wait, slowRequests
}
