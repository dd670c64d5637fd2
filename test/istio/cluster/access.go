package cluster

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Access is something that a user may do, or may not.
type Access struct {
	User, Verb, Group, Resource, Name, Namespace string
	Groups                                       []string // of the user
}

var accessReviews = schema.GroupVersionResource{Group: "authorization.k8s.io", Version: "v1", Resource: "subjectaccessreviews"}

// Allows reports whether the API server allows it by now: it looks at roles and bindings
// some time after they were written.
func (c *Client) Allows(ctx context.Context, a Access) (bool, error) {
	var groups []any
	for _, g := range a.Groups {
		groups = append(groups, g)
	}
	review := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
		"spec": map[string]any{"user": a.User, "groups": groups, "resourceAttributes": map[string]any{
			"verb": a.Verb, "group": a.Group, "resource": a.Resource, "name": a.Name, "namespace": a.Namespace,
		}},
	}}
	answer, err := c.resources.Resource(accessReviews).Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return false, err
	}
	allowed, _, err := unstructured.NestedBool(answer.Object, "status", "allowed")
	return allowed, err
}
