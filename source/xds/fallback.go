package xds

import (
	"errors"
	"io"

	"google.golang.org/grpc/status"
)

// givesUpDelta reports whether the state-of-the-world variant is next after the end of a
// stream. That is so if a delta stream listed nothing and ended like the one before. A
// server may have the delta variant and fail in it, such as Nacos 3, which answers by an
// exception.
//
// The end of the last stream is remembered until a delta stream is listed. So a new
// connection costs such a server one delta stream. Each connection begins with one.
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

// endOf classifies the end of a stream. Error texts may contain times and numbers.
func endOf(err error) string {
	if errors.Is(err, io.EOF) {
		return "end of stream"
	}
	return status.Code(err).String()
}
