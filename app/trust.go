package app

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/isthmus-mesh/isthmus/authority"
	"github.com/isthmus-mesh/isthmus/identity"
	"github.com/isthmus-mesh/isthmus/internal/certs"
	"github.com/isthmus-mesh/isthmus/internal/events"
	"github.com/isthmus-mesh/isthmus/secrets"
	"github.com/isthmus-mesh/isthmus/secrets/files"
)

// trust is the parts by which clients and this Isthmus prove who they are.
type trust struct {
	verifier  *identity.Verifier
	clients   secrets.Issuer                               // of the certificates of clients; nil if they are sent none
	servers   certs.Issuer                                 // of the certificates of listeners; nil without an authority
	authority *authority.Issuer                            // nil unless the built-in authority issues certificates
	files     *files.Issuer                                // nil unless the certificates of clients come from files
	problems  []interface{ Problems() []identity.Problem } // of all parts
	log       *slog.Logger
}

// openTrust makes the parts that are configured. Certificates from files come before those of the
// authority, which then is one of tokens alone.
func openTrust(c identity.Config, rootNamespace string, events *events.Log, log *slog.Logger) (t trust, err error) {
	t.log = log
	if t.verifier, err = identity.New(c, rootNamespace, log); err != nil {
		return t, fmt.Errorf("identity.%w", err)
	}
	t.problems = append(t.problems, t.verifier)
	for _, warning := range c.Warnings(rootNamespace) {
		log.Warn("an issuer is trusted widely", "warning", warning)
	}
	switch {
	case c.Files.Dir != "":
		err = t.openFiles(c)
	case c.Authority.Dir != "":
		err = t.openAuthority(c)
	}
	if err == nil && c.Authority.Dir != "" {
		t.disown(c.Authority.Dir, events.Of(""))
	}
	return t, err
}

// disown takes the certificates of the authority for no proof. Beside certificates from files it signs
// none, but those of before may be out.
func (t *trust) disown(dir string, rejected *events.Clients) {
	if t.authority != nil {
		t.verifier.Disown(t.authority, rejected)
	} else if folder, err := authority.OpenFolder(dir); err == nil { // without roots, it has issued none
		t.verifier.Disown(folder, rejected)
	}
}

func (t *trust) openFiles(c identity.Config) (err error) {
	if t.files, err = files.Open(c.Files.Dir, c.Domain(), t.log); err != nil {
		return fmt.Errorf("identity.files.dir: %w", err)
	}
	t.clients, t.problems = t.files, append(t.problems, t.files)
	return nil
}

func (t *trust) openAuthority(c identity.Config) error {
	own, err := authority.Open(c.Authority.Dir)
	if err != nil {
		return fmt.Errorf("identity.authority.dir: %w", err)
	}
	if domain := own.TrustDomain().Name(); domain != c.Domain() {
		return fmt.Errorf("identity.trustDomain: the authority in %s is that of %s; set trustDomain to that, or name another folder", c.Authority.Dir, domain)
	}
	if warning := own.Unlisted(); warning != "" {
		t.log.Warn("the authority has no list of revocations", "warning", warning)
	}
	t.authority = own.Issuer(c.Authority.TTL)
	t.clients, t.servers = t.authority, t.authority
	return nil
}

// run starts the parts that follow files and keys until ctx ends.
func (t *trust) run(ctx context.Context, start func(func() error)) {
	start(func() error { return t.verifier.Run(ctx) })
	if t.authority != nil {
		start(func() error { t.authority.Follow(ctx, t.log); return nil })
	}
	if t.files != nil {
		start(func() error { return t.files.Run(ctx) })
	}
}
