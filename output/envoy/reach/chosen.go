package reach

import (
	"cmp"
	"slices"
	"sync"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/catalog/derived"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output/envoy/names"
	"github.com/isthmus-mesh/isthmus/output/envoy/node"
	"github.com/isthmus-mesh/isthmus/output/envoy/policy"
)

// A service without an address of its own is called at its instances: clients choose one, and
// connect to its address and port. Such a connection gets there without a listener. An Envoy
// listens at an instance only where that changes something.

// takesRest reports whether a port of a service without addresses takes the connections to all addresses
// that no service has: its resolution is NONE, or the settings give it these connections.
func takesRest(c Client, s catalog.ServiceDefinition, number uint32) bool {
	return c.Proxy.Mode == node.None || s.ResolutionAt(number) == model.ResolutionNone || c.Settings.OrIstio().TakesUnaddressed(s.Key.Host)
}

// takesAll reports whether a service port takes the connections to all addresses that no service
// has because the settings give these connections to every host.
func takesAll(c Client, s catalog.ServiceDefinition, port model.Port) bool {
	settings := c.Settings.OrIstio()
	return c.Proxy.Mode != node.None && s.ResolutionAt(port.Number) != model.ResolutionNone && NeedsAddress(port) && !hasAddress(c, s) &&
		settings.Of(s.Key.Host).Unaddressed == "" && settings.TakesUnaddressed(s.Key.Host)
}

// Unlistened reports whether no listener takes the connections to a service port that name no host:
// the service's endpoints are names, so connections to their addresses look like any others.
func Unlistened(c Client, s catalog.ServiceDefinition, port model.Port) bool {
	at := s.ResolutionAt(port.Number)
	named := at == model.ResolutionDNS || at == model.ResolutionDNSRoundRobin
	if c.Proxy.Mode == node.None || !named || !NeedsAddress(port) || hasAddress(c, s) || takesRest(c, s, port.Number) {
		return false
	}
	for range Allotted(c, s) {
		return false
	}
	return true
}

// hasAddress reports whether a service has an address or a block of them.
func hasAddress(c Client, s catalog.ServiceDefinition) bool {
	list, _ := s.AddressesIn(c.Proxy.Cluster)
	return list.Len() > 0
}

// IsChosen reports whether clients of a service port choose an instance by its address.
func IsChosen(c Client, s catalog.ServiceDefinition, port model.Port) bool {
	kind := TrafficOf(port)
	return c.Proxy.Mode != node.None && kind != NotTCP && kind != HTTP && s.ChosenAt(c.Proxy.Cluster, port.Number) &&
		(s.Traffic.Headless || !c.Settings.OrIstio().TakesUnaddressed(s.Key.Host))
}

// HasChosenCluster reports whether the Envoy secures connections to instances of a service port.
// They have a cluster of their own, since the port's cluster chooses an endpoint.
func HasChosenCluster(c Client, s catalog.ServiceDefinition, port model.Port) bool {
	settings := c.Settings.OrIstio()
	return !s.Traffic.Headless && IsChosen(Client{c.Viewer, node.Proxy{Role: c.Proxy.Role, Mode: c.Proxy.Mode}, c.Settings}, s, port) &&
		(TLSFor(settings.Of(s.Key.Host).TLS, s) != nil || securedByMesh(settings, s))
}

// securedByMesh reports whether endpoints of a service may take mutual TLS.
func securedByMesh(settings *policy.Prepared, s catalog.ServiceDefinition) bool {
	return settings.Of(s.Key.Host).TLS == nil && settings.Mesh.In(s.Key.Namespace) != nil && s.Location != model.MeshExternal
}

// ListensAtChosen reports whether Envoys listen at some instances of a service port.
func ListensAtChosen(c Client, s catalog.ServiceDefinition, port model.Port) bool {
	return IsChosen(c, s, port) && (s.Traffic.Headless || c.Settings.OrIstio().RegistryOnly || ServerFirst(port) || HasChosenCluster(c, s, port))
}

