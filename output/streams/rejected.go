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

// Cause is why a stream, connection or request was rejected, ended or delayed.
type Cause int

// The causes. From slowRequests on they are of delayed requests.
const (
	NotWho             Cause = iota // the peer's identity is missing, not proven or another than required
	tooMany                         // streams
	unready                         // a required source has not been listed
	TooMuch                         // in one request or subscription
	tooSilent                       // a stream has no first request
	stalled                         // a request was begun and not completed
	unread                          // a message was not taken in time
	NotHere                         // a stream asks a service for content that it does not serve
	untrusted                       // a stream's certificate or token holds no more
	tooManyConnections              // of one address, without a stream
	tooManyPing                     // on a connection
	badConnection                   // its handshake failed, or it had no stream
	panicked                        // an internal fault
	slowRequests                    // came too fast and had to wait
	slowNACKs                       // likewise
	causes
)

var causeNames = [causes]string{
	NotWho: "identity", tooMany: "streams", unready: "unready", TooMuch: "size", tooSilent: "silent", stalled: "stalled", unread: "unread", NotHere: "service", untrusted: "certificate",
	tooManyConnections: "connections", tooManyPing: "pings", badConnection: "handshake", panicked: "panic",
	slowRequests: "requests", slowNACKs: "refusals",
}

// rejections count and log rejected streams and requests.
type rejections struct {
	counts  [causes]atomic.Uint64
	waiting atomic.Int64 // streams that wait for the first complete listing
	log     *slog.Logger // limited
}

// Reject counts and logs the reason why a stream ends, and returns it.
func (r *rejections) Reject(c Cause, err error) error {
	r.counts[c].Add(1)
	r.log.Warn("stream rejected", "err", grpcstatus.Convert(err).Message())
	return err
}

// Rejected yields the number of rejected streams and connections, by cause.
func (r *rejections) Rejected() iter.Seq2[string, uint64] { return r.tally(0, slowRequests) }

// Delayed yields the number of requests that had to wait because of their stream's rate, by
// cause.
func (r *rejections) Delayed() iter.Seq2[string, uint64] { return r.tally(slowRequests, causes) }

// Waiting returns the number of streams that wait for the first complete listing.
func (r *rejections) Waiting() int { return int(r.waiting.Load()) }

func (r *rejections) tally(from, to Cause) iter.Seq2[string, uint64] {
	return func(yield func(string, uint64) bool) {
		for c := from; c < to; c++ {
			if !yield(causeNames[c], r.counts[c].Load()) {
				return
			}
		}
	}
}

// Survive turns a panic into the end of its stream. It is to be deferred in each of a
// stream's goroutines.
func (r *rejections) Survive(err *error) {
	p := recover()
	if p == nil {
		return
	}
	r.counts[panicked].Add(1)
	r.log.Error("a stream ended because of a panic; other streams continue; please report this", "err", fmt.Sprint(p), "stack", string(debug.Stack()))
	*err = errFault
}

var (
	errFault    = grpcstatus.Error(codes.Internal, "a fault of this Isthmus ended the stream; its log tells more")
	errStopping = grpcstatus.Error(codes.Unavailable, "this Isthmus is stopping; connect to another")
)

// TooLarge returns the status of a stream that exceeds a limit.
func TooLarge(format string, args ...any) error {
	return grpcstatus.Errorf(codes.ResourceExhausted, format, args...)
}
