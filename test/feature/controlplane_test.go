package feature_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/types/known/structpb"
	mcpapi "istio.io/api/mcp/v1alpha1"

	"github.com/isthmus-mesh/isthmus/test/testkit/until"
)

const entryType = "networking.istio.io/v1/ServiceEntry"

// istiod asks for services as a control plane does that has just started, and returns
// the names in each answer, which it ACKs.
func istiod(t *testing.T, i *isthmus) (next func() []string) {
	t.Helper()
	all := istiodOf(t, i, entryType)
	return func() []string {
		t.Helper()
		return slices.Sorted(maps.Keys(all()))
	}
}

// istiodOf is istiod for any type, with the resources by name.
func istiodOf(t *testing.T, i *isthmus, typeURL string) (next func() map[string]*mcpapi.Resource) {
	t.Helper()
	await(t, "readiness", func() error {
		if code, body, err := i.get("/readyz"); code != 200 || err != nil {
			return fmt.Errorf("%d %s %w", code, body, err)
		}
		return nil
	})
	ctx, cancel := context.WithTimeout(t.Context(), until.Patience)
	t.Cleanup(cancel)
	wire, err := discoveryv3.NewAggregatedDiscoveryServiceClient(channel(t, i)).StreamAggregatedResources(ctx)
	if err != nil {
		t.Fatal(err)
	}
	node := &corev3.Node{
		Id:       "sidecar~10.0.0.9~istiod-1.istio-system~istio-system.svc.cluster.local",
		Metadata: &structpb.Struct{Fields: map[string]*structpb.Value{"GENERATOR": structpb.NewStringValue("api")}},
	}
	say := func(m *discoveryv3.DiscoveryRequest) {
		m.TypeUrl = typeURL
		if err := wire.Send(m); err != nil {
			t.Fatal(err)
		}
	}
	say(&discoveryv3.DiscoveryRequest{Node: node, ResponseNonce: "made up"})
	return func() map[string]*mcpapi.Resource {
		t.Helper()
		m, err := wire.Recv()
		if err != nil {
			t.Fatal(err)
		}
		say(&discoveryv3.DiscoveryRequest{VersionInfo: m.GetVersionInfo(), ResponseNonce: m.GetNonce()})
		all := map[string]*mcpapi.Resource{}
		for _, body := range m.GetResources() {
			r := &mcpapi.Resource{}
			if err := body.UnmarshalTo(r); err != nil {
				t.Fatal(err)
			}
			all[r.GetMetadata().GetName()] = r
		}
		return all
	}
}

// A new istiod becomes ready although an optional source was never read: what an earlier
// process has stored says that nobody has anything of that. What the source brings comes
// when it is read.
func TestControlPlaneBecomesReadyWithoutAnOptionalSource(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	there, missing := newRegistry(t, "there"), newRegistry(t, "missing")
	there.Write("shop.yaml", service{Host: reviews, Endpoints: []string{"{address: 10.0.0.1}"}})
	missing.optional = true
	missing.Remove("")
	first := startWith(t, saving(loopback, dir, there), there)
	if got := istiod(t, first)(); len(got) != 1 {
		t.Errorf("at first there are %q", got)
	}
	first.Stop()

	again := startWith(t, saving(loopback, dir, there, missing), there)
	next := istiod(t, again)
	if got := next(); len(got) != 1 {
		t.Errorf("without the source that was never read there are %q", got)
	}
	missing.Make()
	missing.Write("shop.yaml", service{Host: ratings, Endpoints: []string{"{address: 10.0.0.2}"}})
	if got := next(); len(got) != 2 {
		t.Errorf("with the source there are %q", got)
	}
}
