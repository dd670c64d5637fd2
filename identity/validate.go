package identity

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"time"

	"github.com/spiffe/go-spiffe/v2/spiffeid"

	"github.com/isthmus-mesh/isthmus/internal/loopback"
	"github.com/isthmus-mesh/isthmus/internal/spiffe"
)

// Validate reports contradictory or invalid fields. It reads no file.
func (c *Config) Validate() error {
	var errs []error
	if err := validTrustDomain("trustDomain", c.TrustDomain); c.TrustDomain != "" && err != nil {
		errs = append(errs, err)
	}
	errs = append(errs, c.validDomains()...)
	if ttl := c.Authority.TTL; c.Authority.Dir != "" && (ttl < shortestTTL || ttl > longestTTL) {
		errs = append(errs, fmt.Errorf("authority.ttl: %s is out of range; use from 1m to %dh, such as 24h", ttl, longestTTL/time.Hour))
	}
	if c.Files.Dir != "" && c.Files.Dir == c.Authority.Dir {
		errs = append(errs, errors.New("files.dir: is the folder of the authority; remove it to have Envoys sent the authority's certificates, or name a folder with certificates"))
	}
	by := map[string]int{}
	for i, one := range c.issuers() {
		if first, taken := by[one.Issuer]; taken && one.Issuer != "" {
			at := fmt.Sprintf("jwt[%d].issuer", i)
			if i >= len(c.JWT) {
				at = "authority.dir" // its issuer follows from the trust domain
			}
			errs = append(errs, fmt.Errorf("%s: jwt[%d] is the issuer %q, too; give each issuer one entry", at, first, one.Issuer))
		}
		by[one.Issuer] = i
	}
	for i := range c.JWT {
		for _, err := range c.JWT[i].validate() {
			errs = append(errs, fmt.Errorf("jwt[%d].%w", i, err))
		}
	}
	return errors.Join(errs...)
}

func validTrustDomain(field, name string) error {
	if domain, err := spiffeid.TrustDomainFromString(name); err != nil || domain.Name() != name {
		return fmt.Errorf("%s: %q is not a trust domain such as %s", field, name, defaultTrustDomain)
	}
	return nil
}

// validDomains reports faults of the aliases and of the rights of other trust domains.
func (c *Config) validDomains() (errs []error) {
	for i, alias := range c.Aliases {
		field := fmt.Sprintf("trustDomainAliases[%d]", i)
		if err := validTrustDomain(field, alias); err != nil {
			errs = append(errs, err)
		}
		if alias == c.Domain() || slices.Contains(c.Aliases[:i], alias) {
			errs = append(errs, fmt.Errorf("%s: %q is a name of this trust domain already; remove one", field, alias))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.TrustDomains)) {
		field := "trustDomains." + name
		if err := validTrustDomain(field, name); err != nil {
			errs = append(errs, err)
		}
		if !c.isForeign(name) {
			errs = append(errs, fmt.Errorf("%s: is a name of this trust domain, whose identities are in their own namespaces; remove it here, or from trustDomain and trustDomainAliases", field))
		}
		given := c.TrustDomains[name].Namespaces
		for _, from := range slices.Sorted(maps.Keys(given)) {
			for _, namespace := range []string{from, given[from]} {
				if !spiffe.IsNamespace(namespace) {
					errs = append(errs, fmt.Errorf("%s.namespaces.%s: %q is not %s", field, from, namespace, spiffe.NamespaceForm))
				}
			}
		}
	}
	return errs
}

func (i *Issuer) validate() (errs []error) {
	if i.Issuer == "" {
		errs = append(errs, errors.New("issuer: missing; give the exact claim iss of its tokens"))
	}
	switch {
	case i.KeysFile == "" && i.KeysURL == "":
		errs = append(errs, errors.New("keysURL: missing; give the place of its public keys, or their file as keysFile"))
	case i.KeysFile != "" && i.KeysURL != "":
		errs = append(errs, errors.New("keysURL: keysFile is set as well; choose one of them"))
	case i.KeysFile != "" && (i.CAFile != "" || i.TokenFile != ""):
		errs = append(errs, errors.New("keysFile: caFile and tokenFile are for requests to keysURL; remove them, or set keysURL"))
	case i.KeysURL != "":
		errs = append(errs, i.validURL()...)
	}
	if err := validTrustDomain("trustDomain", i.TrustDomain); i.TrustDomain != "" && err != nil {
		errs = append(errs, err)
	}
	switch {
	case i.Claims.Namespace != "" && i.Claims.Account == "":
		errs = append(errs, errors.New("claims.account: missing beside claims.namespace; name the claim with the account"))
	case i.Claims.Namespace == "" && i.Claims.Account != "":
		errs = append(errs, errors.New("claims.namespace: missing beside claims.account; name the claim with the namespace"))
	}
	return append(errs, i.validNamespaces()...)
}

func (i *Issuer) validURL() (errs []error) {
	at, err := url.Parse(i.KeysURL)
	switch {
	case err != nil || at.Host == "" || at.Scheme != "https" && at.Scheme != "http":
		return []error{errors.New("keysURL: not a URL such as https://issuer.example/keys")}
	case at.User != nil:
		return []error{errors.New("keysURL: has a user or password in it; use tokenFile")}
	case at.Scheme == "http" && !loopback.IsHost(at.Hostname()):
		errs = append(errs, fmt.Errorf("keysURL: %q is plaintext and not loopback, so anybody between could replace the keys; use https", i.KeysURL))
	}
	if at.Scheme == "http" && i.CAFile != "" {
		errs = append(errs, errors.New("caFile: has no effect without TLS; use https in keysURL"))
	}
	return errs
}
