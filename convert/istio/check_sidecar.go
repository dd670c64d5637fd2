package istio

import (
	"errors"
	"net"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/isthmus-mesh/isthmus/convert/istio/names"
	"github.com/isthmus-mesh/isthmus/internal/yamlpos"
)

// sidecarCheck checks one Sidecar.
type sidecarCheck struct {
	spec    *yamlpos.Node
	sidecar *networking.Sidecar
	at      trail
	p       *problems
}

func checkSidecar(spec *yamlpos.Node, sidecar *networking.Sidecar, p *problems) {
	c := sidecarCheck{spec, sidecar, top("spec"), p}
	if len(sidecar.GetEgress()) == 0 && len(sidecar.GetIngress()) == 0 &&
		sidecar.GetOutboundTrafficPolicy() == nil && sidecar.GetInboundConnectionPool() == nil {
		p.add(c.at, "says nothing: write egress, ingress, outboundTrafficPolicy or inboundConnectionPool")
	}
	checkSelector(sidecar.GetWorkloadSelector(), c.at.field("workloadSelector"), p)
	c.ingress()
	c.egress()
	checkPool(sidecar.GetInboundConnectionPool(), c.at.field("inboundConnectionPool"), p)
	checkOutbound(sidecar.GetOutboundTrafficPolicy(), c.at.field("outboundTrafficPolicy"), p)
}

func (c *sidecarCheck) ingress() {
	list, numbers := c.at.field("ingress"), map[uint32]bool{}
	for i, listener := range c.sidecar.GetIngress() {
		at := list.item(i)
		if port := listener.GetPort(); port != nil {
			c.port(port, listener.GetBind(), at)
			c.unique(numbers, port, at)
		}
		if endpoint := listener.GetDefaultEndpoint(); endpoint != "" {
			if err := checkDefaultEndpoint(endpoint); err != nil {
				c.p.add(at.field("defaultEndpoint"), "%q %v", endpoint, err)
			}
		}
		if listener.GetTls() != nil {
			checkListenerTLS(c.spec.Get("ingress").Item(i), listener, at, c.p)
		}
		checkPool(listener.GetConnectionPool(), at.field("connectionPool"), c.p)
	}
}

// port checks the port of a listener that is bound to an address.
func (c *sidecarCheck) port(port *networking.SidecarPort, bind string, at trail) {
	here := at.field("port")
	c.portFields(port, here)
	if !names.IsPort(port.GetNumber()) {
		c.p.add(here.field("number"), "%d is not a port: use 1 to 65535", port.GetNumber())
	}
	if bind != "" && !names.IsIP(bind) {
		c.p.add(at.field("bind"), "%q is not an IP address: write one, or remove it", bind)
	}
}

func (c *sidecarCheck) portFields(port *networking.SidecarPort, at trail) {
	if port.GetName() != "" {
		checkPortName(port.GetName(), at.field("name"), c.p)
	}
	checkProtocol(port.GetProtocol(), at.field("protocol"), c.p)
	if port.GetTargetPort() > 0 { //nolint:staticcheck // that it is deprecated is the point
		c.p.add(at.field("targetPort"), "has no effect in a Sidecar: remove it")
	}
}

func (c *sidecarCheck) unique(numbers map[uint32]bool, port *networking.SidecarPort, at trail) {
	if number := port.GetNumber(); numbers[number] {
		here := at.field("port")
		c.p.add(here.field("number"), "port %d is given twice: remove one", number)
	}
	numbers[port.GetNumber()] = true
}

// checkDefaultEndpoint returns the fault of the address that traffic is handed to; nil if
// it is valid.
func checkDefaultEndpoint(s string) error {
	wrong := errors.New("is not an endpoint of the workload: write 127.0.0.1:port, 0.0.0.0:port, [::1]:port, [::]:port or unix:///path")
	if socket, ok := strings.CutPrefix(s, names.UnixPrefix); ok {
		if strings.HasPrefix(socket, "@") || strings.HasPrefix(socket, "/") && !strings.HasSuffix(socket, "/") {
			return nil
		}
		return wrong
	}
	host, text, err := net.SplitHostPort(s)
	if err != nil {
		return wrong
	}
	switch host {
	case "", "127.0.0.1", "0.0.0.0", "::1", "::":
	default:
		return wrong
	}
	if port, err := strconv.Atoi(text); err != nil || port < 1 || port > 65535 {
		return errors.New("has no port from 1 to 65535: write one, such as 127.0.0.1:8080")
	}
	return nil
}

