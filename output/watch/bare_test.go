package watch_test

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	api "github.com/isthmus-mesh/isthmus/api/isthmus/resource/v1alpha1"
)

// bareServer is a gRPC server that sends one encoded message to each stream at each call of send,
// and does nothing else.
type bareServer struct {
	address string

	mu      sync.Mutex // guards the rest
	message []byte
	streams map[chan struct{}]struct{}
}

func newBareServer(b *testing.B, message []byte) *bareServer {
	b.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	s := &bareServer{address: listener.Addr().String(), message: message, streams: map[chan struct{}]struct{}{}}
	server := grpc.NewServer(grpc.ForceServerCodecV2(rawCodec{}), grpc.UnknownServiceHandler(s.serve), grpc.MaxConcurrentStreams(1_000))
	var running sync.WaitGroup
	running.Go(func() { _ = server.Serve(listener) })
	b.Cleanup(func() {
		server.Stop()
		running.Wait()
	})
	return s
}

// send has each stream send.
func (s *bareServer) send() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for due := range s.streams {
		due <- struct{}{}
	}
}

// serve sends a first message, and then one for each call of send.
func (s *bareServer) serve(_ any, stream grpc.ServerStream) error {
	due := make(chan struct{}, 1)
	s.mu.Lock()
	s.streams[due] = struct{}{}
	s.mu.Unlock()
	var request rawMessage
	if err := stream.RecvMsg(&request); err != nil {
		return err
	}
	for {
		if err := stream.SendMsg(&rawMessage{s.message}); err != nil {
			return err
		}
		select {
		case <-due:
		case <-stream.Context().Done():
			return nil
		}
	}
}

// rawMessage is a message as it is on the wire.
type rawMessage struct{ text []byte }

// fieldAt is the field of a WatchListResponse that ends a snapshot or a commit.
const fieldAt = 2

// whole reports whether a message ends a snapshot or a commit.
func (m *rawMessage) whole() bool {
	for text := m.text; len(text) > 0; {
		field, kind, n := protowire.ConsumeTag(text)
		if n < 0 || field == fieldAt {
			return true
		}
		text = text[n:]
		text = text[max(0, protowire.ConsumeFieldValue(field, kind, text)):]
	}
	return false
}

// rawCodec reads and writes raw messages. It keeps the buffer of the message that it reads into.
type rawCodec struct{}

// Name implements [google.golang.org/grpc/encoding.CodecV2].
func (rawCodec) Name() string { return "proto" }

// Marshal implements [google.golang.org/grpc/encoding.CodecV2].
func (rawCodec) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(v.(*rawMessage).text)}, nil
}

// Unmarshal implements [google.golang.org/grpc/encoding.CodecV2].
func (rawCodec) Unmarshal(data mem.BufferSlice, v any) error {
	m := v.(*rawMessage)
	if cap(m.text) < data.Len() {
		m.text = make([]byte, data.Len())
	}
	m.text = m.text[:data.Len()]
	data.CopyTo(m.text)
	return nil
}

// crowd is readers that count messages and bytes, and look at nothing else.
type crowd struct {
	*testing.B
	whole   func(*rawMessage) bool // counts as an arrival
	all     chan struct{}          // has a token when all readers have one more arrival
	size    int64
	arrived atomic.Int64
	bytes   atomic.Int64
	last    atomic.Pointer[[]byte] // the newest arrival of the first reader
}

// read has so many readers read from a server, until the benchmark ends or cancel is called.
// They share some connections evenly.
func read(b *testing.B, address string, readers, connections int, filter *api.Filter, whole func(*rawMessage) bool) (c *crowd, cancel func()) {
	b.Helper()
	request, err := proto.Marshal(&api.WatchListRequest{Filter: filter})
	if err != nil {
		b.Fatal(err)
	}
	c = &crowd{B: b, whole: whole, all: make(chan struct{}, 1), size: int64(readers)}
	ctx, stop := context.WithCancel(context.Background())
	var conns []*grpc.ClientConn
	for range connections {
		conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithDefaultCallOptions(grpc.ForceCodecV2(rawCodec{})), grpc.WithStaticStreamWindowSize(1<<20), grpc.WithStaticConnWindowSize(4<<20))
		if err != nil {
			b.Fatal(err)
		}
		conns = append(conns, conn)
	}
	var running sync.WaitGroup
	for n := range readers {
		running.Go(func() { c.follow(ctx, conns[n%connections], request, n == 0) })
	}
	cancel = sync.OnceFunc(func() {
		stop()
		for _, conn := range conns {
			_ = conn.Close()
		}
		running.Wait()
	})
	b.Cleanup(cancel)
	return c, cancel
}

// follow is one reader.
func (c *crowd) follow(ctx context.Context, conn *grpc.ClientConn, request []byte, first bool) {
	stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, api.ResourceService_WatchList_FullMethodName)
	if err == nil {
		err = stream.SendMsg(&rawMessage{request})
	}
	if err == nil {
		err = stream.CloseSend()
	}
	for m := new(rawMessage); err == nil; {
		if err = stream.RecvMsg(m); err == nil {
			c.take(m, first)
		}
	}
	if ctx.Err() == nil {
		c.Errorf("a reader ended: %v", err)
	}
}

func (c *crowd) take(m *rawMessage, first bool) {
	c.bytes.Add(int64(len(m.text)))
	if !c.whole(m) {
		return
	}
	if first {
		text := append([]byte(nil), m.text...)
		c.last.Store(&text)
	}
	if c.arrived.Add(1)%c.size == 0 {
		c.all <- struct{}{}
	}
}
