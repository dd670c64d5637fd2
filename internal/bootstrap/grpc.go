package bootstrap

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// GRPC has the values of a gRPC bootstrap.
type GRPC struct {
	Node   Node
	Server Server
	// Workload is printed as the certificate provider "default".
	Workload Workload
	// Language is the client's language: go, python, java or node. Values that its
	// implementation does not support are reported. If it is empty, none is reported.
	Language string
}

// languages are the languages with differing implementations. The implementation called
// python is C-core, which C++, Ruby and others use, too.
var languages = []string{"go", "python", "java", "node"}

// The JSON form of a gRPC bootstrap, by gRPC's proposals A27, A29, A65 and A97.
type (
	// Client is the complete bootstrap; its JSON form is the file that clients read.
	Client struct {
		Servers []client `json:"xds_servers"`
		Node    node     `json:"node"`
		// Providers are the sources of certificates that resources may name.
		Providers map[string]provider `json:"certificate_providers,omitempty"`
	}
	client struct {
		URI         string   `json:"server_uri"`
		Credentials []creds  `json:"channel_creds"`
		PerCall     []creds  `json:"call_creds,omitempty"`
		Features    []string `json:"server_features"`
	}
	creds struct {
		Type   string `json:"type"`
		Config *files `json:"config,omitempty"`
	}
	files struct {
		CA    string `json:"ca_certificate_file,omitempty"`
		Cert  string `json:"certificate_file,omitempty"`
		Key   string `json:"private_key_file,omitempty"`
		Token string `json:"jwt_token_file,omitempty"`
	}
	node struct {
		ID       string         `json:"id"`
		Cluster  string         `json:"cluster"`
		Locality locality       `json:"locality"` // gRPC for Node requires it
		Metadata map[string]any `json:"metadata"`
	}
	locality struct {
		Region string `json:"region"`
		Zone   string `json:"zone"`
		Sub    string `json:"sub_zone"`
	}
)

// Client returns the bootstrap.
func (g GRPC) Client() (Client, error) {
	id, wrongNode := g.Node.identity()
	addresses, wrongAddress := g.Server.addresses()
	secured, wrongTLS := g.Server.tls()
	providers, wrongWorkload := g.Workload.providers()
	if err := errors.Join(wrongNode, wrongAddress, wrongTLS, wrongWorkload, g.unsupported(id)); err != nil {
		return Client{}, err
	}
	c := Client{Providers: providers, Node: node{
		ID: id.ID, Cluster: fmt.Sprintf("%s.%s", id.Name, id.Namespace),
		Locality: locality{id.Region, id.Zone, id.Sub}, Metadata: id.Metadata,
	}}
	by := creds{Type: "insecure"}
	if secured {
		by = creds{Type: "tls", Config: &files{CA: g.Server.CA, Cert: g.Server.Cert, Key: g.Server.Key}}
	}
	var perCall []creds
	if g.Server.Token != "" {
		perCall = []creds{{Type: "jwt_token_file", Config: &files{Token: g.Server.Token}}}
	}
	for _, a := range addresses {
		c.Servers = append(c.Servers, client{URI: a.String(), Credentials: []creds{by}, PerCall: perCall, Features: []string{"xds_v3"}})
	}
	return c, nil
}

// unsupported reports the values that gRPC does not support.
func (g GRPC) unsupported(id identity) error {
	var errs []error
	if g.Server.Name != "" {
		errs = append(errs, errors.New("--server-name: gRPC compares the certificate with the host in --address; remove the flag, and give an --address that the certificate contains"))
	}
	if g.Node.Interception != "" {
		errs = append(errs, errors.New("--interception: a gRPC client is no proxy; remove the flag"))
	}
	if id.Router {
		errs = append(errs, errors.New("--type: a gRPC client is no router; remove the flag"))
	}
	if slices.ContainsFunc(g.Server.Addresses, func(a string) bool { return strings.HasPrefix(a, "unix:") }) && g.Server.CA != "" {
		errs = append(errs, errors.New("--ca: gRPC cannot verify a server at a unix socket, which has no name; remove the TLS flags"))
	}
	return errors.Join(append(errs, g.unsupportedBy())...)
}

// unsupportedBy reports the values that the implementation of the language does not support,
// as of grpc-java 1.75 and grpc-js-xds 1.14.
func (g GRPC) unsupportedBy() error {
	if g.Language != "" && !slices.Contains(languages, g.Language) {
		return fmt.Errorf("--language: %q is not known; use %s", g.Language, strings.Join(languages, ", "))
	}
	switch {
	case g.Language == "java" && g.Server.Token != "":
		return errors.New("--token-file: grpc-java 1.75 sends no token to xDS servers; remove the flag, and connect to a listener that demands no proof of identity")
	case g.Language == "java" && g.Server.Cert != "":
		return errors.New("--cert: grpc-java sends no client certificate to xDS servers; remove --cert and --key, and connect to a listener that demands no certificate")
	case g.Language == "node" && g.Server.CA != "":
		return errors.New("--ca: grpc-node does not support TLS to xDS servers; remove the flag, and give an --address on loopback: an Isthmus or a tunnel on the same machine")
	}
	return nil
}
