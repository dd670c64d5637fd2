package watch_test

import (
	"crypto/tls"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"
	"pgregory.net/rapid"

	api "github.com/isthmus-mesh/isthmus/api/isthmus/resource/v1alpha1"
	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/test/testkit/authority"
)

// secured returns a setup whose readers have to prove an identity, and the credentials of a
// reader of a namespace.
func secured(t *testing.T) (setup, func(namespace string) credentials.TransportCredentials) {
	t.Helper()
	ca := authority.New(t, "ca")
	pair := ca.Issue("localhost")
	cert, err := tls.X509KeyPair(pair.Cert, pair.Key)
	if err != nil {
		t.Fatal(err)
	}
	server := &tls.Config{
		MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{cert},
		ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: ca.Client().RootCAs,
	}
	return setup{tls: server, dial: credentials.NewTLS(ca.Client(ca.Issue("root", identity(rootNamespace))))}, func(namespace string) credentials.TransportCredentials {
		return credentials.NewTLS(ca.Client(ca.Issue(namespace, identity(namespace))))
	}
}

func identity(namespace string) string {
	return fmt.Sprintf("spiffe://cluster.local/ns/%s/sa/reader", namespace)
}

// copied is a reader's copy of the merged kinds.
type copied struct {
	*reading
	held map[string]string // the content by reference
}

// read takes events until a name is held, and the step that brought it is complete.
func (c *copied) read(until string) {
	c.Helper()
	for arrived := false; !arrived || c.partial || len(c.pending) > 0; {
		e := c.next()
		rec := e.GetUpsert().GetRecord()
		switch {
		case rec != nil:
			c.held[named(rec.GetRef())] = contentOf(rec)
		case e.GetDelete() != nil:
			rec := e.GetDelete().GetRecord()
			if had := c.held[named(rec.GetRef())]; had != contentOf(rec) {
				c.Fatalf("%s is deleted as %s, and was held as %s", named(rec.GetRef()), contentOf(rec), had)
			}
			delete(c.held, named(rec.GetRef()))
		}
		arrived = arrived || rec.GetRef().GetName() == until
	}
}

func named(r *api.Ref) string { return r.GetKind() + " " + r.GetNamespace() + " " + r.GetName() }

func contentOf(r *api.Record) string {
	if e := r.GetMergedEndpoint(); e != nil {
		return fmt.Sprintf("%d %s:%d in %q weight %d of %s, owned by %s", e.GetServicePort(), e.GetEndpoint().GetAddress(), e.GetPort(), e.GetEndpoint().GetNetwork(), e.GetEndpoint().GetWeight(), e.GetSource(), r.GetOwner().GetName())
	}
	s := r.GetMergedService()
	return fmt.Sprintf("%s ports %v to %v of %v", s.GetService().GetHosts(), len(s.GetService().GetPorts()), s.GetService().GetExportTo(), s.GetSources())
}

// visible evaluates slowly what a namespace may see of a snapshot; an empty one may see all.
func visible(s *catalog.Snapshot, namespace string) map[string]string {
	all := map[string]string{}
	for service := range s.Services() {
		to := service.ExportTo.Slice()
		if namespace != "" && len(to) > 0 && !slices.Contains(to, "*") && !slices.Contains(to, namespace) &&
			(!slices.Contains(to, ".") || namespace != service.Key.Namespace) {
			continue
		}
		all["MergedService "+service.Key.Namespace+" "+service.Key.Host] = fmt.Sprintf("%s ports %v to %v of %v", []string{service.Key.Host}, len(service.Ports), to, service.Sources())
		for _, port := range service.Ports {
			for e := range service.Endpoints(port.Number).All() {
				network := e.Network
				if network != "" {
					network += "/"
				}
				name := fmt.Sprintf("MergedEndpoint %s %s/%d/%s%s:%d", service.Key.Namespace, service.Key.Host, port.Number, network, e.Address, e.Port)
				all[name] = fmt.Sprintf("%d %s:%d in %q weight %d of %s, owned by %s", port.Number, e.Address, e.Port, e.Network, e.Weight, e.Record.Source, service.Key.Host)
			}
		}
	}
	return all
}

