package secrets

import (
	"crypto/sha256"
	"encoding/binary"
	"time"
)

// Leaf is the certificate of an identity, with its key.
type Leaf struct {
	Identity string // spiffe://DOMAIN/ns/NAMESPACE/sa/ACCOUNT
	// Chain is the certificate and the certificates between it and the root, and Key is its key, both in
	// PEM form. No text and no error contains the key.
	Chain, Key []byte
	// Generation is the issuer's part in the version of the leaf: of two leaves of an identity, window and
	// generation, a client may have either.
	Generation string
	Window     Window
	NotAfter   time.Time // the end of the certificate
}

// String names the leaf without its key.
func (l *Leaf) String() string { return "the certificate of " + l.Identity }

// GoString is String, so that no format prints the key.
func (l *Leaf) GoString() string { return l.String() }

// Bundle is the certificates of the authorities of a trust domain.
type Bundle struct {
	Authorities []byte // in PEM form
}

// Issuer makes leaves. Its methods do no I/O, and may be called from any goroutine.
type Issuer interface {
	// Issue returns the leaf of an identity at a time, which is in the leaf's window. It is asked
	// again when the window ends.
	Issue(identity string, now time.Time) (*Leaf, error)
	// Current reports whether a leaf may stay until its window ends.
	Current(leaf *Leaf) bool
	// Bundle returns the authorities that clients are to trust, the same pointer while they
	// stay the same.
	Bundle() *Bundle
	// Changed returns a channel that is closed when Current or Bundle next return something else.
	Changed() <-chan struct{}
}

// Window is the time in which a leaf is the newest one of its identity.
type Window struct{ From, Until time.Time }

// NotAfter is the end of the validity of the window's leaf.
func (w Window) NotAfter() time.Time { return w.Until.Add(w.Until.Sub(w.From)) }

// WindowOf returns the window of an identity at a time, given the length of windows. The identity
// decides when they begin.
func WindowOf(identity string, length time.Duration, now time.Time) Window {
	hash := sha256.Sum256([]byte(identity))
	offset := time.Duration(binary.BigEndian.Uint64(hash[:8]) % uint64(length)) //nolint:gosec // less than length
	from := now.UTC().Add(-offset).Truncate(length).Add(offset)
	return Window{from, from.Add(length)}
}
