package kubernetes

import (
	"context"
	"net/http"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/isthmus-mesh/isthmus/convert/istio"
	convert "github.com/isthmus-mesh/isthmus/convert/kubernetes"
	"github.com/isthmus-mesh/isthmus/model"
)

// kind is a kind of object that is read.
type kind struct {
	resource  string // as in paths of the API
	namespace string // the only one it is read in; empty for all, and for cluster-wide kinds
	required  bool
	optional  bool   // clusters usually do without it: its absence is reported only while records of it are stored
	off       string // how a setting disables the kind; empty if it is always read
	example   func() runtime.Object
	api       api
	// read reduces an object to its kept part. The function uses no shared state.
	read func(object any) any
}

func (k *kind) part() part { return part{k.resource, k.namespace} }

// name returns the name for people.
func (k *kind) name() string {
	if k.namespace == "" {
		return k.resource
	}
	return k.resource + " of " + k.namespace
}

// api lists and watches.
type api interface {
	List(ctx context.Context, options metav1.ListOptions) (runtime.Object, error)
	// Metadata lists the metadata of the objects alone.
	Metadata(ctx context.Context, options metav1.ListOptions) (*metav1.PartialObjectMetadataList, error)
	Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error)
}

// kinds returns all kinds that are read of a cluster. With configured namespaces,
// each is requested separately, so that rights in these namespaces are enough.
func (c *Config) kinds(target *rest.Config, through http.RoundTripper) ([]kind, error) {
	api, err := newClients(target, &http.Client{Transport: noting{through}})
	if err != nil {
		return nil, err
	}
	list := []kind{{
		resource: nodes, example: func() runtime.Object { return &corev1.Node{} },
		api:  api.core(nodes, "", func() runtime.Object { return &corev1.NodeList{} }),
		read: func(o any) any { return readAs(o, func(n *corev1.Node) any { return convert.ReadNode(n) }) },
	}}
	for _, namespace := range c.namespaces() {
		list = append(list, c.kindsIn(namespace, api)...)
	}
	return list, nil
}

// kindsIn returns the namespaced kinds, for one namespace or for all.
func (c *Config) kindsIn(namespace string, api *clients) []kind {
	cluster := c.cluster()
	list := []kind{{
		resource: services, namespace: namespace, required: true, example: func() runtime.Object { return &corev1.Service{} },
		api:  api.core(services, namespace, func() runtime.Object { return &corev1.ServiceList{} }),
		read: func(o any) any { return readAs(o, func(s *corev1.Service) any { return cluster.ReadService(s) }) },
	}, {
		resource: endpointSlices, namespace: namespace, required: true, example: func() runtime.Object { return &discoveryv1.EndpointSlice{} },
		api: typed{api.discoveryV1, api.metadata, discoveryv1.SchemeGroupVersion.WithResource(endpointSlices), namespace, func() runtime.Object { return &discoveryv1.EndpointSliceList{} }},
		read: func(o any) any {
			return readAs(o, func(s *discoveryv1.EndpointSlice) any { return convert.ReadSlice(s) })
		},
	}}
	if c.Pods {
		list = append(list, kind{
			resource: pods, namespace: namespace, off: "set pods: false", example: func() runtime.Object { return &corev1.Pod{} },
			api:  api.core(pods, namespace, func() runtime.Object { return &corev1.PodList{} }),
			read: func(o any) any { return readAs(o, func(p *corev1.Pod) any { return convert.ReadPod(p) }) },
		})
	}
	for _, of := range c.definitions() {
		off, objects := "set istio: false", &untyped{clients: api, of: of, namespace: namespace}
		switch {
		case of.IsSMI():
			off, objects.optional = "set smi: false", true
		case !of.IsRead():
			off = "leave " + of.Name + " out of carry"
		}
		list = append(list, kind{
			resource: of.Resource(), namespace: namespace, optional: of.IsSMI(), off: off, example: func() runtime.Object { return &unstructured.Unstructured{} },
			api: objects,
			read: func(o any) any {
				return readAs(o, func(u *unstructured.Unstructured) any { return readObject(u, cluster.Domain) })
			},
		})
	}
	return list
}

// Resources of the API.
const (
	services       = "services"
	endpointSlices = "endpointslices"
	nodes          = "nodes"
	pods           = "pods"
)

// readAs reads an object, in whichever form the reflector passes it.
func readAs[T any](object any, read func(T) any) any {
	if typed, ok := object.(T); ok {
		return read(typed)
	}
	return nil
}

func readObject(u *unstructured.Unstructured, domain string) any {
	text, err := u.MarshalJSON()
	if err != nil {
		return nil
	}
	reading := istio.FromJSON(text, domain)
	if spec, is := reading.Spec.(model.Workload); is && spec.Endpoint.Registered == 0 {
		spec.Endpoint.Registered = max(spec.Created.UnixMilli(), 0) // the API server vouches for it
		reading.Spec = spec
	}
	return reading
}

