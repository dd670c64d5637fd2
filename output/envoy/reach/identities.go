package reach

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/model"
	"github.com/isthmus-mesh/isthmus/output/envoy/policy"
)

// AnyIdentity ends a prefix of identities, where no account is known. No name ends so.
const AnyIdentity = "\x00"

// TLSFor is the TLS of connections to a service; nil for none. An API server, which
// each cluster has for itself, takes no TLS of the mesh.
func TLSFor(u *policy.UpstreamTLS, s catalog.ServiceDefinition) *policy.UpstreamTLS {
	if !u.On() || s.Traffic.ClusterLocal && u.OfMesh() {
		return nil
	}
	return u
}

// Identities are the names of which a certificate must have one: those that are
// configured, or those of the service and the accounts of its endpoints, or the host. With
// served certificates, a namespace of endpoints without an account has all of its identities in
// place of the host. They are one text, by which subjects can be compared.
func Identities(u *policy.UpstreamTLS, s *catalog.Service, endpoints *catalog.Endpoints, trustDomain string) string {
	list := slices.Clone(u.SubjectAltNames)
	if len(list) == 0 {
		list = s.SubjectAltNames.Slice()
		known := map[string]bool{}
		for account := range endpoints.Accounts() {
			list, known[account.Namespace] = append(list, account.Identity(trustDomain)), true
		}
		for i := range list {
			list[i] = printable(list[i])
		}
		if u.Served() && s.SubjectAltNames.Len() == 0 {
			list = append(list, unknownIn(namespacesOf(s.ServiceDefinition), known, trustDomain)...)
		}
	}
	slices.Sort(list)
	return strings.Join(slices.Compact(list), "\n")
}

// unknownIn returns the prefixes of all identities of the namespaces without a known account.
func unknownIn(namespaces []string, known map[string]bool, trustDomain string) (prefixes []string) {
	for _, namespace := range namespaces {
		if !known[namespace] {
			prefixes = append(prefixes, model.IdentitiesIn(namespace, trustDomain)+AnyIdentity)
		}
	}
	return prefixes
}

// printable replaces characters that no name in a certificate has.
func printable(name string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return utf8.RuneError
		}
		return r
	}, name)
}

// OtherIdentities reports whether a change may be one of identities: the service has
// others, or an endpoint of the port came, went or changed with its account.
func OtherIdentities(c catalog.ServiceChange, port uint32) bool {
	if !c.Old.SubjectAltNames.Equal(c.New.SubjectAltNames) {
		return true
	}
	for id := range c.Endpoints {
		if id.ServicePort != port {
			continue
		}
		before, was := c.Old.Endpoints(port).Get(id)
		after, is := c.New.Endpoints(port).Get(id)
		var old, now model.Account
		if was {
			old = before.Account()
		}
		if is {
			now = after.Account()
		}
		if old != now {
			return true
		}
	}
	return false
}

// SharesSockets reports whether endpoints of several networks are at one address and port, before or after
// a change. A client is given one of them, and a change of another may decide which.
func SharesSockets(c catalog.ServiceChange, port uint32) bool {
	return c.Old.Endpoints(port).Counts().Shared+c.New.Endpoints(port).Counts().Shared > 0
}
