package streams

import (
	"fmt"
	"iter"
	"log/slog"
	"runtime/debug"
	"sync/atomic"

	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"
)

// Cause is why something was not served, not any longer, or not at once.
type Cause int

// The causes. Those from slowRequests on are of what has to wait.
const (
	NotWho             Cause = iota // a stream is not proven to be who it says, or who it has to be
	tooMany                         // streams
	TooMuch                         // in one request or subscription
	tooSilent                       // a stream has no first request
	stalled                         // a request was begun and did not come
	NotHere                         // a stream asks a service for what that does not serve
	untrusted                       // a stream's certificate has ceased to hold
	tooManyConnections              // of one address, without a stream
	tooManyPing                     // on a connection
	badConnection                   // its handshake failed, or no stream came of it
	panicked                        // a fault of ours
	slowRequests                    // came too fast and had to wait
	slowNACKs                       // likewise
	causes
)

var causeNames = [causes]string{
	NotWho: "identity", tooMany: "streams", TooMuch: "size", tooSilent: "silent", stalled: "stalled", NotHere: "service", untrusted: "certificate",
	tooManyConnections: "connections", tooManyPing: "pings", badConnection: "handshake", panicked: "panic",
	slowRequests: "requests", slowNACKs: "refusals",
}

// rejections count what was not served, and log it.
type rejections struct {
	counts [causes]atomic.Uint64
	log    *slog.Logger // limited
}

// Reject takes note of why a stream ends and returns it.
func (r *rejections) Reject(c Cause, err error) error {
	r.counts[c].Add(1)
	r.log.Warn("a stream was not served", "err", grpcstatus.Convert(err).Message())
	return err
}

// Rejected yields how many streams and connections were not served, by cause.
func (r *rejections) Rejected() iter.Seq2[string, uint64] { return r.tally(0, slowRequests) }

// Delayed yields how many requests had to wait because their stream says too
// much, by cause.
func (r *rejections) Delayed() iter.Seq2[string, uint64] { return r.tally(slowRequests, causes) }

func (r *rejections) tally(from, to Cause) iter.Seq2[string, uint64] {
	return func(yield func(string, uint64) bool) {
		for c := from; c < to; c++ {
			if !yield(causeNames[c], r.counts[c].Load()) {
				return
			}
		}
	}
}

// Survive makes of a panic the end of the one stream it happened in. It is to
// be deferred, in each of a stream's goroutines.
func (r *rejections) Survive(err *error) {
	p := recover()
	if p == nil {
		return
	}
	r.counts[panicked].Add(1)
	r.log.Error("a stream ended in a panic, the others go on; please report this", "err", fmt.Sprint(p), "stack", string(debug.Stack()))
	*err = errFault
}

var (
	errFault    = grpcstatus.Error(codes.Internal, "a fault of this Isthmus ended the stream; its log tells more")
	errStopping = grpcstatus.Error(codes.Unavailable, "this Isthmus is stopping; connect to another")
)

// TooLarge is the status of a stream that says more than it may.
func TooLarge(format string, args ...any) error {
	return grpcstatus.Errorf(codes.ResourceExhausted, format, args...)
}
