package envoy

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output/envoy/leds"
	"github.com/isthmus-mesh/isthmus/output/envoy/names"
	"github.com/isthmus-mesh/isthmus/output/envoy/reach"
	"github.com/isthmus-mesh/isthmus/push/session"
	"github.com/isthmus-mesh/isthmus/push/world"
)

// An Envoy that takes the endpoints of large services one by one ends with those that
// it would have of load assignments, whatever happens to it and to them.
func TestCollectionsFoldToTheAssignment(t *testing.T) {
	checkFolds(t, newFoldHistory)
}

// foldHistory is services that change at random, and Envoys that take them.
type foldHistory struct {
	folding

	t        *rapid.T
	builder  *catalog.Builder
	revision uint64
	// processes is how many have served, one after the other.
	processes uint32
	step      func(*catalog.Snapshot, catalog.Change, bool, string) world.Update
	services  map[string]*foldService
	envoys    []*foldEnvoy
}

// foldService is a service of the namespace a.
type foldService struct {
	model.Service
	absent    bool
	endpoints map[int]model.Endpoint
}

func newFoldHistory(t *rapid.T) *foldHistory {
	h := &foldHistory{t: t, services: map[string]*foldService{}}
	h.begin()
	return h
}

// begin starts the process that serves, after another if there was one. It knows nothing
// of what that one did.
func (h *foldHistory) begin() {
	if h.stop != nil {
		h.stop()
	}
	h.processes++
	h.log("process %d begins", h.processes)
	above := rapid.IntRange(1, 6).Draw(h.t, "above")
	h.make(above, leds.Limits{Changes: rapid.SampledFrom([]int{1, 5, 1000}).Draw(h.t, "changes"), Weight: rapid.SampledFrom([]uint64{0, 1000}).Draw(h.t, "weight")})
	h.serve()
}

// make has worlds made with collections of services above some size.
func (h *foldHistory) make(above int, limits leds.Limits) {
	maker := leds.New(leds.Settings{Rows: ledsRows, Above: above, Epoch: h.processes, Limits: limits})
	h.builder, h.step = catalog.NewBuilder(nil), withCollections(Step, maker)
}

// restart has another process serve what there is.
func (h *foldHistory) restart() {
	for _, e := range h.envoys {
		e.leave()
	}
	h.begin()
	h.publish()
	for _, e := range h.envoys[2:] {
		e.connect()
	}
}

// populate has two services without endpoints, two Envoys that take them one by one, and
// one that takes load assignments.
func (h *foldHistory) populate() {
	for _, host := range []string{"x.com", "y.com"} {
		h.services[host] = &foldService{endpoints: map[int]model.Endpoint{}, Service: model.Service{
			Hosts: model.ListOf(host), Resolution: model.ResolutionStatic,
			Ports: model.ListOf(model.Port{Number: 80, Name: "p", Protocol: "HTTP"}),
		}}
	}
	for n, leds := range []bool{true, true, false} {
		h.envoys = append(h.envoys, &foldEnvoy{h: h, folder: folder{folding: &h.folding, name: fmt.Sprint("envoy ", n)}, leds: leds, clusters: map[string]*foldCluster{}, named: map[string]bool{}})
	}
}

func (h *foldHistory) run() {
	h.populate()
	h.change(8)
	for range rapid.IntRange(1, 12).Draw(h.t, "rounds") {
		for range rapid.IntRange(1, 5).Draw(h.t, "acts") {
			h.act()
		}
		h.rest()
	}
}

func (h *foldHistory) act() {
	e := h.envoys[rapid.IntRange(0, 1).Draw(h.t, "who")]
	switch rapid.IntRange(0, 15).Draw(h.t, "act") / 2 {
	case 0:
		if rapid.IntRange(0, 3).Draw(h.t, "restarts") == 0 {
			h.restart()
		} else {
			e.leave()
		}
	case 1:
		e.connect()
	case 2, 3:
		e.turn(rapid.IntRange(0, 3).Draw(h.t, "NACKs") == 0)
	default:
		h.change(rapid.IntRange(1, 4).Draw(h.t, "changes"))
	}
}

