package xds_test

import (
	"testing"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output"
	"github.com/isthmus-mesh/isthmus/output/envoy"
	"github.com/isthmus-mesh/isthmus/push/world"
)

// TestExplainKnowsWhatGRPCDials follows calls of gRPC clients by every spelling of a host, and
// compares each decision with the listener that the engine gives a client for that name.
func TestExplainKnowsWhatGRPCDials(t *testing.T) {
	t.Parallel()
	const host = "cart.shop.svc.cluster.local"
	settings := envoy.NewTranslator()
	r := newRig(t, setup{})
	r.step = settings.Begin(nil)
	own := service("shop", "reviews.shop") // of another port than the service that has this short name
	spec := own.Spec.(model.Service)
	spec.Ports = model.ListOf(model.Port{Number: 8080, Name: "grpc", Protocol: "GRPC"})
	own.Spec = spec
	r.put(own, service("shop", "reviews.shop.svc.cluster.local"), endpoint("shop", "reviews.shop.svc.cluster.local", "r", "10.0.0.3"))
	r.put(service("shop", host), endpoint("shop", host, "a", "10.0.0.1"), service("shop", "*.example"), endpoint("shop", "*.example", "b", "10.0.0.2"))
	for _, c := range []struct {
		namespace, dialled string
		reaches            bool
	}{
		{"shop", host, true},
		{"shop", "cart", true},
		{"other", "cart", false},
		{"other", "cart.shop", true},
		{"other", "cart.shop.svc", true},
		{"other", "reviews.shop", true},
		{"shop", "Cart.shop", false},
		{"shop", host + ".", false},
		{"shop", "a.example", false},
		{"shop", "*.example", false},
	} {
		client := world.Client{Kind: envoy.KindGRPC, Namespace: c.namespace}
		read := func(typeURL, name string) *world.Encoded { return r.engine.Read(client, typeURL, name) }
		r.await("the service", func() bool { return read("type.googleapis.com/envoy.config.listener.v3.Listener", host+":80") != nil })
		got := settings.Explain(r.builder.Snapshot(), rootNamespace, read, output.Call{Client: client, Host: c.dialled, Port: 80})
		if given := read("type.googleapis.com/envoy.config.listener.v3.Listener", c.dialled+":80") != nil; got.Reaches != c.reaches || given != c.reaches {
			t.Errorf("%s in %s: explain says %t (%s), and the listener is given: %t", c.dialled, c.namespace, got.Reaches, got.Reason, given)
		}
	}
}
