package envoy

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"
)

// tlsOfIstiod are the settings of TLS of istiod's cluster, and those of how certificates are
// checked. There are none without TLS.
func tlsOfIstiod(c object) (upstream, validation object) {
	socket, _ := c["transportSocket"].(object)
	upstream, _ = socket["typedConfig"].(object)
	common, _ := upstream["commonTlsContext"].(object)
	validation, _ = common["combinedValidationContext"].(object)
	return upstream, validation
}

func withoutOverride(c object) bool { return without("alpn_override")(ofIstio(c)) }

func secretsOverADS(c object) bool {
	upstream, validation := tlsOfIstiod(c)
	if upstream == nil {
		return false
	}
	certificates, _ := upstream["commonTlsContext"].(object)["tlsCertificateSdsSecretConfigs"].([]any)
	for _, secret := range append(certificates, validation["validationContextSdsSecretConfig"]) {
		secret.(object)["sdsConfig"] = object{"ads": object{}, "initialFetchTimeout": "0s", "resourceApiVersion": "V3"}
	}
	return true
}

// demandingServer names the server where istiod has the Envoy take the host of each
// request for it, and demands that name where istiod demands none.
func demandingServer(c object) bool {
	upstream, validation := tlsOfIstiod(c)
	if upstream == nil {
		return false
	}
	automatic := withoutAutomaticNames(c)
	if upstream["sni"] == nil {
		name := c["name"].(string)
		upstream["sni"] = name[strings.LastIndex(name, "|")+1:]
	}
	names := validation["defaultValidationContext"].(object)
	if names["matchSubjectAltNames"] != nil {
		return automatic
	}
	names["matchSubjectAltNames"] = []any{object{"exact": upstream["sni"]}}
	return true
}

func withoutAutomaticNames(c object) bool {
	const extension = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"
	extensions, _ := c["typedExtensionProtocolOptions"].(object)
	options, _ := extensions[extension].(object)
	if !without("upstreamHttpProtocolOptions")(options) {
		return false
	}
	if options["explicitHttpConfig"].(object)["httpProtocolOptions"] != nil { // HTTP/1.1, as without an extension
		delete(c, "typedExtensionProtocolOptions")
	}
	return true
}

// withTypedNames says of names what they are. They are in order, so that the bytes do
// not depend on that of the accounts.
func withTypedNames(c object) bool {
	_, validation := tlsOfIstiod(c)
	names, _ := validation["defaultValidationContext"].(object)
	list, _ := names["matchSubjectAltNames"].([]any)
	if !without("matchSubjectAltNames")(names) {
		return false
	}
	exact := func(m any) string { return m.(object)["exact"].(string) }
	slices.SortFunc(list, func(a, b any) int { return cmp.Compare(exact(a), exact(b)) })
	for i, matcher := range list {
		kind := "DNS"
		if _, err := netip.ParseAddr(exact(matcher)); err == nil {
			kind = "IP_ADDRESS"
		} else if strings.HasPrefix(exact(matcher), "spiffe://") {
			kind = "URI"
		}
		list[i] = object{"sanType": kind, "matcher": matcher}
	}
	names["matchTypedSubjectAltNames"] = list
	return true
}
