package envoy

import (
	"cmp"
	"context"
	"iter"

	"google.golang.org/protobuf/proto"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/output"
	"github.com/isthmus-mesh/isthmus/output/envoy/conflict"
	"github.com/isthmus-mesh/isthmus/output/envoy/explain"
	"github.com/isthmus-mesh/isthmus/output/envoy/leds"
	"github.com/isthmus-mesh/isthmus/output/envoy/names"
	"github.com/isthmus-mesh/isthmus/output/envoy/policy"
	"github.com/isthmus-mesh/isthmus/output/envoy/reach"
	"github.com/isthmus-mesh/isthmus/output/envoy/vhost"
	"github.com/isthmus-mesh/isthmus/output/envoy/wire"
	"github.com/isthmus-mesh/isthmus/push/world"
	"github.com/isthmus-mesh/isthmus/secrets"
)

// state is a catalog snapshot with everything else that resources are made from.
type state struct {
	snapshot *catalog.Snapshot
	root     string // the namespace of scopes for workloads without a scope
	settings *policy.Prepared

	definitions *definitions    // for the edge, and for secrets
	spreads     *leds.Set       // nil without LEDS
	secrets     *secrets.Keeper // nil if no certificates are served
	renewals    uint64          // tells worlds apart between which certificates were made
}

// World is a catalog snapshot for xDS clients.
type World struct {
	state
	complete bool
	types    []resourceType
}

var _ world.World = (*World)(nil)

// NewWorld returns the world of a snapshot. Complete means that every source has been
// listed. The scopes of the namespace root apply to workloads without a scope of their own.
func NewWorld(snapshot *catalog.Snapshot, complete bool, root string) *World {
	return worldUnder(policy.Istio, snapshot, complete, root, nil)
}

// worldUnder is [NewWorld] for some settings. Known are the definitions of the snapshot.
func worldUnder(s *policy.Prepared, snapshot *catalog.Snapshot, complete bool, root string, known *definitions) *World {
	return &World{state{snapshot: snapshot, root: root, settings: s, definitions: known}, complete, resourceTypes()}
}

// Complete implements [world.World].
func (w *World) Complete() bool { return w.complete }

// View implements [world.World].
func (w *World) View(r world.Row, c world.Client) world.View {
	v := View{Kind: c.Kind, Namespace: c.Namespace, scope: w.snapshot.ScopeOf(c.Namespace, c.Labels, w.root)}
	if w.settings != policy.Istio {
		v.settings = w.settings
	}
	if add := w.types[r].view; add != nil {
		add(&w.state, c, &v)
	}
	return v
}

// Names implements [world.World]: first the resources of an Envoy's own, then the resources
// of service ports by host and port.
func (w *World) Names(view world.View, r world.Row) iter.Seq[string] {
	if w.types[r].names == nil {
		return nothing
	}
	return w.types[r].names(&w.state, of(view))
}

// Find implements [world.World].
func (w *World) Find(view world.View, r world.Row, name string) (world.Subject, bool) {
	if w.types[r].find == nil {
		return nil, false
	}
	return w.types[r].find(&w.state, of(view), name)
}

// Translator translates snapshots as its settings demand. The configuration is decoded into
// the settings before the first call of any method but Validate and Domain.
type Translator struct {
	policy.Settings
}

// NewTranslator returns a translator with the default settings.
func NewTranslator() *Translator { return &Translator{*policy.New()} }

// Types is [Types] for the settings.
func (t *Translator) Types(debounce func(typeName string, m world.Mode) world.Debounce) []world.TypeSpec {
	specs, prepared := Types(debounce), t.Prepare()
	specs[RouteType].Empty = func(name string) world.Encoded { return emptyRoutes(prepared, name) }
	return specs
}

// Begin returns the function that makes the steps of one output. The function is [Step] for
// the settings. The keeper has the certificates of clients; nil serves none.
func (t *Translator) Begin(keeper *secrets.Keeper) func(now *catalog.Snapshot, c catalog.Change, complete bool, root string) world.Update {
	prepared := t.Prepare()
	var known *definitions
	step := func(now *catalog.Snapshot, c catalog.Change, complete bool, root string) world.Update {
		known = known.after(now, c, prepared)
		u := stepOf(prepared, now, c, complete, root, known)
		if world, ok := u.World.(*World); ok {
			world.secrets = keeper
		}
		return u
	}
	if t.LEDS.Above > 0 {
		s := leds.Default(ledsRows, t.LEDS.Above)
		s.Whole, s.Mesh = differUnder(prepared), prepared.Mesh
		return withCollections(step, leds.New(s))
	}
	return step
}

