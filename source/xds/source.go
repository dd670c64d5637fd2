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
	dial   func(context.Context, string) (net.Conn, error) // nil but in tests

	// The fields below outlive a run.
	held     *held         // nil during a run, so that state after a panic is not reused
	pings    time.Duration // interval while the server is silent
	behavior behavior
}

var (
	_ source.Source     = (*Source)(nil)
	_ source.Exchanging = (*Source)(nil)
)

// Pings detect a server that hangs. Some servers end connections with more than one
// ping in five minutes.
const (
	pingEvery  = 30 * time.Second
	pingSeldom = 5*time.Minute + 10*time.Second
	pingBound  = 10 * time.Second // until the server has answered a ping
)

// New returns a source for a configuration that is valid.
func New(c Config, env source.Env) *Source {
	if env.Stored == nil {
		env.Stored = func() iter.Seq[model.Record] { return func(func(model.Record) bool) {} }
	}
	env.Memory.Keep()
	return &Source{config: c, env: env, behavior: behavior{pace: usual}, pings: pingEvery}
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
		h = newHeld()
	}
	delta, sotw := true, false
	for {
		r := &run{
			ExchangeStatus: &s.ExchangeStatus, behavior: &s.behavior, state: &state{kinds: s.config.kinds(), held: h},
			report: report{h, s.env.Self}, env: s.env, node: s.node(), sink: sink, conn: conn,
			received: make(chan received), deltaOnly: sotw,
		}
		err = r.follow(ctx, delta)
		switch {
		case errors.Is(err, errNoDelta):
			delta = false
		case errors.Is(err, errDeltaAnswers):
			sotw = true
		case errors.Is(err, errNoResume):
			s.behavior.noResume = true
		case errors.Is(err, errNoWaypoint):
			s.behavior.sidecar = true
		default:
			s.held = h
			return s.explain(ctx, err)
		}
	}
}

// Upper bounds; the memory of the process may set lower ones.
const (
	most       = 1 << 30   // of all held resources of a server
	mostAnswer = 256 << 20 // of one message
)

// largest returns the maximum bytes of a message. Several copies of a message are in
// memory while it is read, beside messages of other sources.
func (s *Source) largest() int64 { return min(s.env.Memory.Bytes(most)/4, mostAnswer) }

// window bounds the bytes that a server may send ahead of reading, apart from the message
// being read. By default, gRPC lets the window grow to 16 MiB for each connection.
const window = 256 << 10

// connect prepares a connection, which is established on first use.
func (s *Source) connect() (*grpc.ClientConn, error) {
	creds, err := s.config.TLS.Credentials()
	if err != nil {
		return nil, err
	}
	options := []grpc.DialOption{
		grpc.WithTransportCredentials(creds), grpc.WithNoProxy(), grpc.WithUserAgent("isthmus"),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(int(s.largest()))),
		grpc.WithStaticStreamWindowSize(window), grpc.WithStaticConnWindowSize(window),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: backoff.DefaultConfig, MinConnectTimeout: s.behavior.pace.answer}),
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

// explain returns why a run ended, with advice.
func (s *Source) explain(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case strings.Contains(err.Error(), "too_many_pings"):
		s.pings = pingSeldom
	}
	switch status.Code(err) {
	case codes.PermissionDenied, codes.Unauthenticated:
		return fmt.Errorf("%s: %w; the server serves only control planes: set tls.certFile to the certificate of a control plane", s.config.Address, err)
	case codes.ResourceExhausted:
		return fmt.Errorf("%s: %w; a message may have %d bytes here: if it is larger, have the server send less, or give Isthmus more memory (GOMEMLIMIT)", s.config.Address, err, s.largest())
	case codes.Unimplemented:
		return fmt.Errorf("%s: %w; name a server of the aggregated discovery service (ADS)", s.config.Address, err)
	default:
		return fmt.Errorf("%s: %w", s.config.Address, err)
	}
}

// node identifies the client. The generator is istiod's for control planes, and the id
// has the four parts that istiod requires. To a sidecar, istiod does not push changes of
// services that are not exported to its namespace. To a waypoint it pushes every change.
func (s *Source) node() *corev3.Node {
	name, kind, namespace := cmp.Or(s.env.Instance, "isthmus")+"-"+cmp.Or(s.env.Name, "xds"), "waypoint", namespaceOf(s.config.TLS)
	if s.behavior.sidecar {
		kind = "sidecar"
	}
	return &corev3.Node{
		Id: fmt.Sprintf("%s~127.0.0.1~%s.%[3]s~%[3]s.svc.cluster.local", kind, name, namespace), UserAgentName: "isthmus",
		Metadata: &structpb.Struct{Fields: map[string]*structpb.Value{
			"GENERATOR":     structpb.NewStringValue("api"),
			"ISTIO_VERSION": structpb.NewStringValue("65536.65536.65536"),
			// Another Isthmus marks the end of its first state. Other servers ignore the field.
			mcp.MarkFirstState: structpb.NewStringValue("true"),
		}},
	}
}
