package get

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"

	"github.com/isthmus-mesh/isthmus/internal/certs"
)

// server is the flags that name the server of the resource API.
type server struct {
	address string
	tls     certs.Client
}

// add adds the flags to a command.
func (s *server) add(c *cobra.Command) {
	fromEnv := func(target *string, flag, variable, otherwise, usage string) {
		c.Flags().StringVar(target, flag, cmp.Or(os.Getenv(variable), otherwise), usage+" [$"+variable+"]")
	}
	fromEnv(&s.address, "address", "ISTHMUS_WATCH_ADDRESS", "127.0.0.1:15020", "where outputs.watch of a running Isthmus listens: a host and port, or unix:///path")
	fromEnv(&s.tls.CAFile, "ca-file", "ISTHMUS_WATCH_CA_FILE", "", "the authorities of a server with TLS, in PEM form; default: the system's")
	fromEnv(&s.tls.CertFile, "cert-file", "ISTHMUS_WATCH_CERT_FILE", "", "the certificate to present, in PEM form")
	fromEnv(&s.tls.KeyFile, "key-file", "ISTHMUS_WATCH_KEY_FILE", "", "the key of the certificate")
	fromEnv(&s.tls.ServerName, "server-name", "ISTHMUS_WATCH_SERVER_NAME", "", "the name in the server's certificate; default: that in --address")
}

// dial returns a connection. It uses TLS if any flag of TLS is set.
func (s *server) dial() (*grpc.ClientConn, error) {
	target := s.address
	if strings.HasPrefix(target, "/") {
		target = "unix://" + target // as the log of Isthmus has it
	}
	if !strings.HasPrefix(target, "unix:") {
		if _, _, err := net.SplitHostPort(s.address); err != nil {
			return nil, fmt.Errorf("--address %q is neither a host and port, such as 127.0.0.1:15020, nor unix:///path", s.address)
		}
		target = "passthrough:///" + target
	}
	if (s.tls.CertFile == "") != (s.tls.KeyFile == "") {
		return nil, errors.New("--cert-file and --key-file need each other; give both or none")
	}
	credentials, err := s.tls.Credentials()
	if err != nil {
		return nil, err
	}
	conn, err := grpc.NewClient(target,
		grpc.WithTransportCredentials(credentials),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: backoff.DefaultConfig, MinConnectTimeout: 10 * time.Second}),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 30 * time.Second, Timeout: 10 * time.Second}))
	if err != nil {
		return nil, fmt.Errorf("--address %q: %w", s.address, err)
	}
	return conn, nil
}

// explain adds the next step to the error of a call.
func (s *server) explain(err error) error {
	text := status.Convert(err).Message()
	switch status.Code(err) {
	case codes.Unavailable:
		return fmt.Errorf("no Isthmus serves records at %s: %s; is outputs.watch configured there? If it listens elsewhere or uses TLS, give --address or --ca-file", s.address, text)
	case codes.Unimplemented:
		return fmt.Errorf("%s does not serve records: %s; outputs.watch has a port of its own, by default 15020: give it with --address", s.address, text)
	case codes.PermissionDenied, codes.Unauthenticated:
		return fmt.Errorf("%s: %s; give a certificate with more rights with --cert-file and --key-file", s.address, text)
	default:
		return fmt.Errorf("%s: %s", s.address, text)
	}
}
