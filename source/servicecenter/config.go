package servicecenter

import (
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/isthmus-mesh/isthmus/internal/loopback"
)

// HoldFor is how long drops are held unless the configuration says otherwise.
// Instances stay registered by heartbeats, one in 30 s: a registry that has lost
// all of them, and restarts empty, has them back after one or two minutes.
const HoldFor = 3 * time.Minute

// Config says which registry to read, and how. Fields that are zero take their
// defaults.
type Config struct {
	// Addresses are those of the members of one Service Center, tried in turn.
	Addresses []string `json:"addresses"`
	Domain    string   `json:"domain"`  // "default"
	Project   string   `json:"project"` // "default"
	// Environments and Apps are those that are mirrored, all if empty. Their order
	// decides which service has a name that several want.
	Environments []string `json:"environments"`
	Apps         []string `json:"apps"`
	// Host and Namespace are templates of [Identity].
	Host      string `json:"host"`      // "{{.Service}}"
	Namespace string `json:"namespace"` // "istio-system"
	// Poll is how long after a round the next one begins, give or take a tenth.
	Poll time.Duration `json:"poll"` // 2s
	// Audit is how often everything is found anew, whatever its revision.
	Audit time.Duration `json:"audit"` // 10m
	// Timeout bounds a request to one address.
	Timeout time.Duration `json:"timeout"` // 10s
	// PortGrace is how long a service keeps a port that no instance has any more.
	PortGrace time.Duration `json:"portGrace"` // 1h
	// ServeTesting has instances in status TESTING serve.
	ServeTesting bool `json:"serveTesting"`
	// Watch has the registry tell what changes. It writes consumers into it.
	Watch bool `json:"watch"`

	Username     string `json:"username"`
	PasswordFile string `json:"passwordFile"`
	TLS          TLS    `json:"tls"`
	// Insecure lets the password and the token go to another machine in plain text.
	Insecure bool `json:"insecure"`

	Dependencies Dependencies `json:"dependencies"`
	Scopes       *Scopes      `json:"scopes"`
}

// TLS says how addresses with https are spoken to.
type TLS struct {
	CAFile     string `json:"caFile"` // the system's authorities if empty
	CertFile   string `json:"certFile"`
	KeyFile    string `json:"keyFile"`
	ServerName string `json:"serverName"` // that of the address if empty
}

// Dependencies says how the registry's graph of consumers and providers is read.
type Dependencies struct {
	Poll time.Duration `json:"poll"` // zero does not read it
}

// Scopes has each consumer see its providers only. The values of the selector
// and the namespace are templates of the consumer's [Identity].
type Scopes struct {
	WorkloadSelector map[string]string `json:"workloadSelector"`
	Namespace        string            `json:"namespace"`
	// Hosts are what every consumer may see besides, each "namespace/host".
	Hosts []string `json:"hosts"`
}

func (c Config) withDefaults() Config {
	defaultTo(&c.Domain, "default")
	defaultTo(&c.Project, "default")
	defaultTo(&c.Host, "{{.Service}}")
	defaultTo(&c.Namespace, "istio-system")
	defaultTo(&c.Poll, 2*time.Second)
	defaultTo(&c.Audit, 10*time.Minute)
	defaultTo(&c.Timeout, 10*time.Second)
	defaultTo(&c.PortGrace, time.Hour)
	return c
}

