package authority

import (
	"crypto/ecdsa"
	"crypto/x509"
	"fmt"
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
	root     *x509.Certificate   // signs certificates
	roots    []*x509.Certificate // trusted: root, and the one beside it during a rotation
	tokenKey jose.JSONWebKey
}

// OpenFolder reads the public files of a folder. Revoking needs no more.
func OpenFolder(dir string) (*Folder, error) {
	f := &Folder{dir: folder(dir)}
	var err error
	if f.roots, f.domain, err = f.dir.readRoots(); err != nil {
		return nil, err
	}
	f.root = f.roots[0]
	if f.tokenKey, err = f.dir.readTokenKey(); err != nil {
		return nil, err
	}
	return f, nil
}

// TrustDomain returns the trust domain of the authority.
func (f *Folder) TrustDomain() spiffeid.TrustDomain { return f.domain }

// Dir returns the path of the folder.
func (f *Folder) Dir() string { return string(f.dir) }

// Root returns the certificate that signs certificates.
func (f *Folder) Root() *x509.Certificate { return f.root }

// Roots returns the certificates to trust: the root and, during a rotation, the other one.
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

// Secrets returns the paths of the private files in the folder of an authority.
func Secrets(dir string) (paths []string) {
	for _, name := range []string{RootKeyFile, TokenKeyFile, TokensFile, identity.RevokedFile} {
		paths = append(paths, folder(dir).path(name))
	}
	return paths
}

// Authority is a folder with its private keys.
type Authority struct {
	*Folder
	rootSigner, tokenSigner *ecdsa.PrivateKey
	cross                   []byte // PEM
}

// Open reads an authority, and checks that its keys fit its certificates.
func Open(dir string) (*Authority, error) {
	f, err := OpenFolder(dir)
	if err != nil {
		return nil, err
	}
	a := &Authority{Folder: f}
	keys, err := f.dir.readRootKeys()
	if err != nil {
		return nil, err
	}
	if a.tokenSigner, err = f.dir.readKey(TokenKeyFile); err != nil {
		return nil, err
	}
	if a.rootSigner = keyOf(f.root, keys); a.rootSigner == nil {
		return nil, fmt.Errorf("%s is not the key of %s: restore both from the same backup", f.dir.path(RootKeyFile), f.dir.path(RootFile))
	}
	if !fits(a.tokenSigner, f.tokenKey.Key) {
		return nil, fmt.Errorf("%s is not the key in %s: restore both from the same backup", f.dir.path(TokenKeyFile), f.dir.path(identity.TokenKeysFile))
	}
	a.cross, err = f.dir.readCross(f.roots)
	return a, err
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
