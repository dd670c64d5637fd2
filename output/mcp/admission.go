package mcp

import (
	"context"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"

	"github.com/isthmus-mesh/isthmus/internal/rate"
	"github.com/isthmus-mesh/isthmus/internal/wait"
)

// admission decides which streams begin.
type admission struct {
	limits Limits

	mu      sync.Mutex
	fresh   rate.Bucket
	streams map[string]int // by [identity.key]
	total   int
}

func newAdmission(l Limits) *admission {
	return &admission{limits: l, fresh: rate.New(l.NewStreams), streams: map[string]int{}}
}

// admit lets a stream begin, after a while if there is a rush. Who is let in calls
// leave at the end.
func (s *Server) admit(ctx context.Context, who identity) (leave func(), err error) {
	key := who.key()
	delay, err := s.admission.enter(key, s.config.PrimedWithin)
	if err != nil {
		return nil, s.rejected.record(tooMany, err)
	}
	wait.Sleep(ctx, delay)
	return func() { s.admission.leave(key) }, nil
}

func (a *admission) enter(key string, patience time.Duration) (delay time.Duration, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if most := a.limits.StreamsPerClient; a.streams[key] >= most {
		return 0, tooLarge("%d streams of one client are there already, which is all one may have; end some, or give its parts identities of their own", most)
	}
	if most := a.limits.Streams; a.total >= most {
		return 0, tooLarge("%d streams are there already, which is all that are let in; try another Isthmus", most)
	}
	delay, ok := a.fresh.Take(time.Now(), 1, patience)
	if !ok {
		return 0, grpcstatus.Errorf(codes.ResourceExhausted,
			"more than %g streams a second begin, which is all that are let in; try again later, or another Isthmus", a.limits.NewStreams.PerSecond)
	}
	a.streams[key]++
	a.total++
	return delay, nil
}

func (a *admission) leave(key string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.total--
	if a.streams[key]--; a.streams[key] <= 0 {
		delete(a.streams, key)
	}
}
