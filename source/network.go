package source

import (
	"fmt"
	"strings"

	"github.com/isthmus-mesh/isthmus/model"
)

// Network is the network of a registry's endpoints that name none; empty for none.
type Network string

// Validate reports a name that no label can have: clients name their network by a label, too.
func (n Network) Validate() error {
	alphanumeric := func(r rune) bool { return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' }
	strange := func(r rune) bool { return !alphanumeric(r) && !strings.ContainsRune("-_.", r) }
	text := string(n)
	if len(text) > 63 || strings.ContainsFunc(text, strange) || strings.Trim(text, "-_.") != text {
		return fmt.Errorf("network: %q cannot be the value of a label: use at most 63 letters, digits, '-', '_' and '.', with a letter or digit at both ends", text)
	}
	return nil
}

// Complete returns a specification with the network, if it is of an endpoint that names none.
func (n Network) Complete(spec model.Spec) model.Spec {
	switch spec := spec.(type) {
	case model.Endpoint:
		if n != "" && spec.Network == "" {
			spec.Network = string(n)
			return spec
		}
	case model.Workload:
		if n != "" && spec.Endpoint.Network == "" {
			spec.Endpoint.Network = string(n)
			return spec
		}
	}
	return spec
}
