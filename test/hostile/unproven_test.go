package hostile

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	grpcstatus "google.golang.org/grpc/status"

	testca "github.com/isthmus-mesh/isthmus/test/testkit/authority"
	"github.com/isthmus-mesh/isthmus/test/testkit/until"
)

// unproven is one kind of client that must not be let in: the certificates that it shows, its
// authorization header, and how it has to be rejected.
type unproven struct {
	name   string
	shows  *tls.Config // with its certificate; nil without one
	sends  func(random *rand.Rand) []string
	code   codes.Code
	reason string
}

// kinds is every kind.
func (b *border) kinds() []unproven {
	public, err := x509.MarshalPKIXPublicKey(b.signer.Public())
	if err != nil {
		b.t.Fatal(err)
	}
	with := func(tokens ...string) func(*rand.Rand) []string {
		return func(*rand.Rand) (values []string) {
			for _, text := range tokens {
				values = append(values, "Bearer "+text)
			}
			return values
		}
	}
	shows := func(uris ...string) *tls.Config { return b.ca.Client(b.ca.Issue("unproven", uris...)) }
	foreign := b.ca.Client(testca.New(b.t, "hostile").Issue("unproven", welcomed)) // of an equal name, or no client would show it
	good, noise := b.issue(time.Now()), printable
	return []unproven{
		{"nothing", nil, nil, codes.Unauthenticated, "proves no identity"},
		{"a certificate of another authority", foreign, nil, codes.Unavailable, ""},
		{"a certificate of another trust domain", shows("spiffe://elsewhere/ns/shop/sa/good"), nil, codes.PermissionDenied, `"elsewhere" is not served`},
		{"a certificate with two URIs", shows(welcomed, meshIssuer+"/ns/bank/sa/till"), nil, codes.PermissionDenied, "2 URIs"},
		{"a certificate without a URI", shows(), nil, codes.PermissionDenied, "0 URIs"},
		{"an expired token", nil, with(b.expired), codes.Unauthenticated, "expired at"},
		{"a revoked token", nil, with(b.revoked), codes.Unauthenticated, "is revoked"},
		{"an unsigned token", nil, with(b.unsigned()), codes.Unauthenticated, `"none" is not accepted`},
		{"a token for another audience", nil, with(b.sign(jose.ES256, b.signer, meshIssuer, "istio-ca")), codes.Unauthenticated, "another audience"},
		{"a token by a public key", nil, with(b.sign(jose.HS256, public, meshIssuer, "isthmus")), codes.Unauthenticated, `"HS256" is not accepted`},
		{"a token of an unknown issuer", nil, with(b.sign(jose.ES256, b.signer, "https://elsewhere.example", "isthmus")), codes.Unauthenticated, "is not configured"},
		{"two tokens", nil, with(good, good), codes.Unauthenticated, "2 values"},
		{"a token and the certificate of another", shows(meshIssuer + "/ns/bank/sa/till"), with(good), codes.Unauthenticated, "both have to be of one identity"},
		{"random bytes", nil, func(random *rand.Rand) []string { return []string{"Bearer " + noise(random, 1+random.IntN(4<<10))} }, codes.Unauthenticated, "not a signed JSON Web Token"},
		{"a token with random bytes for a signature", nil, func(random *rand.Rand) []string {
			return []string{"Bearer " + good[:strings.LastIndexByte(good, '.')+1] + base64.RawURLEncoding.EncodeToString([]byte(noise(random, 64)))}
		}, codes.Unauthenticated, "signature is not that of the key"},
		{"a token above 16 KiB", nil, func(random *rand.Rand) []string {
			return []string{"Bearer " + noise(random, 16<<10+random.IntN(32<<10))}
		}, codes.Unauthenticated, "larger than 16384 bytes"},
	}
}

// hanging sends a token of the issuer with an endpoint that hangs, and waits for its keys.
func (b *border) hanging() unproven {
	token := b.sign(jose.ES256, b.signer, hangingIssuer, "isthmus")
	return unproven{"a token of an issuer that hangs", nil, func(*rand.Rand) []string { return []string{"Bearer " + token} }, codes.Unauthenticated, "keys of the issuer"}
}

// printable is text that a header may have.
func printable(random *rand.Rand, n int) string {
	text := make([]byte, n)
	for i := range text {
		text[i] = byte('!' + random.IntN('~'-'!'+1))
	}
	return string(text)
}

