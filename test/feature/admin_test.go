package feature_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestAdminAPIKeepsItsShape compares the keys of every answer with those that
// scripts and dashboards may rely on. One that is added here is there to stay;
// one that goes breaks somebody.
func TestAdminAPIKeepsItsShape(t *testing.T) {
	t.Parallel()
	isthmus := startEventful(t)
	for path, want := range map[string]string{
		"/api/v1/sources": `
			age string
			endpoints number
			held number
			ignored.Gateway number
			kind string
			lastListing string
			name string
			reason string
			refused.field string
			refused.object string
			refused.reason string
			refused.where string
			services number
			since string
			state string`,
		"/api/v1/services": `
			addresses string
			conflicts.field string
			conflicts.kept string
			conflicts.lost string
			conflicts.output string
			conflicts.reason string
			endpoints.healthy number
			endpoints.total number
			endpoints.unserved number
			host string
			namespace string
			notOffered.kind string
			notOffered.output string
			notOffered.reason string
			ports.name string
			ports.number number
			ports.protocol string
			resolution string
			revision number
			sources string
			stale number
			written string`,
		"/api/v1/services/" + reviews: `
			conflicts.field string
			conflicts.kept string
			conflicts.lost string
			conflicts.reason string
			endpoints.healthy number
			endpoints.total number
			endpoints.unserved number
			host string
			instances.address string
			instances.counts bool
			instances.health string
			instances.labels.version string
			instances.lastChanged string
			instances.lastChangedAge string
			instances.locality string
			instances.network string
			instances.port number
			instances.record string
			instances.servicePort number
			instances.unserved string
			instances.weight number
			lastChanged string
			lastChangedAge string
			namespace string
			ports.name string
			ports.number number
			ports.protocol string
			records.age string
			records.leftOut string
			records.place string
			records.record string
			records.stale string
			resolution string
			revision number
			sources string
			stale number`,
		"/api/v1/clients": `
			age string
			connectedSince string
			id string
			identity string
			kind string
			namespace string
			output string
			protocol string
			proven bool
			types.TYPE.accepted string
			types.TYPE.acks number
			types.TYPE.age string
			types.TYPE.held number
			types.TYPE.pending number
			types.TYPE.reason string
			types.TYPE.refused number
			types.TYPE.responses number
			types.TYPE.sent string
			types.TYPE.state string
			types.TYPE.subscribed number`,
		"/api/v1/clients/" + url.PathEscape(nameOf(reviews+":80", "shop")) + "/resources?limit=1": `
			next string
			resources.age string
			resources.connectedSince string
			resources.name string
			resources.output string
			resources.pending bool
			resources.protocol string
			resources.reason string
			resources.state string
			resources.type string
			resources.version string`,
	} {
		var answer any
		isthmus.mustRead(path, &answer)
		got := map[string]bool{}
		keys(answer, "", got)
		if diff := cmp.Diff(strings.Fields(want), strings.Fields(strings.Join(slices.Sorted(maps.Keys(got)), "\n"))); diff != "" {
			t.Errorf("GET %s, -wanted +got:\n%s", path, diff)
		}
	}
}

// startEventful starts an Isthmus where everything happens that the admin API
// can tell of.
func startEventful(t *testing.T) *isthmus {
	t.Helper()
	first, second, one := newRegistry(t, "first"), newRegistry(t, "second"), startBackend(t, "one")
	good := service{Host: reviews, Endpoints: []string{
		one.Endpoint("labels: {version: v1}", "locality: a/b", "network: net-1", "weight: 2"),
		"{address: fe80::1%eth0}", // no client is given it
	}}
	first.Write("shop.yaml", good,
		service{Host: "anywhere.example", Resolution: "NONE"}, service{Host: "Anywhere.example", Name: "again", Resolution: "NONE"},
		atOneAddress("one"), atOneAddress("two"), "apiVersion: networking.istio.io/v1\nkind: Gateway\nmetadata: {name: g}\n")
	second.Write("shop.yaml", service{Host: reviews, Resolution: "DNS"})
	configuration := strings.Replace(saving(loopback, t.TempDir(), first, second), "outputs:\n", fmt.Sprintf("outputs:\n  watch: {listen: %q}\n", loopback), 1)
	isthmus := startWith(t, configuration, first, second)
	dial(t, isthmus, reviews+":80", "shop").AwaitAnswers("one")
	good.Endpoints[0] = one.Endpoint("labels: {version: v1}", "locality: a/b", "network: net-1", "weight: 3") // so it has a time
	first.Write("shop.yaml", good, service{Host: "anywhere.example", Resolution: "NONE"})
	isthmus.Settle()
	first.Write("shop.yaml", strings.Replace(good.String(), "number: 80", "number: 0", 1),
		service{Host: "anywhere.example", Resolution: "NONE"}, service{Host: "Anywhere.example", Name: "again", Resolution: "NONE"},
		atOneAddress("one"), atOneAddress("two"), "apiVersion: networking.istio.io/v1\nkind: Gateway\nmetadata: {name: g}\n")
	isthmus.AwaitRejected("first", "ServiceEntry shop/reviews at shop.yaml:6: spec.ports[0].number: ")
	isthmus.Settle()
	return isthmus
}

// atOneAddress is a service that shares its address and its port with others.
func atOneAddress(name string) string {
	return service{Host: name + ".example", Ports: "[{number: 9000, name: tcp, protocol: TCP}]"}.String() + "  addresses: [10.96.0.1]\n"
}

