package app_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	mcpapi "istio.io/api/mcp/v1alpha1"

	resourcev1alpha1 "github.com/isthmus-mesh/isthmus/api/isthmus/resource/v1alpha1"
	"github.com/isthmus-mesh/isthmus/internal/mcp"
	"github.com/isthmus-mesh/isthmus/test/testkit/until"
	"github.com/isthmus-mesh/isthmus/test/testkit/xdsclient"
)

const (
	rootNamespace = "istio-system"
	account       = "a"
	adminToken    = "for-the-admin-api"
	trustDomains  = `
  trustDomainAliases: [old.example]
  trustDomains: {partner.example: {namespaces: {frontend: shop, control: istio-system}}}
`
	everything = "bare frontend-only listed other-only pub root-only shop-only"
)

var (
	domains    = []string{"cluster.local", "old.example", "partner.example", "unknown.example"}
	namespaces = []string{rootNamespace, "shop", "frontend", "control", "other"}
	// exported has the services, each with its own namespace and the namespaces that see it; nil
	// for everybody.
	exported = map[string]struct {
		namespace, exportTo string
		seenIn              []string
	}{
		"bare":          {"shop", "", nil},
		"frontend-only": {"frontend", `, exportTo: ["."]`, []string{"frontend"}},
		"listed":        {"shop", `, exportTo: [frontend, control]`, []string{"frontend", "control"}},
		"other-only":    {"other", `, exportTo: ["."]`, []string{"other"}},
		"pub":           {"other", `, exportTo: ["*"]`, nil},
		"root-only":     {rootNamespace, `, exportTo: ["."]`, []string{rootNamespace}},
		"shop-only":     {"shop", `, exportTo: ["."]`, []string{"shop"}},
	}
)

// who is an identity.
type who struct{ domain, namespace string }

func (w who) String() string {
	return "spiffe://" + w.domain + "/ns/" + w.namespace + "/sa/" + account
}

// here is the namespace of this mesh in which trustDomains has an identity; empty for none.
func (w who) here() string {
	switch w.domain {
	case "cluster.local", "old.example":
		return w.namespace
	case "partner.example":
		return map[string]string{"frontend": "shop", "control": rootNamespace}[w.namespace]
	}
	return ""
}

