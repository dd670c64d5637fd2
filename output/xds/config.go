package xds

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/isthmus-mesh/isthmus/output/streams"
)

// Config is the part of the configuration that belongs to this output.
type Config struct {
	// Listen is a host and port, or unix:///path.
	Listen string `json:"listen"`
	// TLS is disabled while it is empty.
	TLS streams.TLS `json:"tls"`
	// Insecure allows plaintext beyond loopback.
	Insecure bool `json:"insecure"`
	// MaxConnectionAge ends connections at that age, plus or minus a tenth, so that clients
	// are redistributed over replicas; zero never does.
	MaxConnectionAge time.Duration `json:"maxConnectionAge"`
	Debounce         Debounces     `json:"debounce"`
	// Configuration defines the clients that may read the types of configuration: see
	// [Readers].
	Configuration Readers `json:"configuration"`
	// Envoy is the settings of the translation; nil if it has none.
	Envoy Settings `json:"envoy"`
	// Turn is [push.Config.Turn]; no configuration file sets it, and zero means its default.
	Turn int

	translation *Translation
}

// Validate implements [output.Settings].
func (c *Config) Validate() error {
	var age error
	if c.MaxConnectionAge < 0 || c.MaxConnectionAge > 0 && c.MaxConnectionAge < time.Minute {
		age = fmt.Errorf("maxConnectionAge: %s is too short; give at least 1m, or 0 for no limit", c.MaxConnectionAge)
	}
	var translated error
	if c.Envoy != nil {
		translated = prefixed("envoy.", c.Envoy.Validate())
	}
	return errors.Join(c.validateListen(), c.TLS.Validate(), age, c.Debounce.validate(), c.Configuration.validate(), translated)
}

// prefixed adds a prefix to the fields of joined errors "field: reason".
func prefixed(field string, err error) error {
	joined, ok := err.(interface{ Unwrap() []error }) //nolint:errorlint // a wrapped one is one error
	switch {
	case err == nil:
		return nil
	case !ok:
		return fmt.Errorf("%s%w", field, err)
	}
	list := make([]error, len(joined.Unwrap()))
	for i, e := range joined.Unwrap() {
		list[i] = prefixed(field, e)
	}
	return errors.Join(list...)
}

func (c *Config) validateListen() error {
	if c.Listen == "" {
		return errors.New("listen: missing; give a host and port such as 127.0.0.1:15010")
	}
	return streams.ValidListen(c.Listen, c.TLS, c.Insecure, "127.0.0.1:15010", "unix:///run/isthmus/xds.sock")
}

// Check implements [output.Settings].
func (c *Config) Check() error {
	return c.TLS.Check()
}

// Resolve implements [output.Settings].
func (c *Config) Resolve(dir string) {
	for _, path := range c.TLS.Files() {
		if *path != "" && !filepath.IsAbs(*path) {
			*path = filepath.Join(dir, *path)
		}
	}
}

// TakeTokens implements [output.Bearer].
func (c *Config) TakeTokens() { c.TLS.TakeTokens() }

// HaveAuthority implements [output.Bearer].
func (c *Config) HaveAuthority() { c.TLS.HaveAuthority() }

// Secrets returns the files with secrets.
func (c *Config) Secrets() []string { return []string{c.TLS.KeyFile} }

// Warnings implements [output.Settings].
func (c *Config) Warnings() []string {
	list := c.insecurities()
	if c.Configuration == Any && !streams.IsLocal(c.Listen) && !c.TLS.DemandsProof() {
		list = append(list, "outputs.xds.configuration is any: whoever reaches outputs.xds reads the configuration of the whole mesh; set outputs.xds.tls.clientCAFile, or configuration: off if no istiod reads it")
	}
	return list
}

func (c *Config) insecurities() []string {
	switch {
	case streams.IsLocal(c.Listen):
		return nil
	case !c.TLS.Enabled():
		return []string{"INSECURE: outputs.xds is plaintext beyond loopback: whoever reaches it reads the catalog, may claim any namespace, and can be listened to; set outputs.xds.tls"}
	case !c.TLS.DemandsProof():
		return []string{"outputs.xds demands no client certificates: whoever reaches it reads the catalog and may claim any namespace; set outputs.xds.tls.clientCAFile, or identity"}
	default:
		return nil
	}
}