// rest has everybody settle now and then.
func (h *foldHistory) rest() {
	if rapid.IntRange(0, 2).Draw(h.t, "compares") > 0 {
		return
	}
	h.settle()
}

// settle has everybody take everything, and compares.
func (h *foldHistory) settle() {
	h.touch() // each member that was NACKed is another version now
	for _, e := range h.envoys {
		e.connect()
	}
	for busy := true; busy; {
		busy = false
		for _, e := range h.envoys {
			busy = e.turn(false) || busy
		}
	}
	want := h.envoys[2]
	for _, e := range h.envoys[:2] {
		if !slices.Equal(slices.Sorted(maps.Keys(e.clusters)), slices.Sorted(maps.Keys(want.clusters))) {
			h.broken("%s has other clusters", e.name)
		}
		for name, c := range e.clusters {
			if c.warming != nil {
				h.broken("%s: %s warms for ever", e.name, name)
			}
			if got, should := c.active.effective, want.clusters[name].active.effective; !maps.Equal(got, should) {
				h.broken("%s: %s has\n%v\nand should have\n%v", e.name, name, got, should)
			}
		}
	}
}

// touch changes every weight.
func (h *foldHistory) touch() {
	for _, host := range slices.Sorted(maps.Keys(h.services)) {
		s := h.services[host]
		for n, e := range s.endpoints {
			e.Weight = e.Weight%1000 + 1
			s.endpoints[n] = e
		}
	}
	h.publish()
}

func (h *foldHistory) change(n int) {
	for range n {
		s := h.services[rapid.SampledFrom([]string{"x.com", "x.com", "x.com", "y.com"}).Draw(h.t, "host")]
		switch rapid.IntRange(0, 12).Draw(h.t, "change") {
		case 0:
			s.absent = !s.absent
		case 1:
			s.Ports = model.ListOf(model.Port{Number: 80, Name: "p", Protocol: rapid.SampledFrom([]string{"HTTP", "GRPC", "TCP"}).Draw(h.t, "protocol")})
		case 2, 3, 4:
			for _, id := range slices.Sorted(maps.Keys(s.endpoints)) {
				if rapid.Bool().Draw(h.t, "goes") {
					delete(s.endpoints, id)
				}
			}
		default:
			for range rapid.IntRange(1, 6).Draw(h.t, "of them") {
				s.endpoints[rapid.IntRange(0, 11).Draw(h.t, "endpoint")] = drawFoldEndpoint(h.t)
			}
		}
	}
	h.publish()
}

func drawFoldEndpoint(t *rapid.T) model.Endpoint {
	e := model.Endpoint{
		Address: fmt.Sprintf("10.0.0.%d", rapid.IntRange(1, 12).Draw(t, "address")), Weight: uint32(rapid.IntRange(0, 3).Draw(t, "weight")),
		Locality: model.Locality{Region: "r", Zone: rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "zone")}, Health: model.Healthy,
	}
	switch rapid.IntRange(0, 39).Draw(t, "odd") {
	case 0:
		e.Address = rapid.SampledFrom([]string{"unix:///run/x", "::0001", "name.example.com", "", "::ffff:10.0.0.1", "fe80::1%eth0", "unix://" + strings.Repeat("x", 200)}).Draw(t, "odd address")
	case 1, 2, 3:
		e.Address = "fd00::1"
	case 4, 5, 6, 7:
		e.Health = model.Unhealthy
	case 8:
		e.Weight = 1 << 31
	case 9:
		e.Locality.Zone = "\xff"
	}
	if strings.HasPrefix(e.Address, "10.") && rapid.IntRange(0, 3).Draw(t, "two addresses") == 0 { // of which no other endpoint has one
		e.Also = model.ListOf(rapid.SampledFrom([]string{"fd01::", "FD02::", "fe80::1%", "name.example.com"}).Draw(t, "net") + strings.ReplaceAll(e.Address, ".", ":"))
	}
	return e
}

