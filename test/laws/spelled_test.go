package laws_test

import (
	"strings"

	"pgregory.net/rapid"

	"github.com/isthmus-mesh/isthmus/model"
)

// spell draws a spelling of a host.
func spell(t *rapid.T, host string) string {
	upper := strings.ToUpper(host)
	return rapid.SampledFrom([]string{host, host, upper, upper[:1] + host[1:], host + ".", upper + "."}).Draw(t, "spelling")
}

// nameOf is the one spelling in which hosts are compared.
func nameOf(host string) string { return strings.TrimSuffix(strings.ToLower(host), ".") }

// inOneSpelling is a record's content with its hosts in the spelling in which they are compared.
// Clients are sent the same for both, but where they look up the host of a service: that name
// is handed on as it came, and stays.
func inOneSpelling(spec model.Spec) model.Spec {
	s, is := spec.(model.Service)
	if !is || s.Resolution == model.ResolutionDNS {
		return spec
	}
	hosts := s.Hosts.Slice()
	for i, host := range hosts {
		hosts[i] = nameOf(host)
	}
	s.Hosts = model.ListOf(hosts...)
	return s
}
