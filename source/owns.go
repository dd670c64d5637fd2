package source

import (
	"errors"
	"fmt"
)

// Owns gives hosts to a source on purpose. Its records of these hosts go before those of
// every other source, and of every other namespace.
type Owns struct {
	// Hosts are patterns, as [model.HostWithin] takes them.
	Hosts []string `json:"hosts"`
}

// Validate reports every pattern that stands for nothing.
func (o Owns) Validate() error { return errors.Join(patternFaults(o.Hosts)...) }

// patternFaults are about every pattern of hosts that stands for nothing.
func patternFaults(hosts []string) (errs []error) {
	for i, host := range hosts {
		if !isPattern(host) {
			errs = append(errs, fmt.Errorf(`hosts[%d]: %q is no host; write a DNS name, "*." and a domain, such as "*.example.com", or "*"`, i, host))
		}
	}
	return errs
}
