package xds_test

import (
	"log/slog"
	"strconv"
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output/xds"
	"github.com/isthmus-mesh/isthmus/test/testkit/transcript"
	"github.com/isthmus-mesh/isthmus/test/testkit/xdsclient"
)

// exportedInEveryWay are services of two namespaces, each exported in another way.
func exportedInEveryWay() []model.Record {
	return []model.Record{
		only(service("shop", "own.shop.example"), "."),
		only(service("bank", "own.bank.example"), "."),
		only(service("bank", "nobody.bank.example"), "~"),
		only(service("bank", "shop.bank.example"), "shop"),
		only(service("bank", "everybody.bank.example"), "*"),
		service("shop", probe),
	}
}

func TestClientSeesWhatIsExportedToItsNamespaceAndNothingElse(t *testing.T) {
	r := newRig(t, setup{})
	r.put(exportedInEveryWay()...)
	for claim, hosts := range map[string][]string{
		"":                      {"everybody.bank.example", probe},
		"shop":                  {"own.shop.example", "shop.bank.example", "everybody.bank.example", probe},
		"bank":                  {"own.bank.example", "everybody.bank.example", probe},
		"elsewhere":             {"everybody.bank.example", probe},
		strings.Repeat("x", 63): {"everybody.bank.example", probe},
	} {
		for _, c := range []*xdsclient.Client{r.delta("delta-"+claim, claim), r.sotw("sotw-"+claim, claim)} {
			c.Subscribe(cds)
			c.AwaitHeld(cds, clustersOf(hosts...)...)
		}
	}
}

// What stands for namespaces in exports and scopes is no namespace to be in.
func TestClaimedNamespaceMustBeADNSLabel(t *testing.T) {
	var log transcript.Log
	r := newRig(t, setup{log: slog.New(slog.NewTextHandler(&log, nil))})
	r.put(exportedInEveryWay()...)
	claims := []string{".", "~", "*", "..", "shop.", "shop.bank", "Shop", "-shop", "shop-", "shop bank", "shop/bank", "sh\u00f6p", "_", strings.Repeat("x", 64)}
	nodes := map[string]*corev3.Node{
		"its node id claims X": {Id: "sidecar~10.0.0.7~web-1.X~shop.svc.cluster.local"},
		"its node id claims *": {Id: "sidecar~10.0.0.7~web-1.*~shop.svc.cluster.local"},
	}
	for _, claim := range claims {
		nodes["it claims "+claim] = xdsclient.Node("claimant", claim, "envoy")
	}
	for name, node := range nodes {
		t.Run(name, func(t *testing.T) {
			for _, c := range []*xdsclient.Client{r.deltaWith(xdsclient.Config{Node: node}), r.sotwWith(xdsclient.Config{Node: node})} {
				c.Subscribe(cds)
				err := c.AwaitEnd()
				if status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), "DNS label") || !strings.Contains(err.Error(), "NAMESPACE") {
					t.Errorf("got %v", err)
				}
				c.Read(func(s *xdsclient.State) {
					if held := s.Names(cds); len(held) > 0 {
						t.Errorf("it was sent %v", held)
					}
				})
			}
		})
	}
	if got, want := r.rejectedFor("identity"), uint64(2*len(nodes)); got != want {
		t.Errorf("%d are counted, want %d", got, want)
	}
	if text := log.String(); !strings.Contains(text, "DNS label") {
		t.Errorf("the log does not tell:\n%s", text)
	}
}

func withLabels(labels map[string]*structpb.Value) *corev3.Node {
	node := xdsclient.Node("labelled", "shop", "envoy")
	node.Metadata.Fields["LABELS"] = structpb.NewStructValue(&structpb.Struct{Fields: labels})
	return node
}

func TestClaimedLabelsAreBounded(t *testing.T) {
	r := newRig(t, setup{limits: xds.Limits{Labels: 3, NodeBytes: 100}})
	r.put(service("shop", probe))
	many := map[string]*structpb.Value{}
	for i := range 4 {
		many[strconv.Itoa(i)] = structpb.NewStringValue("x")
	}
	for name, labels := range map[string]map[string]*structpb.Value{
		"too many":     many,
		"a long name":  {strings.Repeat("x", 101): structpb.NewStringValue("x")},
		"a long value": {"x": structpb.NewStringValue(strings.Repeat("x", 101))},
	} {
		t.Run(name, func(t *testing.T) {
			s := openRaw(t, r.dial(), adsDelta)
			s.say(&discoveryv3.DeltaDiscoveryRequest{Node: withLabels(labels), TypeUrl: cds})
			if err := s.end(); status.Code(err) != codes.ResourceExhausted || !strings.Contains(err.Error(), "LABELS") {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestClaimedPlaceIsBounded(t *testing.T) {
	r := newRig(t, setup{limits: xds.Limits{NodeBytes: 100}})
	r.put(service("shop", probe))
	for what, claim := range map[string]func(*corev3.Node){
		"locality": func(n *corev3.Node) {
			n.Locality = &corev3.Locality{Region: strings.Repeat("x", 60), Zone: strings.Repeat("y", 41)}
		},
		"NETWORK": func(n *corev3.Node) { n.Metadata.Fields["NETWORK"] = structpb.NewStringValue(strings.Repeat("x", 254)) },
		"NODE_NAME": func(n *corev3.Node) {
			n.Metadata.Fields["NODE_NAME"] = structpb.NewStringValue(strings.Repeat("x", 254))
		},
		"CLUSTER_ID": func(n *corev3.Node) {
			n.Metadata.Fields["CLUSTER_ID"] = structpb.NewStringValue(strings.Repeat("x", 254))
		},
	} {
		node := xdsclient.Node("far", "shop", "envoy")
		claim(node)
		s := openRaw(t, r.dial(), adsDelta)
		s.say(&discoveryv3.DeltaDiscoveryRequest{Node: node, TypeUrl: cds})
		if err := s.end(); status.Code(err) != codes.ResourceExhausted || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: got %v", what, err)
		}
	}
}

// A scope that selects an empty label is not for who has something else there.
func TestWhatIsNoStringIsNoLabel(t *testing.T) {
	r := newRig(t, setup{})
	r.put(service("shop", probe), service("bank", "bank.example"),
		model.Record{
			Ref:  model.Ref{Kind: model.KindScope, Key: model.Key{Source: "registry", Namespace: "shop", Name: "default"}},
			Spec: model.Scope{Hosts: model.ListOf("./*")},
		},
		model.Record{
			Ref:  model.Ref{Kind: model.KindScope, Key: model.Key{Source: "registry", Namespace: "shop", Name: "wide"}},
			Spec: model.Scope{WorkloadSelector: model.MapOf(map[string]string{"role": ""}), Hosts: model.ListOf("*/*")},
		})
	number := r.deltaWith(xdsclient.Config{Node: withLabels(map[string]*structpb.Value{"role": structpb.NewNumberValue(1)})})
	number.Subscribe(cds)
	number.AwaitHeld(cds, clustersOf(probe)...)
	empty := r.deltaWith(xdsclient.Config{Node: withLabels(map[string]*structpb.Value{"role": structpb.NewStringValue("")})})
	empty.Subscribe(cds)
	empty.AwaitHeld(cds, clustersOf(probe, "bank.example")...)
}
