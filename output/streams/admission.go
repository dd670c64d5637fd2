package streams

import (
	"context"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"

	"github.com/isthmus-mesh/isthmus/internal/rate"
	"github.com/isthmus-mesh/isthmus/internal/wait"
)

// admission limits the rate and number of new streams. It is asked three times: by address,
// before anything of a stream is processed ([carrier.admit]), then by proven identity, then
// for all. The streams of one client therefore exhaust its own limits before the common
// limits.
type admission struct {
	limits Limits

	mu      sync.Mutex
	total   int
	all     rate.Bucket
	by      map[string]*rate.Bucket // by address and by proven identity, unless at rest
	streams map[string]int          // by the key of their seat
}

func newAdmission(l Limits) *admission {
	return &admission{limits: l, all: rate.New(l.NewStreams), by: map[string]*rate.Bucket{}, streams: map[string]int{}}
}

// seat is the place that a stream takes among those of its client.
type seat struct {
	key  string // of the client; empty if its streams are not limited
	most int
	full string // the error if all are taken, with the key and most
	// hurried means that the stream waits for no rate limit: a late answer to a health check would
	// have Isthmus restarted in the middle of a rush.
	hurried bool
}

// seat returns the place of a stream.
func (l Limits) seat(who Identity) seat {
	return seat{key: who.Key(), most: l.StreamsPerClient, full: "%s has %d streams already, which is all one client may have; end some, or give its parts identities of their own"}
}

// admit lets a stream begin, after a wait of at most longest if there is a rush. The
// caller calls leave at the end of the stream.
func (a *admission) admit(ctx context.Context, who Identity, takes seat, longest time.Duration) (leave func(), err error) {
	if err := a.enter(takes); err != nil {
		return nil, err
	}
	leave = func() { a.leave(takes.key) }
	if takes.hurried {
		return leave, nil
	}
	if err := a.await(ctx, who, longest); err != nil {
		leave()
		return nil, err
	}
	return leave, nil
}

// await waits for the rate limit of a stream's identity, and then for the common one.
func (a *admission) await(ctx context.Context, who Identity, longest time.Duration) error {
	if who.Proven() {
		delay, ok := a.take(who.ID(), 1, longest)
		if !ok {
			return grpcstatus.Errorf(codes.ResourceExhausted,
				"more than %g streams a second of %s begin, which is all that are let in of one identity; try again later, or another Isthmus",
				a.limits.NewStreamsPerClient.PerSecond, who.ID())
		}
		wait.Sleep(ctx, delay)
		longest -= delay
	}
	delay, ok := a.takeOfAll(longest)
	if !ok {
		return grpcstatus.Errorf(codes.ResourceExhausted,
			"more than %g streams a second begin, which is all that are let in; try again later, or another Isthmus", a.limits.NewStreams.PerSecond)
	}
	wait.Sleep(ctx, delay)
	return nil
}

// take makes new streams of one client wait for the rate limit. If the last of them would
// wait for longer than longest, ok is false, and none is counted.
func (a *admission) take(client string, streams int, longest time.Duration) (delay time.Duration, ok bool) {
	now := time.Now()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.sweep(now)
	b := a.by[client]
	if b == nil {
		fresh := rate.New(a.limits.NewStreamsPerClient)
		b = &fresh
		a.by[client] = b
	}
	return b.Take(now, streams, longest)
}

func (a *admission) takeOfAll(longest time.Duration) (delay time.Duration, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.all.Take(time.Now(), 1, longest)
}

// sweep removes some buckets of clients at rest. It is called before one is added, so there
// are hardly more than the active ones.
func (a *admission) sweep(now time.Time) {
	const some = 2
	looked := 0
	for client, b := range a.by {
		if b.Rests(now) {
			delete(a.by, client)
		}
		if looked++; looked == some {
			return
		}
	}
}

// enter counts a stream of a client, unless the maximum is reached.
func (a *admission) enter(takes seat) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if most := a.limits.Streams; most > 0 && a.total >= most {
		return TooLarge("%d streams are there already, which is all that are let in; try another Isthmus", most)
	}
	if takes.key != "" && a.streams[takes.key] >= takes.most {
		return TooLarge(takes.full, takes.key, takes.most)
	}
	a.total++
	a.streams[takes.key]++
	return nil
}

func (a *admission) leave(key string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.total--
	if a.streams[key]--; a.streams[key] <= 0 {
		delete(a.streams, key)
	}
}
