package xds_test

import (
	"fmt"
	"maps"
	"slices"

	"google.golang.org/protobuf/types/known/structpb"
	"pgregory.net/rapid"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output/envoy"
	"github.com/isthmus-mesh/isthmus/test/testkit/xdsclient"
)

const badHost = "bad.example" // clients that NACK find fault with all that leads to it

var (
	namespaces = []string{"a", "b", "c"}
	hosts      = []string{"x.example", "y.example", badHost}
	addresses4 = []string{"10.0.0.1", "10.0.0.2", "10.0.0.3", poison}
	patterns   = []string{"*/*", "./*", "a/*", "*/x.example", "b/*.example", "~/*"}
	exports    = [][]string{nil, {"*"}, {"."}, {"b"}, {"a", "c"}, {".", "b"}}
)

func (r records) refs() []model.Ref { return slices.SortedFunc(maps.Keys(r), model.Ref.Compare) }

// drawRecords draws what one commit writes.
func (h *history) drawRecords() []model.Record {
	drawn := map[model.Ref]model.Record{}
	for range rapid.IntRange(1, 4).Draw(h.t, "records") {
		r := rapid.Custom(drawRecord).Draw(h.t, "record")
		drawn[r.Ref] = r
	}
	return slices.Collect(maps.Values(drawn))
}

func drawRecord(t *rapid.T) model.Record {
	key := model.Key{Source: rapid.SampledFrom(order).Draw(t, "source"), Namespace: rapid.SampledFrom(namespaces).Draw(t, "namespace")}
	host := rapid.SampledFrom(hosts).Draw(t, "host")
	switch rapid.IntRange(0, 6).Draw(t, "kind") {
	case 6:
		return fromSource(key.Source, drawScope(t))
	case 0, 1:
		key.Name = host
		return model.Record{Ref: model.Ref{Kind: model.KindService, Key: key}, Spec: drawService(t, host)}
	case 2:
		key.Name = fmt.Sprint("workload", rapid.IntRange(0, 2).Draw(t, "workload"))
		e := drawEndpoint(t)
		e.Labels = model.MapOf(map[string]string{"app": rapid.SampledFrom([]string{"one", "two"}).Draw(t, "app")})
		return model.Record{Ref: model.Ref{Kind: model.KindWorkload, Key: key}, Spec: model.Workload{Endpoint: e}}
	default:
		owner := model.Ref{Kind: model.KindService, Key: key}
		owner.Name = host
		key.Name = fmt.Sprint(host, "/", rapid.IntRange(0, 2).Draw(t, "endpoint"))
		return model.Record{Ref: model.Ref{Kind: model.KindEndpoint, Key: key}, Owner: owner, Spec: drawEndpoint(t)}
	}
}

// drawScope draws what narrows the view of workloads of a namespace, or of
// everyone who has no narrower one. What the test itself needs is always in it.
func drawScope(t *rapid.T) model.Record {
	return scope(
		rapid.SampledFrom(append(namespaces, rootNamespace)).Draw(t, "scope of"),
		rapid.SampledFrom([]string{"s", "t"}).Draw(t, "scope"),
		rapid.SampledFrom([]string{"", "", "one"}).Draw(t, "app"),
		"*/"+probe, "*/"+tickHost, rapid.SampledFrom(patterns).Draw(t, "pattern"), rapid.SampledFrom(patterns).Draw(t, "pattern"),
	)
}

func drawService(t *rapid.T, host string) model.Service {
	s := model.Service{
		Hosts: model.ListOf(host), Location: model.MeshInternal,
		Resolution: rapid.SampledFrom([]model.Resolution{
			model.ResolutionStatic, model.ResolutionStatic, model.ResolutionStatic, model.ResolutionDNS, model.ResolutionNone,
		}).Draw(t, "resolution"),
		ExportTo: model.ListOf(rapid.SampledFrom(exports).Draw(t, "export to")...),
	}
	protocol := rapid.SampledFrom([]string{"HTTP", "HTTP", "TCP", "HTTP2"})
	ports := []model.Port{{Number: 80, Name: rapid.SampledFrom([]string{"http", "web"}).Draw(t, "name"), Protocol: protocol.Draw(t, "protocol")}}
	if rapid.IntRange(0, 3).Draw(t, "ports") == 0 {
		ports = append(ports, model.Port{Number: 90, Name: "admin", Protocol: protocol.Draw(t, "protocol"), TargetPort: 9090})
	}
	s.Ports = model.ListOf(ports...)
	if rapid.IntRange(0, 2).Draw(t, "selects") == 0 {
		s.WorkloadSelector = model.MapOf(map[string]string{"app": rapid.SampledFrom([]string{"one", "two"}).Draw(t, "app")})
	}
	return s
}

func drawEndpoint(t *rapid.T) model.Endpoint {
	e := model.Endpoint{
		Address:  rapid.SampledFrom(addresses4).Draw(t, "address"),
		Weight:   uint32(rapid.IntRange(0, 2).Draw(t, "weight")),
		Locality: model.Locality{Zone: rapid.SampledFrom([]string{"", "z"}).Draw(t, "zone")},
	}
	if rapid.IntRange(0, 4).Draw(t, "healthy") == 0 {
		e.Health = model.Unhealthy
	}
	if rapid.IntRange(0, 4).Draw(t, "own port") == 0 {
		e.Ports = model.MapOf(map[string]uint32{"http": 8080})
	}
	return e
}

