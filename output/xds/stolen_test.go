package xds_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/spiffe/go-spiffe/v2/spiffeid"
	rpcstatus "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/isthmus-mesh/isthmus/test/testkit/until"
	"github.com/isthmus-mesh/isthmus/test/testkit/xdsclient"
)

const inTill = "spiffe://cluster.local/ns/shop/sa/till"

// declaring connects a client with a token, of a node that it describes itself.
func (r vouched) declaring(token string, node *corev3.Node) *xdsclient.Client {
	r.t.Helper()
	conn := r.dial(grpc.WithTransportCredentials(credentials.NewTLS(r.ca.Client())), grpc.WithPerRPCCredentials(bearer(token)))
	return xdsclient.NewDelta(r.t, conn, xdsclient.Config{Node: node, Ledger: r.ledger, Deadline: until.Patience})
}

// Nothing that a node says of itself gives it the namespace or the account of another. A
// namespace of another is rejected; other names change nothing.
func TestNodeCannotWidenWhatIsProven(t *testing.T) {
	t.Parallel()
	r := newVouched(t)
	r.put(only(service("bank", "vault.example"), "."))
	token, _ := r.token("shop", "cart")
	node := func(id string, metadata map[string]any) *corev3.Node {
		fields, err := structpb.NewStruct(metadata)
		if err != nil {
			t.Fatal(err)
		}
		return &corev3.Node{Id: id, UserAgentName: "envoy", Metadata: fields}
	}
	for name, test := range map[string]struct {
		node *corev3.Node
		code codes.Code
	}{
		"a namespace in its metadata": {node("web-1", map[string]any{"NAMESPACE": "bank"}), codes.PermissionDenied},
		"a namespace in its id":       {node("sidecar~10.0.0.1~web-1.bank~bank.svc.cluster.local", nil), codes.PermissionDenied},
		"an account":                  {node("web-1", map[string]any{"SERVICE_ACCOUNT": "till", "NAMESPACE": "shop"}), codes.OK},
		"an identity for its id":      {node(inTill, nil), codes.OK},
		"labels":                      {node("web-1", map[string]any{"LABELS": map[string]any{"namespace": "bank", "app": "vault"}}), codes.OK},
		"its own names, and more":     {node("web-1", map[string]any{"NAMESPACE": "shop", "namespace": "bank", "CONFIG_NAMESPACE": "bank", "MESH_ID": "bank"}), codes.OK},
	} {
		c := r.declaring(token, test.node)
		c.Subscribe(cds)
		if test.code != codes.OK {
			if err := c.AwaitEnd(); status.Code(err) != test.code || !strings.Contains(err.Error(), `"bank"`) {
				t.Errorf("%s: got %v", name, err)
			}
			continue
		}
		c.Subscribe(sds, "default", inShop, inTill)
		c.AwaitHeld(cds, clustersOf("own.example", probe)...)
		c.AwaitHeld(sds, "default", inShop)
		if got := identityIn(t, c, "default"); got != inShop {
			t.Errorf("%s: the certificate is of %s", name, got)
		}
	}
}

// A client with the node id of another sees nothing of it, whatever it asks for. Its NACKs
// and requests affect itself alone: the other goes on, and is shown as itself.
func TestStolenNodeIDGivesNothing(t *testing.T) {
	t.Parallel()
	r := newVouched(t)
	token, _ := r.token("shop", "cart")
	other, _ := r.token("shop", "till")
	victim := r.with(token, "shop")
	victim.Subscribe(sds, "default")
	victim.Subscribe(cds)
	victim.AwaitHeld(sds, "default")
	victim.AwaitHeld(cds, clustersOf("own.example", probe)...)

	thief := openRaw(t, r.dial(grpc.WithTransportCredentials(credentials.NewTLS(r.ca.Client())), grpc.WithPerRPCCredentials(bearer(other))), adsDelta)
	thief.say(&discoveryv3.DeltaDiscoveryRequest{
		Node: xdsclient.Node("web-1", "shop", "envoy"), TypeUrl: sds, ResourceNamesSubscribe: []string{"default", inShop, inTill},
		InitialResourceVersions: map[string]string{"default": "1", inShop: "1"},
	})
	first := thief.delta()
	for _, resource := range first.GetResources() {
		secret := &tlsv3.Secret{}
		if err := resource.GetResource().UnmarshalTo(secret); err != nil {
			t.Fatal(err)
		}
		if got := leafIn(t, secret).URIs[0].String(); resource.GetName() == inShop || got != inTill {
			t.Errorf("the thief got %s, the certificate of %s", resource.GetName(), got)
		}
	}
	thief.say(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: sds, ResponseNonce: first.GetNonce(), ErrorDetail: &rpcstatus.Status{Code: 3, Message: "no"}})
	thief.say(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: sds, ResourceNamesUnsubscribe: []string{"default", inShop}})
	thief.say(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: cds, ResourceNamesUnsubscribe: clustersOf("own.example", probe)})
	r.await("both to be shown as themselves", func() bool {
		var shown []string
		for _, c := range r.engine.Clients() {
			shown = append(shown, c.ID+" "+c.Identity)
		}
		slices.Sort(shown)
		return slices.Equal(shown, []string{"web-1 " + inShop, "web-1 " + inTill})
	})

	r.put(service("shop", "new.example"))
	victim.AwaitHeld(cds, clustersOf("own.example", "new.example", probe)...)
	if _, err := r.own.RevokeAccount(spiffeid.RequireFromString(inTill), time.Now()); err != nil {
		t.Fatal(err)
	}
	if err := thief.end(); status.Code(err) != codes.Unauthenticated {
		t.Errorf("the thief's stream ended with %v", err)
	}
	r.put(service("shop", "newer.example"))
	victim.AwaitHeld(cds, clustersOf("own.example", "new.example", "newer.example", probe)...)
	victim.AwaitHeld(sds, "default")
	if got := identityIn(t, victim, "default"); got != inShop {
		t.Errorf("the certificate is of %s", got)
	}
}
