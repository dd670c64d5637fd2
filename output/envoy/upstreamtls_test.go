package envoy

import (
	"slices"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	gocmp "github.com/google/go-cmp/cmp"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output/envoy/policy"
	"github.com/isthmus-mesh/isthmus/output/envoy/reach"
	"github.com/isthmus-mesh/isthmus/push/world"
)

// securedWorld is a service whose endpoints have accounts, under a policy of TLS.
func securedWorld(u *policy.UpstreamTLS, names []string, accounts ...string) *World {
	var all []model.Event
	owner := model.Ref{Kind: model.KindService, Key: model.Key{Source: "first", Namespace: "n", Name: "p"}}
	all = append(all, model.Upsert{Record: model.Record{Ref: owner, Spec: model.Service{
		Hosts: model.ListOf("api.example"), Ports: model.ListOf(ports[2]), Resolution: model.ResolutionStatic, SubjectAltNames: model.ListOf(names...),
	}}})
	for i, account := range accounts {
		ref := model.Ref{Kind: model.KindEndpoint, Key: owner.Key}
		address := "10.0.0." + string(rune('1'+i))
		ref.Name += "/" + address
		all = append(all, model.Upsert{Record: model.Record{Ref: ref, Owner: owner, Spec: model.Endpoint{Address: address, ServiceAccount: account}}})
	}
	builder := catalog.NewBuilder(nil)
	builder.Apply(1, all)
	settings := NewTranslator()
	settings.Hosts = []policy.HostPolicy{{Host: "api.example", Policy: policy.Policy{TLS: u}}}
	s, now := settings.Prepare(), builder.Snapshot()
	return worldUnder(s, now, true, "istio-system", (*definitions)(nil).after(now, catalog.Change{}, s))
}

func clusterFor(t *testing.T, w *World, kind string) *clusterv3.Cluster {
	t.Helper()
	subject, ok := w.Find(w.View(ClusterType, world.Client{Kind: kind}), ClusterType, "outbound|80||api.example")
	if !ok {
		t.Fatal("there is no cluster")
	}
	return clusterIn(t, subject)
}

// tlsOf is what a cluster says of TLS; nil if nothing.
func tlsOf(t *testing.T, c *clusterv3.Cluster) *tlsv3.UpstreamTlsContext {
	t.Helper()
	if c.GetTransportSocket() == nil {
		return nil
	}
	var m tlsv3.UpstreamTlsContext
	if err := c.GetTransportSocket().GetTypedConfig().UnmarshalTo(&m); err != nil {
		t.Fatal(err)
	}
	if err := m.ValidateAll(); err != nil {
		t.Error(err)
	}
	return &m
}

func demanded(m *tlsv3.UpstreamTlsContext) (names []string) {
	for _, n := range m.GetCommonTlsContext().GetCombinedValidationContext().GetDefaultValidationContext().GetMatchTypedSubjectAltNames() {
		names = append(names, n.SanType.String()+" "+n.GetMatcher().GetExact())
	}
	return names
}

// The certificate has to have one of the configured names, else one of the service or
// of its endpoints' accounts, else the host.
func TestWhoMayAnswerFollowsFromTheService(t *testing.T) {
	simple := func(names ...string) *policy.UpstreamTLS {
		return &policy.UpstreamTLS{Mode: policy.SimpleTLS, CAFile: "/ca.crt", SubjectAltNames: names}
	}
	for name, test := range map[string]struct {
		u        *policy.UpstreamTLS
		names    []string
		accounts []string
		want     []string
	}{
		"configured": {simple("own.example"), []string{"ignored"}, []string{"ignored"}, []string{"DNS own.example"}},
		"of the service and its accounts": {
			simple(),
			[]string{"10.0.0.7", "api.example"},
			[]string{"web", "", "web", "spiffe://other/ns/n/sa/db"},
			[]string{"IP_ADDRESS 10.0.0.7", "DNS api.example", "URI spiffe://cluster.local/ns/n/sa/web", "URI spiffe://other/ns/n/sa/db"},
		},
		"the host": {simple(), nil, []string{""}, []string{"DNS api.example"}},
	} {
		t.Run(name, func(t *testing.T) {
			m := tlsOf(t, clusterFor(t, securedWorld(test.u, test.names, test.accounts...), reach.KindEnvoy))
			if diff := gocmp.Diff(test.want, demanded(m)); diff != "" || m.Sni != "api.example" {
				t.Errorf("sni %q; -want +got:\n%s", m.Sni, diff)
			}
		})
	}
}

