package records

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// listener is one endpoint of an instance: its address, port and protocol.
type listener struct {
	address  netip.Addr
	port     uint32
	protocol string // as Istio writes it
}

func (l listener) compare(o listener) int {
	return cmp.Or(l.address.Compare(o.address), cmp.Compare(l.port, o.port), cmp.Compare(l.protocol, o.protocol))
}

// parseListener reads an endpoint such as rest://10.0.0.1:8080?sslEnabled=true.
func parseListener(text string) (listener, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme == "" || u.Hostname() == "" {
		return listener{}, errors.New("is not an address such as rest://10.0.0.1:8080: correct what the instance registers")
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return listener{}, errors.New("has a query that cannot be read: write it as ?sslEnabled=true")
	}
	l := listener{protocol: protocolOf(strings.ToLower(u.Scheme), query)}
	if l.port, err = portOf(u); err != nil {
		return listener{}, err
	}
	l.address, err = addressOf(u.Hostname())
	return l, err
}

// protocolOf maps the scheme of an endpoint to Istio's name of the protocol. An
// unknown scheme is carried as bytes.
func protocolOf(scheme string, query url.Values) string {
	encrypted := isTrue(query, "sslEnabled")
	http2 := strings.EqualFold(first(query, "protocol"), "http2")
	switch scheme {
	case "rest", "http", "ws":
		return httpProtocol(encrypted, http2)
	case "https", "wss", "h2":
		return "HTTPS"
	case "h2c", "http2":
		return httpProtocol(encrypted, true)
	case "grpc":
		if encrypted {
			return "TLS"
		}
		return "GRPC"
	case "grpcs", "tls":
		return "TLS"
	case "udp":
		return "UDP"
	default: // highway, dubbo, and any other
		if encrypted {
			return "TLS"
		}
		return "TCP"
	}
}

// httpProtocol returns the protocol of HTTP endpoints. The parameter websocketEnabled
// makes no difference: websockets begin as HTTP.
func httpProtocol(encrypted, http2 bool) string {
	switch {
	case encrypted:
		return "HTTPS"
	case http2:
		return "HTTP2"
	default:
		return "HTTP"
	}
}

func isTrue(query url.Values, name string) bool { return strings.EqualFold(first(query, name), "true") }

// first returns the value of a parameter; the name matches in any case.
func first(query url.Values, name string) string {
	if values, ok := query[name]; ok {
		return values[0]
	}
	for key, values := range query {
		if strings.EqualFold(key, name) {
			return values[0]
		}
	}
	return ""
}

func portOf(u *url.URL) (uint32, error) {
	text := u.Port()
	if text == "" {
		switch strings.ToLower(u.Scheme) {
		case "http", "ws":
			return 80, nil
		case "https", "wss":
			return 443, nil
		}
		return 0, errors.New("has no port: have the instance register one, such as rest://10.0.0.1:8080")
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil || port == 0 {
		return 0, fmt.Errorf("has port %s, and ports are from 1 to 65535: correct what the instance registers", text)
	}
	return uint32(port), nil
}

// addressOf accepts IP addresses only: an endpoint with a name cannot be part of a
// service with static addresses.
func addressOf(host string) (netip.Addr, error) {
	address, err := netip.ParseAddr(host)
	switch {
	case err != nil:
		return netip.Addr{}, fmt.Errorf("has the name %q as its address, and a mesh cannot look it up here: "+
			"have the instance publish its IP address (servicecomb.rest.publishAddress, servicecomb.service.publishAddress)", host)
	case address.IsUnspecified():
		return netip.Addr{}, fmt.Errorf("has the address %s, which is not reachable: have the instance register its reachable address", host)
	case address.Zone() != "" || address.IsMulticast():
		return netip.Addr{}, fmt.Errorf("has the address %s, which other machines cannot reach: have the instance register another", host)
	}
	return address.Unmap(), nil
}

// parseListeners reads the endpoints of an instance, each once, and returns a reason
// for each invalid one.
func parseListeners(endpoints []string) (listeners []listener, wrong []string) {
	for _, text := range endpoints {
		l, err := parseListener(text)
		if err != nil {
			wrong = append(wrong, fmt.Sprintf("endpoint %q %v", text, err))
			continue
		}
		listeners = append(listeners, l)
	}
	slices.SortFunc(listeners, listener.compare)
	return slices.Compact(listeners), wrong
}
