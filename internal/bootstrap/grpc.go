package bootstrap

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// GRPC is the variable part of a gRPC bootstrap.
type GRPC struct {
	Node   Node
	Server Server
	// Language is one of languages. Without TLS a bootstrap is valid for all of them. If it is
	// empty, unsupported fields of implementations are not reported.
	Language string
}

// languages are the languages with differing implementations. The implementation called
// python is C-core, which C++, Ruby and others use, too.
var languages = []string{"go", "python", "java", "node"}

// The shapes of the bootstrap of gRPC, by gRPC's proposals A27 and A65.
type (
	// Client is the complete bootstrap; its JSON form is the file that clients read.
	Client struct {
		Servers []client `json:"xds_servers"`
		Node    node     `json:"node"`
	}
	client struct {
		URI         string   `json:"server_uri"`
		Credentials []creds  `json:"channel_creds"`
		Features    []string `json:"server_features"`
	}
	creds struct {
		Type   string `json:"type"`
		Config *files `json:"config,omitempty"`
	}
	files struct {
		CA   string `json:"ca_certificate_file"`
		Cert string `json:"certificate_file,omitempty"`
		Key  string `json:"private_key_file,omitempty"`
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
	if err := errors.Join(wrongNode, wrongAddress, wrongTLS, g.fits(id)); err != nil {
		return Client{}, err
	}
	c := Client{Node: node{
		ID: id.ID, Cluster: fmt.Sprintf("%s.%s", id.Name, id.Namespace),
		Locality: locality{id.Region, id.Zone, id.Sub}, Metadata: id.Metadata,
	}}
	for _, a := range addresses {
		by := creds{Type: "insecure"}
		if secured {
			by = creds{Type: "tls", Config: &files{g.Server.CA, g.Server.Cert, g.Server.Key}}
		}
		c.Servers = append(c.Servers, client{URI: a.String(), Credentials: []creds{by}, Features: []string{"xds_v3"}})
	}
	return c, nil
}

// fits reports fields that gRPC does not support.
func (g GRPC) fits(id identity) error {
	var errs []error
	if g.Server.Name != "" {
		errs = append(errs, errors.New("--server-name: gRPC has the certificate be for the host of --address; leave it away, and give an address that the certificate is for"))
	}
	if g.Node.Interception != "" {
		errs = append(errs, errors.New("--interception: a gRPC client is no proxy; leave it away"))
	}
	if id.Router {
		errs = append(errs, errors.New("--type: a gRPC client is no router; leave it away"))
	}
	if slices.ContainsFunc(g.Server.Addresses, func(a string) bool { return strings.HasPrefix(a, "unix:") }) && g.Server.CA != "" {
		errs = append(errs, errors.New("--ca: gRPC has no name to verify at the end of a unix socket; leave TLS away there"))
	}
	return errors.Join(append(errs, g.speaks())...)
}

// speaks reports features that the implementation of a language lacks, as of the releases
// grpc-java 1.75 and grpc-js-xds 1.14.
func (g GRPC) speaks() error {
	if g.Language != "" && !slices.Contains(languages, g.Language) {
		return fmt.Errorf("--language: %q is not known; use %s", g.Language, strings.Join(languages, ", "))
	}
	switch {
	case g.Language == "java" && g.Server.Cert != "":
		return errors.New("--cert: grpc-java shows no certificate to xDS servers; leave --cert and --key away, and have it connect to a listener of Isthmus that asks for none")
	case g.Language == "node" && g.Server.CA != "":
		return errors.New("--ca: grpc-node has no TLS to xDS servers; leave it away, and give an --address on loopback, such as that of an Isthmus or of a tunnel on the same machine")
	}
	return nil
}
