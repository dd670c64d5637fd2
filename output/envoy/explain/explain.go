package explain

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/catalog/ip"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output"
	"github.com/isthmus-mesh/isthmus/output/envoy/names"
	"github.com/isthmus-mesh/isthmus/output/envoy/node"
	"github.com/isthmus-mesh/isthmus/output/envoy/policy"
	"github.com/isthmus-mesh/isthmus/output/envoy/reach"
	"github.com/isthmus-mesh/isthmus/output/envoy/wire"
)

// World is the state in which a call is followed.
type World struct {
	Snapshot *catalog.Snapshot
	Root     string // the namespace of scopes for workloads without a scope
	Settings *policy.Prepared
	Read     Reader // for the client of the call
}

// Follow returns the way of a call.
func Follow(w World, call output.Call) output.Trace {
	trace := &output.Trace{}
	viewer := catalog.Viewer{Namespace: call.Client.Namespace, Scope: w.Snapshot.ScopeOf(call.Client.Namespace, call.Client.Labels, w.Root)}
	f := follower{walk: walk{w, viewer, trace}, call: call, proxy: node.ProxyOf(call.Client)}
	if f.proxy.Role == node.Sidecar {
		f.proxy.Cluster = w.Snapshot.AddressCluster(call.Client.Cluster)
	}
	if f.resolve() && f.offered() {
		f.follow()
	}
	return *trace
}

// follower follows one call.
type follower struct {
	walk
	call  output.Call
	proxy node.Proxy
}

// port returns the port of the service; of a call at an edge, the first port of the service
// stands for it until the cluster is known.
func (f follower) port() model.Port {
	s := f.trace.Service
	if p, ok := s.Port(f.call.Port); ok || f.proxy.Role != node.Edge {
		return p
	}
	return s.Ports[0]
}

// offered checks that the service has the port, and that clients of the kind get it.
func (f follower) offered() bool {
	s, kind := f.trace.Service, f.call.Client.Kind
	port, found := s.Port(f.call.Port)
	switch {
	case len(s.Ports) == 0:
		f.trace.End("port", "the service has no ports", "add ports to "+recordText(s.Records[0]))
	case f.proxy.Role == node.Edge:
		return true
	case !found:
		f.trace.End("port", fmt.Sprintf("the service has no port %d; it has %s", f.call.Port, portsText(s.Ports)),
			fmt.Sprintf("call one of these ports, or add port %d to %s", f.call.Port, recordText(s.Records[0])))
	case reach.FormFor(kind, s, port) == reach.NoForm:
		f.trace.End("offer", "clients of kind "+kind+" do not get the port: "+reach.NotOffered(s, kind), "change "+recordText(s.Records[0])+", or use a client of another kind")
	case !reach.IsGRPC(kind) && f.proxy.Role != node.NoRole && reach.TrafficOf(port) == reach.NotTCP:
		f.trace.End("port", fmt.Sprintf("port %d is UDP, for which Envoys do not listen", f.call.Port), "call the endpoints themselves, or register a port of another protocol")
	default:
		f.trace.Pass("port", fmt.Sprintf("port %d, protocol %s", port.Number, cmp.Or(port.Protocol, "detected by Envoy")))
		return true
	}
	return false
}

// follow leads the call from the client to endpoints.
func (f follower) follow() {
	switch {
	case reach.IsGRPC(f.call.Client.Kind):
		f.arrive(f.target(f.trace.Service.Key.Host, f.call.Port))
	case f.proxy.Role == node.NoRole:
		name := names.Cluster(f.trace.Service.Key.Host, f.call.Port)
		f.trace.Pass("listener", "this Envoy has listeners of its own; calls reach the service if these lead to the cluster "+name)
		f.arrive(destination{cluster: name})
	default:
		f.connect()
	}
}

// connect opens a connection to the address at which an application calls the host.
func (f follower) connect() {
	if f.isChosen() {
		f.connectToInstance()
		return
	}
	o := opening{port: f.call.Port, host: f.call.Host}
	shared := f.proxy.Shared()
	if f.proxy.Role == node.Edge {
		shared = f.proxy.Everywhere()
		o.address, o.kind = shared, f.kindAtEdge(names.Socket(shared, o.port))
	} else {
		o.address = f.address()
		o.kind = openingOf(f.port())
	}
	to, ok := f.listener(o, shared)
	if !ok {
		f.noListener(o)
		return
	}
	f.arrive(to)
}

// isChosen reports whether the application connects to an instance that it chooses.
func (f follower) isChosen() bool {
	s, port := f.trace.Service, f.port()
	kind := reach.TrafficOf(port)
	return f.proxy.Role == node.Sidecar && (s.Traffic.Headless || kind == reach.TCP) &&
		reach.IsChosen(f.client(), s.ServiceDefinition, port) && len(slices.Collect(reach.Allotted(f.client(), s.ServiceDefinition))) == 0
}

