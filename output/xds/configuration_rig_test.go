package xds_test

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/structpb"
	mcpapi "istio.io/api/mcp/v1alpha1"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/identity"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output"
	"github.com/isthmus-mesh/isthmus/output/envoy"
	"github.com/isthmus-mesh/isthmus/output/envoy/conflict"
	"github.com/isthmus-mesh/isthmus/output/resource"
	"github.com/isthmus-mesh/isthmus/output/streams"
	"github.com/isthmus-mesh/isthmus/output/xds"
	"github.com/isthmus-mesh/isthmus/test/testkit/authority"
	"github.com/isthmus-mesh/isthmus/test/testkit/verifier"
)

const (
	entries  = "networking.istio.io/v1/ServiceEntry"
	rules    = "networking.istio.io/v1/DestinationRule"
	sidecars = "networking.istio.io/v1/Sidecar"
)

// istiodTypes are those that istiod 1.30 asks for when it starts.
var istiodTypes = []string{
	"core/v1alpha1/MeshConfig",
	"security.istio.io/v1/AuthorizationPolicy", "security.istio.io/v1/PeerAuthentication", "security.istio.io/v1/RequestAuthentication",
	rules, "networking.istio.io/v1/Gateway", entries, sidecars, "networking.istio.io/v1/VirtualService",
	"networking.istio.io/v1/WorkloadEntry", "networking.istio.io/v1/WorkloadGroup",
	"networking.istio.io/v1alpha3/EnvoyFilter", "networking.istio.io/v1beta1/ProxyConfig", "telemetry.istio.io/v1/Telemetry",
	"extensions.istio.io/v1alpha1/WasmPlugin", "extensions.istio.io/v1alpha1/TrafficExtension",
}

// site is the whole output, as the application opens it.
type site struct {
	t       testing.TB
	out     output.Output
	builder *catalog.Builder
	begun   atomic.Int64 // how often the translation to configuration was begun
	steps   uint64
	ca      *authority.Authority // nil without TLS
}

// openSite opens an output that delays nothing, unless its settings say otherwise.
func openSite(t *testing.T, secured bool, settings func(*xds.Config)) *site {
	t.Helper()
	return openSiteWith(t, output.Env{}, secured, settings)
}

// openSiteWith is openSite with what an earlier process has left.
func openSiteWith(t testing.TB, env output.Env, secured bool, settings func(*xds.Config)) *site {
	t.Helper()
	s := &site{t: t, builder: catalog.NewBuilder(nil)}
	kind := xds.OutputKind(xds.Translation{
		Kinds: xds.Kinds{
			Envoy: envoy.KindEnvoy, GRPC: envoy.KindGRPC, GRPCNode: envoy.KindGRPCNode,
			ControlPlane: resource.KindIstiod, Configuration: resource.KindMCP,
		},
		Settings: func() xds.Settings { return envoy.NewTranslator() }, Notices: conflict.Notices,
		Configuration: xds.Configuration{
			Types: resource.OverXDS().Types, NotOffered: resource.NotOffered,
			Begin: func(string) xds.Steps {
				s.begun.Add(1)
				return resource.NewTranslator(resource.OverXDS(), resource.Options{Wrapped: true})
			},
		},
	})
	config := kind.New().(*xds.Config)
	config.Listen, config.Debounce = "127.0.0.1:0", xds.Debounces{}
	if secured {
		s.ca = authority.New(t, "ca")
		config.TLS = s.files(t.TempDir())
	}
	if settings != nil {
		settings(config)
	}
	env.Instance, env.RootNamespace, env.Log = "test", rootNamespace, slog.New(slog.DiscardHandler)
	env.Sent, env.ACKed, env.Listen = func(time.Duration) {}, func(time.Duration) {}, func(ctx context.Context, network, _ string) (net.Listener, error) {
		return new(net.ListenConfig).Listen(ctx, network, "127.0.0.1:0") // whatever the settings say
	}
	env.Identity = cmp.Or(env.Identity, verifier.New(t, identity.Config{}))
	out, err := config.Open(t.Context(), env)
	if err != nil {
		t.Fatal(err)
	}
	s.out = out
	ctx, stop := context.WithCancel(context.Background())
	var run sync.WaitGroup
	run.Go(func() {
		if err := out.Run(ctx); err != nil {
			t.Errorf("run: %v", err)
		}
	})
	t.Cleanup(func() { stop(); run.Wait() })
	return s
}

