package xds

import (
	"hash/maphash"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"

	"github.com/isthmus-mesh/isthmus/output/streams"
	"github.com/isthmus-mesh/isthmus/output/xds/node"
	"github.com/isthmus-mesh/isthmus/output/xds/wire"
	"github.com/isthmus-mesh/isthmus/push"
	"github.com/isthmus-mesh/isthmus/push/world"
	"github.com/isthmus-mesh/isthmus/secrets"
)

// Kinds names the kinds of resources by the kind of client.
type Kinds = node.Kinds

// Options are the server's settings from the program.
type Options struct {
	streams.Options
	Kinds Kinds
	// Name identifies the control plane to clients.
	Name string
	// Configuration is the served configuration; the zero value serves none.
	Configuration Offer
	// Secrets has the certificates of clients; nil serves none.
	Secrets *secrets.Keeper
	Limits  Limits
}

// Server serves one engine. Make one with [New].
type Server struct {
	*streams.Server
	engine        *push.Engine
	kinds         Kinds
	configuration Offer
	secrets       *secrets.Keeper
	limits        Limits
	controlPlane  []byte
	seed          maphash.Seed // of digests
	unredirected  atomic.Int64 // streams of sidecars with INTERCEPTION_MODE NONE
}

// New returns a server of an engine.
func New(engine *push.Engine, o Options) *Server {
	s := &Server{
		Server: streams.New(engine, o.Options, o.Limits.Limits, "ask for less on a stream, or for everything by *"),
		engine: engine, kinds: o.Kinds, configuration: o.Configuration, secrets: o.Secrets, limits: o.Limits.withDefaults(),
		controlPlane: wire.ControlPlane(o.Name), seed: maphash.MakeSeed(),
	}
	for _, offered := range services {
		if only, served := offered.only(engine); served {
			s.RegisterService(offered.desc(s.handler(offered, only, world.WholeState), s.handler(offered, only, world.Delta)), nil)
		}
	}
	return s
}

// handler serves a method of a service in a mode; only is the service's type, or [every].
func (s *Server) handler(of service, only world.Type, mode world.Mode) grpc.StreamHandler {
	if of.withdrawn != nil {
		return func(any, grpc.ServerStream) error { return s.Reject(streams.NotHere, of.withdrawn) }
	}
	return streams.Handler(func(transport *streams.Stream) error { return s.serve(transport, mode, only, of.named) })
}

// hasUnredirected reports whether a sidecar with INTERCEPTION_MODE NONE is connected.
func (s *Server) hasUnredirected() bool { return s.unredirected.Load() > 0 }

// serve runs a stream to its end.
func (s *Server) serve(transport *streams.Stream, mode world.Mode, only world.Type, named error) error {
	decoder := wire.Decoder{Mode: mode, Limits: s.limits.request(), Seed: s.seed}
	first, err := streams.First(transport, func(text []byte) (*wire.Request, error) { return decoder.Decode(text, nil) })
	if err != nil {
		return err
	}
	client, info, err := s.client(first, transport.Who, mode, only)
	if err != nil {
		return err
	}
	if s.secrets != nil && client.Certified && client.Kind == s.kinds.Envoy {
		defer transport.WhileProven(s.secrets.Hold(client.Account))()
	}
	subscriber, err := transport.Connect(info, client)
	if err != nil {
		return err
	}
	log := s.Log.With("client", info.ID)
	if info.Ignored != "" {
		log.Warn("invalid node metadata is ignored", "err", info.Ignored)
	}
	if p := client.Proxy; p.Unprivileged && (p.Interception == "NONE" || p.Role == "router") {
		log.Info("no listeners at ports below 1024: the node metadata has UNPRIVILEGED_POD")
	}
	st := &stream{
		Server: s.Server, transport: transport, subscriber: subscriber, engine: s.engine, decoder: decoder, limits: &s.limits, controlPlane: s.controlPlane,
		named: named, marks: node.MarksFirstState(first.Node), pace: s.NewPace(log),
		types: newTypes(s.Server, s.engine, log, only, &s.configuration, s.configuration.denied(transport.Who)),
		asked: map[world.Type]*asked{}, sent: serials{by: map[world.Type]uint64{}},
	}
	defer st.types.release()
	if node.Unredirected(client.Proxy) {
		s.unredirected.Add(1)
		defer s.unredirected.Add(-1)
	}
	return transport.Run(subscriber, func() error { return st.receiveAll(first) }, st.sendAll)
}

var protocols = [...]string{world.WholeState: "xds-sotw", world.Delta: "xds-delta"}

// client determines the client of a stream from its first request and its identity.
func (s *Server) client(first *wire.Request, who streams.Identity, mode world.Mode, only world.Type) (client world.Client, info push.Info, err error) {
	client, ignored := s.kinds.Client(first.Node, wire.IsConfiguration(first.TypeURL))
	client.Increments = mode == world.Delta && only == every
	if first.Node.GetId() == "" {
		return client, info, errNoNode
	}
	if cause, err := s.limits.node().Check(first.Node, client.Namespace); err != nil {
		return client, info, s.Reject(cause, err)
	}
	if client.Namespace, err = who.In(client.Namespace); err != nil {
		return client, info, s.Reject(streams.NotWho, grpcstatus.Errorf(codes.PermissionDenied,
			"the node says it is %v; correct NAMESPACE in the node's metadata, or its id", err))
	}
	client.Account, client.Certified = who.ID(), who.Certified()
	info = push.Info{ID: first.Node.GetId(), Protocol: protocols[mode], Identity: streams.Cut(node.Describe(client), streams.ShownBytes)}
	if ignored != nil {
		info.Ignored = streams.Cut(ignored.Error(), streams.ShownBytes)
	}
	return client, info, nil
}

var errNoNode = grpcstatus.Error(codes.InvalidArgument, "the first request of a stream must carry node.id; set it in the client's bootstrap")
