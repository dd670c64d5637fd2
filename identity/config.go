package identity

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/isthmus-mesh/isthmus/internal/certs"
	"github.com/isthmus-mesh/isthmus/internal/spiffe"
)

// Config is the configuration of the proofs of clients beside their certificates, and of
// revocations of both.
type Config struct {
	// TrustDomain is the trust domain of this mesh, and of the identities of tokens; cluster.local if
	// empty. The namespaces of the catalog are its namespaces.
	TrustDomain string `json:"trustDomain"`
	// Aliases are other names of that trust domain, such as the one before a migration.
	Aliases []string `json:"trustDomainAliases"`
	// TrustDomains are the rights of other trust domains, by their names. Nil leaves certificates of
	// trust domains that have none the rights of this one, with a problem; see [Verifier.Problems].
	TrustDomains map[string]TrustDomain `json:"trustDomains"`
	// JWT are the issuers of accepted tokens.
	JWT []Issuer `json:"jwt"`
	// Authority is the authority of Isthmus, which issues tokens and revokes accounts.
	Authority Authority `json:"authority"`
	// Revocations is a file with the form of [Revocations]. It counts beside the authority's.
	Revocations string `json:"revocations"`
	// Files are the certificates that Envoys are sent. Without them they are the authority's.
	Files Files `json:"files"`
}

// Files is a folder with certificates that others write.
type Files struct {
	Dir string `json:"dir"` // as cert-manager or spiffe-helper fills it, and the folders in it
}

// Authority is the folder of an authority.
type Authority struct {
	Dir string `json:"dir"` // as made by isthmus ca init
	// TTL is how long the certificates are valid that Envoys are sent. They are renewed when half
	// of it is over.
	TTL time.Duration `json:"ttl"`
}

// The default of Authority.TTL, and its bounds.
const (
	DefaultTTL  = 24 * time.Hour
	shortestTTL = time.Minute
	longestTTL  = 90 * 24 * time.Hour
)

// Issuer is an issuer of tokens and its rights.
type Issuer struct {
	Issuer   string `json:"issuer"`   // the exact claim iss
	Audience string `json:"audience"` // the required claim aud; [Audience] if empty
	// KeysFile and KeysURL are the places of its JSON Web Key Set: one of them is set.
	KeysFile string `json:"keysFile"`
	KeysURL  string `json:"keysURL"`
	// CAFile has the authorities of the server of KeysURL; the machine's if empty.
	CAFile string `json:"caFile"`
	// TokenFile has the bearer token for the requests to KeysURL.
	TokenFile string `json:"tokenFile"`
	// TrustDomain is that of its identities; that of Config if empty.
	TrustDomain string `json:"trustDomain"`
	// Namespaces are the namespaces it may vouch for; any if empty.
	Namespaces []string `json:"namespaces"`
	// Claims name the claims of its tokens with the identity.
	Claims Claims `json:"claims"`
}

// Claims are the names of the claims with the namespace and the account of a client. If
// they are empty, the claim sub is system:serviceaccount:NAMESPACE:ACCOUNT or a SPIFFE
// identity.
type Claims struct {
	Namespace string `json:"namespace"`
	Account   string `json:"account"`
}

// defaultTrustDomain is that of Kubernetes and Istio.
const defaultTrustDomain = "cluster.local"

// Enabled reports whether tokens of any issuer are accepted.
func (c *Config) Enabled() bool { return len(c.JWT) > 0 || c.Authority.Dir != "" }

// SendsCertificates reports whether Envoys are sent certificates.
func (c *Config) SendsCertificates() bool { return c.Files.Dir != "" || c.Authority.Dir != "" }

// Resolve makes relative paths relative to a folder.
func (c *Config) Resolve(dir string) {
	paths := []*string{&c.Authority.Dir, &c.Revocations, &c.Files.Dir}
	for i := range c.JWT {
		one := &c.JWT[i]
		paths = append(paths, &one.KeysFile, &one.CAFile, &one.TokenFile)
	}
	for _, path := range paths {
		resolve(path, dir)
	}
	for name, domain := range c.TrustDomains {
		resolve(&domain.CAFile, dir)
		c.TrustDomains[name] = domain
	}
}

func resolve(path *string, dir string) {
	if *path != "" && !filepath.IsAbs(*path) {
		*path = filepath.Join(dir, *path)
	}
}

// Domain returns the trust domain.
func (c *Config) Domain() string { return cmp.Or(c.TrustDomain, defaultTrustDomain) }

// issuers returns all issuers with their defaults, that of the authority last.
func (c *Config) issuers() []Issuer {
	domain := c.Domain()
	all := make([]Issuer, 0, len(c.JWT)+1)
	for _, one := range c.JWT {
		if one.Audience == "" {
			one.Audience = Audience
		}
		if one.TrustDomain == "" {
			one.TrustDomain = domain
		}
		all = append(all, one)
	}
	if c.Authority.Dir != "" {
		all = append(all, Issuer{
			Issuer: AuthorityIssuer(domain), Audience: Audience, KeysFile: filepath.Join(c.Authority.Dir, TokenKeysFile), TrustDomain: domain,
		})
	}
	return all
}

// Check reports the files that are unreadable or invalid.
func (c *Config) Check() error {
	var errs []error
	for i, one := range c.JWT {
		if err := one.check(); err != nil {
			errs = append(errs, fmt.Errorf("jwt[%d].%w", i, err))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.TrustDomains)) {
		if bad, ok := errors.AsType[*certs.FileError](certs.CheckClientCA(c.TrustDomains[name].CAFile)); ok {
			errs = append(errs, fmt.Errorf("trustDomains.%s.caFile: %s", name, bad.Reason))
		}
	}
	if dir := c.Authority.Dir; dir != "" {
		if _, err := readKeySet(filepath.Join(dir, TokenKeysFile)); err != nil {
			errs = append(errs, fmt.Errorf("authority.dir: %w; make it with isthmus ca init, or name the folder that it made", err))
		}
	}
	for _, file := range c.revocationFiles() {
		if _, err := file.open(slog.New(slog.DiscardHandler)); err != nil {
			errs = append(errs, err)
		}
	}
	if dir := c.Files.Dir; dir != "" {
		if _, err := os.ReadDir(dir); err != nil {
			errs = append(errs, fmt.Errorf("files.dir: %w; create the folder, or name another", err))
		}
	}
	return errors.Join(errs...)
}

func (i *Issuer) check() error {
	if i.KeysFile != "" {
		if _, err := readKeySet(i.KeysFile); err != nil {
			return fmt.Errorf("keysFile: %w; name a JSON Web Key Set", err)
		}
		return nil
	}
	_, _, err := i.remote().secrets()
	return err
}

// mayVouch returns why the issuer may not vouch for a workload.
func (i *Issuer) mayVouch(w workload) error {
	if w.trustDomain != i.TrustDomain {
		return fmt.Errorf("the issuer %q vouches for the trust domain %q, and not for %s", i.Issuer, i.TrustDomain, clip(w.trustDomain))
	}
	if len(i.Namespaces) > 0 && !slices.Contains(i.Namespaces, w.namespace) {
		return fmt.Errorf("the issuer %q may not vouch for the namespace %s; add it to its namespaces", i.Issuer, clip(w.namespace))
	}
	return nil
}

// validNamespaces reports the entries that are not namespaces.
func (i *Issuer) validNamespaces() (errs []error) {
	for n, namespace := range i.Namespaces {
		if !spiffe.IsNamespace(namespace) {
			errs = append(errs, fmt.Errorf("namespaces[%d]: %q is not %s", n, namespace, spiffe.NamespaceForm))
		}
	}
	return errs
}
