package catalog_test

import (
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/isthmus-mesh/isthmus/model"
)

// Everything here is drawn from so small a world that records meet: on hosts,
// on ports, on places, on labels.

// universe lists every record there may be.
var universe = func() []model.Ref {
	var refs []model.Ref
	for _, source := range sources {
		refs = append(refs, mark(source).Ref)
		for kind, names := range map[model.Kind][]string{
			model.KindService:  {"x/s", "x/t", "x/s/t", "y/s"},
			model.KindEndpoint: {"x/s/1", "x/s/2", "x/s/t/1", "x/t/1", "y/s/1"},
			model.KindWorkload: {"x/v", "x/w", "y/v"},

			"Novelty": {"x/o", "y/o"},
			"Other":   {"x/o"},

			model.KindHold: {"x/h"},
		} {
			for _, name := range names {
				refs = append(refs, model.Ref{Kind: kind, Key: model.Key{Source: source, Namespace: name[:1], Name: name[2:]}})
			}
		}
	}
	slices.SortFunc(refs, model.Ref.Compare)
	return refs
}()

// below draws a number from 0 to n-1, each as likely as any other. What rapid
// draws by itself is mostly small, and so the records would hardly ever meet.
func below(t *rapid.T, n int) int {
	drawn := 0
	for range 7 {
		drawn *= 2
		if rapid.Bool().Draw(t, "bit") {
			drawn++
		}
	}
	return drawn % n
}

func pick[T any](t *rapid.T, values ...T) T { return values[below(t, len(values))] }

func drawRecord(t *rapid.T, ref model.Ref) model.Record {
	r := owned(model.Record{Ref: ref, Revision: uint64(1 + below(t, 9))})
	if !ref.Kind.Reserved() {
		r.Path = pick[model.Path](t, "", "", "", "far", "near", "far,near")
	}
	switch ref.Kind {
	case model.KindService:
		r.Spec = drawService(t)
		r.Place = pick(t, "", "", "shop.yaml")
		if below(t, 4) == 3 {
			// One instant as several clocks show it.
			zone := time.FixedZone("", 3600*below(t, 2))
			r.Status = model.Status{Stale: "a bad port", Since: time.Unix(1e9, 0).In(zone)}
		}
	case model.KindEndpoint:
		r.Spec = drawEndpoint(t)
		if ref.Name == "s/t/1" { // which either may own, whatever its name
			r.Owner.Name = pick(t, "s", "s/t")
		}
	case model.KindWorkload:
		r.Spec = model.Workload{Meta: drawMeta(t), Endpoint: drawEndpoint(t), Only: pick(t, model.List[string]{}, model.ListOf("H."), model.ListOf("*.w", "g"))}
	case model.KindSource:
		r.Spec = model.SourceMark{StaleSince: pick(t, time.Time{}, time.Time{}, time.Unix(1e9, 0))}
	case model.KindHold:
		r.Spec = drawHold(t)
	default:
		r.Spec = model.Opaque{Meta: drawMeta(t), Type: pick(t, "", "t"), Content: pick(t, "{}", "[]")}
		r.Place = pick(t, "", "", "shop.yaml")
	}
	return r
}

// drawHold draws what is held, of which no two items say the same of a record.
func drawHold(t *rapid.T) model.Hold {
	h := model.Hold{Reason: pick(t, "not listed", "gone"), Everything: below(t, 4) == 3}
	for _, item := range []model.HoldItem{
		{Kind: model.KindService, Namespace: "x", Name: "s", Extent: model.WithOwned},
		{Kind: model.KindService, Namespace: "x", Name: "s/t", Extent: model.OnlyOwned},
		{Kind: model.KindService, Namespace: "y", Name: "s"},
		{Kind: model.KindEndpoint, Namespace: "x", Name: "s/1"},
		{Kind: model.KindWorkload, Namespace: "x", Name: "v", Extent: model.WithOwned},
		{Kind: "Novelty", Namespace: "x", Name: "o", Extent: model.WithOwned},
	} {
		if rapid.Bool().Draw(t, "held") {
			h.Items = model.ListOf(append(h.Items.Slice(), item)...)
		}
	}
	return h
}