// connect adds a client of some nature.
func (h *history) connect() {
	t := h.t
	a := &actor{
		name: fmt.Sprint("client", len(h.clients)), asked: map[string]bool{},
		kind:      rapid.SampledFrom([]string{envoy.KindEnvoy, envoy.KindGRPC}).Draw(t, "kind"),
		namespace: rapid.SampledFrom(append(namespaces, "")).Draw(t, "namespace"),
		app:       rapid.SampledFrom([]string{"one", "two"}).Draw(t, "app"),
		follows:   rapid.IntRange(0, 2).Draw(t, "follows") == 0,
	}
	agent := "envoy"
	if a.kind == envoy.KindGRPC {
		agent = "gRPC Go"
	}
	node := labelled(a.name, a.app)
	node.UserAgentName = agent
	node.Metadata.Fields["NAMESPACE"] = structpb.NewStringValue(a.namespace)
	config := xdsclient.Config{
		Name: a.name, Node: node, Overlap: !h.patient,
		Rollback: rapid.Bool().Draw(t, "rolls back"),
	}
	if a.nacking = rapid.Bool().Draw(t, "NACKs"); a.nacking {
		config.NACK = nackReason
	}
	if a.follows {
		config.Follow = xdsclient.FollowListeners
		if a.kind == envoy.KindEnvoy {
			config.Follow = xdsclient.FollowClusters
		}
	}
	if rapid.Bool().Draw(t, "delta") {
		a.Client = h.rig.deltaWith(config)
	} else {
		a.Client = h.rig.sotwWith(config)
	}
	h.clients = append(h.clients, a)
	switch {
	case a.follows && a.kind == envoy.KindEnvoy:
		a.subscribe(cds)
	case a.follows:
		a.subscribe(lds, a.drawNames(t, lds)...)
	default:
		h.subscribe(a)
	}
}

// nackReason is what the clients that NACK find fault with.
func nackReason(r xdsclient.Resource) string {
	if r.Type != eds && (r.Name == clusterOf(badHost) || r.Name == badHost+":80") {
		return "it is bad"
	}
	if reason := nackHTTP2(r); reason != "" {
		return reason
	}
	return nackPoison(r)
}

func (a *actor) subscribe(typeURL string, names ...string) {
	a.asked[typeURL] = true
	a.Subscribe(typeURL, names...)
}

// subscribe makes a client ask for something.
func (h *history) subscribe(a *actor) {
	typeURL := rapid.SampledFrom([]string{cds, eds, eds, lds, rds}).Draw(h.t, "type")
	switch first := !a.asked[typeURL]; {
	case first && rapid.IntRange(0, 2).Draw(h.t, "implied") == 0:
		a.subscribe(typeURL)
	case rapid.IntRange(0, 3).Draw(h.t, "everything") == 0:
		a.subscribe(typeURL, "*")
	default:
		a.subscribe(typeURL, a.drawNames(h.t, typeURL)...)
	}
}

func (a *actor) drawNames(t *rapid.T, typeURL string) []string {
	names := rapid.SliceOfNDistinct(rapid.SampledFrom(append(hosts, "none.example")), 1, 3, rapid.ID[string]).Draw(t, "names")
	for i, host := range names {
		if names[i] = clusterOf(host); typeURL == lds {
			names[i] = host + ":80"
		}
	}
	return names
}

// act makes a client do something.
func (h *history) act(a *actor) {
	t := h.t
	if a.away {
		a.Reconnect(rapid.Bool().Draw(t, "keeps"))
		a.away = false
		return
	}
	switch n := rapid.IntRange(0, 10).Draw(t, "does"); {
	case n == 0, n == 10:
		a.Disconnect()
		a.away = true
	case n == 1:
		a.Reconnect(rapid.Bool().Draw(t, "keeps"))
	case n <= 3:
		a.Hold()
		a.holds = true
	case n <= 5:
		a.Release()
		a.holds = false
	case a.follows && a.kind == envoy.KindEnvoy:
		// It asks for everything as it is.
	case a.follows:
		a.subscribe(lds, a.drawNames(t, lds)...)
	case n <= 7:
		h.subscribe(a)
	default:
		h.unsubscribe(a)
	}
}

func (h *history) unsubscribe(a *actor) {
	asked := slices.Sorted(maps.Keys(a.asked))
	if len(asked) == 0 {
		return
	}
	typeURL := rapid.SampledFrom(asked).Draw(h.t, "type")
	names := a.drawNames(h.t, typeURL)
	switch rapid.IntRange(0, 3).Draw(h.t, "unsubscribes") {
	case 0:
		a.Unsubscribe(typeURL, "*")
	case 1:
		a.Unsubscribe(typeURL, append(names, "*")...)
	case 2: // and asks again in the same breath
		a.Unsubscribe(typeURL, names...)
		a.Subscribe(typeURL, names...)
	default:
		a.Unsubscribe(typeURL, names...)
	}
}

func fromSource(source string, r model.Record) model.Record {
	r.Source = source
	return r
}

func speaks(s model.Service, protocol string) bool {
	for port := range s.Ports.All() {
		if port.Protocol == protocol {
			return true
		}
	}
	return false
}

// speakingAll gives all ports of a service one protocol.
func speakingAll(r model.Record, protocol string) model.Record {
	spec := r.Spec.(model.Service)
	ports := spec.Ports.Slice()
	for i := range ports {
		ports[i].Protocol = protocol
	}
	spec.Ports = model.ListOf(ports...)
	r.Spec = spec
	return r
}
