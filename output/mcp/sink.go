package mcp

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/isthmus-mesh/isthmus/internal/certs"
	"github.com/isthmus-mesh/isthmus/internal/loopback"
)

// Sink is a sink to dial.
type Sink struct {
	// Address is a host and port, or unix:///path.
	Address string `json:"address"`
	// TLS is disabled while it is empty.
	TLS certs.Client `json:"tls"`
}

func (s Sink) local() bool {
	host, _, err := net.SplitHostPort(s.Address)
	return strings.HasPrefix(s.Address, "unix://") || err == nil && loopback.IsHost(host)
}

func (s Sink) validate(field string, insecureIsFine bool) error {
	var errs []error
	if path, unix := strings.CutPrefix(s.Address, "unix://"); unix {
		if path == "" {
			errs = append(errs, fmt.Errorf("%saddress: unix:// needs a path, such as unix:///run/pilot.sock", field))
		}
	} else if host, port, err := net.SplitHostPort(s.Address); err != nil || host == "" {
		errs = append(errs, fmt.Errorf("%saddress: %q is not a host and port, such as istio-pilot.istio-system:9901", field, s.Address))
	} else if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		errs = append(errs, fmt.Errorf("%saddress: %q in %q is not a port from 1 to 65535", field, port, s.Address))
	} else if !s.local() && !s.TLS.Enabled() && !insecureIsFine {
		errs = append(errs, fmt.Errorf("%saddress: %q would be dialled in plaintext and is not loopback; set tls, or set insecure: true if the network is trusted", field, s.Address))
	}
	if err := s.TLS.Validate(); err != nil {
		errs = append(errs, fmt.Errorf("%s%w", field, err))
	}
	return errors.Join(errs...)
}
