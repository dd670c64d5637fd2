package mcp

import (
	"errors"
	"fmt"
	"log/slog"

	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"

	"github.com/isthmus-mesh/isthmus/internal/certs"
	"github.com/isthmus-mesh/isthmus/internal/spiffe"
	"github.com/isthmus-mesh/isthmus/output/streams"
)

// TLS is the certificate shown to a peer, and the requirements on the peer's.
type TLS struct {
	// CAFile has the certificate authorities of the peer. If it is empty, a dialled peer is
	// checked against the system's authorities, and a dialling peer needs no certificate.
	CAFile   string `json:"caFile"`
	CertFile string `json:"certFile"`
	KeyFile  string `json:"keyFile"`
	// Identities are SPIFFE identities of the peers that may dial. A * stands for any trust
	// domain, namespace or account. Empty allows the identities of the root namespace.
	Identities []string `json:"identities"`
}

func (t TLS) enabled() bool {
	return t.CAFile != "" || t.CertFile != "" || t.KeyFile != "" || len(t.Identities) > 0
}

func (t TLS) validate(listens bool) error {
	errs := []error{t.validateIdentities(listens)}
	if listens {
		errs = append(errs, t.listening().Validate())
	} else {
		errs = append(errs, t.dialled().Validate())
	}
	return errors.Join(errs...)
}

func (t TLS) validateIdentities(listens bool) error {
	switch {
	case len(t.Identities) == 0:
		return nil
	case !listens:
		return errors.New("tls.identities: has no effect with address, since the certificate must contain the host; remove it")
	case t.CAFile == "":
		return errors.New("tls.identities: has no effect without caFile; set caFile to the CA certificates of the source")
	}
	var errs []error
	for i, pattern := range t.Identities {
		if err := spiffe.CheckPattern(pattern); err != nil {
			errs = append(errs, fmt.Errorf("tls.identities[%d]: %w", i, err))
		}
	}
	return errors.Join(errs...)
}

// admits returns why a peer may not be the source; nil if it may. A listener without
// authorities takes every peer.
func (t TLS) admits(who streams.Identity) error {
	if t.CAFile == "" {
		return nil
	}
	if err := who.Registers(t.Identities); err != nil {
		return grpcstatus.Errorf(codes.PermissionDenied, "the stream from %s: %v; name it in tls.identities of the source if it is the registry", who.From, err)
	}
	return nil
}

// dialled returns the settings for a dialled peer.
func (t TLS) dialled() certs.Client {
	return certs.Client{CAFile: t.CAFile, CertFile: t.CertFile, KeyFile: t.KeyFile}
}

// listening returns the settings for a dialling peer.
func (t TLS) listening() streams.TLS {
	return streams.TLS{CertFile: t.CertFile, KeyFile: t.KeyFile, ClientCAFile: t.CAFile}
}

// server returns the certificates of a listener. CAFile alone has the authorities of its peers,
// whatever their trust domains: they vouch for one registry.
func (t TLS) server(log *slog.Logger) (*certs.Keeper, error) {
	keeper, err := t.listening().Certificates("", nil, nil, log)
	if bad, ok := errors.AsType[*certs.FileError](err); ok && bad.Field == "clientCAFile" {
		return nil, fmt.Errorf("tls.caFile: %s", bad.Reason)
	}
	return keeper, err
}
