package bootstrap

import (
	"errors"
	"fmt"
	"strings"
)

// sockets returns an error if a token would be sent to a unix socket.
func (s Server) sockets() error {
	for _, a := range s.Addresses {
		if s.Token != "" && strings.HasPrefix(a, "unix:") {
			return fmt.Errorf("--address: %q is a unix socket, and a token is sent over TLS only; give a host and port, or remove --token-file", a)
		}
	}
	return nil
}

// dial sets the URI at which google_grpc connects to the server. Its resolvers accept one DNS
// name, or addresses of one family.
func (p *page) dial() error {
	if p.SANType == "URI" {
		return fmt.Errorf("--server-name: with --token-file, Envoy compares no SPIFFE ID such as %q; give a DNS name or an IP address that the certificate contains", p.SAN)
	}
	first := p.Addresses[0]
	if !first.ip && len(p.Addresses) == 1 {
		p.Target = "dns:///" + first.String()
		return nil
	}
	scheme := "ipv4:"
	if strings.Contains(first.Host, ":") {
		scheme = "ipv6:"
	}
	var list []string
	for _, a := range p.Addresses {
		if !a.ip || strings.Contains(a.Host, ":") != (scheme == "ipv6:") {
			return errors.New("--address: with --token-file, Envoy connects to one DNS name, or to addresses of one family; give one DNS name that resolves to all replicas")
		}
		list = append(list, a.String())
	}
	p.Target = scheme + strings.Join(list, ",")
	return nil
}