func (s *site) files(dir string) streams.TLS {
	s.t.Helper()
	pair := s.ca.Issue("server")
	files := streams.TLS{CertFile: filepath.Join(dir, "tls.crt"), KeyFile: filepath.Join(dir, "tls.key"), ClientCAFile: filepath.Join(dir, "ca.crt")}
	for name, text := range map[string][]byte{files.CertFile: pair.Cert, files.KeyFile: pair.Key, files.ClientCAFile: s.ca.PEM} {
		if err := os.WriteFile(name, text, 0o600); err != nil {
			s.t.Fatal(err)
		}
	}
	return files
}

// put publishes a step of the catalog, once every source is listed.
func (s *site) put(events ...model.Event) { s.publish(true, events...) }

func (s *site) publish(complete bool, events ...model.Event) {
	s.steps++
	change := s.builder.Apply(s.steps, events)
	s.out.Publish(s.builder.Snapshot(), change, complete)
}

// connect opens a stream by which configuration is read.
func (s *site) connect(method string, as ...string) raw {
	s.t.Helper()
	security := insecure.NewCredentials()
	if s.ca != nil {
		security = credentials.NewTLS(s.ca.Client(s.ca.Issue("client", as...)))
	}
	conn, err := grpc.NewClient("passthrough:///"+s.out.Report().Addr.String(), grpc.WithTransportCredentials(security))
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = conn.Close() })
	return openRaw(s.t, conn, method)
}

// istiod is the node that istiod says it is.
func istiod(revision string) *corev3.Node {
	metadata, _ := structpb.NewStruct(map[string]any{"GENERATOR": "api", "ISTIO_REVISION": revision, "ISTIO_VERSION": "65536.65536.65536"})
	return &corev3.Node{Id: "sidecar~10.0.0.1~istiod-0.istio-system~istio-system.svc.cluster.local", Metadata: metadata}
}

// ask asks for a type as istiod does when it starts.
func ask(node *corev3.Node, typeURL string) *discoveryv3.DiscoveryRequest {
	return &discoveryv3.DiscoveryRequest{Node: node, TypeUrl: typeURL, ResponseNonce: time.Now().String()}
}

func ack(m *discoveryv3.DiscoveryResponse) *discoveryv3.DiscoveryRequest {
	return &discoveryv3.DiscoveryRequest{TypeUrl: m.TypeUrl, ResponseNonce: m.Nonce, VersionInfo: m.VersionInfo}
}

// resourcesIn reads a response as istiod does.
func resourcesIn(t *testing.T, list []*anypb.Any) map[string]*mcpapi.Resource {
	t.Helper()
	all := map[string]*mcpapi.Resource{}
	for _, body := range list {
		r := &mcpapi.Resource{}
		if err := body.UnmarshalTo(r); err != nil {
			t.Fatal(err)
		}
		all[r.GetMetadata().GetName()] = r
	}
	return all
}

// rule is a DestinationRule as another control plane said it.
func rule(name, content string, labels map[string]string) model.Event {
	return model.Upsert{Record: model.Record{
		Ref:  model.Ref{Kind: "DestinationRule", Key: model.Key{Source: "galley", Namespace: "shop", Name: name}},
		Spec: model.Opaque{Meta: model.Meta{Labels: model.MapOf(labels)}, Type: "type.googleapis.com/istio.networking.v1alpha3.DestinationRule", Content: content},
	}}
}

func shown(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		return strconv.Quote(err.Error())
	}
	return string(text)
}
