package xds

import (
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/isthmus-mesh/isthmus/convert/istio"
	"github.com/isthmus-mesh/isthmus/internal/certs"
	"github.com/isthmus-mesh/isthmus/internal/loopback"
	"github.com/isthmus-mesh/isthmus/source"
)

var _ source.Settings = (*Config)(nil)

// Config selects the server to read.
type Config struct {
	Address string `json:"address"` // host:port
	// Types are the requested kinds, such as ServiceEntry. The default is all that are read.
	Types []string `json:"types"`
	// TLS configures the connection to the server; empty means plain text.
	TLS certs.Client `json:"tls"`
}

// Kind returns the row of this registry in the table of kinds.
func Kind() source.Kind {
	return source.Kind{Name: "xds", New: func() source.Settings { return &Config{} }, MaxBackoff: 10 * time.Second}
}

// Validate implements [source.Settings].
func (c *Config) Validate() error {
	errs := []error{validAddress(c.Address)}
	for i, name := range c.Types {
		kind, known := kindNamed(name)
		again := slices.ContainsFunc(c.Types[:i], func(other string) bool { o, _ := kindNamed(other); return o == kind })
		switch {
		case !known:
			errs = append(errs, fmt.Errorf("types[%d]: %q is not a kind of configuration, such as ServiceEntry or DestinationRule", i, name))
		case again:
			errs = append(errs, fmt.Errorf("types[%d]: %q is a duplicate; remove it", i, name))
		}
	}
	return errors.Join(append(errs, c.TLS.Validate())...)
}

func validAddress(address string) error {
	if address == "" {
		return errors.New("address: missing; give the address of the server, such as 127.0.0.1:15010")
	}
	host, port, err := net.SplitHostPort(address)
	if n, bad := strconv.ParseUint(port, 10, 16); err != nil || bad != nil || n == 0 || host == "" || strings.ContainsAny(host, "/ ") {
		return fmt.Errorf("address: %q is not a host and port, such as 127.0.0.1:15010", address)
	}
	return nil
}

// Resolve implements [source.Settings].
func (c *Config) Resolve(dir string) {
	for _, path := range c.TLS.Files() {
		if *path != "" && !filepath.IsAbs(*path) {
			*path = filepath.Join(dir, *path)
		}
	}
}

// Check implements [source.Settings].
func (c *Config) Check() error {
	_, err := c.TLS.Load()
	return err
}

// Secrets returns the files with secrets.
func (c *Config) Secrets() []string { return []string{c.TLS.KeyFile} }

// Warnings implements [source.Settings].
func (c *Config) Warnings() []string {
	if host, _, err := net.SplitHostPort(c.Address); err != nil || c.TLS.Enabled() || loopback.IsHost(host) {
		return nil
	}
	return []string{fmt.Sprintf("address: INSECURE: %s is spoken to in plain text, and whoever is on the way can change what it says; set tls", c.Address)}
}

// Open implements [source.Settings].
func (c *Config) Open(env source.Env) source.Source { return New(*c, env) }

// kinds returns the requested kinds, in their order, with the type URLs of each: one if
// the configuration names a type, all of the kind if it names the kind.
func (c *Config) kinds() (list []kind) {
	if len(c.Types) == 0 {
		for _, of := range istio.Understood() {
			if of.URL() != "" {
				list = append(list, kind{of, urls(of)})
			}
		}
		return list
	}
	for _, name := range c.Types {
		named, known := kindNamed(name)
		if !known {
			continue
		}
		one := kind{named, urls(named)}
		if _, isURL := istio.ByURL(name); isURL {
			one.urls = []string{name}
		}
		list = append(list, one)
	}
	return list
}

func kindNamed(name string) (istio.Definition, bool) {
	if kind, ok := istio.ByName(name); ok && kind.URL() != "" {
		return kind, true
	}
	return istio.ByURL(name)
}
