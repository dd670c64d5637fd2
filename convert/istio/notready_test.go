package istio_test

import (
	"fmt"
	"slices"
	"testing"

	"google.golang.org/protobuf/types/known/anypb"
	mcpapi "istio.io/api/mcp/v1alpha1"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/isthmus-mesh/isthmus/convert/istio"
	"github.com/isthmus-mesh/isthmus/internal/mcp"
	"github.com/isthmus-mesh/isthmus/model"
)

func TestNotReadyEndpointsServeThePortsThatTheyName(t *testing.T) {
	t.Parallel()
	for annotation, want := range map[string][]string{
		"10.0.0.2:8080":                {"10.0.0.1", "10.0.0.2 UNHEALTHY http=8080 alone"},
		"10.0.0.2:8080,10.0.0.2:9090":  {"10.0.0.1", "10.0.0.2 UNHEALTHY grpc=9090 http=8080"},
		"10.0.0.2:8080 ,, x, 10.0.0.3": {"10.0.0.1", "10.0.0.2 UNHEALTHY http=8080 alone"},
		"10.0.0.2:7":                   {"10.0.0.1"}, // a port that the service has not
		"10.0.0.1:8080":                {"10.0.0.1 UNHEALTHY"},
		"[fd00::1]:9090":               {"10.0.0.1", "fd00::1 UNHEALTHY grpc=9090 alone"},
		"":                             {"10.0.0.1"},
	} {
		body, err := anypb.New(&networking.ServiceEntry{
			Hosts: []string{"a.example"}, Resolution: networking.ServiceEntry_STATIC,
			Ports:     []*networking.ServicePort{{Number: 80, Name: "http", Protocol: "HTTP", TargetPort: 8080}, {Number: 9090, Name: "grpc", Protocol: "GRPC"}},
			Endpoints: []*networking.WorkloadEntry{{Address: "10.0.0.1"}},
		})
		if err != nil {
			t.Fatal(err)
		}
		read := istio.FromResource(entries(), &mcpapi.Resource{
			Metadata: &mcpapi.Metadata{Name: "shop/a", Annotations: map[string]string{mcp.NotReadyEndpoints: annotation, "team": "shop"}}, Body: body,
		})
		var got []string
		for _, o := range read.Owned {
			got = append(got, said(o.Spec.(model.Endpoint)))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", annotation, got, want)
		}
		service, _ := read.Spec.(model.Service)
		if team, _ := service.Annotations.Get("team"); team != "shop" || service.Annotations.Len() != 1 {
			t.Errorf("%q: the service has the annotations %v", annotation, service.Annotations)
		}
	}
}

func said(e model.Endpoint) string {
	text := e.Address
	if e.Health != model.Healthy {
		text += " " + string(e.Health)
	}
	for name, port := range e.Ports.All() {
		text += fmt.Sprintf(" %s=%d", name, port)
	}
	if e.Exact {
		text += " alone"
	}
	return text
}
