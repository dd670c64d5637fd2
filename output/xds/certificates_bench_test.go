package xds_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/go-jose/go-jose/v4"
	"github.com/spiffe/go-spiffe/v2/spiffeid"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"

	"github.com/isthmus-mesh/isthmus/authority"
	"github.com/isthmus-mesh/isthmus/identity"
	"github.com/isthmus-mesh/isthmus/output"
	"github.com/isthmus-mesh/isthmus/output/xds"
	"github.com/isthmus-mesh/isthmus/secrets"
	measure "github.com/isthmus-mesh/isthmus/test/testkit/probe"
	"github.com/isthmus-mesh/isthmus/test/testkit/until"
	"github.com/isthmus-mesh/isthmus/test/testkit/xdsclient"
)

const (
	proxies = 5_000
	// proxyConnections of many streams each: a server lets 1,000 streams use one.
	proxyConnections = 20
	benchIssuer      = "https://issuer.example"
)

// BenchmarkCertificates is 5,000 proxies of as many accounts, which are proven by tokens and ask
// for their certificates and the authorities. With none served, they get the answer that there
// are none. Then the authorities change, as in a rotation of the root, and then all certificates
// at once. Time and memory are of both ends, which share the process.
func BenchmarkCertificates(b *testing.B) {
	for _, served := range []bool{false, true} {
		b.Run(map[bool]string{false: "none", true: "served"}[served], func(b *testing.B) {
			for b.Loop() {
				f := newProxies(b, served)
				before := liveBytes()
				f.measure("connect", 2*proxies, f.connect)
				b.ReportMetric((liveBytes()-before)/proxies/1024, "heap-KiB/proxy")
				if served {
					f.measure("authorities", proxies, f.issuer.turnBundle)
					f.measure("renewal", proxies, f.issuer.outdate)
				}
				f.end()
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}

// liveBytes is the live bytes of heap and stacks.
func liveBytes() float64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc + m.StackInuse)
}

// turning is an issuer with authorities and certificates that change on demand.
type turning struct {
	*authority.Issuer

	mu         sync.Mutex
	bundle     *secrets.Bundle
	generation int
	next       chan struct{}
}

func (i *turning) Issue(id string, now time.Time) (*secrets.Leaf, error) {
	leaf, err := i.Issuer.Issue(id, now)
	if err == nil {
		i.mu.Lock()
		leaf.Generation = fmt.Sprint(i.generation)
		i.mu.Unlock()
	}
	return leaf, err
}

func (i *turning) Current(leaf *secrets.Leaf) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return leaf.Generation == fmt.Sprint(i.generation)
}

func (i *turning) Bundle() *secrets.Bundle {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.bundle
}

func (i *turning) Changed() <-chan struct{} {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.next
}

func (i *turning) turn(change func()) {
	i.mu.Lock()
	defer i.mu.Unlock()
	change()
	close(i.next)
	i.next = make(chan struct{})
}

// turnBundle adds an authority to the one there is.
func (i *turning) turnBundle() {
	i.turn(func() { i.bundle = &secrets.Bundle{Authorities: slices.Repeat(i.bundle.Authorities, 2)} })
}

// outdate has all certificates be made anew.
func (i *turning) outdate() { i.turn(func() { i.generation++ }) }

// fleet is the proxies and the site that they connect to.
type fleet struct {
	b       *testing.B
	site    *site
	issuer  *turning // nil if no certificates are served
	signer  jose.Signer
	context context.Context //nolint:containedctx // it is that of all streams
	cancel  context.CancelFunc
	running sync.WaitGroup
	answers atomic.Int64 // ACKed resources, and names of which there are none
	failed  atomic.Pointer[error]
}

func newProxies(b *testing.B, served bool) *fleet {
	b.Helper()
	f := &fleet{b: b}
	f.context, f.cancel = context.WithCancel(b.Context())
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	f.must(err)
	f.signer, err = jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: key}, &jose.SignerOptions{ExtraHeaders: map[jose.HeaderKey]any{"kid": "k"}})
	f.must(err)
	keys, err := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{KeyID: "k", Key: key.Public(), Use: "sig"}}})
	f.must(err)
	dir := b.TempDir()
	f.must(os.WriteFile(filepath.Join(dir, "keys.json"), keys, 0o600))
	log := slog.New(slog.DiscardHandler)
	env := output.Env{}
	env.Identity, err = identity.New(identity.Config{JWT: []identity.Issuer{{Issuer: benchIssuer, KeysFile: filepath.Join(dir, "keys.json")}}}, "istio-system", log)
	f.must(err)
	if served {
		own, err := authority.Create(filepath.Join(dir, "authority"), spiffeid.RequireTrustDomainFromString("cluster.local"), time.Now())
		f.must(err)
		f.issuer = &turning{Issuer: own.Issuer(24 * time.Hour), next: make(chan struct{})}
		f.issuer.bundle = f.issuer.Issuer.Bundle()
		env.Certificates = f.issuer
	}
	f.site = openSiteWith(b, env, true, func(c *xds.Config) { c.TLS.TakeTokens() })
	f.site.put(upserts(service("shop", probe))...)
	return f
}