// client returns the client of the call, as the rules of listeners know it.
func (f follower) client() reach.Client {
	return reach.Client{Viewer: f.viewer, Proxy: f.proxy, Settings: f.Settings}
}

// connectToInstance opens a connection to the first healthy instance. Without a listener there it
// passes through, unless connections to no service end.
func (f follower) connectToInstance() {
	s, port := f.trace.Service, f.port()
	for e := range s.Endpoints(port.Number).All() {
		address, connectable := firstOf(e.Connectable(), f.proxy.Family)
		if e.Health != model.Healthy || !connectable {
			continue
		}
		f.trace.Address = address
		f.trace.Pass("address", fmt.Sprintf("the service has no address of its own, so the application chooses an instance, such as %s port %d; neither shares nor balancing apply", address, e.Port))
		to, ok := f.listener(opening{address: address, port: e.Port, kind: bytes}, f.proxy.Shared())
		whole, subset := names.CutSubset(to.cluster)
		switch {
		case subset == names.Chosen:
			f.trace.Pass("cluster", "cluster "+to.cluster)
			f.serve(to.cluster, port.Number)
		case ok && whole == names.Cluster(s.Key.Host, port.Number):
			f.arrive(to)
		case ok && to.cluster == names.Passthrough, !ok && !f.Settings.OrIstio().RegistryOnly:
			f.trace.Pass("listener", "the proxy passes the connection on to the address that the application connects to")
			f.trace.Reason, f.trace.Reaches = "calls go to the instance that the application connects to", true
		case ok && to.cluster != names.BlackHole:
			f.arrive(to)
		default:
			f.trace.End("listener", fmt.Sprintf("the Envoy has no listener at the instance, and outbound: registry ends connections to addresses of no service; an Envoy listens at %d instances of a port at most, over all services", catalog.MostInstances),
				"give the service an address, or the workload a Sidecar resource that names what it calls")
		}
		return
	}
	f.noEndpoints()
}

// firstOf returns the first address of a family.
func firstOf(addresses iter.Seq[string], of node.Family) (string, bool) {
	for address := range addresses {
		if of.Has(address) {
			return address, true
		}
	}
	return "", false
}

// openingOf returns how applications call a port. Where Envoy detects the protocol, they are
// taken to send requests.
func openingOf(p model.Port) openingKind {
	switch reach.TrafficOf(p) {
	case reach.HTTP, reach.Detected:
		return request
	case reach.TLS:
		return handshake
	default:
		return bytes
	}
}

// address returns an address at which the application calls the host.
func (f follower) address() string {
	s, p := f.trace.Service, f.proxy
	if p.Mode == node.None {
		return p.Shared()
	}
	tell := func(address string) string {
		f.trace.Address = address
		return address
	}
	for address := range s.OwnAddressesIn(p.Cluster) {
		if p.Family.Has(address) {
			return tell(address)
		}
	}
	for address := range reach.Allotted(f.client(), s.ServiceDefinition) {
		return tell(address)
	}
	for block := range s.BlocksIn(p.Cluster) {
		if inside := block.Addr().Next().String(); block.Bits() > 0 && p.Family.Has(inside) {
			return tell(inside)
		}
	}
	if p.Family == node.IPv6 {
		return names.UnroutableIPv6
	}
	return names.UnroutableIPv4
}

// noListener ends a call for which the proxy has no listener.
func (f follower) noListener(o opening) {
	switch {
	case f.proxy.Role == node.Edge:
		f.trace.End("listener", fmt.Sprintf("the edge has no port %d", o.port), "add the port to outputs.xds.envoy.edge.ports")
	case f.proxy.Mode == node.None && !f.proxy.Outbound.Has(o.port):
		f.trace.End("listener", fmt.Sprintf("the sidecar does not listen at port %d: with INTERCEPTION_MODE NONE its node lists the ports", o.port),
			fmt.Sprintf("add %d to --outbound of its bootstrap, or to ISTHMUS_OUTBOUND in the node metadata, and restart the Envoy", o.port))
	case f.proxy.Obstructs(o.port) != node.Unobstructed || f.proxy.Reserved(o.port):
		f.trace.End("listener", fmt.Sprintf("the Envoy cannot listen at port %d, which is its own or needs privileges", o.port), "use another port for the service")
	default:
		f.lose(fmt.Sprintf("no listener of %s port %d leads to the service, so its connections are passed on as if it were unknown", o.address, o.port))
	}
}

