package mcp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/isthmus-mesh/isthmus/convert/istio"
	"github.com/isthmus-mesh/isthmus/identity"
	"github.com/isthmus-mesh/isthmus/internal/budget"
	"github.com/isthmus-mesh/isthmus/internal/loopback"
	"github.com/isthmus-mesh/isthmus/internal/mcp"
	"github.com/isthmus-mesh/isthmus/source"
)

var _ source.Settings = (*Config)(nil)

// Config selects the peer, and the requested collections.
type Config struct {
	// Address is the peer to dial, Listen the address at which the peer dials.
	// Exactly one of both is set, as a host and port.
	Address string `json:"address"`
	Listen  string `json:"listen"`
	// Incremental requests changes only, and a resume from the held resources.
	Incremental bool `json:"incremental"`
	// Collections are the requested collections; [DefaultCollections] if empty. If an
	// object is in two collections of one kind, the first collection in this list counts.
	Collections []string `json:"collections"`
	TLS         TLS      `json:"tls"`
	// Insecure allows to listen for plaintext beyond loopback.
	Insecure bool `json:"insecure"`

	pace     pace
	dialer   func(ctx context.Context, address string) (net.Conn, error)     // for tests
	listener func(ctx context.Context, address string) (net.Listener, error) // for tests
}

// DefaultCollections returns the collections that are requested by default: all that
// are understood.
func DefaultCollections() []string {
	var list []string
	for _, kind := range istio.Understood() {
		if kind.Collection != "" {
			list = append(list, kind.Collection)
		}
		if kind.MakesServices() {
			list = append(list, mcp.Synthetic)
		}
	}
	return list
}

// Kind returns the row of this registry in the table of kinds. A stream costs a peer
// little, so a backoff of at most ten seconds is enough.
func Kind() source.Kind {
	return source.Kind{Name: "mcp", MaxBackoff: 10 * time.Second, New: func() source.Settings { return &Config{} }}
}

// Validate implements [source.Settings].
func (c *Config) Validate() error {
	return errors.Join(c.validateAddress(), c.validateCollections(), c.TLS.validate(c.Listen != ""))
}

func (c *Config) validateAddress() error {
	switch {
	case c.Address == "" && c.Listen == "":
		return errors.New("address: missing; give the address to connect to, such as 127.0.0.1:9901, or listen for a source that connects here")
	case c.Address != "" && c.Listen != "":
		return errors.New("listen: cannot be combined with address; remove one of them")
	case c.Listen != "":
		return c.validateListen()
	}
	host, port, err := net.SplitHostPort(c.Address)
	if err != nil || host == "" || loopback.ValidListen(c.Address) != nil || port == "0" {
		return fmt.Errorf("address: %q is not a host and port, such as 127.0.0.1:9901", c.Address)
	}
	return nil
}

func (c *Config) validateListen() error {
	if err := loopback.ValidListen(c.Listen); err != nil {
		return fmt.Errorf("listen: %w, such as 127.0.0.1:9902", err)
	}
	if loopback.IsListen(c.Listen) || c.TLS.enabled() || c.Insecure {
		return nil
	}
	return fmt.Errorf("listen: %q is plaintext and not loopback; listen on 127.0.0.1, set tls, or set insecure: true if the network is trusted", c.Listen)
}

func (c *Config) validateCollections() error {
	var errs []error
	for i, name := range c.Collections {
		if _, known := istio.ByCollection(name); !known {
			errs = append(errs, fmt.Errorf("collections[%d]: %q is not a known collection; write one of %s", i, name, strings.Join(knownCollections(), ", ")))
		}
		if slices.Index(c.Collections, name) < i {
			errs = append(errs, fmt.Errorf("collections[%d]: %q is a duplicate; remove it", i, name))
		}
	}
	return errors.Join(errs...)
}

func knownCollections() []string {
	list := []string{mcp.Synthetic}
	for _, kind := range istio.Definitions() {
		if kind.Collection != "" {
			list = append(list, kind.Collection)
		}
	}
	slices.Sort(list)
	return list
}

func (c *Config) collections() []string {
	if len(c.Collections) == 0 {
		return DefaultCollections()
	}
	return c.Collections
}

// Resolve implements [source.Settings].
func (c *Config) Resolve(dir string) {
	for _, path := range []*string{&c.TLS.CAFile, &c.TLS.CertFile, &c.TLS.KeyFile} {
		if *path != "" && !filepath.IsAbs(*path) {
			*path = filepath.Join(dir, *path)
		}
	}
}

// Check implements [source.Settings].
func (c *Config) Check() (err error) {
	if !c.TLS.enabled() {
		return nil
	}
	if c.Listen != "" {
		_, err = c.TLS.server(nil)
	} else {
		_, err = c.TLS.dialled().Load()
	}
	return err
}

// Secrets returns the files with secrets.
func (c *Config) Secrets() []string { return []string{c.TLS.KeyFile} }

// Warnings implements [source.Settings].
func (c *Config) Warnings() []string {
	switch {
	case c.Address != "" && !c.TLS.enabled() && !loopback.IsListen(c.Address):
		return []string{fmt.Sprintf("address: INSECURE: %s is dialled in plaintext beyond loopback: whoever is on the way can say what the services are; set tls", c.Address)}
	case c.Listen == "" || loopback.IsListen(c.Listen):
		return nil
	case !c.TLS.enabled():
		return []string{"listen: INSECURE: it is plaintext beyond loopback: whoever reaches it says what the services are; set tls"}
	case c.TLS.CAFile == "":
		return []string{"listen: it demands no certificate of the source: whoever reaches it says what the services are; set tls.caFile"}
	}
	return nil
}

// Open implements [source.Settings].
func (c *Config) Open(env source.Env) source.Source { return newSource(*c, env) }

// OpenProven is [Config.Open] with a verifier of the peers that dial.
func (c *Config) OpenProven(env source.Env, by *identity.Verifier) source.Source {
	s := newSource(*c, env)
	s.verifier = by
	return s
}

// pace bounds the waits for a peer.
type pace struct {
	connect time.Duration // to let a connection be made
	first   time.Duration // to send the first collection
	rest    time.Duration // to send another one
	stuck   time.Duration // to read a request
}

func (p pace) withDefaults() pace {
	def := func(d *time.Duration, value time.Duration) {
		if *d == 0 {
			*d = value
		}
	}
	def(&p.connect, 10*time.Second)
	def(&p.first, 30*time.Second)
	def(&p.rest, 5*time.Second)
	def(&p.stuck, 30*time.Second)
	return p
}

// Upper bounds; the memory of the process may set lower ones.
const (
	mostBytes  = 1 << 30   // of all resources of a peer
	mostAnswer = 256 << 20 // of one answer
)

// largest returns the maximum bytes of an answer.
func (*Config) largest(memory *budget.Budget) int {
	return int(min(memory.Bytes(mostBytes)/4, mostAnswer))
}

func (*Config) bounds(memory *budget.Budget) bounds {
	all := memory.Bytes(mostBytes)
	return bounds{bytes: int(all), fields: int(min(all>>11, mcp.MostFields)), memory: memory}
}
