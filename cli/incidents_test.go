package cli_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	"github.com/isthmus-mesh/isthmus/authority"
	"github.com/isthmus-mesh/isthmus/cli"
	testca "github.com/isthmus-mesh/isthmus/test/testkit/authority"
	"github.com/isthmus-mesh/isthmus/test/testkit/until"
	"github.com/isthmus-mesh/isthmus/test/testkit/xdsclient"
)

// stolen is an authority in the hands of a thief.
type stolen struct{ *authority.Authority }

func steal(t *testing.T, s *trusting) stolen {
	t.Helper()
	a, err := authority.Open(s.dir)
	if err != nil {
		t.Fatal(err)
	}
	return stolen{a}
}

// forge makes a certificate for an account of the root namespace.
func (s stolen) forge(t *testing.T) []*x509.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	text, err := s.Sign("spiffe://cluster.local/ns/istio-system/sa/thief", &key.PublicKey, time.Now(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	var chain []*x509.Certificate
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		one, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		chain = append(chain, one)
	}
	return chain
}

// bearer sends a token with each stream.
type bearer string

func (b bearer) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"authorization": "Bearer " + string(b)}, nil
}

func (bearer) RequireTransportSecurity() bool { return true }

// reads returns how a stream with a forged token of the root namespace is answered.
func (s stolen) reads(t *testing.T, at *trusting) error {
	t.Helper()
	text, _, err := s.Issue(authority.Grant{Namespace: "istio-system", Account: "thief", TTL: time.Hour}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	conn, err := grpc.NewClient("passthrough:///"+at.xds, grpc.WithTransportCredentials(credentials.NewTLS(at.ca.Client())), grpc.WithPerRPCCredentials(bearer(text)))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	c := xdsclient.NewDelta(t, conn, xdsclient.Config{Node: xdsclient.Node("thief", "istio-system", "envoy"), Ledger: &xdsclient.Ledger{}, Deadline: until.Patience})
	c.Subscribe(xdsclient.SDS, "ROOTCA")
	var ended error
	until.NoError(t, 10*time.Millisecond, "an answer", func() error {
		if c.IsConnected() {
			held := false
			if c.Read(func(state *xdsclient.State) { _, held = state.Get(xdsclient.SDS, "ROOTCA") }); held {
				return nil
			}
			return context.DeadlineExceeded
		}
		ended = c.AwaitEnd()
		return nil
	})
	return ended
}

// trusts reports whether a workload with these roots accepts a chain.
func trusts(chain, roots []*x509.Certificate) bool {
	all, between := x509.NewCertPool(), x509.NewCertPool()
	for _, root := range roots {
		all.AddCert(root)
	}
	for _, one := range chain[1:] {
		between.AddCert(one)
	}
	_, err := chain[0].Verify(x509.VerifyOptions{Roots: all, Intermediates: between})
	return err == nil
}

// Whoever has the folder of an authority has everything, until Isthmus has another one.
func TestTheftOfTheRootEndsWithAnotherAuthority(t *testing.T) {
	t.Parallel()
	ca, before, after := testca.New(t, "ca"), t.TempDir(), t.TempDir()
	createAuthority(t, before)
	createAuthority(t, after)
	old := newTrusting(t, ca, before)
	thief := steal(t, old)
	forged := thief.forge(t)
	if err := thief.reads(t, old); err != nil || !trusts(forged, awaitRoots(old.connect("web"), 1)) {
		t.Fatalf("the theft is none: %v", err)
	}
	now := newTrusting(t, ca, after)
	if err := thief.reads(t, now); status.Code(err) != codes.Unauthenticated {
		t.Errorf("by a token of the old authority: %v", err)
	}
	if trusts(forged, awaitRoots(now.connect("web"), 1)) {
		t.Error("workloads accept a certificate of the old authority")
	}
}

// Whoever has the issuing key makes certificates that workloads accept until the root is another one.
// The next issuing certificate does not end that.
func TestTheftOfTheIssuingKeyEndsWithTheRoot(t *testing.T) {
	t.Parallel()
	ca, dir := testca.New(t, "ca"), t.TempDir()
	createAuthority(t, dir)
	s := newTrusting(t, ca, dir)
	forged, web := steal(t, s).forge(t), s.connect("web")
	if len(forged) != 2 || !trusts(forged, awaitRoots(web, 1)) {
		t.Fatal("the theft is none")
	}
	var out bytes.Buffer
	if status := cli.Main(t.Context(), "test", []string{"ca", "issuer", "--dir", s.dir}, nil, &out, &out); status != 0 {
		t.Fatal(out.String())
	}
	s.rotate(0, "the next root is trusted since", "begin")
	if !trusts(forged, awaitRoots(web, 2)) {
		t.Error("the old root is not trusted until the end")
	}
	until.NoError(t, 50*time.Millisecond, "the client to ACK", func() error {
		if got := s.ask("/api/v1/authority"); !strings.Contains(got, `"behind": []`) {
			return errors.New(got)
		}
		return nil
	})
	s.rotate(0, "waits for the certificates of the old root to expire", "sign", s.admin)
	s.passDay()
	s.rotate(0, "one root is trusted", "finish", s.admin)
	if trusts(forged, awaitRoots(web, 1)) {
		t.Error("workloads accept a certificate of the stolen key at the end")
	}
}