// Whatever happens, readers of every namespace end with exactly the services that are exported
// to them, and are never sent anything else, nor a revision.
func TestWatchShowsEachNamespaceItsServices(t *testing.T) {
	t.Parallel()
	base, of := secured(t)
	rapid.Check(t, func(rt *rapid.T) {
		r := newRig(t, base)
		builder := catalog.NewBuilder([]string{"east", "west"})
		world := &registries{stored: map[model.Ref]model.Record{}}
		readers := map[string]map[string]*copied{}
		open := func(namespace string) {
			client := api.NewResourceServiceClient(r.conn)
			if namespace != "" {
				client = api.NewResourceServiceClient(r.dial(r.conn.Target(), of(namespace)))
			}
			r.client, readers[namespace] = client, map[string]*copied{}
			for _, kind := range []string{"MergedService", "MergedEndpoint"} {
				readers[namespace][kind] = &copied{r.watch(&api.WatchListRequest{Filter: &api.Filter{Kind: kind}}), map[string]string{}}
			}
		}
		late := rapid.IntRange(0, 3).Draw(rt, "opened after")
		for n := range rapid.IntRange(4, 8).Draw(rt, "steps") {
			if n == late {
				for _, namespace := range []string{"", "a", "b", "c"} {
					open(namespace)
				}
			}
			events := world.step(rt, n)
			r.apply(builder, uint64(n+1), events) //nolint:gosec // it is small
		}
		r.apply(builder, 100, world.marker())
		for namespace, kinds := range readers {
			kinds["MergedService"].read("marker.example.com")
			kinds["MergedEndpoint"].read("marker.example.com/80/10.9.9.9:80")
			held := maps.Clone(kinds["MergedService"].held)
			maps.Copy(held, kinds["MergedEndpoint"].held)
			if want := visible(builder.Snapshot(), namespace); !maps.Equal(held, want) {
				rt.Fatalf("namespace %q ends with\n%s\nand should see\n%s", namespace, lines(held), lines(want))
			}
			for _, kind := range kinds {
				if namespace != "" && kind.at != nil {
					rt.Fatalf("namespace %q was sent the moment %v", namespace, kind.at)
				}
			}
		}
	})
}

func lines(m map[string]string) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(m)) {
		all = append(all, name+": "+m[name])
	}
	return strings.Join(all, "\n")
}

// apply merges events, and publishes the outcome.
func (r *rig) apply(b *catalog.Builder, revision uint64, events []model.Event) {
	change := b.Apply(revision, events)
	change.Waited = true
	r.server.Publish(b.Snapshot(), change)
}

// registries is the records of two sources.
type registries struct{ stored map[model.Ref]model.Record }

// step draws some changes.
func (w *registries) step(rt *rapid.T, n int) (events []model.Event) {
	for range rapid.IntRange(1, 3).Draw(rt, "changes") {
		namespace, host := rapid.SampledFrom([]string{"a", "b"}).Draw(rt, "namespace"), rapid.SampledFrom([]string{"x", "y"}).Draw(rt, "host")
		from := rapid.SampledFrom([]string{"east", "west"}).Draw(rt, "source")
		svc := model.Record{Ref: model.Ref{Kind: model.KindService, Key: model.Key{Source: from, Namespace: namespace, Name: host}}}
		ports := []model.Port{{Number: 80, Name: "http", Protocol: "HTTP"}, {Number: 90, Name: "more", Protocol: "HTTP"}}
		svc.Spec = model.Service{
			Hosts: model.ListOf(host + ".example.com"), Resolution: model.ResolutionStatic, Location: model.MeshInternal,
			Ports:    model.ListOf(ports[:rapid.IntRange(1, 2).Draw(rt, "ports")]...),
			ExportTo: model.ListOf(rapid.SampledFrom([][]string{nil, {"*"}, {"."}, {"a"}, {"b"}, {"c", "."}, {"~"}}).Draw(rt, "export")...),
		}
		address := fmt.Sprintf("10.0.0.%d", rapid.IntRange(1, 3).Draw(rt, "address"))
		endpoint := model.Record{Ref: svc.Ref, Owner: svc.Ref, Spec: model.Endpoint{Address: address, Network: rapid.SampledFrom([]string{"", "east", "west"}).Draw(rt, "network"), Weight: uint32(n + 1)}} //nolint:gosec // it is small
		endpoint.Kind, endpoint.Name = model.KindEndpoint, host+"/"+address
		switch what := rapid.IntRange(0, 5).Draw(rt, "what"); {
		case what == 0:
			events = append(events, w.remove(svc.Ref)...)
		case what == 1 && w.has(endpoint.Ref):
			events = append(events, w.remove(endpoint.Ref)...)
		case what <= 3 && w.has(svc.Ref):
			events = append(events, w.put(endpoint))
		default:
			events = append(events, w.put(svc), w.put(endpoint))
		}
	}
	return events
}

func (w *registries) has(ref model.Ref) bool {
	_, ok := w.stored[ref]
	return ok
}

func (w *registries) put(rec model.Record) model.Event {
	w.stored[rec.Ref] = rec
	return model.Upsert{Record: rec}
}

// remove deletes a record, and the records that it owns.
func (w *registries) remove(ref model.Ref) (events []model.Event) {
	for stored, rec := range maps.Clone(w.stored) {
		if stored == ref || rec.Owner == ref {
			delete(w.stored, stored)
			events = append(events, model.Delete{Record: rec})
		}
	}
	return events
}

