package cluster

import (
	"context"
	"fmt"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
)

// The resources that tests speak of.
var (
	ServiceEntries   = schema.GroupVersionResource{Group: "networking.istio.io", Version: "v1", Resource: "serviceentries"}
	WorkloadEntries  = schema.GroupVersionResource{Group: "networking.istio.io", Version: "v1", Resource: "workloadentries"}
	Sidecars         = schema.GroupVersionResource{Group: "networking.istio.io", Version: "v1", Resource: "sidecars"}
	DestinationRules = schema.GroupVersionResource{Group: "networking.istio.io", Version: "v1", Resource: "destinationrules"}
	VirtualServices  = schema.GroupVersionResource{Group: "networking.istio.io", Version: "v1", Resource: "virtualservices"}
	Leases           = schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}
	namespaces       = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	definitions      = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
)

// fieldManager is who writes for the tests, unless it is said otherwise.
const fieldManager = "test"

// Client speaks with an API server about objects of any kind. Objects without
// a namespace are those of the cluster.
type Client struct {
	over      *http.Client
	resources dynamic.Interface
	manager   string
}

// As is the client of another field manager, on the same connections.
func (c *Client) As(manager string) *Client { return &Client{c.over, c.resources, manager} }

// Close closes the connections.
func (c *Client) Close() { c.over.CloseIdleConnections() }

// Namespace creates a namespace.
func (c *Client) Namespace(ctx context.Context, name string) error {
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace"}}
	object.SetName(name)
	return c.Apply(ctx, namespaces, object)
}

// Apply writes an object by server-side apply, and takes the fields that others own.
func (c *Client) Apply(ctx context.Context, kind schema.GroupVersionResource, object *unstructured.Unstructured) error {
	_, err := c.resources.Resource(kind).Namespace(object.GetNamespace()).
		Apply(ctx, object.GetName(), object, metav1.ApplyOptions{FieldManager: c.manager, Force: true})
	if err != nil {
		return fmt.Errorf("applying %s %s/%s: %w", kind.Resource, object.GetNamespace(), object.GetName(), err)
	}
	return nil
}

// Get reads an object.
func (c *Client) Get(ctx context.Context, kind schema.GroupVersionResource, namespace, name string) (*unstructured.Unstructured, error) {
	return c.resources.Resource(kind).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
}

// List reads the objects of a namespace that have labels, such as "app=shop".
func (c *Client) List(ctx context.Context, kind schema.GroupVersionResource, namespace, labels string) ([]unstructured.Unstructured, error) {
	list, err := c.resources.Resource(kind).Namespace(namespace).List(ctx, metav1.ListOptions{LabelSelector: labels})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

// Watch follows the objects of a namespace, from those that are there on.
func (c *Client) Watch(ctx context.Context, kind schema.GroupVersionResource, namespace string) (watch.Interface, error) {
	return c.resources.Resource(kind).Namespace(namespace).Watch(ctx, metav1.ListOptions{})
}

// Update replaces an object, unless it has changed since it was read.
func (c *Client) Update(ctx context.Context, kind schema.GroupVersionResource, object *unstructured.Unstructured) error {
	_, err := c.resources.Resource(kind).Namespace(object.GetNamespace()).
		Update(ctx, object, metav1.UpdateOptions{FieldManager: c.manager})
	return err
}

// Create creates an object in the version that it says.
func (c *Client) Create(ctx context.Context, object *unstructured.Unstructured, resource string) error {
	kind := object.GroupVersionKind().GroupVersion().WithResource(resource)
	_, err := c.resources.Resource(kind).Namespace(object.GetNamespace()).
		Create(ctx, object, metav1.CreateOptions{FieldManager: c.manager})
	return err
}

// Patch changes an object by a patch of some type.
func (c *Client) Patch(ctx context.Context, kind schema.GroupVersionResource, namespace, name string, as types.PatchType, patch string) error {
	_, err := c.resources.Resource(kind).Namespace(namespace).
		Patch(ctx, name, as, []byte(patch), metav1.PatchOptions{FieldManager: c.manager})
	return err
}

// Delete deletes an object.
func (c *Client) Delete(ctx context.Context, kind schema.GroupVersionResource, namespace, name string) error {
	return c.resources.Resource(kind).Namespace(namespace).Delete(ctx, name, metav1.DeleteOptions{})
}
