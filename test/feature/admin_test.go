package feature_test

import (
	"encoding/json"
	"maps"
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
			conflicts.field string
			conflicts.kept string
			conflicts.lost string
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
			stale number`,
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
			instances.locality string
			instances.network string
			instances.port number
			instances.record string
			instances.servicePort number
			instances.unserved string
			instances.weight number
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
		service{Host: "anywhere.example", Resolution: "NONE"},
		"apiVersion: networking.istio.io/v1\nkind: Gateway\nmetadata: {name: g}\n")
	second.Write("shop.yaml", service{Host: reviews, Resolution: "DNS"})
	isthmus := startWith(t, saving(loopback, t.TempDir(), first, second), first, second)
	dial(t, isthmus, reviews+":80", "shop").AwaitAnswers("one")
	first.Write("shop.yaml", strings.Replace(good.String(), "number: 80", "number: 0", 1),
		service{Host: "anywhere.example", Resolution: "NONE"},
		"apiVersion: networking.istio.io/v1\nkind: Gateway\nmetadata: {name: g}\n")
	isthmus.AwaitRejected("first", "ServiceEntry shop/reviews at shop.yaml:6: spec.ports[0].number: ")
	isthmus.Settle()
	return isthmus
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
