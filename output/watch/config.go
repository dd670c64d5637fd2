package watch

import (
	"errors"
	"path/filepath"

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
}

// defaultListen is the address of this machine that `isthmus get` reads by default.
const defaultListen = "127.0.0.1:15020"

// Validate implements [output.Settings].
func (c *Config) Validate() error {
	if c.Listen == "" {
		return errors.New("listen: missing; give a host and port such as " + defaultListen)
	}
	return errors.Join(
		streams.ValidListen(c.Listen, c.TLS, c.Insecure, defaultListen, "unix:///run/isthmus/watch.sock"),
		c.TLS.Validate(),
	)
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
	switch {
	case streams.IsLocal(c.Listen):
		return nil
	case !c.TLS.Enabled():
		return []string{"INSECURE: outputs.watch is plaintext beyond loopback: whoever reaches it reads every record, and can be listened to; set outputs.watch.tls"}
	case !c.TLS.DemandsProof():
		return []string{"outputs.watch demands no certificates of readers: whoever reaches it reads every record; set outputs.watch.tls.clientCAFile, or identity"}
	}
	return nil
}

// String implements [output.Settings].
func (c *Config) String() string { return "on " + c.Listen }

// ListenAddress implements [output.Listener].
func (c *Config) ListenAddress() string { return c.Listen }
