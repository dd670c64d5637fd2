package kubeconfig

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"k8s.io/client-go/rest"
)

// Lease names a Lease in an API server.
type Lease struct{ Namespace, Name string }

// UID returns the UID of the Lease; empty if the API server reports that it does not exist.
// With create, a missing Lease is created without a holder, and then read: several
// processes may create it at once. An error means that no API server gave a valid answer, or
// that it denied access, and names the Lease and the missing right.
func (l Lease) UID(ctx context.Context, target *rest.Config, create bool) (uid string, err error) {
	through, err := new(Plugin).Transport(target)
	if err == nil {
		c := &http.Client{Transport: through, Timeout: target.Timeout}
		defer c.CloseIdleConnections()
		if uid, err = l.get(ctx, c, target); uid == "" && err == nil && create {
			uid, err = l.create(ctx, c, target)
		}
	}
	if err != nil {
		return "", fmt.Errorf("Lease %s/%s of %s: %w", l.Namespace, l.Name, target.Host, err) //nolint:staticcheck // the name of a kind
	}
	return uid, nil
}

func (l Lease) get(ctx context.Context, c *http.Client, target *rest.Config) (uid string, err error) {
	a, err := l.ask(ctx, c, target, http.MethodGet, l.Name)
	switch is := a.Metadata; {
	case err != nil:
		return "", err
	case a.code == http.StatusOK && a.Kind == "Lease" && is.Name == l.Name && is.Namespace == l.Namespace && is.UID != "":
		return is.UID, nil
	case a.lacks("leases", l.Name):
		return "", nil
	}
	return "", a.problem(fmt.Sprintf("get on leases of the group coordination.k8s.io, resourceNames [%s], in the namespace %s", l.Name, l.Namespace))
}

// create creates the Lease, unless it exists by now, and returns its UID.
func (l Lease) create(ctx context.Context, c *http.Client, target *rest.Config) (uid string, err error) {
	a, err := l.ask(ctx, c, target, http.MethodPost, "")
	switch {
	case err != nil:
		return "", err
	case a.lacks("namespaces", l.Namespace):
		return "", fmt.Errorf("the namespace %s does not exist; create it, or choose another one by leaderElection.namespace", l.Namespace)
	case a.code != http.StatusConflict && (a.code >= 300 || a.Kind != "Lease"):
		return "", a.problem("create on leases of the group coordination.k8s.io in the namespace " + l.Namespace)
	}
	if uid, err = l.get(ctx, c, target); uid == "" && err == nil {
		err = errors.New("it is gone right after it was created; it is tried again")
	}
	return uid, err
}

// reply is the answer of an API server, a Lease or a Status, or of something else at its
// address.
type reply struct {
	code     int
	status   string
	Kind     string `json:"kind"`
	Metadata struct {
		Namespace string `json:"namespace"`
		Name      string `json:"name"`
		UID       string `json:"uid"`
	} `json:"metadata"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
	Details struct {
		Kind string `json:"kind"`
		Name string `json:"name"`
	} `json:"details"`
}

// largest bounds the bytes of a reply.
const largest = 1 << 20

// ask sends a request about the Lease. One by POST creates the Lease.
func (l Lease) ask(ctx context.Context, c *http.Client, target *rest.Config, method, name string) (a reply, err error) {
	url, _, err := rest.DefaultServerUrlFor(target)
	if err != nil {
		return a, fmt.Errorf("%q is no address of an API server: %w", target.Host, err)
	}
	var body []byte
	if method == http.MethodPost {
		body = fmt.Appendf(nil, `{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"namespace":%q,"name":%q}}`, l.Namespace, l.Name)
	}
	at := url.JoinPath("apis/coordination.k8s.io/v1/namespaces", l.Namespace, "leases", name)
	r, err := http.NewRequestWithContext(ctx, method, at.String(), bytes.NewReader(body))
	if err != nil {
		return a, err
	}
	r.Header.Set("Accept", "application/json")
	r.Header.Set("Content-Type", "application/json")
	response, err := c.Do(r)
	if err != nil {
		return a, err
	}
	defer func() { _ = response.Body.Close() }()
	if json.NewDecoder(io.LimitReader(response.Body, largest)).Decode(&a) != nil {
		a = reply{} // of no API server
	}
	a.code, a.status = response.StatusCode, response.Status
	return a, ctx.Err()
}

// lacks reports whether an API server states that an object does not exist. Proxies in
// front of API servers know no such details.
func (a *reply) lacks(resource, name string) bool {
	return a.code == http.StatusNotFound && a.Kind == "Status" && a.Reason == "NotFound" && a.Details.Kind == resource && a.Details.Name == name
}

// problem explains an unexpected reply. right is the right that the request needs.
func (a *reply) problem(right string) error {
	switch {
	case a.Kind == "Status" && a.code == http.StatusForbidden:
		return fmt.Errorf("the API server denies access (%.300q); allow the verb %s", a.Message, right)
	case a.Kind == "Status":
		return fmt.Errorf("the API server answers %s: %.300q", a.status, a.Message)
	case a.code == http.StatusOK:
		return errors.New("the answer is no such Lease; correct the address of the API server")
	}
	return fmt.Errorf("the answer %s is not of an API server; correct the address, or what stands between", a.status)
}
