package feature_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/isthmus-mesh/isthmus/app"
	"github.com/isthmus-mesh/isthmus/convert/istio"
	"github.com/isthmus-mesh/isthmus/test/testkit/mcpsink"
)

// Every kind of the table that can be carried reaches a control plane from a folder, over
// MCP-over-xDS and MCP v1, and another Isthmus that reads one of them.
func TestEachKindIsCarriedFromFilesToControlPlanes(t *testing.T) {
	t.Parallel()
	var types, collections []string
	files := newRegistry(t, "files")
	files.Write("shop.yaml", service{Host: reviews, Endpoints: []string{"{address: 10.0.0.1}"}})
	carried := (istio.Carry{istio.Everything}).Definitions()
	for _, d := range carried {
		files.Write(d.Name+".yaml", carriedObject(d, "{}"))
		types = append(types, d.Name)
		if d.Collection != "" {
			collections = append(collections, d.Collection)
		}
	}
	first, address := startCarrying(t, files, istio.Everything)

	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	first.clients = append(first.clients, func() { _ = conn.Close() })
	sink := mcpsink.Dial(t, conn, "pilot")
	for _, d := range carried {
		for _, version := range d.Versions() {
			url := strings.Replace(d.URL(), "/"+d.Version+"/", "/"+version+"/", 1)
			if got := istiodOf(t, first, url)(); len(got) != 1 || got["shop/a"].GetBody().GetTypeUrl() != "type.googleapis.com/"+d.Message {
				t.Errorf("as %s there is %v", url, got)
			}
		}
		if d.Collection == "" {
			continue
		}
		sink.Ask(d.Collection, false)
		m := sink.Receive()
		sink.ACK(m, false)
		if m.GetCollection() != d.Collection || len(m.GetResources()) != 1 || m.GetResources()[0].GetBody().GetTypeUrl() != "type.googleapis.com/"+d.Message {
			t.Errorf("in %s there is %v", d.Collection, m)
		}
	}

	overXDS := startWith(t, strings.Replace(reads(first), "xds: {address", "xds: {types: [ServiceEntry, "+strings.Join(types, ", ")+"], address", 1))
	overMCP := startWith(t, fmt.Sprintf("sources:\n- name: upstream\n  mcp: {address: %q, collections: [istio/networking/v1alpha3/serviceentries, %s]}\noutputs:\n  xds: {listen: %q}\nadmin: {listen: %q}\n",
		address, strings.Join(collections, ", "), loopback, loopback))
	for _, d := range carried {
		for reader, has := range map[*isthmus]bool{overXDS: true, overMCP: d.Collection != ""} {
			if !has {
				continue
			}
			await(t, d.Name, func() error {
				if s := reader.Source("upstream"); s.Carried[d.RecordKind()] != 1 || len(s.Rejected) > 0 {
					return fmt.Errorf("%s: carried %v, rejected %v", s.Kind, s.Carried, s.Rejected)
				}
				return nil
			})
		}
	}
}

// A carried object follows its file, and keeps its last good version while the file is wrong.
// Without the setting it is not there at all.
func TestCarriedObjectFollowsItsFile(t *testing.T) {
	t.Parallel()
	files := newRegistry(t, "files")
	rule, _ := istio.ByName("DestinationRule")
	files.Write("shop.yaml", service{Host: reviews, Endpoints: []string{"{address: 10.0.0.1}"}})
	files.Write("rule.yaml", carriedObject(rule, "{host: reviews, trafficPolicy: {connectionPool: {tcp: {connectTimeout: 1s}}}}"))
	isthmus, _ := startCarrying(t, files, rule.Name)
	next := istiodOf(t, isthmus, rule.URL())
	holds := func(host string) {
		t.Helper()
		got := next()
		spec := &networking.DestinationRule{}
		if err := proto.Unmarshal(got["shop/a"].GetBody().GetValue(), spec); err != nil || spec.GetHost() != host {
			t.Fatalf("instead of host %s there is %v, %v", host, got, err)
		}
		if d := spec.GetTrafficPolicy().GetConnectionPool().GetTcp().GetConnectTimeout(); d.GetSeconds() != 1 {
			t.Errorf("the timeout is %v", d)
		}
	}
	holds("reviews")
	files.Write("rule.yaml", carriedObject(rule, "{hosts: [ratings]}"))
	await(t, "the rejection", func() error {
		if s := isthmus.Source("files"); len(s.Rejected) != 1 || s.Rejected[0].Where != "rule.yaml:4" || s.Carried[rule.RecordKind()] != 1 || len(s.Ignored) > 0 {
			return fmt.Errorf("%+v", s)
		}
		return nil
	})
	files.Write("rule.yaml", carriedObject(rule, "{host: ratings, trafficPolicy: {connectionPool: {tcp: {connectTimeout: 1s}}}}"))
	holds("ratings") // and nothing of the wrong version before
	files.Remove("rule.yaml")
	if got := next(); len(got) > 0 {
		t.Errorf("without its file there is %v", got)
	}

	files.Write("rule.yaml", carriedObject(rule, "{host: reviews}"))
	plain := start(t, files)
	await(t, "the count", func() error {
		if s := plain.Source("files"); s.Ignored[rule.Name] != 1 || len(s.Carried) > 0 {
			return errors.New("it is not counted as without effect")
		}
		return nil
	})
	if got := istiodOf(t, plain, rule.URL())(); len(got) > 0 {
		t.Errorf("without the setting there is %v", got)
	}
}

func carriedObject(d istio.Definition, spec string) string {
	return fmt.Sprintf("apiVersion: %s/%s\nkind: %s\nmetadata: {name: a, namespace: shop}\nspec: %s\n", d.Group, d.Version, d.Name, spec)
}

// startCarrying starts an Isthmus that carries kinds of a folder, and returns the address of
// its MCP v1.
func startCarrying(t *testing.T, files *registry, kind string) (i *isthmus, address string) {
	t.Helper()
	text := fmt.Sprintf("sources:\n- name: %s\n  file: {path: %q, carry: [%s]}\noutputs:\n  xds: {listen: %q}\n  mcp: {listen: %q}\nadmin: {listen: %q}\n",
		files.name, files.path, kind, loopback, loopback, loopback)
	i = launch(t, load(t, text), []*registry{files}, func(a *app.App) { address = a.Addr("mcp").String() })
	return i, address
}

// A folder that is gone, and one that is back empty, take no carried object away.
func TestCarriedObjectsSurviveTheLossOfTheirFolder(t *testing.T) {
	t.Parallel()
	files := newRegistry(t, "files")
	rule, _ := istio.ByName("DestinationRule")
	files.Write("shop.yaml", service{Host: reviews, Endpoints: []string{"{address: 10.0.0.1}"}})
	files.Write("rule.yaml", carriedObject(rule, "{host: reviews}"))
	isthmus, _ := startCarrying(t, files, rule.Name)
	isthmus.AwaitSource("files", "live", "")
	for _, change := range []struct {
		state string
		do    func()
	}{{"stale", func() { files.Remove("") }}, {"held", files.Make}} {
		change.do()
		isthmus.AwaitSource("files", change.state, "")
		if got := istiodOf(t, isthmus, rule.URL())(); len(got) != 1 {
			t.Errorf("while the source is %s there is %v", change.state, got)
		}
	}
}