// The secrets of a cluster are there for Envoys, and no others.
func TestSecretsAreFilesOfTheEnvoy(t *testing.T) {
	w := securedWorld(&policy.UpstreamTLS{Mode: policy.MutualTLS, CAFile: "/ca.crt", CertificateFile: "/tls.crt", KeyFile: "/tls.key"}, nil)
	names := secretsIn(clusterFor(t, w, reach.KindEnvoy))
	if diff := gocmp.Diff([]string{"file-cert:/tls.crt~/tls.key", "file-root:/ca.crt"}, names); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	v := w.View(SecretType, world.Client{Kind: reach.KindEnvoy})
	for _, name := range names {
		subject, ok := w.Find(v, SecretType, name)
		if !ok {
			t.Errorf("%s is missing", name)
			continue
		}
		m, _ := message(t, subject.Encode().Joined().Body).(*tlsv3.Secret)
		for _, file := range []string{
			m.GetValidationContext().GetTrustedCa().GetFilename(), m.GetTlsCertificate().GetCertificateChain().GetFilename(), m.GetTlsCertificate().GetPrivateKey().GetFilename(),
		} {
			if file != "" && file != "/ca.crt" && file != "/tls.crt" && file != "/tls.key" {
				t.Errorf("%s is in %s", name, file)
			}
		}
		if err := m.ValidateAll(); err != nil || m.Name != name {
			t.Errorf("%s: %v", m.Name, err)
		}
	}
	if _, ok := w.Find(v, SecretType, "file-root:/etc/shadow"); ok {
		t.Error("a file that nobody configured is served")
	}
	if _, ok := w.Find(w.View(SecretType, world.Client{Kind: reach.KindGRPC}), SecretType, names[0]); ok {
		t.Error("gRPC is served a file")
	}
}

