package servicecenter

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source"
)

// graphPlace is the place of all records made from the dependencies. It has no slash,
// so it is no service's place.
const graphPlace = "dependencies"

// edge records that a consumer uses a provider.
type edge struct{ consumer, provider listed }

// graph is the known graph of consumers and providers.
type graph struct {
	edges   []edge
	known   bool // the graph has been read
	due     time.Time
	trouble string // why it could not be read; empty if it could
	objects []source.Object
	notices []source.Notice
	changed bool // since it was listed last
}

// decodeGraph reads the answer of the registry's governance API. The answer contains
// every service, so that of an empty registry has no field at all.
func decodeGraph(body []byte, empty bool) ([]edge, error) {
	var answer struct {
		All *[]struct {
			Service   service   `json:"microService"`
			Providers []service `json:"providers"`
		} `json:"allServicesDetail"`
		registryError
	}
	if err := unmarshal(body, &answer); err != nil {
		return nil, err
	}
	if answer.Code != "" && answer.Code != "0" {
		return nil, &answer.registryError
	}
	if answer.All == nil {
		if empty && isBare(body) {
			return nil, nil
		}
		return nil, lacks("allServicesDetail", body)
	}
	var edges []edge
	for _, detail := range *answer.All {
		if detail.Service.Properties[watcherProperty] != "" {
			continue
		}
		for _, p := range detail.Providers {
			edges = append(edges, edge{detail.Service.listed(), p.listed()})
		}
	}
	return edges, nil
}

func (s service) listed() listed { return listed{Key: s.key(), version: s.Version, id: s.ID} }

// dependencies reads the graph. Empty tells whether the registry lists no services.
func (c *client) dependencies(ctx context.Context, empty bool) (edges []edge, err error) {
	err = c.do(ctx, request{
		what: "read the dependencies", method: http.MethodGet, path: []string{c.config.Project, "govern", "microservices"},
		query: "options=dependencies",
		read:  func(body []byte) (err error) { edges, err = decodeGraph(body, empty); return err },
	})
	return edges, err
}

// readGraph reads the dependencies if they are due. The services are mirrored even if
// the dependencies cannot be read.
func (s *Source) readGraph(ctx context.Context, now time.Time, empty bool) error {
	g, every := &s.graph, s.config.Dependencies.Poll
	if every == 0 {
		return nil
	}
	if !now.Before(g.due) {
		edges, err := s.client.dependencies(ctx, empty)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		g.take(edges, err)
		g.due = now.Add(every)
	}
	if g.known {
		g.become(s.state.graphObjects(g.edges, s.scoping))
	}
	return nil
}

func (g *graph) take(edges []edge, err error) {
	reason := ""
	if err != nil {
		reason = err.Error() + "; what was known stays, and reading is tried again"
	} else {
		g.edges, g.known = edges, true
	}
	g.changed = g.changed || g.trouble != reason
	g.trouble = reason
}

// become stores the objects and notices of the graph, and notes whether they changed.
func (g *graph) become(objects []source.Object, notices []source.Notice) {
	same := slices.EqualFunc(g.objects, objects, func(a, b source.Object) bool { return a.Record.SameContent(b.Record) })
	g.changed = g.changed || !same || !slices.Equal(g.notices, notices)
	g.objects, g.notices = objects, notices
}

// enter adds the objects and notices of the graph to a listing of its place.
func (g *graph) enter(listing *source.Listing) {
	listing.Objects = append(listing.Objects, g.objects...)
	listing.Notices = g.notices
	if g.trouble != "" {
		listing.Rejected = append(listing.Rejected, source.Rejection{
			Place: graphPlace, Object: "the dependencies", Where: graphPlace, Reason: g.trouble,
		})
	}
}

// graphObjects returns the records made of the graph: for each consumer with a name
// in the mesh, its providers with a name. If scopes are configured, they are added,
// with notices for consumers that get none.
func (s *state) graphObjects(edges []edge, scoping *scoping) ([]source.Object, []source.Notice) {
	s.rename()
	providers, scoped := uses{}, uses{}
	for _, e := range edges {
		consumer, provider := s.identify(e.consumer.Key, e.consumer.version), s.identify(e.provider.Key, e.provider.version)
		called, ok := s.called.of[provider]
		if _, known := s.called.of[consumer]; !ok || !known {
			continue
		}
		providers.add(consumer, called)
		scoped.add(scoping.identify(consumer, e.consumer.version), called)
	}
	var objects []source.Object
	for _, consumer := range slices.SortedFunc(maps.Keys(providers), order{}.compare) {
		objects = append(objects, consumption(s.called.of[consumer], sortedNames(providers[consumer])))
	}
	if scoping == nil {
		return objects, nil
	}
	scopes, notices := scoping.objects(s.consumers(scoping), scoped)
	return append(objects, scopes...), notices
}

// uses maps each consumer to the services it uses.
type uses map[Identity]map[name]bool

func (u uses) add(consumer Identity, provider name) {
	if u[consumer] == nil {
		u[consumer] = map[name]bool{}
	}
	u[consumer][provider] = true
}

// consumers returns the services with a name, as scopes distinguish them, each with
// its name.
func (s *state) consumers(scoping *scoping) map[Identity]name {
	all := make(map[Identity]name, len(s.called.of))
	for _, l := range s.members {
		i := s.identify(l.Key, l.version)
		if called, ok := s.called.of[i]; ok {
			all[scoping.identify(i, l.version)] = called
		}
	}
	return all
}

func sortedNames(set map[name]bool) []name {
	return slices.SortedFunc(maps.Keys(set), func(a, b name) int {
		return cmp.Or(cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.host, b.host))
	})
}

func consumption(consumer name, providers []name) source.Object {
	list := make([]model.ServiceName, len(providers))
	for i, p := range providers {
		list[i] = model.ServiceName{Namespace: p.namespace, Host: p.host}
	}
	return source.Object{Record: model.Record{
		Ref:   model.Ref{Kind: model.KindConsumption, Key: model.Key{Namespace: consumer.namespace, Name: consumer.host}},
		Place: graphPlace,
		Spec: model.Consumption{
			Consumer:  model.ServiceName{Namespace: consumer.namespace, Host: consumer.host},
			Providers: model.ListOf(list...),
		},
	}}
}

// mustJSON encodes a value that can always be encoded.
func mustJSON(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(text)
}
