package watch

import (
	"context"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/reflection"
	grpcstatus "google.golang.org/grpc/status"

	resourcev1alpha1 "github.com/isthmus-mesh/isthmus/api/isthmus/resource/v1alpha1"
	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output"
	"github.com/isthmus-mesh/isthmus/output/streams"
	"github.com/isthmus-mesh/isthmus/store"
)

// Options are the server's settings from the program.
type Options struct {
	streams.Options
	// Merged bounds the history of the merged services; zero takes the store's default.
	Merged store.Config
	Limits Limits
}

// Limits bound the cost of a reader. Zero fields take their defaults.
type Limits struct {
	streams.Limits
	// Taken is how long a reader may take for one message; default 30 s.
	Taken time.Duration
	// MessageBytes is the size from which a message ends; default 64 KiB. A single record may be
	// larger.
	MessageBytes int
	// Snapshots is the number of readers in their snapshot at a time; default 64. Others wait. A
	// stalled reader in its snapshot holds some hundred KiB; a later one holds next to nothing.
	Snapshots int
}

func (l Limits) withDefaults() Limits {
	if l.Taken == 0 {
		l.Taken = 30 * time.Second
	}
	if l.MessageBytes == 0 {
		l.MessageBytes = 64 << 10
	}
	if l.Snapshots == 0 {
		l.Snapshots = 64
	}
	if l.Message == 0 {
		l.Message = 64 << 10 // a request names one filter
	}
	return l
}

// Server serves the records of a store. Make one with [New].
type Server struct {
	*streams.Server
	options Options
	limits  Limits
	records output.Records
	merged  *merged
	known   *knowledge
	encoder *encoder
	health  *health.Server

	snapshots chan struct{} // a token for each reader in its snapshot

	readers, resets atomic.Int64
}

// New returns a server. It reads the records and the states of the environment.
func New(env output.Env, o Options) *Server {
	o.Limits = o.Limits.withDefaults()
	s := &Server{
		Server: streams.New(nil, o.Options, o.Limits.Limits, "give a shorter filter"), options: o, limits: o.Limits,
		records: env.Records, known: newKnowledge(env), encoder: newEncoder(), health: health.NewServer(),
		snapshots: make(chan struct{}, o.Limits.Snapshots),
	}
	s.merged = newMerged(o.Merged, s.Log)
	s.register()
	return s
}

// register registers the services.
func (s *Server) register() {
	desc := resourcev1alpha1.ResourceService_ServiceDesc
	methods := []grpc.StreamDesc{
		{StreamName: "Get", Handler: streams.Handler(s.get)},
		{StreamName: "List", Handler: streams.Handler(s.list)},
		{StreamName: "ListByOwner", Handler: streams.Handler(s.listByOwner)},
		{StreamName: "WatchList", ServerStreams: true, Handler: streams.Handler(s.watchList)},
	}
	s.RegisterService(&grpc.ServiceDesc{ServiceName: desc.ServiceName, Metadata: desc.Metadata, Streams: methods}, nil)
	s.health.SetServingStatus(desc.ServiceName, healthv1.HealthCheckResponse_NOT_SERVING)
	s.health.SetServingStatus("", healthv1.HealthCheckResponse_NOT_SERVING)
	healthv1.RegisterHealthServer(s, s.health)
	reflection.Register(s)
}

// Publish takes the next snapshot of the catalog. It does not block.
func (s *Server) Publish(snapshot *catalog.Snapshot, change catalog.Change) {
	s.merged.publish(snapshot, change)
	s.known.publish(change.Waited)
	if change.Waited {
		s.health.SetServingStatus(resourcev1alpha1.ResourceService_ServiceDesc.ServiceName, healthv1.HealthCheckResponse_SERVING)
		s.health.SetServingStatus("", healthv1.HealthCheckResponse_SERVING)
	}
}

// Follow keeps the merged services and the states of the sources up to date until ctx ends.
func (s *Server) Follow(ctx context.Context) {
	var parts errgroup.Group
	parts.Go(func() error { s.merged.follow(ctx); return nil })
	parts.Go(func() error { s.known.follow(ctx); return nil })
	_ = parts.Wait()
	s.health.Shutdown()
}

// rightsOf returns the rights of a client. A client that proves no identity can reach the
// listener only if the configuration lets everybody read there.
func rightsOf(who streams.Identity) rights {
	return rights{all: who.Everything() == nil, namespace: who.Namespace()}
}

// may returns why a reader may not read a kind; nil if it may.
func (s *Server) may(who streams.Identity, kind model.Kind) error {
	denied := who.Everything()
	if denied == nil || isMerged(kind) {
		return nil
	}
	return s.Reject(streams.NotWho, grpcstatus.Errorf(codes.PermissionDenied,
		"%v, and only readers there may read records; read the kinds %s and %s, which have the services that are exported to %s",
		denied, model.KindMergedService, model.KindMergedEndpoint, who.ID()))
}

// storeOf returns the records of a kind. The merged services begin with the first request.
func (s *Server) storeOf(kind model.Kind) output.Records {
	if !isMerged(kind) {
		return s.records
	}
	s.merged.demand()
	return s.merged.store
}

// await waits until the records that a filter selects are known. Meanwhile it passes what is
// known to tell, unless that is nil.
func (s *Server) await(ctx context.Context, f model.Filter, tell func(known) error) error {
	if isMerged(f.Kind) {
		s.merged.demand()
	}
	for {
		now, changed := s.known.get()
		if tell != nil {
			if err := tell(now); err != nil {
				return err
			}
		}
		ready, err := now.ready(f)
		if err != nil {
			return err
		}
		if ready {
			return s.awaitMerged(ctx, f.Kind)
		}
		select {
		case <-ctx.Done():
			return grpcstatus.FromContextError(ctx.Err()).Err()
		case <-changed:
		}
	}
}

// awaitMerged waits for the merged services, if the kind is one of theirs.
func (s *Server) awaitMerged(ctx context.Context, kind model.Kind) error {
	if !isMerged(kind) {
		return nil
	}
	select {
	case <-ctx.Done():
		return grpcstatus.FromContextError(ctx.Err()).Err()
	case <-s.merged.ready:
		return nil
	}
}

func (s *Server) metrics() []output.Metric {
	return []output.Metric{
		{Name: "isthmus_watch_readers", Help: "Open watches of records.", Value: float64(s.readers.Load())},
		{Name: "isthmus_watch_resets_total", Help: "Resets of watches whose reader fell too far behind.", Counter: true, Value: float64(s.resets.Load())},
	}
}
