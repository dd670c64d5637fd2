package certs

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

// Keeper has the newest usable content of files, and the newest certificate of an issuer.
// [New] makes one.
type Keeper struct {
	files Files
	log   *slog.Logger
	turns atomic.Uint64 // counts readings as they begin

	mu      sync.Mutex
	turn    uint64 // of the newest reading that counted
	seen    content
	current *tls.Config // never written to again
	clients *Authorities
	due     time.Time // when an issued certificate is renewed; zero for files
	err     error     // why the content seen last is not in use
	domains [][]byte  // the last usable authorities of other trust domains, as in content
	broken  error     // why these are not the newest content
}

// New returns a keeper of files, which must be valid by now. The error is a [*FileError].
func New(files Files, log *slog.Logger) (*Keeper, error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	k := &Keeper{files: files, log: log}
	seen, err := files.read()
	if err != nil {
		return nil, err
	}
	now := time.Now()
	if k.current, k.clients, err = files.parse(seen, now); err != nil {
		return nil, err
	}
	k.seen, k.due, k.domains = seen, files.due(k.current, now), seen.domains
	return k, nil
}

// TLS returns a configuration with handshakes that use the files' current content.
func (k *Keeper) TLS() *tls.Config {
	return &tls.Config{
		MinVersion:             tls.VersionTLS12,
		NextProtos:             []string{"h2"},
		SessionTicketsDisabled: true,
		GetConfigForClient:     func(*tls.ClientHelloInfo) (*tls.Config, error) { return k.newest(), nil },
	}
}

// HTTP is TLS for a server of HTTP/1 alone.
func (k *Keeper) HTTP() *tls.Config {
	return &tls.Config{
		MinVersion:             tls.VersionTLS12,
		SessionTicketsDisabled: true,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			config := k.newest().Clone()
			config.NextProtos = []string{"http/1.1"}
			return config, nil
		},
	}
}

// Err returns why the current files are not in use; nil if they are.
func (k *Keeper) Err() error {
	k.newest()
	k.mu.Lock()
	defer k.mu.Unlock()
	return cmp.Or(k.err, k.broken)
}

// Expires returns the expiry of the certificate in use.
func (k *Keeper) Expires() time.Time {
	leaf := k.newest().Certificates[0].Leaf
	if leaf == nil { // parsed anew, should the library not have kept it
		leaf, _ = x509.ParseCertificate(k.newest().Certificates[0].Certificate[0])
	}
	if leaf == nil {
		return time.Time{}
	}
	return leaf.NotAfter
}

// Issued reports whether the certificate is issued, and not in files.
func (k *Keeper) Issued() bool { return k.files.Issuer != nil }

// ClientCAs returns the current authorities of clients; nil if no client certificates are
// demanded. The pointer stays the same while the authorities do.
func (k *Keeper) ClientCAs() *Authorities {
	k.newest()
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.clients
}

// newest reads the files and returns the configuration to use now. The lock is not held
// while they are read. A reading therefore counts only if no later one has counted already.
func (k *Keeper) newest() *tls.Config {
	turn := k.turns.Add(1)
	seen, err := k.files.read()
	k.mu.Lock()
	defer k.mu.Unlock()
	if turn < k.turn {
		return k.current
	}
	k.turn = turn
	if err != nil {
		k.keepOld(err)
		k.seen = content{} // the next content is new in any case
		return k.current
	}
	broken := k.repair(&seen)
	k.report(broken, k.broken)
	k.broken = broken
	now := time.Now()
	if seen.equal(k.seen) && (k.due.IsZero() || now.Before(k.due)) {
		return k.current
	}
	next, clients, err := k.files.parse(seen, now)
	if err != nil {
		k.keepOld(err)
		if k.seen = seen; k.Issued() {
			k.seen = content{} // the issuer is asked again
		}
		return k.current
	}
	k.seen, k.due = seen, k.files.due(next, now)
	if !clients.equal(k.clients) {
		k.clients = clients
	}
	k.current, k.err = next, nil
	if k.Issued() {
		k.log.Info("the listener's certificate was issued anew", "names", k.files.Names)
	} else {
		k.log.Info("certificates were read anew", "certFile", k.files.CertFile)
	}
	return next
}

// keepOld records why the files are not used, and logs each reason once.
func (k *Keeper) keepOld(err error) {
	k.report(err, k.err)
	k.err = err
}

// report logs a fault that is not the one before.
func (k *Keeper) report(err, before error) {
	if err != nil && (before == nil || before.Error() != err.Error()) {
		k.log.Error("certificates cannot be used as they are now; those before stay in use, and it is tried again", "err", err)
	}
}
