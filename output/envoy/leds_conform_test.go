package envoy

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"pgregory.net/rapid"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output/envoy/leds"
	"github.com/isthmus-mesh/isthmus/output/envoy/policy"
	"github.com/isthmus-mesh/isthmus/output/envoy/reach"
	"github.com/isthmus-mesh/isthmus/output/envoy/wire"
	"github.com/isthmus-mesh/isthmus/push/pushtest"
	"github.com/isthmus-mesh/isthmus/push/world"
)

// The producer of the resources of services passes what every producer must, too, when
// services with two endpoints are large.
func TestServicesInCollectionsAreAWellBehavedProducer(t *testing.T) {
	pushtest.Run(t, spreading(nil, nil))
}

// What the suite would find, if collections were wrong.
func TestSuiteCatchesFaultyCollections(t *testing.T) {
	t.Parallel()
	quiet := func(u *world.Update) {
		u.Changed = slices.DeleteFunc(u.Changed, func(c world.Changed) bool { return c.Row == MemberType })
	}
	for name, addition := range map[string]pushtest.Addition{
		"changes of members that are not listed":    spreading(quiet, nil),
		"increments that begin too late":            spreading(nil, misled(tooLate)),
		"increments of what nobody said it has":     spreading(nil, misled(presumed)),
		"a whole that says nothing of what is gone": spreading(nil, misled(forgetful)),
		"assignments that do not bring members":     spreading(nil, silent),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const histories = 3000
			if found := pushtest.Find(t, addition, histories); !strings.HasPrefix(found, "law 5") {
				t.Errorf("in %d histories it is found as %.300q", histories, found)
			}
		})
	}
}

// spreading is the producer with services in collections as soon as they have two
// endpoints. It may be made to be at fault: in what it lists, and in its subjects.
func spreading(spoil func(*world.Update), wrap func(world.Subject) world.Subject) pushtest.Addition {
	settings := *conforming
	settings.Defaults = policy.Policy{} // without outlier detection, so that endpoints have no priorities
	settings.Networks = nil             // services with endpoints behind gateways are never in collections
	settings.Edge, settings.DNS, settings.Hosts = policy.Edge{}, nil, nil
	draw := drawProvenClient
	if spoil != nil || wrap != nil {
		draw, settings.MTLS = drawPushClient, policy.MTLS{} // so that no history is about something else
	}
	return pushtest.Addition{
		Rows: settings.Types(nil),
		Begin: func() pushtest.World {
			m := newMirror()
			m.settings, m.draw = settings.Prepare(), drawSpreadEvent
			step := withCollections(settings.Begin(nil), leds.New(leds.Settings{Rows: ledsRows, Above: 1, Whole: differUnder(m.settings), Mesh: m.settings.Mesh, Epoch: 1, Limits: leds.Limits{Changes: 6, Weight: 100}}))
			m.step = func(now *catalog.Snapshot, c catalog.Change, complete bool, root string) world.Update {
				u := step(now, c, complete, root)
				if spoil != nil {
					spoil(&u)
				}
				return u
			}
			return &spreadMirror{m, wrap}
		},
		Client: func(t *rapid.T) world.Client {
			c := draw(t)
			c.Kind = cmp.Or(rapid.SampledFrom([]string{reach.KindEnvoy, reach.KindEnvoy, ""}).Draw(t, "Envoy"), c.Kind)
			c.Increments = rapid.IntRange(0, 3).Draw(t, "increments") > 0
			return c
		},
		Name: func(t *rapid.T, r world.Row) string {
			if r == MemberType {
				return (&leds.Collection{Epoch: 1, Number: uint32(rapid.IntRange(1, 9).Draw(t, "collection"))}).Glob()
			}
			return drawResourceName(t, r)
		},
		Refers: refersIn,
		Take:   takePart,
	}
}

