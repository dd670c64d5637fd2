package xds_test

import (
	"fmt"
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/test/testkit/xdsclient"
)

// many are so many services.
func many(n int) (list []model.Event) {
	for i := range n {
		list = append(list, upserts(service("shop", fmt.Sprintf("s%05d.example", i)))...)
	}
	return list
}

// marking is a node that asks for the marks of a first state.
func marking(node *corev3.Node) *corev3.Node {
	node = proto.Clone(node).(*corev3.Node)
	if node.Metadata == nil {
		node.Metadata = &structpb.Struct{Fields: map[string]*structpb.Value{}}
	}
	node.Metadata.Fields["ISTHMUS_MARK_FIRST_STATE"] = structpb.NewStringValue("true")
	return node
}

// The end of a first state that takes several responses is marked for a client that asks
// for that, of whatever type, and nowhere before. Without the mark the version is that
// which everybody else is sent.
func TestEndOfAFirstStateIsMarkedForWhoAsks(t *testing.T) {
	services := 5000 // more than one response has
	s := openSite(t, false, nil)
	s.put(many(services)...)
	for typeURL, node := range map[string]*corev3.Node{entries: istiod(""), xdsclient.CDS: rawNode} {
		versions := map[bool][]string{}
		for _, asks := range []bool{true, false} {
			stream, as := s.connect(adsDelta), node
			if asks {
				as = marking(node)
			}
			stream.say(&discoveryv3.DeltaDiscoveryRequest{Node: as, TypeUrl: typeURL, ResourceNamesSubscribe: []string{"*"}})
			for received := 0; received < services; {
				m := stream.delta()
				received += len(m.Resources)
				version, mark, marked := strings.Cut(m.SystemVersionInfo, ";")
				versions[asks] = append(versions[asks], version)
				want := "first-state=partial"
				if received == services {
					want = "first-state=complete"
				}
				if marked != asks || asks && mark != want {
					t.Errorf("%s, asked %t: %d of %d are marked %q", typeURL, asks, received, services, m.SystemVersionInfo)
				}
				stream.say(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: typeURL, ResponseNonce: m.Nonce})
			}
			if n := len(versions[asks]); n < 2 {
				t.Errorf("%s: %d services came in %d response", typeURL, services, n)
			}
			s.put(upserts(service("shop", fmt.Sprintf("more%d.example", services)))...)
			m := stream.delta()
			if strings.Contains(m.SystemVersionInfo, ";") || len(m.Resources) != 1 {
				t.Errorf("%s: a change afterwards is of %d resources and marked %q", typeURL, len(m.Resources), m.SystemVersionInfo)
			}
			versions[asks] = append(versions[asks], m.SystemVersionInfo)
			services++
			stream.stop()
		}
		if a, b := versions[true], versions[false]; a[len(a)-1] != b[len(b)-2] {
			t.Errorf("%s: the version of the same is %s for who asks, and else %s", typeURL, a[len(a)-1], b[len(b)-2])
		}
	}
}

// An empty first state ends, and so does one of a client that has everything: it is sent a
// response without content, where nobody else is sent any.
func TestEndOfAFirstStateWithoutContentIsMarked(t *testing.T) {
	s := openSite(t, false, nil)
	s.put(upserts(service("shop", probe))...)
	held := map[string]string{}
	for _, typeURL := range []string{"new.istio.io/v1/Whatever", rules, entries, entries} {
		stream := s.connect(adsDelta)
		stream.say(&discoveryv3.DeltaDiscoveryRequest{Node: marking(istiod("")), TypeUrl: typeURL, ResourceNamesSubscribe: []string{"*"}, InitialResourceVersions: held})
		m := stream.delta()
		if !strings.HasSuffix(m.SystemVersionInfo, ";first-state=complete") || typeURL != entries && len(m.Resources) > 0 || len(held) > 0 && len(m.Resources) > 0 {
			t.Errorf("%s, with %d held: %v", typeURL, len(held), m)
		}
		for _, r := range m.Resources {
			held[r.Name] = r.Version
		}
	}
}
