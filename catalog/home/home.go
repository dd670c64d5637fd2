// Package home tells to which namespace the name of a host belongs.
package home

import (
	"cmp"
	"slices"
	"strings"

	"github.com/isthmus-mesh/isthmus/model"
)

// Domains are DNS domains of clusters, each as ".svc.DOMAIN" in lower case, the longest first.
type Domains []string

// In returns the domains.
func In(domains []string) Domains {
	var d Domains
	for _, domain := range domains {
		d = append(d, ".svc."+model.Name(strings.TrimPrefix(domain, ".")))
	}
	slices.SortFunc(d, func(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b)) })
	return slices.Compact(d)
}

// Of returns the namespace that the name of a host says, NAME.NAMESPACE.svc.DOMAIN.
// A wildcard over the names of several namespaces belongs to none of them. Bound is false
// for all other hosts.
func (d Domains) Of(host string) (namespace string, bound bool) {
	for _, domain := range d {
		if host == "*"+domain || host == "*"+strings.TrimPrefix(domain, ".svc") {
			return "", true
		}
		rest, within := strings.CutSuffix(host, domain)
		if at := strings.LastIndexByte(rest, '.'); within && at > 0 && at+1 < len(rest) {
			return rest[at+1:], true
		}
	}
	return "", false
}
