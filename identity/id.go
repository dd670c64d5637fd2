package identity

import (
	"fmt"

	"github.com/spiffe/go-spiffe/v2/spiffeid"

	"github.com/isthmus-mesh/isthmus/internal/spiffe"
)

// workload is the identity of a workload, in its parts.
type workload struct{ trustDomain, namespace, account string }

// parseID reads the identity of a workload.
func parseID(text string) (workload, error) {
	id, err := spiffeid.FromString(text)
	if err != nil {
		return workload{}, fmt.Errorf("%s is not an identity of the form %s: %w", clip(text), spiffe.Form, err)
	}
	namespace, account, err := spiffe.Parts(id)
	return workload{id.TrustDomain().Name(), namespace, account}, err
}

// makeID makes the identity of a workload. Its names are names that Kubernetes accepts.
func (w workload) makeID() (spiffeid.ID, error) {
	if !spiffe.IsNamespace(w.namespace) {
		return spiffeid.ID{}, fmt.Errorf("the namespace %s is not %s", clip(w.namespace), spiffe.NamespaceForm)
	}
	if !spiffe.IsAccount(w.account) {
		return spiffeid.ID{}, fmt.Errorf("the account %s is not %s", clip(w.account), spiffe.AccountForm)
	}
	domain, err := spiffeid.TrustDomainFromString(w.trustDomain)
	if err != nil {
		return spiffeid.ID{}, err
	}
	return spiffeid.FromSegments(domain, "ns", w.namespace, "sa", w.account)
}

// clip quotes foreign text for an error or a log, and shortens it.
func clip(text string) string {
	const most = 100
	if len(text) > most {
		return fmt.Sprintf("%q…", text[:most])
	}
	return fmt.Sprintf("%q", text)
}
