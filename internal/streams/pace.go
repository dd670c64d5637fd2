package streams

import (
	"context"
	"log/slog"
	"time"

	"github.com/isthmus-mesh/isthmus/internal/rate"
	"github.com/isthmus-mesh/isthmus/internal/wait"
)

// Pace is how fast a stream's requests are taken in. The receiving goroutine owns it.
type Pace struct {
	rejected        *rejections
	log             *slog.Logger // of the stream
	requests, nacks rate.Bucket
	loud, slowed    rate.Bucket // of what is logged of NACKs, and of waiting
}

// NewPace returns the pace of a stream, which logs what it slows down.
func (s *Server) NewPace(log *slog.Logger) Pace {
	return Pace{
		rejected: s.rejections, log: log, requests: rate.New(s.limits.Requests), nacks: rate.New(s.limits.NACKs),
		loud:   rate.New(Rate{PerSecond: 1 / nackLogEvery.Seconds(), Burst: nacksLogged}),
		slowed: rate.New(Rate{PerSecond: 1 / nackLogEvery.Seconds(), Burst: 1}),
	}
}

// Await has a request wait if it is too early; dear says that it is a NACK or costs as
// much. Those behind it wait with it: they stay in the transport, whose window is
// bounded, until the client waits, too.
func (p *Pace) Await(ctx context.Context, dear bool) {
	delay, why := p.delay(time.Now(), dear)
	if delay <= 0 {
		return
	}
	p.rejected.counts[why].Add(1)
	if _, loud := p.slowed.Take(time.Now(), 1, 0); loud {
		p.log.Warn("a client is kept waiting, for it says too much", "cause", causeNames[why], "wait", delay.Round(time.Millisecond))
	}
	wait.Sleep(ctx, delay)
}

// delay is how long a request has to wait, and by which limit.
func (p *Pace) delay(now time.Time, dear bool) (wait time.Duration, why Cause) {
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

// LogNACK logs a NACK, unless there were many.
func (p *Pace) LogNACK(typeName, reason string) {
	if _, loud := p.loud.Take(time.Now(), 1, 0); loud {
		p.log.Warn("client NACKed a response", "type", typeName, "err", reason)
	}
}