// A client is sent the paths of a secret exactly while one of its clusters names the secret.
func TestSecretPathsAreSentOnlyWhereClustersNameThem(t *testing.T) {
	settings := NewTranslator()
	settings.Hosts = []policy.HostPolicy{
		{Host: "*.secured.example", Policy: policy.Policy{TLS: &policy.UpstreamTLS{Mode: policy.SimpleTLS, CAFile: "/ca.crt"}}},
		{Host: "*.mesh.example", Policy: policy.Policy{TLS: &policy.UpstreamTLS{Mode: policy.IstioMutualTLS, CAFile: "/ca.crt", CertificateFile: "/tls.crt", KeyFile: "/tls.key"}}},
	}
	begin, builder, revision := settings.Begin(nil), catalog.NewBuilder(nil), uint64(0)
	held := map[string][]string{"a": nil, "b": nil}
	step := func(what string, want map[string][]string, events ...model.Event) {
		t.Helper()
		revision++
		change := builder.Apply(revision, events)
		u := begin(builder.Snapshot(), change, true, "root")
		for namespace := range held {
			view := u.World.View(SecretType, world.Client{Kind: reach.KindEnvoy, Namespace: namespace})
			got := slices.Collect(u.World.Names(view, SecretType))
			if !slices.Equal(got, want[namespace]) {
				t.Errorf("%s: a client of %s has the secrets %v, want %v", what, namespace, got, want[namespace])
			}
			for _, name := range []string{"file-root:/ca.crt", "file-cert:/tls.crt~/tls.key"} {
				has := slices.Contains(got, name)
				if _, found := u.World.Find(view, SecretType, name); found != has {
					t.Errorf("%s: a client of %s is sent the paths of %s: %t", what, namespace, name, found)
				}
				named := slices.ContainsFunc(u.Changed, func(c world.Changed) bool {
					return c.Row == SecretType && c.Name == name && (c.Audience == nil || slices.Contains(c.Audience, namespace))
				}) || slices.Contains(u.Reviewed, namespace)
				if has != slices.Contains(held[namespace], name) && !named {
					t.Errorf("%s: a client of %s does not learn that %s has come or gone", what, namespace, name)
				}
			}
			held[namespace] = got
		}
	}
	ref := func(namespace, host string) model.Ref {
		return model.Ref{Kind: model.KindService, Key: model.Key{Source: "first", Namespace: namespace, Name: host}}
	}
	put := func(namespace, host string, change func(*model.Service)) model.Event {
		spec := model.Service{Hosts: model.ListOf(host), Ports: model.ListOf(ports[2]), Resolution: model.ResolutionStatic}
		if change != nil {
			change(&spec)
		}
		return model.Upsert{Record: model.Record{Ref: ref(namespace, host), Spec: spec}}
	}
	private := func(s *model.Service) { s.ExportTo = model.ListOf(".") }
	root, certificate := "file-root:/ca.crt", "file-cert:/tls.crt~/tls.key"
	step("nothing needs TLS", nil, put("a", "plain.example", nil))
	step("a service of one namespace", map[string][]string{"a": {root}}, put("a", "x.secured.example", private))
	step("another service of the mesh", map[string][]string{"a": {certificate, root}, "b": {certificate, root}}, put("a", "y.mesh.example", nil))
	step("its own without a cluster hides it", map[string][]string{"a": {certificate, root}}, put("b", "y.mesh.example", func(s *model.Service) { s.Resolution = model.ResolutionDynamicDNS }))
	step("a cluster's own", map[string][]string{"a": {root}}, put("a", "y.mesh.example", func(s *model.Service) { s.Traffic.ClusterLocal = true }))
	step("a scope without it", nil, model.Upsert{Record: model.Record{
		Ref:  model.Ref{Kind: model.KindScope, Key: model.Key{Source: "first", Namespace: "a", Name: "s"}},
		Spec: model.Scope{Hosts: model.ListOf("*/plain.example")},
	}})
	step("the scope goes", map[string][]string{"a": {root}}, model.Delete{Record: model.Record{Ref: model.Ref{Kind: model.KindScope, Key: model.Key{Source: "first", Namespace: "a", Name: "s"}}}})
	step("the service goes", nil, model.Delete{Record: model.Record{Ref: ref("a", "x.secured.example")}})
}

// gRPC would reject a cluster with files, and has credentials of its own.
func TestTLSIsOfEnvoysAlone(t *testing.T) {
	simple := &policy.UpstreamTLS{Mode: policy.SimpleTLS, CAFile: "/ca.crt"}
	if m := tlsOf(t, clusterFor(t, securedWorld(simple, nil), reach.KindGRPC)); m != nil {
		t.Errorf("gRPC is given %v", m)
	}
	if m := tlsOf(t, clusterFor(t, securedWorld(&policy.UpstreamTLS{Mode: policy.DisableTLS}, nil), reach.KindEnvoy)); m != nil {
		t.Errorf("it is off, and an Envoy is given %v", m)
	}
	alpn := tlsOf(t, clusterFor(t, securedWorld(simple, nil), reach.KindEnvoy)).GetCommonTlsContext().GetAlpnProtocols()
	if diff := gocmp.Diff([]string{"h2"}, alpn); diff != "" {
		t.Errorf("a port of gRPC: -want +got:\n%s", diff)
	}
}
