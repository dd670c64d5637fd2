package servicecenter

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/isthmus-mesh/isthmus/internal/certs"
	"github.com/isthmus-mesh/isthmus/internal/loopback"
	"github.com/isthmus-mesh/isthmus/source"
	"github.com/isthmus-mesh/isthmus/source/servicecenter/records"
	"github.com/isthmus-mesh/isthmus/source/servicecenter/registry"
)

var _ source.Settings = (*Config)(nil)

// HoldFor is how long drops are held unless the configuration overrides it.
// Heartbeats, one in 30 s, keep instances registered. A registry that has lost all of
// them, and restarts empty, has them back after one or two minutes.
const HoldFor = 3 * time.Minute

// Config selects the registry, and how to read it; see [DefaultConfig].
type Config struct {
	// Addresses are the members of one Service Center, tried in turn.
	Addresses []string `json:"addresses"`
	Domain    string   `json:"domain"`  // "default"
	Project   string   `json:"project"` // "default"
	// Environments and Apps select the services to mirror, all if empty. If several
	// services want one name, the order of these lists decides.
	Environments []string `json:"environments"`
	Apps         []string `json:"apps"`
	// Host and Namespace are templates of [records.Identity].
	Host      string `json:"host"`      // "{{.Service}}"
	Namespace string `json:"namespace"` // "istio-system"
	// ExportTo are templates of [records.Identity], for the namespaces that see a service.
	// Each yields a namespace, "." for the service's own, "*" for all or "~" for
	// none. An empty list exports to all.
	ExportTo []string `json:"exportTo"`
	// Poll is the wait after a round, give or take a tenth.
	Poll time.Duration `json:"poll"` // 2s
	// Audit is how often everything is found anew, whatever its revision.
	Audit time.Duration `json:"audit"` // 10m
	// Timeout bounds a request to one address.
	Timeout time.Duration `json:"timeout"` // 10s
	// PortGrace is how long a service keeps a port that no instance has any more.
	PortGrace time.Duration `json:"portGrace"` // 1h
	// ServeTesting makes instances in status TESTING serve.
	ServeTesting bool `json:"serveTesting"`
	// CacheOnly reads only the registry's cache, however late that is.
	CacheOnly bool `json:"cacheOnly"`
	// Watch makes the registry send events. It registers consumers there.
	Watch bool `json:"watch"`

	Username     string `json:"username"`
	PasswordFile string `json:"passwordFile"`
	// TLS configures connections to https addresses.
	TLS certs.Client `json:"tls"`
	// Insecure allows to send the password and the token to another machine in plain text.
	Insecure bool `json:"insecure"`

	Dependencies Dependencies    `json:"dependencies"`
	Scopes       *records.Scopes `json:"scopes"`
}

// Dependencies configures reading the registry's graph of consumers and providers.
type Dependencies struct {
	Poll time.Duration `json:"poll"` // zero does not read it
}

// Kind returns the row of this registry in the table of kinds. A healthy registry is asked
// every few seconds. So a backoff of at most ten is enough, and a recovery is seen soon.
func Kind() source.Kind {
	return source.Kind{
		Name: "servicecenter", HoldFor: HoldFor, MaxBackoff: 10 * time.Second,
		New: func() source.Settings {
			c := DefaultConfig()
			return &c
		},
	}
}

// DefaultConfig returns the configuration with nothing set.
func DefaultConfig() Config {
	return Config{
		Domain: "default", Project: "default", Host: "{{.Service}}", Namespace: "istio-system",
		Poll: 2 * time.Second, Audit: 10 * time.Minute, Timeout: 10 * time.Second, PortGrace: time.Hour,
	}
}

// shortestPoll prevents a typing error from flooding the registry.
const shortestPoll = 100 * time.Millisecond

// Validate implements [source.Settings].
func (c *Config) Validate() error {
	return errors.Join(
		c.validateAddresses(), c.validateFilters(), c.validateTimes(), c.validateAccess(), c.validateTemplates(), c.validateScopes())
}

func (c *Config) validateAddresses() error {
	if len(c.Addresses) == 0 {
		return errors.New("addresses: missing; give the addresses of the registry, such as [http://127.0.0.1:30100]")
	}
	var errs []error
	for i, address := range c.Addresses {
		if err := c.validateAddress(address); err != nil {
			errs = append(errs, fmt.Errorf("addresses[%d]: %w", i, err))
		}
	}
	return errors.Join(errs...)
}

func (c *Config) validateAddress(address string) error {
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return fmt.Errorf("%q is not an address such as http://127.0.0.1:30100", address)
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return errors.New("only scheme, host, port and path belong here; a password goes into passwordFile")
	case u.Scheme == "http" && c.TLS.Enabled():
		return fmt.Errorf("%q is plaintext although tls is given; write https, or remove tls", address)
	case c.exposes(u) && !c.Insecure:
		return fmt.Errorf("%q would be sent the password in plain text; write https, or set insecure: true beside it if the network is trusted", address)
	}
	return nil
}

// exposes reports whether a password goes to another machine in plain text.
func (c *Config) exposes(u *url.URL) bool {
	return (c.Username != "" || c.PasswordFile != "") && u.Scheme == "http" && !loopback.IsHost(u.Hostname())
}

