package hostile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/isthmus-mesh/isthmus/test/testkit/xdsclient"
)

// randomRequests sends requests that are well-formed and make no sense: names,
// nonces, versions, types and errors in any combination, on either variant.
// Some clients read what comes, others do not.
func randomRequests(t *testing.T, r *room) string {
	var o outcomes
	var c *crowd
	r.beside(t, func(ctx context.Context) error {
		conns, err := r.attackers(10)
		if err != nil {
			return err
		}
		defer conns.close()
		end := time.Now().Add(size(6*time.Second, time.Second))
		c = newCrowd(ctx)
		c.send(size(40, 8), func(ctx context.Context, i int) error {
			b := babbler{Rand: chance(i), delta: i%2 == 0}
			for timeLeft(ctx, end) {
				n, err := conns.babble(ctx, i, &b)
				c.count.Add(int64(n))
				if err := o.note(err); err != nil {
					return err
				}
			}
			return nil
		})
		return c.wait()
	})
	return fmt.Sprintf("%d random requests on %d streams, of which %d were rejected by name",
		c.count.Load(), o.served.Load()+o.rejected.Load(), o.rejected.Load())
}

// babble opens a stream, sends requests on it, and returns how it ended.
func (c connections) babble(ctx context.Context, attacker int, b *babbler) (requests int, err error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	s, err := c.open(ctx, attacker, map[bool]string{true: delta, false: sotw}[b.delta])
	if err != nil {
		return 0, err
	}
	ended := make(chan error, 1)
	read := func() {
		for {
			text, err := s.receive()
			if err != nil {
				ended <- err
				return
			}
			b.overhear(text)
		}
	}
	silent := b.IntN(4) == 0 // to what comes, until it has nothing more to say
	if !silent {
		go read()
	}
	for most := b.IntN(300); requests < most && err == nil; requests++ {
		err = s.SendMsg(b.request())
	}
	_ = s.CloseSend()
	if silent {
		go read()
	}
	if err = <-ended; errors.Is(err, io.EOF) {
		err = nil
	}
	return requests, err
}

// babbler makes requests up.
type babbler struct {
	*rand.Rand
	delta bool

	mu     sync.Mutex
	nonces []string // that were overheard on the stream or one before
}

// overhear remembers the nonce of a response, which is the same field in both variants.
func (b *babbler) overhear(text []byte) {
	const nonce = 5
	for len(text) > 0 {
		field, kind, n := protowire.ConsumeTag(text)
		if n < 0 {
			return
		}
		size := protowire.ConsumeFieldValue(field, kind, text[n:])
		if size < 0 {
			return
		}
		if field == nonce {
			said, _ := protowire.ConsumeString(text[n:])
			b.mu.Lock()
			b.nonces = append(b.nonces[max(0, len(b.nonces)-50):], said)
			b.mu.Unlock()
		}
		text = text[n+size:]
	}
}

// request is any request of the variant.
func (b *babbler) request() []byte {
	if b.delta {
		return marshal(&discoveryv3.DeltaDiscoveryRequest{
			Node: xdsclient.Node(b.word(), b.word(), b.word()), TypeUrl: b.typeURL(), ResponseNonce: b.nonce(), ErrorDetail: b.complaint(),
			ResourceNamesSubscribe: b.names(), ResourceNamesUnsubscribe: b.names(), InitialResourceVersions: b.versions(),
		})
	}
	return marshal(&discoveryv3.DiscoveryRequest{
		Node: xdsclient.Node(b.word(), b.word(), b.word()), TypeUrl: b.typeURL(), ResponseNonce: b.nonce(), ErrorDetail: b.complaint(),
		ResourceNames: b.names(), VersionInfo: b.word(),
	})
}

// typeURL is mostly one that is served.
func (b *babbler) typeURL() string {
	types := []string{xdsclient.CDS, xdsclient.EDS, xdsclient.LDS, xdsclient.RDS}
	if b.IntN(50) == 0 {
		return b.word()
	}
	return types[b.IntN(len(types))]
}

func (b *babbler) nonce() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.nonces) == 0 || b.IntN(3) == 0 {
		return b.word()
	}
	return b.nonces[b.IntN(len(b.nonces))]
}

func (b *babbler) complaint() *status.Status {
	if b.IntN(10) > 0 {
		return nil
	}
	return &status.Status{Code: b.Int32(), Message: b.word()}
}

func (b *babbler) names() (names []string) {
	for range b.IntN(8) {
		switch b.IntN(5) {
		case 0:
			names = append(names, b.word())
		case 1:
			names = append(names, host(b.IntN(services))+fmt.Sprint(":", port)) // a listener's
		default:
			names = append(names, clusterName(b.IntN(services)))
		}
	}
	return names
}

func (b *babbler) versions() map[string]string {
	versions := map[string]string{}
	for _, name := range b.names() {
		versions[name] = b.word()
	}
	return versions
}

// word is one of those that mean something somewhere, or none of them.
func (b *babbler) word() string {
	words := []string{"", "*", "|", "shop", "envoy", "gRPC Go", "0", "outbound|8080||*", "xdstp://a/b/c", "\x00", "☃", "../../etc/passwd"}
	if b.IntN(8) == 0 {
		return fmt.Sprintf("%x", noise(b.Rand, 300))
	}
	return words[b.IntN(len(words))]
}