// publish makes the services as they are the next world.
func (h *foldHistory) publish() {
	h.revision++
	var events []model.Event
	for _, host := range slices.Sorted(maps.Keys(h.services)) {
		s := h.services[host]
		owner := model.Ref{Kind: model.KindService, Key: model.Key{Source: "s", Namespace: "a", Name: host}}
		if s.absent {
			events = append(events, model.Delete{Record: model.Record{Ref: owner}})
		} else {
			events = append(events, model.Upsert{Record: model.Record{Ref: owner, Spec: s.Service}})
		}
		for id := range 12 {
			ref := model.Ref{Kind: model.KindEndpoint, Key: owner.Key}
			ref.Name += fmt.Sprint("/", id)
			r := model.Record{Ref: ref, Owner: owner}
			if e, there := s.endpoints[id]; there && !s.absent {
				r.Spec = e
				events = append(events, model.Upsert{Record: r})
			} else {
				events = append(events, model.Delete{Record: r})
			}
		}
		h.log("%s: absent %t, %v, %v", host, s.absent, s.Ports, s.endpoints)
	}
	change := h.builder.Apply(h.revision, events)
	h.producer.Publish(h.step(h.builder.Snapshot(), change, true, "istio-system"))
	synctest.Wait()
}

// foldEnvoy is an Envoy as far as it takes clusters and endpoints.
type foldEnvoy struct {
	folder

	h        *foldHistory
	leds     bool
	clusters map[string]*foldCluster
	named    map[string]bool // the collections that it asks for on this stream
	asked    map[string]bool // the assignments
	begun    bool            // it asked for collections on this stream
}

// foldCluster is a cluster, and the one that is to take its place.
type foldCluster struct {
	version         string
	config          *clusterv3.Cluster
	assigned        string // version of the assignment
	active, warming *foldImpl
}

// foldImpl is a cluster as Envoy has it in memory.
type foldImpl struct {
	assignment *endpointv3.ClusterLoadAssignment
	locals     map[string]*foldLocal // by configuration
	effective  map[string]string     // endpoints by locality and address, with their weights
	updated    bool
}

type foldLocal struct {
	glob    string
	members map[string]*endpointv3.LbEndpoint
	ready   bool // it was answered
	givenUp bool // Envoy does not wait for an answer any longer
}

func (c *foldCluster) each(do func(*foldImpl)) {
	for _, impl := range []*foldImpl{c.active, c.warming} {
		if impl != nil {
			do(impl)
		}
	}
}

// connect says which clusters and assignments it has, and nothing of members.
func (e *foldEnvoy) connect() {
	if e.sub != nil {
		return
	}
	e.folder.connect(world.Client{Kind: reach.KindEnvoy, Namespace: "a", Increments: e.leds})
	clusters, assignments := map[string]world.Version{}, map[string]world.Version{}
	e.named, e.asked, e.begun = map[string]bool{}, map[string]bool{}, false
	var names []string
	for name, c := range e.clusters {
		clusters[name], _ = world.ParseVersion(c.version)
		if c.assigned != "" {
			assignments[name], _ = world.ParseVersion(c.assigned)
		}
		e.asked[name] = true
		names = append(names, name)
	}
	e.request(session.Request{Type: e.typ(ClusterType), Wildcard: session.WildcardOn, Held: clusters})
	if len(names) > 0 {
		e.request(session.Request{Type: e.typ(EndpointType), Subscribe: names, Held: assignments})
	}
	e.watch(nil)
}

// watch asks for the collections that assignments name, and for no others. Envoy may
// ask again for what it has dropped and taken up in one step.
func (e *foldEnvoy) watch(renewed map[string]bool) {
	wanted := map[string]bool{}
	for _, c := range e.clusters {
		c.each(func(impl *foldImpl) {
			for _, l := range impl.locals {
				wanted[l.glob] = true
			}
		})
	}
	var add, drop []string
	for _, glob := range slices.Sorted(maps.Keys(wanted)) {
		if !e.named[glob] || renewed[glob] && rapid.Bool().Draw(e.h.t, "asks again") {
			add = append(add, glob)
		}
	}
	for _, glob := range slices.Sorted(maps.Keys(e.named)) {
		if !wanted[glob] {
			drop = append(drop, glob)
		}
	}
	e.named = wanted
	if len(add)+len(drop) > 0 {
		e.begun = true
		e.request(session.Request{Type: e.typ(MemberType), Subscribe: add, Unsubscribe: drop})
	}
}

