package xds

import (
	"context"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"

	"github.com/isthmus-mesh/isthmus/internal/wait"
)

// admission decides which streams begin.
type admission struct {
	mu       sync.Mutex
	arrivals bucket
	streams  map[string]int // by [identity.key]
}

func newAdmission(l Limits) *admission {
	return &admission{arrivals: newBucket(l.NewStreams), streams: map[string]int{}}
}

// admit lets a stream begin, after a while if there is a rush. Who is let in
// calls leave at the end.
func (s *Server) admit(ctx context.Context, who identity) (leave func(), err error) {
	key, most := who.key(), s.limits.StreamsPerClient
	delay, full, ok := s.admission.enter(key, most, s.config.PrimedWithin)
	if full {
		return nil, s.rejected.record(tooMany, grpcstatus.Errorf(codes.ResourceExhausted,
			"%s has %d streams already, which is all one client may have; end some, or give its parts identities of their own", key, most))
	}
	if !ok {
		return nil, s.rejected.record(tooMany, grpcstatus.Errorf(codes.ResourceExhausted,
			"more than %g streams a second begin, which is all that are let in; try again later, or another Isthmus", s.limits.NewStreams.PerSecond))
	}
	wait.Sleep(ctx, delay)
	return func() { s.admission.leave(key) }, nil
}

func (a *admission) enter(key string, most int, patience time.Duration) (wait time.Duration, full, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if key != "" && a.streams[key] >= most {
		return 0, true, false
	}
	if wait, ok = a.arrivals.take(time.Now(), patience); ok && key != "" {
		a.streams[key]++
	}
	return wait, false, ok
}

func (a *admission) leave(key string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.streams[key]--; a.streams[key] <= 0 {
		delete(a.streams, key)
	}
}
