package hostile

import (
	"context"
	encodingjson "encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"

	"github.com/isthmus-mesh/isthmus/admin"
	"github.com/isthmus-mesh/isthmus/authority"
	testca "github.com/isthmus-mesh/isthmus/test/testkit/authority"
	"github.com/isthmus-mesh/isthmus/test/testkit/probe"
	"github.com/isthmus-mesh/isthmus/test/testkit/xdsclient"
)

// withTenants has a listener with certificates for accounts, and an issuer of another trust domain.
func withTenants(t *testing.T) setup {
	s := withBorder(t)
	s.border.partner = testca.NewIssuer(t, "https://partner.example")
	keys := filepath.Join(t.TempDir(), "partner.json")
	if err := os.WriteFile(keys, s.border.partner.Keys(), 0o600); err != nil {
		t.Fatal(err)
	}
	s.files = strings.Replace(s.files, ", trustDomains: [cluster.local]", "", 1)
	s.identity = strings.Replace(s.identity, "jwt: [", fmt.Sprintf("trustDomains: {partner.example: {}}, jwt: [{issuer: %q, keysFile: %q, trustDomain: partner.example}, ", "https://partner.example", keys), 1)
	return s
}

// tenants opens n streams with tokens that ask for the configuration and for certificates, and ACK
// nothing. It hands each first response to see, and ends them when all of them are counted and done
// has returned.
func (r *room) tenants(t *testing.T, n int, token func(i int) string, see func(*discoveryv3.DeltaDiscoveryResponse) error, done func() error) {
	t.Helper()
	r.beside(t, func(ctx context.Context) error {
		ctx, stop := context.WithCancel(ctx)
		defer stop()
		c := newCrowd(ctx)
		var next, opened atomic.Int64
		c.send(stormers, func(ctx context.Context, _ int) error {
			conn, err := grpc.NewClient(r.target(), append(r.options(), grpc.WithTransportCredentials(credentials.NewTLS(r.border.bare)))...)
			if err != nil {
				return err
			}
			defer conn.Close()
			for i := int(next.Add(1)); i <= n; i = int(next.Add(1)) {
				if err := r.tenant(metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+token(i)), conn, i, see); err != nil {
					return err
				}
				opened.Add(1)
			}
			<-ctx.Done() // the streams stay
			return nil
		})
		c.send(1, func(ctx context.Context, _ int) error {
			if err := r.awaitClients(ctx, n+1); err != nil {
				return err
			}
			defer stop()
			return done()
		})
		return unlessStopped(c.wait())
	})
}

// tenant opens a stream under a made-up name.
func (r *room) tenant(ctx context.Context, conn *grpc.ClientConn, i int, see func(*discoveryv3.DeltaDiscoveryResponse) error) error {
	s, err := openOn(ctx, conn, r.method())
	if err != nil {
		return err
	}
	for _, m := range []*discoveryv3.DeltaDiscoveryRequest{
		{Node: xdsclient.Node(fmt.Sprintf("made-up-%d", i), "", "envoy"), TypeUrl: xdsclient.CDS, ResourceNamesSubscribe: []string{"*"}},
		{TypeUrl: xdsclient.SDS, ResourceNamesSubscribe: []string{"default", "ROOTCA"}},
	} {
		if err := s.SendMsg(marshal(m)); err != nil {
			return err
		}
	}
	for range 2 {
		text, err := s.receive()
		if err != nil {
			return unlessOver(ctx, err)
		}
		response := &discoveryv3.DeltaDiscoveryResponse{}
		if err := proto.Unmarshal(text, response); err != nil {
			return err
		}
		if err := see(response); err != nil {
			return err
		}
	}
	return nil
}

// tenantsWithoutACKs has few accounts open many streams under made-up names, none of which accepts the
// roots. The authority names each account once, and the revocation of the accounts ends the
// streams.
func tenantsWithoutACKs(t *testing.T, r *room) string {
	n, accounts := size(4_000, 80), []string{"one", "two", "three"}
	tokens := make([]string, len(accounts))
	for i, account := range accounts {
		var err error
		if tokens[i], _, err = r.border.own.Issue(authority.Grant{Namespace: "bank", Account: account, TTL: time.Hour}, time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	var shown admin.Authority
	r.tenants(t, n, func(i int) string { return tokens[i%len(tokens)] }, func(*discoveryv3.DeltaDiscoveryResponse) error { return nil }, func() error {
		if err := encodingjson.Unmarshal(probe.Get("http://"+r.server.admin+"/api/v1/authority"), &shown); err != nil {
			return err
		}
		streams := 0
		for _, one := range shown.Clients.Behind {
			streams += one.Streams
		}
		if len(shown.Clients.Behind) != len(accounts) || streams != n {
			return fmt.Errorf("the clients without the roots are %+v", shown.Clients)
		}
		return nil
	})
	return fmt.Sprintf("%d streams of %d accounts, none of which ACKed; the authority names %d accounts", n, len(accounts), len(shown.Clients.Behind))
}

// foreignAccounts has an issuer of another trust domain make up an account for each stream, in the
// root namespace. None of them is sent a certificate.
func foreignAccounts(t *testing.T, r *room) string {
	n := size(4_000, 80)
	var certificates atomic.Int64
	r.tenants(t, n, func(i int) string { return r.border.partner.Token("istio-system", fmt.Sprintf("made-up-%d", i)) }, func(response *discoveryv3.DeltaDiscoveryResponse) error {
		if response.GetTypeUrl() == xdsclient.SDS {
			certificates.Add(int64(len(response.GetResources())))
		}
		return nil
	}, func() error {
		if list := string(probe.Get("http://" + r.server.admin + "/api/v1/certificates")); certificates.Load() > 0 || strings.Contains(list, "made-up") {
			return fmt.Errorf("%d certificates were sent; listed are %s", certificates.Load(), list)
		}
		return nil
	})
	return fmt.Sprintf("%d streams, each of another account of another trust domain; no certificate was sent", n)
}
