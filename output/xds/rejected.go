package xds

import (
	"fmt"
	"iter"
	"log/slog"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"
)

// cause is why a stream was not served, or not any longer.
type cause int

const (
	notWho             cause = iota // it is not proven to be who it says
	tooMany                         // streams
	tooMuch                         // in one request or subscription
	tooManyConnections              // of one address that have no stream; these are connections, not streams
	tooSilent                       // no first request
	untrusted                       // its certificate has ceased to hold
	panicked                        // a fault of ours
	causes
)

var causeNames = [causes]string{
	notWho: "identity", tooMany: "streams", tooMuch: "size",
	tooManyConnections: "connections", tooSilent: "silent", untrusted: "certificate", panicked: "panic",
}

// rejections count what was not served, and log it, as long as it is not too much.
type rejections struct {
	counts [causes]atomic.Uint64
	log    *slog.Logger

	mu    sync.Mutex
	pace  bucket
	quiet int // not logged since the last that was
}

func newRejections(log *slog.Logger) *rejections {
	return &rejections{log: log, pace: newBucket(Rate{1, 10})}
}

// because takes note of why a stream ends and returns it.
func (r *rejections) because(c cause, err error) error {
	r.counts[c].Add(1)
	r.mu.Lock()
	_, loud := r.pace.take(time.Now(), 0)
	quiet := r.quiet
	if r.quiet++; loud {
		r.quiet = 0
	}
	r.mu.Unlock()
	if loud {
		r.log.Warn("a stream was not served", "err", grpcstatus.Convert(err).Message(), "unlogged", quiet)
	}
	return err
}

// Rejected yields how many streams were not served, by cause.
func (s *Server) Rejected() iter.Seq2[string, uint64] {
	return func(yield func(string, uint64) bool) {
		for c, name := range causeNames {
			if !yield(name, s.rejected.counts[c].Load()) {
				return
			}
		}
	}
}

// survive makes of a panic the end of the one stream it happened in. It is to
// be deferred, in each of a stream's goroutines.
func (s *Server) survive(err *error) {
	p := recover()
	if p == nil {
		return
	}
	s.rejected.counts[panicked].Add(1)
	s.log.Error("a stream ended in a panic, the others go on; please report this", "err", fmt.Sprint(p), "stack", string(debug.Stack()))
	*err = grpcstatus.Error(codes.Internal, "a fault of this Isthmus ended the stream; its log tells more")
}
