package xds

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	grpcstatus "google.golang.org/grpc/status"
)

// pieces is how gRPC's own stream hands out what a client sends. What gRPC makes
// of it reads a message as a whole: it lets the client send all of it at once,
// however much that is, and then waits for as long as it takes.
type pieces interface {
	ReadMessageHeader(header []byte) error
	Read(n int) (mem.BufferSlice, error)
}

// inlet receives the messages of one stream, piece by piece: a client may send a
// piece when there is room for its message, and has a time for each. It belongs to
// the one goroutine that receives.
type inlet struct {
	pieces
	server *Server
	ctx    context.Context //nolint:containedctx // it is the stream's own
	client string          // whose room is taken
	header [5]byte
	// timer goes off when a piece is not there in time. What waits for the piece goes
	// on until the stream ends.
	timer *time.Timer
}

const (
	// pieceBytes of a message are received at a time.
	pieceBytes = 1 << 20
	// small messages fit into what each stream may have under way in any case.
	small = streamWindow
)

func (s *Server) newInlet(wire grpc.ServerStream, client string) (*inlet, error) {
	from, ok := grpc.ServerTransportStreamFromContext(wire.Context()).(pieces)
	if !ok {
		return nil, errWholeMessages
	}
	return &inlet{pieces: from, server: s, ctx: wire.Context(), client: client}, nil
}

// errWholeMessages is what every stream would end with if another release of gRPC
// did this otherwise.
var errWholeMessages = grpcstatus.Error(codes.Internal, "this build has a gRPC that hands out messages as a whole; please report this")

// onExpiry says what happens when a piece of the messages to come is late.
func (in *inlet) onExpiry(expired func(error)) {
	late := grpcstatus.Errorf(codes.DeadlineExceeded,
		"a request was begun and did not come: each MiB of it has to be there within %s", in.server.limits.Piece)
	in.timer = time.AfterFunc(time.Hour, func() { expired(in.server.rejected.record(stalled, late)) })
	in.timer.Stop()
}

// next returns the next message of a stream. What it took of the client's room is
// given back by release.
func (in *inlet) next() (text mem.BufferSlice, release func(), err error) {
	if err := in.ReadMessageHeader(in.header[:]); err != nil {
		return nil, nil, endOfMessage(err)
	}
	length := int(binary.BigEndian.Uint32(in.header[1:]))
	if err := in.check(length); err != nil {
		return nil, nil, err
	}
	release = func() {}
	if length > small {
		if release, err = in.server.receiving.acquire(in.ctx, in.client, length, in.server.limits.Piece); err != nil {
			return nil, nil, in.server.rejected.record(tooMuch, err)
		}
	}
	text = make(mem.BufferSlice, 0, 1)
	for left := length; left > 0; {
		piece := min(left, pieceBytes)
		in.timer.Reset(in.server.limits.Piece)
		next, err := in.Read(piece)
		in.timer.Stop()
		if err != nil {
			text.Free()
			release()
			return nil, nil, endOfMessage(err)
		}
		text = append(text, next...)
		left -= piece
	}
	return text, release, nil
}

// check rejects a message for what its header says.
func (in *inlet) check(length int) error {
	if most := in.server.limits.Message; length > most {
		return in.server.rejected.record(tooMuch, tooLarge("a request of more than %d bytes, which is all one may have; ask for less on a stream, or for everything by *", most))
	}
	if in.header[0] != 0 {
		return grpcstatus.Error(codes.Unimplemented, "compressed requests are not taken; send them as they are")
	}
	return nil
}

// endOfMessage is the status of a stream that ended where a message did, or within one.
func endOfMessage(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return grpcstatus.Error(codes.InvalidArgument, "the stream ended within a request")
	}
	return err
}
