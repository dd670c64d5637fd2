package app_test

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/isthmus-mesh/isthmus/admin"
	"github.com/isthmus-mesh/isthmus/authority"
	"github.com/isthmus-mesh/isthmus/internal/mcp"
	testca "github.com/isthmus-mesh/isthmus/test/testkit/authority"
	"github.com/isthmus-mesh/isthmus/test/testkit/until"
	"github.com/isthmus-mesh/isthmus/test/testkit/xdsclient"
)

// TestSentCertificateOpensNoDoor steals a token of the root namespace, gets a certificate by it,
// and tries all doors with the certificate when the token is revoked.
func TestSentCertificateOpensNoDoor(t *testing.T) {
	t.Parallel()
	domain, err := authority.TrustDomain("cluster.local")
	if err != nil {
		t.Fatal(err)
	}
	dir, registry := filepath.Join(t.TempDir(), "own"), rareAddress(t)
	own, err := authority.Create(dir, domain, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	trust := fmt.Sprintf("  authority: {dir: %q}\n", dir)
	g, listening := guard(t, trust, "", "", own.Root()), guard(t, trust, fmt.Sprintf("- {name: dialled, mcp: {listen: %q, collections: ["+mcp.Synthetic+
		"], tls: {certFile: tls.crt, keyFile: tls.key, caFile: ca.crt}}}\n", registry), "", own.Root())
	stolen, entry, err := own.Issue(authority.Grant{Namespace: rootNamespace, Account: account, TTL: time.Hour}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	w := who{"cluster.local", rootNamespace}
	g.reads(t, w, proof{token: stolen}, func(door int) string { return doors[door].want(rootNamespace) })
	leaf, stream := g.certified(t, proof{token: stolen})
	until.NoError(t, 20*time.Millisecond, "the certificate of one stream", func() error {
		if out := g.out(t); len(out) != 1 || out[0].Identity != w.String() || out[0].Streams != 1 || out[0].Until.Before(out[0].Renewed) {
			return fmt.Errorf("the certificates that are out are %+v", out)
		}
		return nil
	})

	if _, err := own.RevokeToken(entry.ID, time.Now()); err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Recv(); status.Code(err) != codes.Unauthenticated {
		t.Errorf("the stream of the token ends with %v", err)
	}
	until.NoError(t, 20*time.Millisecond, "the end of renewals", func() error {
		if out := g.out(t); len(out) != 1 || out[0].Streams > 0 {
			return fmt.Errorf("the certificates that are out are %+v", out)
		}
		return nil
	})
	shown := proof{[]testca.Pair{leaf}, ""}
	g.reads(t, w, shown, rejected)
	g.reads(t, w, proof{[]testca.Pair{leaf}, stolen}, func(int) string { return codes.Unauthenticated.String() })
	if err := listening.registers(t, registry, shown, grpc.WaitForReady(true)); status.Code(err) != codes.PermissionDenied {
		t.Errorf("as a registry: %v", err)
	}
	for path, wanted := range map[string]string{
		"/api/v1/status": w.String() + " connects with a certificate that Isthmus itself sent",
		"/api/v1/events": "showed a sent certificate of " + w.String(),
	} {
		if _, text := g.get(t, "http", path, proof{}); !strings.Contains(string(text), wanted) {
			t.Errorf("%s lacks %q: %s", path, wanted, text)
		}
	}
	if _, text := g.get(t, "http", "/api/v1/events", proof{}); strings.Count(string(text), "got a first certificate as "+w.String()) != 1 {
		t.Errorf("the events lack the certificate: %s", text)
	}
	if out := g.out(t); len(out) != 1 {
		t.Errorf("the certificates that are out are %+v", out)
	}
}

func rejected(int) string { return codes.PermissionDenied.String() }

// out lists the certificates that clients have.
func (g *guarded) out(t *testing.T) (list []admin.Certificate) {
	t.Helper()
	_, text := g.get(t, "http", "/api/v1/certificates", proof{})
	if err := json.Unmarshal(text, &list); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return list
}

// certified connects a proxy of the root namespace, and returns the certificate that it is sent, on a
// stream that stays.
func (g *guarded) certified(t *testing.T, p proof) (testca.Pair, discoveryv3.AggregatedDiscoveryService_StreamAggregatedResourcesClient) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), until.Patience)
	t.Cleanup(cancel)
	stream, err := discoveryv3.NewAggregatedDiscoveryServiceClient(g.dial(t, g.Addr("xds").String(), p)).StreamAggregatedResources(ctx)
	if err != nil {
		t.Fatal(err)
	}
	_ = stream.Send(&discoveryv3.DiscoveryRequest{Node: proxyOf(rootNamespace), TypeUrl: xdsclient.SDS, ResourceNames: []string{"default"}})
	response, err := stream.Recv()
	if err != nil {
		t.Fatal(err)
	}
	secret := &tlsv3.Secret{}
	if err := response.GetResources()[0].UnmarshalTo(secret); err != nil {
		t.Fatal(err)
	}
	is := secret.GetTlsCertificate()
	return testca.Pair{Cert: is.GetCertificateChain().GetInlineBytes(), Key: is.GetPrivateKey().GetInlineBytes()}, stream
}
