// Package rights asks an API server for the rights that the writer lacks, and writes the
// manifest that grants them. It changes nothing, and any goroutine may call it.
package rights

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	authentication "k8s.io/api/authentication/v1"
	authorization "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"

	convert "github.com/isthmus-mesh/isthmus/convert/istio"
	"github.com/isthmus-mesh/isthmus/output"
	"github.com/isthmus-mesh/isthmus/output/istio/apiserver"
	"github.com/isthmus-mesh/isthmus/output/istio/object"
)

// The required rights: read access in all namespaces, write access in the written
// namespaces, and the lease.
func readVerbs() []string { return []string{"get", "list", "watch"} }

// WriteVerbs returns the verbs of writes.
func WriteVerbs() []string { return []string{"create", "update", "patch", "delete"} }

func leaseVerbs() []string { return []string{"get", "create", "update"} }

// Needs are the accesses that rights are needed for.
type Needs struct {
	Kinds []object.Kind // the written kinds
	// Lease is the name of the lease, in a namespace; empty without an election.
	Namespace, Lease string
}

// Reviewer asks the API server for our rights. That changes nothing there.
type Reviewer struct {
	needs  Needs
	access authorizationclient.AuthorizationV1Interface
	self   authenticationclient.AuthenticationV1Interface
}

// New returns a reviewer for a client configuration.
func New(target *rest.Config, needs Needs) (*Reviewer, error) {
	target = rest.CopyConfig(target)
	target.ContentType = "application/json"
	target.QPS = -1 // a few requests, whose answers a user awaits
	access, err := authorizationclient.NewForConfig(target)
	if err != nil {
		return nil, err
	}
	self, err := authenticationclient.NewForConfig(target)
	if err != nil {
		return nil, err
	}
	return &Reviewer{needs, access, self}, nil
}

// subject returns our user name in the API server.
func (r *Reviewer) subject(ctx context.Context) (string, error) {
	review, err := r.self.SelfSubjectReviews().Create(ctx, &authentication.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	return review.Status.UserInfo.Username, nil
}

// lacks returns the right with its denied verbs only.
func (r *Reviewer) lacks(ctx context.Context, want output.Right) (output.Right, error) {
	missing := want
	missing.Verbs = nil
	for _, verb := range want.Verbs {
		attributes := &authorization.ResourceAttributes{Verb: verb, Group: want.Group, Resource: want.Resource, Namespace: want.Namespace}
		if verb != "create" {
			attributes.Name = want.Name // RBAC cannot match the name of an object that does not exist yet
		}
		review, err := r.access.SelfSubjectAccessReviews().Create(ctx, &authorization.SelfSubjectAccessReview{
			Spec: authorization.SelfSubjectAccessReviewSpec{ResourceAttributes: attributes},
		}, metav1.CreateOptions{})
		if err != nil {
			return missing, err
		}
		if !review.Status.Allowed {
			missing.Verbs = append(missing.Verbs, verb)
		}
	}
	return missing, nil
}

// Rights returns the missing rights to follow the API server, and to write in namespaces.
// Without namespaces it asks for rights in all of them, as the manifests in the reference
// do.
func (r *Reviewer) Rights(ctx context.Context, namespaces []string) output.Rights {
	var found output.Rights
	subject, err := r.subject(ctx)
	if err == nil {
		found.Subject = subject
		found.Missing, err = r.lacking(ctx, namespaces)
	}
	if err != nil {
		return output.Rights{Subject: subject, Reason: "the permissions in the API server cannot be read: " + apiserver.Explain(err)}
	}
	if len(found.Missing) > 0 {
		found.Manifest = r.needs.manifestFor(subject, found.Missing)
	}
	return found
}

func (r *Reviewer) lacking(ctx context.Context, namespaces []string) (missing []output.Right, err error) {
	var need []output.Right
	for _, kind := range r.needs.Kinds {
		need = append(need, output.Right{Group: convert.Group, Resource: kind.Resource(), Verbs: readVerbs()})
		writes, err := r.writing(ctx, kind, namespaces)
		if err != nil {
			return nil, err
		}
		need = append(need, writes...)
	}
	if r.needs.Lease != "" {
		need = append(need, output.Right{
			Namespace: r.needs.Namespace, Group: leaseGroup, Resource: "leases", Name: r.needs.Lease, Verbs: leaseVerbs(),
		})
	}
	for _, right := range need {
		lack, err := r.lacks(ctx, right)
		if err != nil {
			return nil, err
		}
		if len(lack.Verbs) > 0 {
			missing = append(missing, lack)
		}
	}
	return missing, nil
}

// leaseGroup is the API group of leases.
const leaseGroup = "coordination.k8s.io"

// writing returns the required rights to write a kind: in all namespaces at once, or, if
// some were granted one by one, in each written namespace.
func (r *Reviewer) writing(ctx context.Context, kind object.Kind, namespaces []string) ([]output.Right, error) {
	everywhere := output.Right{Group: convert.Group, Resource: kind.Resource(), Verbs: WriteVerbs()}
	lack, err := r.lacks(ctx, everywhere)
	if err != nil || len(lack.Verbs) == 0 {
		return nil, err
	}
	var each []output.Right
	given := false
	for _, namespace := range namespaces {
		right := everywhere
		right.Namespace = namespace
		here, err := r.lacks(ctx, right)
		if err != nil {
			return nil, err
		}
		given = given || len(here.Verbs) < len(lack.Verbs)
		each = append(each, right)
	}
	if given {
		return each, nil
	}
	return []output.Right{everywhere}, nil
}

// LackReading reports whether any read access is missing.
func LackReading(r output.Rights) bool {
	return slices.ContainsFunc(r.Missing, func(right output.Right) bool {
		return right.Group == convert.Group && slices.ContainsFunc(right.Verbs, func(verb string) bool { return slices.Contains(readVerbs(), verb) })
	})
}

// MissingError reports that the API server cannot be followed because rights are missing.
type MissingError struct{ output.Rights }

// Error lists the missing rights, and the manifest that grants them.
func (e *MissingError) Error() string {
	var text strings.Builder
	fmt.Fprintf(&text, "the API server does not allow %s to", cmp.Or(e.Subject, "this user"))
	for i, right := range e.Missing {
		if i > 0 {
			text.WriteByte(',')
		}
		text.WriteString(" " + right.String())
	}
	return text.String() + "; apply this manifest, and try again:\n" + e.Manifest
}
