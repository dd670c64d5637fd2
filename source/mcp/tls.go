package mcp

import (
	"errors"
	"fmt"
	"log/slog"

	"github.com/isthmus-mesh/isthmus/internal/certs"
	"github.com/isthmus-mesh/isthmus/internal/streams"
)

// TLS says what is shown to a peer, and what is demanded of it.
type TLS struct {
	// CAFile has the authorities of the peer: of a peer that is dialled, the system's
	// if empty; of one that dials, its certificate is not asked for if empty.
	CAFile   string `json:"caFile"`
	CertFile string `json:"certFile"`
	KeyFile  string `json:"keyFile"`
}

func (t TLS) enabled() bool { return t != TLS{} }

func (t TLS) validate(listens bool) error {
	if listens {
		return t.listening().Validate()
	}
	return t.dialled().Validate()
}

// dialled is it for a peer that is dialled.
func (t TLS) dialled() certs.Client {
	return certs.Client{CAFile: t.CAFile, CertFile: t.CertFile, KeyFile: t.KeyFile}
}

// listening is it for a peer that dials.
func (t TLS) listening() streams.TLS {
	return streams.TLS{CertFile: t.CertFile, KeyFile: t.KeyFile, ClientCAFile: t.CAFile}
}

// server is for listening.
func (t TLS) server(log *slog.Logger) (*certs.Keeper, error) {
	keeper, err := t.listening().Certificates(log)
	if bad, ok := errors.AsType[*certs.FileError](err); ok && bad.Field == "clientCAFile" {
		return nil, fmt.Errorf("tls.caFile: %s", bad.Reason)
	}
	return keeper, err
}