func (f *fleet) must(err error) {
	f.b.Helper()
	if err != nil {
		f.b.Fatal(err)
	}
}

// measure reports the time of an action until all its answers are ACKed.
func (f *fleet) measure(what string, answers int64, do func()) {
	f.b.Helper()
	want, cpu, start := f.answers.Load()+answers, measure.CPU(f.b, os.Getpid()), time.Now()
	do()
	for f.answers.Load() < want {
		if err := f.failed.Load(); err != nil {
			f.b.Fatal(*err)
		}
		if time.Since(start) > 5*until.Patience {
			f.b.Fatalf("%s: %d answers are missing", what, want-f.answers.Load())
		}
		time.Sleep(time.Millisecond)
	}
	f.b.ReportMetric(float64(time.Since(start).Milliseconds()), what+"-ms")
	f.b.ReportMetric(float64((measure.CPU(f.b, os.Getpid())-cpu).Microseconds())/proxies, what+"-cpu-µs/proxy")
}

// connect opens the streams of all proxies.
func (f *fleet) connect() {
	var conns []*grpc.ClientConn
	for range proxyConnections {
		conn, err := grpc.NewClient("passthrough:///"+f.site.out.Report().Addr.String(), grpc.WithTransportCredentials(credentials.NewTLS(f.site.ca.Client())))
		f.must(err)
		f.b.Cleanup(func() { _ = conn.Close() })
		conns = append(conns, conn)
	}
	for i := range proxies {
		f.running.Go(func() {
			if err := f.follow(conns[i%len(conns)], i); err != nil && f.context.Err() == nil {
				f.failed.CompareAndSwap(nil, &err)
			}
		})
	}
}

// follow is one proxy: it ACKs all that it is sent.
func (f *fleet) follow(conn *grpc.ClientConn, i int) error {
	claims := fmt.Appendf(nil, `{"iss": %q, "aud": "isthmus", "sub": "system:serviceaccount:shop:web-%d", "exp": %d}`, benchIssuer, i, time.Now().Add(time.Hour).Unix())
	signed, err := f.signer.Sign(claims)
	if err != nil {
		return err
	}
	token, err := signed.CompactSerialize()
	if err != nil {
		return err
	}
	ctx := metadata.AppendToOutgoingContext(f.context, "authorization", "Bearer "+token)
	stream, err := discoveryv3.NewAggregatedDiscoveryServiceClient(conn).DeltaAggregatedResources(ctx)
	if err != nil {
		return err
	}
	request := &discoveryv3.DeltaDiscoveryRequest{
		Node: xdsclient.Node(fmt.Sprintf("web-%d", i), "shop", "envoy"), TypeUrl: sds, ResourceNamesSubscribe: []string{"default", "ROOTCA"},
	}
	for {
		if err := stream.Send(request); err != nil {
			return err
		}
		response, err := stream.Recv()
		if err != nil {
			return err
		}
		request = &discoveryv3.DeltaDiscoveryRequest{TypeUrl: sds, ResponseNonce: response.GetNonce()}
		f.answers.Add(int64(len(response.GetResources()) + len(response.GetRemovedResources())))
	}
}

func (f *fleet) end() {
	f.cancel()
	f.running.Wait()
}
