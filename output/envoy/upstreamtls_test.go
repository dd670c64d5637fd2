package envoy

import (
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	gocmp "github.com/google/go-cmp/cmp"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/push"
)

// securedWorld is a service whose endpoints have accounts, under a policy of TLS.
func securedWorld(u *UpstreamTLS, names []string, accounts ...string) *World {
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
	s := NewSettings()
	s.Hosts = []HostPolicy{{Host: "api.example", Policy: Policy{TLS: u}}}
	return s.prepare().world(builder.Snapshot(), true, "istio-system", nil)
}

func clusterFor(t *testing.T, w *World, kind string) *clusterv3.Cluster {
	t.Helper()
	subject, ok := w.Find(w.View(ClusterType, push.Client{Kind: kind}), ClusterType, "outbound|80||api.example")
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
	simple := func(names ...string) *UpstreamTLS {
		return &UpstreamTLS{Mode: simpleTLS, CAFile: "/ca.crt", SubjectAltNames: names}
	}
	for name, test := range map[string]struct {
		u        *UpstreamTLS
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
			m := tlsOf(t, clusterFor(t, securedWorld(test.u, test.names, test.accounts...), KindEnvoy))
			if diff := gocmp.Diff(test.want, demanded(m)); diff != "" || m.Sni != "api.example" {
				t.Errorf("sni %q; -want +got:\n%s", m.Sni, diff)
			}
		})
	}
}

// The secrets of a cluster are there for Envoys, and no others.
func TestSecretsAreFilesOfTheEnvoy(t *testing.T) {
	w := securedWorld(&UpstreamTLS{Mode: mutualTLS, CAFile: "/ca.crt", CertificateFile: "/tls.crt", KeyFile: "/tls.key"}, nil)
	names := secretsIn(clusterFor(t, w, KindEnvoy))
	if diff := gocmp.Diff([]string{"file-cert:/tls.crt~/tls.key", "file-root:/ca.crt"}, names); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	v := w.View(SecretType, push.Client{Kind: KindEnvoy})
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
	if _, ok := w.Find(w.View(SecretType, push.Client{Kind: KindGRPC}), SecretType, names[0]); ok {
		t.Error("gRPC is served a file")
	}
}

// gRPC would reject a cluster with files, and has credentials of its own.
func TestTLSIsOfEnvoysAlone(t *testing.T) {
	simple := &UpstreamTLS{Mode: simpleTLS, CAFile: "/ca.crt"}
	if m := tlsOf(t, clusterFor(t, securedWorld(simple, nil), KindGRPC)); m != nil {
		t.Errorf("gRPC is given %v", m)
	}
	if m := tlsOf(t, clusterFor(t, securedWorld(&UpstreamTLS{Mode: disableTLS}, nil), KindEnvoy)); m != nil {
		t.Errorf("it is off, and an Envoy is given %v", m)
	}
	alpn := tlsOf(t, clusterFor(t, securedWorld(simple, nil), KindEnvoy)).GetCommonTlsContext().GetAlpnProtocols()
	if diff := gocmp.Diff([]string{"h2"}, alpn); diff != "" {
		t.Errorf("a port of gRPC: -want +got:\n%s", diff)
	}
}
