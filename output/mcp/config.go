package mcp

import (
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"time"

	"github.com/spiffe/go-spiffe/v2/spiffeid"

	"github.com/isthmus-mesh/isthmus/internal/certs"
	"github.com/isthmus-mesh/isthmus/internal/loopback"
	"github.com/isthmus-mesh/isthmus/push"
)

// Config is the part of the configuration that belongs to this output.
type Config struct {
	// Listen is a host and port, or unix:///path. It may be empty if there are sinks.
	Listen string `json:"listen"`
	// Sinks are dialled.
	Sinks []Sink `json:"sinks"`
	// TLS is of the listener, and off while it is empty.
	TLS TLS `json:"tls"`
	// Insecure allows plaintext beyond loopback, in both directions.
	Insecure bool `json:"insecure"`
	// Debounce delays changes for sinks that take full states.
	Debounce push.Debounce `json:"debounce"`

	translation *Translation
}

// TLS says what the listener shows, and what it demands of sinks.
type TLS struct {
	CertFile string `json:"certFile"`
	KeyFile  string `json:"keyFile"`
	// ClientCAFile, if set, makes sinks prove who they are.
	ClientCAFile string `json:"clientCAFile"`
	// TrustDomains are those a sink's identity may be of; empty means any that the
	// sinks' authorities vouch for.
	TrustDomains []string `json:"trustDomains"`
}

func newConfig(t *Translation) *Config {
	return &Config{Debounce: push.Debounce{Quiet: time.Second, Max: 10 * time.Second}, translation: t}
}

func (t TLS) enabled() bool {
	return t.CertFile != "" || t.KeyFile != "" || t.ClientCAFile != "" || len(t.TrustDomains) > 0
}

// Validate implements [output.Settings].
func (c *Config) Validate() error {
	errs := []error{c.validateListen(), c.TLS.validate(), c.validateDebounce()}
	for i, s := range c.Sinks {
		errs = append(errs, s.validate(fmt.Sprintf("sinks[%d].", i), c.Insecure))
	}
	return errors.Join(errs...)
}

func (c *Config) validateListen() error {
	if c.Listen == "" {
		switch {
		case c.TLS.enabled():
			return errors.New("listen: missing, so tls has no effect; give a host and port such as 127.0.0.1:15013, and the tls of each sink at the sink")
		case len(c.Sinks) == 0:
			return errors.New("listen: missing, and no sinks are named; give a host and port such as 127.0.0.1:15013, or sinks to dial")
		}
		return nil
	}
	if path, unix := strings.CutPrefix(c.Listen, "unix://"); unix {
		if path == "" {
			return errors.New("listen: unix:// without a path; give such as unix:///run/isthmus/mcp.sock")
		}
		return nil
	}
	if err := loopback.ValidListen(c.Listen); err != nil {
		return fmt.Errorf("listen: %w; give such as 127.0.0.1:15013", err)
	}
	if c.local() || c.TLS.enabled() || c.Insecure {
		return nil
	}
	return fmt.Errorf("listen: %q is plaintext and not loopback; listen on 127.0.0.1, set tls, or set insecure: true if the network is trusted", c.Listen)
}

func (c *Config) validateDebounce() error {
	if d := c.Debounce; d.Quiet < 0 || d.Max < 0 || d.Events < 0 {
		return errors.New("debounce: must not be below zero; give such as {quiet: 1s, max: 10s}, or {quiet: 0s} for no delay")
	}
	return nil
}

func (t TLS) validate() error {
	if !t.enabled() {
		return nil
	}
	var errs []error
	if t.CertFile == "" {
		errs = append(errs, errors.New("tls.certFile: missing; name the certificate that the listener shows"))
	}
	if t.KeyFile == "" {
		errs = append(errs, errors.New("tls.keyFile: missing; name the key of the certificate"))
	}
	if len(t.TrustDomains) > 0 && t.ClientCAFile == "" {
		errs = append(errs, errors.New("tls.trustDomains: has no effect without clientCAFile; name the authorities of the sinks there"))
	}
	for i, name := range t.TrustDomains {
		if domain, err := spiffeid.TrustDomainFromString(name); err != nil || domain.Name() != name {
			errs = append(errs, fmt.Errorf("tls.trustDomains[%d]: %q is not a trust domain such as cluster.local", i, name))
		}
	}
	return errors.Join(errs...)
}

// Check implements [output.Settings].
func (c *Config) Check() error {
	_, err := c.Certificates(nil)
	errs := []error{err}
	for i, s := range c.Sinks {
		if _, err := s.TLS.load(); err != nil {
			errs = append(errs, fmt.Errorf("sinks[%d].%w", i, err))
		}
	}
	return errors.Join(errs...)
}

// Certificates returns what the listener shows and demands; nil without TLS. It fails
// if the files cannot be used, with the field at fault.
func (c *Config) Certificates(log *slog.Logger) (*certs.Keeper, error) {
	if !c.TLS.enabled() {
		return nil, nil
	}
	keeper, err := certs.New(certs.Files{CertFile: c.TLS.CertFile, KeyFile: c.TLS.KeyFile, ClientCAFile: c.TLS.ClientCAFile}, log)
	if err != nil {
		return nil, fmt.Errorf("tls.%w", err)
	}
	return keeper, nil
}

// Resolve implements [output.Settings].
func (c *Config) Resolve(dir string) {
	paths := []*string{&c.TLS.CertFile, &c.TLS.KeyFile, &c.TLS.ClientCAFile}
	for i := range c.Sinks {
		t := &c.Sinks[i].TLS
		paths = append(paths, &t.CAFile, &t.CertFile, &t.KeyFile)
	}
	for _, path := range paths {
		if *path != "" && !filepath.IsAbs(*path) {
			*path = filepath.Join(dir, *path)
		}
	}
}

// Warnings implements [output.Settings].
func (c *Config) Warnings() (list []string) {
	switch {
	case c.local():
	case !c.TLS.enabled():
		list = append(list, "INSECURE: outputs.mcp is plaintext beyond loopback: whoever reaches it reads the configuration of the mesh, and can be listened to; set outputs.mcp.tls")
	case c.TLS.ClientCAFile == "":
		list = append(list, "outputs.mcp demands no certificates of sinks: whoever reaches it reads the configuration of the mesh; set outputs.mcp.tls.clientCAFile")
	}
	for _, s := range c.Sinks {
		if !s.local() && !s.TLS.enabled() {
			list = append(list, fmt.Sprintf("INSECURE: outputs.mcp sends to %s in plaintext: whoever is on the way reads the configuration of the mesh, or takes the sink's place; set the tls of that sink", s.Address))
		}
	}
	return list
}

// local reports whether the listener can be reached from this machine only.
func (c *Config) local() bool {
	return c.Listen == "" || strings.HasPrefix(c.Listen, "unix://") || loopback.IsListen(c.Listen)
}
