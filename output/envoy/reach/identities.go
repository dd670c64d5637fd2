package reach

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/isthmus-mesh/isthmus/catalog"
	"github.com/isthmus-mesh/isthmus/output/envoy/policy"
)

// AnyIdentity ends a prefix of identities, where no account is known.
const AnyIdentity = "*"

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
// served certificates, they are those of the namespace in place of the host. They are one text,
// by which subjects can be compared.
func Identities(u *policy.UpstreamTLS, s *catalog.Service, endpoints *catalog.Endpoints, trustDomain string) string {
	accounts := slices.Clone(u.SubjectAltNames)
	if len(accounts) == 0 {
		accounts = s.SubjectAltNames.Slice()
		for account := range endpoints.Accounts() {
			accounts = append(accounts, accountName(account, s.Key.Namespace, trustDomain))
		}
	}
	if len(accounts) == 0 && u.Served() {
		return "spiffe://" + trustDomain + "/ns/" + s.Key.Namespace + "/" + AnyIdentity
	}
	slices.Sort(accounts)
	return strings.ToValidUTF8(strings.Join(slices.Compact(accounts), "\n"), string(utf8.RuneError))
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
		var old, now string
		if was {
			old = before.ServiceAccount
		}
		if is {
			now = after.ServiceAccount
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

// accountName is the name of a workload that runs under an account.
func accountName(account, namespace, trustDomain string) string {
	if strings.Contains(account, "://") {
		return account
	}
	return "spiffe://" + trustDomain + "/ns/" + namespace + "/sa/" + account
}