// drawSpreadEvent draws an event in which most endpoints can be in a collection.
func drawSpreadEvent(t *rapid.T) model.Event {
	event := drawAnyEvent(t)
	u, ok := event.(model.Upsert)
	if !ok || rapid.IntRange(0, 15).Draw(t, "as it is") == 0 {
		return event
	}
	switch s := u.Record.Spec.(type) {
	case model.Endpoint:
		s.Address = fmt.Sprintf("10.0.0.%d", rapid.IntRange(1, 5).Draw(t, "member"))
		u.Record.Spec = s
	case model.Workload:
		s.Endpoint.Address = fmt.Sprintf("10.0.0.%d", rapid.IntRange(1, 5).Draw(t, "member"))
		u.Record.Spec = s
	case model.Service:
		s.Resolution = model.ResolutionStatic
		u.Record.Spec = s
	}
	return u
}

// spreadMirror is a mirror that may be at fault.
type spreadMirror struct {
	*mirror
	wrap func(world.Subject) world.Subject
}

func (m *spreadMirror) Step(t *rapid.T) world.Update {
	u := m.mirror.Step(t)
	if m.wrap != nil {
		u.World = wrappedWorld{u.World, m.wrap}
	}
	return u
}

type wrappedWorld struct {
	world.World
	wrap func(world.Subject) world.Subject
}

func (w wrappedWorld) Find(v world.View, r world.Row, name string) (world.Subject, bool) {
	subject, ok := w.World.Find(v, r, name)
	if ok {
		subject = w.wrap(subject)
	}
	return subject, ok
}

// misled has a fault in a collection, and leaves any other subject as it is.
func misled(fault func(roster, world.Version) world.Subject) func(world.Subject) world.Subject {
	return func(s world.Subject) world.Subject {
		if m, ok := s.(roster); ok {
			return faultyRoster{m, &fault}
		}
		return s
	}
}

// faultyRoster is a collection that leaves out what clients lack.
type faultyRoster struct {
	roster
	fault *func(roster, world.Version) world.Subject
}

func (f faultyRoster) Since(held world.Version) world.Subject { return (*f.fault)(f.roster, held) }

// tooLate leaves out the first change.
func tooLate(m roster, held world.Version) world.Subject {
	sent, _ := m.Since(held).(roster)
	if sent.from >= 0 {
		sent.from = min(sent.from+1, len(sent.Journal))
	}
	return sent
}

// presumed takes clients to hold what the collection began with.
func presumed(m roster, held world.Version) world.Subject {
	sent, _ := m.Since(held).(roster)
	sent.from = max(sent.from, 0)
	return sent
}

// forgetful leaves out what is gone.
func forgetful(m roster, held world.Version) world.Subject {
	sent, _ := m.Since(held).(roster)
	if sent.from < 0 {
		own := *sent.Collection
		own.Journal = nil
		return sameRevision{roster{&own, -1, nil}, m.Revision()}
	}
	return sent
}

// sameRevision has the version of another.
type sameRevision struct {
	roster
	version world.Version
}

func (s sameRevision) Encode() world.Encoded {
	e := s.roster.Encode()
	e.Version = s.version
	return e
}

// silent does not say which collections an assignment names.
func silent(s world.Subject) world.Subject {
	if a, ok := s.(spreadAssignment); ok {
		return silentAssignment{a}
	}
	return s
}

type silentAssignment struct{ spreadAssignment }

func (silentAssignment) Refers(string) iter.Seq[string] { return nothing }

// spreadOr is the assignment that names collections in place of another, if there is
// one and each endpoint is in a locality that it has.
func (m *mirror) spreadOr(s world.Subject, r world.Row, c world.Client, name string) world.Subject {
	plain, ok := s.(assignment)
	if !ok || m.last.spreads == nil {
		return s
	}
	now, _ := m.last.Find(m.last.View(r, c), r, name)
	spread, ok := now.(spreadAssignment)
	if !ok || !c.Increments {
		return s
	}
	for e := range plain.endpoints.All() {
		in := slices.ContainsFunc(spread.partition.Groups, func(g wire.CollectionGroup) bool { return g.Locality == e.Locality })
		if !in && e.Health == model.Healthy {
			return s
		}
	}
	return spread
}

