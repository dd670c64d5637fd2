package xds_test

import (
	"strings"
	"testing"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output"
	"github.com/isthmus-mesh/isthmus/output/envoy"
	"github.com/isthmus-mesh/isthmus/push/world"
)

// member is the endpoint of an account, with the label of mutual TLS or without it.
func member(name, address string, labelled bool) model.Record {
	r := endpoint("shop", probe, name, address)
	e := r.Spec.(model.Endpoint)
	e.ServiceAccount = "cart"
	if labelled {
		e.Labels = model.MapOf(map[string]string{"security.istio.io/tlsMode": "istio"})
	}
	r.Spec = e
	return r
}

// TestExplainSaysHowCallsAreSecured follows calls of an Envoy while the labels of the endpoints
// change.
func TestExplainSaysHowCallsAreSecured(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		mode, account string
		records       []model.Record
		step, reason  string
	}{
		{
			"STRICT", inShop,
			[]model.Record{member("a", "10.0.0.1", true), member("b", "10.0.0.2", true)},
			"mutual TLS to 2 endpoints; mode of the port: STRICT; accepted of servers: spiffe://cluster.local/ns/shop/sa/cart", "at 2 endpoints by mutual TLS",
		},
		{
			"PERMISSIVE", inShop,
			[]model.Record{member("a", "10.0.0.1", true), member("b", "10.0.0.2", false)},
			"mutual TLS to 1 of 2 endpoints, and plaintext to the others, which lack the label security.istio.io/tlsMode: istio; mode of the port: PERMISSIVE", "at 2 endpoints",
		},
		{
			"PERMISSIVE", inShop,
			[]model.Record{endpoint("shop", probe, "a", "10.0.0.1")},
			"plaintext, since no endpoint has the label security.istio.io/tlsMode: istio; mode of the port: PERMISSIVE", "at 1 endpoint",
		},
		{
			"STRICT", "",
			[]model.Record{member("a", "10.0.0.1", true)},
			"plaintext, since the client proves no account, and so has no certificate; a sidecar with a certificate rejects that in the mode STRICT", "at 1 endpoint",
		},
		{"DISABLE", inShop, []model.Record{member("a", "10.0.0.1", true)}, "", "at 1 endpoint"},
	} {
		settings := envoy.NewTranslator()
		settings.MTLS.Mode = test.mode
		r := newRig(t, setup{})
		r.step = settings.Begin(nil)
		r.put(append(test.records, service("shop", probe))...)
		c := world.Client{Kind: envoy.KindEnvoy, Namespace: "shop", Account: test.account}
		c.Proxy.Role = "sidecar"
		var got output.Trace
		r.await("the service", func() bool {
			read := func(typeURL, name string) *world.Encoded { return r.engine.Read(c, typeURL, name) }
			got = settings.Explain(r.builder.Snapshot(), rootNamespace, read, output.Call{Client: c, Host: probe, Port: 80})
			return got.Reaches
		})
		step := ""
		for _, s := range got.Steps {
			if s.Stage == "tls" {
				step = s.Text
			}
		}
		if !strings.HasPrefix(step, test.step) || test.step == "" && step != "" || !strings.HasSuffix(got.Reason, test.reason) {
			t.Errorf("%s for account %q: %q; %s", test.mode, test.account, step, got.Reason)
		}
	}
}