func (c *sidecarCheck) egress() {
	list, numbers, sockets := c.at.field("egress"), map[uint32]bool{}, map[string]bool{}
	last := len(c.sidecar.GetEgress()) - 1
	for i, listener := range c.sidecar.GetEgress() {
		at := list.item(i)
		switch port := listener.GetPort(); {
		case port == nil && i != last:
			c.p.add(at, "a listener without a port is for all that is left: move it to the end")
		case port == nil:
		case port.GetNumber() == 0:
			c.socket(listener, sockets, at)
		default:
			c.port(port, listener.GetBind(), at)
			c.unique(numbers, port, at)
		}
		hosts := at.field("hosts")
		for j, host := range listener.GetHosts() {
			if err := checkEgressHost(host); err != nil {
				c.p.add(hosts.item(j), "%q %v", host, err)
			}
		}
	}
}

// socket checks a listener on a unix socket: its port has no number.
func (c *sidecarCheck) socket(listener *networking.IstioEgressListener, seen map[string]bool, at trail) {
	c.portFields(listener.GetPort(), at.field("port"))
	bind := listener.GetBind()
	path, unix := strings.CutPrefix(bind, names.UnixPrefix)
	switch {
	case !unix:
		here := at.field("port")
		c.p.add(here.field("number"), "missing: write the port's number, or bind to unix:///path")
	case !strings.HasPrefix(path, "@") && (!strings.HasPrefix(path, "/") || strings.HasSuffix(path, "/")):
		c.p.add(at.field("bind"), "%q is not a socket: write unix:///path or unix://@name", bind)
	case seen[bind]:
		c.p.add(at.field("bind"), "%q is given twice: remove one", bind)
	}
	seen[bind] = true
	switch listener.GetCaptureMode() {
	case networking.CaptureMode_DEFAULT, networking.CaptureMode_NONE:
	default:
		c.p.add(at.field("captureMode"), "nothing is captured for a unix socket: use DEFAULT or NONE")
	}
}

// checkEgressHost returns the fault of a namespace/host; nil if it is valid.
func checkEgressHost(s string) error {
	namespace, host, ok := strings.Cut(s, "/")
	if !ok || namespace == "" || host == "" {
		return errors.New("is not of the form namespace/host: write such as ./*, */*, prod/*.example.com")
	}
	switch name := strings.TrimPrefix(namespace, "~"); {
	case name != "" && name != "*" && name != "." && !names.IsLabel(name):
		return errors.New("does not begin with a namespace: write one, \".\" for this one, or \"*\" for all, with ~ before it to exclude")
	case host == "*":
		return nil
	case !strings.Contains(host, "."):
		return errors.New("has a short name: write the full name of the host, or * for all")
	case strings.Contains(host, "*") && !strings.HasPrefix(host, "*."):
		return errors.New("has an asterisk inside a name: it stands only for the whole first part, as in *.example.com")
	}
	if err := names.CheckHost(host); err != nil {
		return errors.New("has no host's name after the slash: " + err.Error())
	}
	return nil
}

func checkOutbound(policy *networking.OutboundTrafficPolicy, at trail, p *problems) {
	proxy := policy.GetEgressProxy()
	if proxy == nil {
		return
	}
	here := at.field("egressProxy")
	if policy.GetMode() != networking.OutboundTrafficPolicy_ALLOW_ANY {
		p.add(here, "goes with mode ALLOW_ANY only: write that mode, or remove it")
		return
	}
	if err := names.CheckDomain(proxy.GetHost()); err != nil && proxy.GetHost() != "" {
		p.add(here.field("host"), "%v", err)
	}
	if subset := proxy.GetSubset(); subset != "" && !names.IsLabel(subset) {
		p.add(here.field("subset"), "%q cannot be a subset's name: use letters, digits and hyphens, at most 63", subset)
	}
	if !names.IsPort(proxy.GetPort().GetNumber()) {
		port := here.field("port")
		p.add(port.field("number"), "missing, or not a port: write 1 to 65535")
	}
}

