package xds

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"net"
	"strings"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/isthmus-mesh/isthmus/internal/mcp"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source"
)

// Source mirrors one server.
type Source struct {
	source.ExchangeStatus

	config Config
	env    source.Env
	pace   pace
	dial   func(context.Context, string) (net.Conn, error) // nil but in tests

	// What follows outlives a run.
	held  held          // nil while a run has it: what a panic left is not used again
	pings time.Duration // between two, while the server says nothing
	// noResume says that the server takes no notice of what it is said is held, so that
	// what is gone meanwhile would stay.
	noResume bool
	// sidecar says that the server knows no waypoints.
	sidecar bool
	// deltaEnd is how delta streams end on which nothing is listed; empty if they do not.
	deltaEnd string
}

var (
	_ source.Source     = (*Source)(nil)
	_ source.Exchanging = (*Source)(nil)
)

// Pings find a server that hangs. Some servers end connections on which there are more
// than one in five minutes.
const (
	pingEvery  = 30 * time.Second
	pingSeldom = 5*time.Minute + 10*time.Second
	pingBound  = 10 * time.Second // until the server has answered one
)

// New returns a source for a configuration that is valid.
func New(c Config, env source.Env) *Source {
	if env.Stored == nil {
		env.Stored = func() iter.Seq[model.Record] { return func(func(model.Record) bool) {} }
	}
	env.Memory.Keep()
	return &Source{config: c, env: env, pace: usual, pings: pingEvery}
}

// Run implements [source.Source]. It follows the server until the connection ends, or
// the server does not answer.
func (s *Source) Run(ctx context.Context, sink source.Sink) error {
	conn, err := s.connect()
	if err != nil {
		return err
	}
	defer conn.Close()
	h := s.held
	if s.held = nil; h == nil {
		h = held{}
	}
	delta, sotw := true, false
	for {
		r := newRun(s, sink, conn, h)
		r.deltaOnly = sotw
		err = r.follow(ctx, delta)
		switch {
		case errors.Is(err, errNoDelta):
			delta = false
		case errors.Is(err, errDeltaAnswers):
			sotw = true
		case errors.Is(err, errNoResume):
			s.noResume = true
		case errors.Is(err, errNoWaypoint):
			s.sidecar = true
		default:
			s.held = h
			return s.explain(ctx, err)
		}
	}
}

// Bounds, where the memory of the process allows them.
const (
	most       = 1 << 30   // of all that is held of a server
	mostAnswer = 256 << 20 // of one message
)

// largest is how many bytes a message may have: several copies of it are in memory at
// once while it is read, and so are those of other sources.
func (s *Source) largest() int64 { return min(s.env.Memory.Bytes(most)/4, mostAnswer) }

// window is what a server may send before it is read, but for the message that is
// waited for. Without a number, gRPC lets it grow to 16 MiB for each connection.
const window = 256 << 10

// connect prepares a connection, which is made once it is used.
func (s *Source) connect() (*grpc.ClientConn, error) {
	creds, err := s.config.TLS.Credentials()
	if err != nil {
		return nil, err
	}
	options := []grpc.DialOption{
		grpc.WithTransportCredentials(creds), grpc.WithNoProxy(), grpc.WithUserAgent("isthmus"),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(int(s.largest()))),
		grpc.WithStaticStreamWindowSize(window), grpc.WithStaticConnWindowSize(window),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: backoff.DefaultConfig, MinConnectTimeout: s.pace.answer}),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: s.pings, Timeout: min(pingBound, s.pings/2), PermitWithoutStream: true}),
	}
	if s.dial != nil {
		options = append(options, grpc.WithContextDialer(s.dial))
	}
	conn, err := grpc.NewClient("passthrough:///"+s.config.Address, options...)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", s.config.Address, err)
	}
	return conn, nil
}

// explain says what ended a run.
func (s *Source) explain(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case strings.Contains(err.Error(), "too_many_pings"):
		s.pings = pingSeldom
	}
	switch status.Code(err) {
	case codes.PermissionDenied, codes.Unauthenticated:
		return fmt.Errorf("%s: %w; such a server answers control planes alone: name a certificate of one in tls.certFile", s.config.Address, err)
	case codes.ResourceExhausted:
		return fmt.Errorf("%s: %w; a message may have %d bytes here: if it is larger, have the server send less, or give Isthmus more memory (GOMEMLIMIT)", s.config.Address, err, s.largest())
	case codes.Unimplemented:
		return fmt.Errorf("%s: %w; name a server of the aggregated discovery service (ADS)", s.config.Address, err)
	default:
		return fmt.Errorf("%s: %w", s.config.Address, err)
	}
}

// node says who asks: the generator is that of istiod for control planes. Its id has
// the four parts that istiod wants. Istiod does not push to a sidecar what changes and is
// not exported to its namespace. To a waypoint it pushes every change.
func (s *Source) node() *corev3.Node {
	name, kind, namespace := cmp.Or(s.env.Instance, "isthmus")+"-"+cmp.Or(s.env.Name, "xds"), "waypoint", namespaceOf(s.config.TLS)
	if s.sidecar {
		kind = "sidecar"
	}
	return &corev3.Node{
		Id: fmt.Sprintf("%s~127.0.0.1~%s.%[3]s~%[3]s.svc.cluster.local", kind, name, namespace), UserAgentName: "isthmus",
		Metadata: &structpb.Struct{Fields: map[string]*structpb.Value{
			"GENERATOR":     structpb.NewStringValue("api"),
			"ISTIO_VERSION": structpb.NewStringValue("65536.65536.65536"),
			// Another Isthmus says where its first state ends. Everybody else ignores it.
			mcp.MarkFirstState: structpb.NewStringValue("true"),
		}},
	}
}
