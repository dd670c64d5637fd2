package authority

import (
	"crypto/ecdsa"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/spiffe/go-spiffe/v2/spiffeid"

	"github.com/isthmus-mesh/isthmus/identity"
	"github.com/isthmus-mesh/isthmus/internal/lockfile"
)

// Folder is an authority without its private keys.
type Folder struct {
	dir      folder
	domain   spiffeid.TrustDomain
	roots    []*x509.Certificate // trusted: the signing root first, and the one beside it during a rotation
	tokenKey jose.JSONWebKey
}

// OpenFolder reads the public files of a folder. Revoking needs no more.
func OpenFolder(dir string) (*Folder, error) {
	f := &Folder{dir: folder(dir)}
	var err error
	if f.roots, f.domain, err = f.dir.readRoots(); err != nil {
		return nil, err
	}
	if f.tokenKey, err = f.dir.readTokenKey(); err != nil {
		return nil, err
	}
	return f, nil
}

// TrustDomain returns the trust domain of the authority.
func (f *Folder) TrustDomain() spiffeid.TrustDomain { return f.domain }

// Dir returns the path of the folder.
func (f *Folder) Dir() string { return string(f.dir) }

// Roots returns the certificates to trust: the signing root and, during a rotation, the other one.
func (f *Folder) Roots() []*x509.Certificate { return slices.Clone(f.roots) }

// KeyID returns the id of the key that signs tokens.
func (f *Folder) KeyID() string { return f.tokenKey.KeyID }

// AccountID returns the identity of an account in the trust domain of the authority.
func (f *Folder) AccountID(namespace, account string) (spiffeid.ID, error) {
	if found := CheckAccount(namespace, account); len(found) > 0 {
		return spiffeid.ID{}, joined(found)
	}
	return spiffeid.FromSegments(f.domain, "ns", namespace, "sa", account)
}

var _ identity.Sender = (*Folder)(nil)

// Sent implements [identity.Sender]. It knows the roots of the time when the folder was opened.
func (f *Folder) Sent(chains [][]*x509.Certificate) bool { return haveKey(chains, f.roots) }

// Secrets returns the paths of the private files in the folder of an authority.
func Secrets(dir string) (paths []string) {
	for _, name := range []string{RootKeyFile, IssuerFile, TokenKeyFile, TokensFile, identity.RevokedFile} {
		paths = append(paths, folder(dir).path(name))
	}
	return paths
}

// Authority is a folder with its private keys.
type Authority struct {
	*Folder
	root               *x509.Certificate
	workloads, servers signer // the root itself without issuing certificates
	tokenSigner        *ecdsa.PrivateKey
	cross              []byte // PEM
}

// Root returns the root that signs certificates, or the issuing certificates of now.
func (a *Authority) Root() *x509.Certificate { return a.root }

// Issuing returns the issuing certificate of workloads; nil if the root signs directly. The one of
// servers has the same validity.
func (a *Authority) Issuing() *x509.Certificate {
	if a.workloads.cert == a.root {
		return nil
	}
	return a.workloads.cert
}

// Open reads an authority, and checks that its keys fit its certificates. With issuing certificates,
// the key of the root may be missing, or be one that this process may not read.
func Open(dir string) (*Authority, error) {
	f, err := OpenFolder(dir)
	if err != nil {
		return nil, err
	}
	a := &Authority{Folder: f}
	if err := a.openSigners(); err != nil {
		return nil, err
	}
	if a.tokenSigner, err = f.dir.readKey(TokenKeyFile); err != nil {
		return nil, err
	}
	if !fits(a.tokenSigner, f.tokenKey.Key) {
		return nil, fmt.Errorf("%s is not the key in %s: restore both from the same backup", f.dir.path(TokenKeyFile), f.dir.path(identity.TokenKeysFile))
	}
	a.cross, err = f.dir.readCross(f.roots, a.root)
	return a, err
}

// openSigners reads the keys that sign certificates.
func (a *Authority) openSigners() error {
	d, issued := a.dir, a.dir.has(IssuerFile)
	_, missing := os.Stat(d.path(RootKeyFile)) // also behind a link to where it was moved
	keys, err := d.readRootKeys()
	away := issued && (missing != nil || errors.Is(err, fs.ErrPermission))
	if err != nil && !away {
		return err
	}
	key := keyOf(a.roots[0], keys)
	if key == nil && !away {
		return fmt.Errorf("%s is not the key of %s: restore both from the same backup", d.path(RootKeyFile), d.path(RootFile))
	}
	if !issued {
		a.root, a.workloads, a.servers = a.roots[0], signer{a.roots[0], key}, signer{a.roots[0], key}
		return nil
	}
	i, root, err := d.readIssuing(a.roots)
	a.root, a.workloads, a.servers = root, i.workloads, i.servers
	return err
}

// Create makes an authority, or finishes an interrupted one. It changes no file that is
// there, and takes none that another user can have put there. It needs a folder of its own,
// which it makes if its parent exists.
func Create(dir string, domain spiffeid.TrustDomain, now time.Time) (*Authority, error) {
	d := folder(dir)
	if err := d.make(); err != nil {
		return nil, err
	}
	lock, err := d.lock()
	if err != nil {
		return nil, err
	}
	defer lockfile.Release(lock)
	if err := d.create(domain, now); err != nil {
		return nil, err
	}
	return Open(dir)
}
