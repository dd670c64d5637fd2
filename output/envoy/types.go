package envoy

import (
	"iter"
	"slices"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output/envoy/names"
	"github.com/isthmus-mesh/isthmus/output/envoy/policy"
	"github.com/isthmus-mesh/isthmus/output/envoy/wire"
	"github.com/isthmus-mesh/isthmus/push"
)

// The types of resources: the rows of the table below.
const (
	ClusterType push.Row = iota
	EndpointType
	ListenerType
	RouteType
	RuntimeType
	SecretType
	MemberType // of the collections that large services are in
	VirtualHostType
)

// The kinds of clients a view may be of. Clients of any other kind see nothing.
const (
	KindEnvoy = "envoy"
	KindGRPC  = "grpc"
	// KindGRPCNode is gRPC that has to be answered otherwise about listeners that do
	// not exist: see [absentListener]. It sees what KindGRPC sees.
	KindGRPCNode = "grpc-node"
)

// row is all that differs between types. A type is added by adding its row, and
// a file with its subject.
type row struct {
	push.TypeSpec
	// name is the resource's name for a port of a host, and parse accepts exactly
	// what name writes.
	name  func(host string, port uint32) string
	parse func(name string) (host string, port uint32, ok bool)
	// offered reports whether there is such a resource for a service port that a
	// kind of client gets in a form.
	offered func(f form, kind string) bool
	// subject is what the resource is made of, and what it refers to. It is nil for
	// a type of which there are no resources: see [nobodys].
	subject func(at slot, s *catalog.Service, port model.Port) push.Subject
	// own is what Envoys that stand in the path of workloads have of the type beside
	// the resources of single service ports; nil if nothing.
	own *ownResources
	// subsets says that there is one of each subset, too.
	subsets bool
	// locates says that the resource is where clients learn of endpoints: while
	// one that is gone is still in it, they go astray.
	locates bool
}

func isEnvoy(kind string) bool { return kind == KindEnvoy }

// ownResources are resources of a type that are not of one service port.
type ownResources struct {
	// names yields those that there are for a wildcard, and find returns any.
	names func(w *World, v View) iter.Seq[string]
	find  func(w *World, v View, name string) (push.Subject, bool)
}

