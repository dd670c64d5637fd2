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
	node  *corev3.Node // sent with the first request
	open  bool         // something was received
	// next receives a token when the received message was handled. So only one
	// message of a stream is in memory.
	next chan struct{}
}

// received is an encoded message, or the end of a stream.
type received struct {
	from *stream
	data []byte
	err  error
	at   time.Time
}

// openStream begins a stream, which lives until ctx ends.
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
	return &stream{ClientStream: s, delta: delta, node: node, next: make(chan struct{}, 1)}, nil
}

// receive hands on one message at a time: the next one is read once this one was handled.
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

// codec leaves received messages encoded: their memory is taken from a budget before
// they are decoded.
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

// answer is a response of either variant.
type answer struct {
	url, nonce, version string
	full                bool // resources that it lacks are gone
	marks, ends         bool // marked as part of a first state, and as its last part
	resources           []resource
	removed             []string
	size                int
	at                  time.Time
}

// decode decodes a received message.
func (s *stream) decode(got received) (answer, error) {
	a := answer{full: !s.delta, size: len(got.data), at: got.at}
	if s.delta {
		var m discoveryv3.DeltaDiscoveryResponse
		if err := proto.Unmarshal(got.data, &m); err != nil {
			return a, fmt.Errorf("the server sent an invalid delta response: %w", err)
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
		return a, fmt.Errorf("the server sent an invalid discovery response: %w", err)
	}
	a.url, a.nonce, a.version = m.GetTypeUrl(), m.GetNonce(), m.GetVersionInfo()
	for _, r := range m.GetResources() {
		a.resources = append(a.resources, unnamed(r))
	}
	return a, nil
}

// ask sends the first request for a type. In the delta variant, the request contains
// the held versions if the stream resumes.
func (s *stream) ask(url string, versions map[string]string) error {
	if s.delta {
		return s.send(&discoveryv3.DeltaDiscoveryRequest{
			Node: s.node, TypeUrl: url, ResourceNamesSubscribe: []string{"*"}, InitialResourceVersions: versions,
		})
	}
	return s.send(&discoveryv3.DiscoveryRequest{Node: s.node, TypeUrl: url})
}

// drop ends the subscription to a type, if the variant supports that.
func (s *stream) drop(url string) error {
	if !s.delta {
		return nil
	}
	return s.send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: url, ResourceNamesUnsubscribe: []string{"*"}})
}

// reply ACKs an answer or, with a reason, NACKs it. The version is the last ACKed
// one.
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

// send sends a request. An ended stream is no error here: the receiving goroutine reports why.
func (s *stream) send(m proto.Message) error {
	s.node = nil
	if err := s.SendMsg(m); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}
