// Package intake receives the messages of streams. A client's messages are bounded in bytes
// and in time before they are processed.
package intake

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

// pieces is the interface of gRPC's stream for reading bytes. gRPC's own reader reads a
// message as a whole. It lets the client send all of it at once, however large, and waits
// for it without a limit.
type pieces interface {
	ReadMessageHeader(header []byte) error
	Read(n int) (mem.BufferSlice, error)
}

// Limits bound the messages of a client.
type Limits struct {
	Message int           // bytes of a message
	Piece   time.Duration // for each MiB of it, from its first byte on
	Room    *Room
	// TooMuch and Stalled record why a stream ends, and return it.
	TooMuch, Stalled func(error) error
	// Advice is the alternative to sending a larger message.
	Advice string
}

// Inlet receives the messages of one stream, piece by piece. A client may send a piece when
// there is room for its message, and has a time for each. It belongs to the one goroutine
// that receives.
type Inlet struct {
	pieces
	limits *Limits
	ctx    context.Context //nolint:containedctx // it is the stream's own
	client string          // the client that the room is charged to
	header [5]byte
	// timer fires when a piece is late. The read of the piece continues until the stream ends.
	timer *time.Timer
}

// Window is the unread bytes that each stream may have in any case. It is the minimum of
// gRPC, and the value for a server's option StaticStreamWindowSize.
const Window = 64 << 10

const (
	// pieceBytes of a message are received at a time.
	pieceBytes = 1 << 20
	// small messages fit into the window of each stream.
	small = Window
)

// New returns the inlet of a stream; client is the owner of its room.
func New(wire grpc.ServerStream, client string, limits *Limits) (*Inlet, error) {
	from, ok := grpc.ServerTransportStreamFromContext(wire.Context()).(pieces)
	if !ok {
		return nil, errWholeMessages
	}
	return &Inlet{pieces: from, limits: limits, ctx: wire.Context(), client: client}, nil
}

// errWholeMessages ends every stream if another release of gRPC lacks this interface.
var errWholeMessages = grpcstatus.Error(codes.Internal, "this build has a gRPC that hands out messages as a whole; please report this")

// OnExpiry sets the function that is called when a piece of the next messages is late.
func (in *Inlet) OnExpiry(expired func(error)) {
	late := grpcstatus.Errorf(codes.DeadlineExceeded,
		"a request was begun and did not come: each MiB of it has to be there within %s", in.limits.Piece)
	in.timer = time.AfterFunc(time.Hour, func() { expired(in.limits.Stalled(late)) })
	in.timer.Stop()
}

// Next returns the next message of a stream. release returns its room.
func (in *Inlet) Next() (text mem.BufferSlice, release func(), err error) {
	if err := in.ReadMessageHeader(in.header[:]); err != nil {
		return nil, nil, endOfMessage(err)
	}
	length := int(binary.BigEndian.Uint32(in.header[1:]))
	if err := in.check(length); err != nil {
		return nil, nil, err
	}
	release = func() {}
	if length > small {
		if release, err = in.limits.Room.acquire(in.ctx, in.client, length, in.limits.Piece); err != nil {
			if ended := in.ctx.Err(); ended != nil { // the client left while it waited, and was not rejected
				return nil, nil, grpcstatus.FromContextError(ended).Err()
			}
			return nil, nil, in.limits.TooMuch(err)
		}
	}
	text = make(mem.BufferSlice, 0, 1)
	for left := length; left > 0; {
		piece := min(left, pieceBytes)
		in.timer.Reset(in.limits.Piece)
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

// check rejects a message by its header.
func (in *Inlet) check(length int) error {
	if most := in.limits.Message; length > most {
		return in.limits.TooMuch(tooLarge("a request of more than %d bytes, which is all one may have; %s", most, in.limits.Advice))
	}
	if in.header[0] != 0 {
		return grpcstatus.Error(codes.Unimplemented, "compressed requests are not taken; send them as they are")
	}
	return nil
}

// endOfMessage returns the status of a stream that ended after or within a message.
func endOfMessage(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return grpcstatus.Error(codes.InvalidArgument, "the stream ended within a request")
	}
	return err
}

func tooLarge(format string, args ...any) error {
	return grpcstatus.Errorf(codes.ResourceExhausted, format, args...)
}
