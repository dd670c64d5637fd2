package envoy

import (
	"iter"
	"slices"

	"github.com/isthmus-mesh/isthmus/output/envoy/names"
	"github.com/isthmus-mesh/isthmus/output/envoy/policy"
	"github.com/isthmus-mesh/isthmus/output/envoy/reach"
	"github.com/isthmus-mesh/isthmus/output/envoy/wire"
	"github.com/isthmus-mesh/isthmus/push/world"
)

// The types of resources: the rows of the table below.
const (
	ClusterType world.Row = iota
	EndpointType
	ListenerType
	RouteType
	RuntimeType
	SecretType
	MemberType // of the collections that large services are in
	VirtualHostType
)

// The kinds of clients, as in package reach.
const (
	KindEnvoy    = reach.KindEnvoy
	KindGRPC     = reach.KindGRPC
	KindGRPCNode = reach.KindGRPCNode
)

// resourceType is a type of resources. A type is added by adding it to [resourceTypes], and
// a file with its subject.
type resourceType struct {
	world.TypeSpec
	// view adds the parts of a view that the type depends on; nil if it depends on none.
	view func(s *state, c world.Client, v *View)
	// names yields the resources for a wildcard, and find returns any resource. They are nil
	// for a type without resources.
	names func(s *state, v View) iter.Seq[string]
	find  func(s *state, v View, name string) (world.Subject, bool)
}

// resourceTypes lists the types by their rows.
func resourceTypes() []resourceType {
	return []resourceType{
		ClusterType: {
			TypeSpec: world.TypeSpec{
				Name: wire.ClusterURL,
				// To a state-of-the-world client a cluster that is missing from a
				// response is a deleted cluster.
				Whole:    true,
				Brings:   []string{wire.EndpointURL, wire.SecretURL},
				Audience: audienceOf,
			},
			view: viewClusters, names: clusterNames, find: findCluster,
		},
		EndpointType: {
			TypeSpec: world.TypeSpec{
				Name: wire.EndpointURL,
				// Envoy warms a cluster whenever it is added or updated, and waits
				// for its assignment even if the endpoints are the same.
				Awaited: true,
				Brings:  []string{wire.MemberURL},
				// An assignment without endpoints, rather than silence: Envoy waits for it.
				Empty: func(name string) world.Encoded { return resourceOf(name, (&wire.Assignment{Name: name}).Any()) },
			},
			view: viewEndpoints, names: assignmentNames, find: findAssignment,
		},
		ListenerType: {
			TypeSpec: world.TypeSpec{
				Name:      wire.ListenerURL,
				Aggregate: reach.IsEnvoy, // services may share a listener
				Whole:     true,          // as for clusters: absence is deletion
				Brings:    []string{wire.RouteURL},
				// A listener opens at once with a route configuration that Envoy already has,
				// and its virtual hosts.
				Needs:    []string{wire.ClusterURL, wire.VirtualHostURL},
				Audience: audienceOf,
				Absent:   absentListener,
				Empty:    emptyListener,
			},
			view: viewListeners, names: allListenerNames, find: findAnyListener,
		},
		RouteType: {
			TypeSpec: world.TypeSpec{
				Name: wire.RouteURL,
				// A route must not lead to a cluster that the client does not have.
				Needs:     []string{wire.ClusterURL},
				Brings:    []string{wire.VirtualHostURL},
				Aggregate: reach.IsEnvoy,
				Absent:    absentRoute,
				Empty:     func(name string) world.Encoded { return emptyRoutes(policy.Istio, name) },
			},
			view: viewRoutes, names: allRouteNames, find: findAnyRoutes,
		},
		// An Envoy starts at once when its question for a runtime or a secret is answered, and
		// otherwise after 15 s (initial_fetch_timeout).
		RuntimeType: {TypeSpec: world.TypeSpec{
			Name:  wire.RuntimeURL,
			Empty: func(name string) world.Encoded { return encode(name, wire.RuntimeURL, wire.Runtime(name)) },
		}},
		SecretType: {TypeSpec: world.TypeSpec{Name: wire.SecretURL, Audience: secretAudience}, view: viewSecrets, names: secretNames, find: findSecret},
		MemberType: {
			TypeSpec: world.TypeSpec{
				Name:       wire.MemberURL,
				Increments: true,
				// Envoy waits anew for the members that an assignment leads to.
				Awaited: true,
				// A client that asks for a removed collection is about to receive an assignment
				// with other collections. An answer would leave it without endpoints.
				Absent: func(string, world.Mode) world.Absence { return world.Silence },
			},
			view: viewMembers, names: memberNames, find: findMembers,
		},
		VirtualHostType: {
			TypeSpec: world.TypeSpec{
				Name:  wire.VirtualHostURL,
				Needs: []string{wire.ClusterURL},
				// Envoy asks for all, and takes those of its route configurations.
				Parent: names.RoutesOf,
				// A virtual host belongs to one service port, and always leads to one cluster.
				// One that loses a domain does not wait, so that its new owner comes no earlier.
				Fixed: true,
				// Envoy forgets virtual hosts that came before their route configuration. Its
				// listener opens with the first response of them.
				Awaited:  true,
				Together: true,
				// Envoy rejects the later of two virtual hosts with the same domain.
				Exclusive: true,
			},
			view: viewVirtualHosts, names: singleHostNames, find: findSingleHost,
		},
	}
}

