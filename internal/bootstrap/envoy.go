package bootstrap

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"text/template"
	"time"
)

// Envoy has the values of an Envoy bootstrap.
type Envoy struct {
	Node   Node
	Server Server
	// SOTW selects the state-of-the-world variant instead of delta.
	SOTW bool
	// AdminPort is the port of the admin interface on 127.0.0.1; 0 chooses a free one.
	AdminPort uint16
	// Keepalive is the interval of pings to the server.
	Keepalive time.Duration
}

// MinKeepalive is the shortest interval that Isthmus allows before it ends the connection.
const MinKeepalive = 2 * time.Second

// envoyText is the bootstrap, with comments for its operators.
//
//go:embed envoy.yaml
var envoyText string

// page is the data of the template.
type page struct {
	Envoy
	identity
	Addresses []address
	Type      string // discovery type of the cluster of the server
	TLS       bool
	SNI, SAN  string
	SANType   string
	Target    string        // URI of the server for google_grpc, if there is a token
	Answer    time.Duration // timeout of a ping
}

// maxAnswer bounds the timeout of a ping, however rarely Envoy pings.
const maxAnswer = 5 * time.Second

// YAML returns the bootstrap.
func (e Envoy) YAML() ([]byte, error) {
	p, err := e.page()
	if err != nil {
		return nil, err
	}
	t, err := template.New("envoy").Funcs(template.FuncMap{"quote": quote, "seconds": seconds}).Parse(envoyText)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = t.Execute(&b, p)
	return b.Bytes(), err
}

// page checks all values, and computes the derived ones.
func (e Envoy) page() (p page, err error) {
	var node, addresses, secured, keepalive error
	p.Envoy, p.Answer = e, min(e.Keepalive, maxAnswer)
	p.identity, node = e.Node.identity()
	p.Addresses, addresses = e.Server.addresses()
	p.TLS, secured = e.Server.tls()
	if e.Keepalive < MinKeepalive {
		keepalive = fmt.Errorf("--keepalive: %s is shorter than Isthmus allows; give at least %s", e.Keepalive, MinKeepalive)
	}
	if err := errors.Join(node, addresses, secured, e.Server.sockets(), keepalive, p.intercept(), p.listen(), p.call()); err != nil {
		return p, err
	}
	p.Type = "STATIC"
	if slices.ContainsFunc(p.Addresses, func(a address) bool { return !a.ip && a.Path == "" }) {
		p.Type = "STRICT_DNS"
	}
	if p.TLS {
		err = p.verify()
	}
	if err == nil && p.Server.Token != "" {
		err = p.dial()
	}
	return p, err
}

// intercept sets the interception mode. A router has none.
func (p *page) intercept() error {
	switch mode := p.Node.Interception; {
	case p.Router && mode != "":
		return errors.New("--interception: a router intercepts nothing; remove the flag, or use --type sidecar")
	case p.Metadata != nil && !p.Router && mode == "":
		p.Metadata["INTERCEPTION_MODE"] = "REDIRECT"
	}
	return nil
}

// verify sets the expected name in the server's certificate.
func (p *page) verify() error {
	expected := p.Server.Name
	for _, a := range p.Addresses {
		switch {
		case p.Server.Name != "":
		case a.Path != "":
			return errors.New("--server-name: missing; name the server as in the certificate at " + a.String())
		case expected != "" && expected != a.Host:
			return fmt.Errorf("--server-name: missing; the hosts %q and %q differ, so give the name that both certificates contain", expected, a.Host)
		default:
			expected = a.Host
		}
	}
	p.SAN = strings.TrimSuffix(expected, ".")
	switch _, err := netip.ParseAddr(p.SAN); {
	case err == nil:
		p.SANType = "IP_ADDRESS"
	case strings.HasPrefix(p.SAN, "spiffe://") && printable(p.SAN):
		p.SANType = "URI"
	case domain.MatchString(p.SAN):
		p.SANType, p.SNI = "DNS", p.SAN
	default:
		return fmt.Errorf("--server-name: %q is not a DNS name, an IP address or a SPIFFE ID", p.SAN)
	}
	if host := p.Addresses[0]; p.SANType == "URI" && p.Type == "STRICT_DNS" {
		p.SNI = strings.TrimSuffix(host.Host, ".")
	}
	return nil
}

// quote writes a value as JSON, which is YAML, too.
func quote(v any) (string, error) {
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(v)
	return strings.TrimSuffix(b.String(), "\n"), err
}

// seconds writes a duration in Envoy's form.
func seconds(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', -1, 64) + "s" }