func drawService(t *rapid.T) model.Service {
	s := model.Service{
		Meta:             drawMeta(t),
		Hosts:            pick(t, model.ListOf("h"), model.ListOf("h"), model.ListOf("H."), model.ListOf("g"), model.ListOf("h", "G"), model.ListOf("*.W.", "h", "H")),
		Addresses:        pick(t, model.List[string]{}, model.List[string]{}, model.ListOf("10.9.9.9"), model.ListOf("10.9.9.9/32", "10.8.1.0/16", "FD00::1"), model.ListOf("::ffff:10.9.9.9"), model.ListOf("::", "0.0.0.0/32")),
		Cluster:          pick(t, "", "", "east", "west"),
		Location:         pick(t, model.MeshInternal, model.MeshInternal, model.MeshExternal),
		Resolution:       pick(t, model.ResolutionStatic, model.ResolutionStatic, model.ResolutionDNS, model.ResolutionNone),
		ExportTo:         pick(t, model.List[string]{}, model.ListOf("*"), model.ListOf("."), model.ListOf("y"), model.ListOf("~")),
		SubjectAltNames:  pick(t, model.List[string]{}, model.List[string]{}, model.ListOf("spiffe://x")),
		WorkloadSelector: pick(t, model.Labels{}, labels("app", "a"), labels("app", "b"), labels("app", "a", "v", "1")),
		Traffic: pick(t, model.Traffic{}, model.Traffic{}, model.Traffic{}, model.Traffic{NodeLocal: true},
			model.Traffic{Prefer: model.PreferSameZone}, model.Traffic{Prefer: model.PreferSameNode}, model.Traffic{Affinity: model.ClientIP},
			model.Traffic{Headless: true}, model.Traffic{Headless: true}, model.Traffic{ClusterLocal: true}),
	}
	var ports []model.Port
	for _, number := range []uint32{80, 81} {
		if below(t, 4) == 0 {
			continue
		}
		name := map[uint32][]string{80: {"http", "web"}, 81: {"grpc", "tls"}}[number]
		ports = append(ports, model.Port{
			Number: number, Name: pick(t, name...), Protocol: pick(t, "HTTP", "TCP", "TCP", "UDP"), TargetPort: pick[uint32](t, 0, 0, 8080),
			TargetName: pick(t, "", "", "", "web"),
		})
		if below(t, 4) == 0 && !ports[len(ports)-1].IsUDP() {
			ports = append(ports, model.Port{Number: number, Name: "dns", Protocol: "UDP"})
		}
	}
	s.Ports = model.ListOf(ports...)
	return s
}

func drawEndpoint(t *rapid.T) model.Endpoint {
	return model.Endpoint{
		Address:    pick(t, "10.0.0.1", "10.0.0.1", "10.0.0.2", "unix:///s", "unix:///S", "h", "H.", "fd00::1", "FD00::1", "::ffff:10.0.0.1", ""),
		Also:       pick(t, model.List[string]{}, model.List[string]{}, model.ListOf("fd00::1"), model.ListOf("10.0.0.1", "FD00::1"), model.ListOf("FD00:0::1", "10.0.0.2", "no address")),
		Network:    pick(t, "", "", "", "n", "m"),
		Ports:      pick(t, model.Map[uint32]{}, model.Map[uint32]{}, target("http", 8080), target("web", 8081), target("grpc", 80)),
		Exact:      pick(t, false, false, true),
		Labels:     pick(t, labels("app", "a"), labels("app", "a", "v", "1"), labels("app", "b", "v", "1"), model.Labels{}),
		Weight:     pick[uint32](t, 0, 1, 1, 5, 9),
		Node:       pick(t, "", "node-1"),
		Locality:   pick(t, model.Locality{}, model.Locality{}, model.Locality{Region: "r", Zone: "z"}),
		Health:     pick(t, model.Healthy, model.Healthy, model.Unhealthy, model.Draining),
		Registered: pick[int64](t, 0, 0, 1, 2),
		// Few, as endpoints of a service have.
		ServiceAccount: pick(t, "", "a", "b"),
	}
}