// absentRoute sends an Envoy an empty route configuration for a name of no service. After a
// removal it would wait without a time limit, so that its listener never becomes active. It
// ignores the removal of routes that it has, and keeps sending requests to removed clusters.
// gRPC clients are sent a removal, if the protocol has one, since they report it.
func absentRoute(kind string, m world.Mode) world.Absence {
	switch {
	case kind == reach.KindEnvoy:
		return world.Empty
	case m == world.Delta:
		return world.Removal
	default:
		return world.Silence
	}
}

// Types returns how each type is delivered. Debounce delays the changes of a type
// for the subscribers of a mode; nil delays none.
func Types(debounce func(typeName string, m world.Mode) world.Debounce) []world.TypeSpec {
	types := resourceTypes()
	specs := make([]world.TypeSpec, len(types))
	for r, t := range types {
		specs[r] = t.TypeSpec
		if debounce != nil {
			specs[r].Debounce = [...]world.Debounce{debounce(t.Name, world.WholeState), debounce(t.Name, world.Delta)}
		}
	}
	specs[ListenerType].NameDebounces = listenerDebounces(debounce)
	return specs
}

// one yields a single name of a resource that a subject refers to.
func one(name string) iter.Seq[string] { return slices.Values([]string{name}) }

// nothing yields nothing.
func nothing(func(string) bool) {}

// Keys of the debounces of some listeners, beside those of types.
const (
	// DNSChanges are those of the listener that answers lookups.
	DNSChanges = "dns"
	// SharedListenerChanges are those of listeners that services share.
	SharedListenerChanges = "sharedListeners"
)

// listenerDebounces returns the debounces of listeners that many services share. Each change
// sends such a listener as a whole. Listeners of one service do not wait for them.
func listenerDebounces(debounce func(typeName string, m world.Mode) world.Debounce) []world.NameDebounce {
	all := []struct {
		changes string
		is      func(name string) bool
		replace bool
	}{
		{DNSChanges, isDNS, false},
		{SharedListenerChanges, isShared, true}, // a shared listener takes the connections of removed listeners of addresses
	}
	list := make([]world.NameDebounce, len(all))
	for n, of := range all {
		list[n].Match, list[n].DelayRemovals = of.is, of.replace
		if debounce != nil {
			list[n].Debounce = [...]world.Debounce{debounce(of.changes, world.WholeState), debounce(of.changes, world.Delta)}
		}
	}
	return list
}

// isDNS reports whether a listener answers lookups.
func isDNS(name string) bool { return name == names.DNSListener }

// isShared reports whether a listener is of all services of a port that have no address
// of their own, or of a port of the edge. It has a chain for each host of TLS.
func isShared(name string) bool {
	address, _, ok := names.ParseSocket(name)
	return ok && slices.Contains([]string{names.AnyIPv4, names.AnyIPv6, names.LocalIPv4, names.LocalIPv6}, address)
}
