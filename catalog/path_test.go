package catalog_test

import (
	"testing"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
)

// Of records of one service the one counts that came through fewer Isthmuses, then that of
// the first source: for its attributes, those of endpoints, and the paths that are passed on.
func TestTheShorterPathCounts(t *testing.T) {
	t.Parallel()
	builder := catalog.NewBuilder([]string{"far", "near", "files"})
	var events []model.Event
	record := func(source string, path model.Path, location model.Location, weight uint32, ports ...model.Port) []model.Event {
		service := model.Record{
			Ref: model.Ref{Kind: model.KindService, Key: model.Key{Source: source, Namespace: "shop", Name: "cart"}}, Path: path,
			Spec: model.Service{Hosts: model.ListOf("cart.example"), Location: location, Resolution: model.ResolutionStatic, Ports: model.ListOf(ports...)},
		}
		endpoint := model.Record{Ref: service.Ref, Owner: service.Ref, Path: path, Spec: model.Endpoint{Address: "10.0.0.1", Weight: weight}}
		endpoint.Kind, endpoint.Name = model.KindEndpoint, "cart/10.0.0.1"
		return []model.Event{model.Upsert{Record: service}, model.Upsert{Record: endpoint}}
	}
	http, grpc := model.Port{Number: 80, Name: "http", Protocol: "HTTP"}, model.Port{Number: 90, Name: "grpc", Protocol: "GRPC", Path: "x,y,b"}
	far := record("far", "a,b", model.MeshExternal, 1, http, grpc)
	near := record("near", "b", model.MeshInternal, 2, http)
	events = append(append(events, far...), near...)
	builder.Apply(1, events)
	look := func(location model.Location, path, port80, port90, endpoint model.Path, weight uint32) {
		t.Helper()
		service, ok := builder.Snapshot().Service(catalog.ServiceKey{Namespace: "shop", Host: "cart.example"})
		if !ok {
			t.Fatal("there is no service")
		}
		e, _ := service.Endpoints(80).Get(catalog.EndpointID{Address: "10.0.0.1", Port: 80})
		if service.Location != location || service.Path() != path || e.Path != endpoint || e.Weight != weight {
			t.Errorf("it is %s by %q, with an endpoint of weight %d by %q", service.Location, service.Path(), e.Weight, e.Path)
		}
		if service.PortPath(80) != port80 || service.PortPath(90) != port90 {
			t.Errorf("ports came by %q and %q", service.PortPath(80), service.PortPath(90))
		}
		if service.Endpoints(80).Counts().Total != 1 {
			t.Errorf("it has %d endpoints", service.Endpoints(80).Counts().Total)
		}
		for _, p := range service.Ports {
			if p.Path != "" {
				t.Errorf("port %d has a path, which is none of an output's business", p.Number)
			}
		}
	}
	look(model.MeshInternal, "b", "b", "x,y,b", "b", 2)
	files := record("files", "", model.MeshExternal, 3, http)
	builder.Apply(2, files)
	look(model.MeshExternal, "", "", "x,y,b", "", 3)
	builder.Apply(3, []model.Event{model.Delete{Record: files[0].(model.Upsert).Record}, model.Delete{Record: files[1].(model.Upsert).Record}})
	look(model.MeshInternal, "b", "b", "x,y,b", "b", 2)
	for i, e := range near { // now it comes by a longer way
		u := e.(model.Upsert)
		u.Record.Path = "c,d,b"
		near[i] = u
	}
	change := builder.Apply(4, near)
	look(model.MeshExternal, "a,b", "a,b", "x,y,b", "a,b", 1)
	if len(change.Services) != 1 {
		t.Errorf("changed are %v", change.Services)
	}
}
