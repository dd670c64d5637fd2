package xds

import (
	"hash/maphash"
	"sync/atomic"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/isthmus-mesh/isthmus/internal/streams"
	"github.com/isthmus-mesh/isthmus/push"
)

// Options are the server's settings from the program.
type Options struct {
	streams.Options
	Kinds Kinds
	// Name identifies the control plane to clients.
	Name string
	// RootNamespace is the namespace of the identities that may read configuration.
	RootNamespace string
	// Readers are the clients that may read configuration. Exposed means that the listener can
	// be reached from beyond this machine.
	Readers Readers
	Exposed bool
	// Configuration names the served types of configuration, the newest version of each first.
	// Demand, if set, is called when one of them is requested.
	Configuration []string
	Demand        func()
	Limits        Limits
}

// Server serves one engine. Make one with [New].
type Server struct {
	*streams.Server
	engine       *push.Engine
	config       Options
	controlPlane []byte
	limits       Limits
	seed         maphash.Seed // of digests
	unredirected atomic.Int64 // streams of sidecars with INTERCEPTION_MODE NONE
}

// hasUnredirected reports whether a sidecar with INTERCEPTION_MODE NONE is connected.
func (s *Server) hasUnredirected() bool { return s.unredirected.Load() > 0 }

// New returns a server of an engine.
func New(engine *push.Engine, o Options) *Server {
	s := &Server{
		Server: streams.New(engine, o.Options, o.Limits.Limits, "ask for less on a stream, or for everything by *"),
		engine: engine, config: o, limits: o.Limits.withDefaults(),
		controlPlane: streams.AppendString(nil, protowire.Number(fieldControlPlaneID), o.Name),
		seed:         maphash.MakeSeed(),
	}
	s.register()
	return s
}
