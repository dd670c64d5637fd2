package xds

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
)

// Config is the part of the configuration that belongs to this output.
type Config struct {
	// Listen is a host and port, or unix:///path.
	Listen string `json:"listen"`
	// TLS is off while it is empty.
	TLS TLS `json:"tls"`
	// Insecure allows plaintext beyond loopback.
	Insecure bool `json:"insecure"`
	// MaxConnectionAge ends connections when they are that old, give or take a
	// tenth, so that clients spread anew over replicas; zero never does.
	MaxConnectionAge time.Duration `json:"maxConnectionAge"`
	Debounce         Debounces     `json:"debounce"`

	translation *Translation
}

// TLS says what the listener shows, and what it demands of clients.
type TLS struct {
	CertFile string `json:"certFile"`
	KeyFile  string `json:"keyFile"`
	// ClientCAFile, if set, makes clients prove who they are.
	ClientCAFile string `json:"clientCAFile"`
	// TrustDomains are those a client's identity may be of; empty means any
	// that the client's authorities vouch for.
	TrustDomains []string `json:"trustDomains"`
}

func (t TLS) enabled() bool {
	return t.CertFile != "" || t.KeyFile != "" || t.ClientCAFile != "" || len(t.TrustDomains) > 0
}

func (t TLS) files() certs.Files {
	return certs.Files{CertFile: t.CertFile, KeyFile: t.KeyFile, ClientCAFile: t.ClientCAFile}
}

// Validate implements [output.Settings].
func (c *Config) Validate() error {
	var age error
	if c.MaxConnectionAge < 0 || c.MaxConnectionAge > 0 && c.MaxConnectionAge < time.Minute {
		age = fmt.Errorf("maxConnectionAge: %s is too short to serve anybody; give at least 1m, or 0 for no limit", c.MaxConnectionAge)
	}
	return errors.Join(c.validateListen(), c.TLS.validate(), age, c.Debounce.validate())
}

func (c *Config) validateListen() error {
	if c.Listen == "" {
		return errors.New("listen: missing; give a host and port such as 127.0.0.1:15010")
	}
	if path, unix := strings.CutPrefix(c.Listen, "unix://"); unix {
		if path == "" {
			return errors.New("listen: unix:// without a path; give such as unix:///run/isthmus/xds.sock")
		}
		return nil
	}
	if err := loopback.ValidListen(c.Listen); err != nil {
		return fmt.Errorf("listen: %w; give such as 127.0.0.1:15010", err)
	}
	if c.local() || c.TLS.enabled() || c.Insecure {
		return nil
	}
	return fmt.Errorf("listen: %q is plaintext and not loopback; listen on 127.0.0.1, set tls, or set insecure: true if the network is trusted", c.Listen)
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
		errs = append(errs, errors.New("tls.trustDomains: has no effect without clientCAFile; name the authorities of the clients there"))
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
	return err
}

// Certificates returns what the listener shows and demands; nil without TLS.
// It fails if the files cannot be used, with the field at fault.
func (c *Config) Certificates(log *slog.Logger) (*certs.Keeper, error) {
	if !c.TLS.enabled() {
		return nil, nil
	}
	keeper, err := certs.New(c.TLS.files(), log)
	if err != nil {
		return nil, fmt.Errorf("tls.%w", err)
	}
	return keeper, nil
}

// Resolve implements [output.Settings].
func (c *Config) Resolve(dir string) {
	for _, path := range []*string{&c.TLS.CertFile, &c.TLS.KeyFile, &c.TLS.ClientCAFile} {
		if *path != "" && !filepath.IsAbs(*path) {
			*path = filepath.Join(dir, *path)
		}
	}
}

// Warnings implements [output.Settings].
func (c *Config) Warnings() []string {
	switch {
	case c.local():
		return nil
	case !c.TLS.enabled():
		return []string{"INSECURE: outputs.xds is plaintext beyond loopback: whoever reaches it reads the catalog, may claim any namespace, and can be listened to; set outputs.xds.tls"}
	case c.TLS.ClientCAFile == "":
		return []string{"outputs.xds demands no client certificates: whoever reaches it reads the catalog and may claim any namespace; set outputs.xds.tls.clientCAFile"}
	default:
		return nil
	}
}

// local reports whether the listener can be reached from this machine only.
func (c *Config) local() bool {
	if strings.HasPrefix(c.Listen, "unix://") {
		return true
	}
	return loopback.IsListen(c.Listen)
}
