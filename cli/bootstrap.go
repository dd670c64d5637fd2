package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/isthmus-mesh/isthmus/cli/term"
	"github.com/isthmus-mesh/isthmus/internal/bootstrap"
)

func newBootstrap() *cobra.Command {
	c := &cobra.Command{
		Use:   "bootstrap",
		Short: "Print the bootstrap of an Envoy or of a gRPC client",
		Long: `Bootstrap prints the file with which an Envoy or a gRPC client of this Isthmus starts.
It asks no running Isthmus, looks up no name and reads no file, so it can be run on
any machine.

Exit status: 0 it was printed, 2 wrong usage.`,
		Example: "  isthmus bootstrap envoy --node web-1 --namespace shop --address 127.0.0.1:15010 > envoy.yaml\n" +
			"  isthmus bootstrap grpc --node web-1 --namespace shop --address 127.0.0.1:15010 > bootstrap.json",
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return errors.New("name the kind of client: isthmus bootstrap envoy, or isthmus bootstrap grpc")
		},
	}
	c.AddCommand(newBootstrapEnvoy(), newBootstrapGRPC())
	return c
}

func newBootstrapEnvoy() *cobra.Command {
	var e bootstrap.Envoy
	f := document(term.AsYAML)
	c := &cobra.Command{
		Use:   "envoy --node NAME --address HOST:PORT",
		Short: "Print the bootstrap of an Envoy",
		Long: `Envoy prints the bootstrap of an Envoy that takes its clusters and listeners from
Isthmus on one stream, the aggregated discovery service, as changes. It is Envoy's
whole configuration, and may be added to.

NAME is that of the workload, or a whole node id of Istio's form, such as
sidecar~10.0.0.7~web-1.shop~shop.svc.cluster.local. What Isthmus serves depends on the
namespace and the labels. With --address more than once, for replicas, Envoy uses any
of them. Addresses are best: a name is looked up, which takes 20 s at the start if the
nameserver does not answer.

With --ca the connection is by TLS. Envoy reads the files at its start alone: restart it
when they have changed. The file of --token-file, which needs --ca, is read again at each
new stream: replace it before its token expires. It contains the token alone, without a
newline at the end, which Envoy cannot send.

Start it with 'envoy -c FILE --drain-time-s 45'; next, 'isthmus clients' shows it.

Exit status: 0 it was printed, 2 wrong usage.`,
		Example: `  isthmus bootstrap envoy --node web-1 --namespace shop --address 127.0.0.1:15010 > envoy.yaml
  isthmus bootstrap envoy --node web-1 --namespace shop --ip 10.0.0.7 --labels app=web,version=v2 \
    --address isthmus.example.com:15010 --ca ca.pem --cert web.pem --key web.key > envoy.yaml
  isthmus bootstrap envoy --node web-1 --namespace shop --address isthmus.example.com:15010 --ca ca.pem --token-file /run/isthmus/token > envoy.yaml
  isthmus bootstrap envoy --node web-1 --ip 10.0.0.7 --interception NONE --address 127.0.0.1:15010 > envoy.yaml   listeners on loopback
  isthmus bootstrap envoy --node web-1 --ip 10.0.0.7 --interception NONE --outbound 8000,9000 --inbound 8080,9090=9091 --address 127.0.0.1:15010 > envoy.yaml
  isthmus bootstrap envoy --node edge-1 --type router --namespace edge --ip 10.0.0.9 --address 10.0.0.1:15010 > envoy.yaml
  isthmus bootstrap envoy --node router~10.0.0.9~edge-1.edge~edge.svc.cluster.local --address 10.0.0.1:15010 -o json`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			text, err := e.YAML()
			if err != nil {
				return err
			}
			if f == document(term.AsJSON) {
				return printJSON(c, text)
			}
			_, err = c.OutOrStdout().Write(text)
			return err
		},
	}
	nodeFlags(c, &e.Node)
	serverFlags(c, &e.Server)
	flags := c.Flags()
	flags.StringVar(&e.Server.Name, "server-name", "", "what the server's certificate is for: a DNS name, address or SPIFFE ID; default: the host of --address")
	flags.StringVar(&e.Node.Interception, "interception", "", "how connections come to a sidecar: REDIRECT, TPROXY, or NONE, with which it listens on loopback; default REDIRECT")
	flags.StringSliceVar(&e.Node.Inbound, "inbound", nil, "with --interception NONE, where to listen for the workload: [ADDRESS:]PORT[=TARGET], with TARGET its own port on loopback; may be repeated")
	flags.StringSliceVar(&e.Node.Outbound, "outbound", nil, "with --interception NONE, the ports of loopback at which it listens for services, such as 8080,9090, or all; default all")
	flags.BoolVar(&e.SOTW, "sotw", false, "take the state of the world in each response instead of changes")
	flags.Uint16Var(&e.AdminPort, "admin-port", 15000, "the port of Envoy's admin interface on 127.0.0.1; 0 is any free one")
	flags.DurationVar(&e.Keepalive, "keepalive", 10*time.Second, "how often Envoy asks whether Isthmus is still there; at least 2s")
	flags.VarP(&f, "output", "o", "how to print: yaml or json")
	return c
}

