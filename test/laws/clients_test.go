package laws_test

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output/envoy"
	"github.com/isthmus-mesh/isthmus/push/world"
	"github.com/isthmus-mesh/isthmus/test/testkit/xdsclient"
)

// client is a strict client with what a history knows of it.
type client struct {
	*xdsclient.Client
	nature
	name     string
	leader   *client         // that takes the clusters of which this one takes the assignments
	nacks    int             // before this stream
	wholes   int             // answers of a type that is empty, before this stream
	away     bool            // it was asked to go
	holds    bool            // it keeps its answers back
	resumed  bool            // it came back with what it held while not everything was listed
	held     map[string]bool // when it came back, and seen in no registry that was listed then or since
	removals map[string]int  // when everything was last at rest
	last     view            // then
}

// view is what a client sees: by type and name, what is encoded.
type view map[string]map[string]world.Encoded

var lawTypes = []string{envoy.ClusterType: xdsclient.CDS, envoy.EndpointType: xdsclient.EDS, envoy.ListenerType: xdsclient.LDS, envoy.RouteType: xdsclient.RDS}

// connect adds a client that asks for everything there is.
func (p *play) connect(n nature) {
	if n.Split {
		p.split(n)
		return
	}
	c := p.join(n, "", nil)
	if n.Secrets {
		c.Subscribe(lawSecret, secretNames...)
		for _, typeURL := range []string{lawWhole, lawSilent, lawUnknown} {
			c.Subscribe(typeURL, "nothing")
		}
	}
	if n.GRPC {
		c.Subscribe(xdsclient.LDS)
	} else {
		c.Subscribe(xdsclient.CDS)
	}
}