// arrive judges the cluster that a call is led to.
func (f follower) arrive(to destination) {
	s := f.trace.Service
	host, port, ofService := names.ParseCluster(to.cluster)
	switch {
	case to.refused != "" && f.proxy.Role == node.Edge:
		f.trace.End("route", to.refused, "add the host to hosts of that port in outputs.xds.envoy.edge.ports, if it should be exposed")
	case to.refused != "":
		f.lose(to.refused)
	case !ofService:
		f.lose("the call goes to " + to.cluster + ", as a call to an unknown host does")
	case host != s.Key.Host || port != f.call.Port && f.proxy.Role != node.Edge:
		f.lose(fmt.Sprintf("the call goes to port %d of %s", port, host))
	default:
		f.trace.Pass("cluster", "cluster "+to.cluster)
		f.serve(to.cluster, port)
	}
}

// lose ends a call that goes elsewhere although the client gets the service.
func (f follower) lose(verdict string) {
	f.trace.Lost = true
	f.trace.End("listener", verdict, "see the conflicts of the service: isthmus services "+f.trace.Service.Key.Host)
}

// serve counts the endpoints behind the cluster.
func (f follower) serve(cluster string, port uint32) {
	at, ok := f.cluster(cluster)
	if at.single {
		at.n = f.trace.Service.Endpoints(port).Counts().Healthy
	}
	switch {
	case !ok:
		f.trace.End("cluster", "the client has no cluster "+cluster, "isthmus status; the log of this process names resources that cannot be made")
		return
	case at.original && f.proxy.Mode == node.None:
		f.trace.End("endpoints", "the service has resolution NONE, and without redirection nothing tells the Envoy where the application wants to go",
			"give "+recordText(f.trace.Service.Records[0])+" endpoints, or redirect the connections of the workload")
		return
	case at.original:
		f.trace.Pass("endpoints", "the proxy passes the connection to the address that the application connects to")
		f.trace.Reason = "calls go to the address that the application connects to"
	case at.n == 0:
		f.noEndpoints()
		return
	case at.byName:
		f.trace.Pass("endpoints", fmt.Sprintf("%d names, which the proxy resolves", at.n))
		f.secure(at)
		f.trace.Reason = fmt.Sprintf("calls reach the service, if the proxy can resolve its %s", count(at.n, "name"))
	default:
		f.trace.Pass("endpoints", count(at.n, "healthy endpoint"))
		f.trace.Reason = fmt.Sprintf("calls reach the service at %s%s", count(at.n, "endpoint"), f.secure(at))
	}
	f.trace.Reaches = true
}

// noEndpoints ends a call to a service that has no endpoint for the client.
func (f follower) noEndpoints() {
	s := f.trace.Service
	counts := s.Endpoints(f.port().Number).Counts()
	look := "isthmus services " + s.Key.Host
	for id, reason := range reach.UnservedTo(s, f.Settings.OrIstio().Networks, node.FamilyOf(f.call.Client.Addresses)) {
		if id.ServicePort == f.port().Number {
			f.trace.End("endpoints", fmt.Sprintf("no endpoint is served; of %s: %s", strings.TrimPrefix(id.Address, ip.Unaddressed), reason), "correct the endpoint in its registry, or name the gateway; "+look+" lists all")
			return
		}
	}
	switch {
	case counts.Total == 0:
		f.trace.End("endpoints", "the service has no endpoints on this port", "register instances, or check the selector of "+recordText(s.Records[0]))
	case counts.Healthy == 0:
		f.trace.End("endpoints", fmt.Sprintf("none of %s is healthy", count(counts.Total, "endpoint")), "look at the instances; "+look+" lists them with the record of each")
	default:
		f.trace.End("endpoints", fmt.Sprintf("%s healthy, but for clients of other networks or clusters only", count(counts.Healthy, "endpoint")),
			"add a gateway of their network to outputs.xds.envoy.networks; "+look+" lists them")
	}
}

// kindAtEdge returns how an edge is called at a port: as its listener expects it.
func (w walk) kindAtEdge(listener string) openingKind {
	is := w.Read(wire.ListenerURL, listener)
	if is == nil {
		return request
	}
	return kindOf(is.Body)
}

func recordText(c catalog.Contributor) string {
	if c.Place == "" {
		return c.Record.String()
	}
	return c.Record.String() + " in " + c.Place
}

func portsText(ports []model.Port) string {
	var list []string
	for _, p := range ports {
		list = append(list, strconv.FormatUint(uint64(p.Number), 10))
	}
	return strings.Join(list, ", ")
}

// count returns a number with its noun.
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// textOf joins names for a sentence.
func textOf(list []string) string {
	slices.Sort(list)
	return strings.Join(list, ", ")
}
