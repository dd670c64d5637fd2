package xds

import (
	"errors"
	"io"

	"google.golang.org/grpc/status"
)

// givesUpDelta reports whether the state of the world is asked for after a stream that
// has ended: a delta stream on which nothing was listed, and that has ended as the one
// before it did. A server may have the delta variant and fail in it, such as Nacos 3,
// which answers by an exception.
//
// How the last one has ended is remembered until a delta stream is listed, so that a
// new connection costs such a server one delta stream. Each connection begins with one.
func (r *run) givesUpDelta(got received) bool {
	if !got.from.delta {
		return false
	}
	before := r.deltaEnd
	if r.deltaEnd = endOf(got.err); r.listed {
		r.deltaEnd = ""
	}
	return r.deltaEnd != "" && r.deltaEnd == before
}

// endOf tells ends of streams apart. Their texts may have times and numbers in them.
func endOf(err error) string {
	if errors.Is(err, io.EOF) {
		return "end of stream"
	}
	return status.Code(err).String()
}