func defaultTo[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// shortestPoll keeps a slip of the pen from flooding the registry.
const shortestPoll = 100 * time.Millisecond

// Validate reports what is wrong with the configuration, with the field. It
// looks neither at the disk nor at the network.
func (c Config) Validate() error {
	c = c.withDefaults()
	for _, check := range []func() error{
		c.validateAddresses, c.validateFilters, c.validateTimes, c.validateAccess, c.validateTemplates, c.validateScopes,
	} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

func (c Config) validateAddresses() error {
	if len(c.Addresses) == 0 {
		return errors.New("addresses: missing; name the registry's members, such as [http://127.0.0.1:30100]")
	}
	for i, address := range c.Addresses {
		u, err := url.Parse(address)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			return fmt.Errorf("addresses[%d]: %q is not an address such as http://127.0.0.1:30100", i, address)
		}
		if u.User != nil || u.RawQuery != "" || u.Fragment != "" {
			return fmt.Errorf("addresses[%d]: only scheme, host, port and path belong here; a password goes into passwordFile", i)
		}
		if u.Scheme == "http" && c.TLS != (TLS{}) {
			return fmt.Errorf("addresses[%d]: %q is plaintext although tls is given; write https, or remove tls", i, address)
		}
		if c.exposes(u) && !c.Insecure {
			return fmt.Errorf("addresses[%d]: %q would be sent the password in plain text; write https, or set insecure: true beside it if the network is trusted", i, address)
		}
	}
	return nil
}

// exposes reports whether a password goes to another machine in plain text.
func (c Config) exposes(u *url.URL) bool {
	return (c.Username != "" || c.PasswordFile != "") && u.Scheme == "http" && !loopback.IsHost(u.Hostname())
}

// Warnings lists what an operator should know of a valid configuration before
// it is used.
func (c Config) Warnings() (list []string) {
	for i, address := range c.Addresses {
		if u, err := url.Parse(address); err == nil && c.exposes(u) {
			list = append(list, fmt.Sprintf("servicecenter.addresses[%d]: INSECURE: %s is sent the password in plain text, which whoever is on the way can read; write https", i, address))
		}
	}
	return list
}

func (c Config) validateFilters() error {
	if err := once("environments", c.Environments); err != nil {
		return err
	}
	if err := once("apps", c.Apps); err != nil {
		return err
	}
	if strings.ContainsAny(c.Project, "/?#") || strings.ContainsAny(c.Domain, "/\r\n") {
		return errors.New("project: must be a name without slashes")
	}
	return nil
}

func once(field string, list []string) error {
	for i, item := range list {
		if slices.Index(list, item) < i {
			return fmt.Errorf("%s[%d]: %q is there already; the order decides, so once is enough", field, i, item)
		}
	}
	return nil
}

func (c Config) validateTimes() error {
	switch {
	case c.Poll < shortestPoll:
		return fmt.Errorf("poll: %s would flood the registry; give at least %s, such as 2s", c.Poll, shortestPoll)
	case c.Audit < c.Poll:
		return fmt.Errorf("audit: %s is shorter than poll; give such as 10m", c.Audit)
	case c.Timeout <= 0:
		return errors.New("timeout: must be more than 0, such as 10s")
	case c.PortGrace < 0:
		return errors.New("portGrace: must not be negative; give such as 1h")
	case c.Dependencies.Poll != 0 && c.Dependencies.Poll < time.Second:
		return errors.New("dependencies.poll: asks for the whole graph; give at least 1s, such as 1m, or 0 not to read it")
	}
	return nil
}

func (c Config) validateAccess() error {
	switch {
	case c.Username != "" && c.PasswordFile == "":
		return errors.New("passwordFile: missing beside username; name the file that has the password")
	case c.Username == "" && c.PasswordFile != "":
		return errors.New("username: missing beside passwordFile; name the account")
	case c.TLS.CertFile != "" && c.TLS.KeyFile == "":
		return errors.New("tls.keyFile: missing beside certFile; name the certificate's key")
	case c.TLS.CertFile == "" && c.TLS.KeyFile != "":
		return errors.New("tls.certFile: missing beside keyFile; name the certificate")
	}
	return nil
}

func (c Config) validateTemplates() error {
	_, err := newNaming(c)
	return err
}

// Resolve makes relative paths relative to a folder.
func (c *Config) Resolve(dir string) {
	for _, path := range []*string{&c.PasswordFile, &c.TLS.CAFile, &c.TLS.CertFile, &c.TLS.KeyFile} {
		if *path != "" && !filepath.IsAbs(*path) {
			*path = filepath.Join(dir, *path)
		}
	}
}

func (c Config) rules() rules { return rules{c.ServeTesting, c.PortGrace} }
