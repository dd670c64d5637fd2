package mcp

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/isthmus-mesh/isthmus/output/streams"
	"github.com/isthmus-mesh/isthmus/push/world"
)

// Config is the part of the configuration that belongs to this output.
type Config struct {
	// Listen is a host and port, or unix:///path. It may be empty if there are sinks.
	Listen string `json:"listen"`
	// Sinks are the sinks to dial.
	Sinks []Sink `json:"sinks"`
	// TLS is of the listener, and disabled while it is empty.
	TLS streams.TLS `json:"tls"`
	// Insecure allows plaintext beyond loopback, in both directions.
	Insecure bool `json:"insecure"`
	// Debounce delays changes for sinks that take full states.
	Debounce world.Debounce `json:"debounce"`

	translation *Translation
}

func newConfig(t *Translation) *Config {
	return &Config{Debounce: world.Debounce{Quiet: time.Second, Max: 10 * time.Second}, translation: t}
}

// Validate implements [output.Settings].
func (c *Config) Validate() error {
	errs := []error{c.validateListen(), c.TLS.Validate(), c.validateDebounce()}
	for i, s := range c.Sinks {
		errs = append(errs, s.validate(fmt.Sprintf("sinks[%d].", i), c.Insecure))
	}
	return errors.Join(errs...)
}

func (c *Config) validateListen() error {
	if c.Listen == "" {
		switch {
		case c.TLS.Enabled():
			return errors.New("listen: missing, so tls has no effect; give a host and port such as 127.0.0.1:15013, and the tls of each sink at the sink")
		case len(c.Sinks) == 0:
			return errors.New("listen: missing, and no sinks are named; give a host and port such as 127.0.0.1:15013, or sinks to dial")
		}
		return nil
	}
	return streams.ValidListen(c.Listen, c.TLS, c.Insecure, "127.0.0.1:15013", "unix:///run/isthmus/mcp.sock")
}

func (c *Config) validateDebounce() error {
	var errs []error
	if c.Debounce.Quiet < 0 {
		errs = append(errs, errors.New("debounce.quiet: must not be below zero; give a duration, such as 1s, or 0s for no delay"))
	}
	if c.Debounce.Max < 0 {
		errs = append(errs, errors.New("debounce.max: must not be below zero; give a duration, such as 10s"))
	}
	if c.Debounce.Events < 0 {
		errs = append(errs, errors.New("debounce.events: must not be below zero; give a number, such as 1000"))
	}
	return errors.Join(errs...)
}

// Check implements [output.Settings].
func (c *Config) Check() error {
	errs := []error{c.TLS.Check()}
	for i, s := range c.Sinks {
		if _, err := s.TLS.Load(); err != nil {
			errs = append(errs, fmt.Errorf("sinks[%d].%w", i, err))
		}
	}
	return errors.Join(errs...)
}

// Resolve implements [output.Settings].
func (c *Config) Resolve(dir string) {
	paths := c.TLS.Files()
	for i := range c.Sinks {
		paths = append(paths, c.Sinks[i].TLS.Files()...)
	}
	for _, path := range paths {
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
func (c *Config) Secrets() []string {
	list := []string{c.TLS.KeyFile}
	for _, s := range c.Sinks {
		list = append(list, s.TLS.KeyFile)
	}
	return list
}

// Warnings implements [output.Settings].
func (c *Config) Warnings() (list []string) {
	switch {
	case c.Listen == "" || streams.IsLocal(c.Listen):
	case !c.TLS.Enabled():
		list = append(list, "INSECURE: outputs.mcp is plaintext beyond loopback: whoever reaches it reads the configuration of the mesh, and can be listened to; set outputs.mcp.tls")
	case !c.TLS.DemandsProof():
		list = append(list, "outputs.mcp demands no certificates of sinks: whoever reaches it reads the configuration of the mesh; set outputs.mcp.tls.clientCAFile, or identity")
	}
	for _, s := range c.Sinks {
		if !s.local() && !s.TLS.Enabled() {
			list = append(list, fmt.Sprintf("INSECURE: outputs.mcp sends to %s in plaintext: whoever is on the way reads the configuration of the mesh, or takes the sink's place; set the tls of that sink", s.Address))
		}
	}
	return list
}