var rows = [...]row{
	ClusterType: {
		TypeSpec: push.TypeSpec{
			Name: wire.ClusterURL,
			// To a state-of-the-world client a cluster that is missing from a
			// response is a deleted cluster.
			Whole:    true,
			Brings:   []string{wire.EndpointURL, wire.SecretURL},
			Audience: audienceOf,
		},
		name: names.Cluster, parse: names.ParseCluster,
		offered: func(f form, _ string) bool { return f != noForm },
		subject: func(at slot, s *catalog.Service, port model.Port) push.Subject { return clusterOf(at, s, port) },
		own:     &ownResources{names: ownClusterNames, find: findOwnCluster},
		locates: true, // of DNS services
		subsets: true,
	},
	EndpointType: {
		TypeSpec: push.TypeSpec{
			Name: wire.EndpointURL,
			// Envoy warms a cluster whenever it is added or updated, and waits
			// for its assignment even if the endpoints are the same.
			Awaited: true,
			Brings:  []string{wire.MemberURL},
			// An assignment without endpoints, rather than silence: Envoy waits for it.
			Void: func(name string) push.Encoded { return resourceOf(name, (&wire.Assignment{Name: name}).Any()) },
		},
		name: names.Cluster, parse: names.ParseCluster,
		offered: func(f form, _ string) bool { return f == eds },
		subject: func(at slot, s *catalog.Service, port model.Port) push.Subject {
			return assignment{assignmentSlot: assignmentSlot{slot: at.common()}, endpoints: s.Endpoints(port.Number)}
		},
		own: &ownResources{names: enteredNames, find: func(w *World, v View, name string) (push.Subject, bool) {
			return findEntered(w, v, EndpointType, name)
		}},
		locates: true,
		subsets: true,
	},
	ListenerType: {
		TypeSpec: push.TypeSpec{
			Name:      wire.ListenerURL,
			Aggregate: isEnvoy, // one socket may be of many services
			Whole:     true,    // as for clusters: absence is deletion
			Brings:    []string{wire.RouteURL},
			// A listener that comes to lead to a route configuration which Envoy still has
			// opens at once, with the single hosts that are there.
			Needs:    []string{wire.ClusterURL, wire.VirtualHostURL},
			Audience: audienceOf,
			Absent:   absentListener,
			Void:     voidListener,
		},
		name: names.Listener, parse: names.ParseListener,
		offered: gRPCOnly,
		subject: func(at slot, _ *catalog.Service, _ model.Port) push.Subject { return listener{at.common()} },
		own:     &ownResources{names: listenerNames, find: findListener},
	},
	RouteType: {
		TypeSpec: push.TypeSpec{
			Name: wire.RouteURL,
			// A route must not lead to a cluster that the client does not have.
			Needs:     []string{wire.ClusterURL},
			Brings:    []string{wire.VirtualHostURL},
			Aggregate: isEnvoy,
			Absent:    absentRoute,
			Void:      func(name string) push.Encoded { return voidRoutes(policy.Istio, name) },
		},
		name: names.Cluster, parse: names.ParseCluster,
		offered: gRPCOnly,
		subject: func(at slot, _ *catalog.Service, _ model.Port) push.Subject {
			return route{slot: at.common(), policy: policy.Istio.Defaults}
		},
		own: &ownResources{names: routeNames, find: findRoutes},
	},
	RuntimeType: nobodys(push.TypeSpec{
		Name: wire.RuntimeURL,
		Void: func(name string) push.Encoded {
			return encode(name, wire.RuntimeURL, wire.Runtime(name))
		},
	}),
	SecretType: nobodys(push.TypeSpec{Name: wire.SecretURL}), // but for those of findSecret
	// It has no rows of single service ports: see [World.Find].
	MemberType: nobodys(push.TypeSpec{
		Name:       wire.MemberURL,
		Increments: true,
		// Envoy waits anew for the members that an assignment leads to.
		Awaited: true,
		// Who asks for a collection that there is no more is about to be sent an
		// assignment that names others. An answer would leave it without endpoints.
		Absent: func(string, push.Mode) push.Absence { return push.Silence },
	}),
	// Likewise: see [World.findSingleHost].
	VirtualHostType: nobodys(push.TypeSpec{
		Name:  wire.VirtualHostURL,
		Needs: []string{wire.ClusterURL},
		// Envoy asks for all, and takes those of its route configurations.
		Within: names.RoutesOf,
		// Each is of one service port, and so leads to one cluster for ever. One that
		// loses a domain does not wait, so that whoever gains it comes no earlier.
		Fixed: true,
		// Envoy forgets those that came before their route configuration. Its listener
		// opens with the first response of them.
		Awaited:  true,
		Together: true,
		// Of two that have one domain Envoy rejects the one that comes later.
		Exclusive: true,
	}),
}

// nobodys is the row of a type of which there are no resources. An Envoy that
// asks for one starts at once when it is answered as any name that does not
// exist, and else only after 15 s (initial_fetch_timeout).
func nobodys(spec push.TypeSpec) row {
	return row{TypeSpec: spec, name: names.Cluster, parse: names.ParseCluster, offered: func(form, string) bool { return false }}
}

// gRPCOnly is of service ports that Envoys get no such resource of: theirs are of
// many services.
func gRPCOnly(f form, kind string) bool { return f != noForm && isGRPC(kind) }

func isGRPC(kind string) bool { return kind == KindGRPC || kind == KindGRPCNode }

// absentRoute sends an Envoy routes for what is no service's: it takes a removal for
// an answer and then waits without its time limit, so that the listener never goes
// live. Of routes that it has it passes over a removal, and goes on to send requests
// to clusters that are gone. gRPC clients are sent a removal, if there is one, for they
// report what does not exist.
func absentRoute(kind string, m push.Mode) push.Absence {
	switch {
	case kind == KindEnvoy:
		return push.Empty
	case m == push.Delta:
		return push.Removal
	default:
		return push.Silence
	}
}

// Types says how each type is delivered. Debounce delays the changes of a type
// for the subscribers of a mode; nil delays none.
func Types(debounce func(typeName string, m push.Mode) push.Debounce) []push.TypeSpec {
	specs := make([]push.TypeSpec, len(rows))
	for r, row := range rows {
		specs[r] = row.TypeSpec
		if debounce != nil {
			specs[r].Debounce = [...]push.Debounce{debounce(row.Name, push.WholeState), debounce(row.Name, push.Delta)}
		}
	}
	specs[ListenerType].Apart = apartFor(debounce)
	return specs
}

// one yields a single name of a resource that a subject refers to.
func one(name string) iter.Seq[string] { return slices.Values([]string{name}) }

// nothing yields nothing.
func nothing(func(string) bool) {}