// keys collects the paths of all scalars, without indexes.
func keys(value any, path string, into map[string]bool) {
	switch v := value.(type) {
	case map[string]any:
		for key, inner := range v {
			if strings.HasPrefix(key, "type.googleapis.com/") {
				key = "TYPE"
			}
			keys(inner, strings.TrimPrefix(path+"."+key, "."), into)
		}
	case []any:
		for _, inner := range v {
			keys(inner, path, into)
		}
	case string:
		into[path+" string"] = true
	case float64:
		into[path+" number"] = true
	case bool:
		into[path+" bool"] = true
	case nil:
		into[path+" null"] = true
	}
}

// TestListsAreNeverNull asks an Isthmus that has nothing to show.
func TestListsAreNeverNull(t *testing.T) {
	t.Parallel()
	isthmus := start(t, newRegistry(t, "files"))
	isthmus.AwaitSource("files", "live", "")
	for _, path := range []string{"/api/v1/services", "/api/v1/clients"} {
		var list json.RawMessage
		isthmus.mustRead(path, &list)
		if got := strings.TrimSpace(string(list)); got != "[]" {
			t.Errorf("GET %s is %s, want []", path, got)
		}
	}
	code, body, err := isthmus.get("/api/v1/services/nobody.example")
	if code != 404 || err != nil || !strings.Contains(body, `no service "nobody.example"`) {
		t.Errorf("an unknown service is answered %d %s %v", code, body, err)
	}
}

// TestAServiceShowsWhatAnotherHas has two services of which Envoys would take one, and
// asks what the one lacks that does not own its name.
func TestAServiceShowsWhatAnotherHas(t *testing.T) {
	t.Parallel()
	registry := newRegistry(t, "files")
	registry.Write("shop.yaml", service{Host: "reviews.shop"}, service{Host: "reviews.shop.svc.cluster.local", Name: "other"})
	isthmus := start(t, registry)
	isthmus.AwaitSource("files", "live", "")
	type conflict struct{ Output, Field, Kept, Lost, Reason string }
	conflictsOf := func(host string) []conflict {
		var found []struct{ Conflicts []conflict }
		isthmus.mustRead("/api/v1/services/"+host, &found)
		return found[0].Conflicts
	}
	await(t, "the conflict", func() error {
		want := []conflict{{
			"xds", "ports[80].domain", "Service files:shop/other", "Service files:shop/reviews",
			"requests at port 80 for reviews.shop go to reviews.shop.svc.cluster.local of namespace shop in every namespace that sees both, and not to reviews.shop; " +
				"choose another host for it, or another port",
		}}
		if diff := cmp.Diff(want, conflictsOf("reviews.shop")); diff != "" {
			return fmt.Errorf("-want +got:\n%s", diff)
		}
		return nil
	})
	if has := conflictsOf("reviews.shop.svc.cluster.local"); len(has) > 0 {
		t.Errorf("the other one lacks %v", has)
	}
	registry.Write("shop.yaml", service{Host: "reviews.shop"})
	await(t, "no conflict", func() error {
		if left := conflictsOf("reviews.shop"); len(left) > 0 {
			return fmt.Errorf("there are %v", left)
		}
		return nil
	})
}

// TestResourcesOfAClientArePaged reads what a gRPC client holds, page by page and type
// by type.
func TestResourcesOfAClientArePaged(t *testing.T) {
	t.Parallel()
	registry, one := newRegistry(t, "files"), startBackend(t, "one")
	registry.Write("shop.yaml", service{Host: reviews, Endpoints: []string{one.Endpoint()}})
	isthmus := start(t, registry)
	dial(t, isthmus, reviews+":80", "shop").AwaitAnswers("one")
	path := "/api/v1/clients/" + url.PathEscape(nameOf(reviews+":80", "shop")) + "/resources"
	type page struct {
		Resources []struct{ Type, Name, Version, State string }
		Next      string
	}
	var whole page
	await(t, "everything to be ACKed", func() error {
		whole = page{}
		isthmus.mustRead(path, &whole)
		for _, r := range whole.Resources {
			if r.State != "accepted" || r.Version == "" {
				return fmt.Errorf("%+v", r)
			}
		}
		if len(whole.Resources) != 4 {
			return fmt.Errorf("there are %+v", whole.Resources)
		}
		return nil
	})
	var paged page
	for next, pages := "", 0; pages == 0 || next != ""; pages++ {
		var p page
		isthmus.mustRead(path+"?limit=1&from="+next, &p)
		paged.Resources, next = append(paged.Resources, p.Resources...), p.Next
	}
	if diff := cmp.Diff(whole, paged); diff != "" {
		t.Errorf("in pages of one, -want +got:\n%s", diff)
	}
	var listeners page
	isthmus.mustRead(path+"?type="+url.QueryEscape("type.googleapis.com/envoy.config.listener.v3.Listener"), &listeners)
	if len(listeners.Resources) != 1 || listeners.Resources[0].Name != reviews+":80" {
		t.Errorf("of listeners it has %+v", listeners.Resources)
	}
	for query, want := range map[string]string{
		"?limit=0":    `limit: "0" is not a number from 1 to 5000`,
		"?limit=many": `limit: "many" is not a number from 1 to 5000`,
		"?from=%7B":   "from: not a page token; use the value of next from the previous page",
		"?from=e30x":  "from: not a page token",
	} {
		code, body, err := isthmus.get(path + query)
		if code != 400 || err != nil || !strings.Contains(body, want) {
			t.Errorf("%s is answered %d %s %v", query, code, body, err)
		}
	}
	code, body, err := isthmus.get("/api/v1/clients/nobody/resources")
	if code != 404 || err != nil || !strings.Contains(body, `no client "nobody" is connected`) {
		t.Errorf("an unknown client is answered %d %s %v", code, body, err)
	}
}