// Secrets returns the files with secrets.
func (c *Config) Secrets() []string { return []string{c.PasswordFile, c.TLS.KeyFile} }

// Warnings implements [source.Settings].
func (c *Config) Warnings() (list []string) {
	for i, address := range c.Addresses {
		if u, err := url.Parse(address); err == nil && c.exposes(u) {
			list = append(list, fmt.Sprintf("addresses[%d]: INSECURE: %s is sent the password in plain text, which others on the network can read; write https", i, address))
		}
	}
	return list
}

func (c *Config) validateFilters() error {
	errs := []error{records.Unique("environments", c.Environments), records.Unique("apps", c.Apps)}
	if strings.ContainsAny(c.Project, "/?#") {
		errs = append(errs, fmt.Errorf("project: %q has a character that the name of a project cannot have (/, ? or #); give the name alone, such as default", c.Project))
	}
	if strings.ContainsAny(c.Domain, "/\r\n") {
		errs = append(errs, fmt.Errorf("domain: %q has a slash or a line break; give the name alone, such as default", c.Domain))
	}
	return errors.Join(errs...)
}

func (c *Config) validateTimes() error {
	var errs []error
	if c.Poll < shortestPoll {
		errs = append(errs, fmt.Errorf("poll: %s is too short for the registry; give at least %s, such as 2s", c.Poll, shortestPoll))
	}
	if byDefault := DefaultConfig().Audit; c.Audit < c.Poll && c.Audit == byDefault {
		errs = append(errs, fmt.Errorf("poll: %s is longer than audit (default %s); set a shorter poll, or audit as well", c.Poll, byDefault))
	} else if c.Audit < c.Poll {
		errs = append(errs, fmt.Errorf("audit: %s must not be shorter than poll, such as 10m", c.Audit))
	}
	if c.Timeout <= 0 {
		errs = append(errs, errors.New("timeout: must be more than 0, such as 10s"))
	}
	if c.PortGrace < 0 {
		errs = append(errs, errors.New("portGrace: must not be negative; give, for example, 1h"))
	}
	if c.Dependencies.Poll != 0 && c.Dependencies.Poll < time.Second {
		errs = append(errs, errors.New("dependencies.poll: too short, since it reads the whole graph; give at least 1s, such as 1m, or 0 to disable it"))
	}
	return errors.Join(errs...)
}

func (c *Config) validateAccess() error {
	var errs []error
	need := func(missing bool, format string) {
		if missing {
			errs = append(errs, errors.New(format))
		}
	}
	need(c.Username != "" && c.PasswordFile == "", "passwordFile: missing beside username; name the file that has the password")
	need(c.Username == "" && c.PasswordFile != "", "username: missing beside passwordFile; name the account")
	return errors.Join(append(errs, c.TLS.Validate())...)
}

func (c *Config) validateTemplates() error {
	_, err := c.rules()
	return err
}

func (c *Config) validateScopes() error {
	if c.Scopes == nil {
		return nil
	}
	var errs []error
	if c.Dependencies.Poll == 0 {
		errs = append(errs, errors.New("scopes: need the dependency graph; add dependencies: {poll: 1m}"))
	}
	_, err := records.NewScoping(c.Scopes)
	return errors.Join(append(errs, err, records.CheckDotted(c.Host))...)
}

// Resolve implements [source.Settings].
func (c *Config) Resolve(dir string) {
	for _, path := range []*string{&c.PasswordFile, &c.TLS.CAFile, &c.TLS.CertFile, &c.TLS.KeyFile} {
		if *path != "" && !filepath.IsAbs(*path) {
			*path = filepath.Join(dir, *path)
		}
	}
}

// Check implements [source.Settings].
func (c *Config) Check() error {
	var errs []error
	for _, f := range []struct{ field, path string }{
		{"passwordFile", c.PasswordFile},
		{"tls.caFile", c.TLS.CAFile},
		{"tls.certFile", c.TLS.CertFile},
		{"tls.keyFile", c.TLS.KeyFile},
	} {
		if f.path == "" {
			continue
		}
		if _, err := os.Stat(f.path); err != nil {
			errs = append(errs, fmt.Errorf("%s: %q cannot be read: %w; create it, or name another", f.field, f.path, errors.Unwrap(err)))
		}
	}
	return errors.Join(errs...)
}

// Open implements [source.Settings].
func (c *Config) Open(env source.Env) source.Source {
	settings := *c
	if env.Once {
		settings.Watch = false // hints cost a consumer in the registry, and one listing needs none
	}
	return New(settings, Options{Instance: env.Instance, Name: env.Name, Stored: env.Stored, Log: env.Log})
}

// rules returns what the configuration decides about records.
func (c *Config) rules() (records.Rules, error) {
	return records.NewRules(records.Settings{
		Project: c.Project, Environments: c.Environments, Apps: c.Apps,
		Host: c.Host, Namespace: c.Namespace, ExportTo: c.ExportTo, PortGrace: c.PortGrace, ServeTesting: c.ServeTesting,
	})
}

// registry returns how the registry is reached.
func (c *Config) registry() registry.Settings {
	return registry.Settings{Addresses: c.Addresses, Domain: c.Domain, Project: c.Project, Timeout: c.Timeout, TLS: c.TLS}
}
