package xds_test

import (
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/test/testkit/xdsclient"
)

// scope lets workloads of a namespace, or those with a label app, see some hosts.
func scope(namespace, name, app string, hosts ...string) model.Record {
	spec := model.Scope{Hosts: model.ListOf(hosts...)}
	if app != "" {
		spec.WorkloadSelector = model.MapOf(map[string]string{"app": app})
	}
	return model.Record{
		Ref:  model.Ref{Kind: model.KindScope, Key: model.Key{Source: "registry", Namespace: namespace, Name: name}},
		Spec: spec,
	}
}

// labelled is a node of namespace shop with a label app.
func labelled(id, app string) *corev3.Node {
	node := xdsclient.Node(id, "shop", "envoy")
	node.Metadata.Fields["LABELS"] = structpb.NewStructValue(&structpb.Struct{
		Fields: map[string]*structpb.Value{"app": structpb.NewStringValue(app)},
	})
	return node
}

// A scope that comes, changes and goes reaches clients as additions and
// removals of clusters; the strict client checks their order.
func TestAScopeChangeReachesItsClients(t *testing.T) {
	both(t, func(t *testing.T, connect func(*rig, xdsclient.Config) *xdsclient.Client) {
		t.Helper()
		r := newProbed(t, "a.example", "b.example")
		r.put(service("other", "c.example"), endpoint("other", "c.example", "one", "10.0.0.3"))
		c := connect(r, xdsclient.Config{Follow: xdsclient.FollowClusters})
		c.Subscribe(cds)
		c.AwaitHeld(cds, clustersOf("a.example", "b.example", "c.example", probe)...)
		r.put(scope("shop", "s", "", "./a.example", "./"+probe))
		c.AwaitHeld(cds, clustersOf("a.example", probe)...)
		r.put(scope("shop", "s", "", "*/c.example", "./"+probe))
		c.AwaitHeld(cds, clustersOf("c.example", probe)...)
		c.AwaitHeld(eds, clustersOf("c.example", probe)...)
		r.remove(scope("shop", "s", ""))
		c.AwaitHeld(cds, clustersOf("a.example", "b.example", "c.example", probe)...)
		c.AwaitHeld(eds, clustersOf("a.example", "b.example", "c.example", probe)...)
	})
}

// The scope of the root namespace is everybody's, until one is more specific.
func TestScopesByLabelNamespaceAndRoot(t *testing.T) {
	r := newProbed(t, "a.example", "b.example")
	r.put(scope(rootNamespace, "default", "", "*/"+probe, "./tick.example"))
	web := r.deltaWith(xdsclient.Config{Node: labelled("web", "web")})
	db := r.sotwWith(xdsclient.Config{Node: labelled("db", "db")})
	elsewhere := r.delta("elsewhere", "other")
	for _, c := range []*xdsclient.Client{web, db, elsewhere} {
		c.Subscribe(cds)
		c.AwaitHeld(cds, clusterOf(probe))
	}
	r.put(scope("shop", "general", "", "./a.example", "./"+probe))
	web.AwaitHeld(cds, clustersOf("a.example", probe)...)
	db.AwaitHeld(cds, clustersOf("a.example", probe)...)
	r.put(scope("shop", "web", "web", "./b.example", "./"+probe))
	web.AwaitHeld(cds, clustersOf("b.example", probe)...)
	r.dispatched()
	db.Quiet(cds, clusterOf(probe))
	db.AwaitHeld(cds, clustersOf("a.example", probe)...)
	elsewhere.Quiet(cds, clusterOf(probe))
	elsewhere.AwaitHeld(cds, clusterOf(probe))
}

// A name that a scope hides is as one that does not exist, and comes when the
// scope lets it.
func TestANameOutOfScopeComesWhenItIsIn(t *testing.T) {
	both(t, func(t *testing.T, connect func(*rig, xdsclient.Config) *xdsclient.Client) {
		t.Helper()
		r := newProbed(t, "a.example")
		r.put(scope("shop", "s", "", "./"+probe))
		c := connect(r, xdsclient.Config{})
		c.Subscribe(cds, clustersOf("a.example", probe)...)
		c.AwaitHeld(cds, clusterOf(probe))
		r.put(speaking(service("shop", "a.example"), "HTTP2")) // a change out of its sight
		r.dispatched()
		c.AwaitHeld(cds, clusterOf(probe))
		r.put(scope("shop", "s", "", "./*"))
		c.AwaitHeld(cds, clustersOf("a.example", probe)...)
	})
}
