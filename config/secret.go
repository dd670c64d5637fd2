package config

import (
	"github.com/isthmus-mesh/isthmus/authority"
	"github.com/isthmus-mesh/isthmus/internal/secretfile"
	"github.com/isthmus-mesh/isthmus/secrets/files"
)

// secretive is the settings of a source or an output that names files with secrets.
type secretive interface {
	// Secrets returns their paths. Some may be empty.
	Secrets() []string
}

// Exposed returns a warning for each cause by which other users can read or replace secrets
// that a configuration names. [Config.Warnings] does not have them: they are not of the settings.
func Exposed(c *Config) []string {
	list := []string{c.Admin.TLS.KeyFile, c.Admin.TokenFile}
	for _, s := range c.Sources {
		if of, ok := s.Settings.(secretive); ok {
			list = append(list, of.Secrets()...)
		}
	}
	for _, o := range c.Outputs {
		if of, ok := o.Settings.(secretive); ok {
			list = append(list, of.Secrets()...)
		}
	}
	for _, issuer := range c.Identity.JWT {
		list = append(list, issuer.TokenFile)
	}
	if dir := c.Identity.Authority.Dir; dir != "" {
		list = append(list, authority.Secrets(dir)...)
	}
	if dir := c.Identity.Files.Dir; dir != "" {
		list = append(list, files.Secrets(dir)...)
	}
	return secretfile.Warnings(list...)
}
