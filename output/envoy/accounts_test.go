package envoy

import (
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output/envoy/policy"
	"github.com/isthmus-mesh/isthmus/output/envoy/reach"
	"github.com/isthmus-mesh/isthmus/push/world"
)

// The names that a server's certificate may have follow the accounts of the endpoints: the
// first endpoint of an account brings its name, and the last one takes it along. Another
// endpoint of the same account changes no name.
func TestNamesInCertificatesFollowTheAccounts(t *testing.T) {
	t.Parallel()
	owner := model.Ref{Kind: model.KindService, Key: model.Key{Source: "first", Namespace: "n", Name: "p"}}
	endpoint := func(address, account string) model.Record {
		ref := model.Ref{Kind: model.KindEndpoint, Key: owner.Key}
		ref.Name += "/" + address
		return model.Record{Ref: ref, Owner: owner, Spec: model.Endpoint{Address: address, ServiceAccount: account}}
	}
	settings := NewTranslator()
	settings.Hosts = []policy.HostPolicy{{Host: "api.example", Policy: policy.Policy{
		TLS: &policy.UpstreamTLS{Mode: policy.SimpleTLS, CAFile: "/ca.crt"},
	}}}
	prepared, builder := settings.Prepare(), catalog.NewBuilder(nil)
	builder.Apply(1, []model.Event{model.Upsert{Record: model.Record{Ref: owner, Spec: model.Service{
		Hosts: model.ListOf("api.example"), Ports: model.ListOf(ports[2]), Resolution: model.ResolutionStatic,
	}}}, model.Upsert{Record: endpoint("10.0.0.1", "web")}})
	for i, step := range []struct {
		event   model.Event
		names   []string
		changed bool
	}{
		{model.Upsert{Record: endpoint("10.0.0.2", "db")}, []string{"db", "web"}, true},
		{model.Upsert{Record: endpoint("10.0.0.3", "db")}, []string{"db", "web"}, false},
		{model.Delete{Record: endpoint("10.0.0.2", "db")}, []string{"db", "web"}, false},
		{model.Delete{Record: endpoint("10.0.0.1", "web")}, []string{"db"}, true},
	} {
		change := builder.Apply(uint64(i+2), []model.Event{step.event})
		now := builder.Snapshot()
		var want []string
		for _, name := range step.names {
			want = append(want, "URI spiffe://cluster.local/ns/n/sa/"+name)
		}
		w := worldUnder(prepared, now, true, "istio-system", (*definitions)(nil).after(now, catalog.Change{}, prepared))
		if diff := gocmp.Diff(want, demanded(tlsOf(t, clusterFor(t, w, reach.KindEnvoy)))); diff != "" {
			t.Errorf("step %d: -want +got:\n%s", i, diff)
		}
		cluster := func(c world.Changed) bool { return c.Row == ClusterType && c.Name == "outbound|80||api.example" }
		if step.changed && !slices.ContainsFunc(changesOf(prepared, now, change), cluster) {
			t.Errorf("step %d: the cluster is not among the changes", i)
		}
	}
}
