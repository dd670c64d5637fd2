package scale

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
)

// bareSize names the variable that makes the test binary the bare server: it
// holds the bytes of the response that is sent. barePlain, if set, has it leave its
// connections to gRPC.
const (
	bareSize  = "ISTHMUS_SCALE_BARE"
	barePlain = "ISTHMUS_SCALE_BARE_PLAIN"
)

// startBare runs a bare server until the benchmark ends.
func startBare(tb testing.TB, size int, plain bool) *server {
	tb.Helper()
	self, err := os.Executable()
	if err != nil {
		tb.Fatal(err)
	}
	command := exec.Command(self)
	command.Env = append(os.Environ(), bareSize+"="+strconv.Itoa(size))
	if plain {
		command.Env = append(command.Env, barePlain+"=yes")
	}
	s := &server{command: command}
	s.start(tb)
	return s
}

// bare is a gRPC server that sends each stream the same bytes when it is asked
// to, and reads what is said to that.
type bare struct {
	response mem.BufferSlice

	mu      sync.Mutex
	streams map[chan struct{}]struct{} // each holds a token when it is to send
}

// serveBare is the process of a bare server. Beside its streams it serves
// metrics, and sends when /send is asked for.
func serveBare(size string) int {
	if err := runBare(size); err != nil {
		fmt.Fprintln(os.Stderr, "the bare server:", err)
		return 1
	}
	return 0
}

func runBare(size string) error {
	bytes, err := strconv.Atoi(size)
	if err != nil {
		return fmt.Errorf("%s: %w", bareSize, err)
	}
	var lines [2]net.Listener
	for i := range lines {
		if lines[i], err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
			return err
		}
	}
	s := &bare{response: mem.BufferSlice{mem.SliceBuffer(bareResponse(bytes))}, streams: map[chan struct{}]struct{}{}}
	g := grpc.NewServer(s.options()...)
	a := &http.Server{Handler: s.pages(), ReadHeaderTimeout: time.Second}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	var running sync.WaitGroup
	running.Go(func() { _ = g.Serve(lines[0]) })
	running.Go(func() { _ = a.Serve(lines[1]) })
	slog.New(slog.NewJSONHandler(os.Stderr, nil)).Info("serving", "xds", lines[0].Addr().String(), "admin", lines[1].Addr().String())
	<-ctx.Done()
	g.Stop()
	_ = a.Close()
	running.Wait()
	return nil
}

// options are what the program gives its connections, too: buffers, and windows
// of a fixed size, without which gRPC pings the client after each ACK to find
// out how wide they should be. That makes a server that leaves all to gRPC
// dearer by half.
func (s *bare) options() []grpc.ServerOption {
	const buffers, most = 16 << 10, 1 << 20
	own := []grpc.ServerOption{grpc.ForceServerCodecV2(bareCodec{}), grpc.UnknownServiceHandler(s.serve)}
	if os.Getenv(barePlain) != "" {
		return own
	}
	return append(own, grpc.ReadBufferSize(buffers), grpc.WriteBufferSize(buffers),
		grpc.StaticStreamWindowSize(most), grpc.StaticConnWindowSize(most))
}

// pages are what it serves over HTTP.
func (s *bare) pages() http.Handler {
	// The number of its streams has the name that the program gives it, by which
	// a fleet waits for its end.
	_ = prometheus.Register(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "isthmus_clients"}, func() float64 {
		s.mu.Lock()
		defer s.mu.Unlock()
		return float64(len(s.streams))
	}))
	pages := http.NewServeMux()
	pages.Handle("/metrics", promhttp.Handler())
	pages.HandleFunc("/readyz", func(http.ResponseWriter, *http.Request) {})
	pages.HandleFunc("/send", func(http.ResponseWriter, *http.Request) { s.send() })
	return pages
}

// send has every stream send.
func (s *bare) send() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for due := range s.streams {
		due <- struct{}{}
	}
}

// serve runs a stream: what the client asks for is answered with the response,
// as is every word to send.
func (s *bare) serve(_ any, stream grpc.ServerStream) error {
	due := make(chan struct{}, 1)
	s.mu.Lock()
	s.streams[due] = struct{}{}
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.streams, due)
	}()
	if err := stream.RecvMsg(nil); err != nil {
		return err
	}
	for {
		if err := stream.SendMsg(s.response); err != nil {
			return err
		}
		if err := stream.RecvMsg(nil); err != nil {
			return err
		}
		select {
		case <-due:
		case <-stream.Context().Done():
			return nil
		}
	}
}

// bareResponse encodes a response of one resource that is size bytes long, or a
// little more if that is too short for one.
func bareResponse(size int) []byte {
	const nonce, version = "1000", "00112233445566778899aabbccddeeff"
	tail := appendString(nil, responseVersion, version)
	tail = appendString(tail, responseTypeURL, assignments)
	tail = appendString(tail, responseNonce, nonce)
	room := max(size-len(tail), 0)
	body := make([]byte, max(room-2*(1+protowire.SizeVarint(uint64(room))), 0)) //nolint:gosec // a length is not negative
	resource := protowire.AppendBytes(protowire.AppendTag(nil, 2, protowire.BytesType), body)
	return append(protowire.AppendBytes(protowire.AppendTag(nil, responseResources, protowire.BytesType), resource), tail...)
}

// bareCodec passes on bytes and looks at none.
type bareCodec struct{}

// Name is that of the format: clients of any other codec send the same bytes.
func (bareCodec) Name() string { return "proto" }

// Marshal implements [google.golang.org/grpc/encoding.CodecV2].
func (bareCodec) Marshal(v any) (mem.BufferSlice, error) { return v.(mem.BufferSlice), nil }

// Unmarshal implements [google.golang.org/grpc/encoding.CodecV2].
func (bareCodec) Unmarshal(mem.BufferSlice, any) error { return nil }