// unprovenClients connects clients that prove nothing, something invalid or something of another, each
// on a connection of its own. Each has to be rejected with its reason.
func unprovenClients(t *testing.T, r *room) string {
	n, waiting, huge := size(9_800, 160), size(200, 8), size(50, 4)
	kinds, hanging := r.border.kinds(), r.border.hanging()
	before := r.server.metrics(t).Sum(rejected)
	var knocked, waited, next atomic.Int64
	r.beside(t, func(ctx context.Context) error {
		c := newCrowd(ctx)
		next.Store(0)
		c.send(stormers, func(ctx context.Context, i int) error {
			for random := chance(i); ctx.Err() == nil; {
				turn := int(next.Add(1) - 1)
				if turn >= n {
					return nil
				}
				if err := kinds[turn%len(kinds)].knock(ctx, r, random); err != nil {
					return err
				}
				knocked.Add(1)
			}
			return nil
		})
		c.send(waiting, func(ctx context.Context, i int) error {
			waited.Add(1)
			return hanging.knock(ctx, r, chance(i))
		})
		c.send(huge, r.sendHugeToken)
		return c.wait()
	})
	total := knocked.Load() + waited.Load()
	await(t, "every client to be counted", func() error {
		if counted := r.server.metrics(t).Sum(rejected) - before; int64(counted) < total {
			return fmt.Errorf("%.0f of %d are", counted, total)
		}
		return nil
	})
	return fmt.Sprintf("%d clients of %d kinds, each on a connection, rejected with their reasons; %d of them waited for an issuer that hangs; %d tokens of 1 MiB", total, len(kinds)+1, waited.Load(), huge)
}

// knock connects, opens a stream, and returns an error unless that is rejected as it has to be.
func (s unproven) knock(ctx context.Context, r *room, random *rand.Rand) error {
	ctx, leave := context.WithTimeout(ctx, until.Patience)
	defer leave()
	options := append(r.options(), grpc.WithTransportCredentials(credentials.NewTLS(cmp.Or(s.shows, r.border.bare))))
	if s.code == codes.Unavailable { // the handshake fails, and would again
		options = append(options, grpc.WithDefaultCallOptions(grpc.WaitForReady(false)))
	}
	conn, err := grpc.NewClient(r.target(), options...)
	if err != nil {
		return err
	}
	defer conn.Close()
	if s.sends != nil {
		ctx = metadata.NewOutgoingContext(ctx, metadata.MD{"authorization": s.sends(random)})
	}
	opened, err := openOn(ctx, conn, r.method())
	if err == nil {
		for _, m := range r.everything("unproven") {
			_ = opened.SendMsg(m)
		}
		_, err = opened.receive()
	}
	if grpcstatus.Code(err) != s.code || !strings.Contains(fmt.Sprint(err), s.reason) {
		return fmt.Errorf("a client with %s: got %w", s.name, err)
	}
	return nil
}

// sendHugeToken sends a token of 1 MiB frame by frame, as no library does, and expects to be cut
// off.
func (r *room) sendHugeToken(ctx context.Context, _ int) error {
	dialer := tls.Dialer{Config: r.border.bare}
	conn, err := dialer.DialContext(ctx, "tcp", r.attacked())
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Now()) })()
	const name, length, most = "authorization", 1 << 20, 16 << 10
	block := append(headerBlock(r.method()), 0, byte(len(name)))
	block = binary.AppendUvarint(append(append(block, name...), 0x7f), length-0x7f)
	block = append(block, "Bearer "+strings.Repeat("a", length-len("Bearer "))...)
	text := append(greeting(1<<16), frame(frameHeaders, 0, 1, block[:most])...)
	for part := range slices.Chunk(block[most:], most) {
		text = append(text, frame(frameContinuation, 0, 1, part)...)
	}
	go func() { _, _ = conn.Write(text) }() // the rest is written in vain
	for head := make([]byte, 9); ; {
		if _, err := io.ReadFull(conn, head); err != nil {
			return nil //nolint:nilerr // to close the connection is a good answer
		}
		if head[3] == frameReset {
			return nil
		}
		if _, err := io.CopyN(io.Discard, conn, int64(head[0])<<16|int64(head[1])<<8|int64(head[2])); err != nil {
			return nil //nolint:nilerr // as above
		}
	}
}