// visible names the services that a client in a namespace sees.
func visible(namespace string) string {
	var names []string
	for name, service := range exported {
		if service.seenIn == nil || slices.Contains(service.seenIn, namespace) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

// all is the outcome of a door where the root namespace reads everything.
func all(others func(namespace string) string) func(namespace string) string {
	return func(namespace string) string {
		if namespace == rootNamespace {
			return everything
		}
		return others(namespace)
	}
}

func denied(string) string { return codes.PermissionDenied.String() }

// doors are the ways to read at outputs, with the names that each reads. The outcome for a client
// in a namespace is names of services, or the code of an error.
var doors = []struct {
	name, output string
	read         func(ctx context.Context, c *grpc.ClientConn, w who) ([]string, error)
	want         func(namespace string) string
}{
	{"a proxy", "xds", func(ctx context.Context, c *grpc.ClientConn, w who) ([]string, error) {
		return discovers(ctx, c, proxyOf(w.namespace), xdsclient.CDS)
	}, visible},
	{"a proxy that declares no namespace", "xds", func(ctx context.Context, c *grpc.ClientConn, _ who) ([]string, error) {
		return discovers(ctx, c, xdsclient.Node("a", "", "envoy"), xdsclient.CDS)
	}, visible},
	{"a proxy that declares another namespace", "xds", func(ctx context.Context, c *grpc.ClientConn, w who) ([]string, error) {
		return discovers(ctx, c, proxyOf(map[bool]string{true: "shop", false: "other"}[w.namespace == "other"]), xdsclient.CDS)
	}, denied},
	{"a control plane", "xds", func(ctx context.Context, c *grpc.ClientConn, _ who) ([]string, error) {
		return discovers(ctx, c, xdsclient.Node("istiod", "", "istiod"), "networking.istio.io/v1alpha3/ServiceEntry")
	}, all(denied)},
	{"a sink", "mcp", sinks, all(denied)},
	{"a reader of records", "watch", lists("Service"), all(denied)},
	{"a reader of merged services", "watch", lists("MergedService"), all(visible)},
}

func proxyOf(namespace string) *corev3.Node {
	return xdsclient.Node(fmt.Sprintf("sidecar~10.0.0.1~a.%[1]s~%[1]s.svc.cluster.local", namespace), namespace, "envoy")
}

// discovers returns the names in the first response to a stream of state of the world, which has
// everything of the type.
func discovers(ctx context.Context, c *grpc.ClientConn, node *corev3.Node, typeURL string) (names []string, err error) {
	stream, err := discoveryv3.NewAggregatedDiscoveryServiceClient(c).StreamAggregatedResources(ctx)
	if err != nil {
		return nil, err
	}
	_ = stream.Send(&discoveryv3.DiscoveryRequest{Node: node, TypeUrl: typeURL}) // Recv returns the error
	response, err := stream.Recv()
	if err != nil {
		return nil, err
	}
	for _, resource := range response.GetResources() {
		message, err := resource.UnmarshalNew()
		if err != nil {
			return nil, err
		}
		switch r := message.(type) {
		case *mcpapi.Resource:
			names = append(names, r.GetMetadata().GetName())
		case *clusterv3.Cluster:
			if strings.HasPrefix(r.GetName(), "outbound|") { // a sidecar has others of its own
				names = append(names, r.GetName())
			}
		}
	}
	return names, nil
}

// sinks returns the names in the first response to a sink.
func sinks(ctx context.Context, c *grpc.ClientConn, _ who) (names []string, err error) {
	stream, err := mcp.NewResourceSourceClient(c).EstablishResourceStream(ctx)
	if err != nil {
		return nil, err
	}
	_ = stream.Send(&mcp.RequestResources{SinkNode: &mcp.SinkNode{Id: "a"}, Collection: mcp.Synthetic}) // Recv returns the error
	response, err := stream.Recv()
	for _, resource := range response.GetResources() {
		names = append(names, resource.GetMetadata().GetName())
	}
	return names, err
}

// lists returns a door that reads the records of a kind.
func lists(kind string) func(context.Context, *grpc.ClientConn, who) ([]string, error) {
	return func(ctx context.Context, c *grpc.ClientConn, _ who) (names []string, err error) {
		list, err := resourcev1alpha1.NewResourceServiceClient(c).List(ctx, &resourcev1alpha1.ListRequest{Filter: &resourcev1alpha1.Filter{Kind: kind}})
		for _, record := range list.GetRecords() {
			names = append(names, record.GetRef().GetName())
		}
		return names, err
	}
}

// outcome names the services that were read, or the code of the error.
func outcome(names []string, err error) string {
	if err != nil {
		return status.Code(err).String()
	}
	for i, name := range names {
		names[i] = strings.TrimSuffix(name[strings.LastIndexAny(name, "|/")+1:], ".example")
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

// reads goes through all doors of outputs with a proof.
func (g *guarded) reads(t *testing.T, w who, p proof, want func(door int) string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), until.Patience)
	defer cancel()
	conns := map[string]*grpc.ClientConn{}
	for i, door := range doors {
		if conns[door.output] == nil {
			conns[door.output] = g.dial(t, g.Addr(door.output).String(), p)
		}
		if got := outcome(door.read(ctx, conns[door.output], w)); got != want(i) {
			t.Errorf("%s gets %q, want %q", door.name, got, want(i))
		}
	}
}

// everybody runs a subtest for each identity.
func everybody(t *testing.T, test func(t *testing.T, w who)) {
	t.Helper()
	for _, domain := range domains {
		for _, namespace := range namespaces {
			t.Run(domain+"/"+namespace, func(t *testing.T) {
				t.Parallel()
				test(t, who{domain, namespace})
			})
		}
	}
}

// TestRightsOfClients goes through all doors of outputs and the admin API with all proofs of all
// identities.
func TestRightsOfClients(t *testing.T) {
	t.Parallel()
	g := guard(t, trustDomains, "", ", tls: {certFile: tls.crt, keyFile: tls.key}, tokenFile: admin.token")
	admits := func(p proof) bool {
		code, text := g.asks(t, "https", p)
		if code != http.StatusOK && code != http.StatusUnauthorized && code != http.StatusForbidden {
			t.Errorf("the admin API answers %d: %s", code, text)
		}
		return code == http.StatusOK
	}
	if !admits(proof{token: adminToken}) || admits(proof{}) {
		t.Error("the admin API does not go by its token")
	}
	unproven := func(int) string { return codes.Unauthenticated.String() }
	g.reads(t, who{"cluster.local", rootNamespace}, proof{}, unproven)
	everybody(t, func(t *testing.T, w who) {
		for kind, p := range g.proofs[w].kinds() {
			t.Run(kind, func(t *testing.T) {
				g.reads(t, w, p, func(door int) string { return doors[door].want(w.here()) })
				if admits(p) {
					t.Error("the admin API goes by an identity")
				}
			})
		}
		for _, other := range []who{{w.domain, next(namespaces, w.namespace)}, {next(domains, w.domain), w.namespace}} {
			t.Run("certificate with the token of "+other.domain+" "+other.namespace, func(t *testing.T) {
				g.reads(t, w, proof{g.proofs[w].certificates, g.proofs[other].token}, unproven)
			})
		}
	})
}

// next returns the value after one, and the first after the last.
func next(all []string, one string) string { return all[(slices.Index(all, one)+1)%len(all)] }

// TestRightsOfRegistries has all identities dial sources that listen. Each source has a registry
// already, so one with the right to be it is answered that there is another.
func TestRightsOfRegistries(t *testing.T) {
	t.Parallel()
	ofRoot, named := rareAddress(t), rareAddress(t)
	const source = "- {name: %s, mcp: {listen: %q, collections: [" + mcp.Synthetic + "], tls: {certFile: tls.crt, keyFile: tls.key, caFile: ca.crt%s}}}\n"
	g := guard(t, trustDomains, fmt.Sprintf(source, "of-root", ofRoot, "")+
		fmt.Sprintf(source, "named", named, `, identities: ["spiffe://*/ns/control/sa/*", "spiffe://unknown.example/ns/shop/sa/a"]`), "")
	root, control := who{"cluster.local", rootNamespace}, who{"cluster.local", "control"}
	for address, first := range map[string]who{ofRoot: root, named: control} {
		if err := g.registers(t, address, proof{g.proofs[first].certificates, ""}, grpc.WaitForReady(true)); err != nil {
			t.Errorf("the first registry, %s: %v", first, err)
		}
	}
	everybody(t, func(t *testing.T, w who) {
		for address, may := range map[string]bool{
			ofRoot: w.here() == rootNamespace,
			named:  w.namespace == "control" || w == who{"unknown.example", "shop"},
		} {
			want := map[bool]codes.Code{true: codes.ResourceExhausted, false: codes.PermissionDenied}[may]
			for _, token := range []string{"", g.proofs[w].token, g.proofs[root].token, g.proofs[control].token} { // none counts
				if err := g.registers(t, address, proof{g.proofs[w].certificates, token}); status.Code(err) != want {
					t.Errorf("%v, want %s", err, want)
				}
			}
			if err := g.registers(t, address, proof{nil, g.proofs[w].token}); status.Code(err) != codes.Unavailable {
				t.Errorf("without a certificate: %v", err)
			}
		}
	})
}

// TestRightsWithoutTrustDomains has a configuration that says nothing about other trust domains:
// their certificates have the namespaces of this mesh for one release, with a warning.
func TestRightsWithoutTrustDomains(t *testing.T) {
	t.Parallel()
	for name, trust := range map[string]string{"absent": "", "empty": "  trustDomains: {}\n"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := guard(t, trust, "", "")
			for _, namespace := range namespaces {
				w, kept := who{"unknown.example", namespace}, map[bool]string{true: namespace}[trust == ""]
				t.Run(namespace, func(t *testing.T) {
					g.reads(t, w, proof{g.proofs[w].certificates, ""}, func(door int) string { return doors[door].want(kept) })
					g.reads(t, w, proof{nil, g.proofs[w].token}, func(door int) string { return doors[door].want("") })
				})
			}
			_, text := g.asks(t, "http", proof{})
			var shown struct {
				Findings []struct{ Severity, About, Problem string }
			}
			if err := json.Unmarshal(text, &shown); err != nil {
				t.Fatal(err)
			}
			var found []string
			for _, f := range shown.Findings {
				if f.About == "identity" {
					found = append(found, f.Severity+": "+f.Problem)
				}
			}
			switch {
			case trust != "" && len(found) > 0:
				t.Errorf("the findings are %q", found)
			case trust == "" && (len(found) != 1 || !strings.HasPrefix(found[0], `warning: trust domain "unknown.example": `) || !strings.Contains(found[0], "spiffe://unknown.example/ns/")):
				t.Errorf("the findings are %q", found)
			}
		})
	}
}