// clients are the clients of one API server.
type clients struct {
	coreV1, discoveryV1 rest.Interface
	objects             dynamic.Interface
	metadata            metadata.Interface
}

func newClients(target *rest.Config, requests *http.Client) (*clients, error) {
	core, err := client(target, requests, corev1.SchemeGroupVersion, "/api")
	if err != nil {
		return nil, err
	}
	discovery, err := client(target, requests, discoveryv1.SchemeGroupVersion, "/apis")
	if err != nil {
		return nil, err
	}
	paced := rest.CopyConfig(target)
	paced.QPS = -1 // as in client
	objects, err := dynamic.NewForConfigAndClient(paced, requests)
	if err != nil {
		return nil, err
	}
	all, err := metadata.NewForConfigAndClient(paced, requests)
	return &clients{core, discovery, objects, all}, err
}

// core returns the API of a resource of the core group.
func (c *clients) core(resource, namespace string, empty func() runtime.Object) api {
	return typed{c.coreV1, c.metadata, corev1.SchemeGroupVersion.WithResource(resource), namespace, empty}
}

// client returns a client for one group of an API, in the protobuf encoding.
func client(target *rest.Config, requests *http.Client, group schema.GroupVersion, path string) (rest.Interface, error) {
	c := rest.CopyConfig(target)
	c.APIPath, c.GroupVersion = path, &group
	c.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	c.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	c.ContentType = runtime.ContentTypeProtobuf
	c.QPS = -1 // only lists and watches are requested, at a pace of their own
	return rest.RESTClientForConfigAndClient(c, requests)
}

// typed reads objects with compiled-in types.
type typed struct {
	client    rest.Interface
	metadata  metadata.Interface
	resource  schema.GroupVersionResource
	namespace string // as in [kind]
	empty     func() runtime.Object
}

func (t typed) get() *rest.Request {
	return t.client.Get().NamespaceIfScoped(t.namespace, t.namespace != "").Resource(t.resource.Resource)
}

func (t typed) List(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	list := t.empty()
	err := t.get().VersionedParams(&options, scheme.ParameterCodec).Do(ctx).Into(list)
	return list, err
}

func (t typed) Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	options.Watch = true
	return t.get().VersionedParams(&options, scheme.ParameterCodec).Watch(ctx)
}

func (t typed) Metadata(ctx context.Context, options metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
	return t.metadata.Resource(t.resource).Namespace(t.namespace).List(ctx, options)
}

// untyped reads objects of Istio and SMI, in the newest version that the API server has.
type untyped struct {
	*clients

	of        istio.Definition
	namespace string       // as in [kind]
	optional  bool         // the API server is asked first whether it has the group
	version   atomic.Int32 // index in the versions of the kind of the last answered one
}

func (u *untyped) List(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	list, err := inSomeVersion(ctx, u, func(r schema.GroupVersionResource) (*unstructured.UnstructuredList, error) {
		return u.objects.Resource(r).Namespace(u.namespace).List(ctx, options)
	})
	if list == nil {
		return nil, err // without the type of a list
	}
	return list, err
}

func (u *untyped) Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	return inSomeVersion(ctx, u, func(r schema.GroupVersionResource) (watch.Interface, error) {
		return u.objects.Resource(r).Namespace(u.namespace).Watch(ctx, options)
	})
}

func (u *untyped) Metadata(ctx context.Context, options metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
	return inSomeVersion(ctx, u, func(r schema.GroupVersionResource) (*metav1.PartialObjectMetadataList, error) {
		return u.metadata.Resource(r).Namespace(u.namespace).List(ctx, options)
	})
}

func inSomeVersion[T any](ctx context.Context, u *untyped, ask func(schema.GroupVersionResource) (T, error)) (answer T, err error) {
	if u.optional {
		// An API server forbids a request without rights whether or not it has the kind. It tells
		// each client which groups it has.
		if err := u.discoveryV1.Get().AbsPath("/apis", u.of.Group).Do(ctx).Error(); apierrors.IsNotFound(err) {
			return answer, err
		}
	}
	versions, last := u.of.Versions(), int(u.version.Load())
	for i := range versions {
		at := (last + i) % len(versions)
		answer, err = ask(schema.GroupVersionResource{Group: u.of.Group, Version: versions[at], Resource: u.of.Resource()})
		if !apierrors.IsNotFound(err) {
			if err == nil {
				u.version.Store(int32(at)) //nolint:gosec // a few versions
			}
			return answer, err
		}
	}
	return answer, err
}
