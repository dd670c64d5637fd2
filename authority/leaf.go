package authority

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/isthmus-mesh/isthmus/identity"
	"github.com/isthmus-mesh/isthmus/internal/wait"
	"github.com/isthmus-mesh/isthmus/secrets"
)

// Issuer makes the certificates that clients are sent. It works on keys in memory, and
// [Issuer.Follow] reads them again when the folder changes.
type Issuer struct {
	dir   folder
	ttl   time.Duration
	now   atomic.Pointer[signing]
	fault atomic.Pointer[Fault]
}

var _ secrets.Issuer = (*Issuer)(nil)

// signing is the authority as it was last read, and its form for clients.
type signing struct {
	authority  *Authority
	known      []*x509.Certificate // the roots since the start
	generation string              // of the signing root
	by         string              // the hash of the certificate that signs those of workloads
	bundle     *secrets.Bundle
	next       chan struct{} // closed when the bundle, or the certificate that signs, is another
}

// Fault is the reason why the folder cannot be read now. The keys before stay in use.
type Fault struct {
	Err   error
	Since time.Time
}

// Issuer returns the issuer of certificates by the authority, which are valid for ttl.
func (a *Authority) Issuer(ttl time.Duration) *Issuer {
	i := &Issuer{dir: a.dir, ttl: ttl}
	i.now.Store(signingOf(a, nil))
	return i
}

// signingOf returns the authority in use after another one. The bundle is the same pointer if
// the same roots are trusted.
func signingOf(a *Authority, before *signing) *signing {
	s := &signing{authority: a, known: a.roots, generation: hashOf(a.root), by: hashOf(a.workloads.cert), next: make(chan struct{})}
	roots := slices.SortedFunc(slices.Values(a.roots), func(a, b *x509.Certificate) int { return a.NotBefore.Compare(b.NotBefore) })
	text := encodeCertificates(roots) // in an order that does not say which one signs
	if before != nil {
		s.known = slices.CompactFunc(slices.SortedFunc(slices.Values(slices.Concat(before.known, a.roots)), func(a, b *x509.Certificate) int { return bytes.Compare(a.Raw, b.Raw) }), (*x509.Certificate).Equal)
	}
	if before == nil || !bytes.Equal(before.bundle.Authorities, text) {
		s.bundle = &secrets.Bundle{Authorities: text}
		return s
	}
	if s.bundle = before.bundle; s.by == before.by {
		s.next = before.next
	}
	return s
}

// hashOf returns the SHA-256 hash of a certificate.
func hashOf(c *x509.Certificate) string {
	hash := sha256.Sum256(c.Raw)
	return hex.EncodeToString(hash[:])
}

// Authority returns the authority as it was last read.
func (i *Issuer) Authority() *Authority { return i.now.Load().authority }

// TTL is how long the certificates are valid.
func (i *Issuer) TTL() time.Duration { return i.ttl }

// Fault returns the reason why the folder cannot be read now; nil if it can.
func (i *Issuer) Fault() *Fault { return i.fault.Load() }

var _ identity.Sender = (*Issuer)(nil)

// Sent implements [identity.Sender]: a chain has a key of a root that was there since the start. So
// an open connection gains nothing by another root.
func (i *Issuer) Sent(chains [][]*x509.Certificate) bool { return haveKey(chains, i.now.Load().known) }

// haveKey reports whether a certificate in chains has the key of a root.
func haveKey(chains [][]*x509.Certificate, roots []*x509.Certificate) bool {
	return slices.ContainsFunc(slices.Concat(chains...), func(c *x509.Certificate) bool {
		return slices.ContainsFunc(roots, func(root *x509.Certificate) bool { return sameKey(root, c) })
	})
}

// Current implements [secrets.Issuer]. A root signs for as long as clients trust it, so leaves of
// the root before stay until their windows end, and so do leaves of the issuing certificate before. But a
// leaf that ends early, with its issuing certificate, is replaced once there is the next one.
func (i *Issuer) Current(leaf *secrets.Leaf) bool {
	_, by, early := strings.Cut(leaf.Generation, earlyEnd)
	return !early || by == i.now.Load().by
}

// earlyEnd is between the root and the certificate that has signed, in the generation of a leaf that ends
// with that certificate, before the end of its window's validity. The generation of others is the root
// alone: replicas agree on their versions while one of them signs with the next issuing certificate.
const earlyEnd = "/"

// Changed implements [secrets.Issuer].
func (i *Issuer) Changed() <-chan struct{} { return i.now.Load().next }

// Bundle implements [secrets.Issuer].
func (i *Issuer) Bundle() *secrets.Bundle { return i.now.Load().bundle }

// Issue implements [secrets.Issuer]. The key is new. A leaf is the newest one for half of its
// validity. While two roots are trusted, its chain ends in either.
func (i *Issuer) Issue(identity string, now time.Time) (*secrets.Leaf, error) {
	s, w := i.now.Load(), secrets.WindowOf(identity, i.ttl/2, now)
	if err := s.authority.ended(s.authority.workloads, now); err != nil {
		return nil, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	chain, err := s.authority.Sign(identity, &key.PublicKey, w.From, w.NotAfter().Sub(w.From))
	if err != nil {
		return nil, err
	}
	if len(s.authority.roots) > 1 {
		chain = append(chain, s.authority.cross...)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	generation, ends := s.generation, w.NotAfter()
	if signer := s.authority.workloads.cert; signer.NotAfter.Before(ends) {
		generation, ends = generation+earlyEnd+s.by, signer.NotAfter
	}
	return &secrets.Leaf{
		Identity: identity, Chain: chain, Key: pem.EncodeToMemory(&pem.Block{Type: keyBlock, Bytes: der}), Generation: generation, Window: w, NotAfter: ends,
	}, nil
}

// look is how often the folder is looked at.
const look = time.Second

// Follow reads the folder again whenever its files change, until ctx ends. A folder that
// cannot be read changes nothing but the fault, which is logged once.
func (i *Issuer) Follow(ctx context.Context, log *slog.Logger) {
	var read marks // none: the folder may have changed since the authority was opened
	for wait.Sleep(ctx, look) {
		now, before := i.dir.marks(), i.fault.Load()
		if before == nil && now.settledAs(read) {
			continue
		}
		err := i.read()
		switch {
		case err == nil && before != nil:
			log.Info("the authority can be read again")
		case err != nil && (before == nil || before.Err.Error() != err.Error()):
			log.Error("the authority cannot be read, and the one before stays in use", "err", err)
		}
		read = now
	}
}

// read puts the folder's authority into use.
func (i *Issuer) read() error {
	before := i.now.Load()
	a, err := Open(string(i.dir))
	if err == nil && a.domain != before.authority.domain {
		err = fmt.Errorf("%s has the authority of trust domain %s now, and Isthmus serves %s: restore the folder, or restart Isthmus with another configuration",
			i.dir, a.domain.Name(), before.authority.domain.Name())
	}
	if err == nil {
		err = a.begun(a.workloads)
	}
	if err != nil {
		fault := &Fault{err, time.Now()}
		if was := i.fault.Load(); was != nil {
			fault.Since = was.Since
		}
		i.fault.Store(fault)
		return err
	}
	i.fault.Store(nil)
	after := signingOf(a, before)
	i.now.Store(after)
	if after.next != before.next {
		close(before.next)
	}
	return nil
}