// Renewed is [Renewed].
func (t *Translator) Renewed(w world.World, r secrets.Renewal) world.Update { return Renewed(w, r) }

// NotOffered returns a function that lists which services clients of a kind do not get, as
// [NotOffered] does, and how many endpoints only clients of the same network get.
func (t *Translator) NotOffered() func(*catalog.Service, string) string {
	p := t.Prepare()
	return func(service *catalog.Service, kind string) string {
		return cmp.Or(reach.NotOffered(service, kind), notEntered(p, service, kind))
	}
}

// Unserved returns a function that lists the healthy endpoints that no client is given.
func (t *Translator) Unserved() func(*catalog.Service) iter.Seq2[catalog.EndpointID, string] {
	networks := t.Prepare().Networks
	return func(s *catalog.Service) iter.Seq2[catalog.EndpointID, string] { return reach.Unserved(s, networks) }
}

// InexactShares returns a function that says why Envoys do not give backends exactly the shares
// of a service's calls. A hash goes before shares, for its calls belong together.
func (t *Translator) InexactShares() func(*catalog.Service) string {
	p := t.Prepare()
	return func(s *catalog.Service) string {
		if b := p.For(s.Key.Host, s.Traffic.Affinity).LoadBalancer; s.Split == nil || b == nil || b.ConsistentHash == nil {
			return ""
		}
		return "Envoys choose backends by a hash of each call, so the shares are those of the hashed values, such as client addresses"
	}
}

// Conflicts returns a function that lists the conflicts of a service: the addresses, server
// names, domains and protocols that it loses to other services at sidecars and edges. Once ctx
// has ended, the function may return only some of them. See [conflict.Report].
func (t *Translator) Conflicts(ctx context.Context, now *catalog.Snapshot) func(*catalog.Service) []catalog.Conflict {
	return conflict.Report(ctx, now, t.Prepare())
}

// LoopbackConflicts is [Translator.Conflicts] for sidecars with INTERCEPTION_MODE NONE. See
// [conflict.Loopback].
func (t *Translator) LoopbackConflicts(ctx context.Context, now *catalog.Snapshot) func(*catalog.Service) []catalog.Conflict {
	return conflict.Loopback(ctx, now)
}

// Losers yields the services with conflicts at sidecars. See [conflict.Losers].
func (t *Translator) Losers(ctx context.Context, now *catalog.Snapshot, unredirected bool) iter.Seq2[catalog.ServiceKey, catalog.Conflict] {
	return conflict.Losers(ctx, now, t.Prepare(), unredirected)
}

// TakeUnaddressed returns [policy.Prepared.TakesUnaddressed].
func (t *Translator) TakeUnaddressed() func(host string) bool { return t.Prepare().TakesUnaddressed }

// Explain follows a call of a client through its newest resources. See [explain.Follow].
func (t *Translator) Explain(now *catalog.Snapshot, root string, read func(typeURL, name string) *world.Encoded, call output.Call) output.Trace {
	return explain.Follow(explain.World{Snapshot: now, Root: root, Settings: t.Prepare(), Read: read}, call)
}

// slot tells a resource from every other through all its revisions. The form is that of clusters,
// which differ by the kind of client. A host may be in several namespaces, so its name is not enough.
type slot struct {
	row  world.Row
	key  catalog.ServiceKey
	port uint32
	form reach.Form

	subset  *policy.Selector // nil for all endpoints
	entered bool             // it is of a gateway, to which the port has another name
	chosen  bool             // of instances that clients choose
}

// Slot implements [world.Subject].
func (s slot) Slot() any { return s }

// common is the slot of a resource that is the same in every form.
func (s slot) common() slot {
	s.form = reach.NoForm
	return s
}

func (s slot) clusterName() string {
	if s.entered {
		name, _ := names.Mesh(s.key.Host, s.port, s.subset.String())
		return name
	}
	if s.chosen {
		return names.Subset(s.key.Host, s.port, names.Chosen)
	}
	return names.Subset(s.key.Host, s.port, s.subset.String())
}

// encode encodes a message as a resource.
func encode(name, url string, m proto.Message) world.Encoded {
	return resourceOf(name, wire.Any(name, url, m))
}

func resourceOf(name string, body []byte) world.Encoded {
	return world.Encoded{Name: name, Version: vhost.VersionOf(body), Body: body}
}

// unknownCluster is the cluster of connections that belong to no service.
func unknownCluster(registryOnly bool) string {
	if registryOnly {
		return names.BlackHole
	}
	return names.Passthrough
}