// join adds a client that has a stream for one type, or for all, and asks for
// nothing yet. It may follow one of clusters.
func (p *play) join(n nature, only string, leader *client) *client {
	c := &client{nature: n, name: fmt.Sprintf("client %d: %+v", len(p.clients), n), leader: leader}
	node := xdsclient.Node(fmt.Sprint("client-", len(p.clients)), "", "envoy")
	fields := map[string]*structpb.Value{"LABELS": structpb.NewStructValue(&structpb.Struct{
		Fields: map[string]*structpb.Value{"app": structpb.NewStringValue(n.App)},
	})}
	if n.Namespace != "" {
		fields["NAMESPACE"] = structpb.NewStringValue(n.Namespace)
	}
	node.Metadata = &structpb.Struct{Fields: fields}
	config := xdsclient.Config{Name: c.name, Node: node, Ledger: &p.ledger, Follow: xdsclient.FollowClusters, Overlap: n.Slow, Only: only, NACK: n.nackReason, Rollback: n.Rollback && n.Delta}
	if only != "" || leader != nil {
		config.Follow = nil
	}
	config.Delay = n.Late
	if n.GRPC {
		node.UserAgentName, config.Follow = "gRPC Go", xdsclient.FollowListeners
	}
	if n.Delta {
		c.Client = xdsclient.NewDelta(p, link{p}, config)
	} else {
		c.Client = xdsclient.NewSotW(p, link{p}, config)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clients = append(p.clients, c)
	return c
}

// reconnect opens another stream of a client.
func (p *play) reconnect(c *client, keep bool) {
	c.resumed = keep // until it turns out that everything is listed
	var held map[string]bool
	if keep && (c.Delta || !c.Picky) { // who has ACKed no state has no version to say that it holds something
		c.Read(func(s *xdsclient.State) { held = whole(s) })
	}
	p.mu.Lock()
	c.held = held
	for _, t := range p.recent {
		p.forget(c, t)
	}
	p.mu.Unlock()
	c.Read(func(s *xdsclient.State) { c.wholes, c.nacks = s.Responses(lawWhole), nacks(s) })
	c.Reconnect(keep)
	c.away = false
}

// forget lets go of what a client sees by what mirrors say: if that is taken
// from it later, then because somebody said so.
func (p *play) forget(c *client, t telling) {
	if len(c.held) == 0 {
		return
	}
	for typeURL, names := range p.expected(t.world(), c) {
		for name := range names {
			delete(c.held, typeURL+name)
		}
	}
}

// expected is what a client has to see, computed from nothing but the mirrors.
func (p *play) expected(w *envoy.World, c *client) view {
	kind := envoy.KindEnvoy
	if c.GRPC {
		kind = envoy.KindGRPC
	}
	who := world.Client{Kind: kind, Namespace: c.Namespace, Labels: model.MapOf(map[string]string{"app": c.App})}
	v := view{}
	for t, typeURL := range lawTypes {
		v[typeURL] = map[string]world.Encoded{}
		row := world.Row(t)
		sees := w.View(row, who)
		for name := range w.Names(sees, row) {
			if subject, ok := w.Find(sees, row, name); ok {
				v[typeURL][name] = subject.Encode()
			}
		}
	}
	return v
}

// telling is what the mirrors say at some moment: the records of the sources in
// the order of merging.
type telling struct {
	order  []string
	events []model.Event
}

func (p *play) telling() (t telling) {
	for _, m := range p.present {
		t.order = append(t.order, m.Name)
		t.add(m.Name, p.mirrors[m.Name])
		if since, is := p.marks[m.Name]; is {
			mark := model.Ref{Kind: model.KindSource, Key: model.Key{Source: m.Name, Name: m.Name}}
			t.events = append(t.events, model.Upsert{Record: model.Record{Ref: mark, Spec: model.SourceMark{StaleSince: since}}})
		}
	}
	return t
}

func (t *telling) add(name string, m *mirror) {
	for _, r := range m.records() {
		r.Source, r.Revision, r.Spec = name, 1, inOneSpelling(r.Spec)
		if r.Owner != (model.Ref{}) {
			r.Owner.Source = name
		}
		t.events = append(t.events, model.Upsert{Record: r})
	}
	var held []model.HoldItem
	for ref := range m.held {
		held = append(held, model.HoldItem{Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name})
	}
	hold := model.Ref{Kind: model.KindHold, Key: model.Key{Source: name, Name: "*"}}
	t.events = append(t.events, model.Upsert{Record: model.Record{Ref: hold, Spec: model.Hold{Items: model.ListOf(held...)}}})
}

// world builds what is to be served from nothing but that.
func (t telling) world() *envoy.World {
	b := catalog.NewBuilder(t.order)
	b.Apply(1, t.events)
	return envoy.NewWorld(b.Snapshot(), true, lawRoot)
}

// difference says how what a client holds differs from what it should. One
// that resumed before everything was listed may hold more, and one that NACKs
// something may hold something else of it. But hosts are not looked at.
func (c *client) difference(s *xdsclient.State, want view, but ...string) string {
	var b strings.Builder
	excused := c.excused(s, want)
	passed := func(typeURL, name string) bool {
		return excused[typeURL+name] || slices.ContainsFunc(but, func(host string) bool { return strings.Contains(name, host) })
	}
	for _, typeURL := range lawTypes {
		asked := s.Subscribed(typeURL)
		wants := func(name string) bool { return slices.Contains(asked, "*") || slices.Contains(asked, name) }
		for name, encoded := range want[typeURL] {
			r, ok := s.Get(typeURL, name)
			switch {
			case !wants(name), passed(typeURL, name):
			case !ok && c.resumed && !c.Delta: // sent nothing, because that could take something from it
			case !ok:
				fmt.Fprintf(&b, "%s lacks %s; ", typeURL, name)
			case c.resumed && !c.Delta:
			case !r.IsEncodedAs(encoded.Joined().Body):
				fmt.Fprintf(&b, "%s has another %s: %v; ", typeURL, name, r.Content)
			case c.Delta && r.Version != encoded.Version.String():
				fmt.Fprintf(&b, "%s has version %s of %s, not %s; ", typeURL, r.Version, name, encoded.Version)
			}
		}
		if c.Picky && c.Rollback && c.Delta && slices.Contains(asked, "*") {
			continue // of removals that such a client NACKs with something else, there is no end
		}
		for _, name := range s.Names(typeURL) {
			if _, ok := want[typeURL][name]; !ok && !c.resumed && !passed(typeURL, name) && !c.emptied(s, typeURL, name) {
				fmt.Fprintf(&b, "%s has %s; ", typeURL, name)
			}
		}
	}
	return b.String()
}

// emptied reports whether a client asks for a name by what it took on another
// stream, some time ago, and has been sent that there is nothing: it cannot be
// sent a removal. Should it NACK that, it keeps what it had.
func (c *client) emptied(s *xdsclient.State, typeURL, name string) bool {
	if typeURL != xdsclient.EDS || c.leader == nil || c.Delta {
		return false
	}
	r, _ := s.Get(typeURL, name)
	assignment, _ := r.Content.(*endpointv3.ClusterLoadAssignment)
	empty := emptyAssignment(name)
	return len(assignment.GetEndpoints()) == 0 || c.wouldNACK(empty) && s.Last(empty)
}

func emptyAssignment(name string) xdsclient.Resource {
	carried, err := anypb.New(&endpointv3.ClusterLoadAssignment{ClusterName: name})
	if err != nil {
		panic(err)
	}
	body, err := proto.Marshal(carried)
	if err != nil {
		panic(err)
	}
	r, err := xdsclient.Decode(body)
	if err != nil {
		panic(err)
	}
	return r
}

// holdings names what a client holds, by type and name.
func holdings(s *xdsclient.State) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for _, typeURL := range lawTypes {
			for _, name := range s.Names(typeURL) {
				if !yield(typeURL, name) {
					return
				}
			}
		}
	}
}

// flapped names what was taken from a client and given back although it was
// in its view before and is now.
func (c *client) flapped(s *xdsclient.State, now view) (names []string) {
	for _, typeURL := range lawTypes {
		for _, name := range slices.Sorted(maps.Keys(c.last[typeURL])) {
			if _, still := now[typeURL][name]; still && s.Removals(typeURL, name) > c.removals[typeURL+name] {
				names = append(names, name)
			}
		}
	}
	return names
}

// note remembers how things are, now that all is at rest.
func (c *client) note(s *xdsclient.State, now view) {
	c.last, c.removals = now, map[string]int{}
	for typeURL, names := range now {
		for name := range names {
			c.removals[typeURL+name] = s.Removals(typeURL, name)
		}
	}
}

// whole is what a client holds of the types of which it asks for everything.
func whole(s *xdsclient.State) map[string]bool {
	names := map[string]bool{}
	for typeURL, name := range holdings(s) {
		if slices.Contains(s.Subscribed(typeURL), "*") {
			names[typeURL+name] = true
		}
	}
	return names
}
