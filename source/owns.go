package source

import (
	"errors"
	"fmt"
)

// Owns assigns hosts to a source on purpose. Its records of these hosts take
// precedence over every other source, and over every other namespace.
type Owns struct {
	// Hosts are patterns, as [model.HostWithin] takes them.
	Hosts []string `json:"hosts"`
}

// Validate reports every invalid pattern.
func (o Owns) Validate() error { return errors.Join(patternFaults(o.Hosts)...) }

// patternFaults returns an error for every invalid host pattern.
func patternFaults(hosts []string) (errs []error) {
	for i, host := range hosts {
		if !isPattern(host) {
			errs = append(errs, fmt.Errorf(`hosts[%d]: %q is no host; write a DNS name, "*." and a domain, such as "*.example.com", or "*"`, i, host))
		}
	}
	return errs
}
