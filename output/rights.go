package output

import (
	"fmt"
	"strings"
)

// Rights is what the system that is written to does not allow, and would have to.
type Rights struct {
	// Subject is as whom the system knows this process.
	Subject string  `json:"subject"`
	Missing []Right `json:"missing"`
	// Reason says why it could not be found out what is missing; empty if it could.
	Reason string `json:"reason"`
	// Manifest gives what is missing, in the form that the system's own tool applies.
	Manifest string `json:"manifest"`
}

// Right is the right to do something with the objects of a kind.
type Right struct {
	Namespace string   `json:"namespace"` // empty: all of them
	Group     string   `json:"group"`     // of the system's API
	Resource  string   `json:"resource"`
	Name      string   `json:"name,omitempty"` // of the only object; empty: all of them
	Verbs     []string `json:"verbs"`
}

func (r Right) String() string {
	what := strings.Join(r.Verbs, ", ") + " " + r.Resource + "." + r.Group
	if r.Name != "" {
		what += " " + r.Name
	}
	if r.Namespace == "" {
		return what + " in all namespaces"
	}
	return fmt.Sprintf("%s in namespace %s", what, r.Namespace)
}