// turn takes what there is, and reports whether there was any.
func (e *foldEnvoy) turn(nacks bool) (busy bool) {
	return e.take(func(r *session.Response) { e.receive(r, nacks) })
}

// receive takes a response. Envoy NACKs one for a member that it cannot read, and none
// that only says which members are gone.
func (e *foldEnvoy) receive(r *session.Response, nacks bool) {
	m := e.read(r)
	nacks = nacks && r.Type == e.typ(MemberType) && len(m.Resources) > 0
	e.h.log("%s takes of type %d, NACKed %t: %v", e.name, r.Type, nacks, m)
	answer := session.Answer{Kind: session.ACK, Serial: r.Serial}
	var renewed map[string]bool
	switch {
	case nacks:
		answer.Kind = session.NACK
		e.giveUp()
	case r.Type == e.typ(ClusterType):
		e.takeClusters(m)
	case r.Type == e.typ(EndpointType):
		renewed = e.takeAssignments(m)
	default:
		e.takeMembers(m)
	}
	e.request(session.Request{Type: r.Type, Answer: answer})
	e.watch(renewed)
}

// takeClusters begins a cluster anew that has changed. Envoy asks for the assignment
// of one that it has not asked for yet, and not again.
func (e *foldEnvoy) takeClusters(m *discoveryv3.DeltaDiscoveryResponse) {
	for _, name := range m.RemovedResources {
		delete(e.clusters, name)
		delete(e.asked, name)
		e.request(session.Request{Type: e.typ(EndpointType), Unsubscribe: []string{name}})
	}
	for _, res := range m.Resources {
		config := &clusterv3.Cluster{}
		e.unpack(res.Resource, config)
		c := e.clusters[res.Name]
		fresh := &foldImpl{locals: map[string]*foldLocal{}}
		switch {
		case c == nil:
			e.clusters[res.Name] = &foldCluster{version: res.Version, config: config, active: fresh}
		case !proto.Equal(c.config, config):
			c.config, c.version, c.warming = config, res.Version, fresh
		default:
			c.version = res.Version
		}
		if !e.asked[res.Name] {
			e.asked[res.Name] = true
			e.request(session.Request{Type: e.typ(EndpointType), Subscribe: []string{res.Name}})
		}
	}
}

func (e *foldEnvoy) takeAssignments(m *discoveryv3.DeltaDiscoveryResponse) (renewed map[string]bool) {
	renewed = map[string]bool{}
	for _, res := range m.Resources {
		c := e.clusters[res.Name]
		if c == nil {
			continue
		}
		a := &endpointv3.ClusterLoadAssignment{}
		e.unpack(res.Resource, a)
		c.assigned = res.Version
		c.each(func(impl *foldImpl) { e.assign(impl, a, renewed) })
		c.warmed()
	}
	return renewed
}

// assign gives a cluster in memory another assignment. A collection that both the last
// and this one name in the same way would have Envoy read the last one, which it frees.
func (e *foldEnvoy) assign(impl *foldImpl, a *endpointv3.ClusterLoadAssignment, renewed map[string]bool) {
	before := impl.locals
	impl.assignment, impl.locals = a, map[string]*foldLocal{}
	for _, g := range a.Endpoints {
		config := g.GetLedsClusterLocalityConfig()
		if config == nil {
			continue
		}
		if len(g.LbEndpoints) > 0 || !e.leds || !strings.HasPrefix(config.LedsCollectionName, "xdstp://") || !strings.HasSuffix(config.LedsCollectionName, "/*") {
			e.h.broken("%s: %v", e.name, g)
		}
		key := config.String()
		if before[key] != nil {
			e.h.broken("%s dies of %s, which is named as before", e.name, config.LedsCollectionName)
		}
		impl.locals[key] = &foldLocal{glob: config.LedsCollectionName, members: map[string]*endpointv3.LbEndpoint{}}
		for _, l := range before {
			if l.glob == config.LedsCollectionName {
				renewed[l.glob] = true
			}
		}
	}
	impl.update()
}

