package xds_test

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/anypb"
	mcpapi "istio.io/api/mcp/v1alpha1"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/source"
)

// A Nacos 3 answers delta requests for its services by an exception. The ports of its
// services have no number and are named http, its hosts have no dot before their end,
// and an instance is passed on as it was registered.
func TestNacos3IsRead(t *testing.T) {
	exception := status.Error(codes.Unknown, "Application error processing RPC")
	bubble(t, manner{failsDelta: func(int) error { return exception }, versions: []string{"v1alpha3"}}, func(r *rig) {
		register := func(at ...*networking.WorkloadEntry) {
			r.put("ServiceEntry", "public/orders.DEFAULT-GROUP.public", nacos3("orders", at...))
		}
		instance := func(address string, port uint32) *networking.WorkloadEntry {
			return &networking.WorkloadEntry{Address: address, Weight: 1, Ports: map[string]uint32{"http": port}, Labels: map[string]string{"cluster": "DEFAULT"}}
		}
		register(instance("10.0.0.1", 8080), instance("10.0.0.2", 8080))
		r.put("ServiceEntry", "public/stock.DEFAULT-GROUP.public", nacos3("stock", instance("10.0.1.1", 8080)))
		const stock = "public/stock.DEFAULT-GROUP.public 10.0.1.1"
		r.mirror()
		r.is(source.StateLive, "")
		r.wants("public/orders.DEFAULT-GROUP.public 10.0.0.1 10.0.0.2", stock)
		r.rejects()
		for rec := range r.store.List(model.Filter{Source: "other", Kind: model.KindService}) {
			s := rec.Spec.(model.Service)
			if !strings.HasSuffix(s.Hosts.At(0), ".DEFAULT-GROUP.publicnacos") || s.Ports.At(0).Number != 8080 {
				t.Errorf("the service is %+v", s)
			}
		}
		// One registers without a port, and the others go.
		register(instance("10.0.0.2", 8080), instance("10.0.0.3", 0))
		r.pass(time.Second)
		r.wants("public/orders.DEFAULT-GROUP.public 10.0.0.2", stock)
		r.rejects("ServiceEntry public/orders … spec.endpoints[1].ports.http: 0 is not a port")
		register(instance("10.0.0.3", 0))
		r.pass(time.Second)
		r.wants("public/orders.DEFAULT-GROUP.public", stock)
		register(instance("10.0.0.4", 8080))
		r.pass(time.Second)
		r.wants("public/orders.DEFAULT-GROUP.public 10.0.0.4", stock)
		r.rejects()
	})
}

func nacos3(name string, instances ...*networking.WorkloadEntry) *anypb.Any {
	full := name + ".DEFAULT-GROUP.public"
	spec := &networking.ServiceEntry{
		Hosts: []string{full + "nacos"}, Resolution: networking.ServiceEntry_STATIC, Location: networking.ServiceEntry_MESH_INTERNAL,
		Ports: []*networking.ServicePort{{Name: "http", Protocol: "HTTP"}}, Endpoints: instances,
	}
	return encode(&mcpapi.Resource{
		Metadata: &mcpapi.Metadata{
			Name: "public/" + full, Version: "1", Labels: map[string]string{"registryType": "nacos"}, Annotations: map[string]string{"virtual": "1"},
		},
		Body: encode(spec),
	})
}