// checkPool checks the settings of a connection pool, if there are any.
func checkPool(pool *networking.ConnectionPoolSettings, at trail, p *problems) {
	if pool == nil {
		return
	}
	http, tcp := pool.GetHttp(), pool.GetTcp()
	if http == nil && tcp == nil {
		p.add(at, "says nothing: write http or tcp, or remove it")
	}
	if http.GetH2UpgradePolicy() == networking.ConnectionPoolSettings_HTTPSettings_UPGRADE && http.GetUseClientProtocol() {
		here := at.field("http")
		p.add(here.field("useClientProtocol"), "goes against h2UpgradePolicy UPGRADE: remove one of them")
	}
	keepAlive := http.GetHttp2KeepAlive()
	for _, d := range []struct {
		value *durationpb.Duration
		path  []string
	}{
		{http.GetIdleTimeout(), []string{"http", "idleTimeout"}},
		{keepAlive.GetInterval(), []string{"http", "http2KeepAlive", "interval"}},
		{keepAlive.GetTimeout(), []string{"http", "http2KeepAlive", "timeout"}},
		{tcp.GetConnectTimeout(), []string{"tcp", "connectTimeout"}},
		{tcp.GetMaxConnectionDuration(), []string{"tcp", "maxConnectionDuration"}},
		{tcp.GetTcpKeepalive().GetTime(), []string{"tcp", "tcpKeepalive", "time"}},
		{tcp.GetTcpKeepalive().GetInterval(), []string{"tcp", "tcpKeepalive", "interval"}},
	} {
		checkDuration(d.value, at, d.path, p)
	}
	if idle := tcp.GetIdleTimeout(); idle.AsDuration().Milliseconds() != 0 { // zero milliseconds mean no timeout
		checkDuration(idle, at, []string{"tcp", "idleTimeout"}, p)
	}
}

func checkDuration(value *durationpb.Duration, at trail, path []string, p *problems) {
	if value == nil {
		return
	}
	steps := make([]trail, len(path)+1)
	steps[0] = at
	for i, name := range path {
		steps[i+1] = steps[i].field(name)
	}
	switch d := value.AsDuration(); {
	case d < time.Millisecond:
		p.add(steps[len(path)], "%s is too short: write 1ms or more", d)
	case d%time.Millisecond != 0:
		p.add(steps[len(path)], "%s is finer than proxies count: write whole milliseconds", d)
	}
}

// checkListenerTLS checks the TLS settings of a Sidecar's ingress listener.
func checkListenerTLS(node *yamlpos.Node, listener *networking.IstioIngressListener, at trail, p *problems) {
	tls, here := listener.GetTls(), at.field("tls")
	for _, field := range []struct {
		name  string
		given bool
	}{
		{"subjectAltNames", len(tls.GetSubjectAltNames()) > 0},
		{"httpsRedirect", tls.GetHttpsRedirect()},
		{"credentialName", tls.GetCredentialName() != ""},
		{"credentialNames", present(node.Get("tls").Get("credentialNames"))},
		{"tlsCertificates", present(node.Get("tls").Get("tlsCertificates"))},
	} {
		if field.given {
			p.add(here.field(field.name), "does not work in a Sidecar: remove it")
		}
	}
	if names.ProtocolOf(listener.GetPort().GetProtocol()) != names.TLSProtocol {
		p.add(here, "goes with a port of protocol HTTPS or TLS only: change the protocol, or remove it")
	}
	checkCertificates(tls, here, p)
}

// checkCertificates checks that the mode has the certificates it needs.
func checkCertificates(tls *networking.ServerTLSSettings, at trail, p *problems) {
	switch mode := tls.GetMode(); mode {
	case networking.ServerTLSSettings_PASSTHROUGH:
	case networking.ServerTLSSettings_SIMPLE, networking.ServerTLSSettings_MUTUAL, networking.ServerTLSSettings_OPTIONAL_MUTUAL:
		if tls.GetCredentialName() != "" {
			return // the credential name replaces the files, and was already checked
		}
		for _, field := range []struct {
			name, value string
			needed      bool
		}{
			{"serverCertificate", tls.GetServerCertificate(), true},
			{"privateKey", tls.GetPrivateKey(), true},
			{"caCertificates", tls.GetCaCertificates(), mode != networking.ServerTLSSettings_SIMPLE},
		} {
			if field.needed && field.value == "" {
				p.add(at.field(field.name), "missing: mode %s needs it", mode)
			}
		}
		if tls.GetCaCrl() != "" && mode == networking.ServerTLSSettings_SIMPLE {
			p.add(at.field("caCrl"), "mode SIMPLE looks at no client's certificate: remove it, or use mode MUTUAL")
		}
	default:
		p.add(at.field("mode"), "mode %s does not work in a Sidecar: use PASSTHROUGH, SIMPLE, MUTUAL or OPTIONAL_MUTUAL", mode)
	}
}