// seesCollections works out all members anew. Only which collections there are, and
// their versions, are not in the records.
func (m *mirror) seesCollections(c world.Client) map[string]world.Encoded {
	all := map[string]world.Encoded{}
	view := of(m.anew.View(MemberType, c))
	if !c.Increments || view.Kind != reach.KindEnvoy {
		return all
	}
	for name := range m.last.spreads.Globs() {
		is := m.last.spreads.Collection(name)
		s, ok := m.anew.snapshot.Resolve(view.viewer(), is.Host)
		if !ok || s.Key != is.ServiceKey {
			continue
		}
		members := map[string]uint32{}
		for e := range s.Endpoints(is.Port).All() {
			if at, fits := leds.MemberAddress(e); fits && e.Health == model.Healthy && e.Locality == is.Locality {
				members[fmt.Sprintf("%s-%d", at.Addr(), at.Port())] = max(e.Weight, 1)
			}
		}
		all[name] = world.Encoded{Name: name, Version: is.RevisionAt(len(is.Journal)), Body: written(members)}
	}
	return all
}

// written is the weights of members, in order.
func written(members map[string]uint32) []byte {
	text := []byte("members:")
	for _, at := range slices.Sorted(maps.Keys(members)) {
		text = fmt.Appendf(text, " %s=%d", at, members[at])
	}
	return text
}

// takePart is how an Envoy takes what it is sent: an assignment that names collections
// without what makes it differ from any other, and members into those that it has.
func takePart(r world.Row, before, sent world.Encoded) (world.Encoded, error) {
	switch r {
	case EndpointType:
		return takeAssignment(sent)
	case MemberType:
		return takeMembers(before, sent)
	default:
		return sent, nil
	}
}

func takeAssignment(sent world.Encoded) (world.Encoded, error) {
	body, err := unpack(sent.Body)
	m, ok := body.(*endpointv3.ClusterLoadAssignment)
	if err != nil || !ok {
		return sent, err
	}
	if len(collectionsIn(m)) == 0 {
		return sent, nil
	}
	for _, g := range m.Endpoints {
		config := g.GetLedsClusterLocalityConfig().GetLedsConfig()
		if config.GetInitialFetchTimeout().AsDuration() < never {
			return sent, fmt.Errorf("an Envoy would wait %s for members", config.GetInitialFetchTimeout().AsDuration())
		}
		config.InitialFetchTimeout = durationpb.New(never)
	}
	return encode(sent.Name, wire.EndpointURL, m), nil
}

func takeMembers(before, sent world.Encoded) (world.Encoded, error) {
	m := &discoveryv3.DeltaDiscoveryResponse{}
	if err := proto.Unmarshal(sent.Body, m); err != nil || !sent.Framed {
		return sent, fmt.Errorf("%s, framed: %t: %w", sent.Name, sent.Framed, err)
	}
	members := map[string]uint32{}
	for _, word := range strings.Fields(string(before.Body))[min(1, len(before.Body)):] {
		at, weight, _ := strings.Cut(word, "=")
		n, err := strconv.ParseUint(weight, 10, 32)
		if err != nil {
			return sent, err
		}
		members[at] = uint32(n)
	}
	prefix := strings.TrimSuffix(sent.Name, "*")
	for _, name := range m.RemovedResources {
		delete(members, strings.TrimPrefix(name, prefix))
	}
	for _, res := range m.Resources {
		lb := &endpointv3.LbEndpoint{}
		if err := res.Resource.UnmarshalTo(lb); err != nil {
			return sent, err
		}
		at := lb.GetEndpoint().GetAddress().GetSocketAddress()
		if reason := deadly(lb); reason != "" || res.Name != fmt.Sprintf("%s%s-%d", prefix, at.GetAddress(), at.GetPortValue()) {
			return sent, fmt.Errorf("an Envoy dies of %s, %v: %s", res.Name, lb, reason)
		}
		members[strings.TrimPrefix(res.Name, prefix)] = lb.GetLoadBalancingWeight().GetValue()
	}
	return world.Encoded{Name: sent.Name, Version: sent.Version, Body: written(members)}, nil
}

// collectionsIn lists the collections that an assignment names.
func collectionsIn(m *endpointv3.ClusterLoadAssignment) (names []string) {
	for _, g := range m.GetEndpoints() {
		if name := g.GetLedsClusterLocalityConfig().GetLedsCollectionName(); name != "" {
			names = append(names, name)
		}
	}
	return names
}
