package identity

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/isthmus-mesh/isthmus/internal/spiffe"
)

// Rights are the permissions of a client by its identity. They are comparable, and hold for a whole
// stream. A client without proof has the zero Rights: if the settings of its listener admit such
// clients, it may read everything.
type Rights struct {
	id        string
	domain    string // the trust domain of the identity
	own       string // the namespace of the identity, in that trust domain
	namespace string // the namespace of here that the client is in; empty: it is in none
	root      string // the namespace of here with the right to everything
	certified bool   // as in [Rights.Certified]
}

// Demands are the demands of a listener on proven clients.
type Demands struct {
	// TrustDomains are the trust domains that are served; all of them if it is empty.
	TrustDomains []string
	// OwnLeaves admits the proofs that are [Proof.Sent].
	OwnLeaves bool
}

// Admit returns the rights of a proven identity at a listener, or why it is not served there. From is
// the address of the client, for people. The catalog has the namespaces of [Config.TrustDomain] and
// its aliases. An identity of another trust domain is in the namespace of here that the
// configuration gives to its own one, or in none.
func (v *Verifier) Admit(p Proof, d Demands, from string) (Rights, error) {
	switch {
	case p.ID == "":
		return Rights{}, nil
	case len(d.TrustDomains) > 0 && !slices.Contains(d.TrustDomains, p.TrustDomain):
		return Rights{}, fmt.Errorf("the trust domain %q is not served here; add it to tls.trustDomains", p.TrustDomain)
	case p.Sent && !d.OwnLeaves:
		return Rights{}, v.reject(p, from)
	}
	r := Rights{id: p.ID, domain: p.TrustDomain, own: p.Namespace, namespace: p.Namespace}
	if v == nil {
		return r, nil
	}
	r.root = v.root
	r.certified = p.TrustDomain == v.config.Domain() && !p.Sent
	switch {
	case !v.config.isForeign(p.TrustDomain):
	case v.lenient(p):
		v.foreign.add(p.TrustDomain, p.ID, from, 0)
	default:
		r.namespace = v.config.TrustDomains[p.TrustDomain].Namespaces[p.Namespace]
	}
	return r, nil
}

// ID returns the SPIFFE identity; empty without proof.
func (r Rights) ID() string { return r.id }

// Proven reports whether the client has proven an identity.
func (r Rights) Proven() bool { return r.id != "" }

// Certified reports whether the client may be sent the certificate of its identity. A client of another
// trust domain may not, nor may one with a proof that is [Proof.Sent].
func (r Rights) Certified() bool { return r.certified }

// Namespace returns the namespace with the view of the client. A client with an empty one sees only
// the services that are exported to everybody.
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

// TrustDomain is the rights of the identities of another trust domain.
type TrustDomain struct {
	// Namespaces are the namespaces of that trust domain, by name, each with the namespace of here for
	// its identities.
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
// the issuers of trust domains that are not configured, so that their identities are in no namespace
// of here.
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

// couldBeRoot reports whether an issuer may vouch for an identity with the right to everything
// without a list of namespaces that has the root namespace.
func (c *Config) couldBeRoot(i Issuer, root string) bool {
	if len(i.Namespaces) > 0 {
		return false
	}
	domain := cmp.Or(i.TrustDomain, c.Domain())
	return !c.isForeign(domain) || slices.Contains(slices.Collect(maps.Values(c.TrustDomains[domain].Namespaces)), root)
}