// chosenAt returns the cluster of the listener at an instance; empty if there is no listener.
func chosenAt(c Client, at catalog.InboundPort, e catalog.Endpoint) string {
	settings, s := c.Settings.OrIstio(), at.ServiceDefinition
	switch {
	case !IsChosen(c, s, at.Port):
		return ""
	case s.Traffic.Headless:
		return names.Cluster(s.Key.Host, at.Port.Number)
	case HasChosenCluster(c, s, at.Port) && (!securedByMesh(settings, s) || settings.Mesh.In(s.Key.Namespace).Reaches(e.Labels, e.Port)):
		return names.Subset(s.Key.Host, at.Port.Number, names.Chosen)
	case settings.RegistryOnly, ServerFirst(at.Port):
		return names.Passthrough
	default:
		return ""
	}
}

// Chosen is the listener at an instance.
type Chosen struct {
	catalog.InboundPort
	Cluster string
}

// ChosenAt returns the listener at the address and port of an instance. Several services may have
// the instance; all lead to the same place. There is no listener where the first of these services
// takes requests, which name their host, or where a service has the address as its own.
func ChosenAt(c Client, now *catalog.Snapshot, address string, number uint32) (found Chosen, ok bool) {
	p := c.Proxy
	if p.Reserved(number) || !p.Family.Has(address) || now.Port(number).TakenIn(p.Cluster, address, c.Viewer) {
		return found, false
	}
	for at, e := range now.InstancesAt(address, number) {
		index := now.Port(at.Port.Number)
		kind, cluster := TrafficOf(at.Port), chosenAt(c, at, e)
		switch {
		case kind == NotTCP, !index.Means(c.Viewer, at.ServiceDefinition), !HasCluster(at.ServiceDefinition, at.Port.Number):
			continue
		case kind != HTTP && (cluster == "" || !IsAdmitted(c, index, at.Key)):
			continue
		}
		if !ok || compareChosen(c.Namespace, at, found.InboundPort) < 0 {
			found, ok = Chosen{at, cluster}, true
		}
	}
	return found, ok && found.Cluster != ""
}

// compareChosen is the order of services with the same instance. If only their names differ, the
// shorter host comes first: the service of all pods.
func compareChosen(namespace string, a, b catalog.InboundPort) int {
	asked := catalog.Address
	return cmp.Or(asked.Precedence(namespace, a.ServiceDefinition, b.ServiceDefinition), cmp.Compare(len(a.Key.Host), len(b.Key.Host)),
		asked.Owner(namespace, a.ServiceDefinition, b.ServiceDefinition), cmp.Compare(a.Port.Number, b.Port.Number))
}

// IsAdmitted reports whether an Envoy listens at instances of a service. At a crowded port it does
// for the first services in the order of ownership, as far as [catalog.MostInstances] listeners
// are enough for all of their endpoints.
func IsAdmitted(c Client, index *catalog.PortServices, key catalog.ServiceKey) bool {
	if _, crowded := index.Asked(key); !crowded {
		return true
	}
	made, _ := index.Derive(admissionsKey{}, func(derived.Change) (any, error) { return &admissions{}, nil })
	all, _ := made.(*admissions)
	c.Proxy = node.Proxy{}
	admit, known := all.byClient.Load(c)
	if !known {
		admit, _ = all.byClient.LoadOrStore(c, sync.OnceValue(func() map[catalog.ServiceKey]struct{} { return admitted(c, index) }))
	}
	services, _ := admit.(func() map[catalog.ServiceKey]struct{})
	_, ok := services()[key]
	return ok
}

// admissionsKey is the key of the admissions of a port.
type admissionsKey struct{}

// admissions caches the admitted services of a crowded port.
type admissions struct{ byClient sync.Map }

// admitted are the services of a crowded port with listeners at their instances.
func admitted(c Client, index *catalog.PortServices) map[catalog.ServiceKey]struct{} {
	var ask []catalog.ServiceDefinition
	for s := range index.Visible(c.Viewer) {
		if port, _ := s.Port(index.Number); ListensAtChosen(c, s, port) {
			ask = append(ask, s)
		}
	}
	slices.SortFunc(ask, func(a, b catalog.ServiceDefinition) int { return catalog.Address.Owner(c.Namespace, a, b) })
	left, services := catalog.MostInstances, map[catalog.ServiceKey]struct{}{}
	for _, s := range ask {
		if share, _ := index.Asked(s.Key); share <= left {
			left -= share
			services[s.Key] = struct{}{}
		}
	}
	return services
}
