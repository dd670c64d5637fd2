package streams

import (
	"context"
	"slices"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

var _ grpc.ServiceRegistrar = (*Server)(nil)

// Handler returns the handler of a method that serves streams itself, for
// [Server.RegisterService].
func Handler(serve func(*Stream) error) grpc.StreamHandler {
	return func(_ any, wire grpc.ServerStream) error { return serve(wire.(admitted).stream) }
}

// admitted is an admitted stream on its way through gRPC's handlers.
type admitted struct {
	grpc.ServerStream
	stream *Stream
}

// RegisterService implements [grpc.ServiceRegistrar]. It is called before [Server.Serve]. Each
// stream of each method is admitted before it is served. gRPC's server is reached in no other
// way, so every method identifies its client. The handlers of a service without an
// implementation are made by [Handler]. A service with one is generated, such as health and
// reflection, and is bounded like the others.
func (s *Server) RegisterService(desc *grpc.ServiceDesc, serves any) {
	guarded := grpc.ServiceDesc{ServiceName: desc.ServiceName, HandlerType: desc.HandlerType, Metadata: desc.Metadata}
	guarded.Streams = slices.Clone(desc.Streams)
	for _, m := range desc.Methods {
		guarded.Streams = append(guarded.Streams, grpc.StreamDesc{StreamName: m.MethodName, Handler: single(m)})
	}
	for i, m := range guarded.Streams {
		if serves != nil {
			m.Handler = generated(serves, m.Handler)
		}
		guarded.Streams[i].Handler = s.admitting("/"+desc.ServiceName+"/"+m.StreamName, m.Handler)
	}
	s.grpc.RegisterService(&guarded, serves)
}

// GetServiceInfo returns the registered services, for reflection.
func (s *Server) GetServiceInfo() map[string]grpc.ServiceInfo { return s.grpc.GetServiceInfo() }

// single returns the handler of a method with one request and one response. gRPC's own would
// wait for the request without a limit, before anything is admitted.
func single(m grpc.MethodDesc) grpc.StreamHandler {
	return func(serves any, wire grpc.ServerStream) error {
		response, err := m.Handler(serves, wire.Context(), wire.RecvMsg, nil)
		if err != nil {
			return err
		}
		return wire.SendMsg(response)
	}
}

// generated returns the handler of a method of a generated service.
func generated(serves any, handler grpc.StreamHandler) grpc.StreamHandler {
	return Handler(func(st *Stream) error {
		return st.Serve(st.server.limits.Piece, func(ctx context.Context, to *Sender) error {
			timer := time.NewTimer(st.first)
			defer timer.Stop()
			return handler(serves, &messages{ServerStream: st.Wire.(grpc.ServerStream), ctx: ctx, of: st, to: to, late: timer.C})
		})
	})
}

// messages is an admitted stream for the handler of a generated service. It decodes requests
// within the limits of [First] and [Receive]. One goroutine uses it.
type messages struct {
	grpc.ServerStream
	ctx  context.Context //nolint:containedctx // gRPC's handlers take it from here
	of   *Stream
	to   *Sender
	late <-chan time.Time // when the first request is late; nil after it
}

// Context implements [grpc.ServerStream].
func (m *messages) Context() context.Context { return m.ctx }

// SendMsg implements [grpc.ServerStream].
func (m *messages) SendMsg(response any) error { return m.to.Send(response) }

// RecvMsg implements [grpc.ServerStream].
func (m *messages) RecvMsg(request any) error {
	_, err := next(m.of, m.late, func(text []byte) (none struct{}, err error) {
		if err := proto.Unmarshal(text, request.(proto.Message)); err != nil {
			return none, grpcstatus.Errorf(codes.InvalidArgument, "the request cannot be decoded: %v; send it as the service's description has it", err)
		}
		return none, nil
	})
	m.late = nil
	return err
}