func drawMeta(t *rapid.T) model.Meta {
	m := model.Meta{Labels: pick(t, model.Labels{}, labels("team", "a")), Annotations: pick(t, model.Labels{}, labels("note", "1"))}
	if below(t, 4) == 3 {
		m.Created = time.Unix(1e9, 0).In(time.FixedZone("", 3600*below(t, 2)))
	}
	return m
}

// drawState draws what a store may hold.
func drawState(t *rapid.T) state {
	s := state{}
	for _, ref := range universe {
		if rapid.Bool().Draw(t, "there") {
			s[ref] = drawRecord(t, ref)
		}
	}
	return s
}

// drawCommit draws changes of some records of a store that holds now.
func drawCommit(t *rapid.T, now state) []model.Event {
	var events []model.Event
	changed := map[model.Ref]bool{}
	for range pick(t, 1, 1, 2, 5) {
		ref := pick(t, universe...)
		held, ok := now[ref]
		switch {
		case changed[ref]:
			continue // a commit writes a record once
		case ok && below(t, 3) == 0:
			events = append(events, model.Delete{Record: held, Revision: 1})
		case ok && below(t, 3) > 0:
			events = append(events, model.Upsert{Record: vary(t, held)})
		default:
			events = append(events, model.Upsert{Record: drawRecord(t, ref)})
		}
		changed[ref] = true
	}
	return events
}

// drawHistory draws the commits of a store that starts empty.
func drawHistory(t *rapid.T) [][]model.Event {
	now := drawState(t)
	history := [][]model.Event{now.events()}
	for range 10 {
		commit := drawCommit(t, now)
		now.take(commit)
		history = append(history, commit)
	}
	return history
}

// vary draws a record that differs from another in one field at most.
func vary(t *rapid.T, r model.Record) model.Record {
	other := drawRecord(t, r.Ref)
	switch spec := r.Spec.(type) {
	case model.Service:
		from := other.Spec.(model.Service)
		pick(t,
			func() { spec.Meta = from.Meta },
			func() { spec.Hosts = from.Hosts },
			func() { spec.Addresses = from.Addresses },
			func() { spec.Ports = from.Ports },
			func() { spec.Resolution = from.Resolution },
			func() { spec.ExportTo = from.ExportTo },
			func() { spec.WorkloadSelector = from.WorkloadSelector },
			func() { r.Path = other.Path },
			func() { r.Status = other.Status },
		)()
		r.Spec = spec
	case model.Endpoint:
		pick(t,
			func() { r.Spec = varyEndpoint(t, spec, other.Spec.(model.Endpoint)) },
			func() { r.Path = other.Path },
			func() { r.Status = other.Status },
		)()
	case model.Workload:
		from := other.Spec.(model.Workload)
		pick(t,
			func() { spec.Meta = from.Meta },
			func() { spec.Endpoint = varyEndpoint(t, spec.Endpoint, from.Endpoint) },
			func() { r.Status = other.Status },
		)()
		r.Spec = spec
	case model.Opaque:
		from := other.Spec.(model.Opaque)
		pick(t,
			func() { spec.Meta = from.Meta },
			func() { spec.Type = from.Type },
			func() { spec.Content = from.Content },
			func() { r.Place = other.Place },
		)()
		r.Spec = spec
	}
	return r
}

func varyEndpoint(t *rapid.T, e, from model.Endpoint) model.Endpoint {
	pick(t,
		func() { e.Address = from.Address },
		func() { e.Network = from.Network },
		func() { e.Ports = from.Ports },
		func() { e.Labels = from.Labels },
		func() { e.Health = from.Health },
		func() { e.Registered = from.Registered },
	)()
	return e
}

func labels(pairs ...string) model.Labels {
	m := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i]] = pairs[i+1]
	}
	return model.MapOf(m)
}

func target(name string, port uint32) model.Map[uint32] {
	return model.MapOf(map[string]uint32{name: port})
}
