package mcp

import (
	"google.golang.org/grpc"

	"github.com/isthmus-mesh/isthmus/internal/mcp"
	"github.com/isthmus-mesh/isthmus/output/streams"
	"github.com/isthmus-mesh/isthmus/push"
)

// Options are the server's settings from the program. A sink is dialled only once the
// engine is primed, however long that takes.
type Options struct {
	streams.Options
	// RootNamespace is the namespace of control planes, which all sinks are.
	RootNamespace string
	Limits        Limits
}

// Server serves one engine, to sinks that dial it and to sinks that it dials. Make
// one with [New].
type Server struct {
	*streams.Server
	engine *push.Engine
	config Options
	limits Limits
}

// kind is the kind of every client: all sinks get the same resources.
const kind = "mcp"

// New returns a server of an engine.
func New(engine *push.Engine, o Options) *Server {
	o.Limits = o.Limits.withDefaults()
	s := &Server{
		Server: streams.New(engine, o.Options, o.Limits.Limits, "ask without initial_resource_versions"),
		engine: engine, config: o, limits: o.Limits,
	}
	s.RegisterService(&grpc.ServiceDesc{ServiceName: mcp.ResourceSource_ServiceDesc.ServiceName, Streams: []grpc.StreamDesc{{
		StreamName: mcp.ResourceSource_ServiceDesc.Streams[0].StreamName, ServerStreams: true, ClientStreams: true,
		Handler: streams.Handler(s.serve),
	}}}, nil)
	return s
}
