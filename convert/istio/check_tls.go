package istio

import (
	networking "istio.io/api/networking/v1alpha3"

	"github.com/isthmus-mesh/isthmus/internal/yamlpos"
)

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
	if protocolOf(listener.GetPort().GetProtocol()) != tlsProtocol {
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