func newBootstrapGRPC() *cobra.Command {
	var g bootstrap.GRPC
	c := &cobra.Command{
		Use:   "grpc --node NAME --address HOST:PORT",
		Short: "Print the bootstrap of a gRPC client",
		Long: `Grpc prints the bootstrap of a gRPC client, in whatever language: JSON for the file that
the variable GRPC_XDS_BOOTSTRAP names. The client then dials xds:///HOST:PORT, with the
host and port of a service.

NAME is that of the workload, or a whole node id of Istio's form, such as
sidecar~10.0.0.7~web-1.shop~shop.svc.cluster.local. What Isthmus serves depends on the
namespace and the labels. With --address more than once, for replicas, a client uses
the first that answers.

With --ca the connection is by TLS, and the server's certificate has to be for the host
of --address. Not every language can: with --language an error says what it cannot.
Java does not read the files: the JVM has to trust the authorities, as with
-Djavax.net.ssl.trustStore.

With --token-file, which needs --ca, start the client with the variable
GRPC_EXPERIMENTAL_XDS_BOOTSTRAP_CALL_CREDS=true: without it, gRPC sends no token. The file
is read again shortly before its token expires. Next, 'isthmus clients' shows the client.

With --workload-cert, --workload-key and --workload-ca the bootstrap has a certificate
provider, which reads these files again each minute. gRPC uses it for calls to services
with resources that name it. Those of Isthmus do not yet: they are called as the client's
own credentials say.

Exit status: 0 it was printed, 2 wrong usage.`,
		Example: `  isthmus bootstrap grpc --node web-1 --namespace shop --address 127.0.0.1:15010 > bootstrap.json
  isthmus bootstrap grpc --node web-1 --namespace shop --labels app=web --locality eu/west/a \
    --address isthmus.example.com:15010 --ca ca.pem --cert web.pem --key web.key > bootstrap.json
  isthmus bootstrap grpc --language go --node web-1 --address isthmus.example.com:15010 --ca ca.pem --token-file /run/isthmus/token > bootstrap.json
  isthmus bootstrap grpc --language java --node web-1 --address isthmus.example.com:15010 --ca ca.pem > bootstrap.json`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			client, err := g.Client()
			if err != nil {
				return err
			}
			return term.Print(c, term.AsJSON, client, nil)
		},
	}
	nodeFlags(c, &g.Node)
	serverFlags(c, &g.Server)
	c.Flags().StringVar(&g.Language, "language", "", "what the client is written in: go, python (as all that is C-core), java or node; needed for TLS alone")
	c.Flags().StringVar(&g.Workload.Cert, "workload-cert", "", "the file of the certificate by which the client proves itself to other workloads, in PEM form")
	c.Flags().StringVar(&g.Workload.Key, "workload-key", "", "the file of the key of --workload-cert, in PEM form")
	c.Flags().StringVar(&g.Workload.CA, "workload-ca", "", "the file of the authorities of other workloads, in PEM form")
	return c
}

// nodeFlags adds the flags with the client's identity.
func nodeFlags(c *cobra.Command, n *bootstrap.Node) {
	flags := c.Flags()
	flags.StringVar(&n.Node, "node", "", "the name of the workload, or its whole node id TYPE~IP~NAME.NAMESPACE~DOMAIN")
	flags.StringVar(&n.Namespace, "namespace", "", "the namespace of the workload; default \"default\"")
	flags.StringSliceVar(&n.IPs, "ip", nil, "the addresses of the workload, as the registry has them; default 127.0.0.1")
	flags.StringToStringVar(&n.Labels, "labels", nil, "the labels of the workload, such as app=web,version=v2")
	flags.StringVar(&n.ServiceAccount, "service-account", "", "the service account of the workload")
	flags.StringVar(&n.Cluster, "cluster", "", "the Kubernetes cluster that the workload is in")
	flags.StringVar(&n.Network, "network", "", "the network that the workload is in")
	flags.StringVar(&n.Machine, "node-name", "", "the machine that the workload runs on, such as the node of its Kubernetes cluster")
	flags.StringVar(&n.Locality, "locality", "", "where the workload runs: REGION/ZONE/SUBZONE")
	flags.StringVar(&n.Type, "type", "", "sidecar or router; default sidecar")
	flags.StringVar(&n.Domain, "domain", "", "the domain of the workload; default NAMESPACE.svc.cluster.local")
}

// serverFlags adds the flags with the address of Isthmus.
func serverFlags(c *cobra.Command, s *bootstrap.Server) {
	flags := c.Flags()
	flags.StringSliceVar(&s.Addresses, "address", nil, "where Isthmus serves xDS: HOST:PORT, or unix:///PATH; more of them for replicas")
	flags.StringVar(&s.CA, "ca", "", "use TLS: the file of the authorities of the server's certificate, in PEM form")
	flags.StringVar(&s.Cert, "cert", "", "the file of the client's own certificate, in PEM form")
	flags.StringVar(&s.Key, "key", "", "the file of the key of --cert, in PEM form")
	flags.StringVar(&s.Token, "token-file", "", "the file of the token that proves the client's identity, such as of a Kubernetes service account; needs --ca")
}

// printJSON prints a document of YAML as JSON.
func printJSON(c *cobra.Command, text []byte) error {
	text, err := yaml.YAMLToJSON(text)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := json.Indent(&b, text, "", "  "); err != nil {
		return err
	}
	_, err = b.WriteTo(c.OutOrStdout())
	term.Say(c.OutOrStdout(), "\n")
	return err
}

// document is the format in which a command prints a file for another program.
type document term.Format

// String implements the flag's value, as Set and Type do.
func (d *document) String() string { return string(*d) }

// Set parses the format from the command line.
func (d *document) Set(s string) error {
	if s != string(term.AsYAML) && s != string(term.AsJSON) {
		return errors.New("use yaml or json")
	}
	*d = document(s)
	return nil
}

// Type is the value's type in the help text.
func (d *document) Type() string { return "format" }
