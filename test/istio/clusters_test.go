package istio_test

import (
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	_ "github.com/cncf/xds/go/udpa/type/v1" // what istiod's clusters have in them
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/network/dns_resolver/cares/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/raw_buffer/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/rogpeppe/go-internal/txtar"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/isthmus-mesh/isthmus/test/istio/cluster"
	"github.com/isthmus-mesh/isthmus/test/testkit/golden"
)

// TestClustersOfIstiod holds what output/envoy compares Isthmus with against
// this istiod: the clusters that it gives a sidecar for a ServiceEntry. After
// istiod's version has changed, this writes them anew:
//
//	go -C test/istio test -run '^TestClustersOfIstiod$' . -update
//
// In a transcript a part istiod@ADDRESSES has the clusters of a sidecar with these
// addresses, and istiod@ADDRESSES@LOCALITY those of one that says where it is. A
// DestinationRule in rule.yaml says to istiod what settings.json says to Isthmus. The
// other parts are not touched.
func TestClustersOfIstiod(t *testing.T) {
	t.Parallel()
	api := connect(t, shared)
	api.Namespace("shop")
	golden.RunFiles(t, filepath.Join(programs.Repository, "output", "envoy", "testdata", "istiod", "*.txtar"), translatedByIstiod)
}

// translatedByIstiod applies the entry of a transcript. Its host is its name in example.
func translatedByIstiod(t *testing.T, in *txtar.Archive) *txtar.Archive {
	t.Helper()
	out := &txtar.Archive{Comment: in.Comment, Files: slices.Clone(in.Files)}
	host := path.Base(t.Name()) + ".example"
	ruled := false
	for i, f := range in.Files {
		switch f.Name {
		case "entry.yaml":
			connect(t, shared).Apply(cluster.ServiceEntries, string(f.Data))
		case "rule.yaml":
			ruled = true
			connect(t, shared).Apply(cluster.DestinationRules, string(f.Data))
		}
		if who, ok := strings.CutPrefix(f.Name, "istiod@"); ok {
			addresses, locality, _ := strings.Cut(who, "@")
			out.Files[i].Data = clustersOf(t, sidecarAt("shop", addresses, locality), host, ruled)
		}
	}
	return out
}

// sidecar describes a sidecar with addresses that are separated by commas.
func sidecar(namespace, addresses string) *corev3.Node {
	first, _, _ := strings.Cut(addresses, ",")
	return &corev3.Node{
		Id: fmt.Sprintf("sidecar~%s~client.%[2]s~%[2]s.svc.cluster.local", first, namespace),
		Metadata: &structpb.Struct{Fields: map[string]*structpb.Value{
			"NAMESPACE": structpb.NewStringValue(namespace), "INSTANCE_IPS": structpb.NewStringValue(addresses),
		}},
	}
}

// sidecarAt describes a sidecar at REGION/ZONE/SUBZONE.
func sidecarAt(namespace, addresses, locality string) *corev3.Node {
	node := sidecar(namespace, addresses)
	if parts := strings.Split(locality, "/"); len(parts) == 3 {
		node.Locality = &corev3.Locality{Region: parts[0], Zone: parts[1], SubZone: parts[2]}
	}
	return node
}

// clustersOf are the clusters of a host that istiod gives a proxy, as JSON, in
// the order of their names. With a rule it waits until istiod has it.
func clustersOf(t *testing.T, node *corev3.Node, host string, ruled bool) []byte {
	t.Helper()
	connection, err := grpc.NewClient(istiod.XDS, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	var clusters []*clusterv3.Cluster
	await(t, "the clusters of "+host, func() (err error) {
		if clusters, err = listClusters(t, connection, node, host); err == nil && len(clusters) == 0 {
			err = errors.New("istiod has none")
		}
		if err == nil && ruled && slices.ContainsFunc(clusters, unruled) {
			err = errors.New("istiod has no rule yet")
		}
		return err
	})
	var text []byte
	for _, c := range clusters {
		object, err := protojson.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		fields, err := golden.Fields(object)
		if err != nil {
			t.Fatal(err)
		}
		text = append(text, fields...)
	}
	return text
}

// unruled reports whether istiod knew of no DestinationRule when it made a cluster.
func unruled(c *clusterv3.Cluster) bool {
	return c.GetMetadata().GetFilterMetadata()["istio"].GetFields()["config"] == nil
}

// listClusters asks once.
func listClusters(t *testing.T, connection *grpc.ClientConn, node *corev3.Node, host string) ([]*clusterv3.Cluster, error) {
	stream, err := discoveryv3.NewAggregatedDiscoveryServiceClient(connection).StreamAggregatedResources(t.Context())
	if err != nil {
		return nil, err
	}
	const url = "type.googleapis.com/envoy.config.cluster.v3.Cluster"
	if err := stream.Send(&discoveryv3.DiscoveryRequest{Node: node, TypeUrl: url}); err != nil {
		return nil, err
	}
	response, err := stream.Recv()
	if err != nil {
		return nil, err
	}
	var clusters []*clusterv3.Cluster
	for _, resource := range response.GetResources() {
		c := &clusterv3.Cluster{}
		if err := resource.UnmarshalTo(c); err != nil {
			return nil, err
		}
		if strings.HasSuffix(c.GetName(), "|"+host) {
			clusters = append(clusters, c)
		}
	}
	slices.SortFunc(clusters, func(a, b *clusterv3.Cluster) int { return strings.Compare(a.GetName(), b.GetName()) })
	return clusters, stream.CloseSend()
}