// takeMembers gives members to everything that watches their collection.
func (e *foldEnvoy) takeMembers(m *discoveryv3.DeltaDiscoveryResponse) {
	touched := map[string]bool{}
	for _, res := range m.Resources {
		glob := globOf(res.Name)
		if touched[glob] = true; !e.named[glob] {
			e.h.broken("%s did not ask for %s", e.name, res.Name)
		}
		lb := &endpointv3.LbEndpoint{}
		e.unpack(res.Resource, lb)
		if reason := deadly(lb); reason != "" {
			e.h.broken("%s dies of %v: %s", e.name, lb, reason)
		}
	}
	for _, name := range m.RemovedResources {
		touched[globOf(name)] = true
	}
	for _, c := range e.clusters {
		c.each(func(impl *foldImpl) {
			for _, l := range impl.locals {
				if touched[l.glob] {
					l.take(e, m)
				}
			}
			impl.update()
		})
		c.warmed()
	}
}

// giveUp has no collection waited for any longer. Envoy does so with all of them when it
// NACKs members of any.
func (e *foldEnvoy) giveUp() {
	for _, c := range e.clusters {
		c.each(func(impl *foldImpl) {
			for _, l := range impl.locals {
				l.givenUp = true
			}
			impl.update()
		})
		c.warmed()
	}
}

func (l *foldLocal) take(e *foldEnvoy, m *discoveryv3.DeltaDiscoveryResponse) {
	l.ready = true
	for _, name := range m.RemovedResources {
		delete(l.members, name)
	}
	for _, res := range m.Resources {
		if globOf(res.Name) == l.glob {
			lb := &endpointv3.LbEndpoint{}
			e.unpack(res.Resource, lb)
			l.members[res.Name] = lb
		}
	}
}

func globOf(member string) string { return member[:strings.LastIndexByte(member, '/')+1] + "*" }

// update has the cluster work with its endpoints, once it has those of all collections.
func (i *foldImpl) update() {
	if i.assignment == nil {
		return
	}
	found := map[string]string{}
	enter := func(g *endpointv3.LocalityLbEndpoints, lb *endpointv3.LbEndpoint) {
		l := g.GetLocality()
		at := fmt.Sprint(l.Region, "/", l.Zone, "/", l.SubZone, " ", lb.GetEndpoint().GetAddress())
		found[at] = fmt.Sprint(lb.GetLoadBalancingWeight().GetValue(), lb.GetEndpoint().GetAdditionalAddresses())
	}
	for _, g := range i.assignment.Endpoints {
		for _, lb := range g.LbEndpoints {
			enter(g, lb)
		}
		if config := g.GetLedsClusterLocalityConfig(); config != nil {
			l := i.locals[config.String()]
			if !l.ready && !l.givenUp {
				return
			}
			for _, lb := range l.members {
				enter(g, lb)
			}
		}
	}
	i.effective, i.updated = found, true
}

// warmed puts a cluster in the place of the one before once it has its endpoints.
func (c *foldCluster) warmed() {
	if c.warming != nil && c.warming.updated {
		c.active, c.warming = c.warming, nil
	}
}

// deadly says what Envoy would die of in a member; empty if of nothing.
func deadly(lb *endpointv3.LbEndpoint) string {
	noAddress := func(a *corev3.Address) bool {
		socket := a.GetSocketAddress()
		ip, err := netip.ParseAddr(socket.GetAddress())
		return err != nil || ip.Zone() != "" || ip.String() != socket.GetAddress() || socket.GetPortValue() == 0 || socket.GetPortValue() > names.HighestPort
	}
	switch {
	case lb.GetEndpointName() != "":
		return "it is a name"
	case noAddress(lb.GetEndpoint().GetAddress()):
		return "it is no IP address with a port"
	case slices.ContainsFunc(lb.GetEndpoint().GetAdditionalAddresses(), func(a *endpointv3.Endpoint_AdditionalAddress) bool { return noAddress(a.GetAddress()) }):
		return "a further address is none with a port"
	case lb.GetLoadBalancingWeight().GetValue() == 0:
		return "it has no weight"
	default:
		return ""
	}
}
