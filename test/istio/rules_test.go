package istio_test

import (
	"fmt"
	"net"
	"slices"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/anypb"
	mcpapi "istio.io/api/mcp/v1alpha1"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/isthmus-mesh/isthmus/internal/mcp"
)

const destinationRules = "istio/networking/v1alpha3/destinationrules"

// TestIstiodTakesRulesOfAnMCPSource has DestinationRules pass from a source of MCP v1
// through an Isthmus to an istiod, which applies them to services from elsewhere.
func TestIstiodTakesRulesOfAnMCPSource(t *testing.T) {
	t.Parallel()
	rules := serveRules(t)
	f := startFeed(t, "ruled", fmt.Sprintf("- name: rules\n  required: true\n  mcp: {address: %q, collections: [%s]}\n", rules.address, destinationRules))
	f.WriteFile("web.yaml", fmt.Sprintf(web, f.namespace))
	f.Follow()
	f.Await(clusterOf("web"), []string{"10.0.0.1:80 1", "10.0.0.2:80 1"})
	subset := "outbound|80|chosen|web.example"
	f.Await(subset, nil)

	rules.Set(t, f.namespace, "one")
	f.Await(subset, []string{"10.0.0.1:80 1"})
	rules.Set(t, f.namespace, "two")
	f.Await(subset, []string{"10.0.0.2:80 1"})
	rules.Set(t, f.namespace, "")
	f.Await(subset, nil)
	f.Await(clusterOf("web"), []string{"10.0.0.1:80 1", "10.0.0.2:80 1"})
}

// web is a service of two versions, in a namespace.
const web = `apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: web, namespace: %s}
spec:
  hosts: [web.example]
  location: MESH_INTERNAL
  ports: [{number: 80, name: http, protocol: HTTP}]
  resolution: STATIC
  endpoints:
  - {address: 10.0.0.1, weight: 1, labels: {version: one}}
  - {address: 10.0.0.2, weight: 1, labels: {version: two}}
`

// TestIstiodTakesRulesOfAFolder has a DestinationRule pass from a file through an Isthmus to
// an istiod, which applies it.
func TestIstiodTakesRulesOfAFolder(t *testing.T) {
	t.Parallel()
	f := startFeed(t, "folded")
	f.WriteFile("web.yaml", fmt.Sprintf(web, f.namespace))
	write := func(spec string) {
		f.WriteFile("rule.yaml", fmt.Sprintf("apiVersion: networking.istio.io/v1beta1\nkind: DestinationRule\nmetadata: {name: web, namespace: %s}\nspec: %s\n", f.namespace, spec))
	}
	f.Follow()
	f.Await(clusterOf("web"), []string{"10.0.0.1:80 1", "10.0.0.2:80 1"})
	subset := "outbound|80|chosen|web.example"
	f.Await(subset, nil)

	write("{host: web.example, subsets: [{name: chosen, labels: {version: one}}]}")
	f.Await(subset, []string{"10.0.0.1:80 1"})
	write("{host: web.example, subsets: [{name: chosen, labels: {version: two}}]}")
	f.Await(subset, []string{"10.0.0.2:80 1"})
	f.WriteFile("rule.yaml", "# nothing\n")
	f.Await(subset, nil)
	f.Await(clusterOf("web"), []string{"10.0.0.1:80 1", "10.0.0.2:80 1"})
}

// rules is a source of MCP v1 that has DestinationRules.
type rules struct {
	mcp.UnimplementedResourceSourceServer

	address string

	mu      sync.Mutex
	state   []*mcpapi.Resource
	changed chan struct{} // closed when there is another state
}

func serveRules(t *testing.T) *rules {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &rules{address: l.Addr().String(), changed: make(chan struct{})}
	server := grpc.NewServer()
	mcp.RegisterResourceSourceServer(server, r)
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	t.Cleanup(func() {
		server.Stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return r
}

// Set has the rule of a namespace choose the endpoints of a version, or be gone without
// one. Another rule stays: a source that loses everything is not believed at once.
func (r *rules) Set(t *testing.T, namespace, version string) {
	t.Helper()
	state := []*mcpapi.Resource{rule(t, namespace+"/other", "other.example", "any")}
	if version != "" {
		state = append(state, rule(t, namespace+"/web", "web.example", version))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.state = state
	close(r.changed)
	r.changed = make(chan struct{})
}

// rule is a DestinationRule with a subset of one version.
func rule(t *testing.T, name, host, version string) *mcpapi.Resource {
	t.Helper()
	body, err := anypb.New(&networking.DestinationRule{
		Host: host, Subsets: []*networking.Subset{{Name: "chosen", Labels: map[string]string{"version": version}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return &mcpapi.Resource{Metadata: &mcpapi.Metadata{Name: name, Version: version}, Body: body}
}

func (r *rules) now() ([]*mcpapi.Resource, chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.state), r.changed
}

// EstablishResourceStream implements [mcp.ResourceSourceServer]: a full state whenever
// there is another.
func (r *rules) EstablishResourceStream(stream grpc.BidiStreamingServer[mcp.RequestResources, mcp.Resources]) error {
	if _, err := stream.Recv(); err != nil {
		return err
	}
	for n := 1; ; n++ {
		state, changed := r.now()
		if err := stream.Send(&mcp.Resources{Collection: destinationRules, Nonce: fmt.Sprint(n), Resources: state}); err != nil {
			return err
		}
		answer, err := stream.Recv()
		if err != nil {
			return err
		}
		if answer.GetErrorDetail() != nil {
			return fmt.Errorf("NACKed: %v", answer.GetErrorDetail())
		}
		select {
		case <-changed:
		case <-stream.Context().Done():
			return stream.Context().Err()
		}
	}
}
