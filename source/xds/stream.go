package xds

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/proto" // the codec of requests
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"

	"github.com/isthmus-mesh/isthmus/internal/mcp"
)

const (
	deltaMethod = discoveryv3.AggregatedDiscoveryService_DeltaAggregatedResources_FullMethodName
	sotwMethod  = discoveryv3.AggregatedDiscoveryService_StreamAggregatedResources_FullMethodName
)

// stream is a stream of one of the two variants.
type stream struct {
	grpc.ClientStream
	delta bool
	node  *corev3.Node // that the first request has
	types map[string]*asked
	began time.Time
	open  bool // something was received
	// slowest is the longest that an answer of the first state took, from its request or
	// from the ACK of the one before.
	slowest time.Duration
	// next has a token when what was received is used, so that there is one message
	// of a stream in memory.
	next chan struct{}
}

// received is a message as it came, or how a stream ended.
type received struct {
	from *stream
	data []byte
	err  error
	at   time.Time
}

// openStream begins a stream, and hands on what it receives until ctx ends.
func openStream(ctx context.Context, conn grpc.ClientConnInterface, delta bool, node *corev3.Node) (*stream, error) {
	method := sotwMethod
	if delta {
		method = deltaMethod
	}
	desc := &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}
	s, err := conn.NewStream(ctx, desc, method, grpc.ForceCodecV2(codec{encoding.GetCodecV2("proto")}))
	if err != nil {
		return nil, err
	}
	return &stream{ClientStream: s, delta: delta, node: node, types: map[string]*asked{}, began: time.Now(), next: make(chan struct{}, 1)}, nil
}

// receive hands on one message at a time: the next one is read once that is used.
func (s *stream) receive(ctx context.Context, out chan<- received) {
	for {
		var data []byte
		err := s.RecvMsg(&data)
		select {
		case out <- received{s, data, err, time.Now()}:
		case <-ctx.Done():
			return
		}
		if err != nil {
			return
		}
		select {
		case <-s.next:
		case <-ctx.Done():
			return
		}
	}
}

// codec leaves messages that are received as they are: what they may cost is taken of
// a budget before they are decoded.
type codec struct{ encoding.CodecV2 }

// Unmarshal implements [encoding.CodecV2].
func (codec) Unmarshal(data mem.BufferSlice, v any) error {
	into, ok := v.(*[]byte)
	if !ok {
		return fmt.Errorf("%T is no message", v)
	}
	*into = data.Materialize()
	return nil
}

// answer is what either variant says.
type answer struct {
	url, nonce, version string
	full                bool // what it lacks is gone
	marks, ends         bool // it is marked as of a first state, and as the last of it
	resources           []resource
	removed             []string
	size                int
	at                  time.Time
}

// decode reads a message that was received.
func (s *stream) decode(got received) (answer, error) {
	a := answer{full: !s.delta, size: len(got.data), at: got.at}
	if s.delta {
		var m discoveryv3.DeltaDiscoveryResponse
		if err := proto.Unmarshal(got.data, &m); err != nil {
			return a, fmt.Errorf("the server sends what is no delta response: %w", err)
		}
		a.url, a.nonce, a.version, a.removed = m.GetTypeUrl(), m.GetNonce(), m.GetSystemVersionInfo(), m.GetRemovedResources()
		a.ends = strings.HasSuffix(a.version, mcp.FirstStateComplete)
		a.marks = a.ends || strings.HasSuffix(a.version, mcp.FirstStatePartial)
		for _, r := range m.GetResources() {
			a.resources = append(a.resources, named(r.GetName(), r.GetVersion(), r.GetResource()))
		}
		return a, nil
	}
	var m discoveryv3.DiscoveryResponse
	if err := proto.Unmarshal(got.data, &m); err != nil {
		return a, fmt.Errorf("the server sends what is no discovery response: %w", err)
	}
	a.url, a.nonce, a.version = m.GetTypeUrl(), m.GetNonce(), m.GetVersionInfo()
	for _, r := range m.GetResources() {
		a.resources = append(a.resources, unnamed(r))
	}
	return a, nil
}

// ask sends the first request for a type. In the delta variant it has the versions of
// what is held, if it resumes.
func (s *stream) ask(url string, versions map[string]string) error {
	if s.delta {
		return s.send(&discoveryv3.DeltaDiscoveryRequest{
			Node: s.node, TypeUrl: url, ResourceNamesSubscribe: []string{"*"}, InitialResourceVersions: versions,
		})
	}
	return s.send(&discoveryv3.DiscoveryRequest{Node: s.node, TypeUrl: url})
}

// drop ends the subscription to a type, where the variant has a way to.
func (s *stream) drop(url string) error {
	if !s.delta {
		return nil
	}
	return s.send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: url, ResourceNamesUnsubscribe: []string{"*"}})
}

// reply ACKs an answer or, with a reason, NACKs it. version is that of the last
// answer that was ACKed.
func (s *stream) reply(a answer, version, reason string) error {
	var detail *status.Status
	if reason != "" {
		detail = &status.Status{Code: int32(codes.InvalidArgument), Message: reason}
	}
	if s.delta {
		return s.send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: a.url, ResponseNonce: a.nonce, ErrorDetail: detail})
	}
	return s.send(&discoveryv3.DiscoveryRequest{TypeUrl: a.url, ResponseNonce: a.nonce, VersionInfo: version, ErrorDetail: detail})
}

// send sends a request. That a stream has ended is for whoever receives to say why.
func (s *stream) send(m proto.Message) error {
	s.node = nil
	if err := s.SendMsg(m); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}
