package streams

import (
	"context"
	"log/slog"
	"time"

	"github.com/isthmus-mesh/isthmus/internal/rate"
	"github.com/isthmus-mesh/isthmus/internal/wait"
)

// Pace limits how fast a stream's requests are received. The receiving goroutine owns it.
type Pace struct {
	rejected        *rejections
	log             *slog.Logger // of the stream
	requests, nacks rate.Bucket
	loud, slowed    rate.Bucket // rates of logged NACKs, and of logged delays
}

// newPace returns a pace within limits, which logs delays.
func newPace(l Limits, rejected *rejections, log *slog.Logger) Pace {
	return Pace{
		rejected: rejected, log: log, requests: rate.New(l.Requests), nacks: rate.New(l.NACKs),
		loud:   rate.New(Rate{PerSecond: 1 / nackLogEvery.Seconds(), Burst: nacksLogged}),
		slowed: rate.New(Rate{PerSecond: 1 / nackLogEvery.Seconds(), Burst: 1}),
	}
}

// Await delays an early request; dear means that it is a NACK or as expensive. Later
// requests wait with it. They stay in the transport, whose window is bounded, until the
// client waits, too.
func (p *Pace) Await(ctx context.Context, dear bool) {
	delay, why := p.delay(time.Now(), dear)
	if delay <= 0 {
		return
	}
	p.rejected.counts[why].Add(1)
	if _, loud := p.slowed.Take(time.Now(), 1, 0); loud {
		p.log.Warn("client is rate limited: too many requests", "cause", causeNames[why], "wait", delay.Round(time.Millisecond))
	}
	wait.Sleep(ctx, delay)
}

// delay returns how long a request has to wait, and the limit that requires it.
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
