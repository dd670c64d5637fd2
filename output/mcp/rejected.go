package mcp

import (
	"fmt"
	"iter"
	"log/slog"
	"runtime/debug"
	"sync/atomic"

	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"
)

// cause is why something was not served, not any longer, or not at once. The names
// are those that xDS has for the same.
type cause int

const (
	notWho       cause = iota // a stream is not proven to be of who may read configuration
	tooMany                   // streams
	tooMuch                   // in one request, or of one stream
	tooSilent                 // a stream has no first request
	stalled                   // a request was begun and did not come
	untrusted                 // a stream's certificate has ceased to hold
	panicked                  // a fault of ours
	slowRequests              // came too fast and had to wait
	slowNACKs                 // likewise
	causes
)

var causeNames = [causes]string{
	notWho: "identity", tooMany: "streams", tooMuch: "size", tooSilent: "silent", stalled: "stalled",
	untrusted: "certificate", panicked: "panic", slowRequests: "requests", slowNACKs: "refusals",
}

// rejections count what was not served, and log it.
type rejections struct {
	counts [causes]atomic.Uint64
	log    *slog.Logger // limited
}

// record takes note of why a stream ends and returns it.
func (r *rejections) record(c cause, err error) error {
	r.counts[c].Add(1)
	r.log.Warn("a stream was not served", "err", grpcstatus.Convert(err).Message())
	return err
}

// Rejected yields how many streams were not served, by cause.
func (s *Server) Rejected() iter.Seq2[string, uint64] { return s.rejected.tally(0, slowRequests) }

// Delayed yields how many requests had to wait because their stream says too much, by
// cause.
func (s *Server) Delayed() iter.Seq2[string, uint64] { return s.rejected.tally(slowRequests, causes) }

func (r *rejections) tally(from, to cause) iter.Seq2[string, uint64] {
	return func(yield func(string, uint64) bool) {
		for c := from; c < to; c++ {
			if !yield(causeNames[c], r.counts[c].Load()) {
				return
			}
		}
	}
}

// survive makes of a panic the end of the one stream it happened in. It is to be
// deferred, in each of a stream's goroutines.
func (s *Server) survive(err *error) {
	p := recover()
	if p == nil {
		return
	}
	s.rejected.counts[panicked].Add(1)
	s.log.Error("a stream ended in a panic, the others go on; please report this", "err", fmt.Sprint(p), "stack", string(debug.Stack()))
	*err = errFault
}

var (
	errFault    = grpcstatus.Error(codes.Internal, "a fault of this Isthmus ended the stream; its log tells more")
	errStopping = grpcstatus.Error(codes.Unavailable, "this Isthmus is stopping; connect to another")
)

func tooLarge(format string, args ...any) error {
	return grpcstatus.Errorf(codes.ResourceExhausted, format, args...)
}