// marker is a service that everybody sees.
func (w *registries) marker() []model.Event {
	svc := model.Record{Ref: model.Ref{Kind: model.KindService, Key: model.Key{Source: "east", Namespace: "a", Name: "marker"}}, Spec: model.Service{
		Hosts: model.ListOf("marker.example.com"), Resolution: model.ResolutionStatic, Ports: model.ListOf(model.Port{Number: 80, Name: "http", Protocol: "HTTP"}),
	}}
	endpoint := model.Record{Ref: svc.Ref, Owner: svc.Ref, Spec: model.Endpoint{Address: "10.9.9.9"}}
	endpoint.Kind, endpoint.Name = model.KindEndpoint, "marker/1"
	return []model.Event{w.put(svc), w.put(endpoint)}
}

// Outside the root namespace, records of sources cannot be read by any call, and hidden services
// look like services that do not exist.
func TestWatchHidesEverythingElse(t *testing.T) {
	t.Parallel()
	base, of := secured(t)
	base.sources = []string{"east"}
	r := newRig(t, base)
	builder := catalog.NewBuilder([]string{"east"})
	hidden := service("east", "hidden")
	spec, _ := hidden.Spec.(model.Service)
	spec.ExportTo = model.ListOf(".")
	hidden.Spec = spec
	r.commit(hidden, service("east", "open"))
	r.apply(builder, 1, []model.Event{model.Upsert{Record: hidden}, model.Upsert{Record: service("east", "open")}})
	root := r.client
	r.client = api.NewResourceServiceClient(r.dial(r.conn.Target(), of("other")))

	get := func(c api.ResourceServiceClient, host string) (*api.GetResponse, error) {
		return c.Get(t.Context(), &api.GetRequest{Ref: &api.Ref{Kind: "MergedService", Namespace: "shop", Name: host}})
	}
	if answer, err := get(root, "hidden.example.com"); err != nil || answer.GetRecord().GetRevision() == 0 || answer.GetAt() == nil {
		t.Errorf("the root namespace gets %v, %v", answer, err)
	}
	_, one := get(r.client, "hidden.example.com")
	_, none := get(r.client, "nobody.example.com")
	if status.Code(one) != codes.NotFound || strings.ReplaceAll(one.Error(), "hidden", "nobody") != none.Error() {
		t.Errorf("a hidden service: %v; none: %v", one, none)
	}
	if answer, err := get(r.client, "open.example.com"); err != nil || answer.GetRecord().GetRevision() != 0 || answer.GetRecord().GetGeneration() != 0 || answer.GetAt() != nil {
		t.Errorf("an exported service: %v, %v", answer, err)
	}
	list, err := r.client.List(t.Context(), &api.ListRequest{Filter: &api.Filter{Kind: "MergedService"}, PageBytes: 1})
	if err != nil || len(list.GetRecords()) != 1 || list.GetNextPageToken() != "" || list.GetAt() != nil {
		t.Errorf("the list is %v, %v", list, err)
	}
	ref := &api.Ref{Kind: "Service", Source: "east", Namespace: "shop", Name: "open"}
	_, getErr := r.client.Get(t.Context(), &api.GetRequest{Ref: ref})
	_, listErr := r.client.List(t.Context(), &api.ListRequest{Filter: &api.Filter{Kind: "Service"}})
	_, everything := r.client.List(t.Context(), &api.ListRequest{})
	_, ownedErr := r.client.ListByOwner(t.Context(), &api.ListByOwnerRequest{Owner: ref})
	for call, err := range map[string]error{"get": getErr, "list": listErr, "list of everything": everything, "list by owner": ownedErr} {
		if status.Code(err) != codes.PermissionDenied {
			t.Errorf("%s: %v", call, err)
		}
	}
	w := r.watch(&api.WatchListRequest{Filter: &api.Filter{Kind: "Hold"}})
	if _, err := w.stream.Recv(); status.Code(err) != codes.PermissionDenied {
		t.Errorf("a watch of holds: %v", err)
	}
	w = r.watch(&api.WatchListRequest{Filter: &api.Filter{Kind: "MergedService"}, Held: &api.Moment{Epoch: 1, Revision: 1}})
	if _, err := w.stream.Recv(); status.Code(err) != codes.InvalidArgument {
		t.Errorf("a watch from a moment: %v", err)
	}
	w = r.watch(&api.WatchListRequest{Filter: &api.Filter{Kind: "MergedService"}})
	if s := w.source(); s.GetName() != "east" || !s.GetPrimed() || s.GetState() != "" || s.GetSince() != nil {
		t.Errorf("the source is shown as %v", s)
	}
}
