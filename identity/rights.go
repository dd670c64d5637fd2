package identity

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/isthmus-mesh/isthmus/internal/spiffe"
)

// Rights are what a client may, by its identity. They are comparable, and hold for a whole stream.
// The zero Rights are those of a client without proof: whether it is served at all is a setting of
// its listener, which then gives it everything.
type Rights struct {
	id        string
	domain    string // the trust domain of the identity
	own       string // the namespace of the identity, in that trust domain
	namespace string // the namespace of here that the client is in; empty: it is in none
	root      string // the namespace of here with the right to everything
}

// Rights returns the rights of a proven identity. Namespaces are those of [Config.TrustDomain] and
// its aliases. An identity of another trust domain is in the namespace of here that the
// configuration gives to its own one, or in none.
func (v *Verifier) Rights(p Proof) Rights {
	if p.ID == "" {
		return Rights{}
	}
	r := Rights{id: p.ID, domain: p.TrustDomain, own: p.Namespace, namespace: p.Namespace}
	if v == nil {
		return r
	}
	r.root = v.root
	switch {
	case !v.config.isForeign(p.TrustDomain):
	case v.lenient(p):
		v.foreign.add(p)
	default:
		r.namespace = v.config.TrustDomains[p.TrustDomain].Namespaces[p.Namespace]
	}
	return r
}

// ID returns the SPIFFE identity; empty without proof.
func (r Rights) ID() string { return r.id }

// Proven reports whether the client has proven an identity.
func (r Rights) Proven() bool { return r.id != "" }

// Namespace returns the namespace whose view the client has. An empty one is that of a client which
// sees only what is exported to everybody.
func (r Rights) Namespace() string { return r.namespace }

// Everything returns why the client may not read everything; nil if it may.
func (r Rights) Everything() error {
	if !r.Proven() || r.isRoot() {
		return nil
	}
	return fmt.Errorf("%s is not of the namespace %q%s", r.id, r.root, r.elsewhere())
}

func (r Rights) isRoot() bool { return r.root != "" && r.namespace == r.root }

// elsewhere explains why a namespace of the same name is another one.
func (r Rights) elsewhere() string {
	if r.own == r.namespace {
		return ""
	}
	return fmt.Sprintf(", as the trust domain %s has namespaces of its own (identity.trustDomains)", r.domain)
}

// In returns the namespace of a client that declares one. A proven one cannot be left.
func (r Rights) In(declared string) (string, error) {
	switch {
	case !r.Proven():
		return declared, nil
	case declared == "" || declared == r.own || declared == r.namespace:
		return r.namespace, nil
	default:
		return "", fmt.Errorf("in namespace %q, but it proves that it is %s", declared, r.id)
	}
}

// Registers returns why the client may not be a registry; nil if it may. Patterns are of identities
// that may, as in [spiffe.Matches]. Without them, the identities of the root namespace may.
func (r Rights) Registers(patterns []string) error {
	if slices.ContainsFunc(patterns, func(pattern string) bool { return spiffe.Matches(pattern, r.id) }) || len(patterns) == 0 && r.isRoot() {
		return nil
	}
	may := fmt.Sprintf("an identity of the namespace %q", r.root)
	if len(patterns) > 0 {
		may = "one of tls.identities"
	}
	return fmt.Errorf("the source has to be %s, and it is %q%s", may, r.id, r.elsewhere())
}

// Within returns why a listener of some trust domains does not serve the client; nil if it does. No
// trust domain means all of them.
func (r Rights) Within(domains []string) error {
	if !r.Proven() || len(domains) == 0 || slices.Contains(domains, r.domain) {
		return nil
	}
	return fmt.Errorf("the trust domain %q is not served here; add it to tls.trustDomains", r.domain)
}

// TrustDomain is the rights of the identities of another trust domain.
type TrustDomain struct {
	// Namespaces are namespaces of that trust domain, each with the namespace of here that its
	// identities are in.
	Namespaces map[string]string `json:"namespaces"`
	// CAFile has the authorities of its client certificates, which vouch for no other trust domain.
	// Without it, the authorities of the listener vouch for this one, too.
	CAFile string `json:"caFile"`
}

// Authorities returns the files with the authorities of other trust domains, by their names.
func (v *Verifier) Authorities() map[string]string {
	files := map[string]string{}
	if v != nil {
		for name, domain := range v.config.TrustDomains {
			if domain.CAFile != "" {
				files[name] = domain.CAFile
			}
		}
	}
	return files
}

// isForeign reports whether a trust domain is another one.
func (c *Config) isForeign(domain string) bool {
	return domain != c.Domain() && !slices.Contains(c.Aliases, domain)
}

// Warnings names the issuers of tokens that could vouch for an identity of the root namespace, and
// those whose identities are in no namespace of here, though nothing says that they should not be.
func (c *Config) Warnings(rootNamespace string) (list []string) {
	for i, one := range c.JWT {
		domain := cmp.Or(one.TrustDomain, c.Domain())
		if _, named := c.TrustDomains[domain]; !named && c.isForeign(domain) {
			list = append(list, fmt.Sprintf("identity.jwt[%d]: identities of the trust domain %s are in no namespace of here, and see what is exported to everybody; name it in identity.trustDomains, with namespaces if it shall have some, or in identity.trustDomainAliases", i, domain))
		}
		if c.couldBeRoot(one, rootNamespace) {
			list = append(list, fmt.Sprintf("identity.jwt[%d]: %q may vouch for identities of the namespace %s, which read everything; list its namespaces", i, one.Issuer, rootNamespace))
		}
	}
	return list
}

// couldBeRoot reports whether an issuer may vouch for an identity with the right to everything,
// though no list of namespaces says so.
func (c *Config) couldBeRoot(i Issuer, root string) bool {
	if len(i.Namespaces) > 0 {
		return false
	}
	domain := cmp.Or(i.TrustDomain, c.Domain())
	return !c.isForeign(domain) || slices.Contains(slices.Collect(maps.Values(c.TrustDomains[domain].Namespaces)), root)
}
